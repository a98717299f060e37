//! Reading a segment whose index or footer is damaged: its blocks say of themselves where they are and what is in them.
//!
//! Blocks follow each other without gaps from the header on, each with its length, its ordinal and its first sequence under its own
//! checksum. So they are read from the front until one is not right: the end of the blocks, or damage. Whoever knows how many
//! messages there were sees what is missing.

use overtake_lane::{Seq, Time};

use super::block::{Block, HEAD_LEN};
use super::footer::Footer;
use super::header::SegmentHeader;
use super::index::{BlockInfo, Entry};
use crate::disk::DiskFile;
use crate::error::StoreError;
use crate::header::HEADER_LEN;
use crate::ids::IdEntry;
use crate::sealed::Sealed;

/// What the blocks of a segment say.
pub(super) struct Rebuilt {
    pub(super) footer: Footer,
    pub(super) blocks: Vec<Entry>,
    /// Sorted.
    pub(super) ids: Vec<IdEntry>,
}

/// Reads the blocks from the front. `None`: not even the first one is right.
///
/// # Errors
/// [`StoreError::Io`].
pub(super) fn rebuild<F: DiskFile>(
    file: &Sealed<F>,
    header: &SegmentHeader,
) -> Result<Option<Rebuilt>, StoreError> {
    let (salt, hasher) = (header.salt(), header.id_hasher());
    let (mut blocks, mut ids): (Vec<Entry>, Vec<IdEntry>) = (Vec::new(), Vec::new());
    let (mut at, mut ordinal, mut bytes) = (HEADER_LEN, 0_u64, 0_u64);
    let (mut last, mut expires) = (None, Time::NEVER);
    while let Some((info, block)) = read_block(file, header, at, ordinal, salt)? {
        if last.is_some_and(|last| info.first <= last) {
            break;
        }
        let mut soonest = Time::NEVER;
        let mut of_block = Vec::new();
        let mut content = 0;
        let mut makes_sense = true;
        for ordinal in block.ordinals() {
            let Ok(message) = block.message(ordinal) else {
                makes_sense = false;
                break;
            };
            soonest = soonest.min(message.expires);
            content += block.content(ordinal).len() as u64;
            if let (Some(id), Ok(ordinal)) = (message.id(), u32::try_from(ordinal)) {
                of_block.push(IdEntry { hash: hasher.hash(id), ordinal });
            }
        }
        if !makes_sense {
            break;
        }
        let count = info.ordinals.end - info.ordinals.start;
        blocks.push(Entry {
            at,
            len: (info.file_range.end - at) as u32 - HEAD_LEN as u32,
            count: count as u32,
            first: info.first,
            expires: soonest,
        });
        ids.extend(of_block);
        last = Some(block.seq(info.ordinals.end - 1));
        (at, ordinal) = (info.file_range.end, info.ordinals.end);
        (bytes, expires) = (bytes + content, expires.min(soonest));
    }
    let Some((first, last)) = blocks.first().map(|block| block.first).zip(last) else { return Ok(None) };
    ids.sort_unstable();
    let footer = Footer {
        count: ordinal,
        bytes,
        first,
        last,
        expires,
        index_at: at,
        blocks: blocks.len() as u32,
        ids: ids.len() as u32,
        index_crc: 0,
    };
    Ok(Some(Rebuilt { footer, blocks, ids }))
}

/// The block that begins here, if one does.
fn read_block<F: DiskFile>(
    file: &Sealed<F>,
    header: &SegmentHeader,
    at: u64,
    ordinal: u64,
    salt: u32,
) -> Result<Option<(BlockInfo, Block)>, StoreError> {
    let Some(head) = readable(file.read(at..at + HEAD_LEN as u64))? else { return Ok(None) };
    let Some(head) = head.first_chunk::<HEAD_LEN>() else { return Ok(None) };
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let (len, count) = (u64::from(word(0)), u64::from(word(4)));
    let end = at + HEAD_LEN as u64 + len;
    if end > file.len || count == 0 || count > len / 2 || long(8) != ordinal {
        return Ok(None);
    }
    let info = BlockInfo {
        ordinals: ordinal..ordinal + count,
        first: Seq(long(16)),
        expires: Time::NEVER,
        file_range: at..end,
    };
    let Some(bytes) = readable(file.read(at..end))? else { return Ok(None) };
    Ok(Block::decode(header.number, bytes, &info, salt).ok().map(|block| (info, block)))
}

/// `None`: the disk cannot read it.
fn readable(read: Result<Vec<u8>, StoreError>) -> Result<Option<Vec<u8>>, StoreError> {
    match read {
        Err(StoreError::Corrupt { .. }) => Ok(None),
        read => read.map(Some),
    }
}
