//! Messages that leave memory and come back: runs.
//!
//! A message is either in the entries or waits in exactly one run; the gauges count it the same.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::{Bound, Range};
use std::sync::Arc;

use super::Queue;
use crate::command::{Effect, Step};
use crate::entries::Slot;
use crate::fact::Fact;
use crate::groups::Groups;
use crate::ids::{Seq, Time};
use crate::lane::Lane;
use crate::message::{Message, Settled};
use crate::ordinals::Ordinals;
use crate::readers::{CHUNK, Downwards, MergedRuns, Reader, Upwards};
use crate::remains::Heap;
use crate::run::{Run, RunId, RunRecord};
use crate::walk::{Mark, OutOfLooks};

/// Messages lie close together if their sequences span at most this many for each of them.
const APART_MAX: u64 = 16;

impl Queue {
    // ---- out of memory ----

    /// Ready messages in memory.
    pub(crate) fn ready_here(&self) -> u64 {
        self.lanes.iter().map(Lane::ready_here).sum()
    }

    /// The segment of a plan is durable: what nothing has happened to since leaves memory.
    pub(crate) fn spilled(&mut self, run: RunId, step: &mut Step) {
        let Some(seqs) = self.spilling.remove(&run) else { return };
        self.tell_runs(step);
        let slots: Vec<Option<Slot>> = seqs
            .iter()
            .map(|seq| self.by_seq.get(*seq).filter(|slot| self.entries[*slot].spilling))
            .collect();
        let waiting = || slots.iter().flatten().map(|slot| &self.entries[*slot].message);
        let Some(first) = waiting().next() else {
            // Nothing is left of it: its segment is of no use to anybody.
            step.effects.push(Effect::Forgotten { run, messages: 0 });
            return;
        };
        let next = slots.iter().position(Option::is_some).unwrap_or(slots.len());
        let holes = (next..slots.len()).filter(|at| slots[*at].is_none());
        let count = |has: &dyn Fn(&Message) -> bool| waiting().filter(|message| has(message)).count() as u32;
        let record = RunRecord {
            run,
            priority: first.priority,
            count: slots.len() as u32,
            ids: count(&|message| message.id().is_some()),
            deaths: count(&|message| self.is_from_elsewhere(message)),
            bytes: waiting().map(|message| u64::from(message.bytes)).sum(),
            expires: waiting().map(|message| message.expires).min().unwrap_or(Time::NEVER),
            first: first.seq,
            last: *seqs.last().expect("a plan has a message"),
            next: next as u32,
            holes: holes.map(|at| at as u32).collect(),
            is_mixed: false,
        };
        for slot in slots.into_iter().flatten() {
            step.effects.push(Effect::Released(self.put_away(slot).place));
        }
        self.add_run(&record);
        step.facts.push(Fact::RunStored { queue: self.id, run: Box::new(record) });
    }

    /// The segment of a plan, to spill or to rewrite, could not be written.
    pub(crate) fn unspilled(&mut self, run: RunId) {
        self.rewriting.remove(&run);
        for seq in self.spilling.remove(&run).unwrap_or_default() {
            if let Some(slot) = self.by_seq.get(seq) {
                self.entries[slot].spilling = false;
            }
        }
    }

    /// Says of runs what no other fact does: that lanes were changed while there were some, and which were emptied, since what was fetched from them without a fact may wait in
    /// another run from now on.
    pub(crate) fn tell_runs(&mut self, step: &mut Step) {
        if std::mem::take(&mut self.has_untold_lanes) {
            step.facts.push(Fact::LanesChanged { queue: self.id });
        }
        let emptied = std::mem::take(&mut self.emptied).into_iter();
        step.facts.extend(emptied.map(|run| Fact::RunFetched { queue: self.id, run }));
    }

    /// Takes a run as it is, its record written elsewhere. Answers its lane.
    pub(crate) fn add_run(&mut self, record: &RunRecord) -> u16 {
        let mut index = self.open_lane(record.priority);
        if record.is_mixed {
            let name = Arc::clone(&self.lanes.lane(index).name);
            index = self.lanes.add_former(name, &self.settings);
        }
        self.put_run(record, index);
        index
    }

