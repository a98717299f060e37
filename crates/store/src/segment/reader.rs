//! Reading a segment.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use overtake_lane::Seq;

use super::block::{Block, Spilled};
use super::cache::{Cache, KEPT_LEN_MAX};
use super::footer::{FOOTER_LEN, Footer};
use super::header::SegmentHeader;
use super::ids::{IdTable, page_count};
use super::index::{BlockInfo, ENTRY_LEN, Index};
use super::info::SegmentInfo;
use super::rebuild::{Rebuilt, rebuild};
use crate::decide::Sight;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::Name;
use crate::header::{Copies, HEADER_LEN};
use crate::ids::IdEntry;
use crate::sealed::{Owner, Sealed};

/// The store that a segment is of; `None` if its header cannot be read.
pub(crate) fn store_of<D: Disk>(disk: &D, number: u64) -> Option<u64> {
    let file = Sealed::open(disk, Name::Segment(number).to_string()).ok()?;
    let owner = |header: &SegmentHeader| Owner { store: Some(header.store_id), number: header.number };
    let header = file.header(SegmentHeader::decode, owner, Owner { store: None, number });
    header.ok().map(|(header, _)| header.store_id)
}

/// An open segment. Its memory is its index, 32 bytes for each block and 8 for every 341 ids, and at most three blocks, or two
/// where three have more than a MiB together; a block of more than a MiB, of one large message, is read whenever it is asked for.
///
/// Messages are named by their *ordinal*, their place in the segment from 0. Several threads may read at once; none waits
/// for another's disk.
pub struct Segment<D: Disk> {
    pub(super) file: Sealed<D::File>,
    info: SegmentInfo,
    life: u32,
    pub(super) salt: u32,
    copies: Copies,
    index: Index,
    pub(super) ids: IdTable,
    /// What the table of ids should say, where it is damaged: read from the messages.
    pub(super) rebuilt_ids: OnceLock<Box<[IdEntry]>>,
    cache: Mutex<Cache>,
}

impl<D: Disk> Segment<D> {
    /// Opens a segment of the store `store_id`, and reads its header, index and footer. Where index or footer are damaged it reads
    /// all blocks instead, and knows those up to the first that is damaged, too: [`SegmentInfo::is_rebuilt`].
    ///
    /// # Errors
    /// [`StoreError::Io`], with `NotFound` when there is none of this number; [`StoreError::Corrupt`]; [`StoreError::Newer`];
    /// [`StoreError::OtherStore`].
    pub fn open(disk: &D, number: u64, store_id: u64) -> Result<Self, StoreError> {
        match Self::open_of(disk, number, Some(store_id)) {
            Err(
                error @ StoreError::Corrupt {
                    what: Sight::FooterBad | Sight::IndexBad | Sight::Unreadable,
                    ..
                },
            ) => Self::rebuild_of(disk, number, Some(store_id))?.ok_or(error),
            opened => opened,
        }
    }

    /// A segment whose index or footer is damaged; `None` when its first block is, too.
    pub(super) fn rebuild_of(
        disk: &D,
        number: u64,
        store_id: Option<u64>,
    ) -> Result<Option<Self>, StoreError> {
        let file = Sealed::open(disk, Name::Segment(number).to_string())?;
        let owner = |header: &SegmentHeader| Owner { store: Some(header.store_id), number: header.number };
        let wanted = Owner { store: store_id, number };
        let (header, copies) = file.header(SegmentHeader::decode, owner, wanted)?;
        let Some(Rebuilt { footer, blocks, ids }) = rebuild(&file, &header)? else { return Ok(None) };
        let index = Index::of_blocks(&blocks);
        let info = SegmentInfo { is_rebuilt: true, ..info(&header, &footer, file.len) };
        let table = IdTable::of_entries(&ids, index.end(), header.id_hasher());
        let (salt, rebuilt_ids) = (header.salt(), OnceLock::from(ids.into_boxed_slice()));
        let cache = Mutex::default();
        Ok(Some(Self { file, info, life: header.life, salt, copies, index, ids: table, rebuilt_ids, cache }))
    }

