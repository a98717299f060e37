//! Runs, as the broker is asked about them: which messages leave memory, what of them is in quarantine, and what the journal is to say.

use std::ops::Range;

use crate::broker::Broker;
use crate::command::{Effect, Step};
use crate::fact::Fact;
use crate::ids::{QueueId, Seq};
use crate::message::Settled;
use crate::run::{Run, RunId, RunView, SpillBounds, SpillPlan};
use crate::walk::OutOfLooks;

impl Broker {
    /// Chooses messages to write to a segment: the oldest of the least urgent lane, but for those that it keeps, of the queue that has
    /// most in memory; what is over, or soon will be, stays. They stay where they are until [`Broker::spilled`] or [`Broker::unspilled`].
    pub fn plan_spill(&mut self, run: RunId, bounds: SpillBounds) -> SpillPlan {
        let mut looks = bounds.looks;
        if self.to_spill.is_empty() {
            // Nearly always the deepest one has something to write: there may be thousands of others, and this is asked for each run.
            let spillable = self.queues.values().filter(|queue| queue.may_spill());
            let Some(deepest) = spillable.max_by_key(|queue| queue.ready_here()) else {
                return SpillPlan::Nothing;
            };
            let deepest = deepest.id;
            match self.plan_spill_of(deepest, run, bounds, &mut looks) {
                SpillPlan::Nothing => {}
                plan => return plan,
            }
            let others = self.queues.values().filter(|queue| queue.id != deepest && queue.may_spill());
            let others = others.filter(|queue| queue.ready_here() > 0);
            self.to_spill = others.map(|queue| queue.id).collect();
            let queues = &self.queues;
            self.to_spill.sort_by_cached_key(|id| queues[id].ready_here());
        }
        while let Some(next) = self.to_spill.pop() {
            let plan = match looks.checked_sub(1) {
                Some(left) => {
                    looks = left;
                    self.plan_spill_of(next, run, bounds, &mut looks)
                }
                None => SpillPlan::Unfinished,
            };
            match plan {
                SpillPlan::Nothing => {}
                SpillPlan::Unfinished => {
                    self.to_spill.push(next);
                    return SpillPlan::Unfinished;
                }
                plan @ SpillPlan::Run(..) => {
                    self.to_spill.clear();
                    return plan;
                }
            }
        }
        SpillPlan::Nothing
    }

    fn plan_spill_of(
        &mut self,
        id: QueueId,
        run: RunId,
        bounds: SpillBounds,
        looks: &mut usize,
    ) -> SpillPlan {
        let now = self.now;
        let Some(queue) = self.queues.get_mut(&id) else { return SpillPlan::Nothing };
        match queue.plan_spill(now, run, bounds, looks) {
            Ok(Some(messages)) => SpillPlan::Run(id, messages),
            Ok(None) => SpillPlan::Nothing,
            Err(OutOfLooks) => SpillPlan::Unfinished,
        }
    }

    /// The segment of a plan is durable. What nothing has happened to meanwhile leaves memory; a fact says so.
    pub fn spilled(&mut self, id: QueueId, run: RunId, step: &mut Step) {
        match self.queues.get_mut(&id) {
            Some(queue) => {
                queue.spilled(run, step);
                self.reschedule(id);
            }
            None => step.effects.push(Effect::Forgotten { run, messages: 0 }),
        }
    }

    /// Chooses what waits in runs of one queue, to write it to the segment of a new run: ordinals of the old ones, in the order
    /// of sequences. The old runs must follow each other in one lane, given in any order. What is chosen stays where it is
    /// until [`Broker::rewritten`] or [`Broker::unspilled`]. `None`: they do not, one of them is not there, cannot be read or
    /// is being rewritten, what lies between them is being spilled, or it is more than [`crate::RUN_LEN_MAX`].
    pub fn plan_rewrite(
        &mut self,
        queue: QueueId,
        run: RunId,
        of: &[RunId],
    ) -> Option<Vec<(RunId, Range<u32>)>> {
        self.queues.get_mut(&queue)?.plan_rewrite(run, of)
    }

