//! Leasing: who gets what goes next, how long, and how it comes back.

use std::collections::BTreeMap;

use super::Queue;
use crate::bitmap::Bitmap;
use crate::command::{Delivery, Effect, Get, Gone, Step};
use crate::consuming::Seat;
use crate::deaths::DeathReason;
use crate::entries::Slot;
use crate::fact::Fact;
use crate::history::End;
use crate::ids::{ConsumerId, LeaseId, Receipt, Seq, Time};
use crate::message::{Message, PutBack, Settled, State};
use crate::picker::Picker;
use crate::progress::WorkNotes;
use crate::pushes::Pushes;
use crate::rate::Bucket;
use crate::record::{Report, Work};
use crate::refusal::Refusal;
use crate::roster::{Kind, Terms};

/// The message that goes next.
#[derive(Clone, Copy, Debug)]
struct Picked {
    /// Its lane's.
    rank: usize,
    head: Slot,
}

impl Queue {
    /// The message of a lane that goes first, of those in memory.
    fn head(&self, rank: usize) -> Option<Slot> {
        match &self.groups {
            None => self.lanes.at_rank(rank).head(&self.entries),
            Some(groups) => groups.head(self.lanes.index_at(rank)).and_then(|seq| self.by_seq.get(seq)),
        }
    }

    /// The lanes, of those that are wanted, of which a message may go. Where the first of them is picked anyway, it stands for all: groups of the others
    /// need not be looked at.
    fn eligible(&mut self, wanted: &Bitmap) -> Bitmap {
        let mut eligible = self.lanes.eligible().within(wanted);
        let Some(groups) = &mut self.groups else { return eligible };
        for rank in eligible.iter() {
            let may_go = groups.settle_head(self.lanes.index_at(rank)).is_some();
            if may_go && matches!(self.picker, Picker::Strict) {
                return eligible.below(rank + 1);
            }
            eligible.set(rank, may_go);
        }
        eligible
    }

    /// Time has passed for what goes at a rate.
    fn fill(&mut self, now: Time) {
        if let Some(bucket) = &mut self.bucket {
            bucket.fill(now);
        }
        if let Some(groups) = &mut self.groups {
            groups.ring(now);
        }
    }

    /// What goes next, if a message may be leased and somebody has room for it.
    fn pick(&mut self, now: Time, step: &mut Step) -> Option<Picked> {
        if !self.roster.has_room() {
            return None;
        }
        self.pick_in_time(now, step, |queue| queue.roster.wanted(&queue.lanes))
    }

    /// What goes next, of the lanes that are `wanted`. Heads that are over, of which time has not taken care yet, are ended: `None`
    /// also when the step has no room for more of them, and then time goes on with them.
    fn pick_in_time(
        &mut self,
        now: Time,
        step: &mut Step,
        wanted: impl Fn(&Self) -> Bitmap,
    ) -> Option<Picked> {
        loop {
            let picked = self.pick_from(&wanted)?;
            if !self.entries[picked.head].message.is_over(now) {
                return Some(picked);
            }
            step.take_room().then_some(())?;
            if let Some(End::Dies(reason)) = self.expire(picked.head, step) {
                self.let_die(picked.head, reason);
            }
        }
    }

    /// What goes next, of the lanes that are `wanted`, whether it is over or not.
    fn pick_from(&mut self, wanted: impl Fn(&Self) -> Bitmap) -> Option<Picked> {
        let is_full = self.settings.max_active > 0 && self.leased >= u64::from(self.settings.max_active);
        let is_early = self.bucket.as_ref().is_some_and(|bucket| bucket.next().is_some());
        if is_full || is_early || self.settings.paused {
            return None;
        }
        loop {
            let wanted = wanted(self);
            let eligible = self.eligible(&wanted);
            let compares_heads = matches!(self.picker, Picker::Aging { .. }) && !self.runs.is_empty();
            if compares_heads && !self.load_heads(eligible)? {
                continue;
            }
            let rank = self.picker.pick(eligible, |rank| {
                let head = self.head(rank).expect("an eligible lane has a head");
                self.lanes.at_rank(rank).head_of(&self.entries[head].message)
            })?;
            let lane = self.lanes.index_at(rank);
            if !self.load_head(rank) {
                return None;
            }
            // A run of other lanes than those of now gives its messages to theirs, and leaves none here.
            let rank = self.lanes.rank_of(lane);
            if let Some(head) = self.head(rank) {
                return Some(Picked { rank, head });
            }
        }
    }

