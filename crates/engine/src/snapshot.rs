//! A snapshot of a broker that goes on: what a power cut at one moment would have left of its store, file by file.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::{fmt, mem};

use overtake_store::{DiskFile, Manifest, SnapshotFile, SnapshotFiles, SnapshotReader};

/// The name under which [`Snapshot::manifest`] belongs beside the files.
pub use overtake_store::MANIFEST_NAME;

/// Opens a file for reading.
type Open = Box<dyn Fn(&str) -> io::Result<Box<dyn DiskFile>> + Send>;
/// Whether the files are still those of the snapshot.
type Check = Box<dyn Fn() -> Result<(), Arc<str>> + Send>;

/// The files of a snapshot, one after the other: [`Snapshot::next_file`], read it to its end, and so on; then its manifest.
///
/// Everything confirmed before it was made is in it, and nothing that was asked after. As long as it lives the engine gives no
/// file back that is part of it; dropping it ends that. When the disk gets short of room the engine does not wait for it: then
/// reading fails, and the snapshot is none.
pub struct Snapshot {
    files: VecDeque<SnapshotFile>,
    bytes: u64,
    current: Option<SnapshotReader>,
    manifest: Manifest,
    open: Open,
    check: Check,
}

impl Snapshot {
    pub(crate) fn new(mut files: SnapshotFiles, open: Open, check: Check) -> Self {
        let (bytes, manifest) = (files.bytes(), Manifest::new(&files));
        let files = mem::take(&mut files.files).into();
        Self { files, bytes, current: None, manifest, open, check }
    }

    /// Bytes in all its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Goes on to the next file: its name, and its length in bytes. `None` after the last one.
    ///
    /// # Errors
    /// What the disk says; when the file before was not read to its end; when the engine could not wait for it.
    pub fn next_file(&mut self) -> io::Result<Option<(String, u64)>> {
        self.end_file()?;
        let Some(file) = self.files.pop_front() else { return Ok(None) };
        let (name, len) = (file.name.clone(), file.len);
        let opened = (self.open)(&name);
        // Of a file that is gone, this says why.
        (self.check)().map_err(given_up)?;
        self.current = Some(file.read(opened?));
        Ok(Some((name, len)))
    }

    /// What belongs beside the files as [`MANIFEST_NAME`]. A copy without it is not whole.
    ///
    /// # Errors
    /// When not all files were read, or the engine could not wait for it.
    pub fn manifest(mut self) -> io::Result<Vec<u8>> {
        self.end_file()?;
        if !self.files.is_empty() {
            return Err(io::Error::other("not all files of the snapshot were read"));
        }
        (self.check)().map_err(given_up)?;
        Ok(self.manifest.to_json())
    }

    fn end_file(&mut self) -> io::Result<()> {
        let Some(file) = self.current.take() else { return Ok(()) };
        let entry =
            file.entry().ok_or_else(|| io::Error::other("a file of the snapshot was not read to its end"))?;
        self.manifest.files.push(entry);
        Ok(())
    }
}

/// Reads the file that [`Snapshot::next_file`] went on to.
impl Read for Snapshot {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.current else { return Ok(0) };
        let read = file.read(buf)?;
        // After the read: what is still held now was not used again before.
        (self.check)().map_err(given_up)?;
        Ok(read)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("files", &self.files.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

fn given_up(why: Arc<str>) -> io::Error {
    io::Error::other(format!("the snapshot was given up: {why}"))
}

/// Why there is no snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoSnapshot {
    /// This engine takes none.
    Unsupported,
    /// Another one is being copied.
    Running,
    /// The engine serves no more.
    Unavailable(Arc<str>),
    /// Its files cannot be listed.
    Unreadable(Arc<str>),
}

impl fmt::Display for NoSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str("this broker takes no snapshots"),
            Self::Running => f.write_str("another snapshot is being copied"),
            Self::Unavailable(why) => write!(f, "the broker is not available: {why}"),
            Self::Unreadable(why) => write!(f, "the files of the store cannot be listed: {why}"),
        }
    }
}

impl std::error::Error for NoSnapshot {}
