//! A purge: messages that stand so are gone, all at once.
//!
//! Where few stay, they are what is moved: into new slots, in which they stand just as they stood, and what is left in the old ones is
//! [`Remains`](crate::remains::Remains). One fact says it, with the sequences of those that stay.

use std::collections::BTreeSet;

use super::{Queue, room_of};
use crate::command::{Effect, Step};
use crate::entries::{Entries, List, Slot};
use crate::fact::Fact;
use crate::groups::Groups;
use crate::ids::{Seq, Time};
use crate::index::SeqIndex;
use crate::lane::Lane;
use crate::message::{Settled, State, Status};
use crate::remains::Heap;
use crate::run::RunId;

/// Where no more messages stay, a purge moves them and leaves the others; where more do, it takes the others out one by one.
const STAY_MAX: u64 = 4_096;

/// What a purge takes.
#[derive(Clone, Copy, Debug)]
struct Taken {
    ready: bool,
    delayed: bool,
    dead: bool,
}

impl Taken {
    /// By default what is ready and delayed. What is leased is never taken.
    fn of(status: Option<Status>) -> Self {
        let is = |meant| status == Some(meant);
        Self {
            ready: status.is_none() || is(Status::Ready),
            delayed: status.is_none() || is(Status::Delayed),
            dead: is(Status::Dead),
        }
    }
}

/// Messages on their way from old slots into new ones.
struct Move {
    from: Entries,
    to: Entries,
    by_seq: SeqIndex,
}

impl Move {
    fn message(&mut self, slot: Slot) -> Slot {
        let entry = self.from.take(slot);
        let seq = entry.message.seq;
        let slot = self.to.put(entry);
        self.by_seq.insert(seq, slot);
        slot
    }

    /// The same messages in the same order.
    fn list(&mut self, list: List) -> List {
        let slots: Vec<Slot> = list.iter(&self.from).collect();
        let mut moved = List::default();
        for slot in slots {
            let slot = self.message(slot);
            moved.push_back(&mut self.to, slot);
        }
        moved
    }
}

impl Queue {
    /// Purges what stands so. Answers how many messages that were, and what is left of them in memory.
    pub(crate) fn purge(&mut self, status: Option<Status>, step: &mut Step) -> (u64, Heap) {
        let taken = Taken::of(status);
        let spilled = if taken.ready { self.spilled } else { 0 };
        let count = self.purgeable_count(status) - spilled;
        if !self.few_stay(taken, count + spilled) {
            for slot in self.purgeable(status) {
                self.settle(slot, Settled::Removed, step);
            }
            self.say_held(taken, step);
            return (count + self.settle_runs(taken, step), Heap::default());
        }
        let kept = self.staying(taken).into_iter().map(|slot| self.entries[slot].message.seq);
        let kept = kept.collect::<BTreeSet<Seq>>().into_iter().collect();
        step.facts.push(Fact::Purged { queue: self.id, before: self.next_seq, kept });
        let count = count + self.settle_runs(taken, step);
        (count, self.leave_behind(taken))
    }

    /// Whether a purge takes more than so many messages, one by one.
    pub(crate) fn is_purge_long(&self, status: Option<Status>, most: usize) -> bool {
        let count = self.purgeable_count(status);
        count > most as u64 && !self.is_remote() && !self.few_stay(Taken::of(status), count)
    }

    /// Whether so few messages stay that they are moved rather than the others taken out.
    fn few_stay(&self, taken: Taken, count: u64) -> bool {
        let stay = self.lanes.iter().map(|lane| lane.standing(None)).sum::<u64>() - count;
        let woken = self.groups.as_ref().map_or(0, |groups| groups.woken() as u64);
        // What is ready may be in runs, and groups know its order.
        let is_ready_easy =
            taken.ready || (self.runs.is_empty() && self.quarantined.is_empty() && self.groups.is_none());
        count > 0 && stay + woken <= STAY_MAX && is_ready_easy && !self.is_remote()
    }

