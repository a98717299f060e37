//! Writing a file of ids.

use super::file::{Covered, page_range};
use super::footer::Footer;
use super::header::IdsHeader;
use super::page::{self, Entry, PER_PAGE};
use crate::disk::{Disk, DiskFile, SYNC_LEN};
use crate::error::StoreError;

/// Bytes written at once.
const WRITE_LEN: usize = 256 << 10;

/// Writes a file of ids, entry by entry. Dropped, or failed, it leaves a half-made file that the next opening removes; a full
/// disk leaves none.
pub(super) struct Writer<D: Disk> {
    disk: D,
    header: IdsHeader,
    file: D::File,
    /// What is not written yet, and where it goes.
    out: Vec<u8>,
    out_at: u64,
    synced: u64,
    page: Vec<Entry>,
    firsts: Vec<u64>,
    /// Entries of each segment so far.
    segments: Vec<Covered>,
    entries: u64,
}

impl<D: Disk> Writer<D> {
    /// Begins a file that covers these segments.
    pub(super) fn create(disk: D, header: IdsHeader, segments: &[u64]) -> Result<Self, StoreError> {
        let name = header.name_while_made();
        let file = disk.create(&name).map_err(|source| full_or(StoreError::io("create", &name, source)))?;
        let segments = segments.iter().map(|segment| Covered { segment: *segment, entries: 0 }).collect();
        Ok(Self {
            disk,
            out: header.encode(),
            header,
            file,
            out_at: 0,
            synced: 0,
            page: Vec::with_capacity(PER_PAGE),
            firsts: Vec::new(),
            segments,
            entries: 0,
        })
    }

    /// Entries so far.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// Appends an entry; they come sorted.
    pub(super) fn push(&mut self, entry: Entry) -> Result<(), StoreError> {
        self.entries += 1;
        self.segments[entry.place as usize].entries += 1;
        self.page.push(entry);
        if self.page.len() < PER_PAGE {
            return Ok(());
        }
        self.end_page();
        if self.out.len() < WRITE_LEN {
            return Ok(());
        }
        let written = self.write().and_then(|()| self.sync_sometimes());
        written.map_err(|error| self.give_up(error))
    }

    /// Makes the file durable and gives it its name.
    pub(super) fn finish(mut self) -> Result<u64, StoreError> {
        if !self.page.is_empty() {
            self.end_page();
        }
        let start = self.out.len();
        for long in &self.firsts {
            self.out.extend_from_slice(&long.to_le_bytes());
        }
        for covered in &self.segments {
            self.out.extend_from_slice(&covered.segment.to_le_bytes());
            self.out.extend_from_slice(&covered.entries.to_le_bytes());
        }
        let salt = self.header.salt();
        let footer = Footer {
            entries: self.entries,
            segments: u32::try_from(self.segments.len()).expect("so many segments have no entry each"),
            index_crc: crc32c::crc32c_append(salt, &self.out[start..]),
        };
        self.out.extend_from_slice(&footer.encode(salt));
        let (new, name) = (self.header.name_while_made(), self.header.name());
        let written = self.write().and_then(|()| {
            self.file.sync_all().map_err(|source| StoreError::io("sync", &new, source))?;
            self.disk.rename(&new, &name).map_err(|source| StoreError::io("rename", &new, source))
        });
        written.map_err(|error| self.give_up(error))?;
        self.disk.sync_dir().map_err(|source| StoreError::io("sync the directory of", &name, source))?;
        Ok(self.header.number)
    }

    /// Removes what was written.
    pub(super) fn abandon(&self) -> Result<(), StoreError> {
        let name = self.header.name_while_made();
        let removed = self.disk.remove(&name).and_then(|()| self.disk.sync_dir());
        removed.map_err(|source| StoreError::io("remove", &name, source))
    }

    fn end_page(&mut self) {
        let at = page_range(self.firsts.len()).start;
        self.firsts.push(self.page[0].hash);
        page::append(&mut self.out, &self.page, at, self.header.salt());
        self.page.clear();
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let written = self.file.write_at(self.out_at, &self.out);
        written.map_err(|source| StoreError::io("write to", &self.header.name_while_made(), source))?;
        self.out_at += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }

    fn sync_sometimes(&mut self) -> Result<(), StoreError> {
        if self.out_at - self.synced >= SYNC_LEN {
            let synced = self.file.sync_data();
            synced.map_err(|source| StoreError::io("sync", &self.header.name_while_made(), source))?;
            self.synced = self.out_at;
        }
        Ok(())
    }

    fn give_up(&self, error: StoreError) -> StoreError {
        if !error.is_full() {
            return error;
        }
        self.abandon().err().unwrap_or(StoreError::Full)
    }
}

fn full_or(error: StoreError) -> StoreError {
    if error.is_full() { StoreError::Full } else { error }
}
