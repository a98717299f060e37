//! Which files a snapshot has.

use super::moment::Moment;
use crate::decide::Sight;
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::file::{FileHeader, HEADER_LEN, Name};
use crate::lsn::Lsn;

/// What a snapshot is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFiles {
    /// The store's id.
    pub store_id: u64,
    /// Where its journal ends.
    pub lsn: Lsn,
    /// The journal files, then the segments, each by number.
    pub files: Vec<SnapshotFile>,
}

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Its name, here and there.
    pub name: String,
    /// Its length, bytes.
    pub len: u64,
    /// Its bytes from here on are zeros in the snapshot, whatever they are in the store.
    pub(crate) cut: u64,
}

impl SnapshotFiles {
    /// Bytes in all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum()
    }
}

impl Moment {
    /// The files of a snapshot of this moment. Looks at the directory, and at the length of each file.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the file being written cannot be told any more; [`StoreError::Io`].
    pub fn files<D: Disk>(&self, disk: &D) -> Result<SnapshotFiles, StoreError> {
        let names = disk.list().map_err(|source| StoreError::io("list", "the directory", source))?;
        let (mut journals, mut segments) = (Vec::new(), Vec::new());
        for name in names.iter().filter_map(|name| Name::parse(name)) {
            match name {
                Name::Journal(number) if (self.oldest..=self.current).contains(&number) => {
                    journals.push(number);
                }
                Name::Segment(number) => segments.push(number),
                _ => {}
            }
        }
        journals.sort_unstable();
        segments.sort_unstable();
        let header = read_header(disk, self.current)?;
        let mut files = Vec::with_capacity(journals.len() + segments.len());
        let journals = journals.into_iter().map(Name::Journal);
        for name in journals.chain(segments.into_iter().map(Name::Segment)) {
            let is_cut = name == Name::Journal(self.current);
            let name = name.to_string();
            let len = disk.open_to_read(&name).and_then(|file| file.len());
            let len = len.map_err(|source| StoreError::io("read", &name, source))?;
            let cut = if is_cut { header.offset_of(self.durable).min(len) } else { len };
            files.push(SnapshotFile { name, len, cut });
        }
        Ok(SnapshotFiles { store_id: header.store_id, lsn: self.durable, files })
    }
}

fn read_header<D: Disk>(disk: &D, number: u64) -> Result<FileHeader, StoreError> {
    let name = Name::Journal(number).to_string();
    let mut block = vec![0; HEADER_LEN as usize];
    let read = disk.open_to_read(&name).and_then(|file| file.read_at(0, &mut block));
    let read = read.map_err(|source| StoreError::io("read", &name, source))?;
    match FileHeader::decode(&block[..read]) {
        Ok((header, _)) if header.number == number => Ok(header),
        Ok(_) => Err(StoreError::Corrupt { file: name, at: 0, what: Sight::HeaderMisplaced }),
        Err(fault) => Err(StoreError::Corrupt { file: name, at: 0, what: fault.into() }),
    }
}