    /// Puts a run into a lane.
    pub(super) fn put_run(&mut self, record: &RunRecord, index: u16) {
        let run = Run::new(record, index);
        let (count, bytes) = (run.waiting(), run.bytes);
        (self.waiting, self.waiting_bytes) = (self.waiting + count, self.waiting_bytes + bytes);
        self.spilled += count;
        let lane = self.lanes.lane_mut(index);
        (lane.ready, lane.spilled) = (lane.ready + count, lane.spilled + count);
        (lane.ready_bytes, lane.bytes) = (lane.ready_bytes + bytes, lane.bytes + bytes);
        lane.spilled_to = lane.spilled_to.max(run.last);
        self.spilled_to = self.spilled_to.max(run.last);
        let older = lane.runs.range(..(run.first, run.id)).next_back().map(|(_, id)| &self.runs[id]);
        let younger = lane.runs.range((run.first, run.id)..).next();
        lane.is_tangled |= older.is_some_and(|older| older.last >= run.first)
            || younger.is_some_and(|(first, _)| *first <= run.last);
        lane.runs.insert((run.first, run.id));
        self.lanes.count_ready(index);
        self.run_alarms.insert((run.expires, run.id));
        self.spilled_ids += u64::from(run.ids);
        self.runs.insert(run.id, run);
    }

    pub(super) fn remove_run(&mut self, id: RunId) -> Option<Run> {
        let run = self.runs.remove(&id)?;
        let (count, bytes) = (run.waiting(), run.bytes);
        (self.waiting, self.waiting_bytes) = (self.waiting - count, self.waiting_bytes - bytes);
        self.spilled -= count;
        let lane = self.lanes.lane_mut(run.lane);
        (lane.ready, lane.spilled) = (lane.ready - count, lane.spilled - count);
        (lane.ready_bytes, lane.bytes) = (lane.ready_bytes - bytes, lane.bytes - bytes);
        lane.runs.remove(&(run.first, run.id));
        lane.is_tangled &= !lane.runs.is_empty();
        self.lanes.count_ready(run.lane);
        self.run_alarms.remove(&(run.expires, run.id));
        self.spilled_ids -= u64::from(run.ids);
        Some(run)
    }

    /// A run that is in a lane again has in quarantine what it had there before.
    pub(crate) fn keep_quarantine(&mut self, id: RunId, before: Run) {
        self.runs.get_mut(&id).expect("it was just put there").take_quarantine_of(before);
    }

    /// Every message that waits in a run is gone, and what of it is in quarantine. Answers how many both were.
    pub(crate) fn settle_run(&mut self, id: RunId, how: Settled, step: &mut Step) -> u64 {
        if let Some(run) = self.quarantined.remove(&id) {
            step.effects.push(Effect::Forgotten { run: id, messages: 0 });
            return run.quarantined();
        }
        let Some(run) = self.remove_run(id) else { return 0 };
        let messages = run.waiting();
        self.lanes.lane_mut(run.lane).stats.settled_many(how, messages);
        step.effects.push(Effect::Forgotten { run: id, messages });
        messages + run.quarantined()
    }

    /// What is in quarantine is given up.
    pub(crate) fn give_up_quarantined(&mut self) {
        self.quarantined.clear();
        for run in self.runs.values_mut() {
            run.give_up_quarantined();
        }
    }

    /// What a recovery must know of a run: `None` if nothing of it waits, not even in quarantine.
    pub(crate) fn run_record(&self, id: RunId) -> Option<RunRecord> {
        self.runs.get(&id).or_else(|| self.quarantined.get(&id)).map(Run::durable_record)
    }

    /// Every message is gone with its queue: nobody needs its runs any more. Answers what is left in memory.
    pub(crate) fn into_heap(mut self, step: &mut Step) -> Heap {
        self.forget_runs(step);
        if self.is_remote() {
            // There are no contents here of what is kept elsewhere.
            return Heap::default();
        }
        let lanes = self.lanes.indices().into_iter();
        let returned = lanes.map(|index| self.lanes.lane_mut(index).take_returned());
        let returned = returned.filter(|returned| !returned.is_empty()).collect();
        let before = self.groups.as_mut().and_then(|groups| groups.take_before());
        self.spent.extend(before.map(|before| *before));
        Heap { entries: self.entries, by_seq: self.by_seq, returned, groups: self.groups, spent: self.spent }
    }

