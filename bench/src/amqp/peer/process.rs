//! A broker's process, which ends with whoever started it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, exit};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::usage::Usage;

/// The word by which this program knows that it is to become a broker.
pub(crate) const CHILD: &str = "amqp-child";

/// Becomes the program that is named, which is killed when whoever started it is gone.
pub(crate) fn become_broker(words: &[OsString]) -> ! {
    let [program, args @ ..] = words else { exit(2) };
    // Where the system does not let us, a broker outlives an interrupt.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    crate::proc::volunteer();
    let error = Command::new(program).args(args).exec();
    eprintln!("{}: {error}", Path::new(program).display());
    exit(127)
}

/// Our broker, beside this program.
///
/// # Errors
/// It is not built.
pub(crate) fn overtake() -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("overtake");
    if !program.exists() {
        bail!("{} is not built: cargo build --profile dist -p overtake", program.display());
    }
    Ok(program)
}

pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    /// What it needs beside it.
    helper: Option<Box<Self>>,
}

impl Process {
    /// Starts it without input, and with what it prints in a file.
    pub(crate) fn start(
        program: &Path,
        args: &[&str],
        vars: &[(&str, String)],
        log: PathBuf,
    ) -> Result<Self> {
        let out = fs::File::create(&log)?;
        let child = Command::new(std::env::current_exe()?)
            .arg(CHILD)
            .arg(program)
            .args(args)
            .envs(vars.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Self { child, log, helper: None })
    }

    /// What the system calls it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Another that ends with it.
    pub(super) fn helped_by(&mut self, helper: Self) {
        self.helper = Some(Box::new(helper));
    }

    /// Waits for this to be there, unless the process ends before.
    pub(crate) fn wait_for<T>(&mut self, mut look: impl FnMut() -> Option<T>) -> Result<T> {
        let ended = super::wait_until(Duration::from_secs(60), || {
            if let Some(found) = look() {
                return Ok(Some(Ok(found)));
            }
            Ok(self.child.try_wait()?.map(Err))
        });
        match ended.with_context(|| format!("it does not begin: {}", self.said()))? {
            Ok(found) => Ok(found),
            Err(status) => bail!("it ended with {status}: {}", self.said()),
        }
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("it ended with {status}: {}", self.said());
        }
        Ok(())
    }

    /// The last that it printed.
    pub(crate) fn said(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        last.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }

    /// Its processor time and memory.
    pub(crate) fn usage(&self) -> Usage {
        Usage::of(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.helper = None;
    }
}