    /// As [`Segment::open`], but damage to index or footer is an error; without an id it may be of any store.
    pub(super) fn open_of(disk: &D, number: u64, store_id: Option<u64>) -> Result<Self, StoreError> {
        let file = Sealed::open(disk, Name::Segment(number).to_string())?;
        let owner = |header: &SegmentHeader| Owner { store: Some(header.store_id), number: header.number };
        let wanted = Owner { store: store_id, number };
        let (header, copies) = file.header(SegmentHeader::decode, owner, wanted)?;
        let salt = header.salt();
        let footer_at = file.footer_at(FOOTER_LEN);
        let bad_footer = || file.corrupt(footer_at, Sight::FooterBad);
        let footer = Footer::decode(&file.read(footer_at..file.len)?, salt).ok_or_else(bad_footer)?;
        let blocks_len = u64::from(footer.blocks) * ENTRY_LEN as u64;
        let index_len = blocks_len + page_count(footer.ids) * size_of::<u64>() as u64;
        if footer_at.checked_sub(index_len) != Some(footer.index_at) || footer.index_at < HEADER_LEN {
            return Err(bad_footer());
        }
        let bytes = file.read_checked(footer.index_at..footer_at, salt, footer.index_crc)?;
        let decode = |bytes: Vec<u8>| {
            let (blocks, firsts) = bytes.split_at_checked(blocks_len as usize)?;
            let index = Index::decode(blocks, &footer)?;
            let ids = IdTable::decode(firsts, index.end(), footer.ids, header.id_hasher())?;
            Some((index, ids))
        };
        let (index, ids) =
            bytes.and_then(decode).ok_or_else(|| file.corrupt(footer.index_at, Sight::IndexBad))?;
        let info = info(&header, &footer, file.len);
        Ok(Self {
            file,
            info,
            life: header.life,
            salt,
            copies,
            index,
            ids,
            rebuilt_ids: OnceLock::new(),
            cache: Mutex::default(),
        })
    }

    /// What is known about it without reading its messages.
    #[must_use]
    pub fn info(&self) -> &SegmentInfo {
        &self.info
    }

    /// The life of the store in which it was written.
    #[must_use]
    pub fn life(&self) -> u32 {
        self.life
    }

    /// What is known about each block without reading it, in order.
    pub fn blocks(&self) -> impl Iterator<Item = BlockInfo> {
        (0..self.index.len()).map(|place| self.index.info(place))
    }

    /// What is known, without reading it, about the block that stands at this place of the file; `None` if none does.
    #[must_use]
    pub fn block_at(&self, file_offset: u64) -> Option<BlockInfo> {
        self.blocks().find(|block| block.file_range.contains(&file_offset))
    }

    /// The block with this message; `None` behind the last one.
    ///
    /// # Errors
    /// [`StoreError::Io`]; [`StoreError::Corrupt`] with the place of the block.
    pub fn block(&self, ordinal: u64) -> Result<Option<Arc<Block>>, StoreError> {
        let Some(place) = self.index.place_of(ordinal) else { return Ok(None) };
        if let Some(block) = self.cache().get(ordinal) {
            return Ok(Some(block));
        }
        self.load(place).map(Some)
    }

