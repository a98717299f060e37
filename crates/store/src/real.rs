//! A directory of the operating system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::buffer::spare_capacity;
use rustix::fs::{IFlags, fstatfs, ioctl_getflags, ioctl_setflags, statfs};
use rustix::io::Errno;

use crate::disk::{Disk, DiskFile, LOCK_NAME, Space};
use crate::error::{StoreError, is_too_many_files};

/// Descriptors kept for the time when the process may open no more files.
const RESERVE: usize = 8;

/// `f_type` of statfs(2).
const BTRFS: u32 = 0x9123_683E;
/// Filesystems that never overwrite: each change is written to free room.
const COPY_ON_WRITE: [(u32, &str); 2] = [(0x2FC1_2FC1, "zfs"), (0xCA45_1A4E, "bcachefs")];

/// A [`Disk`] over a directory, through `std::fs`.
///
/// It keeps some descriptors of its own and gives them up, one by one, when the process may open no more files: so connections, of which
/// there may be many, do not keep a store from the few files that it opens.
#[derive(Clone, Debug)]
pub struct RealDisk {
    dir: Arc<PathBuf>,
    /// The file that this process has locked, as the filesystem knows it: device and inode.
    locked: Arc<Mutex<Option<(u64, u64)>>>,
    /// The directory itself, to sync it.
    handle: Arc<File>,
    reserve: Arc<Mutex<Vec<File>>>,
}

impl RealDisk {
    /// The directory at `dir`, made with its parents when it is not there.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it cannot be made, or is not a directory.
    pub fn create(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        fs::create_dir_all(dir).map_err(|source| StoreError::at("make the directory", dir, source))?;
        sync_parent(dir).map_err(|source| StoreError::at("sync the parent of", dir, source))?;
        Self::existing(dir)
    }

    /// The directory at `dir`, which must be there.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it is not a readable directory.
    pub fn existing(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        fs::read_dir(dir).map_err(|source| StoreError::at("read the directory", dir, source))?;
        let handle = File::open(dir).map_err(|source| StoreError::at("open the directory", dir, source))?;
        let (dir, handle) = (Arc::new(dir.to_path_buf()), Arc::new(handle));
        Ok(Self { dir, locked: Arc::default(), handle, reserve: Arc::default() })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The name of the filesystem, if it needs free room to overwrite what is there. On such a filesystem a full disk stops even
    /// what makes room: acknowledgements cannot be written.
    ///
    /// btrfs is one only for files that existed before this store switched its copy-on-write off.
    ///
    /// # Errors
    /// The directory or a file in it cannot be read.
    pub fn copies_on_write(&self) -> io::Result<Option<&'static str>> {
        let filesystem = statfs(&*self.dir)?.f_type as u32;
        if let Some((_, name)) = COPY_ON_WRITE.iter().find(|(number, _)| *number == filesystem) {
            return Ok(Some(name));
        }
        if filesystem != BTRFS {
            return Ok(None);
        }
        for name in self.list()? {
            let file = File::open(self.dir.join(&name))?;
            if name != LOCK_NAME && !ioctl_getflags(&file)?.contains(IFlags::NOCOW) {
                return Ok(Some("btrfs"));
            }
        }
        Ok(None)
    }

    fn open_with(&self, name: &str, options: &OpenOptions) -> io::Result<RealFile> {
        self.with_reserve(|| options.open(self.dir.join(name))).map(RealFile)
    }

    /// Opens a file, if need be in place of one of the reserve.
    fn with_reserve(&self, open: impl Fn() -> io::Result<File>) -> io::Result<File> {
        let mut reserve = self.reserve.lock().expect("nobody panics while holding it");
        loop {
            match open() {
                Err(error) if is_too_many_files(&error) && reserve.pop().is_some() => {}
                Ok(file) => {
                    // What cannot be had now is there another time.
                    while reserve.len() < RESERVE
                        && let Ok(more) = self.handle.try_clone()
                    {
                        reserve.push(more);
                    }
                    return Ok(file);
                }
                error => return error,
            }
        }
    }
}

/// The directory entry of a new directory is its parent's to keep.
fn sync_parent(dir: &Path) -> io::Result<()> {
    match dir.canonicalize()?.parent().map(File::open) {
        Some(Ok(parent)) => parent.sync_all(),
        // A parent that may not be read was not made by us, nor the entry in it.
        Some(Err(_)) | None => Ok(()),
    }
}

impl Disk for RealDisk {
    type File = RealFile;
    type Guard = RealGuard;

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&*self.dir)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.extend(entry.file_name().into_string());
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        self.open_with(name, OpenOptions::new().read(true).write(true))
    }

    fn open_to_read(&self, name: &str) -> io::Result<RealFile> {
        self.open_with(name, OpenOptions::new().read(true))
    }

    fn create(&self, name: &str) -> io::Result<RealFile> {
        let file = self.open_with(name, private().read(true).write(true).create_new(true))?;
        overwrite_in_place(&file.0);
        Ok(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn lock(&self) -> io::Result<RealGuard> {
        let path = self.dir.join(LOCK_NAME);
        let file = private().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                let metadata = file.metadata()?;
                *self.locked.lock().expect("nobody panics while holding it") =
                    Some((metadata.dev(), metadata.ino()));
                Ok(RealGuard { _file: file })
            }
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn is_locked(&self) -> io::Result<bool> {
        let file = match File::open(self.dir.join(LOCK_NAME)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// `NotFound` when the directory or its lock is not what this process has locked.
    fn space(&self) -> io::Result<Option<Space>> {
        let locked = *self.locked.lock().expect("nobody panics while holding it");
        if let Some(locked) = locked {
            let now = fs::metadata(self.dir.join(LOCK_NAME))?;
            if (now.dev(), now.ino()) != locked {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        let found = rustix::fs::statvfs(&*self.dir)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        // Some file systems, of FUSE or in containers, say nothing: no blocks at all.
        let says = found.f_blocks > 0;
        Ok(says.then(|| Space { free: bytes(found.f_bavail), total: bytes(found.f_blocks) }))
    }
}

/// Switches the copy-on-write of btrfs off for a new file: else a full disk would have no room for writing to files that were
/// made long enough to keep room, the journal's. What btrfs loses by it are checksums, which the store has itself. Where the
/// flag is refused, [`RealDisk::copies_on_write`] tells.
fn overwrite_in_place(file: &File) {
    if fstatfs(file).is_ok_and(|found| found.f_type as u32 == BTRFS) {
        let _ = ioctl_getflags(file).and_then(|flags| ioctl_setflags(file, flags | IFlags::NOCOW));
    }
}

/// What a store holds is nobody else's to read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// The lock of a directory. The operating system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct RealGuard {
    _file: File,
}

/// A file of the operating system.
#[derive(Debug)]
pub struct RealFile(File);

impl DiskFile for RealFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.0.read_at(&mut buf[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let at = offset + bytes.len() as u64;
            match rustix::io::pread(&self.0, spare_capacity(&mut bytes), at) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // A vector may have more capacity than it was asked for.
        bytes.truncate(len);
        Ok(bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.metadata().map(|metadata| metadata.len())
    }

    fn is_removed(&self) -> io::Result<bool> {
        self.0.metadata().map(|metadata| metadata.nlink() == 0)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}
