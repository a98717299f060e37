//! Which messages are written to a segment next.
//!
//! A step passes over so many messages only that stay, and goes on in the next one: in the lane where it ended, after those that it passed over there.

use super::Queue;
use super::waking::LOOKS_APART_MS;
use crate::entries::{Entry, List, Slot};
use crate::ids::{Seq, Time};
use crate::message::Message;
use crate::run::{RUN_LEN_MAX, RunId, SpillBounds};
use crate::walk::{Mark, OutOfLooks};

/// A run with so much less than the most messages, or bytes, that it may have is worth its segment.
const WORTH_IT: usize = 2;

/// What is over so soon, ms, stays in memory: it would be brought back at once. With debug assertions less, as messages of tests do not live long.
const OVER_SOON_MS: u64 = if cfg!(debug_assertions) { 10 } else { LOOKS_APART_MS };

/// Among which messages of a lane some for a run are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// Those that came after all of its runs, and were never put back.
    AfterRuns,
    /// All.
    All,
}

/// How far a lane was looked through for messages that may leave memory: those before stayed, since none of them could. For each [`Among`].
pub(crate) type PassedOver = [Mark; 2];

/// Messages that are not written to a segment yet.
struct HeldBack {
    /// Those that no fact has spoken of since they were fetched, and that may be from a run that is not over: of these sequences, the first and the last
    /// of each range.
    untold: Vec<(Seq, Seq)>,
    /// Those that are over by then.
    until: Time,
}

impl HeldBack {
    fn holds(&self, entry: &Entry) -> bool {
        let message = &entry.message;
        let is_over_soon = message.expires <= self.until || message.is_at_once();
        is_over_soon || (entry.is_untold && self.is_of_a_run(message.seq))
    }

    fn is_of_a_run(&self, seq: Seq) -> bool {
        let before = &self.untold[..self.untold.partition_point(|(first, _)| *first <= seq)];
        before.last().is_some_and(|(_, last)| *last >= seq)
    }
}

/// A search through one lane.
struct Search<'a> {
    bounds: SpillBounds,
    /// The first messages that stay, since they are leased next.
    keep: usize,
    held_back: &'a HeldBack,
    /// How far it has come without finding any.
    mark: Mark,
}

impl Queue {
    /// Chooses messages for a run: the oldest of the least urgent lane that has enough of them for a run that is worth
    /// it, else of the one that has most; but for those that it keeps. They stay where they are until [`Queue::spilled`]. Those are chosen first that
    /// come after all runs of their lane; what was put back, moved or fetched lies among them, so it is chosen only where there is much of it.
    ///
    /// # Errors
    /// None was found before `looks` others were passed over. The next call goes on.
    pub(crate) fn plan_spill(
        &mut self,
        now: Time,
        run: RunId,
        bounds: SpillBounds,
        looks: &mut usize,
    ) -> Result<Option<Vec<Message>>, OutOfLooks> {
        if !self.may_spill() {
            return Ok(None);
        }
        let bounds = SpillBounds { most: bounds.most.min(RUN_LEN_MAX as usize), ..bounds };
        let SpillBounds { most, most_bytes, .. } = bounds;
        let is_worth_it = |count: usize, bytes: u64| {
            count >= most.div_ceil(WORTH_IT) || bytes >= most_bytes / WORTH_IT as u64
        };
        let are_worth_it = |queue: &Self, slots: &[Slot]| {
            let bytes = slots.iter().map(|slot| u64::from(queue.entries[*slot].message.bytes)).sum();
            is_worth_it(slots.len(), bytes)
        };
        let held_back = HeldBack { untold: self.untold(), until: now.after(OVER_SOON_MS) };
        if self.to_search.is_empty() {
            self.to_search = self.all_to_search(is_worth_it);
        }
        let mut best: Vec<Slot> = Vec::new();
        while let Some((index, among)) = self.to_search.last().copied() {
            let lane = self.lanes.lane(index);
            // The lanes may be others by now.
            if !lane.is_former && lane.ready_here() > best.len() as u64 {
                match self.spillable(index, among, bounds, &held_back, looks) {
                    Ok(slots) => {
                        let may_be = among == Among::AfterRuns || are_worth_it(self, &slots);
                        if slots.len() > best.len() && may_be {
                            best = slots;
                        }
                    }
                    Err(OutOfLooks) if best.is_empty() => return Err(OutOfLooks),
                    Err(OutOfLooks) => break,
                }
                if are_worth_it(self, &best) {
                    break;
                }
            }
            self.to_search.pop();
        }
        self.to_search.clear();
        if best.is_empty() {
            return Ok(None);
        }
        for slot in &best {
            self.entries[*slot].spilling = true;
        }
        let messages: Vec<Message> = best.iter().map(|slot| self.entries[*slot].message.clone()).collect();
        self.spilling.insert(run, messages.iter().map(|message| message.seq).collect());
        Ok(Some(messages))
    }

