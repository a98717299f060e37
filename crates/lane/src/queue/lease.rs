//! Leasing: who gets what goes next, how long, and how it comes back.

use super::Queue;
use crate::bitmap::Bitmap;
use crate::command::{Delivery, Effect, Step};
use crate::deaths::DeathReason;
use crate::entries::Slot;
use crate::fact::Fact;
use crate::ids::{ConsumerId, LeaseId, Receipt, Seq, Time};
use crate::message::{Message, PutBack, Settled, State};
use crate::picker::Picker;
use crate::priority::Priority;
use crate::refusal::Refusal;
use crate::roster::Kind;

impl Queue {
    /// The rank to take from, if a message may be leased and somebody has room for it.
    fn pick(&mut self) -> Option<usize> {
        if self.settings.max_active > 0 && self.leased >= u64::from(self.settings.max_active) {
            return None;
        }
        let floor = self.roster.floor()?;
        loop {
            let eligible = self.lanes.eligible();
            let eligible: Bitmap = match floor {
                i32::MIN => eligible,
                floor => eligible.below(self.lanes.rank_below(Priority(floor))),
            };
            let compares_heads = matches!(self.picker, Picker::Aging { .. }) && !self.runs.is_empty();
            if compares_heads && !self.load_heads(eligible)? {
                continue;
            }
            let rank = self.lanes.pick(&self.picker, eligible, &self.entries)?;
            let lane = self.lanes.index_at(rank);
            if !self.load(rank, 1) {
                return None;
            }
            // A run of other lanes than those of now gives its messages to theirs, and leaves none here.
            if self.lanes.lane(lane).head(&self.entries).is_some() {
                return Some(self.lanes.rank_of(lane));
            }
        }
    }

    /// Has the heads of these ranks in memory. `None`: they cannot be read. False: some went to other lanes.
    fn load_heads(&mut self, ranks: Bitmap) -> Option<bool> {
        let lanes: Vec<u16> = ranks.iter().map(|rank| self.lanes.index_at(rank)).collect();
        for lane in &lanes {
            self.load(self.lanes.rank_of(*lane), 1).then_some(())?;
        }
        Some(lanes.iter().all(|lane| self.lanes.lane(*lane).head(&self.entries).is_some()))
    }

    /// Leases whatever can be leased to whoever has room, unless leases are `held`, and ends pulls that are over.
    /// True if there may have been some.
    pub(crate) fn dispatch(&mut self, now: Time, held: bool, leases: &mut LeaseId, step: &mut Step) -> bool {
        let mut served: Vec<ConsumerId> = Vec::new();
        while !held && let Some(rank) = self.pick() {
            let lane = self.lanes.at_rank(rank);
            let (floor, weight) = (lane.floor, lane.weight);
            let slot = lane.head(&self.entries).expect("a picked lane has a head");
            let consumer = self.roster.next(floor).expect("somebody has room for what was picked");
            if self.roster.has_enough(consumer, self.entries[slot].message.bytes) {
                continue;
            }
            *leases = leases.next();
            let pulled = self.lease(now, slot, consumer, *leases, step);
            // Charged after the lease: a pick may come to nothing.
            self.picker.charge(rank, weight);
            if pulled && !served.contains(&consumer) {
                served.push(consumer);
            }
        }
        if self.roster.next_give_up().is_none() {
            return false;
        }
        for consumer in self.roster.ended(now, &served) {
            self.roster.remove(consumer);
            step.effects.push(Effect::Served { consumer });
        }
        true
    }