    /// Nobody needs the runs of a queue that is gone.
    fn forget_runs(&self, step: &mut Step) {
        let runs = self.runs.values().map(|run| Effect::Forgotten { run: run.id, messages: run.waiting() });
        step.effects.extend(runs);
        step.effects.extend(self.quarantined.keys().map(|run| Effect::Forgotten { run: *run, messages: 0 }));
        step.effects.extend(
            self.lost.iter().map(|((run, _), messages)| Effect::Forgotten { run: *run, messages: *messages }),
        );
    }

    // ---- back into memory ----

    /// Brings one message of a run back.
    pub(super) fn fetch(&mut self, id: RunId, ordinal: u32, message: Message) -> Slot {
        // The run may be in a former lane.
        let own = self.open_lane(message.priority);
        let run = self.runs.get_mut(&id).expect("a run that is read is there");
        let (before, index) = (run.first, run.lane);
        let bytes = run.take(ordinal, &message);
        let (first, is_over) = (run.first, run.waiting() == 0);
        (self.waiting, self.waiting_bytes) = (self.waiting - 1, self.waiting_bytes - bytes);
        self.spilled -= 1;
        let lane = self.lanes.lane_mut(index);
        (lane.ready, lane.spilled) = (lane.ready - 1, lane.spilled - 1);
        (lane.ready_bytes, lane.bytes) = (lane.ready_bytes - bytes, lane.bytes - bytes);
        if first != before {
            lane.runs.remove(&(before, id));
            lane.runs.insert((first, id));
        }
        if is_over {
            self.run_is_over(id);
        }
        let seq = message.seq;
        if let Some(slot) = self.by_seq.get(seq) {
            // The record of the run was wrong: the message has left it.
            let published = &mut self.lanes.lane_mut(index).stats.published;
            *published = published.saturating_sub(1);
            return slot;
        }
        self.lanes.count_moved(index, own);
        let slot = self.enter(message, own);
        self.entries[slot].is_untold = true;
        self.by_seq.insert(seq, slot);
        self.index_texts(slot);
        // Nothing but where the message waits has changed.
        let was_active = self.is_active;
        if index == own {
            self.link(slot);
        } else {
            self.leave_group(slot, index);
            self.attach(slot);
        }
        self.is_active = was_active;
        slot
    }

    /// The group of a message does not know it any more in this lane.
    fn leave_group(&mut self, slot: Slot, lane: u16) {
        let Some(groups) = self.groups.as_mut().filter(|_| !self.lanes.lane(lane).is_ungrouped) else {
            return;
        };
        let message = &self.entries[slot].message;
        groups.leave(message.key(), lane, message.seq);
    }

    /// Brings back what waits in a run and is taken by another account of it.
    pub(super) fn fetch_taken(&mut self, id: RunId, next: u32, holes: &Ordinals) {
        let backlog = self.backlog.clone();
        let Some(run) = self.runs.get(&id) else { return };
        let mut taken = run.ordinals_taken(next, holes).peekable();
        let mut fetched = Vec::new();
        while let Some(from) = taken.peek().copied() {
            let read = run.read(&*backlog, from, CHUNK);
            if read.is_empty() {
                let lost = backlog.lost(id, from);
                if lost == 0 {
                    break;
                }
                while taken.next_if(|ordinal| *ordinal - from < lost).is_some() {}
                continue;
            }
            let read = (from..).zip(read);
            fetched.extend(read.filter(|(ordinal, _)| taken.next_if_eq(ordinal).is_some()));
        }
        drop(taken);
        for (ordinal, message) in fetched {
            self.fetch(id, ordinal, message);
        }
    }

    /// The message of a sequence, brought into memory if it waits in a run.
    pub(crate) fn bring(&mut self, seq: Seq) -> Option<Slot> {
        self.by_seq.get(seq).or_else(|| {
            let (id, ordinal, message) = self.in_runs(seq)?;
            Some(self.fetch(id, ordinal, message))
        })
    }

    /// Brings the messages of these sequences into memory, if they wait in runs.
    pub(crate) fn bring_each(&mut self, seqs: &[Seq]) {
        for (run, ordinal, message) in self.each_in_runs(seqs) {
            self.fetch(run, ordinal, message);
        }
    }

