//! Messages that are written, read and checked together.
//!
//! A block is taken apart only so far that each message and each content can be found; a message is read when it is asked
//! for. So looking for a sequence, or counting, costs a few nanoseconds for each message and no allocation.

use std::ops::Range;

use overtake_lane::{Message, Seq, Time};

use super::index::{BlockInfo, Entry};
use crate::codec::{Reader, number};
use crate::decide::Sight;
use crate::error::StoreError;
use crate::file::Name;
use crate::message;

/// Length of a block's head, bytes.
pub(super) const HEAD_LEN: usize = 32;
const CRC_AT: usize = 28;

/// A block being filled, at the end of a buffer.
#[derive(Debug)]
pub(super) struct Draft {
    /// Where it begins in the buffer.
    start: usize,
    ordinal: u64,
    first: Seq,
    count: u32,
    expires: Time,
}

impl Draft {
    /// Begins a block at the end of `out`, whose first message has this ordinal and sequence.
    pub(super) fn begin(out: &mut Vec<u8>, ordinal: u64, first: Seq) -> Self {
        let start = out.len();
        out.resize(start + HEAD_LEN, 0);
        Self { start, ordinal, first, count: 0, expires: Time::NEVER }
    }

    /// Bytes of payload so far.
    pub(super) fn len(&self, out: &[u8]) -> usize {
        out.len() - self.start - HEAD_LEN
    }

    /// Appends a message; `encoded` is what `message.rs` makes of it.
    pub(super) fn push(&mut self, out: &mut Vec<u8>, encoded: &[u8], expires: Time, content: &[u8]) {
        number(out, encoded.len() as u64);
        out.extend_from_slice(encoded);
        number(out, content.len() as u64);
        out.extend_from_slice(content);
        self.count += 1;
        self.expires = self.expires.min(expires);
    }

    /// Writes the head. `out_at` is where the buffer stands in the file.
    pub(super) fn end(self, out: &mut [u8], out_at: u64, salt: u32) -> Entry {
        let at = out_at + self.start as u64;
        let block = &mut out[self.start..];
        let len = u32::try_from(block.len() - HEAD_LEN).expect("a message has at most a GiB");
        block[0..4].copy_from_slice(&len.to_le_bytes());
        block[4..8].copy_from_slice(&self.count.to_le_bytes());
        block[8..16].copy_from_slice(&self.ordinal.to_le_bytes());
        block[16..24].copy_from_slice(&self.first.0.to_le_bytes());
        let crc = checksum(block, at, salt);
        block[CRC_AT..HEAD_LEN].copy_from_slice(&crc.to_le_bytes());
        Entry { at, len, count: self.count, first: self.first, expires: self.expires }
    }
}

fn checksum(block: &[u8], at: u64, salt: u32) -> u32 {
    let crc = crc32c::crc32c_append(salt, &at.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &block[..CRC_AT]);
    crc32c::crc32c_append(crc, &block[HEAD_LEN..])
}

/// A message of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spilled {
    /// Its place in the segment, from 0.
    pub ordinal: u64,
    /// The message as it was written, but without a place.
    pub message: Message,
    /// Where its content stands in the file, bytes. Read it with [`Segment::content`](crate::Segment::content), which checks it.
    pub content: Range<u64>,
}

/// A block of a segment, read and checked.
#[derive(Debug)]
pub struct Block {
    segment: u64,
    /// Where it stands in the file.
    at: u64,
    ordinal: u64,
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

/// Where a message stands in a block.
#[derive(Clone, Copy, Debug)]
struct Slot {
    seq: Seq,
    message: u32,
    message_end: u32,
    content: u32,
    content_end: u32,
}

impl Block {
    /// Takes the bytes apart; they must be the block that the index describes.
    pub(super) fn decode(segment: u64, bytes: Vec<u8>, info: &BlockInfo, salt: u32) -> Result<Self, Sight> {
        let at = info.file_range.start;
        if !is_right(&bytes, info, salt) {
            return Err(Sight::BlockBad);
        }
        let count = (info.ordinals.end - info.ordinals.start) as usize;
        let slots = slots(&bytes, count).ok_or(Sight::MessageBad)?;
        let ascends = slots.is_sorted_by(|one, next| one.seq < next.seq);
        if slots.first().map(|slot| slot.seq) != Some(info.first) || !ascends {
            return Err(Sight::MessageBad);
        }
        Ok(Self { segment, at, ordinal: info.ordinals.start, bytes, slots })
    }

