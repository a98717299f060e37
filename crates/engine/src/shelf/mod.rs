//! The shelf: segments with the messages that wait in runs, and what is known of them.
//!
//! ```text
//!   Broker ── reads ──▶ Shelf ◀── segments ── Spiller (the spill thread)
//!   Core ──── Job ──────────────────────────▶ Spiller ──── Done ──▶ Core
//!     └ Holds: which segments are still needed, and where the journal says so
//! ```

mod holds;
mod job;
mod quarantine;
mod shelf_on_disk;

use std::sync::Arc;

use overtake_lane::{Backlog, RunId};

pub(crate) use holds::{File, Held, Holds, record_len};
pub(crate) use job::ContentAt;
pub use job::{Done, Job, Rewrite, Spill, Spiller};
pub(crate) use quarantine::{DamagedBlock, Quarantine};
pub(crate) use shelf_on_disk::ShelfOnDisk;

use crate::api::Content;

/// A part of a segment that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingBlock {
    /// The run of the segment.
    pub(crate) run: RunId,
    /// A message of the block; `None`: the segment is not open, so nobody knows yet which block is needed.
    pub(crate) ordinal: Option<u32>,
}

/// Blocks that a look found missing, while the shelf read nothing from the disk for it.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// The look cannot go on without these.
    pub(crate) needed: Vec<MissingBlock>,
    /// The look [expects](Backlog::expect) to need these later.
    pub(crate) expected: Vec<MissingBlock>,
}

impl Missing {
    fn is_full(&self) -> bool {
        self.needed.len() + self.expected.len() >= MISSING_MAX
    }
}

/// A look asks for so many blocks at once, at most: of more runs than one it needs the heads together.
const MISSING_MAX: usize = 64;

/// Where messages that wait in runs are read.
pub(crate) trait Shelf: Backlog {
    /// What a message says; `None` when it is lost, or when [`Shelf::failure`] says that it cannot be read.
    fn content(&self, run: RunId, ordinal: u32) -> Option<Arc<Content>>;

    /// Something cannot be done without what is lost: the engine must stop.
    fn give_up(&self, why: &str);

    /// The damaged blocks that were found since the last call.
    fn take_damaged(&self) -> Vec<DamagedBlock>;

    /// Why something could not be read. Then nothing the broker has done since may become durable or be told.
    fn failure(&self) -> Option<Arc<str>>;

    /// The block that was begun to be read since the last call, by one of its messages: whoever reads in order wants the next.
    fn take_begun(&self) -> Option<(RunId, u32)>;

    /// Until [`Shelf::end_look`] nothing is read from the disk, and [`Backlog::awaits_disk`] tells whether that was needed.
    fn begin_look(&self);

    /// Reads from the disk again. Answers what was missing since [`Shelf::begin_look`].
    fn end_look(&self) -> Missing;

    /// A number for the next run.
    fn take_number(&self) -> RunId;
}
