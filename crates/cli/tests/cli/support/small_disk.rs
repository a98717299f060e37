//! A disk that is small enough to fill, and really is full then: a tmpfs that only its own processes see.
//!
//! It is mounted in a mount namespace of its own, so it needs no privilege where the system lets everybody make one, and
//! it goes with the last process in it. A shell holds the namespace, so that brokers may come and go, and be killed; it
//! ends when its stdin does, which is when the test ends, however that ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Broker, binary, unconfigured};
use tempfile::TempDir;

/// How a namespace is made and entered, the privileged way first.
const WAYS: [Way; 2] = [
    Way { unshare: &["--mount"], enter: &["--mount"] },
    Way {
        unshare: &["--user", "--map-root-user", "--mount"],
        enter: &["--user", "--preserve-credentials", "--mount"],
    },
];
/// Mounts at `$1` with the options `$2`, says so, and holds what it made until stdin ends.
const HOLD: &str = r#"mount -t tmpfs -o "$2" tmpfs "$1" && echo mounted && read -r _"#;

#[derive(Clone, Copy)]
struct Way {
    unshare: &'static [&'static str],
    enter: &'static [&'static str],
}

/// A disk of its own.
pub struct SmallDisk {
    holder: Child,
    enter: &'static [&'static str],
    dir: TempDir,
}

impl SmallDisk {
    /// A new one of so many bytes.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub fn mount(bytes: u64) -> Result<Self, String> {
        let mut refusals = Vec::new();
        for way in WAYS {
            match Self::mount_by(way, bytes) {
                Ok(disk) => return Ok(disk),
                Err(refusal) => refusals.push(refusal),
            }
        }
        Err(refusals.join("; "))
    }

    fn mount_by(way: Way, bytes: u64) -> Result<Self, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        std::fs::create_dir(&data).expect("a directory");
        let mut command = Command::new("unshare");
        command.args(way.unshare).args(["--", "sh", "-c", HOLD, "hold"]).arg(data);
        command.arg(format!("size={bytes},mode=700"));
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = command.spawn().map_err(|error| format!("cannot run unshare: {error}"))?;
        let mut said = String::new();
        let stdout = holder.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut said).expect("text");
        if said == "mounted\n" {
            return Ok(Self { holder, enter: way.enter, dir });
        }
        let output = holder.wait_with_output().expect("it ends");
        Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', ", "))
    }

    /// Where it is, for those who are in its namespace.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The same for everybody else.
    pub fn seen_from_outside(&self) -> PathBuf {
        let root = Path::new("/proc").join(self.holder.id().to_string()).join("root");
        root.join(self.path().strip_prefix("/").expect("an absolute path"))
    }

    /// Bytes that are free on it.
    pub fn free(&self) -> u64 {
        let found = rustix::fs::statvfs(self.seen_from_outside()).expect("it is there");
        found.f_bavail * found.f_frsize
    }

    /// `overtake`, where it sees this disk.
    pub fn overtake(&self) -> Command {
        let mut command = unconfigured(Command::new("nsenter"));
        // It becomes what it runs, so a signal reaches the broker.
        command.args(["--target", &self.holder.id().to_string()]).args(self.enter).arg("--").arg(binary());
        command
    }

    /// A broker whose data is here.
    #[track_caller]
    pub fn broker(&self, flags: &[&str]) -> Broker {
        Broker::start_as(self.overtake(), &self.path(), flags)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
