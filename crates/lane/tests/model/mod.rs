//! One queue as simply as it can be said: a vector of messages sorted by priority, the larger first, then by sequence.
//! Every question is answered by walking all of it. It is slow, and obviously right.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use overtake_lane::{Backoff, ConsumerId, RateLimit, Settings, Time};

/// What the model needs to know of the settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) aging_ms: Option<u64>,
    pub(crate) max_active: usize,
    pub(crate) lane_caps: BTreeMap<i32, usize>,
    pub(crate) group_limit: usize,
    pub(crate) rate: Option<RateLimit>,
    pub(crate) key_rate: Option<RateLimit>,
    pub(crate) max_length: usize,
    pub(crate) rejects: bool,
    /// What is refused because the queue is full is a dead letter.
    pub(crate) rejects_dead: bool,
    pub(crate) dead_letter_evicted: bool,
    pub(crate) delivery_limit: u32,
    pub(crate) backoff: Backoff,
    pub(crate) drops_dead: bool,
    pub(crate) dead_letter_expired: bool,
    pub(crate) ttl_ms: u64,
    pub(crate) at_once: bool,
}

impl Rules {
    pub(crate) fn settings(&self) -> Settings {
        use overtake_lane::{DeadLetterTo, LaneSettings, Overflow, PickerKind};
        let lanes = self
            .lane_caps
            .iter()
            .map(|(priority, cap)| (priority.to_string(), LaneSettings { max_active: *cap as u32 }));
        let settings = Settings {
            picker: self.aging_ms.map_or(PickerKind::Strict, PickerKind::AgingMs),
            lanes: lanes.collect(),
            max_active: self.max_active as u32,
            group_limit: self.group_limit as u32,
            rate_limit: self.rate,
            key_rate_limit: self.key_rate,
            max_length: self.max_length as u64,
            overflow: match (self.rejects, self.rejects_dead) {
                (_, true) => Overflow::RejectDeadLetter,
                (true, false) => Overflow::Reject,
                (false, false) => Overflow::Evict,
            },
            delivery_limit: self.delivery_limit,
            backoff: self.backoff,
            dead_letter: if self.drops_dead { DeadLetterTo::Drop } else { DeadLetterTo::Keep },
            dead_letter_expired: self.dead_letter_expired,
            dead_letter_evicted: self.dead_letter_evicted,
            ttl_ms: self.ttl_ms,
            expire_at_once: self.at_once,
            ..Settings::default()
        };
        settings.validate().expect("rules are sound");
        settings
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) priority: i32,
    pub(crate) key: Option<u8>,
    pub(crate) seq: u64,
    pub(crate) since: Time,
    pub(crate) expires: Time,
    pub(crate) count: u32,
    pub(crate) stand: Stand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    Ready,
    Delayed(Time),
    /// To whom, until when, and its number among all leases.
    Leased(ConsumerId, Time, u64),
    Dead,
}

#[derive(Clone, Debug)]
struct Taker {
    id: ConsumerId,
    choice: Choice,
    /// The priority it took last.
    taken: Option<i32>,
    first: i32,
    /// When it was last served, or came.
    turn: u64,
    stays: bool,
    window: usize,
    urgent: Option<(i32, usize)>,
    until: Time,
    /// Messages that were removed while it held them, and that it has not settled since.
    withdrawn: Vec<u64>,
}

/// What a pull takes, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) at_least: i32,
    pub(crate) except: Vec<i32>,
    pub(crate) one: bool,
    /// `None`: it holds them.
    pub(crate) visibility_ms: Option<u64>,
}

impl Choice {
    pub(crate) fn all(visibility_ms: u64) -> Self {
        Self { at_least: i32::MIN, except: Vec::new(), one: false, visibility_ms: Some(visibility_ms) }
    }

    fn takes(&self, priority: i32) -> bool {
        priority >= self.at_least && !self.except.contains(&priority)
    }
}

/// Why a lease ended without settling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// By a nack with this delay, or the end of the lease or of its consumer.
    Failed(Option<u64>),
    Released,
}

/// Messages that have left a lane, by how; and those that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) published: u64,
    pub(crate) settled: u64,
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
    pub(crate) removed: u64,
    pub(crate) moved: u64,
    pub(crate) inversions: u64,
}

