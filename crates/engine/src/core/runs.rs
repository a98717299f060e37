//! What the journal says of runs, while it is read: which segments are needed, and which of them are there.
//!
//! When damage may be skipped each segment is looked through, as long as that takes, and what cannot be read counts as taken.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use overtake_lane::{Broker, Fact, Ordinals, QueueId, RunId, RunRecord, Seq};
use overtake_store::{Block, Disk, IdIndex, OnDamage, Segment, SegmentInfo, Segments};

use super::recover::{Lost, OpenError};
use crate::api::Content;
use crate::place::Where;
use crate::shelf::{File, Holds};

/// What the journal says of runs.
pub(super) struct Runs {
    on_damage: OnDamage,
    /// The last record of each that is not said to be over.
    stored: BTreeMap<RunId, Told>,
    /// Those of them whose segment is not there. It is gone because they are over, which is said later, or lost.
    missing: BTreeSet<RunId>,
    /// What cannot be read of segments that were looked through.
    unreadable: BTreeMap<RunId, Ordinals>,
}

struct Told {
    queue: QueueId,
    chunk: u32,
    first_chunk: u32,
    holes: usize,
    /// What waited in it is gone, by one word.
    is_settled: bool,
    segment: SegmentInfo,
}

impl Runs {
    pub(super) fn new(on_damage: OnDamage) -> Self {
        Self { on_damage, stored: BTreeMap::new(), missing: BTreeSet::new(), unreadable: BTreeMap::new() }
    }

    /// Takes note of a fact; answers whether it is to be folded.
    pub(super) fn take<D: Disk>(
        &mut self,
        fact: &mut Fact,
        chunk: u32,
        segments: &Segments<D>,
    ) -> Result<bool, OpenError> {
        match fact {
            Fact::RunStored { queue, run } | Fact::RunRestated { queue, run } => {
                self.stored(*queue, run, chunk, segments)
            }
            Fact::RunsRewritten { queue, run, .. } => {
                if !self.stored(*queue, run, chunk, segments)? {
                    // What went from the old ones is not there either.
                    (run.next, run.bytes, run.holes) = (run.count, 0, Ordinals::default());
                }
                Ok(true)
            }
            Fact::RunSettled { run, .. } => {
                segments.keep_free(run.0);
                self.missing.remove(run);
                if let Some(told) = self.stored.get_mut(run) {
                    told.is_settled = true;
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// Takes note of the record of a run. False: its segment is not there.
    fn stored<D: Disk>(
        &mut self,
        queue: QueueId,
        record: &mut RunRecord,
        chunk: u32,
        segments: &Segments<D>,
    ) -> Result<bool, OpenError> {
        let run = record.run;
        segments.keep_free(run.0);
        let found = match segments.get(run.0) {
            // Without header, index or footer nothing of it can be read.
            Err(error) if !self.may_skip() => return Err(error.into()),
            found => found.ok().flatten(),
        };
        let Some(segment) = found else {
            self.missing.insert(run);
            return Ok(false);
        };
        if !is_of(record, queue, segment.info()) {
            return Err(OpenError::OtherSegment { number: run.0 });
        }
        if self.may_skip() {
            leave_out(record, self.unreadable.entry(run).or_insert_with(|| unreadable(&segment)));
        }
        let segment = *segment.info();
        let first_chunk = self.stored.get(&run).map_or(chunk, |told| told.first_chunk);
        let holes = record.holes.len();
        self.stored.insert(run, Told { queue, chunk, first_chunk, holes, is_settled: false, segment });
        Ok(true)
    }

    fn may_skip(&self) -> bool {
        self.on_damage == OnDamage::Skip
    }

    /// What is lost, if it may be.
    pub(super) fn check_lost(&self) -> Result<Lost, OpenError> {
        if let Some(run) = self.missing.first().filter(|_| !self.may_skip()) {
            return Err(OpenError::NoSegment { number: run.0 });
        }
        let damaged = self.unreadable.iter().filter(|(_, lost)| !lost.is_empty());
        let messages = damaged.map(|(run, lost)| (run.0, lost.len() as u64)).collect();
        Ok(Lost { segments: self.missing.iter().map(|run| run.0).collect(), messages })
    }

    /// Has the ids of what waits found.
    pub(super) fn find_ids<D: Disk>(&self, ids: &IdIndex<D>) -> Result<(), OpenError> {
        ids.retain(|number| self.stored.contains_key(&RunId(number)));
        let with_ids = self.stored.iter().filter(|(_, told)| told.segment.ids > 0);
        for (run, _) in with_ids {
            ids.add(run.0)?;
        }
        Ok(())
    }

    /// Who holds which segment, and the segments that nobody knows of.
    pub(super) fn held(&self, broker: &Broker, there: &[u64]) -> (Holds, Vec<RunId>) {
        let mut messages: BTreeMap<RunId, u64> = self.stored.keys().map(|run| (*run, 0)).collect();
        for view in broker.runs() {
            *messages.entry(view.run).or_default() += view.waiting;
        }
        let on_shelf = |place| Where::of(place).run().is_some();
        for (queue, seq) in broker.scan((QueueId(0), Seq(0)), usize::MAX, on_shelf).0 {
            let place = broker.message_at(queue, seq).map(|message| message.place);
            if let Some(run) = place.and_then(|place| Where::of(place).run()) {
                *messages.entry(run).or_default() += 1;
            }
        }
        let mut holds = Holds::default();
        for (run, told) in &self.stored {
            let Told { queue, chunk, first_chunk, holes, is_settled, segment } = *told;
            let file = File { count: segment.count, len: segment.file_len };
            holds.begin(*run, queue, file, messages[run], chunk, holes);
            holds.began(*run, first_chunk);
            if is_settled || messages[run] == 0 {
                // One that is at its end may linger, too: nobody knows how it came to it.
                holds.settle(*run);
            }
        }
        let unknown = there.iter().map(|number| RunId(*number)).filter(|run| !self.stored.contains_key(run));
        (holds, unknown.collect())
    }
}

/// Whether a record speaks of this segment.
fn is_of(record: &RunRecord, queue: QueueId, segment: &SegmentInfo) -> bool {
    queue == segment.queue
        && u64::from(record.count) == segment.count
        && record.last == segment.last
        && record.first >= segment.first
}

/// Looks through a whole segment for messages that cannot be read.
fn unreadable<D: Disk>(segment: &Segment<D>) -> Ordinals {
    let can_be_read = |block: &Block, ordinal: u64| {
        block.message(ordinal).is_ok() && Content::decode(block.content(ordinal)).is_some()
    };
    let of_block = |ordinals: Range<u64>| match segment.block(ordinals.start) {
        Ok(Some(block)) => ordinals.filter(|ordinal| !can_be_read(&block, *ordinal)).collect::<Vec<_>>(),
        _ => ordinals.collect(),
    };
    segment.blocks().flat_map(|block| of_block(block.ordinals)).map(|ordinal| ordinal as u32).collect()
}

/// Says of messages that they are taken.
fn leave_out(record: &mut RunRecord, lost: &Ordinals) {
    if lost.is_empty() {
        return;
    }
    let before = record.waiting();
    let taken: BTreeSet<u32> = record.holes.iter().chain(lost.iter()).collect();
    while taken.contains(&record.next) {
        record.next += 1;
    }
    record.holes = taken.range(record.next..).copied().collect();
    // Nobody knows how many bytes the lost ones had.
    let each = record.bytes / before.max(1);
    record.bytes = each * record.waiting();
}
