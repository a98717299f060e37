//! The first pass of recovery: reads the whole log, changes nothing, and says where it ends and what is wrong with it.

use crate::catalog::Catalog;
use crate::decide::Sight;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::FileHeader;
use crate::lsn::Lsn;
use crate::surveyor::Surveyor;

/// Something in a store that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Name of the file.
    pub file: String,
    /// Offset in the file, bytes.
    pub at: u64,
    /// How many bytes from there cannot be read.
    pub bytes: u64,
    /// What is there instead.
    pub what: Sight,
}

/// Where the log ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// The file, which has to be prepared first when `is_fresh`.
    pub(crate) file: FileHeader,
    pub(crate) at: u64,
    pub(crate) is_fresh: bool,
    /// Why it ends here; `None` where a sealed file has no successor yet.
    pub(crate) sight: Option<Sight>,
}

impl End {
    pub(crate) fn lsn(&self) -> Lsn {
        self.file.lsn_at(self.at)
    }
}

/// What the first pass found.
pub(crate) struct Survey {
    pub(crate) end: End,
    /// The files to read, oldest first, up to the one with the end.
    pub(crate) files: Vec<FileHeader>,
    /// Numbers of the files below the oldest needed one.
    pub(crate) below: Vec<u64>,
    /// Numbers of the files after the end.
    pub(crate) beyond: Vec<u64>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) notes: Vec<Damage>,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) oldest: u64,
    /// The last life that wrote a commit.
    pub(crate) life: Option<u32>,
    /// Checksum of the last commit.
    pub(crate) chain: u32,
    /// Below this, everything was durable in an earlier life.
    pub(crate) synced: Lsn,
}

/// Reads the log. `fresh` is the header of file 1 for a store that has none.
///
/// Damage is a finding, not an error; it is one only when not even the place of the log can be told.
pub(crate) fn survey<D: Disk>(disk: &D, catalog: &Catalog, fresh: FileHeader) -> Result<Survey, StoreError> {
    let mut surveyor = Surveyor::new(disk, catalog);
    let end = surveyor.walk_files(fresh)?;
    Ok(surveyor.conclude(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{COMMIT_LEN, Commit};
    use crate::{DiskFile, Journal, MemoryDisk, Options};

    /// A commit put behind the last one by someone else than the committer.
    fn end_after(forge: impl Fn(&Commit) -> Commit) -> (Option<Sight>, Lsn, Lsn) {
        let disk = MemoryDisk::new(1);
        let opened = Journal::open(disk.clone(), &Options { segment_bytes: 65_536, ..Options::new(1) });
        let tail = opened.expect("a new store").writer.tail();
        let catalog = Catalog::read(&disk, None).expect("a store");
        let header = catalog.header(1).expect("its file");
        let found = survey(&disk, &catalog, header).expect("a survey");
        let right = Commit { lsn: tail, durable: tail, oldest: 1, life: 1, chain: found.chain };
        let mut bytes = Vec::new();
        forge(&right).encode(&mut bytes, header.salt());
        let file = disk.open(&header.name()).expect("its file");
        file.write_at(header.offset_of(tail), &bytes).expect("a write");
        let end = survey(&disk, &catalog, header).expect("a survey").end;
        (end.sight, tail, end.lsn())
    }

    #[test]
    fn a_commit_that_follows_is_taken() {
        let (sight, tail, end) = end_after(|right| *right);
        assert_eq!((sight, end.0), (Some(Sight::Zeros), tail.0 + COMMIT_LEN));
    }

    #[test]
    fn a_commit_of_another_history_is_not() {
        let (sight, tail, end) = end_after(|right| Commit { chain: right.chain ^ 1, ..*right });
        assert_eq!((sight, end), (Some(Sight::Unchained), tail));
        let (sight, tail, end) = end_after(|right| Commit { life: 0, ..*right });
        assert_eq!((sight, end), (Some(Sight::Unchained), tail));
    }
}
