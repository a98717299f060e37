//! The back half of the journal: the only one that writes.
//!
//! It lives in the commit thread, or in the simulator. Invariant: a batch is written only after the sync of the one before
//! it returned; what the commit frames state about durability rests on that. The first failure ends it: nothing is known
//! about the disk then, and a second sync may claim what is not true.

use std::collections::VecDeque;

use crate::batch::Batch;
use crate::disk::{Disk, DiskFile, SYNC_LEN, Space};
use crate::error::StoreError;
use crate::file::Name;
use crate::lsn::Lsn;
use crate::pool::{Pool, Prepared, STEP_BYTES_MAX};
use crate::snapshot::Moment;
use crate::writer::FileReady;

/// Writes and syncs batches, prepares files and recycles them.
pub struct Committer<D: Disk> {
    pool: Pool<D>,
    /// The file being written and those after it.
    open: VecDeque<(u64, D::File)>,
    /// Every file of the log, oldest first.
    live: VecDeque<Live>,
    durable: Lsn,
    oldest: u64,
    /// Bytes of the last batch, until a step towards a file has followed it.
    committed: u64,
    poison: Option<String>,
    _guard: D::Guard,
}

#[derive(Clone, Copy)]
pub(crate) struct Live {
    pub(crate) number: u64,
    pub(crate) segment_bytes: u64,
}

impl<D: Disk> Committer<D> {
    pub(crate) fn new(
        pool: Pool<D>,
        guard: D::Guard,
        live: VecDeque<Live>,
        durable: Lsn,
        oldest: u64,
    ) -> Self {
        Self { pool, open: VecDeque::new(), live, durable, oldest, committed: 0, poison: None, _guard: guard }
    }

    pub(crate) fn add_open(&mut self, number: u64, file: D::File) {
        self.open.push_back((number, file));
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
        self.check_health()?;
        assert_eq!(batch.start, self.durable, "batches are committed in the order they were taken");
        let written = self.write(batch);
        self.or_poison(written)?;
        self.durable = batch.end;
        self.oldest = batch.oldest;
        self.committed = batch.len() as u64;
        let current = batch.extents.last().map_or(0, |extent| extent.file);
        self.open.retain(|(number, _)| *number >= current);
        Ok(self.durable)
    }

    /// Prepares the next file for the log, to the end. Takes as long as writing a file of zeros, unless there is a spare.
    ///
    /// # Errors
    /// [`StoreError::Full`] when there is no room, [`StoreError::TooManyFiles`]: nothing has changed, ask again later. Anything else
    /// poisons.
    pub fn prepare_file(&mut self) -> Result<FileReady, StoreError> {
        loop {
            if let Prepared::Ready(news) = self.prepare(STEP_BYTES_MAX)? {
                return Ok(news);
            }
        }
    }

    /// One step towards the next file: half a MiB of zeros, so that a commit need not wait long, and twice as many as the batch
    /// before it has where that is more, so that the file is ready before the one in use is full; 4 MiB at most.
    ///
    /// # Errors
    /// As [`Committer::prepare_file`].
    pub fn prepare_some(&mut self) -> Result<Prepared, StoreError> {
        let committed = std::mem::take(&mut self.committed);
        self.prepare((2 * committed).clamp(SYNC_LEN, STEP_BYTES_MAX))
    }

    fn prepare(&mut self, bytes: u64) -> Result<Prepared, StoreError> {
        self.check_health()?;
        let step = self.pool.prepare_step(bytes);
        match self.or_poison(step)? {
            None => Ok(Prepared::More),
            Some((header, file)) => {
                self.live.push_back(Live { number: header.number, segment_bytes: header.segment_bytes });
                self.open.push_back((header.number, file));
                Ok(Prepared::Ready(FileReady { number: header.number }))
            }
        }
    }

    /// Recycles, or removes, the files that a durable batch stated to be needless. Returns how many.
    ///
    /// # Errors
    /// Whatever the disk said; that poisons.
    pub fn retire(&mut self) -> Result<usize, StoreError> {
        self.check_health()?;
        let retired = self.retire_files();
        self.or_poison(retired)
    }

    /// Gives the spares back to the disk, which is short of room. Returns how many.
    ///
    /// # Errors
    /// Whatever the disk said; that poisons.
    pub fn drop_spares(&mut self) -> Result<usize, StoreError> {
        self.check_health()?;
        let dropped = self.pool.drop_spares().and_then(|dropped| {
            if dropped > 0 {
                self.pool.sync()?;
            }
            Ok(dropped)
        });
        self.or_poison(dropped)
    }

    /// How much room there is on the disk; `None` where that cannot be told.
    ///
    /// # Errors
    /// [`StoreError::Io`]. It only looks, so that does not poison.
    pub fn space(&self) -> Result<Option<Space>, StoreError> {
        self.pool.space()
    }

    /// Whether somebody removed the file that was written to last: what was committed there is found by nobody.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.open.front().is_some_and(|(_, file)| file.is_removed().unwrap_or(false))
    }

    /// Everything below this LSN is durable.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.durable
    }

    /// What a snapshot taken now shows. Its files stay as they are until the next [`Committer::retire`].
    #[must_use]
    pub fn moment(&self) -> Moment {
        let current = self.open.front().map_or(self.oldest, |(number, _)| *number);
        Moment { oldest: self.oldest, current, durable: self.durable }
    }

    /// How many files [`Committer::retire`] would recycle or remove.
    #[must_use]
    pub fn needless(&self) -> usize {
        self.live.iter().take_while(|file| file.number < self.oldest).count()
    }

    /// How many spares there are, beside the prepared files.
    #[must_use]
    pub fn spares(&self) -> usize {
        self.pool.spares()
    }

    /// Why the store stopped, if it did.
    #[must_use]
    pub fn poison(&self) -> Option<&str> {
        self.poison.as_deref()
    }

    fn write(&self, batch: &Batch) -> Result<(), StoreError> {
        for extent in &batch.extents {
            let bytes = &batch.bytes[extent.range.clone()];
            let written = self.file(extent.file).write_at(extent.offset, bytes);
            written.map_err(|source| self.failed("write to", extent.file, source))?;
        }
        for extent in &batch.extents {
            let synced = self.file(extent.file).sync_data();
            synced.map_err(|source| self.failed("sync", extent.file, source))?;
        }
        Ok(())
    }

    fn file(&self, number: u64) -> &D::File {
        let found = self.open.iter().find(|(open, _)| *open == number);
        &found.expect("a batch touches only prepared files").1
    }

    fn failed(&self, op: &'static str, number: u64, source: std::io::Error) -> StoreError {
        StoreError::io(op, &Name::Journal(number).to_string(), source)
    }

    fn retire_files(&mut self) -> Result<usize, StoreError> {
        let mut retired = 0;
        while let Some(file) = self.live.front().filter(|file| file.number < self.oldest).copied() {
            let is_there = self.pool.recycle(&Name::Journal(file.number).to_string(), file.segment_bytes)?;
            self.live.pop_front();
            retired += usize::from(is_there);
        }
        if retired > 0 {
            self.pool.sync()?;
        }
        Ok(retired)
    }

    fn check_health(&self) -> Result<(), StoreError> {
        match &self.poison {
            Some(why) => Err(StoreError::Poisoned { why: why.clone() }),
            None => Ok(()),
        }
    }

    fn or_poison<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &result
            && !error.is_passing()
        {
            self.poison = Some(error.to_string());
        }
        result
    }
}
