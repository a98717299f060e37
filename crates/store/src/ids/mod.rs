//! Finding the messages of an id in many segments: files that merge what their tables of ids say.
//!
//! Each segment has a table of its ids, but to ask every one of thousands is too slow. So the tables are merged into files, and
//! small files into larger ones; each file has at least twice as many entries as the next smaller one, so there are few. A file is
//! written once, whole, and never changed; what was merged away is removed after.
//!
//! All of it is a cache of what the segments say. A file names the segments that it covers; what no file covers is asked itself,
//! and what is damaged is dropped and made anew. Entries of segments that are gone are left out of the next merge.
//!
//! In memory are, for each page of 255 entries, its first hash; for each segment, where it is; and filters, which say of most ids
//! that they are new without reading anything. Those have a bound of their own, and grow coarser as there are more ids.
//!
//! # The bytes
//! Little-endian. `header · page · page … · index · footer`, without gaps. The header block is as in `header.rs`; the salt begins
//! every other checksum.
//!
//! ```text
//!  0  8  magic "OVTKIDIX"
//!  8  4  format version, 1
//! 12  4  life in which the file was written
//! 16  8  store id
//! 24  8  number of the file
//! 32 28  zero
//! 60  4  CRC-32C of bytes 0..60, the file's salt
//! ```
//!
//! A **page** has 4,096 bytes: 255 entries, the last one as many as are left and zeros, then the checksum. They are sorted by hash,
//! place and ordinal. The hash is that of the segment's own table, so it is of the queue, too.
//!
//! ```text
//!    0  8  hash
//!    8  4  place of the segment in the list below
//!   12  4  ordinal
//! 4080 12  zero
//! 4092  4  CRC-32C, starting from the salt, of: offset of the page in the file (8) · bytes 0..4092
//! ```
//!
//! The **index** has for each page its first hash (8), then for each segment its number (8) and how many entries it has (8).
//!
//! The **footer** is the last 32 bytes of the file:
//!
//! ```text
//!  0  8  magic "OVTKIDND"
//!  8  8  entries, at least one
//! 16  4  segments
//! 20  4  zero
//! 24  4  CRC-32C of the index, starting from the salt
//! 28  4  CRC-32C of bytes 0..28, starting from the salt
//! ```

mod examine;
mod file;
mod filter;
mod footer;
mod hash;
mod header;
mod index;
mod merge;
mod page;
mod plan;
mod sift;
mod state;
mod writer;

pub(crate) use examine::examine;
pub(crate) use hash::{IdEntry, IdHasher};
pub use index::{IdIndex, MergeProgress};
