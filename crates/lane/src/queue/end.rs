//! The end of a message, and what may be done to one from outside: settled, dead, back from the dead, moved.

use std::sync::Arc;

use super::Queue;
use crate::command::{Effect, Step};
use crate::deaths::Deaths;
use crate::entries::Slot;
use crate::fact::Fact;
use crate::ids::Time;
use crate::message::{Message, Settled, State};
use crate::priority::{Given, Original, Priority};
use crate::record::Attempts;
use crate::refusal::Refusal;

impl Queue {
    /// The message is gone.
    pub(crate) fn settle(&mut self, slot: Slot, how: Settled, step: &mut Step) {
        let message = self.retire(slot, how);
        step.facts.push(Fact::Settled { queue: self.id, seq: message.seq, how });
        step.effects.push(Effect::Released(message.place));
    }

    /// The message stays here as a dead letter. It does not expire any more.
    pub(crate) fn bury(
        &mut self,
        slot: Slot,
        deaths: Arc<Deaths>,
        attempts: Option<Arc<Attempts>>,
        step: &mut Step,
    ) {
        self.catch_up(slot);
        let Message { seq, count, .. } = self.entries[slot].message;
        self.lanes.lane_mut(self.entries[slot].lane).stats.dead_lettered += 1;
        step.facts.push(Fact::Died {
            queue: self.id,
            seq,
            count,
            deaths: deaths.clone(),
            attempts: attempts.clone(),
        });
        self.set_attempts(slot, attempts);
        self.lay_out(slot, Some(deaths));
    }

    /// Replaces the attempts of a message. `None` leaves them as they are.
    pub(crate) fn set_attempts(&mut self, slot: Slot, attempts: Option<Arc<Attempts>>) {
        if attempts.is_some() {
            let message = &mut self.entries[slot].message;
            let before = message.history_size();
            message.extras.get_or_insert_default().attempts = attempts;
            self.history_bytes = self.history_bytes - before + message.history_size();
        }
    }

    /// Out of the lanes, dead. Without a history it is still to be decided what becomes of it, in the same step.
    pub(super) fn lay_out(&mut self, slot: Slot, deaths: Option<Arc<Deaths>>) {
        if self.settings.last_value.is_some() {
            self.by_key.forget(&self.entries, slot);
        }
        if let Some(after) = deaths.as_deref() {
            let before = self.entries[slot].message.deaths().map_or(0, Deaths::size);
            self.history_bytes = self.history_bytes - before + after.size();
        }
        self.change_state(slot, |entry| {
            entry.free();
            entry.outdated = false;
            entry.message.set_work(None);
            entry.message.state = State::Dead;
            if deaths.is_some() {
                entry.message.extras.get_or_insert_default().deaths = deaths;
            }
        });
    }

    /// A message that moves away: it is gone here, its content stays in use.
    pub(crate) fn move_away(&mut self, slot: Slot, died: bool) -> Message {
        self.catch_up(slot);
        let stats = &mut self.lanes.lane_mut(self.entries[slot].lane).stats;
        stats.moved += 1;
        stats.dead_lettered += u64::from(died);
        self.take_out(slot)
    }

    /// A message that ended so: it is gone here, and whoever asks says what becomes of it.
    pub(crate) fn retire(&mut self, slot: Slot, how: Settled) -> Message {
        self.catch_up(slot);
        self.lanes.count_settled(self.entries[slot].lane, how);
        self.take_out(slot)
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
        let (seq, original) = (self.entries[slot].message.seq, self.settings.original(given));
        self.set_priority(slot, priority, original);
        self.entries[slot].is_untold = false;
        step.facts.push(Fact::Reprioritised { queue: self.id, seq, priority, original });
    }

    pub(crate) fn set_priority(&mut self, slot: Slot, priority: Priority, original: Original) {
        let entry = &mut self.entries[slot];
        if entry.message.priority == priority {
            entry.message.original = original;
            // What is being written says the one before.
            entry.spilling = false;
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
        let (priority, original) = promote
            .map_or((priority, original), |(priority, given)| (priority, self.settings.original(given)));
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
}
