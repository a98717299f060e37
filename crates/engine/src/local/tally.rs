//! What the disk thread and the spill thread have done, counted where it is done and read from anywhere.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use overtake_store::SegmentInfo;

use crate::core::Done;
use crate::work::{Buckets, DiskWork, SegmentWork};

/// Upper bounds of how long a commit took, µs: 50 µs to 10 s.
const COMMIT_BOUNDS_US: [u64; 17] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];
/// Upper bounds of how many records a commit had.
const RECORD_BOUNDS: [u64; 9] = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536];

/// Counters of both threads.
pub(super) struct Tally {
    written_bytes: AtomicU64,
    commits_us: Buckets,
    commit_records: Buckets,
    spilled: Segments,
    rewritten: Segments,
    removed: AtomicU64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            written_bytes: AtomicU64::new(0),
            commits_us: Buckets::new(&COMMIT_BOUNDS_US),
            commit_records: Buckets::new(&RECORD_BOUNDS),
            spilled: Segments::default(),
            rewritten: Segments::default(),
            removed: AtomicU64::new(0),
        }
    }
}

impl Tally {
    /// A batch was written and synced.
    pub(super) fn committed(&self, took: Duration, records: u64, bytes: usize) {
        self.written_bytes.fetch_add(bytes as u64, Relaxed);
        self.commits_us.count(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.commit_records.count(records);
    }

    /// The spill thread did a job.
    pub(super) fn done(&self, done: &Done) {
        match done {
            Done::Spilled(segment) => self.spilled.count(segment),
            Done::Rewritten(segment) => self.rewritten.count(segment),
            Done::Removed => drop(self.removed.fetch_add(1, Relaxed)),
            Done::NoRoom { .. }
            | Done::Lost { .. }
            | Done::Unreadable { .. }
            | Done::Read { .. }
            | Done::ReadAhead => {}
        }
    }

    /// As it is now, but for what the broker thread counts.
    pub(super) fn work(&self) -> DiskWork {
        DiskWork {
            written_bytes: self.written_bytes.load(Relaxed),
            commits_us: self.commits_us.view(),
            commit_records: self.commit_records.view(),
            carried_messages: 0,
            spilled: self.spilled.view(),
            rewritten: self.rewritten.view(),
            removed_segments: self.removed.load(Relaxed),
        }
    }
}

#[derive(Default)]
struct Segments {
    segments: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Segments {
    fn count(&self, segment: &SegmentInfo) {
        self.segments.fetch_add(1, Relaxed);
        self.messages.fetch_add(segment.count, Relaxed);
        self.bytes.fetch_add(segment.file_len, Relaxed);
    }

    fn view(&self) -> SegmentWork {
        SegmentWork {
            segments: self.segments.load(Relaxed),
            messages: self.messages.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_in_the_bucket_of_its_time_and_those_above() {
        let tally = Tally::default();
        for us in [0, 50, 51, 10_000_000, 10_000_001] {
            tally.committed(Duration::from_micros(us), 3, 100);
        }
        let DiskWork { written_bytes, commits_us, commit_records, .. } = tally.work();
        assert_eq!(written_bytes, 500);
        assert_eq!(commits_us.buckets[..2], [(50, 2), (100, 3)]);
        assert_eq!(commits_us.buckets.last(), Some(&(10_000_000, 4)));
        assert_eq!((commits_us.count, commits_us.sum), (5, 20_000_102));
        assert_eq!(commit_records.buckets[..2], [(1, 0), (4, 5)]);
        assert_eq!((commit_records.count, commit_records.sum), (5, 15));
    }
}
