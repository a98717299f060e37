//! Segments: messages that only wait, put out of memory.
//!
//! A segment holds messages of one queue in the order of their sequences, each with its content. It is written once, from
//! the front to the back, and never changed: [`SegmentWriter`]. Read, it is a list of blocks, a table of ids, and a
//! small index of both: [`Segment`]. Which of its messages still wait is not its business.
//!
//! A segment gets its name only after all of it is durable, so under that name it is whole, or damaged.
//!
//! # The bytes
//! Little-endian. `header · block · block … · table of ids · index · footer`, without gaps.
//!
//! The header block is as in `header.rs`. Store, life and number together are never used twice, so no two segments have the
//! same fields; and the salt, the checksum of the fields, begins every other checksum.
//!
//! ```text
//!  0  8  magic "OVTKSGMT"
//!  8  4  format version, 1
//! 12  4  life in which the segment was written
//! 16  8  store id
//! 24  8  segment number
//! 32  4  queue
//! 36 24  zero
//! 60  4  CRC-32C of bytes 0..60, the file's salt
//! ```
//!
//! A **block** has at most 32 KiB of payload, unless it has one message only. Ordinals count the messages of a segment, from 0.
//!
//! ```text
//!  0  4       length of the payload
//!  4  4       messages in it, at least one
//!  8  8       ordinal of the first
//! 16  8       sequence of the first
//! 24  4       zero; another number would mean that the payload is packed somehow
//! 28  4       CRC-32C, starting from the salt, of: offset of the block in the file (8) · bytes 0..28 · payload
//! 32  length  payload
//! ```
//!
//! The payload is the messages, one after the other, each: length of the message as a number, message (`message.rs`), length of
//! its content as a number, content. Numbers are unsigned LEB128.
//!
//! The **table of ids** says which messages have an id, by the hash of the id: SipHash-2-4 of its bytes, keyed with store id and
//! queue, each as 64 bits. It is sorted by hash, then by ordinal, and comes in pages of 341 entries, the last of as many as are left;
//! so a page has 4,096 bytes, and a look-up reads one. A segment without ids has no page.
//!
//! ```text
//!  0  8  hash
//!  8  4  ordinal
//! …      more of them
//!     4  CRC-32C, starting from the salt, of: offset of the page in the file (8) · the entries
//! ```
//!
//! The **index** has 32 bytes for each block, then for each page of the table its first hash (8). The ordinal of a block's first
//! message is the sum of those before it.
//!
//! ```text
//!  0  8  offset of the block in the file
//!  8  4  length of its payload
//! 12  4  messages in it
//! 16  8  sequence of the first
//! 24  8  least expiry in it, milliseconds; all ones if nothing in it expires
//! ```
//!
//! The **footer** is the last 72 bytes of the file:
//!
//! ```text
//!  0  8  magic "OVTKSEND"
//!  8  8  messages, at least one
//! 16  8  bytes of content
//! 24  8  sequence of the first
//! 32  8  sequence of the last
//! 40  8  least expiry, milliseconds; all ones if nothing expires
//! 48  8  offset of the index in the file
//! 56  4  blocks
//! 60  4  messages with an id
//! 64  4  CRC-32C of the index, starting from the salt
//! 68  4  CRC-32C of bytes 0..68, starting from the salt
//! ```

mod block;
mod cache;
mod examine;
mod footer;
mod header;
mod ids;
mod index;
mod info;
mod reader;
mod rebuild;
mod set;
mod writer;

pub use block::{Block, Spilled};
pub(crate) use examine::examine;
pub use index::BlockInfo;
pub use info::SegmentInfo;
pub use reader::Segment;
pub(crate) use reader::store_of;
pub use set::{Aside, Segments};
pub use writer::SegmentWriter;
