//! The ids of a segment's messages: a table sorted by hash, of which a look-up reads one page.

use std::ops::Range;

use super::reader::Segment;
use crate::decide::Sight;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::ids::{IdEntry, IdHasher};

const ENTRY_LEN: usize = 12;
const CRC_LEN: usize = 4;
/// With the checksum, 4,096 bytes.
const PER_PAGE: usize = 341;
const PAGE_LEN: u64 = (PER_PAGE * ENTRY_LEN + CRC_LEN) as u64;

/// Pages of a table of so many ids.
pub(super) fn page_count(ids: u32) -> u64 {
    u64::from(ids).div_ceil(PER_PAGE as u64)
}

/// Length of a table of so many ids, bytes.
pub(super) fn table_len(ids: u32) -> u64 {
    u64::from(ids) * ENTRY_LEN as u64 + page_count(ids) * CRC_LEN as u64
}

/// Appends a table; `out_at` is where the buffer stands in the file. Answers the first hash of each page.
pub(super) fn append(out: &mut Vec<u8>, out_at: u64, ids: &[IdEntry], salt: u32) -> Vec<u64> {
    let pages = ids.chunks(PER_PAGE);
    pages
        .map(|page| {
            let start = out.len();
            for entry in page {
                out.extend_from_slice(&entry.hash.to_le_bytes());
                out.extend_from_slice(&entry.ordinal.to_le_bytes());
            }
            let crc = checksum(&out[start..], out_at + start as u64, salt);
            out.extend_from_slice(&crc.to_le_bytes());
            page[0].hash
        })
        .collect()
}

fn checksum(entries: &[u8], at: u64, salt: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(salt, &at.to_le_bytes()), entries)
}

/// What stays in memory of a table: 8 bytes for each page.
#[derive(Debug)]
pub(super) struct IdTable {
    at: u64,
    ids: u32,
    hasher: IdHasher,
    /// The first hash of each page.
    firsts: Box<[u64]>,
}

impl IdTable {
    /// `None` when the first hashes do not ascend.
    pub(super) fn decode(firsts: &[u8], at: u64, ids: u32, hasher: IdHasher) -> Option<Self> {
        let long = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let firsts: Box<[u64]> = firsts.chunks_exact(8).map(long).collect();
        firsts.is_sorted().then_some(Self { at, ids, hasher, firsts })
    }

    /// The table of these entries, sorted, wherever they are.
    pub(super) fn of_entries(entries: &[IdEntry], at: u64, hasher: IdHasher) -> Self {
        let firsts = entries.chunks(PER_PAGE).map(|page| page[0].hash).collect();
        Self { at, ids: entries.len() as u32, hasher, firsts }
    }

    /// Pages that may have this hash: one, but for hashes that are there more than once.
    fn pages_of(&self, hash: u64) -> Range<usize> {
        let from = self.firsts.partition_point(|first| *first < hash).saturating_sub(1);
        from..self.firsts.partition_point(|first| *first <= hash)
    }

    /// Where a page stands in the file, and its entries among all.
    fn place(&self, page: usize) -> (Range<u64>, Range<usize>) {
        let ids = self.ids as usize;
        let entries = (page * PER_PAGE).min(ids)..((page + 1) * PER_PAGE).min(ids);
        let at = self.at + page as u64 * PAGE_LEN;
        (at..at + (entries.len() * ENTRY_LEN + CRC_LEN) as u64, entries)
    }

    /// The entries of a page. `None` when the bytes are not those of the page.
    fn decode_page(&self, page: usize, bytes: &[u8], count: u64, salt: u32) -> Option<Vec<IdEntry>> {
        let (range, entries) = self.place(page);
        let (body, crc) = bytes.split_last_chunk::<CRC_LEN>()?;
        if body.len() != entries.len() * ENTRY_LEN
            || u32::from_le_bytes(*crc) != checksum(body, range.start, salt)
        {
            return None;
        }
        let entry = |bytes: &[u8]| IdEntry {
            hash: u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")),
            ordinal: u32::from_le_bytes(bytes[8..].try_into().expect("four bytes")),
        };
        let found: Vec<IdEntry> = body.chunks_exact(ENTRY_LEN).map(entry).collect();
        let below_next =
            self.firsts.get(page + 1).is_none_or(|next| found.last().is_some_and(|last| last.hash <= *next));
        let is_right = found.first().is_some_and(|first| first.hash == self.firsts[page])
            && found.is_sorted_by(|one, next| one < next)
            && found.iter().all(|entry| u64::from(entry.ordinal) < count)
            && below_next;
        is_right.then_some(found)
    }
}

