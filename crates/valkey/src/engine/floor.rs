//! Who of this process takes messages, and what they hold: a counter over which messages go that were leased at their places.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_engine::core::Answer;
use overtake_engine::session::{Delivered, Event};
use overtake_engine::{Content, Failure, Held, Holder, LeasedMessage, Progress};
use overtake_lane::{
    Asker, Broker, Command, Consume, ConsumerId, Delivery, Effect, Fact, Few, Get, LeaseId, Message,
    MessageView, Options, Pull, PutBack, QueueId, Receipt, Refusal, RemoteQueue, Seq, SessionId, State, Step,
    Terms, Time, VhostId, VhostSettings, Want, WindowId,
};
use tokio::sync::{mpsc, oneshot};

/// Most leases of which it is remembered who has them.
const HOLDERS_MAX: usize = 100_000;

/// Who waits for an answer.
#[derive(Debug)]
pub(super) enum Ticket {
    /// A call of the engine.
    Caller(oneshot::Sender<Result<Answer, Failure>>),
    /// A session; without a token it is not answered.
    Session { number: SessionId, token: Option<u64> },
}

/// A lease that has not been answered.
#[derive(Debug)]
struct OpenPull {
    ticket: Ticket,
    messages: Vec<LeasedMessage>,
}

/// A message that was leased at its place, with all that is to be said of it.
pub(super) struct Gift {
    pub(super) message: Message,
    pub(super) lease: LeaseId,
    pub(super) view: MessageView,
    pub(super) content: Arc<Content>,
}

/// What must be done at places because of what happened on the floor.
#[derive(Debug, Default)]
pub(super) struct Aftermath {
    /// Leases that are over here.
    pub(super) returned: Vec<(Receipt, PutBack)>,
    /// Leases that nobody took.
    pub(super) untaken: Vec<Receipt>,
    /// Queues where there may be somebody with room now.
    pub(super) stirred: BTreeSet<QueueId>,
    /// Queues that a consumer has left.
    pub(super) left: BTreeSet<QueueId>,
}

/// Everybody of this process who takes messages.
pub(super) struct Floor {
    counter: Broker,
    /// Virtual hosts that the counter has heard of.
    vhosts: BTreeSet<VhostId>,
    sides: BTreeMap<SessionId, mpsc::UnboundedSender<Vec<Event>>>,
    consumers: BTreeMap<ConsumerId, SessionId>,
    /// Where each takes.
    seats: BTreeMap<ConsumerId, QueueId>,
    pulls: BTreeMap<ConsumerId, OpenPull>,
    holders: BTreeMap<ConsumerId, Arc<Holder>>,
    /// What is known of leases, for people.
    held: BTreeMap<Receipt, Held>,
    /// The message of the get that is being done.
    got: Option<(ConsumerId, Option<LeasedMessage>)>,
    /// Queues in which consumers share windows with others.
    shared: BTreeSet<QueueId>,
    step: Step,
}

impl Floor {
    pub(super) fn new(options: Options) -> Self {
        Self {
            counter: Broker::new(options),
            vhosts: BTreeSet::from([VhostId::DEFAULT]),
            sides: BTreeMap::new(),
            consumers: BTreeMap::new(),
            seats: BTreeMap::new(),
            pulls: BTreeMap::new(),
            holders: BTreeMap::new(),
            held: BTreeMap::new(),
            got: None,
            shared: BTreeSet::new(),
            step: Step::default(),
        }
    }

    // ---- queues ----

    /// A queue is here, and is so.
    pub(super) fn store(&mut self, now: Time, queue: RemoteQueue, after: &mut Aftermath) {
        if self.vhosts.insert(queue.vhost) {
            let name = format!("{}", queue.vhost.0).into();
            let stored =
                Fact::VhostStored { vhost: queue.vhost, name, settings: Box::new(VhostSettings::default()) };
            self.counter.fold(stored, &mut self.step).expect("a number makes a virtual host");
        }
        let number = queue.queue;
        if self.counter.store_remote(now, queue.clone(), &mut self.step).is_err() {
            // Its name was another queue's, which is gone.
            if let Ok(other) = self.counter.id_of(queue.vhost, &queue.name) {
                self.counter.end_remote(now, other, &mut self.step);
            }
            let stored = self.counter.store_remote(now, queue, &mut self.step);
            stored.expect("what is defined makes sense");
        }
        after.stirred.insert(number);
        self.carry_out(&[], after);
    }

