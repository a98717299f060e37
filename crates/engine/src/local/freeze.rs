//! Keeping files for a snapshot while everything else goes on.
//!
//! The disk thread tells after each commit what is durable, and gives journal files back through [`Freeze::committed`]; the spill
//! thread removes segments through [`Freeze::remove`]. While a snapshot is copied both keep what they would have given back.
//! Invariant: whatever is given back is given back under the lock, so a snapshot begins before it or after it, and a reader
//! that still finds its snapshot there has read what was meant.

use std::sync::{Arc, Mutex, MutexGuard};

use overtake_lane::RunId;
use overtake_store::{Committer, Disk, Moment, StoreError};

use crate::core::Job;

/// Why a snapshot is given up for the sake of the disk.
pub(super) const SHORT: &str = "the disk is short of room, and the broker needs what was kept for it";

/// Keeps files for one snapshot at a time.
pub(super) struct Freeze(Mutex<State>);

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
        Self(Mutex::new(State { moment, running, begun: 0, kept_files: false, kept_segments, why }))
    }

    /// Keeps files from now on: for which snapshot, and what it shows. `None` while they are kept for another.
    pub(super) fn begin(&self) -> Option<(u64, Moment)> {
        let mut state = self.state();
        if state.running.is_some() {
            return None;
        }
        state.begun += 1;
        state.running = Some(state.begun);
        state.kept_files = false;
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

    /// Takes note of what is durable, and gives back what is needless, unless it is kept. How many files.
    pub(super) fn committed<D: Disk>(&self, committer: &mut Committer<D>) -> Result<usize, StoreError> {
        let mut state = self.state();
        state.moment = committer.moment();
        if state.running.is_none() {
            return committer.retire();
        }
        state.kept_files |= committer.needless() > 0;
        Ok(0)
    }

    /// Removes a segment, unless it is kept: then `None`, and it comes back as a job.
    pub(super) fn remove<R>(&self, run: RunId, remove: impl FnOnce() -> R) -> Option<R> {
        let mut state = self.state();
        if state.running.is_none() {
            return Some(remove());
        }
        state.kept_segments.push(run);
        None
    }

    /// What was put off for a snapshot that is over.
    pub(super) fn kept_jobs(&self) -> Vec<Job> {
        let mut state = self.state();
        if state.running.is_some() {
            return Vec::new();
        }
        std::mem::take(&mut state.kept_segments).into_iter().map(Job::Remove).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics while keeping files")
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
