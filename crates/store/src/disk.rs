//! The only door to the file system.
//!
//! Everything the store asks of a disk goes through these two traits, so that the simulator can stand behind them and
//! lose, tear and refuse whatever a real disk may. One directory holds the files of one store; names are plain, never paths.

use std::io;

/// The file whose lock is the lock of a directory.
pub(crate) const LOCK_NAME: &str = "LOCK";
/// Bytes after which what was written of a file beside the journal is synced: a commit waits for the disk behind no more than those.
pub(crate) const SYNC_LEN: u64 = 512 << 10;

/// A directory of files. Cloning gives another handle on the same directory.
pub trait Disk: Clone + Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;
    /// Keeps the directory locked for as long as it lives.
    type Guard: Send + 'static;

    /// The names of the files in the directory, in no particular order.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Opens an existing file for reading only.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn open_to_read(&self, name: &str) -> io::Result<Self::File>;

    /// Makes a new, empty file, open for reading and writing. The name is durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// `AlreadyExists` when the name is taken, `StorageFull` when there is no room.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name, taking the place of a file that has it. Durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable after [`Disk::sync_dir`].
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when every name made, changed or removed before is durable.
    ///
    /// # Errors
    /// Whatever the disk says; what was durable is unknown then.
    fn sync_dir(&self) -> io::Result<()>;

    /// Locks the directory against every other process, and every other caller in this one.
    ///
    /// # Errors
    /// `WouldBlock` when it is locked already.
    fn lock(&self) -> io::Result<Self::Guard>;

    /// Whether someone holds the lock. Changes nothing.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn is_locked(&self) -> io::Result<bool>;

    /// How much room there is where the directory lies; `None` where that cannot be told.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn space(&self) -> io::Result<Option<Space>>;
}

/// The room of a file system, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Free to this user.
    pub free: u64,
    /// In all.
    pub total: u64,
}

/// An open file. Offsets and lengths are in bytes.
pub trait DiskFile: Send + Sync + 'static {
    /// Fills `buf` from `offset`; returns the bytes read, fewer than `buf.len()` only at the end of the file.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// Reads up to `len` bytes from `offset`, fewer only at the end of the file. As [`DiskFile::read_at`], into memory of its own: a disk that
    /// can need not fill that with zeros before.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let read = self.read_at(offset, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Writes all of `bytes` at `offset`, extending the file when it has to.
    ///
    /// # Errors
    /// `StorageFull` when there is no room; a part may have been written then.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns when every byte written before is durable (`fdatasync`).
    ///
    /// # Errors
    /// Whatever the disk says. Never retry: the next call may say yes to what is lost.
    fn sync_data(&self) -> io::Result<()>;

    /// As [`DiskFile::sync_data`], with the file's own description (`fsync`).
    ///
    /// # Errors
    /// As [`DiskFile::sync_data`].
    fn sync_all(&self) -> io::Result<()>;

    /// The file's length in bytes.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Whether the file was removed, so that nobody will find what is written to it.
    ///
    /// # Errors
    /// Whatever the disk says.
    fn is_removed(&self) -> io::Result<bool>;

    /// Cuts or extends the file to `len` bytes.
    ///
    /// # Errors
    /// `StorageFull` when there is no room.
    fn set_len(&self, len: u64) -> io::Result<()>;
}
