//! Sparse runs, rewritten: what still waits in runs that follow each other goes into one new run.
//!
//! Until the new segment is durable the messages wait where they did, so whatever happens to them happens as if nothing
//! were planned; the new run then has as taken what is taken by then. Only runs that do not overlap are rewritten together, and the new one lies
//! where the old ones lay.

use std::ops::Range;

use super::Queue;
use crate::command::{Effect, Step};
use crate::fact::Fact;
use crate::ids::{Seq, Time};
use crate::run::{RUN_LEN_MAX, Rewritten, Run, RunId, RunRecord, RunView};

/// What a new run is made of.
#[derive(Clone, Debug)]
pub(crate) struct Rewrite {
    of: Vec<RunId>,
    /// What waited when it was planned, in the order of sequences.
    pieces: Vec<(RunId, Range<u32>)>,
    count: u32,
    /// The sequence of the first of it.
    first: Seq,
    /// The sequence of the last of it.
    last: Seq,
}

impl Queue {
    /// Chooses what waits in runs that follow each other in their lane. `None` if they do not, if one of them is not there
    /// or is being rewritten, if messages of one are in quarantine, if a run between them is being written, or if it is more than
    /// [`RUN_LEN_MAX`]; nor what is to move out of a former lane.
    pub(crate) fn plan_rewrite(&mut self, run: RunId, of: &[RunId]) -> Option<Vec<(RunId, Range<u32>)>> {
        let mut runs: Vec<&Run> = of.iter().map(|id| self.runs.get(id)).collect::<Option<_>>()?;
        runs.sort_unstable_by_key(|run| run.first);
        let (oldest, newest) = (*runs.first()?, *runs.last()?);
        let of: Vec<RunId> = runs.iter().map(|run| run.id).collect();
        let here = self.lanes.lane(oldest.lane).runs.range((oldest.first, oldest.id)..);
        let is_row = here.map(|(_, id)| *id).take(of.len()).eq(of.iter().copied())
            && runs.windows(2).all(|two| two[0].last < two[1].first);
        let is_begun = self.rewriting.values().any(|rewrite| rewrite.of.iter().any(|id| of.contains(id)));
        let is_damaged = runs.iter().any(|run| run.quarantined() > 0 || run.is_mixed);
        if !is_row || is_begun || is_damaged || self.is_spilling(oldest.lane, oldest.first..newest.last) {
            return None;
        }
        let ranges = |run: &Run| run.ranges().map(|range| (run.id, range)).collect::<Vec<_>>();
        let pieces: Vec<(RunId, Range<u32>)> = runs.iter().flat_map(|run| ranges(run)).collect();
        let lens = pieces.iter().map(|(_, range)| range.end - range.start);
        let count = lens.into_iter().try_fold(0, u32::checked_add).filter(|count| *count <= RUN_LEN_MAX)?;
        let seq_at = |run: &Run, ordinal| Some(run.read(&*self.backlog, ordinal, 1).pop()?.seq);
        let ends = pieces.first().zip(pieces.last()).expect("something waits in a run");
        let (first, last) = (seq_at(oldest, ends.0.1.start)?, seq_at(newest, ends.1.1.end - 1)?);
        self.rewriting.insert(run, Rewrite { of, pieces: pieces.clone(), count, first, last });
        Some(pieces)
    }

    /// Whether messages of a lane that lie between these are being written to a segment.
    fn is_spilling(&self, lane: u16, between: Range<Seq>) -> bool {
        let within = self.spilling.values().flat_map(|seqs| {
            let from = seqs.partition_point(|seq| *seq < between.start);
            seqs[from..].iter().take_while(|seq| **seq < between.end)
        });
        let mut entries = within.filter_map(|seq| Some(&self.entries[self.by_seq.get(*seq)?]));
        entries.any(|entry| entry.spilling && entry.lane == lane)
    }

    /// The new segment is durable: what still waits in the old runs waits in the new one.
    pub(crate) fn rewritten(&mut self, run: RunId, step: &mut Step) {
        let Some(rewrite) = self.rewriting.remove(&run) else { return };
        let Some((lane, record)) = self.record_of(run, &rewrite) else {
            step.effects.push(Effect::Forgotten { run, messages: 0 });
            return;
        };
        let mut of = Vec::new();
        for id in rewrite.of {
            let Some(old) = self.remove_run(id) else {
                of.push(Rewritten::nothing(id));
                continue;
            };
            of.push(old.rewritten());
            step.effects.push(Effect::Forgotten { run: id, messages: old.waiting() });
        }
        self.put_run(&record, lane);
        step.facts.push(Fact::RunsRewritten { queue: self.id, run: Box::new(record), of });
    }

    /// The new run as it is now, and its lane; `None` if nothing is left for it, if the lanes have changed meanwhile, or if damage was found to an old one: it
    /// would be over with what is in quarantine.
    fn record_of(&self, run: RunId, rewrite: &Rewrite) -> Option<(u16, RunRecord)> {
        let is_damaged = |id: &RunId| {
            self.quarantined.contains_key(id) || self.runs.get(id).is_some_and(|run| run.quarantined() > 0)
        };
        let moves = |id: &RunId| self.runs.get(id).is_some_and(|run| run.is_mixed);
        if rewrite.of.iter().any(|id| is_damaged(id) || moves(id)) {
            return None;
        }
        let left: Vec<&Run> = rewrite.of.iter().filter_map(|id| self.runs.get(id)).collect();
        let first = left.first()?;
        let waits = |id: &RunId, ordinal| self.runs.get(id).is_some_and(|run| run.waits(ordinal));
        let planned = rewrite.pieces.iter().flat_map(|(id, range)| range.clone().map(move |at| (id, at)));
        let mut taken = (0_u32..).zip(planned).filter(|(_, (id, ordinal))| !waits(id, *ordinal)).peekable();
        let mut next = 0;
        while taken.next_if(|(at, _)| *at == next).is_some() {
            next += 1;
        }
        let record = RunRecord {
            run,
            priority: first.priority(),
            count: rewrite.count,
            ids: left.iter().fold(0_u32, |sum, run| sum.saturating_add(run.ids)).min(rewrite.count),
            deaths: left.iter().fold(0_u32, |sum, run| sum.saturating_add(run.deaths)).min(rewrite.count),
            bytes: left.iter().map(|run| run.bytes).sum(),
            expires: left.iter().map(|run| run.expires).min().unwrap_or(Time::NEVER),
            first: rewrite.first.max(first.first),
            last: rewrite.last,
            next,
            holes: taken.map(|(at, _)| at).collect(),
            is_mixed: false,
        };
        Some((first.lane, record))
    }

    /// Its runs, those of a lane one after the other in the order of sequences.
    pub(crate) fn run_views(&self) -> impl Iterator<Item = RunView> + '_ {
        self.lanes.iter().flat_map(|lane| {
            let runs = lane.runs.iter().map(|(_, id)| &self.runs[id]);
            let next = runs.clone().skip(1).map(Some).chain([None]);
            runs.zip(next).map(|(run, next)| RunView {
                queue: self.id,
                lane: run.lane,
                run: run.id,
                waiting: run.waiting(),
                count: run.count(),
                quarantined: run.quarantined(),
                is_before_next: next.is_none_or(|next| run.last < next.first),
                is_mixed: run.is_mixed,
            })
        })
    }
}
