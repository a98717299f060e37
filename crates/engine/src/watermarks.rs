//! How much of the disk the store leaves to itself and to others.
//!
//! ```text
//!   free │  publishes are taken
//!   high ┼─────────────── taken again
//!        │
//!    low ┼─────────────── refused; the journal takes no file for them that would leave less than this
//!        │  what frees room, and leases, may take what is left
//!      0 ┴
//! ```
//!
//! Between the two it stays as it was, so that a disk that hovers about one number does not refuse and take in turns.

use std::fmt;
use std::sync::Arc;

use overtake_store::Space;

/// The low watermark where none is asked for: one part in so many of the disk,
const LOW_PART: u64 = 20;
/// but no more than so many bytes.
const LOW_MAX: u64 = 256 << 20;

/// When publishes are refused for the sake of the disk, bytes that are free on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// With less than this they are refused; 0: never. `None`: a twentieth of the disk, at most 256 MiB.
    pub low: Option<u64>,
    /// With more than this they are taken again; never less than `low`. `None`: one and a half times that.
    pub high: Option<u64>,
}

impl Watermarks {
    /// Looks at nothing: publishes are refused when the disk is full.
    pub const OFF: Self = Self { low: Some(0), high: None };

    /// What that much room means, when it was low before, or not.
    #[must_use]
    pub fn judge(&self, space: Space, was_low: bool) -> DiskHealth {
        let Space { free, total } = space;
        let low = self.low.unwrap_or_else(|| (total / LOW_PART).min(LOW_MAX));
        let high = self.high.unwrap_or_else(|| low.saturating_add(low / 2)).max(low);
        let is_low = low > 0 && (free < low || (was_low && free <= high));
        DiskHealth { free, low, high, is_low }
    }
}

/// How a disk stands to its watermarks, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskHealth {
    /// Free to the broker.
    pub free: u64,
    /// The low watermark; 0: none.
    pub low: u64,
    /// The high watermark.
    pub high: u64,
    /// It fell below the low watermark, and has not been above the high one since.
    pub is_low: bool,
}

impl DiskHealth {
    /// Whether a file of so many bytes may not be taken for messages.
    pub(crate) fn is_short_of(&self, bytes: u64) -> bool {
        self.low > 0 && (self.is_low || self.free < self.low.saturating_add(bytes))
    }
}

/// Why publishes are refused, while what frees room is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Full {
    /// The disk has no room for another file.
    NoRoom,
    /// The process has as many files open as it may, so it can open none for messages.
    TooManyFiles,
    /// Another file would leave less than the low watermark.
    AtLow {
        /// The disk.
        disk: DiskHealth,
        /// The length of a file, bytes.
        file: u64,
    },
    /// The disk fell below the low watermark, whoever filled it.
    Low(DiskHealth),
    /// The directory of the store was removed or replaced while it was open: what is written now would not be found again.
    Gone,
    /// The journal file in use was removed: neither what was written to it nor what is written now is found again.
    Removed,
    /// A server that keeps messages in memory has come near its `maxmemory`.
    Memory {
        /// `HOST:PORT` of the server.
        node: Arc<str>,
        /// The memory of the server, as a disk of `maxmemory` bytes.
        memory: DiskHealth,
        /// The server's `maxmemory`, bytes.
        max: u64,
    },
}

impl Full {
    /// Whether what was confirmed may be lost with files that are gone.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Gone | Self::Removed)
    }

    /// What to do about it, as a phrase.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Gone => {
                "put the directory back as it was; where only LOCK is missing, start the broker again: what it has confirmed is there"
            }
            Self::Removed => {
                "consume what is in memory, then stop the broker and restore a backup: what was confirmed is lost with the files"
            }
            Self::TooManyFiles => "it is tried again every second",
            Self::Memory { .. } => {
                "raise maxmemory there, or add a primary; consume and acknowledge to free memory"
            }
            Self::NoRoom => "free disk space; consume and acknowledge to let the store shrink",
            Self::AtLow { .. } | Self::Low(_) => {
                "free disk space, or lower the watermark, store.disk_low_bytes; consume and acknowledge to let the store shrink"
            }
        }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom => f.write_str("the disk has no room for more messages"),
            Self::Gone => f.write_str(
                "the data directory or the file LOCK in it was removed or replaced: put it back, or what is published now would be lost at a restart",
            ),
            Self::Removed => {
                f.write_str("files of the journal were removed while it was in use: what is published now would be lost at a restart")
            }
            Self::TooManyFiles => f.write_str(
                "too many files are open (connections count): raise the limit (ulimit -n, LimitNOFILE) or allow fewer connections",
            ),
            Self::AtLow { disk, file } => write!(
                f,
                "the disk has {} free, and another journal file of {} would leave less than the low watermark of {}",
                Size(disk.free),
                Size(*file),
                Size(disk.low)
            ),
            Self::Memory { node, memory, max } => write!(
                f,
                "the memory of {node} is full: {} of its maxmemory of {} are free, less than {}; they are taken again above {}",
                Size(memory.free),
                Size(*max),
                Size(memory.low),
                Size(memory.high)
            ),
            Self::Low(disk) => write!(
                f,
                "the disk has {} free and was below the low watermark of {}; they are taken again above {}",
                Size(disk.free),
                Size(disk.low),
                Size(disk.high)
            ),
        }
    }
}

