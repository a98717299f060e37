//! A file that was written once and whole: a header, what it holds, an index, a footer. Opening it.

use std::ops::Range;

use crate::decide::Sight;
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::file::FORMAT_VERSION;
use crate::header::{Copies, HEADER_LEN, HeaderFault};

/// Such a file, open.
pub(crate) struct Sealed<F: DiskFile> {
    file: F,
    name: String,
    /// Bytes.
    pub(crate) len: u64,
}

/// Whose file it is, as its header says or as somebody wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    /// The store; of a wanted one `None`: any.
    pub(crate) store: Option<u64>,
    /// The number in its name.
    pub(crate) number: u64,
}

impl<F: DiskFile> Sealed<F> {
    pub(crate) fn open<D: Disk<File = F>>(disk: &D, name: String) -> Result<Self, StoreError> {
        let file = disk.open_to_read(&name).map_err(|source| StoreError::io("open", &name, source))?;
        let len = file.len().map_err(|source| StoreError::io("read", &name, source))?;
        Ok(Self { file, name, len })
    }

    /// The header, which must be that of this owner.
    pub(crate) fn header<H>(
        &self,
        decode: impl Fn(&[u8]) -> Result<(H, Copies), HeaderFault>,
        owner: impl Fn(&H) -> Owner,
        wanted: Owner,
    ) -> Result<(H, Copies), StoreError> {
        let block = self.read(0..HEADER_LEN.min(self.len))?;
        let (header, copies) = decode(&block).map_err(|fault| match fault {
            HeaderFault::Newer(found) => {
                StoreError::Newer { file: self.name.clone(), found, known: FORMAT_VERSION }
            }
            HeaderFault::Bad => self.corrupt(0, Sight::HeaderBad),
        })?;
        let is = owner(&header);
        match (wanted.store, is.store) {
            (Some(wanted), Some(found)) if wanted != found => {
                Err(StoreError::OtherStore { file: self.name.clone(), found, wanted })
            }
            _ if is.number != wanted.number => Err(self.corrupt(0, Sight::HeaderMisplaced)),
            _ => Ok((header, copies)),
        }
    }

    /// Where a footer of this length stands; a file that is too short for one has a part of it, or nothing.
    pub(crate) fn footer_at(&self, footer_len: usize) -> u64 {
        self.len.saturating_sub(footer_len as u64).max(HEADER_LEN.min(self.len))
    }

    /// The bytes of a range, fewer when the file has become shorter.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the beginning of the range when the disk cannot read it; [`StoreError::Io`].
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let read = self.file.read(range.start, (range.end - range.start) as usize);
        read.map_err(|source| StoreError::read(&self.name, range.start, source))
    }

    /// Bytes whose checksum, continued from the salt, must be this one; `None` when it is not.
    pub(crate) fn read_checked(
        &self,
        range: Range<u64>,
        salt: u32,
        crc: u32,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = self.read(range)?;
        Ok(Some(bytes).filter(|bytes| crc32c::crc32c_append(salt, bytes) == crc))
    }

    /// What was found at this place makes no sense.
    pub(crate) fn corrupt(&self, at: u64, what: Sight) -> StoreError {
        StoreError::Corrupt { file: self.name.clone(), at, what }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
