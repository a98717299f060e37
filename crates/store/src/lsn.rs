//! A place in the log.

use std::fmt;

/// A place in the log: a byte offset that only grows, over all files and all lives of a store.
///
/// A record's LSN is where its frame begins; the record is durable once the durable LSN is *above* it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