    /// Leases one message to one taker. True if it pulled.
    fn lease(
        &mut self,
        now: Time,
        slot: Slot,
        consumer: ConsumerId,
        lease: LeaseId,
        step: &mut Step,
    ) -> bool {
        let (pulls, deadline) = match &self.roster.get(consumer).expect("the next taker is there").kind {
            Kind::Stays { .. } => (false, Time::NEVER),
            Kind::Pulls { visibility_ms, .. } => {
                (true, deadline(now, visibility_ms.unwrap_or(self.settings.visibility_timeout_ms)))
            }
        };
        self.detach(slot);
        let entry = &mut self.entries[slot];
        entry.message.count = entry.message.count.saturating_add(1);
        entry.message.state = State::Leased { lease, deadline };
        entry.holder = (!pulls).then_some(consumer);
        let Message { seq, place, priority, count, bytes, .. } = entry.message;
        let (lane, waited) = (entry.lane, now.since(entry.message.since));
        self.lanes.lane_mut(lane).stats.delivered(waited, count);
        self.attach(slot);
        let receipt = Receipt { queue: self.id, seq, lease };
        step.effects.push(Effect::Deliver(Delivery { consumer, receipt, place, priority, deadline, count }));
        if pulls {
            step.facts.push(Fact::Leased { queue: self.id, seq, lease, deadline, count });
            self.roster.change(consumer, true, |kind| {
                if let Kind::Pulls { left, left_bytes, taken, .. } = kind {
                    (*left, *taken) = (*left - 1, *taken + 1);
                    *left_bytes = left_bytes.saturating_sub(u64::from(bytes));
                }
            });
        }
        pulls
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

    /// Lengthens a pull's lease. One of a consumer that stays has no end of its own.
    pub(crate) fn extend(&mut self, now: Time, slot: Slot, visibility_ms: u64, step: &mut Step) {
        if self.entries[slot].holder.is_some() {
            return;
        }
        let new = deadline(now, visibility_ms);
        let State::Leased { lease, .. } = self.entries[slot].message.state else { return };
        self.change_state(slot, |entry| entry.message.state = State::Leased { lease, deadline: new });
        let Message { seq, count, .. } = self.entries[slot].message;
        step.facts.push(Fact::Leased { queue: self.id, seq, lease, deadline: new, count });
    }

    /// Ends a lease without settling. Answers why the message must be dead-lettered instead, if it must.
    pub(crate) fn put_back(
        &mut self,
        now: Time,
        slot: Slot,
        why: PutBack,
        delay_ms: Option<u64>,
        step: &mut Step,
    ) -> Option<DeathReason> {
        let Message { count, expires, seq, .. } = self.entries[slot].message;
        if expires <= now {
            return self.expire(slot, step);
        }
        if self.entries[slot].outdated {
            self.settle(slot, Settled::Replaced, step);
            return None;
        }
        let limit = self.settings.delivery_limit;
        if why != PutBack::Released && limit > 0 && count >= limit {
            return Some(DeathReason::DeliveryLimit);
        }
        let wait_ms = match (why, delay_ms) {
            (PutBack::Failed, None) => self.settings.backoff.wait_ms(count),
            (_, delay_ms) => delay_ms.unwrap_or(0),
        };
        let due = (wait_ms > 0).then(|| now.after(wait_ms));
        self.wait(slot, due);
        step.facts.push(Fact::PutBack { queue: self.id, seq, count, due });
        None
    }

    /// Makes a message ready, or delayed until `due`.
    pub(super) fn wait(&mut self, slot: Slot, due: Option<Time>) {
        self.change_state(slot, |entry| {
            entry.holder = None;
            entry.message.state = due.map_or(State::Ready, |due| State::Delayed { due });
        });
    }

    /// The time to live is over. Answers that it must be dead-lettered, if the settings say so.
    fn expire(&mut self, slot: Slot, step: &mut Step) -> Option<DeathReason> {
        if self.settings.dead_letter_expired {
            return Some(DeathReason::Expired);
        }
        self.settle(slot, Settled::Expired, step);
        None
    }

    /// When something may happen by itself next.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let alarm = self.alarms.next().unwrap_or(Time::NEVER);
        let run = self.next_run_alarm().unwrap_or(Time::NEVER);
        alarm.min(run).min(self.roster.next_give_up().unwrap_or(Time::NEVER)).some()
    }

    /// Lets time pass. Answers the messages that must be dead-lettered, oldest first.
    pub(crate) fn advance(&mut self, now: Time, step: &mut Step) -> Vec<(Seq, DeathReason)> {
        self.wake_runs(now);
        let mut rung = self.alarms.ring(&mut self.entries, now);
        rung.sort_unstable_by_key(|slot| (self.entries[*slot].alarm(), self.entries[*slot].message.seq));
        let mut dying = Vec::new();
        for slot in rung {
            let Message { state, expires, seq, count, .. } = self.entries[slot].message;
            let death = match state {
                State::Leased { .. } => self.put_back(now, slot, PutBack::Expired, None, step),
                _ if expires <= now => self.expire(slot, step),
                State::Delayed { .. } => {
                    self.wait(slot, None);
                    step.facts.push(Fact::PutBack { queue: self.id, seq, count, due: None });
                    None
                }
                State::Ready | State::Dead => None,
            };
            dying.extend(death.map(|reason| (seq, reason)));
        }
        dying
    }

    /// Puts back all that a consumer holds, before it is taken off the roster. Answers the messages that must be
    /// dead-lettered, oldest first.
    pub(crate) fn give_back(
        &mut self,
        now: Time,
        consumer: ConsumerId,
        step: &mut Step,
    ) -> Vec<(Seq, DeathReason)> {
        let held: Vec<Slot> = match self.roster.get(consumer).map(|taker| &taker.kind) {
            Some(Kind::Stays { held, .. }) => held.iter(&self.entries).collect(),
            _ => Vec::new(),
        };
        let mut dying = Vec::new();
        for slot in held {
            let seq = self.entries[slot].message.seq;
            let death = self.put_back(now, slot, PutBack::Lost, None, step);
            dying.extend(death.map(|reason| (seq, reason)));
        }
        dying
    }
}

fn deadline(now: Time, visibility_ms: u64) -> Time {
    if visibility_ms == 0 { Time::NEVER } else { now.after(visibility_ms) }
}
