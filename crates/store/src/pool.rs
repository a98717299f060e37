//! Where journal files come from and go to: made, prepared, recycled, removed.
//!
//! A file is prepared under a name that recovery ignores, and renamed only when its zeros and its header are durable; so
//! a crash leaves either a file that can be used or one that may be thrown away.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use crate::committer::Both;
use crate::disk::{Disk, DiskFile, SYNC_LEN, Space};
use crate::error::StoreError;
use crate::file::{FileHeader, Name};
use crate::writer::FileReady;

/// Bytes of zeros written and synced in one step, at most.
const STEP_BYTES_MAX: u64 = 4 << 20;

/// The files of the journal: makes them ready for the [`Log`](crate::Log), and takes them back.
pub struct Pool<D: Disk> {
    disk: D,
    /// The header of the next file to prepare.
    next: FileHeader,
    /// Every file of the log, oldest first.
    live: VecDeque<Live>,
    spares: Vec<u64>,
    spares_max: usize,
    last_id: u64,
    making: Option<Making<D::File>>,
    pub(crate) both: Arc<Both>,
    _guard: D::Guard,
}

/// A file that the [`Log`](crate::Log) may write to.
pub struct ReadyFile<F> {
    pub(crate) number: u64,
    pub(crate) file: F,
}

impl<F> ReadyFile<F> {
    /// What the [`Writer`](crate::Writer) is to be told, once the log has the file.
    #[must_use]
    pub fn news(&self) -> FileReady {
        FileReady { number: self.number }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Live {
    pub(crate) number: u64,
    pub(crate) segment_bytes: u64,
}

struct Making<F> {
    name: String,
    file: F,
    written: u64,
}

impl<D: Disk> Pool<D> {
    /// `live` are the files of the log, `next` is the header of the one after them. Ids above `last_id` are free.
    pub(crate) fn new(
        disk: D,
        guard: D::Guard,
        live: VecDeque<Live>,
        next: FileHeader,
        spares_max: usize,
        last_id: u64,
    ) -> Self {
        let (spares, both) = (Vec::new(), Arc::default());
        Self { disk, next, live, spares, spares_max, last_id, making: None, both, _guard: guard }
    }

    /// How many spares there are, beside the prepared files.
    #[must_use]
    pub fn spares(&self) -> usize {
        self.spares.len()
    }

    /// One step towards the next file: half a MiB of zeros, so that a commit meanwhile need not wait long, and twice as many as
    /// were committed since the step before where that is more, so that the file is ready before the one in use is full; 4 MiB
    /// at most. A spare is ready at once.
    ///
    /// # Errors
    /// [`StoreError::Full`] when there is no room, [`StoreError::TooManyFiles`]: nothing has changed, ask again later. Anything else
    /// poisons.
    pub fn prepare_some(&mut self) -> Result<Option<ReadyFile<D::File>>, StoreError> {
        // What was committed before the file was begun says nothing of how fast it must be.
        let committed = self.both.take_committed() * u64::from(self.making.is_some());
        self.prepare_step((2 * committed).clamp(SYNC_LEN, STEP_BYTES_MAX))
    }

    /// As [`Pool::prepare_some`], to the end.
    pub(crate) fn prepare(&mut self) -> Result<ReadyFile<D::File>, StoreError> {
        loop {
            if let Some(file) = self.prepare_step(STEP_BYTES_MAX)? {
                return Ok(file);
            }
        }
    }

    fn prepare_step(&mut self, bytes: u64) -> Result<Option<ReadyFile<D::File>>, StoreError> {
        self.both.check_health()?;
        let step = self.make_some(bytes);
        let made = self.both.or_poison(step)?;
        Ok(made.map(|(header, file)| {
            self.live.push_back(Live { number: header.number, segment_bytes: header.segment_bytes });
            ReadyFile { number: header.number, file }
        }))
    }

    /// Recycles, or removes, the files before the oldest that is needed, [`Log::oldest`](crate::Log::oldest). Returns how many.
    ///
    /// # Errors
    /// Whatever the disk said; that poisons.
    pub fn retire(&mut self, oldest: u64) -> Result<usize, StoreError> {
        self.both.check_health()?;
        let retired = self.retire_files(oldest);
        self.both.or_poison(retired)
    }

    fn retire_files(&mut self, oldest: u64) -> Result<usize, StoreError> {
        let mut retired = 0;
        while let Some(file) = self.live.front().filter(|file| file.number < oldest).copied() {
            let is_there = self.recycle(&Name::Journal(file.number).to_string(), file.segment_bytes)?;
            self.live.pop_front();
            retired += usize::from(is_there);
        }
        if retired > 0 {
            self.sync()?;
        }
        Ok(retired)
    }

    /// How many files [`Pool::retire`] would recycle or remove.
    #[must_use]
    pub fn needless(&self, oldest: u64) -> usize {
        self.live.iter().take_while(|file| file.number < oldest).count()
    }

    /// Gives the spares back to the disk, which is short of room. Returns how many.
    ///
    /// # Errors
    /// Whatever the disk said; that poisons.
    pub fn drop_spares(&mut self) -> Result<usize, StoreError> {
        self.both.check_health()?;
        let dropped = self.remove_spares().and_then(|dropped| {
            if dropped > 0 {
                self.sync()?;
            }
            Ok(dropped)
        });
        self.both.or_poison(dropped)
    }

    pub(crate) fn space(&self) -> Result<Option<Space>, StoreError> {
        self.disk.space().map_err(|source| StoreError::io("look at the room of", "the directory", source))
    }

    /// A spare is ready at once, a new file takes a step for every so many `bytes`.
    fn make_some(&mut self, bytes: u64) -> Result<Option<(FileHeader, D::File)>, StoreError> {
        if let Some(id) = self.spares.pop() {
            let name = Name::Spare(id).to_string();
            let file = match self.disk.open(&name).map_err(|source| StoreError::io("open", &name, source)) {
                Err(error) if error.is_passing() => {
                    self.spares.push(id);
                    return Err(error);
                }
                Err(error) if error.is_gone() => return self.make_some(bytes),
                opened => opened?,
            };
            return self.stamp(&name, file).map(Some);
        }
        let making = match self.making.take() {
            Some(making) => making,
            None => self.begin_file()?,
        };
        match self.write_some(making, bytes) {
            Ok(Some(made)) => self.stamp(&made.name, made.file).map(Some),
            Ok(None) => Ok(None),
            Err((making, error)) => Err(self.give_up(&making.name, error)),
        }
    }

    fn begin_file(&mut self) -> Result<Making<D::File>, StoreError> {
        self.last_id += 1;
        let name = Name::New(self.last_id).to_string();
        match self.disk.create(&name) {
            Ok(file) => Ok(Making { name, file, written: 0 }),
            Err(source) => Err(full_or(StoreError::io("create", &name, source))),
        }
    }

    /// Writes some zeros; returns the file when it has all of them.
    #[expect(clippy::type_complexity, reason = "the file comes back with the error, to be removed")]
    fn write_some(
        &mut self,
        mut making: Making<D::File>,
        bytes: u64,
    ) -> Result<Option<Making<D::File>>, (Making<D::File>, StoreError)> {
        let to = (making.written + bytes).min(self.next.segment_bytes);
        if let Err(error) = write_zeros(&making.file, &making.name, making.written, to) {
            return Err((making, error));
        }
        making.written = to;
        if to == self.next.segment_bytes {
            return Ok(Some(making));
        }
        self.making = Some(making);
        Ok(None)
    }

    /// A full disk keeps nothing half-made.
    fn give_up(&mut self, name: &str, error: StoreError) -> StoreError {
        if !error.is_full() {
            return error;
        }
        let removed = self.disk.remove(name).and_then(|()| self.disk.sync_dir());
        match removed {
            Ok(()) => StoreError::Full,
            Err(source) => StoreError::io("remove", name, source),
        }
    }

    /// Gives a file of the right length its header and then its name.
    fn stamp(&mut self, name: &str, file: D::File) -> Result<(FileHeader, D::File), StoreError> {
        let header = self.next;
        file.write_at(0, &header.encode()).map_err(|source| StoreError::io("write to", name, source))?;
        file.sync_all().map_err(|source| StoreError::io("sync", name, source))?;
        let renamed = self.disk.rename(name, &header.name());
        renamed.map_err(|source| full_or(StoreError::io("rename", name, source)))?;
        self.disk
            .sync_dir()
            .map_err(|source| StoreError::io("sync the directory of", &header.name(), source))?;
        self.next = header.next(header.life, header.segment_bytes);
        Ok((header, file))
    }

    /// Makes a spare of a file, or removes it when there are enough or its length is another. Durable after [`Pool::sync`]. False: it was
    /// gone already.
    pub(crate) fn recycle(&mut self, name: &str, len: u64) -> Result<bool, StoreError> {
        if self.spares.len() >= self.spares_max || len != self.next.segment_bytes {
            return unless_gone(self.disk.remove(name), "remove", name);
        }
        self.last_id += 1;
        let spare = Name::Spare(self.last_id).to_string();
        let is_there = unless_gone(self.disk.rename(name, &spare), "rename", name)?;
        if is_there {
            self.spares.push(self.last_id);
        }
        Ok(is_there)
    }

    /// Removes every spare; returns how many there were. Durable after [`Pool::sync`].
    fn remove_spares(&mut self) -> Result<usize, StoreError> {
        let mut dropped = 0;
        while let Some(id) = self.spares.pop() {
            let name = Name::Spare(id).to_string();
            dropped += usize::from(unless_gone(self.disk.remove(&name), "remove", &name)?);
        }
        Ok(dropped)
    }

    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        self.disk.sync_dir().map_err(|source| StoreError::io("sync", "the directory", source))
    }
}

/// A directory that was moved away has no room for another file until it is back.
fn full_or(error: StoreError) -> StoreError {
    if error.is_full() || error.is_gone() { StoreError::Full } else { error }
}

/// Writes zeros from one offset to another and syncs them, so that later writes there need no room.
pub(crate) fn write_zeros<F: DiskFile>(file: &F, name: &str, from: u64, to: u64) -> Result<(), StoreError> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = from;
    while at < to {
        let len = (ZEROS.len() as u64).min(to - at);
        let bytes = &ZEROS[..len as usize];
        file.write_at(at, bytes).map_err(|source| StoreError::io("write to", name, source))?;
        at += len;
    }
    file.sync_all().map_err(|source| StoreError::io("sync", name, source))
}
/// Whether a file that nobody needs was there. Somebody may have removed it.
fn unless_gone(done: io::Result<()>, op: &'static str, name: &str) -> Result<bool, StoreError> {
    match done {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(false),
        done => done.map(|()| true).map_err(|source| StoreError::io(op, name, source)),
    }
}
