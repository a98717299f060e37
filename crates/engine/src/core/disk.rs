//! What the room on the disk means for the engine: when publishes are refused, and when the journal takes a file.
//!
//! Files are made ahead, so the room on a disk goes in steps, and a journal that took one for messages could push the disk
//! below the low watermark by itself, and lock its publishers out of room that is made already. So it takes none for them that
//! would leave less. For what must always go it takes what there is.

use overtake_store::Space;

use super::Core;
use super::room::Cost;
use crate::watermarks::{DiskHealth, Full};

impl<T> Core<T> {
    /// So much room is on the disk now; `None` when it does not say, and is not watched.
    pub fn disk_space(&mut self, space: Option<Space>) {
        let was_low = self.is_low();
        self.house.disk = space.map(|space| self.options.watermarks.judge(space, was_low));
        self.house.is_gone = false;
    }

    /// The directory of the store is not where it was, or not the same: publishes are refused until [`Core::disk_space`] is told again.
    pub fn directory_gone(&mut self) {
        self.house.disk = None;
        self.house.is_gone = true;
    }

    /// The journal file in use was removed: publishes are refused from now on.
    pub fn file_removed(&mut self) {
        self.house.is_removed = true;
    }

    /// The room on the disk as it was told last; `None` where nobody knows it.
    #[must_use]
    pub fn disk(&self) -> Option<DiskHealth> {
        self.house.disk
    }

    /// Whether publishes are refused because the disk is low, or files of the store are gone.
    pub(super) fn is_low(&self) -> bool {
        self.house.is_gone || self.house.is_removed || self.house.disk.is_some_and(|disk| disk.is_low)
    }

    /// Whether no file may be taken for messages. Then no spares are kept either: whatever is given back is the disk's.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.house.disk.is_some_and(|disk| disk.is_short_of(self.options.segment_bytes))
    }

    /// Whether there is no more room to be had for messages, on the disk or above the watermark.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.house.full || self.is_short()
    }

    /// Whether records wait for room, and the disk has none.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.is_behind() && self.house.full
    }

    /// Why publishes are refused, or large ones are; `None` while they are taken.
    #[must_use]
    pub fn full(&self) -> Option<Full> {
        let file = self.options.segment_bytes;
        match self.house.disk {
            _ if self.house.is_removed => Some(Full::Removed),
            _ if self.house.is_gone => Some(Full::Gone),
            Some(disk) if disk.is_low => Some(Full::Low(disk)),
            _ if self.check_memory().is_err() => Some(Full::NoRoom),
            _ if !self.is_at_end() || self.has_room_for(Cost { bytes: self.slack(), messages: 1 }) => None,
            Some(disk) if disk.is_short_of(file) => Some(Full::AtLow { disk, file }),
            _ if self.house.lacks_descriptors => Some(Full::TooManyFiles),
            _ => Some(Full::NoRoom),
        }
    }
}
