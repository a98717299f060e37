//! What a memory disk holds, and what its faults do.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::content::{Change, apply, land_or_not};
use super::operation::{Counts, Fault, Operation, OperationKind};
use super::rng::Rng;

type Hook = Box<dyn FnMut(&Operation<'_>) -> Fault + Send>;

pub(super) struct State {
    rng: Rng,
    files: BTreeMap<u64, Inode>,
    last_id: u64,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    pending_names: Vec<NameChange>,
    pub(super) is_locked: bool,
    pub(super) capacity: Option<u64>,
    pub(super) fails_next_sync: bool,
    pub(super) counts: Counts,
    pub(super) hook: Option<Hook>,
    /// Counts kills and power cuts; handles of an older epoch are dead.
    pub(super) epoch: u64,
}

#[derive(Default)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone)]
enum NameChange {
    Create(String, u64),
    Rename(u64, String),
    Remove(u64),
}

impl NameChange {
    fn file(&self) -> u64 {
        let (Self::Create(_, id) | Self::Rename(id, _) | Self::Remove(id)) = self;
        *id
    }
}

pub(super) fn fault_error(why: &str) -> io::Error {
    io::Error::other(why.to_owned())
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            files: BTreeMap::new(),
            last_id: 0,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            is_locked: false,
            capacity: None,
            fails_next_sync: false,
            counts: Counts::default(),
            hook: None,
            epoch: 0,
        }
    }

    /// Counts an operation and asks the hook; faults without effect return their error here, the others later in `strike`.
    pub(super) fn ask(
        &mut self,
        kind: OperationKind,
        name: &str,
        offset: u64,
        len: u64,
    ) -> io::Result<Fault> {
        let operation = Operation { index: self.counts.operations(), kind, name, offset, len };
        self.counts.count(kind, len);
        let fault = self.hook.as_mut().map_or(Fault::None, |hook| hook(&operation));
        let is_sync =
            matches!(kind, OperationKind::SyncData | OperationKind::SyncAll | OperationKind::SyncDir);
        match fault {
            Fault::Error(kind) => Err(kind.into()),
            Fault::Unreadable => Err(rustix::io::Errno::IO.into()),
            Fault::TooManyFiles => Err(rustix::io::Errno::MFILE.into()),
            Fault::FailSync if is_sync => {
                self.fails_next_sync = true;
                Ok(Fault::None)
            }
            Fault::FailSync => Err(fault_error("input/output error")),
            fault => Ok(fault),
        }
    }

    pub(super) fn strike(&mut self, fault: Fault) -> io::Result<()> {
        match fault {
            Fault::PowerCut => self.power_cut(),
            Fault::Kill => self.kill(),
            Fault::None | Fault::Error(_) | Fault::Unreadable | Fault::TooManyFiles | Fault::FailSync => {
                return Ok(());
            }
        }
        Err(fault_error("the process is gone"))
    }

    pub(super) fn kill(&mut self) {
        self.epoch += 1;
        self.is_locked = false;
        self.fails_next_sync = false;
        self.forget_nameless();
    }

    pub(super) fn power_cut(&mut self) {
        self.kill();
        for change in std::mem::take(&mut self.pending_names) {
            if self.rng.below(2) == 0 {
                apply_name(&mut self.durable_names, &change);
            }
        }
        self.names = self.durable_names.clone();
        for inode in self.files.values_mut() {
            for change in std::mem::take(&mut inode.pending) {
                land_or_not(&mut self.rng, &mut inode.durable, &change);
            }
            inode.now = inode.durable.clone();
        }
        self.forget_nameless();
    }

    /// Drops the content of files that no name leads to, nor can after a power cut.
    fn forget_nameless(&mut self) {
        let pending = self.pending_names.iter().map(NameChange::file);
        let named = self.names.values().chain(self.durable_names.values()).copied();
        let named: BTreeSet<u64> = named.chain(pending).collect();
        self.files.retain(|id, _| named.contains(id));
    }

    pub(super) fn find(&self, name: &str) -> io::Result<u64> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn name_of(&self, id: u64) -> String {
        self.names.iter().find(|(_, named)| **named == id).map(|(name, _)| name.clone()).unwrap_or_default()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    pub(super) fn create(&mut self, name: &str) -> io::Result<u64> {
        if self.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.capacity.is_some_and(|capacity| self.used() >= capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.last_id += 1;
        self.files.insert(self.last_id, Inode::default());
        self.change_name(NameChange::Create(name.to_owned(), self.last_id));
        Ok(self.last_id)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let id = self.find(from)?;
        self.change_name(NameChange::Rename(id, to.to_owned()));
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        let id = self.find(name)?;
        self.change_name(NameChange::Remove(id));
        Ok(())
    }

    fn change_name(&mut self, change: NameChange) {
        apply_name(&mut self.names, &change);
        self.pending_names.push(change);
    }

    pub(super) fn sync_dir(&mut self) -> io::Result<()> {
        let fails = std::mem::take(&mut self.fails_next_sync);
        for change in std::mem::take(&mut self.pending_names) {
            if !fails || self.rng.below(2) == 0 {
                apply_name(&mut self.durable_names, &change);
            }
        }
        if fails { Err(fault_error("input/output error")) } else { Ok(()) }
    }

    pub(super) fn sync(&mut self, id: u64) -> io::Result<()> {
        let fails = std::mem::take(&mut self.fails_next_sync);
        let inode = inode(&mut self.files, id);
        for change in std::mem::take(&mut inode.pending) {
            if fails {
                land_or_not(&mut self.rng, &mut inode.durable, &change);
            } else {
                apply(&mut inode.durable, &change);
            }
        }
        if fails { Err(fault_error("input/output error")) } else { Ok(()) }
    }

    pub(super) fn used(&self) -> u64 {
        self.names.values().map(|id| self.files[id].now.len() as u64).sum()
    }

    pub(super) fn len(&self, id: u64) -> u64 {
        self.files[&id].now.len() as u64
    }

    pub(super) fn read_at(&self, id: u64, offset: u64, buf: &mut [u8]) -> usize {
        let now = &self.files[&id].now;
        let from = now.len().min(offset as usize);
        let len = buf.len().min(now.len() - from);
        buf[..len].copy_from_slice(&now[from..from + len]);
        len
    }

    /// Writes what there is room for, and fails when that is not all.
    pub(super) fn write_at(&mut self, id: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let room = self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()));
        let fits = self.len(id).saturating_add(room).saturating_sub(offset).min(bytes.len() as u64) as usize;
        if fits > 0 {
            self.change(id, Change::Write { offset: offset as usize, bytes: bytes[..fits].to_vec() });
        }
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    pub(super) fn set_len(&mut self, id: u64, len: u64) -> io::Result<()> {
        let more = len.saturating_sub(self.len(id));
        if self.capacity.is_some_and(|capacity| self.used() + more > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.change(id, Change::SetLen(len as usize));
        Ok(())
    }

    fn change(&mut self, id: u64, change: Change) {
        let inode = inode(&mut self.files, id);
        apply(&mut inode.now, &change);
        inode.pending.push(change);
    }

    pub(super) fn flip(&mut self, name: &str, offset: u64, mask: u8) -> bool {
        let Ok(id) = self.find(name) else { return false };
        let inode = inode(&mut self.files, id);
        for content in [&mut inode.now, &mut inode.durable] {
            if let Some(byte) = content.get_mut(offset as usize) {
                *byte ^= mask;
            }
        }
        (offset as usize) < inode.now.len()
    }

    pub(super) fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.find(name).ok().map(|id| self.files[&id].now.clone())
    }

    pub(super) fn put(&mut self, name: &str, bytes: Vec<u8>) {
        self.last_id += 1;
        self.files.insert(self.last_id, Inode { now: bytes.clone(), durable: bytes, pending: Vec::new() });
        self.names.insert(name.to_owned(), self.last_id);
        self.durable_names.insert(name.to_owned(), self.last_id);
    }
}

fn inode(files: &mut BTreeMap<u64, Inode>, id: u64) -> &mut Inode {
    files.get_mut(&id).expect("a file stays while a handle of this epoch has it")
}

/// A file has one name: when an earlier change vanished, a later one still finds the file, and its older name goes.
fn apply_name(names: &mut BTreeMap<String, u64>, change: &NameChange) {
    let id = change.file();
    names.retain(|_, named| *named != id);
    if let NameChange::Create(name, _) | NameChange::Rename(_, name) = change {
        names.insert(name.clone(), id);
    }
}
