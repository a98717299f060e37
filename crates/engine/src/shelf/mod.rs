//! The shelf: segments with the messages that wait in runs, and what is known of them.
//!
//! ```text
//!   Broker ── reads ──▶ Shelf ◀── segments ── Spiller (the spill thread)
//!   Core ──── Job ──────────────────────────▶ Spiller ──── Done ──▶ Core
//!     └ Holds: which segments are still needed, and where the journal says so
//! ```

mod holds;
mod job;
mod shelf_on_disk;

use std::sync::Arc;

use overtake_lane::{Backlog, RunId};

pub(crate) use holds::{File, Held, Holds, record_len};
pub use job::{Done, Job, Rewrite, Spill, Spiller};
pub(crate) use shelf_on_disk::ShelfOnDisk;

use crate::api::Content;

/// Where messages that wait in runs are read.
pub(crate) trait Shelf: Backlog {
    /// What a message says. When it cannot be read, [`Shelf::failure`] says so and the answer means nothing.
    fn content(&self, run: RunId, ordinal: u32) -> Arc<Content>;

    /// Why something could not be read. Then nothing the broker has done since may become durable or be told.
    fn failure(&self) -> Option<Arc<str>>;

    /// The block that was begun to be read since the last call, by one of its messages: whoever reads in order wants the next.
    fn take_begun(&self) -> Option<(RunId, u32)>;

    /// A number for the next run.
    fn take_number(&self) -> RunId;
}