    /// Has the heads of these ranks in memory. `None`: they cannot be read. False: some went to other lanes.
    fn load_heads(&mut self, ranks: Bitmap) -> Option<bool> {
        let lanes: Vec<u16> = ranks.iter().map(|rank| self.lanes.index_at(rank)).collect();
        for lane in &lanes {
            self.load_head(self.lanes.rank_of(*lane)).then_some(())?;
        }
        Some(lanes.iter().all(|lane| self.head(self.lanes.rank_of(*lane)).is_some()))
    }

    /// Leases whatever can be leased to whoever has room, unless leases are `held`, and ends pulls that are over.
    /// True if there may have been some.
    pub(crate) fn dispatch(
        &mut self,
        now: Time,
        held: bool,
        leases: &mut LeaseId,
        pushes: &mut Pushes,
        step: &mut Step,
    ) -> bool {
        self.fill(now);
        let mut served: Vec<ConsumerId> = Vec::new();
        while !held && let Some(Picked { rank, head: slot }) = self.pick(now, step) {
            let weight = self.lanes.at_rank(rank).weight;
            let consumer =
                self.roster.next(&self.lanes, rank).expect("somebody has room for what was picked");
            let (lane, bytes) = (self.entries[slot].lane, self.entries[slot].message.bytes);
            if self.roster.has_enough(consumer, lane, bytes) {
                continue;
            }
            if let Some(feed) = self.roster.feed(consumer)
                && !pushes.push(feed, (self.id, consumer), bytes)
            {
                self.roster.hold_back(consumer, true);
                continue;
            }
            *leases = leases.next();
            let terms = self.terms(consumer);
            self.lease(now, slot, consumer, terms, *leases, step);
            // Charged after the lease: a pick may come to nothing.
            self.picker.charge(rank, weight);
            let pulls = self.roster.pulled(consumer, lane, bytes);
            if pulls && !served.contains(&consumer) {
                served.push(consumer);
            }
        }
        if self.roster.next_give_up().is_none() {
            return false;
        }
        for consumer in self.roster.ended(now, &served) {
            if !self.roster.leave(consumer) {
                self.roster.remove(consumer);
            }
            self.used = now;
            step.effects.push(Effect::Served { consumer });
        }
        true
    }

    /// Leases what goes next to a get. False if there is nothing to lease.
    pub(crate) fn get(&mut self, now: Time, get: &Get, leases: &mut LeaseId, step: &mut Step) -> bool {
        self.fill(now);
        let picked = self.pick_in_time(now, step, |queue| queue.lanes.ready());
        let Some(Picked { rank, head: slot }) = picked else { return false };
        let weight = self.lanes.at_rank(rank).weight;
        *leases = leases.next();
        let terms = if get.no_ack {
            Terms::Settled
        } else {
            self.roster.hold(get.consumer);
            Terms::Held
        };
        self.lease(now, slot, get.consumer, terms, *leases, step);
        self.picker.charge(rank, weight);
        true
    }

    /// How somebody on the roster gets what it is given.
    pub(super) fn terms(&self, consumer: ConsumerId) -> Terms {
        self.roster.get(consumer).expect("the next taker is there").kind.terms(&self.settings)
    }

