//! The segments of a store, as the broker reads them.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use overtake_lane::{Backlog, Message, QueueId, RunId, Seq};
use overtake_store::{Disk, IdIndex, Segment, Segments, StoreError};

use super::Shelf;
use crate::api::Content;
use crate::place::Where;

/// The segments of a store, as the broker reads them.
pub(crate) struct ShelfOnDisk<D: Disk> {
    segments: Arc<Segments<D>>,
    ids: Arc<IdIndex<D>>,
    failure: OnceLock<Arc<str>>,
    /// The last message of the block that was read last.
    reading: Mutex<Reading>,
}

#[derive(Default)]
struct Reading {
    run: u64,
    block: Range<u64>,
    is_new: bool,
}

impl<D: Disk> ShelfOnDisk<D> {
    pub(crate) fn new(segments: Arc<Segments<D>>, ids: Arc<IdIndex<D>>) -> Self {
        Self { segments, ids, failure: OnceLock::new(), reading: Mutex::default() }
    }

    /// What `read` finds in the segment of a run. Nothing, and a failure that stays, when it cannot be read.
    fn with<T: Default>(&self, run: RunId, read: impl FnOnce(&Segment<D>) -> Result<T, StoreError>) -> T {
        if self.failure.get().is_some() {
            return T::default();
        }
        let found = match self.segments.get(run.0) {
            Ok(Some(segment)) => read(&segment).map_err(|error| error.to_string()),
            Ok(None) => Err(format!("segment {} is gone, and messages in it still wait", run.0)),
            Err(error) => Err(error.to_string()),
        };
        found.unwrap_or_else(|why| {
            self.fail(why);
            T::default()
        })
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
        self.with(run, |segment| {
            let spilled = segment.read(u64::from(from), max)?;
            self.note(segment, u64::from(from))?;
            let messages = (from..).zip(spilled).map(|(ordinal, spilled)| {
                let place = Where::Shelf { run, ordinal }.place();
                Message { place, ..spilled.message }
            });
            Ok(messages.collect())
        })
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
        self.with(run, |segment| Ok(segment.before(seq)? as u32))
    }
}

impl<D: Disk> Shelf for ShelfOnDisk<D> {
    fn content(&self, run: RunId, ordinal: u32) -> Arc<Content> {
        let block = self.with(run, |segment| segment.block(u64::from(ordinal)));
        let content = block.and_then(|block| Content::decode(block.content(u64::from(ordinal))));
        Arc::new(content.unwrap_or_else(|| {
            self.fail(format!(
                "message {ordinal} of segment {} makes no sense: it was written by a newer version",
                run.0
            ));
            Content::default()
        }))
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.failure.get().cloned()
    }

    fn take_begun(&self) -> Option<(RunId, u32)> {
        let mut reading = self.reading.lock().expect("nobody panics while holding it");
        std::mem::take(&mut reading.is_new).then(|| (RunId(reading.run), reading.block.start as u32))
    }

    fn take_number(&self) -> RunId {
        RunId(self.segments.take_number())
    }
}
