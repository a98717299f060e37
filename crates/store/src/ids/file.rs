//! Reading a file of ids.

use std::ops::Range;
use std::sync::OnceLock;

use super::filter::Filter;
use super::footer::{FOOTER_LEN, Footer};
use super::header::IdsHeader;
use super::page::{self, Entry, PAGE_LEN, PER_PAGE};
use crate::decide::Sight;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::Name;
use crate::header::HEADER_LEN;
use crate::sealed::{Owner, Sealed};

/// Length of a first hash, and of half of what is said of a segment.
const LONG_LEN: u64 = 8;

/// A segment that a file covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Covered {
    pub(super) segment: u64,
    pub(super) entries: u64,
}

/// An open file of ids.
pub(super) struct IdFile<D: Disk> {
    file: Sealed<D::File>,
    pub(super) number: u64,
    salt: u32,
    pub(super) entries: u64,
    /// The first hash of each page.
    firsts: Box<[u64]>,
    pub(super) segments: Box<[Covered]>,
    /// Made when there is time. Nothing in it: there was no room for one.
    pub(super) filter: OnceLock<Option<Filter>>,
}

impl<D: Disk> IdFile<D> {
    /// Opens a file of the store `store_id`, of any store without one, and reads all but its pages.
    pub(super) fn open(disk: &D, number: u64, store_id: Option<u64>) -> Result<Self, StoreError> {
        let file = Sealed::open(disk, Name::Ids(number).to_string())?;
        let owner = |header: &IdsHeader| Owner { store: Some(header.store_id), number: header.number };
        let (header, _) = file.header(IdsHeader::decode, owner, Owner { store: store_id, number })?;
        let salt = header.salt();
        let footer_at = file.footer_at(FOOTER_LEN);
        let bad_footer = || file.corrupt(footer_at, Sight::FooterBad);
        let footer = Footer::decode(&file.read(footer_at..file.len)?, salt).ok_or_else(bad_footer)?;
        let pages = footer.entries.div_ceil(PER_PAGE as u64);
        let index_at = pages.checked_mul(PAGE_LEN as u64).and_then(|len| len.checked_add(HEADER_LEN));
        let index_len = LONG_LEN * 2 * u64::from(footer.segments);
        let index_len = pages.checked_mul(LONG_LEN).and_then(|len| len.checked_add(index_len));
        let index_at = index_at
            .filter(|at| index_len.and_then(|len| at.checked_add(len)) == Some(footer_at))
            .ok_or_else(bad_footer)?;
        let (firsts, segments) = file
            .read_checked(index_at..footer_at, salt, footer.index_crc)?
            .and_then(|bytes| decode_index(&bytes, pages as usize, footer.entries))
            .ok_or_else(|| file.corrupt(index_at, Sight::IndexBad))?;
        Ok(Self { file, number, salt, entries: footer.entries, firsts, segments, filter: OnceLock::new() })
    }

    pub(super) fn name(&self) -> &str {
        self.file.name()
    }

    /// Whether the hash may be here, without reading.
    pub(super) fn may_have(&self, hash: u64) -> bool {
        let filter = self.filter.get().and_then(Option::as_ref);
        filter.is_none_or(|filter| filter.may_have(hash))
    }

    /// Segments and ordinals of this hash. Reads one page, but for a hash that is there more than once.
    pub(super) fn find(&self, hash: u64, found: &mut Vec<(u64, u64)>) -> Result<(), StoreError> {
        let from = self.firsts.partition_point(|first| *first < hash).saturating_sub(1);
        let to = self.firsts.partition_point(|first| *first <= hash);
        for page in from..to {
            let entries = self.page(page)?;
            let at = entries.partition_point(|entry| entry.hash < hash);
            let same = entries[at..].iter().take_while(|entry| entry.hash == hash);
            found.extend(
                same.map(|entry| (self.segments[entry.place as usize].segment, u64::from(entry.ordinal))),
            );
        }
        Ok(())
    }

    pub(super) fn pages(&self) -> usize {
        self.firsts.len()
    }

    /// The entries of a page.
    pub(super) fn page(&self, page: usize) -> Result<Vec<Entry>, StoreError> {
        let range = page_range(page);
        let bytes = self.file.read(range.clone())?;
        let count = (self.entries - (page * PER_PAGE) as u64).min(PER_PAGE as u64) as usize;
        let first = self.firsts[page];
        let next = self.firsts.get(page + 1).copied().unwrap_or(u64::MAX);
        let fits = |entry: &Entry| {
            (first..=next).contains(&entry.hash) && (entry.place as usize) < self.segments.len()
        };
        page::decode(&bytes, count, range.start, self.salt)
            .filter(|entries| entries[0].hash == first && entries.iter().all(fits))
            .ok_or_else(|| self.file.corrupt(range.start, Sight::IdsBad))
    }

    /// Bytes of memory without the filter.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.firsts) + size_of_val(&*self.segments)
    }

    /// Bytes of memory of the filter.
    pub(super) fn filter_len(&self) -> usize {
        self.filter.get().and_then(Option::as_ref).map_or(0, Filter::len)
    }
}

/// Where a page stands in the file.
pub(super) fn page_range(page: usize) -> Range<u64> {
    let at = HEADER_LEN + (page * PAGE_LEN) as u64;
    at..at + PAGE_LEN as u64
}

/// First hashes, and segments.
type Index = (Box<[u64]>, Box<[Covered]>);

fn decode_index(bytes: &[u8], pages: usize, entries: u64) -> Option<Index> {
    let mut longs =
        bytes.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
    let firsts: Box<[u64]> = longs.by_ref().take(pages).collect();
    let rest: Vec<u64> = longs.collect();
    let segments: Box<[Covered]> =
        rest.chunks_exact(2).map(|pair| Covered { segment: pair[0], entries: pair[1] }).collect();
    let sum = segments.iter().try_fold(0_u64, |sum, covered| sum.checked_add(covered.entries));
    (firsts.is_sorted() && sum == Some(entries)).then_some((firsts, segments))
}
