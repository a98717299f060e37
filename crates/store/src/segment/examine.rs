//! Reading a whole segment to see whether it is right.

use std::io;
use std::ops::Range;

use super::reader::Segment;
use crate::decide::Sight;
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::file::Name;
use crate::ids::IdEntry;
use crate::survey::Damage;

/// What was found in a segment.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    /// Messages that can be read.
    pub(crate) messages: u64,
    /// Bytes of their contents.
    pub(crate) bytes: u64,
    pub(crate) damage: Vec<Damage>,
    pub(crate) notes: Vec<Damage>,
}

/// Reads every message and the table of ids. Without a `store_id`, the segment may be of any store. `None` when there is no such
/// segment, which a running broker may just have removed.
///
/// # Errors
/// [`StoreError::Io`]. Damage is no error but a finding.
pub(crate) fn examine<D: Disk>(
    disk: &D,
    number: u64,
    store_id: Option<u64>,
) -> Result<Option<Examined>, StoreError> {
    let mut examined = Examined::default();
    let (at, what) = match Segment::open_of(disk, number, store_id) {
        Ok(segment) => {
            examined.read(&segment)?;
            return Ok(Some(examined));
        }
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(StoreError::Corrupt { at, what, .. }) => (at, what),
        Err(StoreError::Newer { .. }) => (0, Sight::HeaderNewer),
        Err(StoreError::OtherStore { .. }) => (0, Sight::HeaderOtherStore),
        Err(error) => return Err(error),
    };
    let file = Name::Segment(number).to_string();
    let len = disk.open_to_read(&file).and_then(|file| file.len());
    let len = len.map_err(|source| StoreError::io("read", &file, source))?;
    examined.damage.push(Damage { file, at, bytes: len - at.min(len), what });
    // Without index or footer the blocks can be read one after the other, up to one that is damaged.
    if !matches!(what, Sight::FooterBad | Sight::IndexBad | Sight::Unreadable) {
        return Ok(Some(examined));
    }
    match Segment::rebuild_of(disk, number, store_id) {
        Ok(Some(segment)) => {
            (examined.messages, examined.bytes) = (segment.info().count, segment.info().bytes);
        }
        Ok(None) | Err(StoreError::Corrupt { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(Some(examined))
}

impl Examined {
    fn read<D: Disk>(&mut self, segment: &Segment<D>) -> Result<(), StoreError> {
        let file = Name::Segment(segment.info().number).to_string();
        if let Some(at) = segment.bad_copy_at() {
            let what = Sight::HeaderCopyBad;
            self.notes.push(Damage { file: file.clone(), at, bytes: crate::header::COPY_AT as u64, what });
        }
        let mut ids = Vec::new();
        for block in segment.blocks() {
            let range = block.file_range;
            match self.read_block(segment, block.ordinals.start, &mut ids) {
                Ok(()) => {}
                Err(StoreError::Corrupt { what, .. }) => {
                    let bytes = range.end - range.start;
                    self.damage.push(Damage { file: file.clone(), at: range.start, bytes, what });
                }
                Err(error) => return Err(error),
            }
        }
        ids.sort_unstable();
        self.compare_ids(segment, &ids)
    }

    /// Reads the table of ids. Where every message can be read, it must say what they say.
    fn compare_ids<D: Disk>(&mut self, segment: &Segment<D>, ids: &[IdEntry]) -> Result<(), StoreError> {
        let all_read = self.messages == segment.info().count;
        for page in 0..segment.id_pages() {
            let (range, entries) = segment.id_page_place(page);
            let is_right = match segment.stored_id_page(page) {
                Ok(found) => !all_read || ids.get(entries) == Some(&found[..]),
                Err(StoreError::Corrupt { .. }) => false,
                Err(error) => return Err(error),
            };
            if !is_right {
                self.damage_ids(segment, range);
            }
        }
        if all_read && ids.len() as u64 > segment.info().ids {
            let (behind, _) = segment.id_page_place(segment.id_pages());
            self.damage_ids(segment, behind.start..behind.start);
        }
        Ok(())
    }

    fn damage_ids<D: Disk>(&mut self, segment: &Segment<D>, range: Range<u64>) {
        let file = Name::Segment(segment.info().number).to_string();
        let bytes = range.end - range.start;
        self.damage.push(Damage { file, at: range.start, bytes, what: Sight::IdsBad });
    }

    fn read_block<D: Disk>(
        &mut self,
        segment: &Segment<D>,
        first: u64,
        ids: &mut Vec<IdEntry>,
    ) -> Result<(), StoreError> {
        let block = segment.block(first)?.expect("the index has this block");
        for ordinal in block.ordinals() {
            // No table names an ordinal of more bits.
            if let (Some(id), Ok(ordinal)) = (block.message(ordinal)?.id(), u32::try_from(ordinal)) {
                ids.push(IdEntry { hash: segment.id_hasher().hash(id), ordinal });
            }
        }
        self.messages += block.ordinals().count() as u64;
        self.bytes += block.ordinals().map(|ordinal| block.content(ordinal).len() as u64).sum::<u64>();
        Ok(())
    }
}