    /// Brings back everything that waits in runs.
    pub(crate) fn bring_all(&mut self) {
        for run in self.runs.keys().copied().collect::<Vec<_>>() {
            self.bring_run(run);
        }
    }

    /// Brings back everything that waits in a run.
    pub(crate) fn bring_run(&mut self, run: RunId) {
        while self.runs.contains_key(&run) && self.load_next(run) {}
    }

    /// Brings back what waits in runs and died in another queue, where it may go back to.
    pub(crate) fn bring_died(&mut self) {
        let ids: Vec<RunId> = self.runs.values().filter(|run| run.deaths > 0).map(|run| run.id).collect();
        for id in ids {
            let backlog = self.backlog.clone();
            let all = Reader::new(&*backlog, &self.runs[&id], 0);
            let died: Vec<_> = all.filter(|(_, message)| self.is_from_elsewhere(message)).collect();
            for (ordinal, message) in died {
                self.fetch(id, ordinal, message);
            }
        }
    }

    /// As [`Queue::bring_died`], of these sequences.
    pub(crate) fn bring_died_of(&mut self, seqs: &[Seq]) {
        if self.runs.values().all(|run| run.deaths == 0) {
            return;
        }
        for (run, ordinal, message) in self.each_in_runs(seqs) {
            if self.is_from_elsewhere(&message) {
                self.fetch(run, ordinal, message);
            }
        }
    }

    fn is_from_elsewhere(&self, message: &Message) -> bool {
        message.home().is_some_and(|home| *home != self.name)
    }

    /// Has the `count` oldest messages of a lane in memory, if it has so many. False: they cannot be read.
    pub(crate) fn load(&mut self, rank: usize, count: usize) -> bool {
        let index = self.lanes.index_at(rank);
        loop {
            let lane = self.lanes.lane(index);
            let Some((first, id)) = lane.runs.first().copied() else { return true };
            let last = match count {
                1 => lane.head(&self.entries),
                _ => lane.iter(&self.entries).nth(count - 1),
            };
            if last.is_some_and(|slot| self.entries[slot].message.seq < first) {
                return true;
            }
            if !self.load_next(id) {
                return false;
            }
        }
    }

