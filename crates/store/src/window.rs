//! A file read through a small buffer, so that recovery's memory is bounded by the longest record.

use crate::disk::DiskFile;
use crate::error::StoreError;

/// Bytes read ahead.
const CHUNK_LEN: u64 = 256 << 10;

pub(crate) struct Window<F> {
    file: F,
    name: String,
    len: u64,
    buffer: Vec<u8>,
    at: u64,
}

impl<F: DiskFile> Window<F> {
    /// `len` is the file's length, or less to hide what follows.
    pub(crate) fn new(file: F, name: String, len: u64) -> Self {
        Self { file, name, len, buffer: Vec::new(), at: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes of a range that lies in the file.
    pub(crate) fn get(&mut self, at: u64, len: u64) -> Result<&[u8], StoreError> {
        debug_assert!(at + len <= self.len, "callers stay in the file");
        if at < self.at || at + len > self.at + self.buffer.len() as u64 {
            self.read(at, len.max(CHUNK_LEN).min(self.len - at))?;
        }
        let from = (at - self.at) as usize;
        Ok(&self.buffer[from..from + len as usize])
    }

    fn read(&mut self, at: u64, len: u64) -> Result<(), StoreError> {
        self.buffer.resize(len as usize, 0);
        self.at = at;
        let read = self.file.read_at(at, &mut self.buffer);
        let read = read.map_err(|source| StoreError::io("read", &self.name, source))?;
        // Cut under our feet; zeros end the log, or are damage, like any others.
        self.buffer[read..].fill(0);
        Ok(())
    }
}
