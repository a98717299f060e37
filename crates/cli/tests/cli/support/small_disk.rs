//! A disk that is small enough to fill, and really is full then: a tmpfs, or a filesystem in an image, that only its own processes see.
//!
//! It is mounted in a mount namespace of its own, so it needs no privilege where the system lets everybody make one, and
//! it goes with the last process in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Broker;
use super::namespace::{Namespace, Way};
use tempfile::TempDir;

/// The privileged way first.
const WAYS: [Way; 2] = [
    Way { unshare: &["--mount"], enter: &["--mount"] },
    Way {
        unshare: &["--user", "--map-root-user", "--mount"],
        enter: &["--user", "--preserve-credentials", "--mount"],
    },
];
/// At `$1` with the options `$2`.
const MOUNT: &str = r#"mount -t tmpfs -o "$2" tmpfs "$1""#;

/// At `$1` a new filesystem `$2` in an image of `$3` bytes on a loop device, which goes when it is unmounted.
const MOUNT_IMAGE: &str = r#"truncate --size="$3" "$1.image" && PATH="$PATH:/usr/sbin" "mkfs.$2" -q "$1.image" >&2 && mount -o loop "$1.image" "$1""#;
/// The smallest that every `mkfs` takes.
const IMAGE_BYTES: u64 = 320 << 20;

/// A disk of its own.
pub struct SmallDisk {
    // Goes before the directory in which it is mounted.
    namespace: Namespace,
    dir: TempDir,
}

impl SmallDisk {
    /// A new one of so many bytes.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub fn mount(bytes: u64) -> Result<Self, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        std::fs::create_dir(&data).expect("a directory");
        let options = format!("size={bytes},mode=700");
        let namespace = Namespace::make(&WAYS, MOUNT, &[data.as_os_str(), options.as_ref()])?;
        Ok(Self { namespace, dir })
    }

    /// One with this filesystem, of which somebody else's file leaves so many bytes free. Only root may mount it.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub fn mount_image(filesystem: &str, free: u64) -> Result<Self, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        std::fs::create_dir(&data).expect("a directory");
        let size = IMAGE_BYTES.to_string();
        let words = [data.as_os_str(), filesystem.as_ref(), size.as_ref()];
        let disk = Self { namespace: Namespace::make(&WAYS[..1], MOUNT_IMAGE, &words)?, dir };
        let others = std::fs::File::create(disk.seen_from_outside().join("others")).expect("a file");
        rustix::fs::fallocate(&others, rustix::fs::FallocateFlags::empty(), 0, disk.free() - free)
            .expect("there is room");
        others.sync_all().expect("synced");
        Ok(disk)
    }

    /// Where it is, for those who are in its namespace.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The same for everybody else.
    pub fn seen_from_outside(&self) -> PathBuf {
        let root = Path::new("/proc").join(self.namespace.holder().to_string()).join("root");
        root.join(self.path().strip_prefix("/").expect("an absolute path"))
    }

    /// Bytes that are free on it.
    pub fn free(&self) -> u64 {
        let found = rustix::fs::statvfs(self.seen_from_outside()).expect("it is there");
        found.f_bavail * found.f_frsize
    }

    /// `overtake`, where it sees this disk.
    pub fn overtake(&self) -> Command {
        self.namespace.overtake()
    }

    /// A broker whose data is here.
    #[track_caller]
    pub fn broker(&self, flags: &[&str]) -> Broker {
        Broker::start_as(self.overtake(), &self.path(), flags)
    }
}
