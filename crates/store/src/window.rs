//! A file read through a small buffer, so that recovery's memory is bounded by the longest record.

use std::ops::Range;

use crate::decide::Sight;
use crate::disk::DiskFile;
use crate::error::{StoreError, is_unreadable};
use crate::file::PAGE_LEN;

/// Bytes read ahead.
const CHUNK_LEN: u64 = 256 << 10;

pub(crate) struct Window<F> {
    file: F,
    name: String,
    len: u64,
    buffer: Vec<u8>,
    at: u64,
    /// Parts of the buffer that the disk cannot read, by their place in the file.
    unreadable: Vec<Range<u64>>,
}

impl<F: DiskFile> Window<F> {
    /// `len` is the file's length, or less to hide what follows.
    pub(crate) fn new(file: F, name: String, len: u64) -> Self {
        Self { file, name, len, buffer: Vec::new(), at: 0, unreadable: Vec::new() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes of a range that lies in the file.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the disk cannot read a part of the range; [`StoreError::Io`].
    pub(crate) fn get(&mut self, at: u64, len: u64) -> Result<&[u8], StoreError> {
        debug_assert!(at + len <= self.len, "callers stay in the file");
        if at < self.at || at + len > self.at + self.buffer.len() as u64 {
            self.read(at, len.max(CHUNK_LEN).min(self.len - at))?;
        }
        let is_hit = |part: &&Range<u64>| part.start < at + len && at < part.end;
        if let Some(part) = self.unreadable.iter().find(is_hit) {
            let (file, at) = (self.name.clone(), part.start.max(at));
            return Err(StoreError::Corrupt { file, at, what: Sight::Unreadable });
        }
        let from = (at - self.at) as usize;
        Ok(&self.buffer[from..from + len as usize])
    }

    fn read(&mut self, at: u64, len: u64) -> Result<(), StoreError> {
        self.buffer.resize(len as usize, 0);
        self.at = at;
        self.unreadable.clear();
        match self.file.read_at(at, &mut self.buffer) {
            // Cut under our feet; zeros end the log, or are damage, like any others.
            Ok(read) => self.buffer[read..].fill(0),
            Err(source) if is_unreadable(&source) => self.read_pages(at)?,
            Err(source) => return Err(StoreError::io("read", &self.name, source)),
        }
        Ok(())
    }

    /// Reads the same page by page, since the disk cannot read all of it.
    fn read_pages(&mut self, at: u64) -> Result<(), StoreError> {
        let end = at + self.buffer.len() as u64;
        let mut from = at;
        while from < end {
            let to = (from / PAGE_LEN * PAGE_LEN + PAGE_LEN).min(end);
            let page = &mut self.buffer[(from - at) as usize..(to - at) as usize];
            match self.file.read_at(from, page) {
                Ok(read) => page[read..].fill(0),
                Err(source) if is_unreadable(&source) => self.unreadable.push(from..to),
                Err(source) => return Err(StoreError::io("read", &self.name, source)),
            }
            from = to;
        }
        Ok(())
    }
}
