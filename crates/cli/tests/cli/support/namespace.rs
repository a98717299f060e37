//! A namespace of its own: what is made in it only its own processes see, and it goes with the last of them.
//!
//! A shell holds it, so that brokers may come and go, and be killed; it ends when its stdin does, which is when the test ends, however that ends.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::{binary, unconfigured};

/// What the shell says when it holds what was to be made.
const MADE: &str = "made";

/// How a namespace is made and entered: words for `unshare`, and for `nsenter`.
#[derive(Clone, Copy)]
pub struct Way {
    pub unshare: &'static [&'static str],
    pub enter: &'static [&'static str],
}

/// One that is there until this is dropped.
pub struct Namespace {
    holder: Child,
    enter: &'static [&'static str],
}

impl Namespace {
    /// By the first way that this machine lets us go; a script makes in it what is to be there, of words that are `$1` and so on to it.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub fn make(ways: &[Way], script: &str, words: &[&OsStr]) -> Result<Self, String> {
        let mut refusals = Vec::new();
        for way in ways {
            match Self::make_by(*way, script, words) {
                Ok(namespace) => return Ok(namespace),
                Err(refusal) => refusals.push(refusal),
            }
        }
        Err(refusals.join("; "))
    }

    fn make_by(way: Way, script: &str, words: &[&OsStr]) -> Result<Self, String> {
        let script = format!("{script} && echo {MADE} && read -r _");
        let mut command = Command::new("unshare");
        command.args(way.unshare).args(["--", "sh", "-c", &script, "hold"]).args(words);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = command.spawn().map_err(|error| format!("cannot run unshare: {error}"))?;
        let mut said = String::new();
        let stdout = holder.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut said).expect("text");
        if said.trim_end() == MADE {
            return Ok(Self { holder, enter: way.enter });
        }
        let output = holder.wait_with_output().expect("it ends");
        Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', ", "))
    }

    /// The process that holds it.
    pub fn holder(&self) -> u32 {
        self.holder.id()
    }

    /// Any program in it. It becomes what it runs, so a signal reaches that.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        // The root of the namespace is the machine's, which ours is not in a chroot.
        command
            .args(["--root", "--target", &self.holder().to_string()])
            .args(self.enter)
            .arg("--")
            .arg(program);
        command
    }

    /// `overtake` in it.
    pub fn overtake(&self) -> Command {
        unconfigured(self.command(binary()))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
