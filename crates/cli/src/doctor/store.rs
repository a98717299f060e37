//! The directory of the embedded store, as the system and the store say what it is like.

use std::path::{Path, PathBuf};

use overtake_engine::{Watermarks, shard_dir, shards_in};
use overtake_server::config::Config;
use overtake_store::{Disk, RealDisk, Space, StoreError};
use overtake_valkey::cluster::{Event, Finding, Holds, Promise, Weight};
use rustix::fs::{Access, access, statfs};
use serde_json::json;

use super::Report;
use crate::table::count;

/// A filesystem, and what a confirm on it survives a loss of power by.
struct Filesystem {
    name: String,
    holds: Holds,
    why: &'static str,
}

const SYNCED: &str = "it is on the disk before it is confirmed (`fdatasync`).";
const IN_MEMORY: &str = "the filesystem is in memory: keep data on a disk (--data-dir).";
const OF_CONTAINER: &str =
    "it is in the layer of a container, and goes with it: keep data on a volume (--data-dir).";
const ELSEWHERE: &str =
    "the disk is another machine's: what is kept there when it says so is for that one to promise.";
const NO_STORE: &str = "cannot tell: the directory is not there.";
const NOT_KNOWN: &str = "what this filesystem keeps when it says so is not known here.";

/// Numbers of `statfs(2)`, and what stands behind them.
const KNOWN: &[(u64, &str, Holds, &str)] = &[
    (0xEF53, "ext4", Holds::Yes, SYNCED),
    (0x5846_5342, "xfs", Holds::Yes, SYNCED),
    (0x9123_683E, "btrfs", Holds::Yes, SYNCED),
    (0x2FC1_2FC1, "zfs", Holds::Yes, SYNCED),
    (0xF2F5_2010, "f2fs", Holds::Yes, SYNCED),
    (0xCA45_1A4E, "bcachefs", Holds::Yes, SYNCED),
    (0x0102_1994, "tmpfs", Holds::No, IN_MEMORY),
    (0x8584_58F6, "ramfs", Holds::No, IN_MEMORY),
    (0x794C_7630, "overlay", Holds::Unknown, OF_CONTAINER),
    (0x6969, "nfs", Holds::Unknown, ELSEWHERE),
    (0xFF53_4D42, "cifs", Holds::Unknown, ELSEWHERE),
    (0xFE53_4D42, "smb", Holds::Unknown, ELSEWHERE),
    (0x0102_1997, "9p", Holds::Unknown, ELSEWHERE),
    (0x6573_5546, "fuse", Holds::Unknown, NOT_KNOWN),
];

impl Filesystem {
    fn of(number: u64) -> Self {
        let known = KNOWN.iter().find(|(known, ..)| *known == number);
        let (name, holds, why) = known.map_or_else(
            || (format!("0x{number:x}"), Holds::Unknown, NOT_KNOWN),
            |(_, name, holds, why)| ((*name).to_owned(), *holds, *why),
        );
        Self { name, holds, why }
    }
}