    /// The slots of what a purge does not take.
    fn staying(&self, taken: Taken) -> Vec<Slot> {
        let mut slots = self.leased_slots();
        let lists = [(taken.delayed, self.delayed), (taken.dead, self.dead)];
        for (_, list) in lists.into_iter().filter(|(is_taken, _)| !is_taken) {
            slots.extend(list.iter(&self.entries));
        }
        if !taken.ready {
            slots.extend(self.lanes.iter().flat_map(|lane| lane.iter(&self.entries)));
        }
        slots
    }

    /// Takes what stays along, into new slots, and leaves the others behind in the old ones.
    fn leave_behind(&mut self, taken: Taken) -> Heap {
        let staying = self.staying(taken);
        let message = |slot: &Slot| &self.entries[*slot].message;
        let seqs = |slots: &mut dyn Iterator<Item = &Slot>| -> Vec<Seq> {
            slots.map(|slot| message(slot).seq).collect()
        };
        let has_id = |slot: &&Slot| {
            message(slot).id().is_some() && self.by_id.twin(&self.entries, **slot) == Some(**slot)
        };
        let has_key = |slot: &&Slot| {
            self.settings.last_value.is_some() && self.by_key.twin(&self.entries, **slot) == Some(**slot)
        };
        let found_by_id = seqs(&mut staying.iter().filter(has_id));
        let found_by_key = seqs(&mut staying.iter().filter(has_key));
        let from = std::mem::take(&mut self.entries);
        let mut moving = Move { from, to: Entries::default(), by_seq: SeqIndex::default() };
        let returned = self.move_lists(taken, &mut moving);
        let Move { from, to, by_seq } = moving;
        self.entries = to;
        let by_seq = std::mem::replace(&mut self.by_seq, by_seq);
        self.by_id = self.by_id.emptied();
        self.by_key = self.by_key.emptied();
        let slot_of = |seq: &Seq| self.by_seq.get(*seq).expect("it was moved");
        for slot in found_by_id.iter().map(slot_of) {
            self.by_id.point(&self.entries, slot);
        }
        for slot in found_by_key.iter().map(slot_of) {
            self.by_key.point(&self.entries, slot);
        }
        let groups = if taken.ready { self.leave_all_groups() } else { None };
        self.count_anew(taken);
        Heap { entries: from, by_seq, returned, groups, spent: Vec::new() }
    }

    /// Groups know only what is leased from now on. Answers what is to be freed.
    fn leave_all_groups(&mut self) -> Option<Box<Groups>> {
        let key = |slot: &Slot| self.entries[*slot].message.key().unwrap_or("").to_owned();
        let out: Vec<String> = self.leased_slots().iter().map(key).collect();
        self.groups.as_mut().map(|groups| Box::new(groups.leave_all(&out)))
    }

    /// Moves each list of what stays, and forgets the others. Answers what of the lanes is to be freed.
    fn move_lists(&mut self, taken: Taken, moving: &mut Move) -> Vec<std::collections::BTreeMap<Seq, Slot>> {
        self.pulled = moving.list(self.pulled);
        for consumer in self.roster.ids().collect::<Vec<_>>() {
            let held = self.roster.get(consumer).map(|taker| taker.kind.held());
            if let Some(held) = held.filter(|held| held.len() > 0) {
                self.roster.set_held(consumer, moving.list(held));
            }
        }
        self.delayed = if taken.delayed { List::default() } else { moving.list(self.delayed) };
        self.dead = if taken.dead { List::default() } else { moving.list(self.dead) };
        let mut left = Vec::new();
        for index in self.lanes.indices() {
            let (fresh, returned) = self.lanes.lane_mut(index).lists_mut();
            if taken.ready {
                *fresh = List::default();
                left.push(std::mem::take(returned));
            } else {
                *fresh = moving.list(*fresh);
                returned.values_mut().for_each(|slot| *slot = moving.message(*slot));
            }
        }
        left.retain(|returned| !returned.is_empty());
        left
    }

