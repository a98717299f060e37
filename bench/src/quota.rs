//! A part of a core that a process has at most, so that several on few cores stand for machines of their own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Over which it is counted, µs: short, so that a process that has used its part waits for no longer than a disk takes.
const PERIOD_US: u32 = 5_000;
/// Where the system has its control groups: those of cgroups(7) version 2, and the controller of processors of version 1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"];

/// A control group, which is removed when this goes. Until then its process has to be gone.
pub(crate) struct Quota(PathBuf);

impl Quota {
    /// Lets a process have so many hundredths of a core.
    ///
    /// # Errors
    /// This user may not make control groups, or the system has none.
    pub(crate) fn set(process: u32, hundredths: u32) -> Result<Self> {
        let quota_us = PERIOD_US * hundredths / 100;
        let name = format!("overtake-bench-{process}");
        let set = |root: &str| {
            let group = Self(Path::new(root).join(&name));
            fs::create_dir(&group.0)?;
            if group.0.join("cpu.max").exists() {
                group.write("cpu.max", &format!("{quota_us} {PERIOD_US}"))?;
            } else {
                group.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
                group.write("cpu.cfs_quota_us", &quota_us.to_string())?;
            }
            group.write("cgroup.procs", &process.to_string())?;
            anyhow::Ok(group)
        };
        let [first, second] = ROOTS;
        set(first).or_else(|_| set(second)).context("no control group that limits a processor can be made")
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.0.join(file);
        // What is not there is not made: it would be no control.
        let mut control = fs::File::options().write(true).open(&path)?;
        std::io::Write::write_all(&mut control, value.as_bytes())?;
        Ok(())
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // It is empty by now, or the system keeps it.
        let _ = fs::remove_dir(&self.0);
    }
}
