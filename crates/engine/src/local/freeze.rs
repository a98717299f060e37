//! Keeping files for a snapshot while everything else goes on.
//!
//! The disk thread tells after each commit what is durable; the files thread gives journal files back through [`Freeze::retire`], the
//! spill thread removes segments through [`Freeze::remove`]. While a snapshot is copied both keep what they would have given back.
//! Invariant: a snapshot begins before something is given back or after it, and a reader that still finds its snapshot there has read what
//! was meant. Both threads give back at once, and only the beginning of a snapshot waits for them: a disk may take long to remove a
//! file, and a commit has nothing to do with that.

use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};

use overtake_lane::RunId;
use overtake_store::{Disk, Moment, Pool, StoreError};

use crate::core::Job;

/// Why a snapshot is given up for the sake of the disk.
pub(super) const SHORT: &str = "the disk is short of room, and the broker needs what was kept for it";

/// Keeps files for one snapshot at a time.
pub(super) struct Freeze {
    state: Mutex<State>,
    /// Shared by whoever gives something back, from the look at whether it may to its end. Taken before the state.
    giving: RwLock<()>,
}

struct State {
    moment: Moment,
    /// The snapshot that is being copied.
    running: Option<u64>,
    /// Snapshots begun so far.
    begun: u64,
    /// Journal files were kept for it.
    kept_files: bool,
    /// Segments that were to be removed meanwhile.
    kept_segments: Vec<RunId>,
    /// Why the one that was given up last was.
    why: Arc<str>,
}

impl Freeze {
    pub(super) fn new(moment: Moment) -> Self {
        let (running, kept_segments, why) = (None, Vec::new(), Arc::from("it is over"));
        let state = State { moment, running, begun: 0, kept_files: false, kept_segments, why };
        Self { state: Mutex::new(state), giving: RwLock::new(()) }
    }

    /// Keeps files from now on: for which snapshot, and what it shows. `None` while they are kept for another.
    pub(super) fn begin(&self) -> Option<(u64, Moment)> {
        let _nobody_gives = self.giving.write().expect("nobody panics while giving back");
        let mut state = self.state();
        if state.running.is_some() {
            return None;
        }
        state.begun += 1;
        state.running = Some(state.begun);
        Some((state.begun, state.moment))
    }

    /// Whether files are still kept for a snapshot; why not.
    pub(super) fn check(&self, number: u64) -> Result<(), Arc<str>> {
        let state = self.state();
        if state.running == Some(number) { Ok(()) } else { Err(Arc::clone(&state.why)) }
    }

    /// A snapshot is over. What was kept for it is given back by and by; see [`Freeze::kept_jobs`].
    pub(super) fn end(&self, number: u64) {
        let mut state = self.state();
        if state.running == Some(number) {
            state.running = None;
        }
    }

    /// Ends the snapshot that is being copied, if anything is kept for it. True: it did.
    pub(super) fn give_way(&self, why: &str) -> bool {
        let mut state = self.state();
        let is_in_the_way = state.kept_files || !state.kept_segments.is_empty();
        state.running.is_some() && is_in_the_way && state.give_up(why)
    }

    /// Ends it in any case: the files are nobody's now.
    pub(super) fn close(&self, why: &str) {
        self.state().give_up(why);
    }

    /// Takes note of what is durable. True: journal files were kept for a snapshot that is over.
    pub(super) fn committed(&self, moment: Moment) -> bool {
        let mut state = self.state();
        state.moment = moment;
        state.running.is_none() && state.kept_files
    }

    /// Gives back the journal files before the oldest that is needed, unless they are kept. How many.
    pub(super) fn retire<D: Disk>(&self, pool: &mut Pool<D>, oldest: u64) -> Result<usize, StoreError> {
        let _gives = self.gives();
        let mut state = self.state();
        if state.running.is_some() {
            state.kept_files |= pool.needless(oldest) > 0;
            return Ok(0);
        }
        state.kept_files = false;
        drop(state);
        pool.retire(oldest)
    }