/// Bytes for people.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.into_iter().find(|(_, unit)| self.0 >= *unit) {
            // Rounded down: what is short of a watermark is not shown as having reached it.
            Some((name, unit)) => {
                write!(f, "{}.{} {name}", self.0 / unit, self.0 % unit * 10 / unit)
            }
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// What is said as a disk of 10 GiB has so much free, one after the other, MiB.
    fn check(watermarks: Watermarks, free: &[u64], expect: &str) {
        let mut was_low = false;
        let mut said = String::new();
        for free in free {
            let space = Space { free: free * MIB, total: 10 << 30 };
            was_low = watermarks.judge(space, was_low).is_low;
            said.push(if was_low { 'L' } else { '-' });
        }
        assert_eq!(said, expect, "{watermarks:?} {free:?}");
    }

    #[test]
    fn it_is_low_below_the_low_watermark_until_it_is_above_the_high_one() {
        let marks = Watermarks { low: Some(100 * MIB), high: Some(200 * MIB) };
        check(marks, &[300, 200, 150, 100, 99, 100, 150, 200, 201, 150, 100, 99], "----LLLL---L");
    }

    #[test]
    fn the_high_watermark_is_half_again_the_low_one_and_never_below_it() {
        let marks = Watermarks { low: Some(100 * MIB), high: None };
        check(marks, &[99, 150, 151], "LL-");
        let marks = Watermarks { low: Some(100 * MIB), high: Some(1) };
        check(marks, &[99, 100, 101], "LL-");
    }

    #[test]
    fn without_a_low_watermark_nothing_is_low() {
        check(Watermarks::OFF, &[1, 0], "--");
        check(Watermarks { low: Some(0), high: Some(1) }, &[1, 0], "--");
        let off = Watermarks::OFF.judge(Space { free: 0, total: 1 }, false);
        assert!(!off.is_short_of(u64::MAX));
    }

    #[test]
    fn what_is_not_asked_for_follows_the_disk() {
        for (total, low, high) in [
            (24 * MIB, 24 * MIB / 20, 24 * MIB / 20 * 3 / 2),
            (1 << 30, (1 << 30) / 20, (1 << 30) / 20 + (1 << 30) / 40),
            (5 << 30, LOW_MAX, LOW_MAX * 3 / 2),
            (1 << 40, LOW_MAX, LOW_MAX * 3 / 2),
            (0, 0, 0),
        ] {
            let disk = Watermarks::default().judge(Space { free: 0, total }, false);
            assert_eq!((disk.low, disk.high), (low, high), "a disk of {total}");
        }
    }

    #[test]
    fn a_reason_says_how_much_there_is_and_how_much_there_should_be() {
        let disk = DiskHealth { free: 1_536 << 10, low: 2 * MIB, high: 3 << 30, is_low: true };
        assert_eq!(
            Full::Low(disk).to_string(),
            "the disk has 1.5 MiB free and was below the low watermark of 2.0 MiB; they are taken again above 3.0 GiB"
        );
        let free = (5 * MIB) - 1;
        let disk = DiskHealth { free, low: 1_000, high: 3 << 30, is_low: false };
        assert_eq!(
            Full::AtLow { disk, file: 64 << 10 }.to_string(),
            "the disk has 4.9 MiB free, and another journal file of 64.0 KiB would leave less than the low watermark of 1000 bytes"
        );
    }
}
