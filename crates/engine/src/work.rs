//! What a store has done since it was opened, for whoever watches it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What was written, synced, spilled and rewritten since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskWork {
    /// Bytes of commits written to the journal.
    pub written_bytes: u64,
    /// How long commits took, the write and its sync, µs. As many as there were syncs.
    pub commits_us: Distribution,
    /// Records of each commit.
    pub commit_records: Distribution,
    /// Messages that were written once more at the end of the journal, so that its oldest files could be given back.
    pub carried_messages: u64,
    /// Segments of messages that left memory.
    pub spilled: SegmentWork,
    /// Segments that took the place of sparse ones.
    pub rewritten: SegmentWork,
    /// Segments that were removed.
    pub removed_segments: u64,
}

/// Segments that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentWork {
    /// How many.
    pub segments: u64,
    /// Messages in them.
    pub messages: u64,
    /// Bytes of their files.
    pub bytes: u64,
}

/// What an engine on servers has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerWork {
    /// Calls that were written to a server, each time anew.
    pub calls: u64,
    /// Those of them that were written again, or waited to be.
    pub retries: u64,
    /// Answers that named another server.
    pub moves: u64,
    /// Calls of which it was not known whether they were done, each time.
    pub in_doubt: u64,
    /// Writes that too few replicas acknowledged in time.
    pub wait_shortfalls: u64,
    /// Connections that were made.
    pub connections: u64,
    /// How often definitions went back on the servers, as far as this process has seen it.
    pub definitions_went_back: u64,
    /// Queues on the servers whose definition was lost, when they were looked for last.
    pub orphans: u64,
    /// Messages that were leased.
    pub leased: u64,
    /// Places that were asked for what somebody else had taken by then.
    pub missed: u64,
    /// Of messages that were leased while another place was known to have a more urgent one: for how long that had waited, µs.
    pub inversions_us: Distribution,
}

impl ServerWork {
    /// A phrase about something to see to; `None`: nothing.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let orphans = self.orphans;
        let (queues, are) = if orphans == 1 { ("queue", "is") } else { ("queues", "are") };
        (orphans > 0).then(|| {
            format!(
                "the servers have {orphans} {queues} that {are} not defined: see `overtake cluster orphans`"
            )
        })
    }
}

/// How many of a number of things had at most which size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Upper bound, and how many had at most that (each holds the ones before).
    pub buckets: Vec<(u64, u64)>,
    /// How many in all.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

/// A distribution that many count into.
#[derive(Debug)]
pub struct Buckets {
    bounds: &'static [u64],
    /// Of each bound, and beyond the last.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Buckets {
    /// Nothing is counted yet. `bounds` are upper ones, the least first.
    #[must_use]
    pub fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// One more, of this size.
    pub fn count(&self, size: u64) {
        self.counts[self.bounds.partition_point(|bound| *bound < size)].fetch_add(1, Relaxed);
        self.sum.fetch_add(size, Relaxed);
    }

    /// What was counted.
    #[must_use]
    pub fn view(&self) -> Distribution {
        let mut below = 0;
        let mut counts = self.counts.iter().map(|count| {
            below += count.load(Relaxed);
            below
        });
        let buckets = self.bounds.iter().copied().zip(counts.by_ref()).collect();
        // Of the same readings, so that no bucket holds more than all.
        let count = counts.next().expect("there is a counter beyond the bounds");
        Distribution { buckets, count, sum: self.sum.load(Relaxed) }
    }
}
