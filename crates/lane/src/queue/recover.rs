//! What a recovery does to a queue, fact by fact. Nothing is decided here.

use super::Queue;
use crate::command::Step;
use crate::entries::Slot;
use crate::ids::{LeaseId, Place, Seq, Time};
use crate::message::{Death, Message, Settled, State};

impl Queue {
    /// Puts in a stored message, in place of what is there under its sequence. Answers the place that is free then.
    pub(crate) fn fold_stored(&mut self, message: Message) -> Option<Place> {
        let before = self.bring(message.seq);
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
}