    /// Where some for a run are to be looked for, the last one first: in lanes of which a run may be worth it, the least urgent first; then, for
    /// a run of what there is, in the others, the one with most first.
    fn all_to_search(&self, is_worth_it: impl Fn(usize, u64) -> bool) -> Vec<(u16, Among)> {
        let (mut worth_it, mut others) = (Vec::new(), Vec::new());
        for rank in 0..self.lanes.current() {
            let (index, lane) = (self.lanes.index_at(rank), self.lanes.at_rank(rank));
            let here = lane.ready_here();
            if is_worth_it(here as usize, lane.ready_bytes / lane.ready.max(1) * here) {
                worth_it.extend([(index, Among::All), (index, Among::AfterRuns)]);
            } else if here > 0 {
                others.push((here, index));
            }
        }
        others.sort_unstable();
        let others = others.into_iter().map(|(_, index)| (index, Among::AfterRuns));
        others.chain(worth_it).collect()
    }

    /// Whether messages of it may leave memory at all.
    pub(crate) fn may_spill(&self) -> bool {
        self.settings.last_value.is_none()
    }

    /// The oldest messages of a lane that may go into a run.
    fn spillable(
        &mut self,
        index: u16,
        among: Among,
        bounds: SpillBounds,
        held_back: &HeldBack,
        looks: &mut usize,
    ) -> Result<Vec<Slot>, OutOfLooks> {
        let lane = self.lanes.lane(index);
        let mut mark = lane.passed_over[among as usize];
        // Where older ones are in runs, or were passed over, the first in memory are not leased next.
        let is_next = mark == Mark::default() && (among == Among::All || lane.runs.is_empty());
        let keep = if is_next { bounds.keep } else { 0 };
        if among == Among::AfterRuns {
            lane.mark_after_runs(&mut mark);
        }
        let mut search = Search { bounds, keep, held_back, mark };
        let found = self.search(index, among, &mut search, looks);
        let passed_over = &mut self.lanes.lane_mut(index).passed_over[among as usize];
        match &found {
            Ok(slots) if slots.is_empty() => *passed_over = Mark::default(),
            Ok(_) => {}
            Err(OutOfLooks) => *passed_over = search.mark,
        }
        found
    }

    fn search(
        &self,
        index: u16,
        among: Among,
        search: &mut Search<'_>,
        looks: &mut usize,
    ) -> Result<Vec<Slot>, OutOfLooks> {
        let first = self.fresh_after(index, &mut search.mark, looks)?;
        match among {
            Among::AfterRuns => self.take_some(List::from(&self.entries, first), search, looks),
            Among::All => {
                let all = self.lanes.lane(index).iter_after(&self.entries, search.mark.seq, first);
                self.take_some(all, search, looks)
            }
        }
    }

    /// Those of some messages, oldest first, that may go into a run, without the first ones, which are kept.
    fn take_some(
        &self,
        slots: impl Iterator<Item = Slot>,
        search: &mut Search<'_>,
        looks: &mut usize,
    ) -> Result<Vec<Slot>, OutOfLooks> {
        let Search { bounds, ref mut keep, held_back, ref mut mark } = *search;
        let (mut found, mut bytes, mut kept_bytes) = (Vec::new(), 0, 0);
        for slot in slots {
            if found.len() == bounds.most || bytes >= bounds.most_bytes {
                break;
            }
            let entry = &self.entries[slot];
            let message = &entry.message;
            kept_bytes += u64::from(message.bytes);
            *keep = if kept_bytes <= bounds.keep_bytes { *keep } else { 0 };
            if *keep > 0 || entry.spilling || held_back.holds(entry) {
                if *looks == 0 {
                    return if found.is_empty() { Err(OutOfLooks) } else { Ok(found) };
                }
                *looks -= 1;
                *keep = keep.saturating_sub(1);
                if found.is_empty() {
                    mark.pass(message.seq);
                }
                continue;
            }
            bytes += u64::from(message.bytes);
            found.push(slot);
        }
        Ok(found)
    }

    /// The first and the last sequence that runs of which something was taken ever had, those that overlap together, in order. What was fetched from
    /// them may have left no fact: it must not wait in another run before they are over.
    fn untold(&self) -> Vec<(Seq, Seq)> {
        let all = self.runs.values().chain(self.quarantined.values());
        let taken = all.filter(|run| run.waiting() < u64::from(run.count()));
        let mut ranges: Vec<(Seq, Seq)> = taken.map(|run| (run.begins, run.last)).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, before| {
            let is_one = next.0 <= before.1;
            if is_one {
                before.1 = before.1.max(next.1);
            }
            is_one
        });
        ranges
    }
}
