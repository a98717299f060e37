//! A snapshot of a broker that goes on: what a power cut at one moment would have left of its store, file by file.

use std::collections::VecDeque;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::{fmt, mem};

use overtake_store::{DiskFile, Manifest, SnapshotFile, SnapshotFiles, SnapshotReader};

use crate::shards::shard_prefix;

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
///
/// Of an engine with several shards it is one of each, at nearly the same moment: the files of the first have their names, those of the others, each with its manifest
/// behind them, names within the [directory](crate::shard_dir) of their shard. They come before the first, whose manifest is the last of all.
pub struct Snapshot {
    /// Those that are not copied yet, the first shard last.
    shards: VecDeque<OfShard>,
    bytes: u64,
    current: Current,
}

/// The snapshot of one shard.
struct OfShard {
    /// Before the names of its files.
    directory: String,
    files: VecDeque<SnapshotFile>,
    manifest: Manifest,
    open: Open,
    check: Check,
}

/// What is being read.
enum Current {
    Nothing,
    File(SnapshotReader),
    /// The manifest of a shard that is not the last, after which the next shard comes.
    Manifest(Cursor<Vec<u8>>),
}

impl Snapshot {
    pub(crate) fn new(mut files: SnapshotFiles, open: Open, check: Check) -> Self {
        let (bytes, manifest) = (files.bytes(), Manifest::new(&files));
        let files = mem::take(&mut files.files).into();
        let shard = OfShard { directory: String::new(), files, manifest, open, check };
        Self { shards: [shard].into(), bytes, current: Current::Nothing }
    }

    /// One of all shards, the first of which is the first of these.
    pub(crate) fn of_shards(each: Vec<Self>) -> Self {
        let bytes = each.iter().map(Self::bytes).sum();
        let mut shards: VecDeque<OfShard> = each
            .into_iter()
            .enumerate()
            .flat_map(|(number, one)| one.shards.into_iter().map(move |shard| (number, shard)))
            .map(|(number, shard)| OfShard { directory: shard_prefix(number), ..shard })
            .collect();
        shards.rotate_left(1);
        Self { shards, bytes, current: Current::Nothing }
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
        let is_last = self.shards.len() == 1;
        let Some(shard) = self.shards.front_mut() else { return Ok(None) };
        let Some(file) = shard.files.pop_front() else {
            if is_last {
                return Ok(None);
            }
            (shard.check)().map_err(given_up)?;
            let (name, json) = (format!("{}{MANIFEST_NAME}", shard.directory), shard.manifest.to_json());
            let len = json.len() as u64;
            self.current = Current::Manifest(Cursor::new(json));
            return Ok(Some((name, len)));
        };
        let opened = (shard.open)(&file.name);
        // Of a file that is gone, this says why.
        (shard.check)().map_err(given_up)?;
        let (name, len) = (format!("{}{}", shard.directory, file.name), file.len);
        self.current = Current::File(file.read(opened?));
        Ok(Some((name, len)))
    }

    /// What belongs beside the files as [`MANIFEST_NAME`]. A copy without it is not whole.
    ///
    /// # Errors
    /// When not all files were read, or the engine could not wait for it.
    pub fn manifest(mut self) -> io::Result<Vec<u8>> {
        self.end_file()?;
        let last = self.shards.pop_front().filter(|last| last.files.is_empty() && self.shards.is_empty());
        let Some(last) = last else {
            return Err(io::Error::other("not all files of the snapshot were read"));
        };
        (last.check)().map_err(given_up)?;
        Ok(last.manifest.to_json())
    }

    fn end_file(&mut self) -> io::Result<()> {
        let is_whole = match mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => true,
            Current::File(file) => {
                let shard = self.shards.front_mut().expect("a file is of a shard");
                file.entry().map(|entry| shard.manifest.files.push(entry)).is_some()
            }
            Current::Manifest(json) => {
                self.shards.pop_front();
                json.position() == json.get_ref().len() as u64
            }
        };
        let error = || io::Error::other("a file of the snapshot was not read to its end");
        is_whole.then_some(()).ok_or_else(error)
    }
}

/// Reads the file that [`Snapshot::next_file`] went on to.
impl Read for Snapshot {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let file = match &mut self.current {
            Current::Nothing => return Ok(0),
            Current::Manifest(json) => return json.read(buf),
            Current::File(file) => file,
        };
        let read = file.read(buf)?;
        // After the read: what is still held now was not used again before.
        let shard = self.shards.front().expect("a file is of a shard");
        (shard.check)().map_err(given_up)?;
        Ok(read)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: usize = self.shards.iter().map(|shard| shard.files.len()).sum();
        f.debug_struct("Snapshot").field("files", &files).field("bytes", &self.bytes).finish_non_exhaustive()
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
