//! The back half of the journal: what writes batches, and the pool its files come from.
//!
//! They live in a thread each, or both in the simulator. Invariant: a batch is written only after the sync of the one before
//! it returned; what the commit frames state about durability rests on that. The first failure of either ends both: nothing is
//! known about the disk then, and a second sync may claim what is not true.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::batch::Batch;
use crate::disk::{Disk, DiskFile, Space};
use crate::error::StoreError;
use crate::file::Name;
use crate::lsn::Lsn;
use crate::pool::{Pool, ReadyFile};
use crate::snapshot::Moment;
use crate::writer::FileReady;

/// Writes and syncs batches, prepares files and recycles them: a [`Log`] and its [`Pool`], for one caller.
pub struct Committer<D: Disk> {
    log: Log<D::File>,
    pool: Pool<D>,
}

/// Writes and syncs batches, in the files it was given.
pub struct Log<F> {
    /// The file being written and those after it.
    open: VecDeque<ReadyFile<F>>,
    durable: Lsn,
    oldest: u64,
    both: Arc<Both>,
}

/// What both halves know.
#[derive(Default)]
pub(crate) struct Both {
    poison: OnceLock<String>,
    /// Bytes committed since a step was last taken towards a file.
    committed: AtomicU64,
}

impl<D: Disk> Committer<D> {
    pub(crate) fn new(pool: Pool<D>, durable: Lsn, oldest: u64) -> Self {
        let log = Log { open: VecDeque::new(), durable, oldest, both: Arc::clone(&pool.both) };
        Self { log, pool }
    }

    pub(crate) fn add_open(&mut self, file: ReadyFile<D::File>) {
        self.log.add(file);
    }

    /// Both halves, for a thread each. The pool is to live longer: it holds the store against other processes.
    #[must_use]
    pub fn split(self) -> (Log<D::File>, Pool<D>) {
        (self.log, self.pool)
    }

    /// [`Log::commit`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn commit(&mut self, batch: &Batch) -> Result<Lsn, StoreError> {
        self.log.commit(batch)
    }

    /// Prepares the next file for the log, to the end. Takes as long as writing a file of zeros, unless there is a spare.
    ///
    /// # Errors
    /// As [`Pool::prepare_some`].
    pub fn prepare_file(&mut self) -> Result<FileReady, StoreError> {
        let file = self.pool.prepare()?;
        let news = file.news();
        self.log.add(file);
        Ok(news)
    }

    /// Recycles, or removes, the files that a durable batch stated to be needless. Returns how many.
    ///
    /// # Errors
    /// Whatever the disk said; that poisons.
    pub fn retire(&mut self) -> Result<usize, StoreError> {
        self.pool.retire(self.log.oldest)
    }

    /// [`Pool::drop_spares`].
    ///
    /// # Errors
    /// As there.
    pub fn drop_spares(&mut self) -> Result<usize, StoreError> {
        self.pool.drop_spares()
    }

    /// How much room there is on the disk; `None` where that cannot be told.
    ///
    /// # Errors
    /// [`StoreError::Io`]. It only looks, so that does not poison.
    pub fn space(&self) -> Result<Option<Space>, StoreError> {
        self.pool.space()
    }

    /// [`Log::durable`].
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.log.durable
    }

    /// [`Log::moment`].
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.log.moment()
    }

    /// How many spares there are, beside the prepared files.
    #[must_use]
    pub fn spares(&self) -> usize {
        self.pool.spares()
    }

    /// Why the store stopped, if it did.
    #[must_use]
    pub fn poison(&self) -> Option<&str> {
        self.log.both.poison()
    }
}

impl<F: DiskFile> Log<F> {
    /// Takes a file of the [`Pool`] in use, before the [`Writer`](crate::Writer) is told of it.
    pub fn add(&mut self, file: ReadyFile<F>) {
        self.open.push_back(file);
    }

    /// Writes a batch and syncs it; returns the durable LSN, [`Batch::end`].
    ///
    /// # Errors
    /// Whatever the disk said, once; then [`StoreError::Poisoned`] for ever. What is on the disk is unknown until the store
    /// is opened anew.
    ///
    /// # Panics
    /// When batches come out of order.
    pub fn commit(&mut self, batch: &Batch) -> Result<Lsn, StoreError> {
        self.both.check_health()?;
        assert_eq!(batch.start, self.durable, "batches are committed in the order they were taken");
        self.both.or_poison(self.write(batch))?;
        self.durable = batch.end;
        self.oldest = batch.oldest;
        self.both.committed.fetch_add(batch.len() as u64, Ordering::Relaxed);
        let current = batch.extents.last().map_or(0, |extent| extent.file);
        self.open.retain(|file| file.number >= current);
        Ok(self.durable)
    }

    /// Everything below this LSN is durable.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.durable
    }

    /// The oldest file that is needed, as a durable batch stated: what [`Pool::retire`] is to be told.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// What a snapshot taken now shows. Its files stay as they are until the next [`Pool::retire`].
    #[must_use]
    pub fn moment(&self) -> Moment {
        let current = self.open.front().map_or(self.oldest, |file| file.number);
        Moment { oldest: self.oldest, current, durable: self.durable }
    }

    /// Whether somebody removed the file that was written to last: what was committed there is found by nobody.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.open.front().is_some_and(|open| open.file.is_removed().unwrap_or(false))
    }

    fn write(&self, batch: &Batch) -> Result<(), StoreError> {
        for extent in &batch.extents {
            let bytes = &batch.bytes[extent.range.clone()];
            let written = self.file(extent.file).write_at(extent.offset, bytes);
            written.map_err(|source| failed("write to", extent.file, source))?;
        }
        for extent in &batch.extents {
            let synced = self.file(extent.file).sync_data();
            synced.map_err(|source| failed("sync", extent.file, source))?;
        }
        Ok(())
    }

    fn file(&self, number: u64) -> &F {
        let found = self.open.iter().find(|open| open.number == number);
        &found.expect("a batch touches only prepared files").file
    }
}

fn failed(op: &'static str, number: u64, source: std::io::Error) -> StoreError {
    StoreError::io(op, &Name::Journal(number).to_string(), source)
}

impl Both {
    pub(crate) fn poison(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    pub(crate) fn check_health(&self) -> Result<(), StoreError> {
        self.poison().map_or(Ok(()), |why| Err(StoreError::Poisoned { why: why.to_owned() }))
    }

    /// The first failure is the one that is told from then on.
    pub(crate) fn or_poison<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &result
            && !error.is_passing()
        {
            self.poison.get_or_init(|| error.to_string());
        }
        result
    }

    pub(crate) fn take_committed(&self) -> u64 {
        self.committed.swap(0, Ordering::Relaxed)
    }
}
