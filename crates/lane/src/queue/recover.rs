//! What a recovery does to a queue, fact by fact. Nothing is decided here.

use std::sync::Arc;

use super::Queue;
use crate::command::{Effect, Step};
use crate::deaths::Deaths;
use crate::entries::Slot;
use crate::ids::{LeaseId, Place, Seq, Time};
use crate::message::{Message, Settled, State};
use crate::ordinals::Ordinals;
use crate::readers::Reader;
use crate::record::Work;
use crate::run::{Rewritten, Run, RunId, RunRecord};

/// More bytes of content than a queue ever holds.
const QUEUE_BYTES_MAX: u64 = 1 << 62;

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

    pub(crate) fn fold_leased(
        &mut self,
        slot: Slot,
        lease: LeaseId,
        deadline: Time,
        count: u32,
        work: Option<Work>,
    ) {
        self.change_state(slot, |entry| {
            entry.message.count = count;
            entry.message.set_work(work);
            entry.message.state = State::Leased { lease, deadline };
        });
    }

    pub(crate) fn fold_put_back(&mut self, slot: Slot, count: u32, due: Option<Time>) {
        self.entries[slot].message.count = count;
        self.wait(slot, due);
    }

    pub(crate) fn fold_died(&mut self, slot: Slot, count: u32, deaths: Arc<Deaths>) {
        self.entries[slot].message.count = count;
        self.lay_out(slot, Some(deaths));
    }

    /// Whether the bytes of the messages that a record counts can be counted here.
    pub(crate) fn can_count(&self, record: &RunRecord) -> bool {
        self.waiting_bytes.saturating_add(record.bytes) <= QUEUE_BYTES_MAX
    }

    /// Takes for true that messages wait in a run, some of which may have waited in others, which are over. Those that are
    /// in memory leave it.
    pub(crate) fn fold_run(
        &mut self,
        record: &RunRecord,
        of: &[Rewritten],
        may_be_here: bool,
        step: &mut Step,
    ) {
        self.next_seq = self.next_seq.max(record.last.next());
        let mut known = self.close_run(record.run, record.next, &record.holes);
        for old in of {
            let messages = self.close_run(old.run, old.next, &old.holes);
            if messages > 0 {
                step.effects.push(Effect::Forgotten { run: old.run, messages });
            }
            known += messages;
        }
        if may_be_here && known < record.waiting() {
            self.release_run(record, step);
        }
        if record.waiting() > 0 {
            self.enter_run(record);
        }
    }

    /// Takes a run that its lane has not counted yet.
    pub(crate) fn enter_run(&mut self, record: &RunRecord) {
        let index = self.add_run(record);
        self.lanes.lane_mut(index).stats.published += record.waiting();
    }

    /// Undoes [`Queue::enter_run`].
    pub(super) fn withdraw_run(&mut self, id: RunId) -> Option<Run> {
        let run = self.remove_run(id)?;
        self.lanes.lane_mut(run.lane).stats.published -= run.waiting();
        Some(run)
    }

    /// Forgets a run of which is known now what was taken. What is taken and still waits has been fetched, which no fact
    /// says. Answers how many messages waited.
    fn close_run(&mut self, id: RunId, next: u32, holes: &Ordinals) -> u64 {
        self.fetch_taken(id, next, holes);
        self.quarantined.remove(&id);
        self.withdraw_run(id).map_or(0, |run| run.waiting())
    }

    /// Takes out of memory what waits in a run.
    fn release_run(&mut self, record: &RunRecord, step: &mut Step) {
        let is_here = self.by_seq.from(record.first).next();
        if is_here.is_none_or(|slot| self.entries[slot].message.seq > record.last) {
            return;
        }
        let run = Run::new(record, 0);
        let backlog = self.backlog.clone();
        for (_, message) in Reader::new(&*backlog, &run, 0) {
            if let Some(slot) = self.by_seq.get(message.seq) {
                self.move_out(slot);
                self.lanes.lane_mut(self.entries[slot].lane).stats.published -= 1;
                step.effects.push(Effect::Released(self.take_out(slot).place));
            }
        }
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
