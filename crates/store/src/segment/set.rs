//! The segments of a store.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use lru::LruCache;
use overtake_lane::QueueId;

use super::header::SegmentHeader;
use super::reader::Segment;
use super::writer::SegmentWriter;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::Name;

/// The segments of a store: gives numbers to new ones, and keeps those that were read last open.
///
/// It may be shared by threads. Open it after the [`Journal`](crate::Journal), whose lock is the store's and who removes what is
/// half-made.
pub struct Segments<D: Disk> {
    disk: D,
    store_id: u64,
    life: u32,
    open_max: usize,
    blocks_bytes_max: usize,
    state: Mutex<State<D>>,
}

/// Why a segment that is not needed is kept, under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aside {
    /// The segment is damaged: `damaged-segment-N`.
    Damaged,
    /// The journal does not mention it, and no crash left it: `unknown-segment-N`.
    Unknown,
}

struct State<D: Disk> {
    next: u64,
    open: LruCache<u64, Arc<Segment<D>>>,
}

impl<D: Disk> Segments<D> {
    /// The segments in a directory. At most `open_max` of them, at least one, are kept open at once, those that were used last; and fewer while
    /// the blocks that they keep in memory have more than `blocks_bytes_max` bytes, which are counted whenever one is opened. See [`Segment`] for
    /// how much memory each takes. `store_id` and `life` are those of [`Opened`](crate::Opened).
    ///
    /// # Errors
    /// [`StoreError::Io`]. No segment is read.
    pub fn open(
        disk: D,
        store_id: u64,
        life: u32,
        open_max: usize,
        blocks_bytes_max: usize,
    ) -> Result<Self, StoreError> {
        let next = numbers(&disk)?.last().map_or(1, |last| last + 1);
        let state = Mutex::new(State { next, open: LruCache::unbounded() });
        Ok(Self { disk, store_id, life, open_max: open_max.max(1), blocks_bytes_max, state })
    }

    pub(crate) fn disk(&self) -> &D {
        &self.disk
    }

    pub(crate) fn store_id(&self) -> u64 {
        self.store_id
    }

    pub(crate) fn life(&self) -> u32 {
        self.life
    }

    /// The numbers of all segments in the directory, ascending, whether anybody knows of them or not.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn numbers(&self) -> Result<Vec<u64>, StoreError> {
        numbers(&self.disk)
    }

    /// The number that the next segment gets: above all that were found, made, or [kept free](Segments::keep_free).
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.state().next
    }

    /// Gives no segment this number or a lower one. A segment that is gone may still be named somewhere, in a journal: then a
    /// new one of that number would be taken for it.
    pub fn keep_free(&self, number: u64) {
        let mut state = self.state();
        state.next = state.next.max(number.saturating_add(1));
    }

    /// Begins a new segment for messages of this queue.
    ///
    /// # Errors
    /// As [`Segments::writer_of`].
    pub fn writer(&self, queue: QueueId) -> Result<SegmentWriter<D>, StoreError> {
        self.writer_of(self.take_number(), queue)
    }

    /// Begins the segment of a number that was [taken](Segments::take_number) for it.
    ///
    /// # Errors
    /// [`StoreError::Full`]; [`StoreError::Io`], after which the store should stop, as after any other failed change of the disk.
    pub fn writer_of(&self, number: u64, queue: QueueId) -> Result<SegmentWriter<D>, StoreError> {
        let header = SegmentHeader { store_id: self.store_id, life: self.life, number, queue };
        SegmentWriter::create(self.disk.clone(), header)
    }

    /// A segment, opened when it is not; `None` when there is none of this number.
    ///
    /// # Errors
    /// As [`Segment::open`].
    pub fn get(&self, number: u64) -> Result<Option<Arc<Segment<D>>>, StoreError> {
        if let Some(open) = self.get_open(number) {
            return Ok(Some(open));
        }
        // Not under the lock: others need not wait for the disk. Should two open the same one, either will do.
        let mut opened = Segment::open(&self.disk, number, self.store_id);
        if matches!(opened, Err(StoreError::TooManyFiles { .. })) {
            // Those that nobody reads just now give theirs back.
            self.state().open.clear();
            opened = Segment::open(&self.disk, number, self.store_id);
        }
        match opened {
            Ok(segment) => {
                let segment = Arc::new(segment);
                self.keep(segment.clone());
                Ok(Some(segment))
            }
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A segment, if it is open.
    #[must_use]
    pub fn get_open(&self, number: u64) -> Option<Arc<Segment<D>>> {
        self.state().open.get(&number).cloned()
    }

    /// Closes a segment, if it is open; those who hold it may go on reading.
    pub fn close(&self, number: u64) {
        self.state().open.pop(&number);
    }

    /// Removes a segment, if it is there. It may come back when the power fails; whoever finds one that nobody knows of
    /// removes it again.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn remove(&self, number: u64) -> Result<(), StoreError> {
        self.close(number);
        let name = Name::Segment(number).to_string();
        match self.disk.remove(&name) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io("remove", &name, source))
            }
            _ => Ok(()),
        }
    }

    /// Gives a segment another name, under which it stays until somebody removes it. Answers that name.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn set_aside(&self, number: u64, why: Aside) -> Result<String, StoreError> {
        self.close(number);
        let name = Name::Segment(number).to_string();
        let prefix = match why {
            Aside::Damaged => "damaged",
            Aside::Unknown => "unknown",
        };
        let aside = format!("{prefix}-{name}");
        match self.disk.rename(&name, &aside) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io("rename", &name, source))
            }
            _ => Ok(aside),
        }
    }

    /// How many segments are open now.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.state().open.len()
    }

    /// A number of its own for each caller, whatever other threads do: that of the next segment.
    pub fn take_number(&self) -> u64 {
        let mut state = self.state();
        state.next += 1;
        state.next - 1
    }

    fn keep(&self, segment: Arc<Segment<D>>) {
        let mut state = self.state();
        let mut bytes: usize = state.open.iter().map(|(_, open)| open.blocks_len()).sum();
        while state.open.len() >= self.open_max || bytes > self.blocks_bytes_max {
            let Some((_, closed)) = state.open.pop_lru() else { break };
            bytes -= closed.blocks_len().min(bytes);
        }
        state.open.put(segment.info().number, segment);
    }

    fn state(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().expect("no one panics while holding the segments")
    }
}

fn numbers<D: Disk>(disk: &D) -> Result<Vec<u64>, StoreError> {
    let names = disk.list().map_err(|source| StoreError::io("list", "the directory", source))?;
    let segment = |name: &String| match Name::parse(name) {
        Some(Name::Segment(number)) => Some(number),
        _ => None,
    };
    let mut numbers: Vec<u64> = names.iter().filter_map(segment).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
