//! Reading a file of a snapshot.

use std::io::{self, Read};

use super::files::SnapshotFile;
use super::manifest::ManifestFile;
use crate::disk::DiskFile;

/// A file of a snapshot, from its beginning to its end.
pub struct SnapshotReader {
    of: SnapshotFile,
    file: Box<dyn DiskFile>,
    at: u64,
    crc: u32,
}

impl SnapshotFile {
    /// Reads it in the file of its name.
    #[must_use]
    pub fn read(self, file: Box<dyn DiskFile>) -> SnapshotReader {
        SnapshotReader { of: self, file, at: 0, crc: 0 }
    }
}

impl SnapshotReader {
    /// What the manifest says of it; `None` before all of it was read.
    #[must_use]
    pub fn entry(&self) -> Option<ManifestFile> {
        let entry = ManifestFile { name: self.of.name.clone(), bytes: self.of.len, crc32c: self.crc };
        (self.at == self.of.len).then_some(entry)
    }
}

impl Read for SnapshotReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let is_cut = self.at >= self.of.cut;
        let to = if is_cut { self.of.len } else { self.of.cut };
        let wanted = buf.len().min(usize::try_from(to - self.at).unwrap_or(usize::MAX));
        let buf = &mut buf[..wanted];
        let read = if is_cut {
            buf.fill(0);
            wanted
        } else {
            self.file.read_at(self.at, buf)?
        };
        if read == 0 && wanted > 0 {
            let why = format!("{} has become shorter", self.of.name);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
        self.crc = crc32c::crc32c_append(self.crc, &buf[..read]);
        self.at += read as u64;
        Ok(read)
    }
}