impl<D: Disk> Segment<D> {
    /// The messages that may have this id, ascending: nearly always none, or the one. Whether they have it, they must be asked.
    /// Reads one page of 4 KiB, or nothing.
    ///
    /// # Errors
    /// [`StoreError::Io`]; [`StoreError::Corrupt`] with the place of the page.
    pub fn find_id(&self, id: &str) -> Result<Vec<u64>, StoreError> {
        self.find_hash(self.id_hasher().hash(id))
    }

    /// As [`Segment::find_id`], by the hash of the id.
    pub(crate) fn find_hash(&self, hash: u64) -> Result<Vec<u64>, StoreError> {
        let mut found = Vec::new();
        for page in self.ids.pages_of(hash) {
            let entries = self.id_page(page)?;
            let from = entries.partition_point(|entry| entry.hash < hash);
            let same = entries[from..].iter().take_while(|entry| entry.hash == hash);
            found.extend(same.map(|entry| u64::from(entry.ordinal)));
        }
        Ok(found)
    }

    pub(crate) fn id_hasher(&self) -> IdHasher {
        self.ids.hasher
    }

    /// Pages of the table of ids.
    pub(crate) fn id_pages(&self) -> usize {
        self.ids.firsts.len()
    }

    /// A page of the table of ids, by hash. Of a damaged table, what the messages that can be read say.
    pub(crate) fn id_page(&self, page: usize) -> Result<Vec<IdEntry>, StoreError> {
        if self.rebuilt_ids.get().is_none() {
            match self.stored_id_page(page) {
                Err(StoreError::Corrupt { .. }) => {}
                read => return read,
            }
        }
        let all = match self.rebuilt_ids.get() {
            Some(all) => all,
            None => {
                let all = self.read_ids()?;
                self.rebuilt_ids.get_or_init(|| all)
            }
        };
        // The same page as in the table, so that looking for the first hashes finds it; the last one has whatever else there is.
        let below = |hash: u64| all.partition_point(|entry| entry.hash < hash);
        let from = if page == 0 { 0 } else { below(self.ids.firsts[page]) };
        let to = self.ids.firsts.get(page + 1).map_or(all.len(), |next| below(*next));
        Ok(all[from.min(to)..to].to_vec())
    }

    /// Whether the whole table of ids can be read. Of a segment that [was rebuilt](crate::SegmentInfo::is_rebuilt) it cannot.
    #[must_use]
    pub fn has_whole_ids(&self) -> bool {
        !self.info().is_rebuilt && (0..self.id_pages()).all(|page| self.stored_id_page(page).is_ok())
    }

    /// The ids of all messages that can be read, sorted.
    fn read_ids(&self) -> Result<Box<[IdEntry]>, StoreError> {
        let mut found = Vec::new();
        for block in self.blocks() {
            let block = match self.block(block.ordinals.start) {
                Ok(block) => block.expect("the index has this block"),
                Err(StoreError::Corrupt { .. }) => continue,
                Err(error) => return Err(error),
            };
            for ordinal in block.ordinals() {
                let Ok(message) = block.message(ordinal) else { continue };
                if let (Some(id), Ok(ordinal)) = (message.id(), u32::try_from(ordinal)) {
                    found.push(IdEntry { hash: self.id_hasher().hash(id), ordinal });
                }
            }
        }
        found.sort_unstable();
        Ok(found.into())
    }

    /// A page of the table of ids, as it stands in the file.
    pub(super) fn stored_id_page(&self, page: usize) -> Result<Vec<IdEntry>, StoreError> {
        let (range, _) = self.ids.place(page);
        let bytes = self.file.read(range.clone())?;
        let entries = self.ids.decode_page(page, &bytes, self.info().count, self.salt);
        entries.ok_or_else(|| self.file.corrupt(range.start, Sight::IdsBad))
    }

    /// Where a page of the table of ids stands in the file, bytes, and its entries among all.
    pub(super) fn id_page_place(&self, page: usize) -> (Range<u64>, Range<usize>) {
        self.ids.place(page)
    }
}
