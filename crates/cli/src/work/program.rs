//! The program that is run, and how it is started.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use rustix::fs::{Access, access};
use rustix::process::{Pid, WaitStatus};
use tokio::sync::oneshot;

use super::environment;
use super::item::Item;
use super::reaper::Reaper;
use crate::failure::Failure;

/// Where programs are looked for when nobody says where.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What to run for each message.
#[derive(Debug)]
pub(crate) struct Program {
    file: PathBuf,
    name: OsString,
    arguments: Vec<OsString>,
}

/// One that was started.
pub(crate) struct Started {
    /// Which leads its group.
    pub(crate) leader: Pid,
    /// How it ends.
    pub(crate) ended: oneshot::Receiver<WaitStatus>,
    /// What it reads.
    pub(crate) input: Option<ChildStdin>,
    /// What it prints, and what its children print, on standard output and error.
    pub(crate) output: PipeReader,
}

impl Program {
    /// Looks for it as a shell does.
    ///
    /// # Errors
    /// When it is not there, or cannot be executed.
    pub(crate) fn find(name: &OsStr, arguments: &[OsString]) -> Result<Self, Failure> {
        let places = if name.as_encoded_bytes().contains(&b'/') {
            vec![PathBuf::from(name)]
        } else {
            let path = env::var_os("PATH").unwrap_or_else(|| PATH.into());
            env::split_paths(&path).map(|place| place.join(name)).collect()
        };
        let cannot = |why: &str| Failure::usage(format!("cannot run `{}`: {why}", name.display()));
        let there: Vec<_> = places.into_iter().filter(|file| file.is_file()).collect();
        match there.iter().find(|file| is_executable(file)) {
            Some(file) => Ok(Self { file: file.clone(), name: name.into(), arguments: arguments.into() }),
            None if there.is_empty() => Err(cannot("there is no such program").hint(
                "give its path, or have its directory in PATH; for more than one command use sh -c '…'",
            )),
            None => Err(cannot("it may not be executed").hint("chmod +x, or name what runs it: sh, python3")),
        }
    }

    /// Starts it for a message, in a group of its own.
    pub(crate) fn start(&self, item: &Item, around: &[(&str, &str)], reaper: &Reaper) -> io::Result<Started> {
        let (output, writer) = io::pipe()?;
        let mut command = Command::new(&self.file);
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(environment::is_about_a_message) {
                command.env_remove(&name);
            }
        }
        command.arg0(&self.name).args(&self.arguments).envs(around.iter().copied());
        command.envs(item.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
        let (mut child, ended) = reaper.spawn(&mut command)?;
        Ok(Started { leader: Pid::from_child(&child), ended, input: child.stdin.take(), output })
    }
}

fn is_executable(file: &Path) -> bool {
    access(file, Access::EXEC_OK).is_ok()
}
