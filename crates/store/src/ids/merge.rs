//! Merging tables and files into one file, a bite at a time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::sync::Arc;

use super::file::IdFile;
use super::page::Entry;
use super::writer::Writer;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::segment::Segment;

/// Why a merge does not go on.
pub(super) enum Trouble {
    /// The file of ids of this number is damaged.
    File(u64),
    /// The segment of this number is damaged.
    Segment(u64, StoreError),
    /// Anything else.
    Store(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A table or a file, read in order.
struct Source<D: Disk> {
    kind: Kind<D>,
    page: usize,
    read: std::vec::IntoIter<Entry>,
}

enum Kind<D: Disk> {
    /// A segment and its place in the new file.
    Segment(Box<Segment<D>>, u32),
    /// A file, and for each of its places the one in the new file, if it goes there.
    File(Arc<IdFile<D>>, Vec<Option<u32>>),
}

impl<D: Disk> Source<D> {
    fn new(kind: Kind<D>) -> Self {
        Self { kind, page: 0, read: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Result<Option<Entry>, Trouble> {
        loop {
            if let Some(entry) = self.read.next() {
                return Ok(Some(entry));
            }
            let Some(entries) = self.kind.page(self.page)? else { return Ok(None) };
            self.page += 1;
            self.read = entries.into_iter();
        }
    }
}

impl<D: Disk> Kind<D> {
    /// The entries of a page, as they are in the new file; `None` behind the last one.
    fn page(&self, page: usize) -> Result<Option<Vec<Entry>>, Trouble> {
        match self {
            Self::Segment(segment, place) => {
                if page == segment.id_pages() {
                    return Ok(None);
                }
                let entries = segment.id_page(page).map_err(|error| match error {
                    StoreError::Corrupt { .. } => Trouble::Segment(segment.info().number, error),
                    error => error.into(),
                })?;
                let entries = entries.into_iter();
                let located = |found: crate::ids::IdEntry| Entry {
                    hash: found.hash,
                    place: *place,
                    ordinal: found.ordinal,
                };
                Ok(Some(entries.map(located).collect()))
            }
            Self::File(file, places) => {
                if page == file.pages() {
                    return Ok(None);
                }
                let entries = file.page(page).map_err(|error| match error {
                    StoreError::Corrupt { .. } => Trouble::File(file.number),
                    error => error.into(),
                })?;
                let moved = |entry: Entry| Some(Entry { place: places[entry.place as usize]?, ..entry });
                Ok(Some(entries.into_iter().filter_map(moved).collect()))
            }
        }
    }
}

/// A merge that goes on.
pub(super) struct Merge<D: Disk> {
    sources: Vec<Source<D>>,
    /// Sources of which something was read.
    begun: usize,
    /// The next entry of each of them.
    next: BinaryHeap<Reverse<(Entry, usize)>>,
    pub(super) writer: Writer<D>,
    /// Numbers of the files that are merged.
    pub(super) files: Vec<u64>,
    /// Segments that were to be merged and are not there.
    pub(super) missing: Vec<u64>,
}

/// The sources of a merge, before it begins.
pub(super) struct Parts<D: Disk> {
    segments: Vec<Segment<D>>,
    files: Vec<Arc<IdFile<D>>>,
    /// Segments that the new file covers, with their places.
    pub(super) places: BTreeMap<u64, u32>,
    missing: Vec<u64>,
}

impl<D: Disk> Parts<D> {
    /// Opens the segments; `covered` are those that the files stand for.
    pub(super) fn open(
        disk: &D,
        store_id: u64,
        segments: Vec<u64>,
        files: Vec<Arc<IdFile<D>>>,
        covered: Vec<u64>,
    ) -> Result<Self, Trouble> {
        let mut opened = Vec::new();
        let mut missing = Vec::new();
        for number in segments {
            match Segment::open(disk, number, store_id) {
                Ok(segment) => opened.push(segment),
                Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    missing.push(number);
                }
                Err(error @ StoreError::Corrupt { .. }) => return Err(Trouble::Segment(number, error)),
                Err(error) => return Err(error.into()),
            }
        }
        let mut all = covered;
        all.extend(opened.iter().map(|segment| segment.info().number));
        all.sort_unstable();
        let places = (0..).zip(all).map(|(place, segment)| (segment, place)).collect();
        Ok(Self { segments: opened, files, places, missing })
    }
}

impl<D: Disk> Merge<D> {
    /// Begins to merge; `is_home` says of a segment and a file whether that is the one that counts.
    pub(super) fn begin(parts: Parts<D>, writer: Writer<D>, is_home: impl Fn(u64, u64) -> bool) -> Self {
        let Parts { segments, files, places, missing } = parts;
        let numbers = files.iter().map(|file| file.number).collect();
        let kinds = files.into_iter().map(|file| {
            let place =
                |segment: u64| places.get(&segment).copied().filter(|_| is_home(segment, file.number));
            let moved = file.segments.iter().map(|covered| place(covered.segment)).collect();
            Kind::File(file, moved)
        });
        let tables = segments.into_iter().map(|segment| {
            let place = places[&segment.info().number];
            Kind::Segment(Box::new(segment), place)
        });
        Self {
            sources: tables.chain(kinds).map(Source::new).collect(),
            begun: 0,
            next: BinaryHeap::new(),
            writer,
            files: numbers,
            missing,
        }
    }

    /// Merges so many entries at most. True: there are no more.
    pub(super) fn go_on(&mut self, most: usize) -> Result<bool, Trouble> {
        while self.begun < self.sources.len() {
            self.refill(self.begun)?;
            self.begun += 1;
        }
        for _ in 0..most {
            let Some(Reverse((entry, at))) = self.next.pop() else { return Ok(true) };
            self.writer.push(entry)?;
            self.refill(at)?;
        }
        Ok(self.next.is_empty())
    }

    fn refill(&mut self, at: usize) -> Result<(), Trouble> {
        let entry = self.sources[at].next()?;
        self.next.extend(entry.map(|entry| Reverse((entry, at))));
        Ok(())
    }
}
