//! A queue: its lanes, the leases that are out, its limits and its picker.
//!
//! Every change of a message is `detach`, change, `attach`: where a message stands follows from its state alone, and so
//! does every gauge.

use std::sync::Arc;

use crate::alarms::Alarms;
use crate::bitmap::Bitmap;
use crate::command::{Delivery, Effect, Publish, Published, Step};
use crate::entries::{Entries, Entry, List, Slot};
use crate::fact::Fact;
use crate::ids::{ConsumerId, LeaseId, Place, QueueId, Receipt, Seq, Time};
use crate::index::{SeqIndex, TextIndex};
use crate::lane::Lanes;
use crate::message::{
    Death, DeathReason, Extras, Message, PutBack, Settled, State, Status, seq_of_public_id,
};
use crate::picker::Picker;
use crate::priority::{Given, Original, Priority};
use crate::refusal::Refusal;
use crate::roster::{Kind, Roster};
use crate::settings::{LastValue, Order, Overflow, Settings};

/// One queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) id: QueueId,
    pub(crate) name: Arc<str>,
    pub(crate) settings: Box<Settings>,
    pub(crate) next_seq: Seq,
    pub(crate) entries: Entries,
    pub(crate) lanes: Lanes,
    pub(crate) picker: Picker,
    pub(crate) roster: Roster,
    pub(crate) by_seq: SeqIndex,
    by_id: TextIndex,
    by_key: TextIndex,
    alarms: Alarms,
    /// Leased to pulls.
    pulled: List,
    delayed: List,
    dead: List,
    /// Ready and delayed.
    waiting: u64,
    waiting_bytes: u64,
    leased: u64,
    seed: u64,
    /// Leased and delayed messages, as the broker knows them.
    pub(crate) noted: u64,
    /// When the broker will look at it again, as the broker knows it.
    pub(crate) scheduled: Option<Time>,
}

impl Queue {
    pub(crate) fn new(
        id: QueueId,
        name: Arc<str>,
        settings: Box<Settings>,
        next_seq: Seq,
        seed: u64,
    ) -> Self {
        Self {
            id,
            name,
            next_seq,
            entries: Entries::default(),
            lanes: Lanes::new(&settings),
            picker: Picker::new(&settings.picker),
            roster: Roster::default(),
            by_seq: SeqIndex::default(),
            by_id: TextIndex::new(seed, |entries, slot| {
                entries[slot].message.id().expect("indexed by its id")
            }),
            by_key: key_index(&settings, seed),
            seed,
            alarms: Alarms::default(),
            pulled: List::default(),
            delayed: List::default(),
            dead: List::default(),
            waiting: 0,
            waiting_bytes: 0,
            leased: 0,
            noted: 0,
            scheduled: None,
            settings,
        }
    }

