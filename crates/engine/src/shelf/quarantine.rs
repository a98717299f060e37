//! Damage to segments, and the messages that are lost with it.
//!
//! A damaged block costs the messages in it and nothing else: it is put here, the broker passes over its messages, and everything
//! else in its segment, its queue and the store goes on. Nothing of this is written to the journal, where they wait, so messages that can be
//! read again after a start wait again.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::{Mutex, MutexGuard};

use overtake_lane::{RunId, RunRecord, Seq};
use overtake_store::{Disk, OnDamage, Segment, SegmentInfo, StoreError};

/// A part of a segment that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DamagedBlock {
    /// The run whose segment it is in.
    pub(crate) run: RunId,
    /// The messages in it, by their ordinals. Of a segment of which nothing can be read: all ordinals.
    pub(crate) ordinals: Range<u32>,
    /// Their sequences lie between these, both included.
    pub(crate) seqs: (Seq, Seq),
    /// Name of the file.
    pub(crate) file: String,
    /// Offset in the file, bytes.
    pub(crate) at: u64,
    /// What is wrong, as a phrase.
    pub(crate) what: String,
}

impl DamagedBlock {
    /// A whole segment.
    fn of_all(run: RunId, at: u64, what: String) -> Self {
        let (ordinals, seqs) = (0..u32::MAX, (Seq(0), Seq(u64::MAX)));
        Self { run, ordinals, seqs, file: format!("segment-{:012}", run.0), at, what }
    }

    fn missing(run: RunId) -> Self {
        Self::of_all(run, 0, "the file is missing".to_owned())
    }
}

impl fmt::Display for DamagedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.at, self.what)
    }
}

/// The damaged blocks of a store, as far as somebody came across them.
#[derive(Debug)]
pub(crate) struct Quarantine {
    /// Whether what the disk cannot read, or a file that may not be read, counts as damaged, too.
    skips: bool,
    state: Mutex<State>,
}

/// The run, the first ordinal, and the one behind the last.
type Key = (RunId, u32, u32);

/// The blocks of a run that begin at this ordinal or before.
fn up_to(run: RunId, ordinal: u32) -> RangeInclusive<Key> {
    (run, 0, 0)..=(run, ordinal, u32::MAX)
}

#[derive(Debug, Default)]
struct State {
    /// By run and ordinals. A block may lie within another, when first that block and then all of its segment could not be read.
    blocks: BTreeMap<Key, DamagedBlock>,
    /// Those found since they were asked for last.
    fresh: Vec<DamagedBlock>,
}

impl Quarantine {
    pub(crate) fn new(on_damage: OnDamage) -> Self {
        Self { skips: on_damage == OnDamage::Skip, state: Mutex::default() }
    }

    /// How many messages from this one on are lost.
    pub(crate) fn lost(&self, run: RunId, ordinal: u32) -> u32 {
        let state = self.state();
        let ends = state.blocks.range(up_to(run, ordinal)).map(|(_, block)| block.ordinals.end);
        ends.max().map_or(0, |end| end.saturating_sub(ordinal))
    }

    /// The damaged blocks of a run.
    pub(crate) fn of(&self, run: RunId) -> Vec<DamagedBlock> {
        let state = self.state();
        state.blocks.range(up_to(run, u32::MAX)).map(|(_, block)| block.clone()).collect()
    }

    /// Whether anything of a run is damaged.
    pub(crate) fn has(&self, run: RunId) -> bool {
        self.state().blocks.range(up_to(run, u32::MAX)).next().is_some()
    }

    /// The blocks that were found since the last call.
    pub(crate) fn take_fresh(&self) -> Vec<DamagedBlock> {
        std::mem::take(&mut self.state().fresh)
    }

