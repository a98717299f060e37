//! The index of ids: what is asked, and what is done about it in bites.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use overtake_lane::QueueId;

use super::IdHasher;
use super::file::IdFile;
use super::filter::Filter;
use super::header::IdsHeader;
use super::merge::{Merge, Parts, Trouble};
use super::page::PER_PAGE;
use super::plan::Plan;
use super::sift::Sift;
use super::state::{Loose, State};
use super::writer::Writer;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::Name;
use crate::segment::Segments;

/// Entries merged, or put into a filter, in one bite: a MiB of each that is read or written.
const BITE: usize = 64 << 10;

/// Finds the messages of an id in all segments of a store: without a read where a filter knows that there is none, else nearly always
/// with one of 4 KiB.
///
/// It may be shared by threads. [`IdIndex::merge_some`] is for a thread that may wait for the disk; nobody waits for it.
///
/// # Memory
/// For each id 8 / 255 bytes, so 3.2 MB for 100 million; for each segment and the largest file that covers it 40 bytes; and
/// filters of at most `filter_bytes_max`, of ten bits for each id where there is room.
pub struct IdIndex<D: Disk> {
    segments: Arc<Segments<D>>,
    state: Mutex<State<D>>,
    /// Held while a bite is done.
    work: Mutex<Option<Work<D>>>,
}

/// Whether [`IdIndex::merge_some`] has left something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeProgress {
    /// It has.
    More,
    /// There is nothing to do until segments are added or forgotten.
    Done,
}

enum Work<D: Disk> {
    Merge(Box<Merge<D>>),
    Sift(Sift<D>),
}

impl<D: Disk> IdIndex<D> {
    /// The index of these segments, as far as it was written; damaged files of it are passed over, half-made ones removed. What it
    /// [does not cover](IdIndex::covers) is to be [added](IdIndex::add), what is gone to be [forgotten](IdIndex::retain). Open it
    /// after the [`Journal`](crate::Journal).
    ///
    /// # Errors
    /// [`StoreError::Io`]; [`StoreError::Newer`]; [`StoreError::OtherStore`].
    pub fn open(segments: Arc<Segments<D>>, filter_bytes_max: usize) -> Result<Self, StoreError> {
        let disk = segments.disk();
        let names = disk.list().map_err(|source| StoreError::io("list", "the directory", source))?;
        let mut numbers = Vec::new();
        let mut next = 1;
        for name in names {
            match Name::parse(&name) {
                Some(Name::Ids(number)) => numbers.push(number),
                Some(Name::NewIds(number)) => {
                    disk.remove(&name).map_err(|source| StoreError::io("remove", &name, source))?;
                    next = next.max(number + 1);
                }
                _ => {}
            }
        }
        // Where two cover the same segment, after a crash, the newer one counts.
        numbers.sort_unstable();
        next = next.max(numbers.last().map_or(1, |last| last + 1));
        let mut state = State {
            files: Vec::new(),
            loose: BTreeMap::new(),
            homes: BTreeMap::new(),
            litter: Vec::new(),
            next,
            is_changed: true,
            filter_bytes_max,
        };
        for number in numbers {
            match IdFile::open(disk, number, Some(segments.store_id())) {
                Ok(file) => {
                    state.homes.extend(file.segments.iter().map(|covered| (covered.segment, number)));
                    state.take_in(Arc::new(file));
                }
                Err(StoreError::Corrupt { file, .. }) => state.litter.push(file),
                Err(error) => return Err(error),
            }
        }
        // A new segment of such a number would be taken for the one that is covered.
        if let Some((last, _)) = state.homes.last_key_value() {
            segments.keep_free(*last);
        }
        Ok(Self { segments, state: Mutex::new(state), work: Mutex::default() })
    }

    /// Whether the ids of a segment are found.
    #[must_use]
    pub fn covers(&self, segment: u64) -> bool {
        self.state().knows(segment)
    }

    /// From now on finds the ids of a segment, which was written. Reads its table of ids; does nothing for one that has none, or that
    /// is covered.
    ///
    /// # Errors
    /// As [`Segment::find_id`](crate::Segment::find_id).
    pub fn add(&self, number: u64) -> Result<(), StoreError> {
        if self.covers(number) {
            return Ok(());
        }
        let Some(segment) = self.segments.get(number)? else { return Ok(()) };
        let entries = segment.info().ids;
        if entries == 0 {
            return Ok(());
        }
        let mut filter = self.state().loose_filter(entries);
        if let Some(filter) = &mut filter {
            for page in 0..segment.id_pages() {
                segment.id_page(page)?.iter().for_each(|entry| filter.insert(entry.hash));
            }
        }
        let mut state = self.state();
        state.loose.insert(number, Loose { entries, filter, is_damaged: false });
        state.is_changed = true;
        Ok(())
    }

