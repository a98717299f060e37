//! Records on disk: the journal of a store, and its segments.
//!
//! A [`Journal`] is a stream of records, each an opaque run of bytes at its [`Lsn`], kept in preallocated files that are
//! used again and again. It comes in two halves that meet only in [`Batch`]es and in small news, so that filling the next
//! batch and syncing the last one go on side by side; the caller owns the threads, this crate has none, nor a clock.
//!
//! ```text
//!                    Writer                                    Committer
//!   append ─▶ frames, places ─▶ Batch ─────────▶ one write, one sync ─▶ durable LSN ─▶ confirms
//!   retire ─▶ oldest needed file ─┘              prepare_some, retire
//!   room ◀─ files ready ◀────────── FileReady ◀──┘
//! ```
//!
//! Beside the journal there are [`Segments`]: files of messages that only wait, written once and never changed, so that a backlog
//! need not fit into memory. They know nothing of the journal, nor it of them. [`IdIndex`] finds the messages of an id in all of them.
//!
//! # What holds
//! - A record below the durable LSN survives any crash, and comes back whole, in order.
//! - A record above it may survive or not; but what one recovery did not show, no later one shows.
//! - A batch is written over bytes that exist already, so a full disk cannot stop what [`Writer::room`] promised.
//! - After a failed write or sync nothing more is written: [`StoreError::Poisoned`].
//! - Damage to something durable is found and named with its place ([`Damage`]). The exception is the very last commit, which
//!   cannot be told from one that was cut off while being written; [`Writer::take_proof`] removes it at a planned stop.
//! - What is taken for granted: a sector that is overwritten with the bytes it already holds does not lose them, even when
//!   the power fails meanwhile. No log can do without whose commits share sectors.
//!
//! # The bytes
//! Files and their headers: `file.rs`. Frames: `frame.rs`. What recovery does about what it sees: [`decide`]. Segments:
//! `segment/mod.rs`. The index of ids: `ids/mod.rs`. All of it in one place: `docs/storage-format.md`.
//!
//! # Example
//! ```
//! use overtake_store::{Journal, MemoryDisk, Options};
//!
//! # fn main() -> Result<(), overtake_store::StoreError> {
//! let disk = MemoryDisk::new(1);
//! let mut opened = Journal::open(disk.clone(), &Options::new(7))?;
//! let lsn = opened.writer.append(&[b"head", b"body"])?;
//! let batch = opened.writer.take_batch().expect("one record");
//! assert!(opened.committer.commit(&batch)? > lsn);
//! drop(opened);
//!
//! disk.power_cut();
//! let mut again = Journal::open(disk, &Options::new(7))?;
//! assert_eq!(again.recovery.next_record()?, Some((lsn, &b"headbody"[..])));
//! assert_eq!(again.recovery.next_record()?, None);
//! assert_eq!(again.life, 2);
//! # Ok(()) }
//! ```

mod batch;
mod binding;
mod catalog;
mod check;
pub mod codec;
mod committer;
mod deaths;
mod decide;
mod disk;
mod error;
mod file;
mod frame;
mod header;
mod ids;
mod journal;
mod lsn;
#[cfg(feature = "memory-disk")]
mod memory;
mod mend;
mod message;
mod overlay;
mod pool;
mod proof;
mod real;
pub mod record;
mod recovery;
mod sealed;
mod segment;
mod snapshot;
mod stats;
mod survey;
mod surveyor;
pub mod value;
mod walk;
mod window;
mod work;
mod writer;

pub use batch::Batch;
pub use check::{CheckReport, check};
pub use committer::{Committer, Log};
pub use decide::{Decision, Proof, Sight, decide};
pub use disk::{Disk, DiskFile, Space};
pub use error::StoreError;
pub use file::{FORMAT_VERSION, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
pub use ids::{IdIndex, MergeProgress};
pub use journal::{Journal, OnDamage, Opened, Options, Report, Tail};
pub use lsn::Lsn;
#[cfg(feature = "memory-disk")]
pub use memory::{Counts, Fault, MemoryDisk, MemoryFile, MemoryGuard, Operation, OperationKind};
pub use overlay::{Overlay, OverlayFile};
pub use pool::{Pool, ReadyFile};
pub use real::{RealDisk, RealFile, RealGuard};
pub use recovery::Recovery;
pub use segment::{Aside, Block, BlockInfo, Segment, SegmentInfo, SegmentWriter, Segments, Spilled};
pub use snapshot::{
    Intake, MANIFEST_NAME, Manifest, ManifestFile, Moment, SnapshotError, SnapshotFile, SnapshotFiles,
    SnapshotReader, copy, restore,
};
pub use stats::{Files, QueueStats, SegmentStats, Stats, stats};
pub use survey::Damage;
pub use writer::{FileReady, Writer};