/// Looks at the directory. Nothing is changed there.
///
/// # Errors
/// Why it cannot be looked at.
pub(crate) fn look(config: &Config) -> Result<Report, String> {
    let dir = &config.store.data_dir.value;
    let is_there = dir.is_dir();
    let nearest = nearest(dir);
    let of_system = |error: rustix::io::Errno| format!("{}: {error}", nearest.display());
    let is_writable = access(&nearest, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let about = statfs(&nearest).map_err(of_system)?;
    // The numbers have 32 bits; whether the type that holds them has a sign is the machine's to say.
    let filesystem = Filesystem::of(u64::from(about.f_type as u32));
    let part = u64::try_from(about.f_frsize).unwrap_or(0);
    let space =
        Space { free: about.f_bavail.saturating_mul(part), total: about.f_blocks.saturating_mul(part) };
    let marks = Watermarks {
        low: config.store.disk_low_bytes.value.bytes(),
        high: config.store.disk_high_bytes.value.bytes(),
    };
    let disk = marks.judge(space, false);
    let mut findings = Vec::new();
    let mut find = |weight, text: String| findings.push(Finding { weight, text });
    let shown = dir.display();
    match (is_there, is_writable) {
        (true, true) => {}
        (false, true) => find(
            Weight::Fine,
            format!(
                "{shown} is not there, so nothing is kept there: name the directory of the broker (--config, --data-dir), or start one; `overtake serve` makes it."
            ),
        ),
        (true, false) => find(
            Weight::Wrong,
            format!(
                "{shown} cannot be written to: give it to the user the broker runs as, or name another (--data-dir)."
            ),
        ),
        (false, false) => find(
            Weight::Wrong,
            format!(
                "{shown} is not there and cannot be made: name a directory this user may write to (--data-dir)."
            ),
        ),
    }
    if disk.is_low {
        let text = format!(
            "publishes are refused: its disk has {} free, and the low watermark is {}.",
            count(disk.free, "byte"),
            count(disk.low, "byte")
        );
        find(Weight::Wrong, text);
    }
    let copies_on_write = RealDisk::existing(dir).ok().and_then(|disk| disk.copies_on_write().ok()?);
    if let Some(name) = copies_on_write {
        let text = format!(
            "{name} writes files of {shown} anew to change them: if this disk becomes full, the broker stops and cannot start until there is room. Leave store.disk_low_bytes above 0 (see docs/disk.md)."
        );
        find(Weight::Weak, text);
    }
    let shards = if is_there && is_writable { shards_in(dir).unwrap_or(1) } else { 0 };
    let mut is_locked = false;
    for shard in 0..shards {
        is_locked |= store(&shard_dir(dir, shard), &mut find)?;
    }
    let there = json!({
        "data_dir": dir,
        "exists": is_there,
        "writable": is_writable,
        "filesystem": filesystem.name,
        "free_bytes": space.free,
        "total_bytes": space.total,
        "disk_low_bytes": disk.low,
        "locked": is_locked,
    });
    let picture = format!(
        "{shown} on {}, {} free of {}{}\n",
        filesystem.name,
        count(space.free, "byte"),
        count(space.total, "byte"),
        if is_locked { "; a broker has it open" } else { "" }
    );
    let promise = |event, holds, why: &str| Promise { event, holds, why: why.to_owned() };
    let promises = if is_there {
        vec![
            promise(Event::BrokerKilled, Holds::Yes, "it is handed to the system before it is confirmed."),
            promise(Event::PowerLost, filesystem.holds, filesystem.why),
        ]
    } else {
        [Event::BrokerKilled, Event::PowerLost].map(|event| promise(event, Holds::Unknown, NO_STORE)).into()
    };
    Ok(Report { engine: "embedded", there, picture, promises, findings })
}

/// Whether a broker has the store open; where none has, whether all of it can be read.
fn store(dir: &Path, find: &mut impl FnMut(Weight, String)) -> Result<bool, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", dir.display());
    let disk = RealDisk::existing(dir).map_err(|error| wrong(&error))?;
    if disk.is_locked().map_err(|error| wrong(&error))? {
        return Ok(true);
    }
    let report = match overtake_store::check(&disk) {
        Ok(report) => report,
        // One is made here at the first start.
        Err(StoreError::NotAStore) => return Ok(false),
        Err(error) => return Err(wrong(&error)),
    };
    if !report.is_clean() {
        let text = format!("the store is damaged: see where with `overtake store check {}`.", dir.display());
        find(Weight::Wrong, text);
    }
    Ok(false)
}

/// The directory, or the nearest one above it that is there.
fn nearest(dir: &Path) -> PathBuf {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    dir.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_in_memory_keeps_nothing_and_an_unknown_one_promises_nothing() {
        let holds = |number| Filesystem::of(number).holds;
        assert_eq!(
            [0xEF53, 0x0102_1994, 0x6969, 7].map(holds),
            [Holds::Yes, Holds::No, Holds::Unknown, Holds::Unknown]
        );
        assert_eq!(Filesystem::of(7).name, "0x7");
    }

    #[test]
    fn what_is_not_there_is_looked_at_where_it_would_be_made() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(nearest(&dir.path().join("a/b")), dir.path());
        assert_eq!(nearest(dir.path()), dir.path());
    }
}