    /// Messages that will change by themselves.
    pub(crate) fn outstanding(&self) -> u64 {
        self.leased + u64::from(self.delayed.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// Takes new settings; what waits stands in the new lanes by its age.
    pub(crate) fn set_settings(&mut self, settings: Box<Settings>) {
        let before = std::mem::replace(&mut self.settings, settings);
        if before.last_value != self.settings.last_value {
            self.by_key = key_index(&self.settings, self.seed);
        }
        if before.picker != self.settings.picker {
            self.picker = Picker::new(&self.settings.picker);
        }
        if before.order == self.settings.order && before.scheme == self.settings.scheme {
            self.lanes.apply_settings(&self.settings);
            return;
        }
        let slots: Vec<Slot> = self.by_seq.from(Seq(0)).collect();
        for slot in &slots {
            self.detach(*slot);
        }
        let lanes = Lanes::new(&self.settings);
        let before = std::mem::replace(&mut self.lanes, lanes);
        let left: Vec<u16> = slots.iter().map(|slot| self.entries[*slot].lane).collect();
        self.picker.ranks_changed(None);
        for slot in &slots {
            self.enter_lane(*slot);
        }
        self.lanes.inherit(&before);
        for (slot, left) in slots.into_iter().zip(left) {
            self.lanes.count_moved(&before.lane(left).name, self.entries[slot].lane);
            self.attach(slot);
        }
    }

    // ---- where a message stands ----

    /// Links a message into where its state says, and counts it there.
    fn attach(&mut self, slot: Slot) {
        let entries = &mut self.entries;
        let Entry { message, lane: index, holder, .. } = &entries[slot];
        let (index, holder, bytes) = (*index, *holder, u64::from(message.bytes));
        let lane = self.lanes.lane_mut(index);
        match message.state {
            State::Ready => {
                (self.waiting, self.waiting_bytes) = (self.waiting + 1, self.waiting_bytes + bytes);
                lane.bytes += bytes;
                self.lanes.push_ready(entries, slot);
            }
            State::Delayed { .. } => {
                (self.waiting, self.waiting_bytes) = (self.waiting + 1, self.waiting_bytes + bytes);
                lane.bytes += bytes;
                lane.delayed += 1;
                self.delayed.push_back(entries, slot);
            }
            State::Leased { .. } => {
                self.leased += 1;
                lane.bytes += bytes;
                self.lanes.count_leased(index, true);
                match holder {
                    None => self.pulled.push_back(entries, slot),
                    Some(consumer) => {
                        self.roster.change(consumer, true, |kind| held(kind).push_back(entries, slot));
                    }
                }
            }
            State::Dead => {
                lane.dead += 1;
                self.dead.push_back(entries, slot);
            }
        }
        let when = self.entries[slot].alarm();
        if when != Time::NEVER {
            self.alarms.set(&mut self.entries, slot, when);
        }
    }

    /// Undoes [`Queue::attach`].
    fn detach(&mut self, slot: Slot) {
        let entries = &mut self.entries;
        self.alarms.clear(entries, slot);
        let Entry { message, lane: index, holder, .. } = &entries[slot];
        let (index, holder, bytes) = (*index, *holder, u64::from(message.bytes));
        let lane = self.lanes.lane_mut(index);
        match message.state {
            State::Ready => {
                (self.waiting, self.waiting_bytes) = (self.waiting - 1, self.waiting_bytes - bytes);
                lane.bytes -= bytes;
                self.lanes.take_ready(entries, slot);
            }
            State::Delayed { .. } => {
                (self.waiting, self.waiting_bytes) = (self.waiting - 1, self.waiting_bytes - bytes);
                lane.bytes -= bytes;
                lane.delayed -= 1;
                self.delayed.remove(entries, slot);
            }
            State::Leased { .. } => {
                self.leased -= 1;
                lane.bytes -= bytes;
                self.lanes.count_leased(index, false);
                match holder {
                    None => self.pulled.remove(entries, slot),
                    Some(consumer) => {
                        self.roster.change(consumer, false, |kind| held(kind).remove(entries, slot));
                    }
                }
            }
            State::Dead => {
                lane.dead -= 1;
                self.dead.remove(entries, slot);
            }
        }
    }

    fn change_state(&mut self, slot: Slot, change: impl FnOnce(&mut Entry)) {
        self.detach(slot);
        change(&mut self.entries[slot]);
        self.attach(slot);
    }

    fn enter_lane(&mut self, slot: Slot) {
        self.entries[slot].lane = self.open_lane(self.entries[slot].message.priority);
    }

    fn open_lane(&mut self, priority: Priority) -> u16 {
        let turn = self.picker.turn().map(|rank| self.lanes.index_at(rank));
        let (lane, reranked) = self.lanes.open(priority, &self.settings);
        if reranked {
            self.picker.ranks_changed(turn.map(|index| self.lanes.rank_of(index)));
        }
        lane
    }

    /// Puts a message in, exactly as it says.
    pub(crate) fn insert(&mut self, message: Message) -> Slot {
        let seq = message.seq;
        self.next_seq = self.next_seq.max(seq.next());
        let lane = self.open_lane(message.priority);
        let slot = self.entries.insert(message, lane);
        self.lanes.lane_mut(lane).stats.published += 1;
        self.by_seq.insert(seq, slot);
        self.index_texts(slot);
        self.attach(slot);
        slot
    }

    /// Makes a message found by its id and counted as the value of its key. A dead letter does neither where something
    /// that is pending has the id.
    fn index_texts(&mut self, slot: Slot) {
        let message = &self.entries[slot].message;
        let dead = message.state == State::Dead;
        if message.id().is_some() && !(dead && self.pending_of(message.id()).is_some()) {
            self.by_id.point(&self.entries, slot);
        }
        if dead || self.settings.last_value.is_none() {
            return;
        }
        match self.by_key.twin(&self.entries, slot) {
            Some(other) if self.entries[other].message.seq > self.entries[slot].message.seq => {
                self.entries[slot].outdated = true;
            }
            other => {
                if let Some(older) = other.filter(|older| *older != slot) {
                    self.entries[older].outdated = true;
                }
                self.by_key.point(&self.entries, slot);
            }
        }
    }

    /// Takes a message out; nothing of it is left.
    pub(crate) fn take_out(&mut self, slot: Slot) -> Message {
        self.detach(slot);
        if self.entries[slot].message.id().is_some() {
            self.by_id.forget(&self.entries, slot);
        }
        if self.settings.last_value.is_some() {
            self.by_key.forget(&self.entries, slot);
        }
        self.by_seq.remove(self.entries[slot].message.seq);
        self.entries.remove(slot)
    }

    // ---- publish ----

    /// The priority a given one means here.
    ///
    /// # Errors
    /// What the scheme says.
    pub(crate) fn map_priority(&self, given: &Given) -> Result<Priority, Refusal> {
        match (given, &self.settings.default_priority) {
            (Given::Missing, Some(default)) => self.settings.scheme.map(default),
            _ => self.settings.scheme.map(given),
        }
    }

    /// Whether a publish is taken, `before` of the same step counted as waiting already. or is there already.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn admit(
        &self,
        publish: &Publish,
        max_message_bytes: u64,
        before: Admitted,
    ) -> Result<Admission, Refusal> {
        let priority = self.map_priority(&publish.priority)?;
        check_texts(publish)?;
        if let Some(pending) = self.pending_of(publish.id.as_deref()) {
            return Ok(Admission { priority, pending: Some(pending) });
        }
        if self.settings.last_value == Some(LastValue::Key) && publish.key.is_none() {
            return Err(Refusal::KeyMissing);
        }
        let most = [self.settings.max_message_bytes, self.settings.max_bytes, max_message_bytes];
        if most.iter().any(|most| *most > 0 && u64::from(publish.bytes) > *most) {
            return Err(Refusal::MessageTooLarge);
        }
        self.lanes.check(priority)?;
        let replaced = self.replaced_by(publish.key.as_deref());
        self.admit_depth(priority, u64::from(publish.bytes), before, replaced)?;
        Ok(Admission { priority, pending: None })
    }

    /// Whether one more fits, counted as if `replaced` had gone already.
    pub(crate) fn admit_depth(
        &self,
        priority: Priority,
        bytes: u64,
        before: Admitted,
        replaced: Option<Slot>,
    ) -> Result<(), Refusal> {
        let freed = replaced.map_or(0, |slot| u64::from(self.entries[slot].message.bytes));
        let waiting = self.waiting + before.messages - u64::from(replaced.is_some());
        let waiting_bytes = self.waiting_bytes + before.bytes + bytes - freed;
        if let Some(reject) = &self.settings.reject_below
            && waiting >= reject.depth
            && self.settings.scheme.map(&reject.priority).is_ok_and(|least| priority < least)
        {
            return Err(Refusal::BelowPriority);
        }
        let fits = !self.is_over(waiting + 1, waiting_bytes);
        let fits = fits || self.others_pay(priority, waiting + 1, waiting_bytes, replaced);
        fits.then_some(()).ok_or(Refusal::QueueFull)
    }

    /// Whether the queue comes within its limits when it drops what is ready and no more urgent than this. Asked before
    /// anything is dropped, so that nobody pays for a message that does not fit all the same.
    fn others_pay(
        &self,
        priority: Priority,
        mut messages: u64,
        mut bytes: u64,
        except: Option<Slot>,
    ) -> bool {
        if self.settings.overflow != Overflow::Evict {
            return false;
        }
        let (Ok(rank) | Err(rank)) = self.lanes.find(priority);
        // It has been taken off already, and its lane counts it still.
        if let Some(Entry { message, lane, .. }) = except.map(|slot| &self.entries[slot])
            && message.state == State::Ready
            && self.lanes.rank_of(*lane) >= rank
        {
            messages += 1;
            bytes += u64::from(message.bytes);
        }
        for payer in self.lanes.ready().iter().filter(|payer| *payer >= rank) {
            let lane = self.lanes.at_rank(payer);
            messages -= lane.ready;
            bytes -= lane.ready_bytes;
        }
        !self.is_over(messages, bytes)
    }

    /// Whether a message of its priority is taken without being refused for the queue's limits.
    pub(crate) fn has_room_for(&self, message: &Message) -> bool {
        let replaced = self.replaced_by(message.key());
        self.admit_depth(message.priority, u64::from(message.bytes), Admitted::default(), replaced).is_ok()
    }

    /// The waiting message whose place a newer one of this key takes.
    fn replaced_by(&self, key: Option<&str>) -> Option<Slot> {
        self.value_of(key).filter(|older| self.is_waiting(*older))
    }

    /// The newest pending message of this key, in a last-value queue.
    fn value_of(&self, key: Option<&str>) -> Option<Slot> {
        let text = match self.settings.last_value? {
            LastValue::One => "",
            LastValue::Key => key.unwrap_or(""),
        };
        self.by_key.get(&self.entries, text)
    }

    fn is_over(&self, messages: u64, bytes: u64) -> bool {
        (self.settings.max_length > 0 && messages > self.settings.max_length)
            || (self.settings.max_bytes > 0 && bytes > self.settings.max_bytes)
    }

    pub(crate) fn pending_of(&self, id: Option<&str>) -> Option<Slot> {
        let slot = self.by_id.get(&self.entries, id?)?;
        (self.entries[slot].message.state != State::Dead).then_some(slot)
    }

    /// Publishes an admitted message. Answers what to say of it.
    pub(crate) fn publish(
        &mut self,
        now: Time,
        publish: &Publish,
        priority: Priority,
        default_ttl_ms: u64,
        step: &mut Step,
    ) -> Copied {
        let extras = (publish.id.is_some() || publish.key.is_some())
            .then(|| Box::new(Extras { id: publish.id.clone(), key: publish.key.clone(), death: None }));
        let state = match publish.delay_ms {
            0 => State::Ready,
            delay => State::Delayed { due: now.after(delay) },
        };
        let message = Message {
            seq: self.next_seq,
            priority,
            original: publish.priority.original(),
            since: now,
            expires: self.expiry(now, publish.ttl_ms, default_ttl_ms),
            bytes: publish.bytes,
            count: 0,
            place: publish.place,
            state,
            extras,
        };
        step.facts.push(Fact::Stored { queue: self.id, message: message.clone() });
        let seq = message.seq;
        Copied { seq, priority, slot: self.arrive(message, step), duplicate: false }
    }

    /// When a message that is published now expires: the least of its own time to live, the queue's (else the global
    /// one) and the queue's longest.
    pub(crate) fn expiry(&self, now: Time, own_ms: u64, default_ms: u64) -> Time {
        let base = if self.settings.ttl_ms > 0 { self.settings.ttl_ms } else { default_ms };
        let least = [base, own_ms, self.settings.max_ttl_ms].into_iter().filter(|ms| *ms > 0).min();
        least.map_or(Time::NEVER, |ms| now.after(ms))
    }

    /// Puts in a message that is new here, its fact said, and lets the least urgent pay for it. `None`: that was itself.
    pub(crate) fn arrive(&mut self, message: Message, step: &mut Step) -> Option<Slot> {
        let replaced = self.replaced_by(message.key());
        let slot = self.insert(message);
        if let Some(older) = replaced {
            self.settle(older, Settled::Replaced, step);
        }
        self.evict(slot, step).then_some(slot)
    }

    fn is_waiting(&self, slot: Slot) -> bool {
        matches!(self.entries[slot].message.state, State::Ready | State::Delayed { .. })
    }

    /// While the queue is over its limits, its least urgent message goes: the oldest of the last lane. The newcomer goes
    /// when everything else that is ready is more urgent. True if it stays.
    fn evict(&mut self, newcomer: Slot, step: &mut Step) -> bool {
        let rank = self.lanes.rank_of(self.entries[newcomer].lane);
        while self.is_over(self.waiting, self.waiting_bytes) {
            let least = self.lanes.ready().last().filter(|least| *least >= rank);
            // A dead letter that is replayed may be the oldest of its lane.
            let others = |least| self.lanes.at_rank(least).iter(&self.entries).find(|slot| *slot != newcomer);
            let victim = least.and_then(others).unwrap_or(newcomer);
            self.settle(victim, Settled::Evicted, step);
            if victim == newcomer {
                return false;
            }
        }
        true
    }

    // ---- lease ----

    /// The rank to take from, if a message may be leased and somebody has room for it.
    fn pick(&self) -> Option<usize> {
        if self.settings.max_active > 0 && self.leased >= u64::from(self.settings.max_active) {
            return None;
        }
        let floor = self.roster.floor()?;
        let eligible = self.lanes.eligible();
        let eligible: Bitmap = match floor {
            i32::MIN => eligible,
            floor => eligible.below(self.lanes.rank_below(Priority(floor))),
        };
        self.lanes.pick(&self.picker, eligible, &self.entries)
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
    fn wait(&mut self, slot: Slot, due: Option<Time>) {
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

    // ---- the end ----

    /// The message is gone.
    pub(crate) fn settle(&mut self, slot: Slot, how: Settled, step: &mut Step) {
        self.lanes.count_settled(self.entries[slot].lane, how);
        let message = self.take_out(slot);
        step.facts.push(Fact::Settled { queue: self.id, seq: message.seq, how });
        step.effects.push(Effect::Released(message.place));
    }

    /// Where, why and when it dies.
    pub(crate) fn death(&self, now: Time, slot: Slot, reason: DeathReason) -> Death {
        let Entry { message, lane, .. } = &self.entries[slot];
        Death {
            reason,
            queue: Arc::clone(&self.name),
            lane: Arc::clone(&self.lanes.lane(*lane).name),
            at: now,
            count: message.count,
        }
    }

    /// The message stays here as a dead letter. It does not expire any more.
    pub(crate) fn bury(&mut self, slot: Slot, death: Death, step: &mut Step) {
        let Message { seq, count, .. } = self.entries[slot].message;
        self.lanes.lane_mut(self.entries[slot].lane).stats.dead_lettered += 1;
        step.facts.push(Fact::Died { queue: self.id, seq, count, death: Box::new(death.clone()) });
        self.lay_out(slot, death);
    }

    fn lay_out(&mut self, slot: Slot, death: Death) {
        if self.settings.last_value.is_some() {
            self.by_key.forget(&self.entries, slot);
        }
        self.change_state(slot, |entry| {
            entry.holder = None;
            entry.outdated = false;
            entry.message.state = State::Dead;
            entry.message.extras.get_or_insert_default().death = Some(death);
        });
    }

    /// A message that moves away: it is gone here, its content stays in use.
    pub(crate) fn move_away(&mut self, slot: Slot, died: bool) -> Message {
        let stats = &mut self.lanes.lane_mut(self.entries[slot].lane).stats;
        stats.moved += 1;
        stats.dead_lettered += u64::from(died);
        self.take_out(slot)
    }

    // ---- administration ----

    /// The message of an id: its publisher's, else `seq-N`.
    ///
    /// # Errors
    /// [`Refusal::NoSuchMessage`].
    pub(crate) fn find(&self, id: &str) -> Result<Slot, Refusal> {
        let by_seq = || self.by_seq.get(seq_of_public_id(id)?);
        // A dead letter gives up its id to a pending message, and has it again when that one is gone.
        let dead = || self.dead.iter(&self.entries).find(|slot| self.entries[*slot].message.id() == Some(id));
        self.by_id.get(&self.entries, id).or_else(by_seq).or_else(dead).ok_or(Refusal::NoSuchMessage)
    }

    /// Whether a message may change its priority.
    ///
    /// # Errors
    /// [`Refusal::Leased`], [`Refusal::Dead`].
    pub(crate) fn check_waiting(&self, slot: Slot) -> Result<(), Refusal> {
        match self.entries[slot].message.state {
            State::Ready | State::Delayed { .. } => Ok(()),
            State::Leased { .. } => Err(Refusal::Leased),
            State::Dead => Err(Refusal::Dead),
        }
    }

    /// Gives a waiting message another priority; it stands in its new lane where its age puts it.
    pub(crate) fn reprioritise(&mut self, slot: Slot, priority: Priority, given: &Given, step: &mut Step) {
        let (seq, original) = (self.entries[slot].message.seq, given.original());
        self.set_priority(slot, priority, original);
        step.facts.push(Fact::Reprioritised { queue: self.id, seq, priority, original });
    }

    pub(crate) fn set_priority(&mut self, slot: Slot, priority: Priority, original: Original) {
        if self.entries[slot].message.priority == priority {
            self.entries[slot].message.original = original;
            return;
        }
        self.detach(slot);
        self.lanes.lane_mut(self.entries[slot].lane).stats.moved += 1;
        let message = &mut self.entries[slot].message;
        (message.priority, message.original) = (priority, original);
        self.enter_lane(slot);
        self.lanes.lane_mut(self.entries[slot].lane).stats.published += 1;
        self.attach(slot);
    }

    /// Whether a dead letter can come back into this queue, where it has this id.
    ///
    /// # Errors
    /// [`Refusal::IdPending`].
    pub(crate) fn check_return(&self, id: Option<&str>) -> Result<(), Refusal> {
        self.pending_of(id).map_or(Ok(()), |_| Err(Refusal::IdPending))
    }

    /// Whether no newer value of this key is pending, which an old one must not take the place of.
    ///
    /// # Errors
    /// [`Refusal::IdPending`].
    pub(crate) fn check_value(&self, key: Option<&str>) -> Result<(), Refusal> {
        self.value_of(key).map_or(Ok(()), |_| Err(Refusal::IdPending))
    }

    /// Puts a dead letter of this queue back into its lane, with a fresh count; a time to live that is over is not held
    /// against it.
    pub(crate) fn replay(
        &mut self,
        now: Time,
        slot: Slot,
        promote: Option<(Priority, &Given)>,
        step: &mut Step,
    ) {
        let Message { seq, priority, original, expires, .. } = self.entries[slot].message;
        let (priority, original) =
            promote.map_or((priority, original), |(priority, given)| (priority, given.original()));
        let expires = if expires <= now { Time::NEVER } else { expires };
        step.facts.push(Fact::Replayed { queue: self.id, seq, priority, original, expires });
        self.revive(slot, priority, original, expires);
        self.evict(slot, step);
    }

    /// Makes a dead letter ready.
    pub(crate) fn revive(&mut self, slot: Slot, priority: Priority, original: Original, expires: Time) {
        self.set_priority(slot, priority, original);
        self.change_state(slot, |entry| {
            let message = &mut entry.message;
            (message.state, message.count, message.expires) = (State::Ready, 0, expires);
        });
        self.index_texts(slot);
    }

    // ---- time ----

    /// When something may happen by itself next.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let alarm = self.alarms.next().unwrap_or(Time::NEVER);
        alarm.min(self.roster.next_give_up().unwrap_or(Time::NEVER)).some()
    }

    /// Lets time pass. Answers the messages that must be dead-lettered, oldest first.
    pub(crate) fn advance(&mut self, now: Time, step: &mut Step) -> Vec<(Seq, DeathReason)> {
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

    // ---- recovery ----

    /// Puts in a stored message, in place of what is there under its sequence. Answers the place that is free then.
    pub(crate) fn fold_stored(&mut self, message: Message) -> Option<Place> {
        let before = self.by_seq.get(message.seq);
        let before = before.map(|slot| {
            self.lanes.lane_mut(self.entries[slot].lane).stats.published -= 1;
            self.take_out(slot).place
        });
        self.insert(message);
        before
    }

    pub(crate) fn fold_leased(&mut self, slot: Slot, lease: LeaseId, deadline: Time, count: u32) {
        self.change_state(slot, |entry| {
            entry.message.count = count;
            entry.message.state = State::Leased { lease, deadline };
        });
    }

    pub(crate) fn fold_put_back(&mut self, slot: Slot, count: u32, due: Option<Time>) {
        self.entries[slot].message.count = count;
        self.wait(slot, due);
    }

    pub(crate) fn fold_died(&mut self, slot: Slot, count: u32, death: Death) {
        self.entries[slot].message.count = count;
        self.lay_out(slot, death);
    }

    /// Drops what newer messages of a last-value queue have replaced, where that was not said before the end.
    pub(crate) fn drop_outdated(&mut self, step: &mut Step) {
        if self.settings.last_value.is_none() {
            return;
        }
        let all: Vec<Slot> = self.by_seq.from(Seq(0)).collect();
        for slot in all {
            if self.entries[slot].outdated && self.is_waiting(slot) {
                self.settle(slot, Settled::Replaced, step);
            }
        }
    }

    // ---- lists for browsing ----

    /// What to answer for a copy.
    pub(crate) fn published(&self, publish: usize, copied: Copied) -> Published {
        let Copied { seq, priority, slot, duplicate } = copied;
        let (position, position_in_priority) =
            slot.map_or((None, None), |slot| self.position(slot, WALK_MAX));
        Published { publish, queue: self.id, seq, priority, duplicate, position, position_in_priority }
    }

    /// Leased messages, those of pulls first.
    pub(crate) fn leased_slots(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.pulled.iter(&self.entries).collect();
        for consumer in self.roster.ids() {
            if let Some(Kind::Stays { held, .. }) = self.roster.get(consumer).map(|taker| &taker.kind) {
                slots.extend(held.iter(&self.entries));
            }
        }
        slots
    }

    pub(crate) fn delayed_slots(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.delayed.iter(&self.entries).collect();
        slots.sort_by_key(|slot| (self.entries[*slot].alarm(), self.entries[*slot].message.seq));
        slots
    }

    pub(crate) fn dead_slots(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.dead.iter(&self.entries).collect();
        slots.sort_by_key(|slot| {
            let message = &self.entries[*slot].message;
            (message.death().map(|death| death.at), message.seq)
        });
        slots
    }

    /// Slots that stand so, in the order of publishing.
    pub(crate) fn slots_with(&self, wanted: impl Fn(Status) -> bool) -> Vec<Slot> {
        let all = self.by_seq.from(Seq(0));
        all.filter(|slot| wanted(self.entries[*slot].message.state.status())).collect()
    }

    /// Whether changing to these settings would leave messages misunderstood.
    ///
    /// # Errors
    /// [`Refusal::SettingFixed`] with the key.
    pub(crate) fn check_settings(&self, settings: &Settings) -> Result<(), Refusal> {
        if self.is_empty() {
            return Ok(());
        }
        if settings.scheme != self.settings.scheme {
            return Err(Refusal::SettingFixed("scheme"));
        }
        if settings.last_value != self.settings.last_value {
            return Err(Refusal::SettingFixed("last_value"));
        }
        match (&settings.order, &self.settings.order) {
            (Order::Priority, Order::Priority) => Ok(()),
            (Order::Priority, _) => self.check_lane_count(),
            _ => Ok(()),
        }
    }

    fn check_lane_count(&self) -> Result<(), Refusal> {
        let mut priorities = std::collections::BTreeSet::new();
        for slot in self.by_seq.from(Seq(0)) {
            priorities.insert(self.entries[slot].message.priority);
            if priorities.len() > crate::LANES_MAX {
                return Err(Refusal::TooManyLanes);
            }
        }
        Ok(())
    }
}

/// A publish of an id that is pending looks for its position at most so far from either end of its lane.
const WALK_MAX: usize = 1_000;

/// A publish may be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    /// Its priority here.
    pub(crate) priority: Priority,
    /// A pending message has its id: nothing is to be done.
    pub(crate) pending: Option<Slot>,
}

/// What became of one copy of a publish.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) seq: Seq,
    pub(crate) priority: Priority,
    /// `None`: it paid for itself and is no longer anywhere.
    pub(crate) slot: Option<Slot>,
    /// It was there before.
    pub(crate) duplicate: bool,
}

/// What earlier publishes of the same step will add to a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// What a last-value queue keeps the newest of: the text of the key, which for the whole queue is always the same.
fn key_index(settings: &Settings, seed: u64) -> TextIndex {
    match settings.last_value {
        Some(LastValue::One) => TextIndex::new(seed, |_, _| ""),
        _ => TextIndex::new(seed, |entries, slot| entries[slot].message.key().unwrap_or("")),
    }
}

fn held(kind: &mut Kind) -> &mut List {
    match kind {
        Kind::Stays { held, .. } => held,
        Kind::Pulls { .. } => unreachable!("the lease of a pull has no holder"),
    }
}

fn deadline(now: Time, visibility_ms: u64) -> Time {
    if visibility_ms == 0 { Time::NEVER } else { now.after(visibility_ms) }
}

fn check_texts(publish: &Publish) -> Result<(), Refusal> {
    if let Some(id) = publish.id.as_deref()
        && (crate::check_name(id).is_err() || seq_of_public_id(id).is_some())
    {
        return Err(Refusal::IdInvalid);
    }
    if let Some(key) = publish.key.as_deref()
        && !key.is_empty()
        && crate::check_name(key).is_err()
    {
        return Err(Refusal::KeyInvalid);
    }
    Ok(())
}
