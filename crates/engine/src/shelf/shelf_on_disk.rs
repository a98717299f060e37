//! The segments of a store, as the broker reads them.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use overtake_lane::{Backlog, Message, QueueId, RunId, Seq};
use overtake_store::{Disk, IdIndex, Segment, Segments, Spilled, StoreError};

use super::quarantine::{DamagedBlock, Quarantine};
use super::{MissingBlock, Shelf};
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
    /// `missing` is not empty.
    awaits_disk: AtomicBool,
    /// What the look found missing.
    missing: Mutex<Vec<MissingBlock>>,
}

/// A look asks for so many blocks at once, at most: of more runs than one it needs the heads together.
const MISSING_MAX: usize = 64;

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

    fn missing(&self) -> MutexGuard<'_, Vec<MissingBlock>> {
        self.missing.lock().expect("nobody panics while holding it")
    }

    fn miss(&self, run: RunId, ordinal: Option<u32>) {
        let (mut missing, block) = (self.missing(), MissingBlock { run, ordinal });
        if missing.len() < MISSING_MAX && !missing.contains(&block) {
            missing.push(block);
        }
        self.awaits_disk.store(true, Ordering::Relaxed);
    }

    /// Whether the block with this message may be read now. If not, it is missing.
    fn may_read(&self, run: RunId, segment: &Segment<D>, ordinal: u64) -> bool {
        let may = !self.is_looking() || segment.has_read(ordinal);
        if !may {
            self.miss(run, Some(ordinal as u32));
        }
        may
    }

    /// Whether the block that may hold this sequence may be read now. If not, it is missing.
    fn may_look_for(&self, run: RunId, segment: &Segment<D>, seq: Seq) -> bool {
        segment.block_start_of(seq).is_none_or(|start| self.may_read(run, segment, start))
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
        let Some(segment) = self.segment(run) else { return Vec::new() };
        if self.is_looking() {
            if !self.may_read(run, &segment, u64::from(from)) {
                return Vec::new();
            }
            to = to.min(self.block_end(&segment, from));
        }
        while from < to {
            let read = segment.read(u64::from(from), (to - from) as usize);
            let read = read.and_then(|read| self.note(&segment, u64::from(from)).map(|()| read));
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

    /// The message after the block with this one, which is in memory.
    fn block_end(&self, segment: &Segment<D>, ordinal: u32) -> u32 {
        let block = segment.block(u64::from(ordinal)).ok().flatten();
        block.map_or(u32::MAX, |block| block.ordinals().end as u32)
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
        if !self.may_look_for(run, &segment, seq) {
            return 0;
        }
        match segment.before(seq) {
            Ok(before) => before as u32,
            // Only the block that would hold it is read: all before that one have lesser sequences.
            Err(error) => self.put_aside(&segment, 0, &error).map_or(0, |block| block.start),
        }
    }

    fn find(&self, run: RunId, seq: Seq) -> Option<u32> {
        let segment = self.segment(run)?;
        if !self.may_look_for(run, &segment, seq) {
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

    fn end_look(&self) -> Vec<MissingBlock> {
        self.is_looking.store(false, Ordering::Relaxed);
        self.awaits_disk.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.missing())
    }

    fn take_number(&self) -> RunId {
        RunId(self.segments.take_number())
    }
}