    /// Messages of a run are in quarantine from now on: they wait no longer. [`Queue::take_lost`] says how many they were.
    pub(crate) fn lose(&mut self, id: RunId, ordinals: Range<u32>) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let end = ordinals.end;
        let (messages, bytes) = run.lose(ordinals.clone());
        if messages == 0 {
            return;
        }
        let (index, is_over, seqs) = (run.lane, run.waiting() == 0, (run.begins, run.last));
        (self.waiting, self.waiting_bytes) = (self.waiting - messages, self.waiting_bytes - bytes);
        self.spilled -= messages;
        let lane = self.lanes.lane_mut(index);
        (lane.ready, lane.spilled) = (lane.ready - messages, lane.spilled - messages);
        (lane.ready_bytes, lane.bytes) = (lane.ready_bytes - bytes, lane.bytes - bytes);
        lane.stats.settled_many(Settled::Removed, messages);
        self.lanes.count_ready(index);
        if is_over {
            self.run_is_over(id);
        }
        self.leave_groups(index, id, &ordinals, seqs);
        *self.lost.entry((id, end)).or_default() += messages;
    }

    /// Takes what is lost of a run out of the groups of its lane. The run began and ended with these sequences; of what was lost only its place in the run is known.
    fn leave_groups(&mut self, index: u16, id: RunId, lost: &Range<u32>, (first, last): (Seq, Seq)) {
        let Some(groups) = self.groups.as_ref().filter(|_| !self.lanes.lane(index).is_ungrouped) else {
            return;
        };
        let mut gone = groups.within(index, first, last);
        gone.retain(|(_, seq)| {
            let lay_there = lost.contains(&self.backlog.rank(id, *seq));
            lay_there && self.by_seq.get(*seq).is_none() && self.in_runs(*seq).is_none()
        });
        for (key, seq) in gone {
            self.groups.iter_mut().for_each(|groups| groups.leave(Some(&key), index, seq));
        }
    }

    /// Nothing waits in a run any more, or only what is in quarantine.
    fn run_is_over(&mut self, id: RunId) {
        match self.remove_run(id) {
            Some(run) if run.quarantined() > 0 => drop(self.quarantined.insert(id, run)),
            _ => self.emptied.push(id),
        }
    }

    /// How many messages of a run, of those that ended before this ordinal, were lost since this was asked last.
    pub(crate) fn take_lost(&mut self, id: RunId, end: u32) -> u64 {
        self.lost.remove(&(id, end)).unwrap_or_default()
    }

    /// Brings back the next few messages of a run, past those that are lost. False if they cannot be read.
    fn load_next(&mut self, id: RunId) -> bool {
        self.load_some(id, CHUNK)
    }

    /// The same, of at most so many.
    pub(super) fn load_some(&mut self, id: RunId, most: usize) -> bool {
        let backlog = self.backlog.clone();
        let next = self.runs[&id].next();
        let read = self.runs[&id].read(&*backlog, next, most);
        if read.is_empty() {
            let lost = backlog.lost(id, next);
            self.lose(id, next..next.saturating_add(lost));
            return lost > 0;
        }
        for (ordinal, message) in (next..).zip(read) {
            if self.runs.get(&id).is_some_and(|run| run.waits(ordinal)) {
                self.fetch(id, ordinal, message);
            }
        }
        true
    }

    /// Has the message in memory that goes first of a lane, if one may go. False: it cannot be read.
    pub(super) fn load_head(&mut self, rank: usize) -> bool {
        if self.groups.is_none() {
            return self.load(rank, 1);
        }
        let index = self.lanes.index_at(rank);
        while let Some(seq) = self.groups.as_mut().and_then(|groups| groups.settle_head(index)) {
            if self.by_seq.get(seq).is_some() {
                return true;
            }
            match self.in_runs(seq) {
                Some((id, ordinal, message)) => self.fetch_heads(id, ordinal, message),
                None if !self.lose_at(index, seq) => return false,
                None => {}
            }
        }
        true
    }

    /// Brings the oldest message of a key back, and those behind it in its run that are the oldest of theirs, too: they go soon. More are read at once
    /// where more of them were.
    fn fetch_heads(&mut self, id: RunId, ordinal: u32, head: Message) {
        let Some(ahead) = self.groups.as_ref().map(|groups| groups.ahead as usize) else { return };
        let next = ordinal + 1;
        let read = match self.runs.get(&id).filter(|run| ahead > 0 && next < run.count()) {
            Some(run) => run.read(&*self.backlog, next, ahead),
            None => Vec::new(),
        };
        self.fetch(id, ordinal, head);
        let mut heads = 0;
        for (ordinal, message) in (next..).zip(read) {
            let Some(run) = self.runs.get(&id).filter(|run| run.waits(ordinal)) else { continue };
            let is_oldest = |groups: &Groups| groups.is_oldest(message.key(), run.lane, message.seq);
            if !self.groups.as_ref().is_some_and(|groups| is_oldest(groups)) {
                break;
            }
            self.fetch(id, ordinal, message);
            heads += 1;
        }
        if let Some(groups) = &mut self.groups {
            groups.ahead = if heads == ahead { (2 * ahead + 1).min(CHUNK) } else { heads } as u32;
        }
    }

    /// The messages that are lost at this sequence of a lane wait no longer. False: none is.
    fn lose_at(&mut self, index: u16, seq: Seq) -> bool {
        let backlog = self.backlog.clone();
        let lane = self.lanes.lane(index);
        let runs = lane.runs.range(..=(seq, RunId(u64::MAX))).map(|(_, id)| &self.runs[id]);
        let lost = runs.filter(|run| seq <= run.last).map(|run| {
            let at = backlog.rank(run.id, seq);
            (run.id, at, backlog.lost(run.id, at))
        });
        let Some((id, at, lost)) = lost.into_iter().find(|(.., lost)| *lost > 0) else { return false };
        self.lose(id, at..at.saturating_add(lost));
        true
    }

    // ---- looking ----

    /// The run that comes after this one in its lane.
    pub(crate) fn run_after(&self, run: RunId) -> Option<RunId> {
        let run = self.runs.get(&run)?;
        let after = (Bound::Excluded((run.first, run.id)), Bound::Unbounded);
        self.lanes.lane(run.lane).runs.range(after).next().map(|(_, id)| *id)
    }

    /// A message that waits in a run.
    pub(crate) fn in_runs(&self, seq: Seq) -> Option<(RunId, u32, Message)> {
        if seq > self.spilled_to {
            return None;
        }
        let holds = |run: &&Run| run.first <= seq && seq <= run.last;
        let candidates = self.lanes.iter().flat_map(|lane| {
            let older = lane.runs.range(..=(seq, RunId(u64::MAX))).rev();
            older.take(if lane.is_tangled { usize::MAX } else { 1 }).map(|(_, id)| &self.runs[id])
        });
        candidates.filter(holds).find_map(|run| {
            let ordinal = self.backlog.find(run.id, seq).filter(|ordinal| run.waits(*ordinal))?;
            let message = run.read(&*self.backlog, ordinal, 1).pop()?;
            (message.seq == seq).then_some((run.id, ordinal, message))
        })
    }

    /// The messages of these sequences that wait in runs. Where the sequences lie close together, all runs that may have some are read side by side:
    /// one by one, a run of every lane would be searched for each of them.
    fn each_in_runs(&self, seqs: &[Seq]) -> Vec<(RunId, u32, Message)> {
        let is_away = |seq: &Seq| *seq <= self.spilled_to && self.by_seq.get(*seq).is_none();
        let away: BTreeSet<Seq> = seqs.iter().copied().filter(is_away).collect();
        let (Some(first), Some(last)) = (away.first().copied(), away.last().copied()) else {
            return Vec::new();
        };
        if last.0 - first.0 > APART_MAX * away.len() as u64 {
            return away.into_iter().filter_map(|seq| self.in_runs(seq)).collect();
        }
        let of_run = |run: &Run| {
            let there = Reader::between(&*self.backlog, run, first, last);
            let found = there.filter(|(_, message)| away.contains(&message.seq));
            found.map(|(ordinal, message)| (run.id, ordinal, message)).collect::<Vec<_>>()
        };
        let may_have = |run: &&Run| run.first <= last && first <= run.last;
        self.runs.values().filter(may_have).flat_map(of_run).collect()
    }

    /// The pending message of an id that waits in a run. One that is over may be there still, and another one beside it.
    pub(crate) fn in_runs_by_id(&self, now: Time, id: &str) -> Option<Message> {
        if self.spilled_ids == 0 {
            return None;
        }
        let waits = |(run, ordinal): &(RunId, u32)| self.runs.get(run).is_some_and(|run| run.waits(*ordinal));
        let candidates = self.backlog.find_id(self.id, id).into_iter().filter(waits);
        let mut read =
            candidates.filter_map(|(run, ordinal)| self.runs[&run].read(&*self.backlog, ordinal, 1).pop());
        read.find(|message| message.id() == Some(id) && !message.is_over(now))
    }

    /// A message and the index of its lane, wherever it is.
    pub(crate) fn look(&self, seq: Seq) -> Option<(u16, Cow<'_, Message>)> {
        if let Some(slot) = self.by_seq.get(seq) {
            let entry = &self.entries[slot];
            return Some((entry.lane, Cow::Borrowed(&entry.message)));
        }
        let (id, _, message) = self.in_runs(seq)?;
        Some((self.runs[&id].lane, Cow::Owned(message)))
    }

    /// Messages of a lane that wait in runs and have a lesser sequence.
    pub(crate) fn spilled_before(&self, index: u16, seq: Seq) -> u64 {
        let lane = self.lanes.lane(index);
        if seq > lane.spilled_to {
            return lane.spilled;
        }
        let older = lane.runs.range(..(seq, RunId(0))).map(|(_, id)| &self.runs[id]);
        let counts = older.map(|run| {
            if run.last < seq { run.waiting() } else { run.waiting_before(self.backlog.rank(run.id, seq)) }
        });
        counts.sum()
    }

    /// The ready messages of a lane, oldest first.
    pub(crate) fn lane_messages(&self, index: u16) -> impl Iterator<Item = Cow<'_, Message>> + '_ {
        self.lane_messages_after(index, Seq(0), self.lanes.lane(index).fresh_head())
    }

    /// The ready messages of a lane with a greater sequence, oldest first; `fresh` is the first of them in the lane's list `fresh`.
    pub(crate) fn lane_messages_after(
        &self,
        index: u16,
        after: Seq,
        fresh: Option<Slot>,
    ) -> impl Iterator<Item = Cow<'_, Message>> + '_ {
        let lane = self.lanes.lane(index);
        let here = lane.iter_after(&self.entries, after, fresh);
        let here = here.map(|slot| Cow::Borrowed(&self.entries[slot].message));
        let (mut here, mut spilled) = (here.peekable(), self.runs_from(std::iter::once(lane), after.next()));
        std::iter::from_fn(move || {
            let next = here.peek().map(|message| message.seq);
            spilled.next_before(next).map(|(_, message)| Cow::Owned(message)).or_else(|| here.next())
        })
    }

    /// The messages in runs of these lanes from a sequence on, by sequence.
    fn runs_from<'a>(
        &'a self,
        lanes: impl Iterator<Item = &'a Lane>,
        from: Seq,
    ) -> MergedRuns<'a, Upwards<'a>> {
        let of_lane = |lane: &'a Lane| {
            let up_to = ..=(from, RunId(u64::MAX));
            let begin = if lane.is_tangled { None } else { lane.runs.range(up_to).next_back() };
            let runs = lane.runs.range(begin.copied().unwrap_or((Seq(0), RunId(0)))..);
            runs.map(|(_, id)| &self.runs[id]).filter(move |run| run.last >= from)
        };
        MergedRuns::new(Upwards { backlog: &*self.backlog, from }, lanes.map(of_lane))
    }

    /// The messages in runs of these lanes before a sequence, the greatest first.
    pub(crate) fn runs_before<'a>(
        &'a self,
        lanes: impl Iterator<Item = &'a Lane>,
        before: Seq,
    ) -> MergedRuns<'a, Downwards<'a>> {
        let of_lane = |lane: &'a Lane| {
            let runs = lane.runs.range(..(before, RunId(0))).rev().map(|(_, id)| &self.runs[id]);
            let tangled = lane.is_tangled.then(|| {
                let mut runs: Vec<&Run> = runs.clone().collect();
                runs.sort_by_key(|run| Reverse(run.last));
                runs
            });
            let in_order = if lane.is_tangled { None } else { Some(runs) };
            tangled.into_iter().flatten().chain(in_order.into_iter().flatten())
        };
        MergedRuns::new(Downwards { backlog: &*self.backlog, before }, lanes.map(of_lane))
    }

    /// The first message of a lane's list `fresh` after a mark.
    ///
    /// # Errors
    /// As [`Lane::fresh_after`](crate::lane::Lane::fresh_after).
    pub(crate) fn fresh_after(
        &self,
        index: u16,
        mark: &mut Mark,
        left: &mut usize,
    ) -> Result<Option<Slot>, OutOfLooks> {
        self.lanes.lane(index).fresh_after(index, &self.entries, &self.by_seq, mark, left)
    }

    /// Whether [the backlog waits](crate::Backlog::awaits_disk).
    pub(crate) fn awaits_disk(&self) -> bool {
        self.backlog.awaits_disk()
    }

    /// Every message from this sequence on with the index of its lane, by sequence.
    pub(crate) fn messages_from(&self, seq: Seq) -> impl Iterator<Item = (u16, Cow<'_, Message>)> + '_ {
        let mut here = self.by_seq.from(seq).map(|slot| &self.entries[slot]).peekable();
        let mut spilled = self.runs_from(self.lanes.iter(), seq);
        std::iter::from_fn(move || {
            let next = here.peek().map(|entry| entry.message.seq);
            let spilled = spilled.next_before(next).map(|(lane, message)| (lane, Cow::Owned(message)));
            spilled.or_else(|| here.next().map(|entry| (entry.lane, Cow::Borrowed(&entry.message))))
        })
    }

    /// Every message that stands so, as a recovery must find it, by sequence.
    pub(crate) fn durable_messages(&self) -> impl Iterator<Item = Message> + '_ {
        self.messages_from(Seq(0)).map(|(_, message)| match self.by_seq.get(message.seq) {
            Some(slot) => self.entries[slot].durable(),
            None => message.into_owned(),
        })
    }
}