/// A delivery: to whom, which message, which time, until when.
pub(crate) type Given = (ConsumerId, u64, u32, Time);

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    pub(crate) now: Time,
    pub(crate) messages: Vec<Message>,
    pub(crate) tallies: BTreeMap<i32, Tally>,
    takers: Vec<Taker>,
    /// Pulls that hold what they got.
    holders: BTreeSet<ConsumerId>,
    next_seq: u64,
    turn: u64,
    leases: u64,
    /// What was leased when, for the rates.
    starts: Vec<(Option<u8>, Time)>,
    /// Since they were last asked for.
    pub(crate) given: Vec<Given>,
    pub(crate) served: Vec<ConsumerId>,
}

impl Model {
    pub(crate) fn new(rules: Rules, now: Time) -> Self {
        Self { rules, now, ..Self::default() }
    }

    fn sort(&mut self) {
        self.messages.sort_by_key(|message| (Reverse(message.priority), message.seq));
    }

    fn tally(&mut self, priority: i32) -> &mut Tally {
        self.tallies.entry(priority).or_default()
    }

    pub(crate) fn at(&self, seq: u64) -> Option<usize> {
        self.messages.iter().position(|message| message.seq == seq)
    }

    fn waiting(&self) -> usize {
        self.messages.iter().filter(|m| matches!(m.stand, Stand::Ready | Stand::Delayed(_))).count()
    }

    // ---- what is asked ----

    /// True if it was taken.
    pub(crate) fn publish(
        &mut self,
        priority: i32,
        key: Option<u8>,
        ttl_ms: Option<u64>,
        delay_ms: u64,
    ) -> bool {
        let at_once = ttl_ms == Some(0) || self.rules.at_once;
        let fits = at_once || self.make_room(priority);
        if !fits && (!self.rules.rejects_dead || self.rules.drops_dead) {
            return false;
        }
        self.next_seq += 1;
        let seq = self.next_seq;
        let base = Some(self.rules.ttl_ms).filter(|ms| *ms > 0);
        let ttl = base.into_iter().chain(ttl_ms).chain(at_once.then_some(0)).min();
        self.messages.push(Message {
            priority,
            key,
            seq,
            since: self.now,
            expires: ttl.map_or(Time::NEVER, |ms| self.now.after(ms)),
            count: 0,
            stand: match delay_ms {
                _ if !fits => Stand::Dead,
                0 => Stand::Ready,
                delay => Stand::Delayed(self.now.after(delay)),
            },
        });
        self.sort();
        self.tally(priority).published += 1;
        self.dispatch();
        let waits = |m: &Message| m.seq == seq && matches!(m.stand, Stand::Ready | Stand::Delayed(_));
        if at_once && self.messages.iter().any(waits) {
            self.expire(seq);
        }
        fits
    }

    /// Drops what is ready and no more urgent than this, the least urgent first and of those the oldest, until one more
    /// fits; or nothing, if it never would.
    fn make_room(&mut self, priority: i32) -> bool {
        let room = if self.rules.max_length == 0 { usize::MAX } else { self.rules.max_length };
        let over = (self.waiting() + 1).saturating_sub(room);
        let ready = self.messages.iter().filter(|m| m.stand == Stand::Ready && m.priority <= priority);
        let mut payers: Vec<(i32, u64)> = ready.map(|m| (m.priority, m.seq)).collect();
        payers.sort_unstable();
        let rejects = self.rules.rejects || self.rules.rejects_dead;
        let pays = over == 0 || (!rejects && payers.len() >= over);
        for (priority, seq) in payers.into_iter().take(if pays { over } else { 0 }) {
            if self.rules.dead_letter_evicted && !self.rules.drops_dead {
                self.bury(seq);
                continue;
            }
            self.messages.retain(|m| m.seq != seq);
            self.tally(priority).evicted += 1;
        }
        pays
    }