    /// The messages in it, by their place in the segment. Never empty.
    #[must_use]
    pub fn ordinals(&self) -> Range<u64> {
        self.ordinal..self.ordinal + self.slots.len() as u64
    }

    /// The sequence of the last message.
    pub(super) fn last(&self) -> Seq {
        self.seq(self.ordinals().end - 1)
    }

    /// The sequence of a message.
    ///
    /// # Panics
    /// When the block does not have it.
    #[must_use]
    pub fn seq(&self, ordinal: u64) -> Seq {
        self.slot(ordinal).seq
    }

    /// A message.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it makes no sense, though its checksum is right.
    ///
    /// # Panics
    /// When the block does not have it.
    pub fn message(&self, ordinal: u64) -> Result<Message, StoreError> {
        let slot = self.slot(ordinal);
        let mut reader = Reader::new(&self.bytes[slot.message as usize..slot.message_end as usize]);
        let message = reader.message().filter(|_| reader.is_at_end());
        message.ok_or_else(|| StoreError::Corrupt {
            file: Name::Segment(self.segment).to_string(),
            at: self.at + u64::from(slot.message),
            what: Sight::MessageBad,
        })
    }

    /// The content of a message.
    ///
    /// # Panics
    /// When the block does not have it.
    #[must_use]
    pub fn content(&self, ordinal: u64) -> &[u8] {
        let slot = self.slot(ordinal);
        &self.bytes[slot.content as usize..slot.content_end as usize]
    }

    /// How many messages of the block are before this sequence.
    #[must_use]
    pub fn before(&self, seq: Seq) -> u64 {
        self.slots.partition_point(|slot| slot.seq < seq) as u64
    }

    pub(super) fn spilled(&self, ordinal: u64) -> Result<Spilled, StoreError> {
        let slot = self.slot(ordinal);
        let content = self.at + u64::from(slot.content)..self.at + u64::from(slot.content_end);
        Ok(Spilled { ordinal, message: self.message(ordinal)?, content })
    }

    /// Bytes of memory that its messages take.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn slot(&self, ordinal: u64) -> &Slot {
        let place = ordinal.checked_sub(self.ordinal).and_then(|place| self.slots.get(place as usize));
        place.expect("only messages of the block are asked for")
    }
}

/// Whether the bytes have the right checksum, and a head that says what the index says.
fn is_right(bytes: &[u8], info: &BlockInfo, salt: u32) -> bool {
    let Some(head) = bytes.first_chunk::<HEAD_LEN>() else { return false };
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let count = info.ordinals.end - info.ordinals.start;
    word(0) as usize == bytes.len() - HEAD_LEN
        && u64::from(word(4)) == count
        && long(8) == info.ordinals.start
        && long(16) == info.first.0
        && word(24) == 0
        && word(CRC_AT) == checksum(bytes, info.file_range.start, salt)
}

/// Finds `count` messages and nothing else.
fn slots(bytes: &[u8], count: usize) -> Option<Vec<Slot>> {
    let mut reader = Reader::new(bytes);
    reader.take(HEAD_LEN)?;
    // A message takes a dozen bytes at least, so a wrong count cannot ask for more memory than a few times the block's.
    let mut slots = Vec::with_capacity(count.min(bytes.len() / 8));
    for _ in 0..count {
        let len = usize::try_from(reader.number()?).ok()?;
        let message = reader.at();
        let seq = Reader::new(reader.take(len)?).seq()?;
        let message_end = reader.at();
        let len = usize::try_from(reader.number()?).ok()?;
        let content = reader.at();
        reader.take(len)?;
        let place = |at: usize| u32::try_from(at).ok();
        slots.push(Slot {
            seq,
            message: place(message)?,
            message_end: place(message_end)?,
            content: place(content)?,
            content_end: place(reader.at())?,
        });
    }
    reader.is_at_end().then_some(slots)
}

/// A message as a block has it.
pub(super) fn encode_message(message: &Message, out: &mut Vec<u8>) {
    message::message(out, message);
}