    /// Puts what could not be read into quarantine. `None`: it is not damage of this segment, and nothing can be done about it.
    pub(crate) fn block<D: Disk>(
        &self,
        segment: &Segment<D>,
        ordinal: u64,
        error: &StoreError,
    ) -> Option<Range<u32>> {
        let (at, what) = self.damage(error)?;
        let info = match error {
            StoreError::Corrupt { .. } => segment.block_at(at)?,
            _ => segment.blocks().find(|block| block.ordinals.contains(&ordinal))?,
        };
        let next =
            segment.block_at(info.file_range.end).filter(|next| next.ordinals.start == info.ordinals.end);
        let last = next.map_or(segment.info().last, |next| Seq(next.first.0.saturating_sub(1)));
        let ordinals = info.ordinals.start as u32..info.ordinals.end as u32;
        self.put(DamagedBlock {
            run: RunId(segment.info().number),
            ordinals: ordinals.clone(),
            seqs: (info.first, last),
            file: format!("segment-{:012}", segment.info().number),
            at: info.file_range.start,
            what,
        });
        Some(ordinals)
    }

    /// The same of a segment that the broker serves from: when its file may not be read any more, the whole segment is in quarantine.
    pub(crate) fn served_block<D: Disk>(
        &self,
        segment: &Segment<D>,
        ordinal: u64,
        error: &StoreError,
    ) -> Option<Range<u32>> {
        let whole = || self.served_segment(RunId(segment.info().number), error).then_some(0..u32::MAX);
        self.block(segment, ordinal, error).or_else(whole)
    }

    /// Of a segment only the beginning is left: the rest of what its record counts is in quarantine.
    pub(crate) fn missing_end(&self, record: &RunRecord, segment: &SegmentInfo) {
        self.put(DamagedBlock {
            run: record.run,
            ordinals: segment.count as u32..record.count,
            seqs: (segment.last.next(), record.last),
            file: format!("segment-{:012}", record.run.0),
            at: segment.file_len,
            what: "the end of the segment is missing or cannot be read".to_owned(),
        });
    }

    /// Puts a whole segment into quarantine. False: its error is no damage.
    pub(crate) fn segment(&self, run: RunId, error: &StoreError) -> bool {
        let Some((at, what)) = self.damage(error) else { return false };
        self.put(DamagedBlock::of_all(run, at, what));
        true
    }

    /// The same of a segment that the broker serves from: also when it only may not read the file, or when something else has its name. A
    /// start says so and ends, as nothing has happened yet.
    pub(crate) fn served_segment(&self, run: RunId, error: &StoreError) -> bool {
        if self.segment(run, error) {
            return true;
        }
        if error.is_of_its_file() {
            self.put(DamagedBlock::of_all(run, 0, error.to_string()));
        }
        error.is_of_its_file()
    }

    /// Puts a whole segment into quarantine whose file somebody has removed.
    pub(crate) fn missing(&self, run: RunId) {
        self.put(DamagedBlock::missing(run));
    }

    /// What is wrong with a segment of which nothing can be read: as it was found, or else its file is missing.
    pub(crate) fn whole(&self, run: RunId) -> DamagedBlock {
        self.of(run).into_iter().next().unwrap_or_else(|| DamagedBlock::missing(run))
    }

    /// Where something is damaged, and how.
    fn damage(&self, error: &StoreError) -> Option<(u64, String)> {
        match error {
            StoreError::Corrupt { at, what, .. } => Some((*at, what.to_string())),
            StoreError::Io { op: "read", source, .. } if self.skips => Some((0, source.to_string())),
            error if self.skips && error.is_of_its_file() => Some((0, error.to_string())),
            _ => None,
        }
    }

    fn put(&self, block: DamagedBlock) {
        let mut state = self.state();
        let key = (block.run, block.ordinals.start, block.ordinals.end);
        if state.blocks.insert(key, block.clone()).is_none() {
            state.fresh.push(block);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_is_lost_after_its_first_block_was_is_lost_whole() {
        let (quarantine, run) = (Quarantine::new(OnDamage::Refuse), RunId(1));
        let first = DamagedBlock { ordinals: 0..10, ..DamagedBlock::of_all(run, 0, "damaged".to_owned()) };
        quarantine.put(first.clone());
        assert_eq!((quarantine.lost(run, 4), quarantine.lost(run, 10)), (6, 0));
        quarantine.put(first.clone());
        quarantine.missing(run);
        assert_eq!((quarantine.lost(run, 4), quarantine.lost(run, 10)), (u32::MAX - 4, u32::MAX - 10));
        assert_eq!(quarantine.take_fresh(), [first, DamagedBlock::missing(run)]);
        assert!(!quarantine.has(RunId(2)) && quarantine.lost(RunId(2), 4) == 0);
    }
}