    pub(crate) fn consume(
        &mut self,
        id: ConsumerId,
        window: usize,
        urgent: Option<(i32, usize)>,
        first: i32,
    ) {
        self.turn += 1;
        let (turn, until) = (self.turn, Time::NEVER);
        let (choice, taken) = (Choice::all(0), None);
        let withdrawn = Vec::new();
        self.takers.push(Taker {
            id,
            choice,
            taken,
            first,
            turn,
            stays: true,
            window,
            urgent,
            until,
            withdrawn,
        });
        self.dispatch();
    }

    pub(crate) fn pull(&mut self, id: ConsumerId, max: usize, choice: Choice, until: Time) {
        self.turn += 1;
        if choice.visibility_ms.is_none() {
            self.holders.insert(id);
        }
        let taker = Taker {
            id,
            choice,
            taken: None,
            first: 0,
            turn: self.turn,
            stays: false,
            window: max,
            urgent: None,
            until,
            withdrawn: Vec::new(),
        };
        self.takers.push(taker);
        self.dispatch();
    }

    pub(crate) fn cancel(&mut self, id: ConsumerId) {
        let stays = self.takers.iter().any(|taker| taker.id == id && taker.stays);
        let held: Vec<u64> = self.messages.iter().filter(|m| stays && m.is_with(id)).map(|m| m.seq).collect();
        for seq in held {
            self.put_back(seq, Back::Failed(None));
        }
        self.takers.retain(|taker| taker.id != id);
        self.dispatch();
    }

    pub(crate) fn knows(&self, id: ConsumerId) -> bool {
        self.takers.iter().any(|taker| taker.id == id)
    }

    /// Acknowledges a lease.
    pub(crate) fn ack(&mut self, seq: u64) {
        let message = self.messages.remove(self.at(seq).expect("leased"));
        self.tally(message.priority).settled += 1;
        self.dispatch();
    }

    pub(crate) fn back(&mut self, seq: u64, why: Back) {
        self.put_back(seq, why);
        self.dispatch();
    }

    pub(crate) fn reject(&mut self, seq: u64) {
        self.bury(seq);
        self.dispatch();
    }

    pub(crate) fn extend(&mut self, seq: u64, ms: u64) {
        let until = if ms == 0 { Time::NEVER } else { self.now.after(ms) };
        let at = self.at(seq).expect("leased");
        if let Stand::Leased(to, _, lease) = self.messages[at].stand
            && !self.holders.contains(&to)
            && !self.takers.iter().any(|taker| taker.id == to && taker.stays)
        {
            self.messages[at].stand = Stand::Leased(to, until, lease);
        }
    }

    /// True if it could be done.
    pub(crate) fn reprioritise(&mut self, seq: u64, priority: i32) -> bool {
        let at =
            self.at(seq).filter(|at| matches!(self.messages[*at].stand, Stand::Ready | Stand::Delayed(_)));
        if let Some(at) = at {
            self.move_to(at, priority);
            self.dispatch();
        }
        at.is_some()
    }

    fn move_to(&mut self, at: usize, priority: i32) {
        let before = std::mem::replace(&mut self.messages[at].priority, priority);
        if before != priority {
            self.tally(before).moved += 1;
            self.tally(priority).published += 1;
        }
        self.sort();
    }

    pub(crate) fn remove(&mut self, seq: u64) -> bool {
        let at = self.at(seq);
        if let Some(at) = at {
            let message = self.messages.remove(at);
            self.tally(message.priority).removed += 1;
            let mut stay = self.takers.iter_mut().filter(|taker| taker.stays);
            if let Some(holder) = stay.find(|taker| message.is_with(taker.id)) {
                holder.withdrawn.push(seq);
            }
            self.dispatch();
        }
        at.is_some()
    }

    /// A message that is not leased is settled.
    pub(crate) fn settled_late(&mut self, seq: u64) {
        for taker in &mut self.takers {
            taker.withdrawn.retain(|withdrawn| *withdrawn != seq);
        }
        self.dispatch();
    }

    pub(crate) fn purge(&mut self) {
        let waits = |m: &Message| matches!(m.stand, Stand::Ready | Stand::Delayed(_));
        for message in self.messages.iter().filter(|m| waits(m)).cloned().collect::<Vec<_>>() {
            self.tally(message.priority).removed += 1;
        }
        self.messages.retain(|m| !waits(m));
    }