    /// At most `max` messages, from this one on; none behind the last one.
    ///
    /// # Errors
    /// As [`Segment::block`].
    pub fn read(&self, from: u64, max: usize) -> Result<Vec<Spilled>, StoreError> {
        let to = from.saturating_add(max as u64).min(self.info.count);
        let mut found = Vec::with_capacity(to.saturating_sub(from) as usize);
        self.walk(from..to, |block, ordinal| {
            found.push(block.spilled(ordinal)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// The content of a message; `None` behind the last one.
    ///
    /// # Errors
    /// As [`Segment::block`].
    pub fn content(&self, ordinal: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.block(ordinal)?.map(|block| block.content(ordinal).to_vec()))
    }

    /// How many messages are before this sequence: the ordinal of the first that is not. Reads one block at most.
    ///
    /// # Errors
    /// As [`Segment::block`].
    pub fn before(&self, seq: Seq) -> Result<u64, StoreError> {
        match self.stands(seq) {
            Stands::Before(ordinal) => Ok(ordinal),
            Stands::In(place) => {
                let block = self.block(self.index.info(place).ordinals.start)?;
                Ok(block.map_or(0, |block| block.ordinals().start + block.before(seq)))
            }
        }
    }

    /// The message of this sequence, if it is here. Reads one block at most.
    ///
    /// # Errors
    /// As [`Segment::block`].
    pub fn find(&self, seq: Seq) -> Result<Option<u64>, StoreError> {
        let Stands::In(place) = self.stands(seq) else { return Ok(None) };
        let Some(block) = self.block(self.index.info(place).ordinals.start)? else { return Ok(None) };
        let ordinal = block.ordinals().start + block.before(seq);
        let is_here = block.ordinals().contains(&ordinal) && block.seq(ordinal) == seq;
        Ok(is_here.then_some(ordinal))
    }

    /// The sequences of these messages, as far as there are any. Reads their blocks and none of the messages.
    ///
    /// # Errors
    /// As [`Segment::block`].
    pub fn sequences(&self, ordinals: Range<u64>) -> Result<Vec<Seq>, StoreError> {
        let ordinals = ordinals.start..ordinals.end.min(self.info.count);
        let mut found = Vec::with_capacity(ordinals.end.saturating_sub(ordinals.start) as usize);
        self.walk(ordinals, |block, ordinal| {
            found.push(block.seq(ordinal));
            Ok(())
        })?;
        Ok(found)
    }

    /// Reads the block behind the one with this message, so that whoever reads in order finds it in memory. For another
    /// thread than the reader's; it does nothing where the block is here, or is too long to be kept.
    ///
    /// # Errors
    /// As [`Segment::block`]. The reader meets the same error when it comes there.
    pub fn read_ahead(&self, ordinal: u64) -> Result<(), StoreError> {
        let Some(place) = self.index.place_of(ordinal).map(|place| place + 1) else { return Ok(()) };
        if place < self.index.len() && !self.cache().holds(self.index.info(place).ordinals.start) {
            self.load(place)?;
        }
        Ok(())
    }

    /// Whether the block with this message is in memory, or no block has it: then nothing is read for it.
    #[must_use]
    pub fn has_read(&self, ordinal: u64) -> bool {
        ordinal >= self.info.count || self.cache().holds(ordinal)
    }

    /// The ordinals of the block with this message, whether it is in memory or not; `None` behind the last one.
    #[must_use]
    pub fn ordinals_beside(&self, ordinal: u64) -> Option<Range<u64>> {
        self.index.place_of(ordinal).map(|place| self.index.info(place).ordinals)
    }

    /// Whether it is of use to read the block with this message before anybody asks for it: it is not in memory, and would stay there.
    #[must_use]
    pub fn may_read_ahead(&self, ordinal: u64) -> bool {
        let info = self.index.place_of(ordinal).map(|place| self.index.info(place));
        info.is_some_and(|info| {
            let len = info.file_range.end - info.file_range.start;
            len <= KEPT_LEN_MAX as u64 && !self.cache().holds(ordinal)
        })
    }

    /// The first message of the only block that may hold this sequence; `None`: no block does, which is known without reading one.
    #[must_use]
    pub fn block_start_of(&self, seq: Seq) -> Option<u64> {
        match self.stands(seq) {
            Stands::In(place) => Some(self.index.info(place).ordinals.start),
            Stands::Before(_) => None,
        }
    }

    /// Gives back the memory of the blocks read last.
    pub fn forget_blocks(&self) {
        self.cache().clear();
    }

    /// Bytes of the blocks that are kept in memory.
    pub(super) fn blocks_len(&self) -> usize {
        self.cache().len()
    }

    /// Where one of the two copies of the header is wrong, if one is.
    pub(super) fn bad_copy_at(&self) -> Option<u64> {
        self.copies.bad_at()
    }

    /// What is known of a sequence without reading a block.
    fn stands(&self, seq: Seq) -> Stands {
        if seq > self.info.last {
            return Stands::Before(self.info.count);
        }
        let Some(place) = self.index.place_of_seq(seq) else { return Stands::Before(0) };
        let ordinals = self.index.info(place).ordinals;
        let is_behind = self.cache().last_of(ordinals.start).is_some_and(|last| last < seq);
        if is_behind { Stands::Before(ordinals.end) } else { Stands::In(place) }
    }

    fn walk(
        &self,
        mut ordinals: Range<u64>,
        mut visit: impl FnMut(&Block, u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        while !ordinals.is_empty()
            && let Some(block) = self.block(ordinals.start)?
        {
            let to = block.ordinals().end.min(ordinals.end);
            (ordinals.start..to).try_for_each(|ordinal| visit(&block, ordinal))?;
            ordinals.start = to;
        }
        Ok(())
    }

    /// Reads without the lock: whoever wants a block that is here does not wait.
    fn load(&self, place: usize) -> Result<Arc<Block>, StoreError> {
        let info = self.index.info(place);
        let bytes = self.file.read(info.file_range.clone())?;
        let block = Block::decode(self.info.number, bytes, &info, self.salt)
            .map(|block| self.in_order(place, block))
            .and_then(|block| block.ok_or(Sight::MessageBad))
            .map_err(|what| self.file.corrupt(info.file_range.start, what))?;
        let block = Arc::new(block);
        self.cache().keep(&block);
        Ok(block)
    }

    /// The sequences of a block are before those of the next one, and none is above the last one.
    fn in_order(&self, place: usize, block: Block) -> Option<Block> {
        let last = block.last();
        let is_last = place + 1 == self.index.len();
        let right = if is_last { last == self.info.last } else { last < self.index.info(place + 1).first };
        right.then_some(block)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().expect("no one panics while holding the blocks")
    }
}

/// Where a sequence is, or would be.
enum Stands {
    /// It is not here, and this is the ordinal of the first greater one.
    Before(u64),
    /// If it is here, it is in the block at this place.
    In(usize),
}

fn info(header: &SegmentHeader, footer: &Footer, file_len: u64) -> SegmentInfo {
    SegmentInfo {
        number: header.number,
        queue: header.queue,
        count: footer.count,
        ids: u64::from(footer.ids),
        bytes: footer.bytes,
        file_len,
        expires: footer.expires,
        first: footer.first,
        last: footer.last,
        is_rebuilt: false,
    }
}
