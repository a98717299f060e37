//! Writing a snapshot into a directory.
//!
//! Files get their names when all of them are durable, and in such an order that a directory in which that was interrupted is not
//! taken for a store: the oldest journal file last, without which the others are refused.

use std::collections::BTreeMap;
use std::io::Read;

use super::error::SnapshotError;
use super::files::SnapshotFiles;
use super::manifest::{MANIFEST_NAME, Manifest, ManifestFile, name_of};
use crate::disk::{Disk, DiskFile, LOCK_NAME};
use crate::error::StoreError;
use crate::file::Name;

/// What a file is called until all are there, after its name.
const PART: &str = ".part";
/// Bytes read and written at once.
const CHUNK: usize = 1 << 20;
/// A manifest is no longer: there is room for a million files.
const MANIFEST_LEN_MAX: u64 = 128 << 20;

/// A snapshot on its way into an empty directory, which is locked meanwhile. Dropped before [`Intake::finish`], it removes what
/// it wrote.
pub struct Intake<D: Disk> {
    disk: D,
    _guard: D::Guard,
    taken: Vec<ManifestFile>,
    /// The names there are now.
    written: Vec<String>,
    chunk: Vec<u8>,
    is_finished: bool,
}

impl<D: Disk> Intake<D> {
    /// Begins in an empty directory.
    ///
    /// # Errors
    /// [`SnapshotError::NotEmpty`]; [`SnapshotError::Store`], with [`StoreError::Locked`] when somebody has a store open there.
    pub fn begin(disk: D) -> Result<Self, SnapshotError> {
        let of_dir = |op| move |source| StoreError::io(op, "the directory", source);
        if disk.is_locked().map_err(of_dir("look at the lock of"))? {
            return Err(StoreError::Locked.into());
        }
        check_empty(&disk)?;
        let guard = disk.lock().map_err(|source| match source.kind() {
            std::io::ErrorKind::WouldBlock => StoreError::Locked,
            _ => StoreError::io("lock", "the directory", source),
        })?;
        check_empty(&disk)?;
        let (taken, written, chunk) = (Vec::new(), Vec::new(), vec![0; CHUNK]);
        Ok(Self { disk, _guard: guard, taken, written, chunk, is_finished: false })
    }

    /// Takes a file, to its end, and makes it durable.
    ///
    /// # Errors
    /// [`SnapshotError::BadName`]; [`SnapshotError::Read`]; [`SnapshotError::Store`].
    pub fn take(&mut self, name: &str, source: &mut impl Read) -> Result<(), SnapshotError> {
        name_of(name)?;
        let (bytes, crc32c) = self.write(name, source)?;
        self.taken.push(ManifestFile { name: name.to_owned(), bytes, crc32c });
        Ok(())
    }

    /// Bytes taken so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.taken.iter().map(|file| file.bytes).sum()
    }

    /// Compares what was taken with the manifest, and gives the files their names. With `keep`, the manifest is written beside them.
    ///
    /// # Errors
    /// [`SnapshotError::Differs`]; [`SnapshotError::Store`].
    pub fn finish(mut self, manifest: &Manifest, keep: bool) -> Result<(), SnapshotError> {
        compare(&self.taken, &manifest.files)?;
        if keep {
            self.write(MANIFEST_NAME, &mut &manifest.to_json()[..])?;
        }
        let (mut journals, mut others) = (Vec::new(), Vec::new());
        for file in &self.taken {
            match name_of(&file.name)? {
                Name::Journal(number) => journals.push(number),
                name => others.push(name.to_string()),
            }
        }
        journals.sort_unstable();
        let mut journals = journals.into_iter().map(|number| Name::Journal(number).to_string());
        let oldest: Vec<String> = journals.next().into_iter().collect();
        others.extend(journals);
        self.name(others)?;
        self.name(oldest)?;
        if keep {
            self.name(vec![MANIFEST_NAME.to_owned()])?;
        }
        self.is_finished = true;
        Ok(())
    }

    /// Gives files their names, durably.
    fn name(&mut self, names: Vec<String>) -> Result<(), StoreError> {
        for name in names {
            let part = format!("{name}{PART}");
            self.disk.rename(&part, &name).map_err(|source| StoreError::io("rename", &part, source))?;
            self.written.retain(|written| *written != part);
            self.written.push(name);
        }
        self.disk.sync_dir().map_err(|source| StoreError::io("sync", "the directory", source))
    }

    /// Writes a file that has no name yet; its length and checksum.
    fn write(&mut self, name: &str, source: &mut impl Read) -> Result<(u64, u32), SnapshotError> {
        let part = format!("{name}{PART}");
        let to = |op| {
            let part = &part;
            move |source| StoreError::io(op, part, source)
        };
        let file = self.disk.create(&part).map_err(to("create"))?;
        self.written.push(part.clone());
        let (mut at, mut crc) = (0, 0);
        loop {
            let read = match source.read(&mut self.chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(SnapshotError::Read(error)),
            };
            let bytes = &self.chunk[..read];
            file.write_at(at, bytes).map_err(to("write to"))?;
            crc = crc32c::crc32c_append(crc, bytes);
            at += read as u64;
        }
        file.sync_all().map_err(to("sync"))?;
        Ok((at, crc))
    }
}

