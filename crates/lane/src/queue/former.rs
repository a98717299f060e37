//! Former lanes: when the settings change what lanes a queue has, its messages move from those of before into those of now, a few a step.
//!
//! ```text
//!   rule ─▶ replace_lanes ─▶ former lanes, in memory and in runs ── move_former, step by step ─▶ lanes of now ─▶ forget_former
//! ```
//!
//! Until it has moved a message is seen, counted, removed and expires as any other, and is leased to nobody. Whatever changes its state or ends it moves it,
//! too, so an end is counted in the lane that its priority has now, wherever the message waited.
//! They move so: leases first, since caps and groups must count them; then what is ready, the most urgent lane first, the oldest first; then what is
//! delayed and dead letters. So the lists of those two have what has not moved at their beginning.

use super::Queue;
use crate::LANES_MAX;
use crate::entries::Slot;
use crate::ids::Seq;
use crate::lane::Lane;
use crate::message::State;
use crate::readers::CHUNK;
use crate::run::{RunId, RunRecord};

impl Queue {
    /// Its lanes are those of its settings from now on, with nothing in them: the `same` as before, or others.
    pub(super) fn replace_lanes(&mut self, same: bool) {
        if self.lanes.len() > LANES_MAX {
            // So many lanes were changed more than once: there are no ranks for all of them.
            self.move_all();
        }
        for seq in self.spilling.values().flatten() {
            if let Some(slot) = self.by_seq.get(*seq) {
                self.entries[slot].spilling = false;
            }
        }
        for run in self.runs.values_mut().chain(self.quarantined.values_mut()) {
            run.is_mixed = true;
            self.has_untold_lanes = true;
        }
        if !same {
            self.picker.ranks_changed(None);
        }
        self.lanes.replace(&self.settings, same);
        if self.is_remote() || self.is_empty() {
            self.move_all();
        }
    }

    /// Takes for true that the lanes were other ones when its runs were written: they are in former lanes.
    pub(crate) fn fold_lanes_changed(&mut self) {
        self.has_untold_lanes = false;
        for run in self.quarantined.values_mut() {
            run.is_mixed = true;
        }
        let of_now = self.runs.values().filter(|run| !run.is_mixed).map(|run| run.id);
        for id in of_now.collect::<Vec<_>>() {
            if let Some(run) = self.withdraw_run(id) {
                self.enter_run(&RunRecord { is_mixed: true, ..run.record() });
                self.keep_quarantine(id, run);
            }
        }
    }

    fn move_all(&mut self) {
        let mut room = usize::MAX;
        self.move_former(&mut room, true);
    }

    /// Whether messages are in former lanes.
    pub(crate) fn has_former(&self) -> bool {
        self.lanes.has_former()
    }

    /// Whether messages could move out of former lanes now, those in runs only where it `fetches`.
    pub(crate) fn has_moves(&self, fetches: bool) -> bool {
        let here = |lane: &Lane| lane.ready_here() + lane.delayed + lane.leased + lane.dead > 0;
        self.has_former() && (fetches || self.lanes.former().any(here))
    }

    /// Moves messages out of former lanes, up to `room`, which it counts down; those in runs only where it `fetches`.
    pub(crate) fn move_former(&mut self, room: &mut usize, fetches: bool) {
        if !self.has_former() {
            return;
        }
        let was_active = self.is_active;
        if self.lanes.former().any(|lane| lane.leased > 0) {
            let mut leased = self.leased_slots();
            leased.retain(|slot| self.is_in_former(*slot));
            for slot in leased.into_iter().take(*room) {
                self.move_one(slot, room);
            }
        }
        while *room > 0 && self.move_ready(room, fetches) {}
        while *room > 0
            && let Some(slot) = [self.delayed.head(), self.dead.head()]
                .into_iter()
                .flatten()
                .find(|slot| self.is_in_former(*slot))
        {
            self.move_one(slot, room);
        }
        self.is_active = was_active;
        if self.lanes.former().all(Lane::is_vacant) {
            self.lanes.forget_former();
        }
    }

    pub(super) fn is_in_former(&self, slot: Slot) -> bool {
        self.lanes.lane(self.entries[slot].lane).is_former
    }

    fn move_one(&mut self, slot: Slot, room: &mut usize) {
        *room -= 1;
        self.move_out(slot);
    }

    /// Moves a message that is about to end.
    pub(super) fn catch_up(&mut self, slot: Slot) {
        if self.has_former() && self.is_in_former(slot) {
            self.move_out(slot);
        }
    }

    /// Moves a message into the lane of now that takes it.
    pub(super) fn move_out(&mut self, slot: Slot) {
        if let State::Leased { .. } = self.entries[slot].message.state {
            return self.move_leased(slot);
        }
        self.detach(slot);
        self.attach(slot);
    }

    /// Whoever holds a message does not notice that it moves.
    fn move_leased(&mut self, slot: Slot) {
        let (left, bytes) = (self.entries[slot].lane, u64::from(self.entries[slot].message.bytes));
        self.enter_lane(slot);
        let to = self.entries[slot].lane;
        for (index, is_there) in [(left, false), (to, true)] {
            let lane = self.lanes.lane_mut(index);
            lane.bytes = if is_there { lane.bytes + bytes } else { lane.bytes - bytes };
            if let Some(groups) = self.groups.as_mut().filter(|_| !lane.is_ungrouped) {
                let message = &self.entries[slot].message;
                if is_there { groups.lend(message) } else { groups.take_back(message) }
            }
            self.lanes.count_leased(index, bytes, is_there);
        }
        self.lanes.count_moved(left, to);
    }

    /// Moves the oldest ready message of the most urgent former lane that has one, or some at once if they wait in a run. False: there is none.
    fn move_ready(&mut self, room: &mut usize, fetches: bool) -> bool {
        let of_rank = |rank: &usize| self.lanes.at_rank(*rank).ready > 0;
        let mut ranks = (self.lanes.current()..self.lanes.len()).filter(of_rank);
        let next = ranks.find_map(|rank| {
            let lane = self.lanes.at_rank(rank);
            let head = lane.head(&self.entries);
            let is_older =
                |(first, _): &&(Seq, RunId)| head.is_none_or(|head| *first < self.entries[head].message.seq);
            let run = lane.runs.first().filter(is_older).map(|(_, id)| *id).filter(|_| fetches);
            run.map(Err).or(head.map(Ok))
        });
        match next {
            None => return false,
            Some(Ok(slot)) => self.move_one(slot, room),
            Some(Err(run)) => {
                let most = CHUNK.min(*room);
                *room -= most;
                if !self.load_some(run, most) {
                    self.settle_in(run);
                }
            }
        }
        true
    }

    /// A run that cannot be read is of the lane that its record says.
    fn settle_in(&mut self, id: RunId) {
        let Some(run) = self.remove_run(id) else { return };
        let left = run.lane;
        let record = RunRecord { is_mixed: false, ..run.record() };
        let to = self.add_run(&record);
        for _ in 0..record.waiting() {
            self.lanes.count_moved(left, to);
        }
        self.keep_quarantine(id, run);
    }

    /// What is about to stand somewhere stands in a lane of now.
    pub(super) fn leave_former(&mut self, slot: Slot) {
        let left = self.entries[slot].lane;
        if self.lanes.lane(left).is_former {
            self.enter_lane(slot);
            self.lanes.count_moved(left, self.entries[slot].lane);
        }
    }
}