    /// A queue is gone.
    pub(super) fn end_queue(&mut self, now: Time, queue: QueueId, after: &mut Aftermath) {
        self.counter.end_remote(now, queue, &mut self.step);
        self.shared.remove(&queue);
        self.carry_out(&[], after);
    }

    /// The sessions that are told something.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.sides.keys().copied().collect()
    }

    /// Consumers that stay, and whether one of them is to be the only one.
    pub(super) fn consumers(&self, queue: QueueId) -> (u64, bool) {
        self.counter.consumers_of(queue)
    }

    /// Whether the single active consumer of a queue is one of another process.
    pub(super) fn set_active_elsewhere(
        &mut self,
        now: Time,
        queue: QueueId,
        is_elsewhere: bool,
        after: &mut Aftermath,
    ) {
        self.counter.set_active_elsewhere(now, queue, is_elsewhere, &mut self.step);
        after.stirred.insert(queue);
        self.carry_out(&[], after);
    }

    /// Consumers that stay, and pulls that wait.
    pub(super) fn takers(&self, vhost: VhostId, name: &str) -> (u64, u64) {
        self.counter
            .view(self.counter.now(), vhost, name)
            .map_or((0, 0), |view| (view.consumers, view.waiting))
    }

    // ---- those who come ----

    pub(super) fn begin(&mut self, session: SessionId, to: mpsc::UnboundedSender<Vec<Event>>) {
        self.sides.insert(session, to);
    }

    /// Starts a consumer that stays, of this session. It is answered before its first message.
    pub(super) fn consume(
        &mut self,
        now: Time,
        (asker, session): (Asker, SessionId),
        (queue, consume): (QueueId, Consume),
        holder: Option<Arc<Holder>>,
        after: &mut Aftermath,
    ) -> Result<(), Refusal> {
        let (consumer, is_shared) = (consume.consumer, consume.shared.is_some());
        let consumed = self.counter.apply_by(now, asker, Command::Consume(consume), &mut self.step);
        self.carry_out(&[], after);
        consumed?;
        self.consumers.insert(consumer, session);
        self.seats.insert(consumer, queue);
        self.holders.extend(holder.map(|holder| (consumer, holder)));
        if is_shared {
            self.shared.insert(queue);
        }
        Ok(())
    }

    /// Somebody asks for messages, and waits until this time.
    pub(super) fn pull(
        &mut self,
        now: Time,
        asker: Asker,
        (queue, pull): (QueueId, Pull),
        (ticket, holder): (Ticket, Option<Arc<Holder>>),
        after: &mut Aftermath,
    ) {
        let consumer = pull.consumer;
        let pulled = self.counter.apply_by(now, asker, Command::Pull(pull), &mut self.step);
        self.carry_out(&[], after);
        if let Err(refusal) = pulled {
            return self.answer(ticket, Err(refusal.into()), after);
        }
        self.seats.insert(consumer, queue);
        self.holders.extend(holder.map(|holder| (consumer, holder)));
        self.pulls.insert(consumer, OpenPull { ticket, messages: Vec::new() });
    }

    /// Sets a window that consumers share, these among them from now on.
    pub(super) fn set_window(
        &mut self,
        now: Time,
        window: WindowId,
        size: u32,
        joining: Vec<ConsumerId>,
        after: &mut Aftermath,
    ) {
        self.shared.extend(joining.iter().filter_map(|consumer| self.seats.get(consumer)));
        let set = self.counter.apply(now, Command::SetWindow { window, size, joining }, &mut self.step);
        set.expect("a window is set wherever somebody is connected");
        after.stirred.extend(self.shared.iter().copied());
        self.carry_out(&[], after);
    }

    // ---- messages ----

    /// What takers of a queue want.
    pub(super) fn wants(&self, queue: QueueId) -> Few<Want> {
        self.counter.wants(queue)
    }

    /// Hands messages over. Those that nobody takes any more go back.
    pub(super) fn hand(
        &mut self,
        now: Time,
        queue: QueueId,
        gifts: &[Gift],
        terms: Terms,
        after: &mut Aftermath,
    ) {
        let messages = gifts.iter().map(|gift| (gift.message.clone(), gift.lease));
        let untaken = self.counter.hand(now, queue, messages, terms, &mut self.step);
        for at in untaken {
            let Gift { message, lease, .. } = &gifts[at];
            // A server has lost that somebody here holds it: until they are done with it, it goes to nobody.
            if self.counter.is_out(queue, message.seq) {
                continue;
            }
            after.untaken.push(Receipt { queue, seq: message.seq, lease: *lease });
        }
        self.carry_out(gifts, after);
    }

    /// Hands a message to whoever asked for it.
    pub(super) fn hand_to(
        &mut self,
        now: Time,
        asker: Asker,
        get: &Get,
        gift: Gift,
        holder: Option<Arc<Holder>>,
        after: &mut Aftermath,
    ) -> Result<LeasedMessage, Refusal> {
        self.got = Some((get.consumer, None));
        self.holders.extend(holder.map(|holder| (get.consumer, holder)));
        let given = (gift.message.clone(), gift.lease);
        let handed = self.counter.hand_to(now, asker, get, given, &mut self.step);
        self.carry_out(std::slice::from_ref(&gift), after);
        self.holders.remove(&get.consumer);
        let got = self.got.take().and_then(|(_, got)| got);
        handed.map(|()| got.expect("what was handed was given"))
    }

    /// A lease has ended at its place.
    pub(super) fn settled(&mut self, now: Time, receipt: &Receipt, after: &mut Aftermath) {
        self.held.remove(receipt);
        if self.counter.settled(now, receipt, &mut self.step) {
            after.stirred.insert(receipt.queue);
            after.stirred.extend(self.shared.iter().copied());
        }
        self.carry_out(&[], after);
    }

    /// Whether a lease is of somebody here, who holds it as long as they are there.
    pub(super) fn is_held(&self, receipt: &Receipt) -> bool {
        self.counter.holder_of(receipt).is_some()
    }

    /// Whether somebody here holds a message, by whatever lease.
    pub(super) fn knows(&self, queue: QueueId, seq: Seq) -> bool {
        self.counter.is_out(queue, seq)
    }

    /// Whether somebody consumes from a queue here, or holds something of it, as far as is known.
    pub(super) fn holds(&self, queue: QueueId) -> bool {
        let first = Receipt { queue, seq: Seq(0), lease: LeaseId(0) };
        let holds = self.held.range(first..).next().is_some_and(|(receipt, _)| receipt.queue == queue);
        holds || self.seats.values().any(|seat| *seat == queue)
    }

    /// What is known of a lease.
    pub(super) fn held(&self, receipt: &Receipt) -> Option<Held> {
        self.held.get(receipt).cloned()
    }

    /// Whoever works on a message says how far it is.
    pub(super) fn progress(&mut self, receipt: Receipt, at: Time, output: Arc<str>) {
        self.held.entry(receipt).or_default().progress = Some(Arc::new(Progress { output, at }));
        self.forget_some();
    }

    fn forget_some(&mut self) {
        if self.held.len() > HOLDERS_MAX {
            self.held.pop_first();
        }
    }

    // ---- going ----

    /// Does one of the commands by which takers go or have room again.
    pub(super) fn apply(
        &mut self,
        now: Time,
        asker: Asker,
        command: Command,
        after: &mut Aftermath,
    ) -> Result<Answer, Refusal> {
        match &command {
            Command::Took { consumer, .. } => after.stirred.extend(self.seats.get(consumer)),
            Command::Cancel { consumer } | Command::Leave { consumer } => {
                after.stirred.extend(self.seats.get(consumer));
                after.left.extend(self.seats.get(consumer).filter(|_| self.consumers.contains_key(consumer)));
            }
            _ => after.stirred.extend(self.seats.values()),
        }
        after.stirred.extend(self.shared.iter().copied());
        let reply = self.counter.apply_by(now, asker, command.clone(), &mut self.step);
        self.carry_out(&[], after);
        if let Command::Cancel { consumer } | Command::Leave { consumer } = command {
            self.consumers.remove(&consumer);
            self.seats.remove(&consumer);
            self.holders.remove(&consumer);
        }
        reply.map(overtake_engine::core::answer_of)
    }

    /// The consumers of a queue may not take any more; what they hold is theirs.
    pub(super) fn cancel_consumers(&mut self, now: Time, queue: QueueId, after: &mut Aftermath) {
        let here = self.consumers.iter().filter(|(consumer, _)| self.seats.get(consumer) == Some(&queue));
        let here: Vec<(ConsumerId, SessionId)> = here.map(|(consumer, to)| (*consumer, *to)).collect();
        for (consumer, to) in here {
            let cancelled = self.apply(now, Asker::default(), Command::Cancel { consumer }, after);
            cancelled.expect("a consumer that has a seat is known to the counter");
            self.tell(vec![(to, Event::Ended { consumer })], after);
        }
    }

    /// Whether a lease is not answered yet.
    pub(super) fn waits(&self, consumer: ConsumerId) -> bool {
        self.pulls.contains_key(&consumer)
    }

    /// Whoever asked for messages is gone; if the lease waits still it is answered, with nothing.
    pub(super) fn give_up(&mut self, now: Time, consumer: ConsumerId, after: &mut Aftermath) {
        if !self.pulls.contains_key(&consumer) {
            return;
        }
        let cancelled = self.counter.apply(now, Command::Cancel { consumer }, &mut self.step);
        assert!(cancelled.is_ok(), "a pull that is not answered is known to the counter");
        self.carry_out(&[], after);
        self.serve(consumer, after);
    }

    /// What somebody asked for cannot be leased: it gets what it has, if that is something.
    pub(super) fn fail(&mut self, now: Time, consumer: ConsumerId, why: Failure, after: &mut Aftermath) {
        match self.pulls.get_mut(&consumer) {
            Some(pull) if pull.messages.is_empty() => {
                let nobody = Ticket::Session { number: SessionId(0), token: None };
                let ticket = std::mem::replace(&mut pull.ticket, nobody);
                self.answer(ticket, Err(why), after);
            }
            _ => {}
        }
        self.give_up(now, consumer, after);
    }

    /// A session is over, or the part of one: its consumers end, and its leases that wait; what it was told and has not heard goes back.
    pub(super) fn end(
        &mut self,
        now: Time,
        number: SessionId,
        whole: Option<SessionId>,
        after: &mut Aftermath,
    ) {
        self.sides.remove(&number);
        let its: Vec<ConsumerId> =
            self.consumers.iter().filter(|(_, session)| **session == number).map(|(id, _)| *id).collect();
        let waiting =
            |pull: &OpenPull| matches!(pull.ticket, Ticket::Session { number: its, .. } if its == number);
        let pulls: Vec<ConsumerId> =
            self.pulls.iter().filter(|(_, pull)| waiting(pull)).map(|(id, _)| *id).collect();
        for consumer in its {
            // It may have ended with its queue.
            let _ = self.apply(now, Asker::default(), Command::Cancel { consumer }, after);
        }
        for consumer in pulls {
            self.give_up(now, consumer, after);
        }
        if let Some(session) = whole {
            let ended = self.apply(now, Asker::default(), Command::EndSession { session }, after);
            ended.expect("a session ends wherever it is");
        }
    }

    // ---- time ----

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.counter.next_deadline()
    }

    pub(super) fn tick(&mut self, now: Time, after: &mut Aftermath) {
        self.counter.tick(now, &mut self.step);
        self.carry_out(&[], after);
    }

    /// Nothing is served any more: everybody who waits is told why.
    pub(super) fn close(&mut self, why: &Arc<str>) {
        for (_, pull) in std::mem::take(&mut self.pulls) {
            let failure = Err(Failure::Unavailable(Arc::clone(why)));
            self.answer(pull.ticket, failure, &mut Aftermath::default());
        }
        self.sides.clear();
    }

    // ---- effects ----

    fn carry_out(&mut self, gifts: &[Gift], after: &mut Aftermath) {
        let mut step = std::mem::take(&mut self.step);
        let mut told: Vec<(SessionId, Event)> = Vec::new();
        for effect in step.effects.drain(..) {
            match effect {
                Effect::Deliver(delivery) => self.deliver(&delivery, gifts, &mut told, after),
                Effect::Served { consumer } => self.serve(consumer, after),
                Effect::Cancelled { consumer } => match self.pulls.remove(&consumer) {
                    Some(pull) => {
                        self.seats.remove(&consumer);
                        self.holders.remove(&consumer);
                        self.answer(pull.ticket, Err(Refusal::NoSuchQueue.into()), after);
                    }
                    None => {
                        after.left.extend(self.seats.remove(&consumer));
                        self.holders.remove(&consumer);
                        told.extend(
                            self.consumers.remove(&consumer).map(|to| (to, Event::Ended { consumer })),
                        );
                    }
                },
                Effect::TimedOut { consumer, session, receipt } => {
                    let to = self.consumers.get(&consumer).copied().or(session);
                    told.extend(to.map(|to| (to, Event::TimedOut { consumer, receipt })));
                }
                Effect::Returned { receipt, why } => after.returned.push((receipt, why)),
                // There is no content here.
                Effect::Released(_) | Effect::Shared(_) | Effect::Forgotten { .. } => {}
            }
        }
        step.clear();
        self.step = step;
        self.tell(told, after);
    }

    fn deliver(
        &mut self,
        delivery: &Delivery,
        gifts: &[Gift],
        told: &mut Vec<(SessionId, Event)>,
        after: &mut Aftermath,
    ) {
        let Delivery { consumer, receipt, deadline, .. } = *delivery;
        let gift = gifts.iter().find(|gift| gift.message.seq == receipt.seq);
        let Gift { message, view, content, .. } = gift.expect("what is handed over was given");
        self.hold(receipt, consumer);
        let content = Arc::clone(content);
        let deadline = match message.state {
            // What has an end of its own ends at its place.
            State::Leased { deadline: there, .. } => deadline.min(there),
            _ => deadline,
        };
        let leased = || LeasedMessage {
            receipt,
            deadline: deadline.some(),
            message: view.clone(),
            content: content.clone(),
        };
        if let Some(pull) = self.pulls.get_mut(&consumer) {
            pull.messages.push(leased());
        } else if let Some((_, got)) = self.got.as_mut().filter(|(who, _)| *who == consumer) {
            *got = Some(leased());
        } else if let Some(to) = self.consumers.get(&consumer) {
            let Message { count, priority: level, since, expires, .. } = *message;
            let extras = message.extras.clone();
            let message =
                Delivered { receipt, count, level, given: view.given, since, expires, extras, content };
            told.push((*to, Event::Deliver { consumer, message }));
        } else {
            after.returned.push((receipt, PutBack::Released));
        }
    }

    fn hold(&mut self, receipt: Receipt, consumer: ConsumerId) {
        let (by, since) = (self.holders.get(&consumer).cloned(), Some(self.counter.now()));
        self.held.insert(receipt, Held { receipt: Some(receipt), by, since, progress: None });
        self.forget_some();
    }

    /// A pull is over.
    fn serve(&mut self, consumer: ConsumerId, after: &mut Aftermath) {
        self.seats.remove(&consumer);
        self.holders.remove(&consumer);
        if let Some(OpenPull { ticket, messages }) = self.pulls.remove(&consumer) {
            self.answer(ticket, Ok(Answer::Leased(messages)), after);
        }
    }

    /// What was leased goes back where nobody is there any more.
    fn answer(&mut self, ticket: Ticket, result: Result<Answer, Failure>, after: &mut Aftermath) {
        match ticket {
            Ticket::Caller(caller) => {
                if let Err(Ok(unsent)) = caller.send(result) {
                    give_back(&unsent, after);
                }
            }
            Ticket::Session { number, token: Some(token) } => {
                self.tell(vec![(number, Event::Answer { token, result })], after);
            }
            Ticket::Session { token: None, .. } => {
                if let Ok(unsent) = result {
                    give_back(&unsent, after);
                }
            }
        }
    }

    /// Tells a session of an answer.
    pub(super) fn tell_answer(
        &mut self,
        number: SessionId,
        token: Option<u64>,
        result: Result<Answer, Failure>,
        after: &mut Aftermath,
    ) {
        self.answer(Ticket::Session { number, token }, result, after);
    }

    /// Tells sessions what they are to hear, all of it at once.
    fn tell(&mut self, told: Vec<(SessionId, Event)>, after: &mut Aftermath) {
        let mut by_session: BTreeMap<SessionId, Vec<Event>> = BTreeMap::new();
        for (session, event) in told {
            by_session.entry(session).or_default().push(event);
        }
        for (session, events) in by_session {
            let unheard = match self.sides.get(&session) {
                Some(side) => side.send(events).err().map(|unsent| unsent.0),
                None => Some(events),
            };
            // What a consumer holds goes back with it.
            for event in unheard.iter().flatten() {
                if let Event::Answer { result: Ok(answer), .. } = event {
                    give_back(answer, after);
                }
            }
        }
    }
}

pub(super) fn give_back(answer: &Answer, after: &mut Aftermath) {
    after.returned.extend(answer.leased().map(|receipt| (receipt, PutBack::Released)));
}
