//! How much memory a process takes, and a control group that ends it when that is too much.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of the most memory that a process has had at once.
pub fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has memory");
    let kib: u64 = line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number");
    kib << 10
}

/// A control group with a limit of memory, of version 2 or 1. Dropped, it is removed: its processes are to be gone by then.
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// A new one.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub fn make(bytes: u64) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("overtake-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let ways = [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];
        let mut why = String::new();
        for (root, file) in ways {
            let dir = Path::new(root).join(&name);
            let made = fs::create_dir(&dir).and_then(|()| {
                // Without the file the group has no limit of memory, whatever is written there.
                fs::metadata(dir.join(file)).and_then(|_| fs::write(dir.join(file), bytes.to_string()))
            });
            match made {
                Ok(()) => return Ok(Self(dir)),
                Err(error) => {
                    let _ = fs::remove_dir(&dir);
                    why = format!("{}: {error}", dir.join(file).display());
                }
            }
        }
        Err(why)
    }

    /// The command as a process of the group.
    pub fn enter(&self, command: &Command) -> Command {
        let mut within = Command::new("sh");
        within.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(self.0.join("cgroup.procs"));
        within.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => within.env(name, value),
                None => within.env_remove(name),
            };
        }
        within
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
