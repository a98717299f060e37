//! Publishing: whether a message is taken, what it replaces, and who pays for it.

use std::borrow::Cow;

use super::{Queue, room_of};
use crate::command::{Copy, Publish, Published, Step};
use crate::deaths::DeathReason;
use crate::entries::{Entry, Slot};
use crate::fact::Fact;
use crate::ids::{Seq, Time};
use crate::message::{Extras, Message, Settled, State, seq_of_public_id};
use crate::priority::Priority;
use crate::refusal::Refusal;
use crate::settings::{DeadLetterTo, LastValue, Overflow, Settings};

impl Queue {
    /// Whether a publish is taken, or is there already; `before` of the same step counts as waiting.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn admit(
        &self,
        now: Time,
        publish: &Publish,
        max_message_bytes: u64,
        before: Admitted,
    ) -> Result<Admission, Refusal> {
        let priority = self.understand(publish)?;
        if let Some(pending) = self.pending_at(now, publish.id.as_deref()) {
            return Ok(Admission { priority, pending: Some(pending), at_once: false });
        }
        self.check_kind(publish, max_message_bytes)?;
        self.lanes.check(priority)?;
        if self.settings.evict_at_once && self.settings.overflow != Overflow::Evict {
            return Err(Refusal::QueueFull);
        }
        let at_once = publish.ttl_ms == Some(0) || self.ends_at_once(publish.base_ttl_ms);
        if !at_once {
            let replaced = self.replaced_by(publish.key.as_deref());
            self.admit_depth(priority, u64::from(publish.bytes), before, replaced)?;
        }
        Ok(Admission { priority, pending: None, at_once })
    }

    /// What a publish would put in here, whatever is in here already.
    ///
    /// # Errors
    /// Why it is not taken, where that does not depend on what is in here.
    pub(crate) fn copy_of(
        &self,
        publish: &Publish,
        max_message_bytes: u64,
        default_ttl_ms: u64,
    ) -> Result<Copy, Refusal> {
        let priority = self.understand(publish)?;
        self.check_kind(publish, max_message_bytes)?;
        Ok(Copy {
            queue: self.id,
            priority,
            original: self.settings.original(&publish.priority),
            ttl_ms: self.time_to_live(publish.ttl_ms, publish.base_ttl_ms, default_ttl_ms),
            delay_ms: publish.delay_ms,
        })
    }

    /// The priority of a publish here, if what it says makes sense.
    fn understand(&self, publish: &Publish) -> Result<Priority, Refusal> {
        let priority = self.settings.map_priority(&publish.priority)?;
        check_texts(publish)?;
        Ok(priority)
    }

    /// Whether the queue takes messages like this.
    fn check_kind(&self, publish: &Publish, max_message_bytes: u64) -> Result<(), Refusal> {
        if self.settings.last_value == Some(LastValue::Key) && publish.key.is_none() {
            return Err(Refusal::KeyMissing);
        }
        let most = [self.settings.max_message_bytes, self.settings.max_bytes, max_message_bytes];
        if most.iter().any(|most| *most > 0 && u64::from(publish.bytes) > *most) {
            return Err(Refusal::MessageTooLarge);
        }
        Ok(())
    }

    /// Whether one more fits, counted as if `replaced` had gone already.
    pub(crate) fn admit_depth(
        &self,
        priority: Priority,
        bytes: u64,
        before: Admitted,
        replaced: Option<Slot>,
    ) -> Result<(), Refusal> {
        let freed = replaced.map_or((0, 0), |slot| room_of(&self.entries[slot].message));
        let waiting = self.waiting + before.messages - freed.0;
        let waiting_bytes = self.waiting_bytes + before.bytes + bytes - freed.1;
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
            let room = room_of(message);
            (messages, bytes) = (messages + room.0, bytes + room.1);
        }
        for payer in self.lanes.ready().iter().filter(|payer| *payer >= rank) {
            let lane = self.lanes.at_rank(payer);
            // Those that are over at once stand there in this step and are not counted.
            messages = messages.saturating_sub(lane.ready);
            bytes = bytes.saturating_sub(lane.ready_bytes);
        }
        !self.is_over(messages, bytes)
    }

    /// Whether a message of its priority is taken without being refused for the queue's limits.
    pub(crate) fn has_room_for(&self, message: &Message, priority: Priority) -> bool {
        if self.settings.expire_at_once || self.settings.evict_at_once {
            return true;
        }
        let replaced = self.replaced_by(message.key());
        self.admit_depth(priority, u64::from(message.bytes), Admitted::default(), replaced).is_ok()
    }

    /// The waiting message whose place a newer one of this key takes.
    fn replaced_by(&self, key: Option<&str>) -> Option<Slot> {
        self.value_of(key).filter(|older| self.is_waiting(*older))
    }

    /// The newest pending message of this key, in a last-value queue.
    pub(super) fn value_of(&self, key: Option<&str>) -> Option<Slot> {
        let text = match self.settings.last_value? {
            LastValue::One => "",
            LastValue::Key => key.unwrap_or(""),
        };
        self.by_key.get(&self.entries, text)
    }

    /// Whether one more message of so many bytes fits without anybody paying for it.
    pub(crate) fn has_free_room(&self, bytes: u32) -> bool {
        !self.is_over(self.waiting + 1, self.waiting_bytes + u64::from(bytes))
    }

    pub(super) fn is_over(&self, messages: u64, bytes: u64) -> bool {
        (self.settings.max_length > 0 && messages > self.settings.max_length)
            || (self.settings.max_bytes > 0 && bytes > self.settings.max_bytes)
    }

    /// The pending message of an id: what another publish of it answers.
    pub(crate) fn pending_of(&self, id: Option<&str>) -> Option<Copied> {
        self.pending_at(Time(0), id)
    }

    /// The same, unless its time to live was over before now.
    pub(crate) fn pending_at(&self, now: Time, id: Option<&str>) -> Option<Copied> {
        // One that is over may be there still, and another one wait in a run.
        let here = self.pending_here(id).filter(|slot| !self.entries[*slot].message.is_over(now));
        let message = match here {
            Some(slot) => Cow::Borrowed(&self.entries[slot].message),
            None => Cow::Owned(self.in_runs_by_id(now, id?)?),
        };
        Some(Copied { seq: message.seq, priority: message.priority, slot: here, duplicate: true })
    }

    /// The pending message of an id, if that is in memory.
    pub(super) fn pending_here(&self, id: Option<&str>) -> Option<Slot> {
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
        let state = match publish.delay_ms {
            0 => State::Ready,
            delay => State::Delayed { due: now.after(delay) },
        };
        let message = self.compose(now, publish, priority, default_ttl_ms, state);
        step.facts.push(Fact::Stored { queue: self.id, message: message.clone() });
        let seq = message.seq;
        // Whatever else the step does, one may go for one that comes.
        step.room = step.room.saturating_add(1);
        Copied { seq, priority, slot: self.arrive(message, step), duplicate: false }
    }

    /// Puts in what is refused, out of the lanes. It is still to be decided what becomes of it, in the same step.
    pub(crate) fn lay_down(
        &mut self,
        now: Time,
        publish: &Publish,
        priority: Priority,
        default_ttl_ms: u64,
        step: &mut Step,
    ) -> Seq {
        let message = self.compose(now, publish, priority, default_ttl_ms, State::Dead);
        step.facts.push(Fact::Stored { queue: self.id, message: message.clone() });
        let seq = message.seq;
        self.insert(message);
        seq
    }

    /// Whether a copy that is refused for this is one that a queue which evicts would evict at once: the queue is full of
    /// messages that are more urgent, or the copy alone is larger than `max_bytes`.
    pub(crate) fn evicts_instead(&self, publish: &Publish, refusal: Refusal) -> bool {
        let Settings { overflow, max_bytes, max_message_bytes, .. } = *self.settings;
        let is_over = |most: u64| most > 0 && u64::from(publish.bytes) > most;
        let is_length = match refusal {
            Refusal::QueueFull => true,
            Refusal::MessageTooLarge => is_over(max_bytes) && !is_over(max_message_bytes),
            _ => false,
        };
        overflow == Overflow::Evict && is_length
    }

    /// Evicts a copy that found no room here, while other queues of its publish keep theirs: counted, and dead-lettered or
    /// recorded where the queue does so with what it evicts.
    pub(crate) fn leave_out(
        &mut self,
        now: Time,
        publish: &Publish,
        priority: Priority,
        default_ttl_ms: u64,
        step: &mut Step,
    ) {
        let seq = self.lay_down(now, publish, priority, default_ttl_ms, step);
        if self.leaves_evicted() {
            return self.dying.push((seq, DeathReason::Maxlen));
        }
        let slot = self.by_seq.get(seq).expect("it was just put in");
        self.settle(slot, Settled::Evicted, step);
    }

    /// The message that a publish makes here.
    fn compose(
        &self,
        now: Time,
        publish: &Publish,
        priority: Priority,
        default_ttl_ms: u64,
        state: State,
    ) -> Message {
        let has_texts = publish.id.is_some() || publish.key.is_some();
        let texts = || Extras {
            id: publish.id.clone(),
            key: publish.key.clone(),
            key_weight: publish.key_weight,
            ..Extras::default()
        };
        Message {
            seq: self.next_seq,
            priority,
            original: self.settings.original(&publish.priority),
            since: now,
            expires: self.expiry(now, publish.ttl_ms, publish.base_ttl_ms, default_ttl_ms),
            bytes: publish.bytes,
            count: 0,
            place: publish.place,
            state,
            extras: has_texts.then(|| Box::new(texts())),
        }
    }

    /// When a message that is published now expires.
    pub(crate) fn expiry(
        &self,
        now: Time,
        own_ms: Option<u64>,
        base_ms: Option<u64>,
        default_ms: u64,
    ) -> Time {
        self.time_to_live(own_ms, base_ms, default_ms).map_or(Time::NEVER, |ms| now.after(ms))
    }

    /// How long a message that is published now may live, ms: the least of its own time to live, the base (its route's, else the
    /// queue's, else the global one) and the queue's longest. `None`: for ever.
    fn time_to_live(&self, own_ms: Option<u64>, base_ms: Option<u64>, default_ms: u64) -> Option<u64> {
        let Settings { ttl_ms, max_ttl_ms, .. } = *self.settings;
        let base = base_ms.unwrap_or(if ttl_ms > 0 { ttl_ms } else { default_ms });
        let set = [base, max_ttl_ms].into_iter().filter(|ms| *ms > 0);
        set.chain(own_ms).chain(self.ends_at_once(base_ms).then_some(0)).min()
    }

    /// Whether the queue lets nothing wait that says no more: its limit is no messages, or its time to live is 0 and no other stands
    /// in for it.
    fn ends_at_once(&self, base_ms: Option<u64>) -> bool {
        self.settings.evict_at_once || (self.settings.expire_at_once && base_ms.is_none())
    }

    /// Puts in a message that is new here, its fact said, and lets the least urgent pay for it. `None`: that was itself.
    pub(crate) fn arrive(&mut self, message: Message, step: &mut Step) -> Option<Slot> {
        let replaced = self.replaced_by(message.key());
        let slot = self.insert(message);
        if let Some(older) = replaced {
            self.settle(older, Settled::Replaced, step);
        }
        let stays = self.entries[slot].message.is_at_once() || self.evict(slot, step);
        stays.then_some(slot)
    }

    pub(crate) fn is_waiting(&self, slot: Slot) -> bool {
        matches!(self.entries[slot].message.state, State::Ready | State::Delayed { .. })
    }

    /// While the queue is over its limits, its least urgent message goes: the oldest of the last lane. The newcomer goes
    /// when everything else that is ready is more urgent. True if it stays. The rest goes in a later step where this one has no room, and while
    /// messages move out of former lanes nobody knows which is the least urgent: the queue comes within its limits once they have moved.
    pub(super) fn evict(&mut self, newcomer: Slot, step: &mut Step) -> bool {
        let rank = self.lanes.rank_of(self.entries[newcomer].lane);
        while self.is_over(self.waiting, self.waiting_bytes) {
            if self.has_former() || !step.take_room() {
                self.is_trimming = true;
                return true;
            }
            let least = self.lanes.least().filter(|least| *least >= rank);
            // A dead letter that is replayed may be the oldest of its lane.
            let loaded = least.filter(|least| self.load(*least, 2));
            if !self.is_over(self.waiting, self.waiting_bytes) {
                // What could not be loaded is lost, and that made room.
                return true;
            }
            let victim = loaded.and_then(|least| {
                self.lanes.at_rank(least).iter(&self.entries).find(|slot| *slot != newcomer)
            });
            let victim = victim.unwrap_or(newcomer);
            self.let_pay(victim, step);
            if victim == newcomer {
                return false;
            }
        }
        true
    }

    /// Dropped, or out of the lanes and to be dead-lettered in this step: when all that comes in it has its room.
    pub(super) fn let_pay(&mut self, victim: Slot, step: &mut Step) {
        if !self.leaves_evicted() {
            return self.settle(victim, Settled::Evicted, step);
        }
        self.let_die(victim, DeathReason::Maxlen);
    }

    /// Out of the lanes, and to be dead-lettered in this step.
    pub(super) fn let_die(&mut self, slot: Slot, reason: DeathReason) {
        self.dying.push((self.entries[slot].message.seq, reason));
        self.lay_out(slot, None);
    }

    /// Whether something is to be done with what is evicted.
    pub(crate) fn leaves_evicted(&self) -> bool {
        let settings = &self.settings;
        let is_dead_lettered = settings.dead_letter_evicted && settings.dead_letter != DeadLetterTo::Drop;
        is_dead_lettered || settings.history.is_some()
    }

    /// What to answer for a copy.
    pub(crate) fn published(&self, publish: usize, copied: Copied) -> Published {
        let Copied { seq, priority, slot, duplicate } = copied;
        let stands = match slot {
            Some(slot) => Some((self.entries[slot].lane, Cow::Borrowed(&self.entries[slot].message))),
            None if duplicate => self.look(seq),
            None => None,
        };
        let (position, position_in_priority) =
            stands.map_or((None, None), |(lane, message)| self.position(lane, &message, WALK_MAX));
        Published { publish, queue: self.id, seq, priority, duplicate, position, position_in_priority }
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
    pub(crate) pending: Option<Copied>,
    /// It is taken at once or over, and needs no room.
    pub(crate) at_once: bool,
}

/// What became of one copy of a publish.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) seq: Seq,
    pub(crate) priority: Priority,
    /// `None`: it waits in a run, or paid for itself and is no longer anywhere.
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

fn check_texts(publish: &Publish) -> Result<(), Refusal> {
    if let Some(id) = publish.id.as_deref()
        && (crate::check_name(id).is_err() || seq_of_public_id(id).is_some())
    {
        return Err(Refusal::IdInvalid);
    }
    crate::check_key(publish.key.as_deref(), publish.key_weight)
}
