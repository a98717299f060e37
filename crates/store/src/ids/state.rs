//! Which file or table says where the ids of each segment are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::IdFile;
use super::filter::{BITS_MAX, Filter};
use crate::disk::Disk;

/// More tables than these are asked themselves without filters: there are so many only while all is made anew.
const LOOSE_FILTERS_MAX: usize = 64;

/// What is known now.
pub(super) struct State<D: Disk> {
    /// The smallest first.
    pub(super) files: Vec<Arc<IdFile<D>>>,
    /// Segments that no file covers: their own tables are asked.
    pub(super) loose: BTreeMap<u64, Loose>,
    /// For every other segment, the number of the file that covers it.
    pub(super) homes: BTreeMap<u64, u64>,
    /// Names of files that nothing needs any more.
    pub(super) litter: Vec<String>,
    /// The number of the next file.
    pub(super) next: u64,
    /// Something has changed since there was nothing to merge.
    pub(super) is_changed: bool,
    pub(super) filter_bytes_max: usize,
}

/// A segment that no file covers.
pub(super) struct Loose {
    pub(super) entries: u64,
    pub(super) filter: Option<Filter>,
    /// Its table cannot be read: it is not merged.
    pub(super) is_damaged: bool,
}

impl<D: Disk> State<D> {
    pub(super) fn knows(&self, segment: u64) -> bool {
        self.homes.contains_key(&segment) || self.loose.contains_key(&segment)
    }

    pub(super) fn forget(&mut self, segment: u64) {
        let known = self.homes.remove(&segment).is_some() | self.loose.remove(&segment).is_some();
        self.is_changed |= known;
    }

    /// Files, and segments without one, that may have a hash.
    pub(super) fn may_have(&self, hash: u64) -> (Vec<Arc<IdFile<D>>>, Vec<u64>) {
        let files = self.files.iter().filter(|file| file.may_have(hash)).cloned().collect();
        let may = |loose: &Loose| loose.filter.as_ref().is_none_or(|filter| filter.may_have(hash));
        let loose = self.loose.iter().filter(|(_, loose)| may(loose)).map(|(segment, _)| *segment);
        (files, loose.collect())
    }

    /// Puts a file in its place, and says so of the segments it covers, but for those that are gone.
    pub(super) fn take_in(&mut self, file: Arc<IdFile<D>>) {
        for covered in &file.segments {
            if self.loose.remove(&covered.segment).is_some() || self.homes.contains_key(&covered.segment) {
                self.homes.insert(covered.segment, file.number);
            }
        }
        let at = self.files.partition_point(|other| other.entries <= file.entries);
        self.files.insert(at, file);
    }

    /// Does without a file. Segments that it still covers are asked themselves.
    pub(super) fn drop_file(&mut self, number: u64) {
        let Some(at) = self.files.iter().position(|file| file.number == number) else { return };
        let file = self.files.remove(at);
        for covered in &file.segments {
            if self.homes.get(&covered.segment) == Some(&number) {
                self.homes.remove(&covered.segment);
                self.loose.insert(
                    covered.segment,
                    Loose { entries: covered.entries, filter: None, is_damaged: false },
                );
            }
        }
        self.litter.push(file.name().to_owned());
        self.is_changed = true;
    }

    /// Entries of a file whose segments are not gone.
    pub(super) fn live(&self, file: &IdFile<D>) -> u64 {
        let is_live = |segment: u64| self.homes.get(&segment) == Some(&file.number);
        file.segments.iter().filter(|covered| is_live(covered.segment)).map(|covered| covered.entries).sum()
    }

    /// Bits for each id in the filter of a file: the largest file has half of all bytes, the next one a quarter, and so on. A file
    /// is made as the smallest, so what it is given need never be taken back.
    pub(super) fn bits_for(&self, file: &IdFile<D>) -> f64 {
        let larger = self.files.iter().filter(|other| other.entries > file.entries).count();
        let share = self.filter_bytes_max as f64 * 0.5_f64.powi(larger as i32 + 1);
        BITS_MAX.min(share.min(self.filter_room() as f64) * 8.0 / file.entries as f64)
    }

    /// An empty filter for a segment of so many entries that no file covers.
    pub(super) fn loose_filter(&self, entries: u64) -> Option<Filter> {
        let fits = entries as f64 * BITS_MAX / 8.0 <= self.filter_room() as f64;
        let fits = fits && self.loose.len() < LOOSE_FILTERS_MAX;
        fits.then(|| Filter::new(entries, BITS_MAX)).flatten()
    }

    fn filter_room(&self) -> usize {
        // A filter is a whole number of words.
        self.filter_bytes_max.saturating_sub(self.filter_len() + size_of::<u64>())
    }

    /// Bytes of memory of all filters.
    pub(super) fn filter_len(&self) -> usize {
        let files: usize = self.files.iter().map(|file| file.filter_len()).sum();
        let loose = self.loose.values().filter_map(|loose| loose.filter.as_ref());
        files + loose.map(Filter::len).sum::<usize>()
    }

    /// Bytes of memory of all else, about.
    pub(super) fn index_len(&self) -> usize {
        let files: usize = self.files.iter().map(|file| file.memory()).sum();
        // An entry of a tree takes half as much again as what is in it.
        let trees = self.homes.len() * 24 + self.loose.len() * 72;
        files + trees
    }
}