    /// True if it could be done.
    pub(crate) fn replay(&mut self, seq: u64, promote: Option<i32>) -> bool {
        let Some(at) = self.at(seq).filter(|at| self.messages[*at].stand == Stand::Dead) else {
            return false;
        };
        if !self.make_room(promote.unwrap_or(self.messages[at].priority)) {
            return false;
        }
        let now = self.now;
        let at = self.at(seq).expect("it is there");
        let message = &mut self.messages[at];
        (message.count, message.stand) = (0, Stand::Ready);
        if message.expires <= now {
            message.expires = Time::NEVER;
        }
        let priority = promote.unwrap_or(message.priority);
        self.move_to(at, priority);
        self.dispatch();
        true
    }

    // ---- time ----

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now = self.now.after(ms);
        for seq in self.messages.iter().map(|m| m.seq).collect::<Vec<_>>() {
            let at = self.at(seq).expect("nothing else removes it");
            let message = &mut self.messages[at];
            match message.stand {
                Stand::Leased(_, deadline, _) if deadline <= self.now => {
                    self.put_back(seq, Back::Failed(None))
                }
                Stand::Ready | Stand::Delayed(_) if message.expires <= self.now => self.expire(seq),
                Stand::Delayed(due) if due <= self.now => message.stand = Stand::Ready,
                _ => {}
            }
        }
        self.dispatch();
    }

    fn put_back(&mut self, seq: u64, why: Back) {
        let at = self.at(seq).expect("leased");
        let message = &mut self.messages[at];
        if message.expires <= self.now {
            return self.expire(seq);
        }
        let Back::Failed(delay_ms) = why else {
            message.count -= 1;
            message.stand = Stand::Ready;
            return;
        };
        if self.rules.delivery_limit > 0 && message.count >= self.rules.delivery_limit {
            return self.bury(seq);
        }
        let wait_ms = delay_ms.unwrap_or_else(|| self.rules.backoff.wait_ms(message.count));
        message.stand = if wait_ms > 0 { Stand::Delayed(self.now.after(wait_ms)) } else { Stand::Ready };
    }

    fn expire(&mut self, seq: u64) {
        if self.rules.dead_letter_expired && !self.rules.drops_dead {
            return self.bury(seq);
        }
        let message = self.messages.remove(self.at(seq).expect("there"));
        self.tally(message.priority).expired += 1;
    }

    fn bury(&mut self, seq: u64) {
        let at = self.at(seq).expect("there");
        if self.rules.drops_dead {
            let message = self.messages.remove(at);
            self.tally(message.priority).removed += 1;
        } else {
            self.messages[at].stand = Stand::Dead;
        }
    }

    // ---- leasing ----

    /// Leases all that can be leased, one after the other, each time the best there is.
    fn dispatch(&mut self) {
        let mut served = Vec::new();
        while let Some((at, taker)) = self.pick() {
            let priority = self.messages[at].priority;
            let taker = &mut self.takers[taker];
            if taker.choice.one && taker.taken.replace(priority).is_some_and(|last| last != priority) {
                taker.window = 0;
                continue;
            }
            self.turn += 1;
            self.leases += 1;
            let (turn, lease, now) = (self.turn, self.leases, self.now);
            let deadline = match taker.choice.visibility_ms {
                None | Some(0) => Time::NEVER,
                Some(ms) => now.after(ms),
            };
            if taker.stays {
                taker.turn = turn;
            } else {
                taker.window -= 1;
                served.push(taker.id);
            }
            let id = taker.id;
            let is_passed_over = |m: &Message| m.stand == Stand::Ready && m.priority > priority;
            if self.messages.iter().any(is_passed_over) {
                self.tally(priority).inversions += 1;
            }
            let message = &mut self.messages[at];
            message.count += 1;
            message.stand = Stand::Leased(id, deadline, lease);
            self.starts.push((message.key, now));
            self.given.push((id, message.seq, message.count, deadline));
        }
        let now = self.now;
        let over: Vec<ConsumerId> = self
            .takers
            .iter()
            .filter(|t| !t.stays && (t.until <= now || served.contains(&t.id)))
            .map(|t| t.id)
            .collect();
        self.takers.retain(|taker| !over.contains(&taker.id));
        self.served.extend(over);
    }

    /// The message that goes next, and to whom.
    fn pick(&self) -> Option<(usize, usize)> {
        let leased = self.messages.iter().filter(|m| m.is_leased()).count();
        if self.rules.max_active > 0 && leased >= self.rules.max_active {
            return None;
        }
        if self.rules.rate.is_some_and(|rate| !self.has_token(rate, |_| true)) {
            return None;
        }
        let ready = self.messages.iter().enumerate().filter(|(_, message)| message.stand == Stand::Ready);
        let open = ready.filter(|(_, message)| {
            let cap = self.rules.lane_caps.get(&message.priority).copied().unwrap_or(0);
            cap == 0
                || self.messages.iter().filter(|m| m.priority == message.priority && m.is_leased()).count()
                    < cap
        });
        let open = open.filter(|(_, message)| self.may_go(message.key));
        let wanted = open.filter_map(|(at, message)| Some((at, self.taker_of(message.priority)?)));
        match self.rules.aging_ms {
            None => wanted.min_by_key(|(at, _)| *at),
            Some(step) => wanted.min_by_key(|(at, _)| {
                let message = &self.messages[*at];
                let urgency = i128::from(message.since.0) - i128::from(message.priority) * i128::from(step);
                (urgency, *at)
            }),
        }
    }

    /// Whether a message of this key is held back by none of the others.
    fn may_go(&self, key: Option<u8>) -> bool {
        if key.is_none() {
            return true;
        }
        let out = self.messages.iter().filter(|m| m.key == key && m.is_leased()).count();
        let has_room = self.rules.group_limit == 0 || out < self.rules.group_limit;
        has_room && self.rules.key_rate.is_none_or(|rate| self.has_token(rate, |of| of == key))
    }

    /// The generic cell rate algorithm over all that ever went, in units of which a message takes `per_ms`: a message conforms that comes
    /// no more than a burst before its theoretical time of arrival. ITU-T I.371, annex A.
    fn has_token(&self, rate: RateLimit, counts: impl Fn(Option<u8>) -> bool) -> bool {
        let units = |time: Time| u128::from(time.0) * u128::from(rate.messages);
        let starts = self.starts.iter().filter(|(key, _)| counts(*key));
        let arrival = starts.fold(0, |arrival, (_, at)| units(*at).max(arrival) + u128::from(rate.per_ms));
        let burst = u128::from(rate.messages - 1) * u128::from(rate.per_ms);
        units(self.now) + burst >= arrival
    }

    /// Who takes a message of this priority: whoever has window; else whoever has urgent credit for it.
    fn taker_of(&self, priority: i32) -> Option<usize> {
        let mut order: Vec<usize> = (0..self.takers.len()).collect();
        order.sort_by_key(|at| (Reverse(self.takers[*at].first), self.takers[*at].turn));
        let held = |taker: &Taker| {
            let held = self.messages.iter().filter(|m| taker.stays && m.is_with(taker.id)).count();
            held + taker.withdrawn.len()
        };
        let open = |at: &&usize| {
            let taker = &self.takers[**at];
            taker.choice.takes(priority) && held(taker) < taker.window
        };
        let urgent = |at: &&usize| {
            let taker = &self.takers[**at];
            taker.urgent.is_some_and(|(least, extra)| priority >= least && held(taker) < taker.window + extra)
        };
        order.iter().find(open).or_else(|| order.iter().find(urgent)).copied()
    }

    /// Messages ahead of a ready one in dispatch order under `strict`, and those of its own priority.
    pub(crate) fn position(&self, seq: u64) -> Option<(u64, u64)> {
        let ready = || self.messages.iter().filter(|m| m.stand == Stand::Ready);
        let this = ready().find(|m| m.seq == seq)?;
        let ahead = ready().take_while(|m| m.seq != seq);
        let own = ahead.clone().filter(|m| m.priority == this.priority).count();
        Some((ahead.count() as u64, own as u64))
    }
}

impl Message {
    pub(crate) fn is_leased(&self) -> bool {
        matches!(self.stand, Stand::Leased(..))
    }

    fn is_with(&self, id: ConsumerId) -> bool {
        matches!(self.stand, Stand::Leased(to, ..) if to == id)
    }
}
