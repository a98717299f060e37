//! What the writer hands to the committer: bytes, and where they go.

use std::ops::Range;

use crate::lsn::Lsn;

/// Records gathered for one write and one sync. Made by [`Writer::take_batch`](crate::Writer::take_batch), in order, and
/// committed in that order, each once.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) extents: Vec<Extent>,
    pub(crate) start: Lsn,
    pub(crate) end: Lsn,
    pub(crate) oldest: u64,
    pub(crate) records: u64,
}

/// A part of a batch: the bytes that go to one place of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) file: u64,
    pub(crate) offset: u64,
    pub(crate) range: Range<usize>,
}

impl Batch {
    /// The durable LSN once the batch is committed: above every record in it.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// How many records it holds.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How many bytes it writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it writes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.extents.clear();
        self.records = 0;
    }
}
