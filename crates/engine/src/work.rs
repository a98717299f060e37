//! What a store has done since it was opened, for whoever watches it.

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
