//! The segments of a store, as the broker reads them.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use overtake_lane::{Backlog, Message, QueueId, RunId, Seq};
use overtake_store::{Disk, IdIndex, Segment, Segments, Spilled, StoreError};

use super::quarantine::{DamagedBlock, Quarantine};
use super::{Missing, MissingBlock, Shelf};
use crate::api::Content;
use crate::place::Where;

/// The segments of a store, as the broker reads them.
pub(crate) struct ShelfOnDisk<D: Disk> {
    segments: Arc<Segments<D>>,
    ids: Arc<IdIndex<D>>,
    quarantine: Arc<Quarantine>,
    failure: OnceLock<Arc<str>>,
    /// The last message of the block that was read last.
    reading: Mutex<Reading>,
    /// Somebody looks who reads nothing from the disk.
    is_looking: AtomicBool,
    /// The look needs what is missing.
    awaits_disk: AtomicBool,
    /// What the look found missing.
    missing: Mutex<Missing>,
}

#[derive(Default)]
struct Reading {
    run: u64,
    block: Range<u64>,
    is_new: bool,
}

impl<D: Disk> ShelfOnDisk<D> {
    pub(crate) fn new(segments: Arc<Segments<D>>, ids: Arc<IdIndex<D>>, quarantine: Arc<Quarantine>) -> Self {
        Self {
            segments,
            ids,
            quarantine,
            failure: OnceLock::new(),
            reading: Mutex::default(),
            is_looking: AtomicBool::new(false),
            awaits_disk: AtomicBool::new(false),
            missing: Mutex::default(),
        }
    }

    /// The segment of a run. `None` when nothing of it can be read: it is in quarantine, or the failure stays.
    fn segment(&self, run: RunId) -> Option<Arc<Segment<D>>> {
        if self.failure.get().is_some() {
            return None;
        }
        if self.is_looking() {
            let open = self.segments.get_open(run.0);
            if open.is_none() {
                self.miss(run, None);
            }
            return open;
        }
        match self.segments.get(run.0) {
            Ok(Some(segment)) => Some(segment),
            Ok(None) => {
                self.quarantine.missing(run);
                None
            }
            Err(error) => {
                if !self.quarantine.served_segment(run, &error) {
                    self.fail(error.to_string());
                }
                None
            }
        }
    }

    fn is_looking(&self) -> bool {
        self.is_looking.load(Ordering::Relaxed)
    }

    fn missing(&self) -> MutexGuard<'_, Missing> {
        self.missing.lock().expect("nobody panics while holding it")
    }

    /// Notes that a look needs a block, or, without an ordinal, some block of a segment that is not open.
    fn miss(&self, run: RunId, ordinal: Option<u32>) {
        let (mut missing, block) = (self.missing(), MissingBlock { run, ordinal });
        if !missing.is_full() && !missing.needed.contains(&block) {
            missing.needed.push(block);
        }
        self.awaits_disk.store(true, Ordering::Relaxed);
    }

    /// Whether the block with this message may be read now. If not, it is missing.
    fn may_read(&self, run: RunId, segment: &Segment<D>, ordinal: u64) -> bool {
        let may = !self.is_looking() || segment.has_read(ordinal);
        if !may {
            let block = segment.ordinals_beside(ordinal).map_or(ordinal, |block| block.start);
            self.miss(run, Some(block as u32));
        }
        may
    }

    /// The first message of the block that may hold this sequence, if that block may not be read now: then it is missing.
    fn missing_for(&self, run: RunId, segment: &Segment<D>, seq: Seq) -> Option<u64> {
        segment.block_start_of(seq).filter(|start| !self.may_read(run, segment, *start))
    }

    /// Puts the block that could not be read into quarantine, and answers the ordinals in it. `None`: that cannot help, and the
    /// failure stays.
    fn put_aside(&self, segment: &Segment<D>, ordinal: u64, error: &StoreError) -> Option<Range<u32>> {
        let block = self.quarantine.served_block(segment, ordinal, error);
        if block.is_none() {
            self.fail(error.to_string());
        }
        block
    }

    /// At most `max` messages from this one on, up to the first that is lost.
    fn read_some(&self, run: RunId, from: u32, max: usize) -> Vec<Spilled> {
        let mut to = from.saturating_add(u32::try_from(max).unwrap_or(u32::MAX));
        for block in self.quarantine.of(run) {
            if block.ordinals.end > from {
                to = to.min(block.ordinals.start);
            }
        }
        if to <= from {
            // Lost, which is known without a look at the disk.
            return Vec::new();
        }
        let Some(segment) = self.segment(run) else { return Vec::new() };
        if self.is_looking() {
            if !self.may_read(run, &segment, u64::from(from)) {
                return Vec::new();
            }
            to = to.min(block_of(&segment, from).end);
        }
        while from < to {
            let read = segment.read(u64::from(from), (to - from) as usize);
            // A look says itself what it expects.
            let note = || if self.is_looking() { Ok(()) } else { self.note(&segment, u64::from(from)) };
            let read = read.and_then(|read| note().map(|()| read));
            match read {
                Ok(read) => return read,
                Err(error) => match self.put_aside(&segment, u64::from(from), &error) {
                    Some(block) => to = to.min(block.start),
                    None => break,
                },
            }
        }
        Vec::new()
    }

    /// Notes which block is being read.
    fn note(&self, segment: &Segment<D>, ordinal: u64) -> Result<(), StoreError> {
        let run = segment.info().number;
        let mut reading = self.reading.lock().expect("nobody panics while holding it");
        if (reading.run != run || !reading.block.contains(&ordinal))
            && let Some(block) = segment.block(ordinal)?
        {
            *reading = Reading { run, block: block.ordinals(), is_new: true };
        }
        Ok(())
    }

    fn fail(&self, why: String) {
        // The first failure is the one to tell.
        let _ = self.failure.set(why.into());
    }
}

