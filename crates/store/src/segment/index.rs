//! Where the blocks of a segment are. Stays in memory: 32 bytes for each block.

use std::ops::Range;

use overtake_lane::{Seq, Time};

use super::block::HEAD_LEN;
use super::footer::Footer;
use super::ids::table_len;
use crate::header::HEADER_LEN;

/// Length of an entry in the file, bytes.
pub(super) const ENTRY_LEN: usize = 32;

/// A block as the index of the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) count: u32,
    pub(super) first: Seq,
    pub(super) expires: Time,
}

impl Entry {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.first.0.to_le_bytes());
        out.extend_from_slice(&self.expires.0.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Self { at: long(0), len: word(8), count: word(12), first: Seq(long(16)), expires: Time(long(24)) }
    }
}

/// What is known about a block without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The messages in it, by their place in the segment.
    pub ordinals: Range<u64>,
    /// The first sequence.
    pub first: Seq,
    /// The soonest expiry; [`Time::NEVER`] if nothing in it expires.
    pub expires: Time,
    /// Where it stands in the file, bytes.
    pub file_range: Range<u64>,
}

/// The index in memory. The length of a block and the number of its messages follow from the next one.
#[derive(Debug)]
pub(super) struct Index {
    blocks: Box<[Slim]>,
    /// Messages in all.
    count: u64,
    /// Where the last block ends.
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slim {
    at: u64,
    ordinal: u64,
    first: Seq,
    expires: Time,
}

impl Index {
    /// Reads an index whose checksum is right; `None` when it does not fit its footer, or itself.
    pub(super) fn decode(bytes: &[u8], footer: &Footer) -> Option<Self> {
        let mut blocks = Vec::with_capacity(bytes.len() / ENTRY_LEN);
        let (mut at, mut ordinal) = (HEADER_LEN, 0_u64);
        let (mut expires, mut last) = (Time::NEVER, None);
        for entry in bytes.chunks_exact(ENTRY_LEN).map(Entry::decode) {
            // The lengths of a message and of its content take two bytes: so counts never ask for more memory than there is file.
            let fits = (1..=entry.len / 2).contains(&entry.count);
            if entry.at != at || !fits || last.is_some_and(|last| entry.first <= last) {
                return None;
            }
            blocks.push(Slim { at, ordinal, first: entry.first, expires: entry.expires });
            at = at.checked_add(HEAD_LEN as u64 + u64::from(entry.len))?;
            ordinal = ordinal.checked_add(u64::from(entry.count))?;
            expires = expires.min(entry.expires);
            last = Some(entry.first);
        }
        let fits = at.checked_add(table_len(footer.ids)) == Some(footer.index_at)
            && ordinal == footer.count
            && expires == footer.expires
            && blocks.first().map(|block| block.first) == Some(footer.first)
            && last <= Some(footer.last);
        fits.then(|| Self { blocks: blocks.into(), count: ordinal, end: at })
    }

    /// The index of blocks that were read one after the other.
    pub(super) fn of_blocks(entries: &[Entry]) -> Self {
        let (mut blocks, mut count, mut end) = (Vec::with_capacity(entries.len()), 0, HEADER_LEN);
        for entry in entries {
            let Entry { at, len, first, expires, .. } = *entry;
            blocks.push(Slim { at, ordinal: count, first, expires });
            count += u64::from(entry.count);
            end = at + HEAD_LEN as u64 + u64::from(len);
        }
        Self { blocks: blocks.into(), count, end }
    }

    /// Where the last block ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// What is known about the block of this place.
    pub(super) fn info(&self, place: usize) -> BlockInfo {
        let block = self.blocks[place];
        let (next, end) =
            self.blocks.get(place + 1).map_or((self.count, self.end), |next| (next.ordinal, next.at));
        BlockInfo {
            ordinals: block.ordinal..next,
            first: block.first,
            expires: block.expires,
            file_range: block.at..end,
        }
    }

    /// The place of the block with this message; `None` when there are fewer messages.
    pub(super) fn place_of(&self, ordinal: u64) -> Option<usize> {
        let after = self.blocks.partition_point(|block| block.ordinal <= ordinal);
        (ordinal < self.count).then(|| after - 1)
    }

    /// The place of the only block that may hold this sequence; `None` when it is before all of them.
    pub(super) fn place_of_seq(&self, seq: Seq) -> Option<usize> {
        self.blocks.partition_point(|block| block.first <= seq).checked_sub(1)
    }
}