    /// Removes a segment, unless it is kept: then `None`, and it comes back as a job.
    pub(super) fn remove<R>(&self, run: RunId, remove: impl FnOnce() -> R) -> Option<R> {
        let _gives = self.gives();
        let mut state = self.state();
        if state.running.is_some() {
            state.kept_segments.push(run);
            return None;
        }
        drop(state);
        Some(remove())
    }

    /// What was put off for a snapshot that is over.
    pub(super) fn kept_jobs(&self) -> Vec<Job> {
        let mut state = self.state();
        if state.running.is_some() {
            return Vec::new();
        }
        std::mem::take(&mut state.kept_segments).into_iter().map(Job::Remove).collect()
    }

    fn gives(&self) -> RwLockReadGuard<'_, ()> {
        self.giving.read().expect("nobody panics while giving back")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while keeping files")
    }
}

impl State {
    fn give_up(&mut self, why: &str) -> bool {
        let was_running = self.running.take().is_some();
        if was_running {
            self.why = Arc::from(why);
        }
        was_running
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::sync_channel;

    use overtake_store::{Journal, MemoryDisk, Opened, Options, SEGMENT_BYTES_MIN};

    use super::*;

    fn new() -> (Freeze, Opened<MemoryDisk>) {
        let opened = Journal::open(
            MemoryDisk::new(1),
            &Options { segment_bytes: SEGMENT_BYTES_MIN, ..Options::new(42) },
        );
        let opened = opened.expect("a new store opens");
        (Freeze::new(opened.committer.moment()), opened)
    }

    #[test]
    fn a_commit_does_not_wait_for_a_file_that_is_removed() {
        let (freeze, opened) = new();
        let moment = opened.committer.moment();
        // On one thread, so whoever waited would do so for ever.
        let is_owed = freeze.remove(RunId(1), || freeze.committed(moment));
        assert!(!is_owed.expect("no snapshot keeps the segment"), "nothing was kept");
    }

    #[test]
    fn what_was_kept_for_a_snapshot_is_owed_once_it_is_over() {
        let (freeze, Opened { mut writer, committer, .. }) = new();
        let (mut log, mut pool) = committer.split();
        let (number, _) = freeze.begin().expect("no other runs");
        let file =
            std::iter::repeat_with(|| pool.prepare_some().expect("there is room")).find_map(|file| file);
        let file = file.expect("it ends with a file");
        writer.file_ready(file.news());
        log.add(file);
        let begins = writer.begin_next_file().expect("it stands ready");
        assert!(writer.retire(begins), "the first is not needed");
        while let Some(batch) = writer.take_batch() {
            log.commit(&batch).expect("the disk is well");
        }

        let retire =
            |pool: &mut Pool<MemoryDisk>| freeze.retire(pool, log.oldest()).expect("the disk is well");
        assert_eq!((retire(&mut pool), freeze.committed(log.moment())), (0, false), "the snapshot keeps it");
        freeze.end(number);
        assert!(freeze.committed(log.moment()), "it is owed");
        assert_eq!((retire(&mut pool), freeze.committed(log.moment())), (1, false), "it is given back");
    }

    #[test]
    fn a_snapshot_begins_when_a_segment_is_removed_and_keeps_the_next() {
        let (freeze, _committer) = new();
        let (is_removed, (comes, coming)) = (AtomicBool::new(false), sync_channel(1));
        std::thread::scope(|scope| {
            let removed = freeze.remove(RunId(1), || {
                let begin = || {
                    comes.send(()).expect("somebody waits for it");
                    let begun = freeze.begin();
                    assert!(is_removed.load(Ordering::SeqCst), "it begins with a segment that goes");
                    begun
                };
                let begun = scope.spawn(begin);
                coming.recv().expect("it begins");
                is_removed.store(true, Ordering::SeqCst);
                begun
            });
            let begun = removed.expect("no snapshot keeps the segment").join().expect("it has begun");
            assert_eq!(begun.map(|(number, _)| number), Some(1));
        });
        assert!(freeze.remove(RunId(2), || ()).is_none(), "the snapshot keeps it");
    }
}