    /// No longer finds the ids of a segment, which is gone.
    pub fn forget(&self, segment: u64) {
        self.state().forget(segment);
    }

    /// Forgets all segments but those wanted: after an opening, when it is known which are.
    pub fn retain(&self, is_wanted: impl Fn(u64) -> bool) {
        // Asked without the lock: the answer may take its time.
        let known: Vec<u64> = {
            let state = self.state();
            state.homes.keys().chain(state.loose.keys()).copied().collect()
        };
        for segment in known.into_iter().filter(|segment| !is_wanted(*segment)) {
            self.forget(segment);
        }
    }

    /// The messages of a queue that may have this id, as segments and ordinals, ascending: nearly always none, or the one. Whether
    /// they have it, and still wait, whoever asks must see.
    ///
    /// # Errors
    /// [`StoreError::Io`]. Damage of the index itself is no error: the segments are asked instead; and of a damaged segment the
    /// messages that can be read.
    pub fn find(&self, queue: QueueId, id: &str) -> Result<Vec<(u64, u64)>, StoreError> {
        let hash = IdHasher::new(self.segments.store_id(), queue).hash(id);
        loop {
            let (files, loose) = self.state().may_have(hash);
            let mut found = Vec::new();
            if let Some(damaged) = find_in(&files, hash, &mut found)? {
                self.state().drop_file(damaged);
                continue;
            }
            for number in loose {
                let segment = match self.segments.get(number) {
                    // Whoever wants to read the message meets the damage.
                    Err(StoreError::Corrupt { .. }) => continue,
                    segment => segment?,
                };
                if let Some(segment) = segment {
                    found.extend(segment.find_hash(hash)?.into_iter().map(|ordinal| (number, ordinal)));
                }
            }
            if !found.is_empty() {
                let state = self.state();
                found.retain(|(segment, _)| state.knows(*segment));
                // Two files may cover the same segment.
                found.sort_unstable();
                found.dedup();
            }
            return Ok(found);
        }
    }

    /// Merges a little, or makes a part of a filter: a few milliseconds of work, but that a finished file is synced.
    ///
    /// # Errors
    /// [`StoreError::Full`]: nothing is lost, try again when there is room. [`StoreError::Corrupt`]: a segment is damaged.
    /// [`StoreError::Io`]; after one of writing or syncing the store should stop, as after any other failed change of the disk.
    pub fn merge_some(&self) -> Result<MergeProgress, StoreError> {
        let mut work = self.work.lock().expect("no one panics while merging");
        let current = match work.take() {
            Some(current) => Some(current),
            None => self.next_work()?,
        };
        let is_done = current.is_none() && !self.state().is_changed;
        *work = match current {
            None => None,
            Some(Work::Merge(merge)) => self.go_on_merging(merge)?,
            Some(Work::Sift(sift)) => self.go_on_sifting(sift)?,
        };
        self.remove_litter()?;
        Ok(if is_done { MergeProgress::Done } else { MergeProgress::More })
    }

    /// Bytes of memory that the index takes, its filters among them.
    #[must_use]
    pub fn memory(&self) -> usize {
        let state = self.state();
        state.index_len() + state.filter_len()
    }

