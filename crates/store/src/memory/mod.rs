//! A disk in memory that can do to its files whatever a real one may: the simulator's and the tests'.

mod content;
mod operation;
mod rng;
mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::disk::{Disk, DiskFile, Space};
pub use operation::{Counts, Fault, Operation, OperationKind};
use state::{State, fault_error};

/// A [`Disk`] in memory: the simulator's and the tests'.
///
/// Deterministic: what a fault does is drawn from the seed. Cloning gives another handle on the same disk. What it holds:
///
/// - A write is readable at once and durable after a sync of its file; a name is durable after a sync of the directory.
/// - [`MemoryDisk::power_cut`]: each write since the last sync lands, vanishes or is torn, sector by sector, to old, new or
///   garbage, each on its own; each name made, changed or removed since the last directory sync stays or vanishes.
///   Garbage strikes only bytes that the write was changing (see what the crate takes for granted).
/// - [`MemoryDisk::kill`]: every write survives; the handles and the lock of the process are gone.
/// - [`MemoryDisk::fail_next_sync`]: the next sync fails, and then *lies*: what was waiting is clean, though it may not be durable.
#[derive(Clone)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

impl MemoryDisk {
    /// An empty disk without bounds, whose faults are drawn from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(seed))) }
    }

    /// The power fails, with what that does to what was not synced. Open handles are dead, the lock is free.
    pub fn power_cut(&self) {
        self.state().power_cut();
    }

    /// The process is killed: what it wrote stays, its handles are dead, its lock is free.
    pub fn kill(&self) {
        self.state().kill();
    }

    /// Makes the next sync, of a file or of the directory, fail, and the ones after it lie about what it lost.
    pub fn fail_next_sync(&self) {
        self.state().fails_next_sync = true;
    }

    /// Bounds the disk to so many bytes in all files; `None` takes the bound away.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Bytes in all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// Damages a byte at rest: xors `mask` onto it. Returns whether there is such a byte.
    pub fn flip(&self, name: &str, offset: u64, mask: u8) -> bool {
        self.state().flip(name, offset, mask)
    }

    /// What a file holds; `None` when there is none.
    #[must_use]
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.state().content(name)
    }

    /// Puts a file there, durable at once, in place of one of that name.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        self.state().put(name, bytes);
    }

    /// The names of all files, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.state().names()
    }

    /// How many operations there have been.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Asks `hook` before every operation what shall go wrong with it. It must not touch the disk itself.
    pub fn set_hook(&self, hook: impl FnMut(&Operation<'_>) -> Fault + Send + 'static) {
        self.state().hook = Some(Box::new(hook));
    }

    /// Takes the hook away.
    pub fn clear_hook(&self) {
        self.state().hook = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no one panics while holding the disk")
    }

    fn file(&self, id: u64, epoch: u64) -> MemoryFile {
        MemoryFile { disk: self.clone(), id, epoch }
    }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;
    type Guard = MemoryGuard;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.names())
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let state = self.state();
        let id = state.find(name)?;
        Ok(self.file(id, state.epoch))
    }

    fn open_to_read(&self, name: &str) -> io::Result<MemoryFile> {
        self.open(name)
    }

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        let mut state = self.state();
        let fault = state.ask(OperationKind::Create, name, 0, 0)?;
        let id = state.create(name)?;
        state.strike(fault)?;
        Ok(self.file(id, state.epoch))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let fault = state.ask(OperationKind::Rename, from, 0, 0)?;
        state.rename(from, to)?;
        state.strike(fault)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        let fault = state.ask(OperationKind::Remove, name, 0, 0)?;
        state.remove(name)?;
        state.strike(fault)
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state();
        let fault = state.ask(OperationKind::SyncDir, "", 0, 0)?;
        state.strike(fault)?;
        state.sync_dir()
    }

    fn lock(&self) -> io::Result<MemoryGuard> {
        let mut state = self.state();
        if state.is_locked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.is_locked = true;
        Ok(MemoryGuard { disk: self.clone(), epoch: state.epoch })
    }

    fn is_locked(&self) -> io::Result<bool> {
        Ok(self.state().is_locked)
    }

    /// Known when the disk is bounded.
    fn space(&self) -> io::Result<Option<Space>> {
        let state = self.state();
        let free = |total: u64| total.saturating_sub(state.used());
        Ok(state.capacity.map(|total| Space { free: free(total), total }))
    }
}

/// The lock of a [`MemoryDisk`].
pub struct MemoryGuard {
    disk: MemoryDisk,
    epoch: u64,
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.epoch == self.epoch {
            state.is_locked = false;
        }
    }
}

/// A file of a [`MemoryDisk`]; dead after a kill or a power cut.
#[derive(Clone)]
pub struct MemoryFile {
    disk: MemoryDisk,
    id: u64,
    epoch: u64,
}

impl MemoryFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.epoch == self.epoch {
            Ok(state)
        } else {
            Err(fault_error("the process that had this file is gone"))
        }
    }

    fn sync(&self, kind: OperationKind) -> io::Result<()> {
        let mut state = self.state()?;
        let name = state.name_of(self.id);
        let fault = state.ask(kind, &name, 0, 0)?;
        state.strike(fault)?;
        state.sync(self.id)
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state()?;
        let name = if state.hook.is_some() { state.name_of(self.id) } else { String::new() };
        let fault = state.ask(OperationKind::Read, &name, offset, buf.len() as u64)?;
        state.strike(fault)?;
        Ok(state.read_at(self.id, offset, buf))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state()?;
        let name = state.name_of(self.id);
        let fault = state.ask(OperationKind::Write, &name, offset, bytes.len() as u64)?;
        state.write_at(self.id, offset, bytes)?;
        state.strike(fault)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(OperationKind::SyncData)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(OperationKind::SyncAll)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.len(self.id))
    }

    fn is_removed(&self) -> io::Result<bool> {
        Ok(self.state()?.name_of(self.id).is_empty())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state()?;
        let name = state.name_of(self.id);
        let fault = state.ask(OperationKind::SetLen, &name, len, 0)?;
        state.set_len(self.id, len)?;
        state.strike(fault)
    }
}