impl<D: Disk> Drop for Intake<D> {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // What cannot be removed is marked by its name, and no store without the oldest journal file.
        for name in self.written.iter().rev().map(String::as_str).chain([LOCK_NAME]) {
            let _ = self.disk.remove(name);
        }
        let _ = self.disk.sync_dir();
    }
}

fn check_empty<D: Disk>(disk: &D) -> Result<(), SnapshotError> {
    let names = disk.list().map_err(|source| StoreError::io("list", "the directory", source))?;
    match names.into_iter().find(|name| name != LOCK_NAME) {
        Some(name) => Err(SnapshotError::NotEmpty { name }),
        None => Ok(()),
    }
}

/// Whether what was taken is what should have come.
fn compare(taken: &[ManifestFile], said: &[ManifestFile]) -> Result<(), SnapshotError> {
    let differs = |file: &str, what| Err(SnapshotError::Differs { file: file.to_owned(), what });
    let mut rest: BTreeMap<_, _> = taken.iter().map(|file| (&file.name, file)).collect();
    for wanted in said {
        match rest.remove(&wanted.name) {
            None => return differs(&wanted.name, "it is missing"),
            Some(file) if file.bytes != wanted.bytes => {
                return differs(&wanted.name, "it has another length");
            }
            Some(file) if file.crc32c != wanted.crc32c => {
                return differs(&wanted.name, "it has another checksum");
            }
            Some(_) => {}
        }
    }
    match rest.into_keys().next() {
        Some(name) => differs(name, "it is not told of"),
        None => Ok(()),
    }
}

/// Copies the files of a snapshot out of a store; what to [finish](Intake::finish) with.
///
/// # Errors
/// As [`Intake::take`].
pub fn copy<D: Disk, E: Disk>(
    files: SnapshotFiles,
    from: &D,
    to: &mut Intake<E>,
) -> Result<Manifest, SnapshotError> {
    let mut manifest = Manifest::new(&files);
    for file in files.files {
        let name = file.name.clone();
        let opened = from.open_to_read(&name).map_err(|source| StoreError::io("open", &name, source))?;
        let mut reader = file.read(Box::new(opened));
        to.take(&name, &mut reader)?;
        manifest.files.extend(reader.entry());
    }
    Ok(manifest)
}

/// Copies the files of a snapshot, as an [`Intake`] left it with its manifest; what to [finish](Intake::finish) with.
///
/// # Errors
/// [`SnapshotError::Unfinished`] when there is no manifest; [`SnapshotError::BadManifest`]; as [`Intake::take`].
pub fn restore<D: Disk, E: Disk>(from: &D, to: &mut Intake<E>) -> Result<Manifest, SnapshotError> {
    let manifest = read_manifest(from)?;
    for file in &manifest.files {
        let opened = match from.open_to_read(&file.name) {
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                let what = "it is missing";
                return Err(SnapshotError::Differs { file: file.name.clone(), what });
            }
            opened => opened.map_err(|source| StoreError::io("open", &file.name, source))?,
        };
        to.take(&file.name, &mut Whole { file: opened, at: 0 })?;
    }
    Ok(manifest)
}

fn read_manifest<D: Disk>(disk: &D) -> Result<Manifest, SnapshotError> {
    let file = match disk.open_to_read(MANIFEST_NAME) {
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            return Err(SnapshotError::Unfinished);
        }
        opened => opened.map_err(|source| StoreError::io("open", MANIFEST_NAME, source))?,
    };
    let mut json = Vec::new();
    let whole = Whole { file, at: 0 };
    whole.take(MANIFEST_LEN_MAX).read_to_end(&mut json).map_err(SnapshotError::Read)?;
    Manifest::parse(&json)
}

/// A file from its beginning to its end.
struct Whole<F> {
    file: F,
    at: u64,
}

impl<F: DiskFile> Read for Whole<F> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(self.at, buf)?;
        self.at += read as u64;
        Ok(read)
    }
}
