//! Which moment of a store a snapshot shows.

use crate::catalog::Catalog;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::SEGMENT_BYTES_MIN;
use crate::journal::first_file;
use crate::lsn::Lsn;
use crate::survey::survey;

/// A moment between two commits: all below one LSN is durable, and which journal files that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Number of the oldest file still needed.
    pub(crate) oldest: u64,
    /// Number of the file in which the durable part ends.
    pub(crate) current: u64,
    /// Where it ends.
    pub(crate) durable: Lsn,
}

impl Moment {
    /// The last moment of a store that nobody has open; lock it first. For one that is open see
    /// [`Committer::moment`](crate::Committer::moment).
    ///
    /// # Errors
    /// [`StoreError::NotAStore`]; [`StoreError::Corrupt`]; [`StoreError::Newer`]; [`StoreError::OtherStore`]; [`StoreError::Io`].
    pub fn at_rest<D: Disk>(disk: &D) -> Result<Self, StoreError> {
        let catalog = Catalog::read(disk, None)?;
        if catalog.journals.is_empty() {
            return Err(StoreError::NotAStore);
        }
        if let Some(refusal) = catalog.refusal() {
            return Err(refusal);
        }
        let found = survey(disk, &catalog, first_file(0, SEGMENT_BYTES_MIN))?;
        if let Some(first) = found.damage.first() {
            return Err(StoreError::Corrupt { file: first.file.clone(), at: first.at, what: first.what });
        }
        // A file in which nothing is, is none of it.
        let current = found.end.file.number - u64::from(found.end.is_fresh);
        if current < found.oldest {
            return Err(StoreError::NotAStore);
        }
        Ok(Self { oldest: found.oldest, current, durable: found.end.lsn() })
    }

    /// The LSN at which the snapshot ends.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        self.durable
    }
}
