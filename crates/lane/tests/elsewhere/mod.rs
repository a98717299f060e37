//! Where the messages of a queue are kept whose takers are at a broker: a sorted vector, and what is leased of it. And the way between the two: what
//! the broker wants is leased and handed to it, until there is nothing it wants or nothing left.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use overtake_lane::{
    Broker, Effect, Identity, LaneChoice, LeaseId, Message, Original, Place, Priority, PutBack, QueueId,
    Receipt, RemoteQueue, Scheme, Seq, SessionId, Settings, State, Step, Terms, Time, VhostId, Want,
};

/// Messages of one queue, kept here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elsewhere {
    ready: Vec<Message>,
    leased: BTreeMap<(Seq, LeaseId), (Message, Terms)>,
    next_seq: u64,
    next_lease: u64,
}

impl Elsewhere {
    pub(crate) fn publish(&mut self, now: Time, priority: i32, bytes: u32) -> Seq {
        self.next_seq += 1;
        self.store(now, Seq(self.next_seq), priority, bytes);
        Seq(self.next_seq)
    }

    /// A message of any sequence: places of one queue may use one twice.
    pub(crate) fn store(&mut self, now: Time, seq: Seq, priority: i32, bytes: u32) {
        self.ready.push(Message {
            seq,
            priority: Priority(priority),
            original: Original::Missing,
            since: now,
            expires: Time::NEVER,
            bytes,
            count: 0,
            place: Place(seq.0),
            state: State::Ready,
            extras: None,
        });
        self.sort();
    }

    fn sort(&mut self) {
        self.ready.sort_by_key(|message| (Reverse(message.priority), message.seq));
    }

    /// Leases of what is wanted as much as there is.
    pub(crate) fn lease(&mut self, now: Time, want: &Want) -> Vec<(Message, LeaseId)> {
        let LaneChoice { at_least, ref except, one } = want.choice;
        let mut given: Vec<(Message, LeaseId)> = Vec::new();
        let mut left_bytes = if want.max_bytes == 0 { u64::MAX } else { want.max_bytes };
        let is_wanted = |message: &Message| {
            let lane = Scheme::TenLevel.name(message.priority).into_owned();
            message.priority >= at_least && !except.iter().any(|name| **name == *lane)
        };
        while given.len() < want.max as usize
            && let Some(at) = self.ready.iter().position(is_wanted)
        {
            let message = &self.ready[at];
            let bytes = u64::from(message.bytes);
            let is_another = given.last().is_some_and(|(last, _)| one && last.priority != message.priority);
            if !given.is_empty() && (bytes > left_bytes || is_another) {
                break;
            }
            left_bytes = left_bytes.saturating_sub(bytes);
            let mut message = self.ready.remove(at);
            self.next_lease += 1;
            let lease = LeaseId(self.next_lease);
            let deadline = match want.terms {
                Terms::Ms(ms) if ms > 0 => now.after(ms),
                _ => Time::NEVER,
            };
            message.count += 1;
            message.state = State::Leased { lease, deadline };
            if want.terms != Terms::Settled {
                self.leased.insert((message.seq, lease), (message.clone(), want.terms));
            }
            given.push((message, lease));
        }
        given
    }

    /// A lease is over; where the message comes back it is ready.
    pub(crate) fn end(&mut self, receipt: &Receipt, comes_back: Option<PutBack>) {
        let (message, _) = self.leased.remove(&(receipt.seq, receipt.lease)).expect("what ends was leased");
        if let Some(why) = comes_back {
            let count = if why.is_attempt() { message.count } else { message.count - 1 };
            self.ready.push(Message { count, state: State::Ready, ..message });
            self.sort();
        }
    }

    /// Leases that have a deadline end.
    pub(crate) fn tick(&mut self, now: Time) {
        let is_over =
            |message: &Message| matches!(message.state, State::Leased { deadline, .. } if deadline <= now);
        let over = self.leased.extract_if(.., |_, (message, _)| is_over(message));
        let over = over.map(|(_, (message, _))| Message { state: State::Ready, ..message });
        self.ready.extend(over);
        self.sort();
    }

    /// What is leased of a queue of this number, and on which terms.
    pub(crate) fn leased(&self, queue: QueueId) -> Vec<(Receipt, Terms)> {
        let all = self.leased.iter();
        all.map(|((seq, lease), (_, terms))| (Receipt { queue, seq: *seq, lease: *lease }, *terms)).collect()
    }
}

/// Makes a queue of it at a broker, which is somebody's own if it has an owner; or changes its settings.
pub(crate) fn remote(
    broker: &mut Broker,
    now: Time,
    queue: QueueId,
    name: &str,
    settings: &Settings,
    owner: Option<SessionId>,
    step: &mut Step,
) {
    let (vhost, settings) = (VhostId::DEFAULT, Box::new(settings.clone()));
    let identity = Identity { exclusive: owner.is_some(), ..Identity::default() };
    let queue = RemoteQueue { queue, vhost, name: name.into(), settings, identity, owner };
    broker.store_remote(now, queue, step).expect("it can be there");
}

/// Gives what came back of one queue in this step to where it is kept, then leases and hands what is wanted, as long as there is any.
pub(crate) fn follow(broker: &mut Broker, now: Time, queue: QueueId, kept: &mut Elsewhere, step: &mut Step) {
    let mut seen = 0;
    loop {
        for effect in &step.effects[seen..] {
            if let Effect::Returned { receipt, why } = effect
                && receipt.queue == queue
            {
                kept.end(receipt, Some(*why));
            }
        }
        seen = step.effects.len();
        let wants = broker.wants(queue);
        let mut leased = wants.iter().map(|want| (want.terms, kept.lease(now, want)));
        let Some((terms, messages)) = leased.find(|(_, messages)| !messages.is_empty()) else { return };
        let untaken = broker.hand(now, queue, messages, terms, step);
        assert!(untaken.is_empty(), "what was wanted is taken: {untaken:?} of {wants:?}");
    }
}
