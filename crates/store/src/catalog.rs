//! What lies in a store's directory, by name and header.

use std::collections::BTreeMap;

use crate::decide::Sight;
use crate::disk::{Disk, DiskFile};
use crate::error::{StoreError, is_unreadable};
use crate::file::{FORMAT_VERSION, FileHeader, HEADER_LEN, Name};
use crate::header::{Copies, HeaderFault};
use crate::segment::store_of;

/// The files of a store.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) journals: BTreeMap<u64, Entry>,
    pub(crate) spares: Vec<u64>,
    /// Files of any kind that were being made.
    pub(crate) half_made: Vec<Name>,
    /// Numbers of the segments, ascending.
    pub(crate) segments: Vec<u64>,
    /// Numbers of the files of ids, ascending.
    pub(crate) ids: Vec<u64>,
    /// The store most files here belong to: the expected one, else that of the first readable header of a journal file, or of a segment
    /// where there is none.
    pub(crate) store_id: Option<u64>,
}

/// A file named `journal-`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) len: u64,
    /// As it stands in the file.
    read: Result<(FileHeader, Copies), HeaderFault>,
}

impl Catalog {
    /// Reads the directory and every header; opens files for reading only.
    pub(crate) fn read<D: Disk>(disk: &D, expected_id: Option<u64>) -> Result<Self, StoreError> {
        let mut catalog = Self { store_id: expected_id, ..Self::default() };
        let names = disk.list().map_err(|source| StoreError::io("list", "the directory", source))?;
        for name in names {
            match Name::parse(&name) {
                Some(Name::Journal(number)) => {
                    catalog.journals.insert(number, Entry::read(disk, &name)?);
                }
                Some(Name::Spare(id)) => catalog.spares.push(id),
                Some(Name::Segment(number)) => catalog.segments.push(number),
                Some(Name::Ids(number)) => catalog.ids.push(number),
                Some(name @ (Name::New(_) | Name::NewSegment(_) | Name::NewIds(_))) => {
                    catalog.half_made.push(name);
                }
                None => {}
            }
        }
        catalog.spares.sort_unstable();
        catalog.segments.sort_unstable();
        catalog.ids.sort_unstable();
        let mut ids = catalog.journals.values().filter_map(|entry| entry.read.ok());
        catalog.store_id = catalog.store_id.or_else(|| ids.next().map(|(header, _)| header.store_id));
        if catalog.lacks_journal() && catalog.store_id.is_none() {
            catalog.store_id = catalog.segments.iter().find_map(|number| store_of(disk, *number));
        }
        Ok(catalog)
    }

    /// Whether this was a store, and no file of its journal is left.
    pub(crate) fn lacks_journal(&self) -> bool {
        self.journals.is_empty() && !self.segments.is_empty()
    }

    /// The refusal of a directory without a journal.
    pub(crate) fn no_journal(&self) -> StoreError {
        match self.segments.len() {
            0 => StoreError::NotAStore,
            segments => StoreError::JournalMissing { segments },
        }
    }

    /// The header of a file, when it can be used; the reason when not.
    pub(crate) fn header(&self, number: u64) -> Result<FileHeader, Sight> {
        let entry = self.journals.get(&number).ok_or(Sight::FileMissing)?;
        let (header, _) = entry.read.map_err(Sight::from)?;
        if Some(header.store_id) != self.store_id {
            return Err(Sight::HeaderOtherStore);
        }
        if header.number != number {
            return Err(Sight::HeaderMisplaced);
        }
        Ok(header)
    }

    /// What is wrong with a usable file as a whole, though it can be read.
    pub(crate) fn blemish(&self, number: u64) -> Option<(u64, Sight)> {
        let entry = self.journals.get(&number)?;
        match entry.read {
            Ok((header, _)) if entry.len < header.segment_bytes => Some((entry.len, Sight::FileShort)),
            Ok((_, copies)) => copies.bad_at().map(|at| (at, Sight::HeaderCopyBad)),
            Err(_) => None,
        }
    }

    /// The reason not to touch this directory at all, if there is one.
    pub(crate) fn refusal(&self) -> Option<StoreError> {
        self.journals.iter().find_map(|(&number, entry)| {
            let file = Name::Journal(number).to_string();
            match (entry.read, self.store_id) {
                (Err(HeaderFault::Newer(found)), _) => {
                    Some(StoreError::Newer { file, found, known: FORMAT_VERSION })
                }
                (Ok((header, _)), Some(wanted)) if header.store_id != wanted => {
                    Some(StoreError::OtherStore { file, found: header.store_id, wanted })
                }
                _ => None,
            }
        })
    }

    /// The greatest id in use by spares and half-made files.
    pub(crate) fn last_id(&self) -> u64 {
        let half_made = self.half_made.iter().filter_map(|name| match name {
            Name::New(id) => Some(*id),
            _ => None,
        });
        self.spares.iter().copied().chain(half_made).max().unwrap_or(0)
    }

    /// The last life that prepared a file here.
    pub(crate) fn life(&self) -> u32 {
        self.journals
            .values()
            .filter_map(|entry| entry.read.ok())
            .map(|(header, _)| header.life)
            .max()
            .unwrap_or(0)
    }
}

impl Entry {
    fn read<D: Disk>(disk: &D, name: &str) -> Result<Self, StoreError> {
        let read_error = |source| StoreError::io("read", name, source);
        let file = disk.open_to_read(name).map_err(read_error)?;
        let mut block = vec![0; HEADER_LEN as usize];
        let read = match file.read_at(0, &mut block) {
            // A header that the disk cannot read is as good as one that is wrong.
            Err(source) if is_unreadable(&source) => 0,
            read => read.map_err(read_error)?,
        };
        block.truncate(read);
        Ok(Self { len: file.len().map_err(read_error)?, read: FileHeader::decode(&block) })
    }
}