    /// How many files there are, and segments that no file covers.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.files.len(), state.loose.len())
    }

    fn next_work(&self) -> Result<Option<Work<D>>, StoreError> {
        let plan = {
            let mut state = self.state();
            let plan = if state.is_changed { state.plan() } else { None };
            state.is_changed = plan.is_some();
            plan
        };
        match plan {
            Some(plan) => self.begin_merging(plan),
            None => Ok(self.begin_sifting().map(Work::Sift)),
        }
    }

    fn begin_merging(&self, plan: Plan<D>) -> Result<Option<Work<D>>, StoreError> {
        let Plan { segments, files } = plan;
        // As it is now: what is forgotten while this goes on is merged, and left out the next time.
        let homes: BTreeMap<u64, u64> = {
            let state = self.state();
            let all = files.iter().flat_map(|file| file.segments.iter());
            all.filter_map(|covered| Some((covered.segment, *state.homes.get(&covered.segment)?))).collect()
        };
        let is_home = |segment: u64, file: u64| homes.get(&segment) == Some(&file);
        let of_files = files
            .iter()
            .flat_map(|file| file.segments.iter().filter(|covered| is_home(covered.segment, file.number)));
        let covered: Vec<u64> = of_files.map(|covered| covered.segment).collect();
        let (disk, store_id) = (self.segments.disk(), self.segments.store_id());
        let parts = match Parts::open(disk, store_id, segments, files, covered) {
            Ok(parts) => parts,
            Err(trouble) => return self.trouble(trouble, None).map(|()| None),
        };
        let number = {
            let mut state = self.state();
            state.next += 1;
            state.next - 1
        };
        let header = IdsHeader { store_id, life: self.segments.life(), number };
        let covers: Vec<u64> = parts.places.keys().copied().collect();
        let writer = Writer::create(disk.clone(), header, &covers)?;
        Ok(Some(Work::Merge(Box::new(Merge::begin(parts, writer, is_home)))))
    }

    fn go_on_merging(&self, mut merge: Box<Merge<D>>) -> Result<Option<Work<D>>, StoreError> {
        match merge.go_on(BITE) {
            Ok(false) => Ok(Some(Work::Merge(merge))),
            Ok(true) => self.end_merging(*merge).map(|()| None),
            Err(trouble) => self.trouble(trouble, Some(&merge.writer)).map(|()| None),
        }
    }

    fn end_merging(&self, merge: Merge<D>) -> Result<(), StoreError> {
        let Merge { writer, files, missing, .. } = merge;
        let made = if writer.entries() == 0 {
            writer.abandon()?;
            None
        } else {
            let number = writer.finish()?;
            Some(IdFile::open(self.segments.disk(), number, Some(self.segments.store_id()))?)
        };
        {
            let mut state = self.state();
            missing.into_iter().for_each(|segment| state.forget(segment));
            if let Some(made) = made {
                state.take_in(Arc::new(made));
            }
            // Their segments have a newer home.
            files.into_iter().for_each(|number| state.drop_file(number));
            state.is_changed = true;
        }
        Ok(())
    }

    /// A damaged file is done without. A damaged segment is left out from now on, and whoever merges is told once.
    fn trouble(&self, trouble: Trouble, writer: Option<&Writer<D>>) -> Result<(), StoreError> {
        let told = match trouble {
            Trouble::Store(error) => return Err(error),
            Trouble::File(number) => {
                self.state().drop_file(number);
                Ok(())
            }
            Trouble::Segment(number, error) => {
                if let Some(loose) = self.state().loose.get_mut(&number) {
                    loose.is_damaged = true;
                }
                Err(error)
            }
        };
        writer.map_or(Ok(()), Writer::abandon)?;
        told
    }

    fn begin_sifting(&self) -> Option<Sift<D>> {
        let state = self.state();
        let without = state.files.iter().filter(|file| file.filter.get().is_none());
        for file in without {
            match Filter::new(file.entries, state.bits_for(file)) {
                Some(filter) => return Some(Sift::new(file.clone(), filter)),
                None => file.filter.get_or_init(|| None),
            };
        }
        None
    }

    fn go_on_sifting(&self, sift: Sift<D>) -> Result<Option<Work<D>>, StoreError> {
        let number = sift.file.number;
        match sift.go_on(BITE / PER_PAGE) {
            Ok(sift) => Ok(sift.map(Work::Sift)),
            Err(StoreError::Corrupt { .. }) => {
                self.state().drop_file(number);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes files that nothing needs any more. One that comes back after a power cut is found at the next opening.
    fn remove_litter(&self) -> Result<(), StoreError> {
        loop {
            let Some(name) = self.state().litter.last().cloned() else { return Ok(()) };
            match self.segments.disk().remove(&name) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io("remove", &name, source));
                }
                _ => self.state().litter.retain(|other| *other != name),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().expect("no one panics while holding the index of ids")
    }
}

/// Asks these files. Answers the number of one that is damaged, if one is.
fn find_in<D: Disk>(
    files: &[Arc<IdFile<D>>],
    hash: u64,
    found: &mut Vec<(u64, u64)>,
) -> Result<Option<u64>, StoreError> {
    for file in files {
        match file.find(hash, found) {
            Ok(()) => {}
            Err(StoreError::Corrupt { .. }) => return Ok(Some(file.number)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