/// The ordinals of the block with this message.
fn block_of<D: Disk>(segment: &Segment<D>, ordinal: u32) -> Range<u32> {
    let block = segment.ordinals_beside(u64::from(ordinal));
    block.map_or(0..u32::MAX, |block| block.start as u32..block.end as u32)
}

impl<D: Disk> fmt::Debug for ShelfOnDisk<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShelfOnDisk").field("failure", &self.failure).finish_non_exhaustive()
    }
}

impl<D: Disk> Backlog for ShelfOnDisk<D> {
    fn read(&self, run: RunId, from: u32, max: usize) -> Vec<Message> {
        let spilled = self.read_some(run, from, max);
        let messages = (from..).zip(spilled).map(|(ordinal, spilled)| {
            let place = Where::Shelf { run, ordinal }.place();
            Message { place, ..spilled.message }
        });
        messages.collect()
    }

    fn lost(&self, run: RunId, ordinal: u32) -> u32 {
        self.quarantine.lost(run, ordinal)
    }

    fn awaits_disk(&self) -> bool {
        self.awaits_disk.load(Ordering::Relaxed)
    }

    fn block(&self, run: RunId, ordinal: u32) -> Range<u32> {
        self.segment(run).map_or(0..u32::MAX, |segment| block_of(&segment, ordinal))
    }

    fn expect(&self, run: RunId, ordinal: u32) {
        let Some(segment) = self.segments.get_open(run.0) else { return };
        let Some(block) = segment.ordinals_beside(u64::from(ordinal)) else { return };
        let (mut missing, expected) =
            (self.missing(), MissingBlock { run, ordinal: Some(block.start as u32) });
        let is_told = missing.needed.contains(&expected);
        if !missing.is_full() && !is_told && segment.may_read_ahead(block.start) {
            missing.expected.push(expected);
        }
    }

    fn find_id(&self, queue: QueueId, id: &str) -> Vec<(RunId, u32)> {
        if self.failure.get().is_some() {
            return Vec::new();
        }
        let found = self.ids.find(queue, id).unwrap_or_else(|error| {
            self.fail(error.to_string());
            Vec::new()
        });
        found.into_iter().map(|(number, ordinal)| (RunId(number), ordinal as u32)).collect()
    }

    fn rank(&self, run: RunId, seq: Seq) -> u32 {
        let Some(segment) = self.segment(run) else { return 0 };
        if let Some(start) = self.missing_for(run, &segment, seq) {
            // A reader that goes on from there needs this block, too.
            return start as u32;
        }
        match segment.before(seq) {
            Ok(before) => before as u32,
            // Only the block that would hold it is read: all before that one have lesser sequences.
            Err(error) => self.put_aside(&segment, 0, &error).map_or(0, |block| block.start),
        }
    }

    fn find(&self, run: RunId, seq: Seq) -> Option<u32> {
        let segment = self.segment(run)?;
        if self.missing_for(run, &segment, seq).is_some() {
            return None;
        }
        let found = segment.find(seq).unwrap_or_else(|error| {
            self.put_aside(&segment, 0, &error);
            None
        });
        found.map(|ordinal| ordinal as u32)
    }
}

impl<D: Disk> Shelf for ShelfOnDisk<D> {
    fn content(&self, run: RunId, ordinal: u32) -> Option<Arc<Content>> {
        let segment = self.segment(run)?;
        if !self.may_read(run, &segment, u64::from(ordinal)) {
            return None;
        }
        let block = match segment.block(u64::from(ordinal)) {
            Ok(block) => block?,
            Err(error) => {
                self.put_aside(&segment, u64::from(ordinal), &error);
                return None;
            }
        };
        let content = Content::decode(block.content(u64::from(ordinal)));
        if content.is_none() {
            self.fail(format!(
                "message {ordinal} of segment {} makes no sense: it was written by a newer version",
                run.0
            ));
        }
        content.map(Arc::new)
    }

    fn give_up(&self, why: &str) {
        self.fail(why.to_owned());
    }

    fn take_damaged(&self) -> Vec<DamagedBlock> {
        self.quarantine.take_fresh()
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.failure.get().cloned()
    }

    fn take_begun(&self) -> Option<(RunId, u32)> {
        let mut reading = self.reading.lock().expect("nobody panics while holding it");
        std::mem::take(&mut reading.is_new).then(|| (RunId(reading.run), reading.block.start as u32))
    }

    fn begin_look(&self) {
        self.is_looking.store(true, Ordering::Relaxed);
    }

    fn end_look(&self) -> Missing {
        self.is_looking.store(false, Ordering::Relaxed);
        self.awaits_disk.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.missing())
    }

    fn take_number(&self) -> RunId {
        RunId(self.segments.take_number())
    }
}