    /// Gives one message to one taker.
    fn lease(
        &mut self,
        now: Time,
        slot: Slot,
        consumer: ConsumerId,
        terms: Terms,
        lease: LeaseId,
        step: &mut Step,
    ) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take();
        }
        let until = match terms {
            Terms::Ms(ms) => deadline(now, ms),
            Terms::Held => deadline(now, self.settings.consumer_timeout_ms),
            Terms::Settled => {
                if let Some((groups, message, lane)) = self.group_of(slot) {
                    groups.charge(now, message, lane);
                }
                return self.give(now, slot, consumer, lease, step);
            }
        };
        let pulls = matches!(terms, Terms::Ms(_));
        let work = self.settings.notes_work().then(|| Work {
            started: now,
            ends: deadline(now, self.settings.run_timeout_ms),
            is_cancelled: false,
        });
        if let Some((groups, message, lane)) = self.group_of(slot) {
            groups.lease(now, message, lane);
        }
        self.unlink(slot);
        let entry = &mut self.entries[slot];
        entry.message.count = entry.message.count.saturating_add(1);
        entry.message.state = State::Leased { lease, deadline: until };
        entry.message.set_work(work);
        entry.take(now, consumer, !pulls);
        let Message { seq, place, priority, count, .. } = entry.message;
        let (lane, waited) = (entry.lane, now.since(entry.message.since));
        self.lanes.count_delivered(lane, waited, count);
        self.link(slot);
        let receipt = Receipt { queue: self.id, seq, lease };
        let delivery = Delivery { consumer, receipt, place, priority, deadline: until, count, settled: None };
        step.effects.push(Effect::Deliver(delivery));
        if pulls {
            self.entries[slot].is_untold = false;
            step.facts.push(Fact::Leased { queue: self.id, seq, lease, deadline: until, count, work });
        }
    }

    /// Gives one message away for good.
    fn give(&mut self, now: Time, slot: Slot, consumer: ConsumerId, lease: LeaseId, step: &mut Step) {
        let entry = &mut self.entries[slot];
        entry.message.count = entry.message.count.saturating_add(1);
        let Message { seq, place, priority, count, .. } = entry.message;
        let (lane, waited) = (entry.lane, now.since(entry.message.since));
        self.lanes.count_delivered(lane, waited, count);
        let message = self.entries[slot].message.clone();
        let view = self.view_message(lane, &message);
        step.effects.push(Effect::Deliver(Delivery {
            consumer,
            receipt: Receipt { queue: self.id, seq, lease },
            place,
            priority,
            deadline: Time::NEVER,
            count,
            settled: Some(Box::new(Gone { message, view })),
        }));
        self.settle(slot, Settled::Acked, step);
        self.roster.gave(consumer);
    }

    /// A consumer without acknowledgements has read some of what it was given.
    pub(crate) fn took(&mut self, consumer: ConsumerId, messages: u32) {
        self.roster.change(consumer, false, |kind| {
            if let Kind::Keeps { unread, .. } = kind {
                *unread = unread.saturating_sub(messages);
            }
        });
    }

    /// The slot of a lease that still holds.
    ///
    /// # Errors
    /// [`Refusal::StaleReceipt`].
    pub(crate) fn leased(&self, receipt: &Receipt) -> Result<Slot, Refusal> {
        let slot = self.by_seq.get(receipt.seq).ok_or(Refusal::StaleReceipt)?;
        match self.entries[slot].message.state {
            State::Leased { lease, .. } if lease == receipt.lease => Ok(slot),
            _ => Err(Refusal::StaleReceipt),
        }
    }

    /// The lease of a message and who holds it, if that is somebody who is still there.
    pub(crate) fn held_by_consumer(&self, slot: Slot) -> Option<(LeaseId, ConsumerId)> {
        let entry = &self.entries[slot];
        let State::Leased { lease, .. } = entry.message.state else { return None };
        entry.holder().map(|consumer| (lease, consumer))
    }

    /// Notes that a message was taken from its holder, who does not know.
    pub(crate) fn withdraw(&mut self, held: Option<(LeaseId, ConsumerId)>) {
        if let Some((lease, consumer)) = held {
            self.roster.withdrawn(lease, consumer);
        }
    }

    /// Lengthens a pull's lease. One of a consumer that stays has no end of its own.
    ///
    /// # Errors
    /// [`Refusal::CancelAsked`].
    pub(crate) fn extend(
        &mut self,
        now: Time,
        slot: Slot,
        visibility_ms: u64,
        step: &mut Step,
    ) -> Result<(), Refusal> {
        if self.entries[slot].holder().is_some() {
            return Ok(());
        }
        if self.is_asked_back(slot) {
            return Err(Refusal::CancelAsked);
        }
        let new = deadline(now, visibility_ms);
        let State::Leased { lease, .. } = self.entries[slot].message.state else { return Ok(()) };
        self.change_state(slot, |entry| entry.message.state = State::Leased { lease, deadline: new });
        self.say_leased(slot, step);
        Ok(())
    }

    fn say_leased(&self, slot: Slot, step: &mut Step) {
        let message = &self.entries[slot].message;
        let State::Leased { lease, deadline } = message.state else { return };
        let Message { seq, count, .. } = *message;
        let work = message.work().copied();
        step.facts.push(Fact::Leased { queue: self.id, seq, lease, deadline, count, work });
    }

    /// The holder of a pull's lease is told that the message is wanted back when it asks for more time. False: nobody can be told.
    pub(crate) fn ask_back(&mut self, now: Time, slot: Slot, step: &mut Step) -> bool {
        let entry = &mut self.entries[slot];
        if entry.holder().is_some() || !matches!(entry.message.state, State::Leased { .. }) {
            return false;
        }
        let work = entry.message.work().copied();
        let work = work.unwrap_or(Work { started: now, ends: Time::NEVER, is_cancelled: false });
        if !work.is_cancelled {
            entry.message.set_work(Some(Work { is_cancelled: true, ..work }));
            self.say_leased(slot, step);
        }
        true
    }

    /// Ends a lease without settling its message. An attempt waits as the end of the lease says, or for the queue's backoff, and is
    /// remembered if the store has room for it; a release waits for nothing and is not
    /// counted. A message of another broker's queue is returned to that broker. Returns how the message ends instead, if it does.
    pub(crate) fn put_back(
        &mut self,
        now: Time,
        slot: Slot,
        end: &LeaseEnd<'_>,
        notes: &mut WorkNotes,
        step: &mut Step,
    ) -> Option<End> {
        let LeaseEnd { why, delay_ms, report } = *end;
        if self.is_remote() {
            self.hand_back(slot, why, step);
            return None;
        }
        let Message { count, expires, seq, .. } = self.entries[slot].message;
        if self.is_asked_back(slot) {
            return Some(End::Cancelled);
        }
        if expires <= now {
            return self.expire(slot, step);
        }
        if self.entries[slot].outdated {
            self.settle(slot, Settled::Replaced, step);
            return None;
        }
        let limit = self.settings.delivery_limit;
        if why.is_attempt() && limit > 0 && count >= limit {
            return Some(End::Spent(why));
        }
        let (count, wait_ms) = if why.is_attempt() {
            (count, delay_ms.unwrap_or_else(|| self.settings.backoff.wait_ms(count)))
        } else {
            (count.saturating_sub(1), 0)
        };
        let attempts = if why.is_attempt() {
            self.entries[slot].message.attempts_after(why.ending(), now, report, why.error(), notes)
        } else {
            None
        };
        self.entries[slot].message.count = count;
        let due = (wait_ms > 0).then(|| now.after(wait_ms));
        self.set_attempts(slot, attempts.clone());
        self.wait(slot, due);
        step.facts.push(Fact::PutBack { queue: self.id, seq, count, due, attempts });
        None
    }

    /// Makes a message ready, or delayed until `due`. A fact is to say so.
    pub(super) fn wait(&mut self, slot: Slot, due: Option<Time>) {
        self.change_state(slot, |entry| {
            entry.free();
            entry.is_untold = false;
            entry.message.set_work(None);
            entry.message.state = due.map_or(State::Ready, |due| State::Delayed { due });
        });
    }

    /// The time to live is over, or nobody took at once what may not wait. Answers that something is to be done with it, if the settings
    /// say so.
    fn expire(&mut self, slot: Slot, step: &mut Step) -> Option<End> {
        if self.settings.evict_at_once && self.entries[slot].message.is_at_once() {
            if self.settings.keeps(DeathReason::Maxlen) {
                return Some(End::Dies(DeathReason::Maxlen));
            }
            self.settle(slot, Settled::Evicted, step);
            return None;
        }
        if self.settings.keeps(DeathReason::Expired) {
            return Some(End::Dies(DeathReason::Expired));
        }
        self.settle(slot, Settled::Expired, step);
        None
    }

    /// When something may happen by itself next.
    pub(crate) fn next_deadline(&self, fetches: bool) -> Option<Time> {
        let alarm = self.alarms.next().unwrap_or(Time::NEVER);
        let run = self.next_run_alarm().unwrap_or(Time::NEVER);
        let give_up = self.roster.next_give_up().unwrap_or(Time::NEVER);
        let at_once = if self.has_more(fetches) { Time(0) } else { Time::NEVER };
        let token = self.bucket.as_ref().and_then(Bucket::next).unwrap_or(Time::NEVER);
        let group = self.groups.as_ref().and_then(|groups| groups.next()).unwrap_or(Time::NEVER);
        alarm
            .min(run)
            .min(at_once)
            .min(give_up)
            .min(token)
            .min(group)
            .min(self.expires().unwrap_or(Time::NEVER))
            .some()
    }

    /// Whether something is left to do that is about no time: messages move to other lanes, groups of before are freed, or the queue comes
    /// within its limits.
    fn has_more(&self, fetches: bool) -> bool {
        self.has_moves(fetches) || self.has_spent() || (self.is_trimming && !self.has_former())
    }

    /// Whether time has more to do than the last [`Queue::advance`] had room for.
    pub(crate) fn is_late(&self, now: Time, fetches: bool) -> bool {
        let alarms = [self.alarms.next(), self.next_run_alarm()];
        self.has_more(fetches) || alarms.into_iter().flatten().any(|when| when <= now)
    }

    /// Lets time pass, as far as the step has room. Answers the messages that end, oldest first.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        fetches: bool,
        seats: &BTreeMap<ConsumerId, Seat>,
        notes: &mut WorkNotes,
        step: &mut Step,
    ) -> Vec<(Seq, End)> {
        // What is brought into memory from runs must not come faster than it ends there.
        let left = step.room.div_ceil(2);
        step.room -= left;
        self.wake_runs(now, step);
        step.room += left;
        self.fill(now);
        let mut rung = self.alarms.ring(&mut self.entries, now, &mut step.room);
        rung.sort_unstable_by_key(|slot| (self.entries[*slot].alarm(), self.entries[*slot].message.seq));
        let mut dying = Vec::new();
        for slot in rung {
            let Message { state, expires, seq, count, .. } = self.entries[slot].message;
            let death = match state {
                State::Leased { .. } if self.is_overdue(now, slot) => Some(End::Dies(DeathReason::Timeout)),
                State::Leased { lease, .. } => {
                    if let Some(consumer) = self.entries[slot].holder() {
                        let receipt = Receipt { queue: self.id, seq, lease };
                        let session = seats.get(&consumer).and_then(|seat| seat.session);
                        step.effects.push(Effect::TimedOut { consumer, session, receipt });
                        self.roster.stop(consumer);
                    }
                    self.put_back(now, slot, &LeaseEnd::of(PutBack::Expired), notes, step)
                }
                _ if expires <= now => self.expire(slot, step),
                State::Delayed { .. } => {
                    self.wait(slot, None);
                    step.facts.push(Fact::PutBack { queue: self.id, seq, count, due: None, attempts: None });
                    None
                }
                State::Ready | State::Dead => None,
            };
            dying.extend(death.map(|end| (seq, end)));
        }
        self.wake_runs(now, step);
        self.move_former(&mut step.room, fetches);
        self.tidy_groups(&mut step.room);
        self.trim(step);
        dying
    }

    /// Leases of pulls and delays end so much earlier, as if they had begun so much earlier.
    pub(crate) fn set_back(&mut self, ms: u64, step: &mut Step) {
        let earlier = |time: Time| time.some().map_or(Time::NEVER, |time| Time(time.0.saturating_sub(ms)));
        let both = self.pulled.iter(&self.entries).chain(self.delayed.iter(&self.entries));
        for slot in both.collect::<Vec<Slot>>() {
            let Message { state, count, seq, .. } = self.entries[slot].message;
            match state {
                State::Leased { lease, deadline } => {
                    self.change_state(slot, |entry| {
                        let message = &mut entry.message;
                        message.state = State::Leased { lease, deadline: earlier(deadline) };
                        let work = message.work().copied();
                        message.set_work(work.map(|work| Work {
                            started: earlier(work.started),
                            ends: earlier(work.ends),
                            ..work
                        }));
                    });
                    self.say_leased(slot, step);
                }
                State::Delayed { due } => {
                    let due = Some(earlier(due));
                    self.wait(slot, due);
                    step.facts.push(Fact::PutBack { queue: self.id, seq, count, due, attempts: None });
                }
                State::Ready | State::Dead => unreachable!("it is neither leased nor delayed"),
            }
        }
    }

    /// Whether somebody wants back what is leased.
    pub(crate) fn is_asked_back(&self, slot: Slot) -> bool {
        self.entries[slot].message.work().is_some_and(|work| work.is_cancelled)
    }

    /// Whether somebody has worked on it for too long.
    fn is_overdue(&self, now: Time, slot: Slot) -> bool {
        self.entries[slot].message.work().is_some_and(|work| work.ends <= now)
    }

    /// Puts back what a consumer holds that is on its way off the roster, in the order of its leases, at most so many messages. Answers how many these were, and
    /// those of them that end, oldest first.
    pub(crate) fn give_back(
        &mut self,
        now: Time,
        consumer: ConsumerId,
        most: usize,
        notes: &mut WorkNotes,
        step: &mut Step,
    ) -> (usize, Vec<(Seq, End)>) {
        let held = self.roster.get(consumer).map(|taker| taker.kind.held()).unwrap_or_default();
        let held: Vec<Slot> = held.iter(&self.entries).take(most).collect();
        let (count, mut dying) = (held.len(), Vec::new());
        for slot in held {
            let seq = self.entries[slot].message.seq;
            let death = self.put_back(now, slot, &LeaseEnd::of(PutBack::Lost), notes, step);
            dying.extend(death.map(|end| (seq, end)));
        }
        (count, dying)
    }
}

/// How a lease ends without settling its message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseEnd<'a> {
    /// Why.
    pub(crate) why: PutBack,
    /// For how long the message then waits, ms; `None`: for the queue's backoff.
    pub(crate) delay_ms: Option<u64>,
    /// The holder's report of the work.
    pub(crate) report: &'a Report,
}

impl LeaseEnd<'static> {
    /// An end without a delay or a report.
    pub(crate) fn of(why: PutBack) -> Self {
        const NOTHING: &Report = &Report { exit_code: None, error: None, output: None };
        Self { why, delay_ms: None, report: NOTHING }
    }
}

/// When a lease ends that lasts so long, ms; 0: not by itself.
pub(super) fn deadline(now: Time, visibility_ms: u64) -> Time {
    if visibility_ms == 0 { Time::NEVER } else { now.after(visibility_ms) }
}
