//! Snapshots: what a power cut at one [`Moment`] would have left of a store, copied while it goes on.
//!
//! ```text
//!   Moment ─▶ files() ─▶ SnapshotReader, one for each ─▶ any wire ─▶ Intake ─▶ a directory that can be opened
//!                              └─ lengths, checksums ─▶ Manifest ─────▲
//! ```
//!
//! The journal files are those from the oldest needed one to the one being written, and that one is *cut* at the durable LSN: all
//! beyond it is zeros. What is written there meanwhile would look like damage, since a later commit proves an earlier one. The
//! segments are all there are; those the journal does not name yet, or no longer, are removed when the copy is opened.
//!
//! Whoever copies from a store that is open sees to it that no file of the list is removed or used again until all are read.

mod error;
mod files;
mod intake;
mod manifest;
mod moment;
mod reader;

pub use error::SnapshotError;
pub use files::{SnapshotFile, SnapshotFiles};
pub use intake::{Intake, copy, restore};
pub use manifest::{MANIFEST_NAME, Manifest, ManifestFile};
pub use moment::Moment;
pub use reader::SnapshotReader;