    /// The new segment of a plan is durable. What still waits in the old runs waits in the new one, and they are over; a
    /// fact says so. For each of them, and for the new one if nothing is left for it, there is an [`Effect::Forgotten`].
    pub fn rewritten(&mut self, queue: QueueId, run: RunId, step: &mut Step) {
        match self.queues.get_mut(&queue) {
            Some(queue) => queue.rewritten(run, step),
            None => step.effects.push(Effect::Forgotten { run, messages: 0 }),
        }
    }

    /// The segment of a plan, to spill or to rewrite, could not be written.
    pub fn unspilled(&mut self, queue: QueueId, run: RunId) {
        if let Some(queue) = self.queues.get_mut(&queue) {
            queue.unspilled(run);
        }
    }

    /// Messages of a run are in quarantine from now on, because what held them is damaged: they wait no longer. An effect says how many there
    /// were. No fact does, and [`Broker::run_fact`] says that they wait: should they be readable after a start, they do again.
    /// They are over when all that waits in the run is settled at once, such as by a purge.
    pub fn lose(&mut self, id: QueueId, run: RunId, ordinals: Range<u32>, step: &mut Step) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let end = ordinals.end;
        queue.lose(run, ordinals);
        let messages = queue.take_lost(run, end);
        if messages > 0 {
            step.effects.push(Effect::Forgotten { run, messages });
            self.reschedule(id);
        }
    }

    /// What is in quarantine is given up, in all queues: during a recovery, when damage is to be skipped.
    pub fn give_up_quarantined(&mut self) {
        self.queues.values_mut().for_each(|queue| queue.give_up_quarantined());
    }

    /// What of a run is in quarantine was found elsewhere: it is given up, and what else waits in the run is brought into memory, so that the run
    /// is over. During a recovery; the fact that says so is to be recorded.
    pub fn replace_quarantined(&mut self, queue: QueueId, run: RunId) -> Option<Fact> {
        let found = self.queues.get_mut(&queue)?;
        if let Some(run) = found.runs.get_mut(&run) {
            run.give_up_quarantined();
        }
        found.quarantined.remove(&run);
        found.bring_run(run);
        Some(Fact::RunFetched { queue, run })
    }

    /// Messages of a run that are in quarantine.
    #[must_use]
    pub fn quarantined(&self, queue: QueueId, run: RunId) -> u64 {
        let Some(queue) = self.queues.get(&queue) else { return 0 };
        queue.quarantined.get(&run).or_else(|| queue.runs.get(&run)).map_or(0, Run::quarantined)
    }

    /// A message in memory whose content cannot be read any more is gone, whatever its state.
    pub fn lose_message(&mut self, id: QueueId, seq: Seq, step: &mut Step) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        if let Some(slot) = queue.by_seq.get(seq) {
            queue.settle(slot, Settled::Removed, step);
            self.dispatch(id, step);
        }
    }

    /// The fact that says of a run what is true now; `None` if nothing of it waits any more, not even in quarantine.
    #[must_use]
    pub fn run_fact(&self, queue: QueueId, run: RunId) -> Option<Fact> {
        let record = self.queues.get(&queue)?.run_record(run)?;
        Some(Fact::RunRestated { queue, run: Box::new(record) })
    }

    /// All runs: by queue, then by lane, the most urgent first; those of a lane follow each other in the order of sequences.
    pub fn runs(&self) -> impl Iterator<Item = RunView> + '_ {
        self.queues.values().flat_map(|queue| queue.run_views())
    }

    /// The run that comes after this one in its lane.
    #[must_use]
    pub fn run_after(&self, queue: QueueId, run: RunId) -> Option<RunId> {
        self.queues.get(&queue)?.run_after(run)
    }

    /// Messages that wait in a run; 0 if it is not there.
    #[must_use]
    pub fn run_waiting(&self, queue: QueueId, run: RunId) -> u64 {
        self.queues.get(&queue).and_then(|queue| queue.runs.get(&run)).map_or(0, Run::waiting)
    }
}