    /// What was taken counts as removed, and what stays as it did.
    fn count_anew(&mut self, taken: Taken) {
        self.is_active = true;
        for index in self.lanes.indices() {
            count_lane_anew(self.lanes.lane_mut(index), taken);
            self.lanes.count_ready(index);
        }
        self.alarms = self.alarms.emptied();
        (self.waiting, self.waiting_bytes, self.history_bytes) = (0, 0, 0);
        for slot in self.by_seq.from(Seq(0)).collect::<Vec<_>>() {
            let message = &self.entries[slot].message;
            self.history_bytes += message.history_size();
            if matches!(message.state, State::Ready | State::Delayed { .. }) {
                let room = room_of(message);
                (self.waiting, self.waiting_bytes) = (self.waiting + room.0, self.waiting_bytes + room.1);
            }
            let when = self.entries[slot].alarm();
            if when != Time::NEVER {
                self.alarms.set(&mut self.entries, slot, when);
            }
        }
    }

    /// Says that what consumers hold is here: that it was fetched from a run no fact says, and the end of the run would be its own in a recovery.
    fn say_held(&self, taken: Taken, step: &mut Step) {
        if !taken.ready || (self.runs.is_empty() && self.quarantined.is_empty()) {
            return;
        }
        for slot in self.leased_slots() {
            let entry = &self.entries[slot];
            if entry.holder().is_some() {
                let (seq, count) = (entry.message.seq, entry.message.count);
                step.facts.push(Fact::PutBack { queue: self.id, seq, count, due: None, attempts: None });
            }
        }
    }

    /// What is ready goes from its runs, too, and what of them is in quarantine.
    fn settle_runs(&mut self, taken: Taken, step: &mut Step) -> u64 {
        if !taken.ready {
            return 0;
        }
        let runs: Vec<RunId> = self.runs.keys().chain(self.quarantined.keys()).copied().collect();
        let mut count = 0;
        if !runs.is_empty() && self.groups.is_some() {
            let left = self.leave_all_groups();
            self.spent.extend(left.map(|left| *left));
        }
        for run in runs {
            count += self.settle_run(run, Settled::Removed, step);
            step.facts.push(Fact::RunSettled { queue: self.id, run, how: Settled::Removed });
        }
        count
    }

    /// Takes for true that the messages up to this sequence are gone, but for these, in order.
    pub(crate) fn fold_purged(&mut self, before: Seq, kept: &[Seq], step: &mut Step) {
        self.next_seq = self.next_seq.max(before);
        self.bring_each(kept);
        let is_gone = |seq: Seq| seq < before && kept.binary_search(&seq).is_err();
        let gone: Vec<Slot> =
            (self.by_seq.from(Seq(0))).filter(|slot| is_gone(self.entries[*slot].message.seq)).collect();
        for slot in gone {
            self.lanes.count_settled(self.entries[slot].lane, Settled::Removed);
            step.effects.push(Effect::Released(self.take_out(slot).place));
        }
        let over: Vec<RunId> = self.runs.values().filter(|run| run.last < before).map(|run| run.id).collect();
        for run in over.into_iter().chain(self.quarantined.keys().copied().collect::<Vec<_>>()) {
            self.settle_run(run, Settled::Removed, step);
        }
    }
}

fn count_lane_anew(lane: &mut Lane, taken: Taken) {
    let mut removed = 0;
    if taken.ready {
        removed += std::mem::take(&mut lane.ready);
        lane.bytes -= std::mem::take(&mut lane.ready_bytes);
    }
    if taken.delayed {
        removed += std::mem::take(&mut lane.delayed);
        lane.bytes = lane.ready_bytes + lane.leased_bytes;
    }
    if taken.dead {
        removed += std::mem::take(&mut lane.dead);
    }
    lane.stats.settled_many(Settled::Removed, removed);
}
