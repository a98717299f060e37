//! Disk space comes back: segments with few messages left are rewritten, or emptied.
//!
//! Files may be half as long again as what is needed of them, and one segment for each lane: the one it is drained from. Beyond
//! that, what has most bytes in vain goes first. A segment that waits in no run any more is held by messages that are in
//! memory, and they are carried into the journal; sparse ones are written into a new one, with their neighbours.

use std::collections::BTreeSet;

use overtake_lane::{QueueId, RunId, RunView};

use super::Core;
use super::clean::{Bite, Carried};
use super::spill::RUN_BYTES_MAX;
use crate::shelf::{Job, Rewrite};

/// Messages carried in one bite.
const BITE: u64 = 1_024;

impl<T> Core<T> {
    /// Bytes of segments, those of them that are needed, about, and the lanes that have any.
    #[must_use]
    pub fn segment_bytes(&self) -> (u64, u64, usize) {
        let (bytes, live) = self.holds.bytes();
        let lanes: BTreeSet<(QueueId, u16)> = self.broker.runs().map(|run| (run.queue, run.lane)).collect();
        (bytes, live, lanes.len())
    }

    /// Begins to give back what files hold in vain, when that is too much.
    pub(super) fn rewrite(&mut self) {
        let (bytes, live) = self.holds.bytes();
        let excess = bytes - live;
        if excess <= live / 2 {
            self.spilling.rewritten_in_vain = 0;
            return;
        }
        let is_worth_it = excess > self.spilling.rewritten_in_vain;
        if !is_worth_it || self.spilling.is_writing || self.is_spilling_held() {
            return;
        }
        if !self.empty_one() && !self.rewrite_some() {
            // Until there is a sixteenth more.
            self.spilling.rewritten_in_vain = excess + excess / 16;
        }
    }

    /// Carries what still holds a segment that no run waits in, a bite of it. False if there is none, or no room.
    fn empty_one(&mut self) -> bool {
        let is_over = |(run, held): &(RunId, crate::shelf::Held)| {
            (1..=BITE).contains(&held.messages) && self.broker.run_waiting(held.queue, *run) == 0
        };
        let Some((run, _)) = self.holds.iter().find(is_over) else { return false };
        let mut fetched = self.spilling.fetched;
        let carried = self.carry_fetched(run, &mut fetched, &mut Bite::large());
        self.spilling.fetched = fetched;
        self.end_runs();
        carried != Carried::NoRoom
    }

    /// Plans to write sparse runs that follow each other into one. False if there are none.
    fn rewrite_some(&mut self) -> bool {
        let Some((queue, of)) = self.sparse_runs() else { return false };
        let run = self.shelf.take_number();
        let Some(pieces) = self.broker.plan_rewrite(queue, run, &of) else { return false };
        self.spilling.is_writing = true;
        self.spilling.jobs.push(Job::Rewrite(Rewrite { queue, run, pieces }));
        true
    }

    /// The run with most bytes in vain that is not the first of its lane, and those after it that fit in beside it.
    fn sparse_runs(&self) -> Option<(QueueId, Vec<RunId>)> {
        let runs: Vec<RunView> = self.broker.runs().collect();
        let is_first =
            |at: usize| at == 0 || (runs[at - 1].queue, runs[at - 1].lane) != (runs[at].queue, runs[at].lane);
        let len = |run: &RunView| self.holds.get(run.run).map_or(0, |held| held.file.len);
        let live = |run: &RunView| len(run) / u64::from(run.count.max(1)) * run.waiting;
        let vain = |run: &RunView| len(run) - live(run);
        let is_sparse = |run: &RunView| {
            run.quarantined == 0 && !run.is_mixed && 3 * run.waiting <= 2 * u64::from(run.count)
        };
        let candidates = (0..runs.len()).filter(|at| !is_first(*at) && is_sparse(&runs[*at]));
        let most = candidates.max_by_key(|at| vain(&runs[*at]))?;
        let first = &runs[most];
        let mut bytes = live(first);
        let more = runs[most..].windows(2).take_while(|two| {
            bytes += live(&two[1]);
            let is_same_lane = (two[1].queue, two[1].lane) == (first.queue, first.lane);
            is_same_lane && two[0].is_before_next && is_sparse(&two[1]) && bytes <= RUN_BYTES_MAX
        });
        let of = std::iter::once(first.run).chain(more.map(|two| two[1].run)).collect();
        Some((first.queue, of))
    }
}
