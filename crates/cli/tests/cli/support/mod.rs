//! The real binary, run as a person or a script would: a broker on a port of its own, and commands that talk to it.
//!
//! Nothing sleeps: the broker is ready when its banner says so, and gone when its stderr ends.

#![allow(dead_code, unreachable_pub, reason = "the tests and the example each use their part")]

pub mod amqp;
pub mod dpkg;
pub mod fake;
pub mod fifo;
pub mod http;
pub mod link;
pub mod memory;
pub mod namespace;
pub mod prometheus;
pub mod pty;
pub mod small_disk;
pub mod tls;
pub mod worker;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything here takes: what is not there then never comes.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The last line of the banner begins so.
const READY: &str = "Ctrl-C stops it.";
/// Lines of stderr that may wait to be read.
const LINES_MAX: usize = 100_000;

/// Whether the test run is a long one (`cargo xtask test --long`).
pub fn is_long() -> bool {
    std::env::var_os("OVERTAKE_LONG").is_some()
}

/// The binary.
pub fn binary() -> PathBuf {
    option_env!("CARGO_BIN_EXE_overtake").map_or_else(beside, PathBuf::from)
}

/// For an example, which is not told where the binary is: one directory up from its own.
fn beside() -> PathBuf {
    let own = std::env::current_exe().expect("a running program has a path");
    own.parent().and_then(Path::parent).expect("examples are two deep").join("overtake")
}

/// `overtake`, with nothing of this process's own configuration.
pub fn overtake() -> Command {
    unconfigured(Command::new(binary()))
}

/// A command that hears nothing of this process's own configuration.
pub fn unconfigured(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if ["OVERTAKE", "OTEL_"].iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
            command.env_remove(name);
        }
    }
    let given = ["JOURNAL_STREAM", "STATE_DIRECTORY", "CONFIGURATION_DIRECTORY", "NOTIFY_SOCKET"];
    for name in given.into_iter().chain(["COLUMNS", "NO_COLOR", "CLICOLOR_FORCE"]) {
        command.env_remove(name);
    }
    command
}

/// What a command did.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Of what the system says.
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("not killed"),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Its stdout; it must have ended well.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// Its stdout as JSON.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        let stdout = self.ok();
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
    }

    /// Exit code, stdout and stderr, as one picture.
    pub fn picture(&self) -> String {
        format!("exit {}\n{}{}", self.code, self.stdout, self.stderr)
    }
}

/// Runs `overtake` with these words and this stdin.
pub fn run<I: AsRef<OsStr>>(words: &[I], stdin: &[u8]) -> Run {
    let mut command = overtake();
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut pipe = child.stdin.take().expect("piped");
    let stdin = stdin.to_vec();
    // On a thread: a command that prints before it has read everything must not wait for this test.
    let feeder = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().expect("it ends");
    feeder.join().expect("no panic");
    Run::of(output)
}

/// A broker of its own.
pub struct Broker {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    /// Where it is.
    pub url: String,
    /// Address and port of AMQP; empty: not served.
    pub amqp: String,
    /// The same under TLS.
    pub amqps: String,
    /// The URL of HTTP under TLS; empty: not served.
    pub https: String,
}

impl Broker {
    /// On a free port, with this data directory.
    #[track_caller]
    pub fn start(dir: &Path) -> Self {
        Self::start_with(dir, &[])
    }

    /// The same, with more flags.
    #[track_caller]
    pub fn start_with(dir: &Path, flags: &[&str]) -> Self {
        Self::start_as(overtake(), dir, flags)
    }

    /// The same, with another way to run `overtake`.
    #[track_caller]
    pub fn start_as(mut command: Command, dir: &Path, flags: &[&str]) -> Self {
        let ports = dir.with_extension("ports.json");
        // Small journal files: there are hundreds of brokers in a test run.
        command.args(["serve", "--segment-bytes", "4MiB"]);
        for listener in ["--http", "--amqp"] {
            if !flags.contains(&listener) {
                command.args([listener, "127.0.0.1:0"]);
            }
        }
        command.arg("--data-dir").arg(dir).arg("--ports-file").arg(&ports).args(flags);
        let mut broker = Self::spawn(command);
        broker.await_line(READY);
        let ports = std::fs::read_to_string(&ports).expect("the ports file is there when the banner is");
        let ports: serde_json::Value = serde_json::from_str(&ports).expect(&ports);
        broker.amqp = ports["amqp"]["address"].as_str().unwrap_or_default().to_owned();
        broker.amqps = ports["amqps"]["address"].as_str().unwrap_or_default().to_owned();
        broker.https = ports["https"]["url"].as_str().unwrap_or_default().to_owned();
        broker.url = ports["http"]["url"].as_str().expect("a url").to_owned();
        broker
    }

    /// Of any command, without waiting for anything.
    pub fn spawn(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let (send, lines) = sync_channel(LINES_MAX);
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        let none = String::new;
        Self { child, lines, seen: Vec::new(), url: none(), amqp: none(), amqps: none(), https: none() }
    }

    /// Waits for a line of stderr with these words in it.
    #[track_caller]
    pub fn await_line(&mut self, words: &str) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.seen.push(line);
                    if self.seen.last().is_some_and(|line| line.contains(words)) {
                        return;
                    }
                }
                Err(_) => panic!("no `{words}` in:\n{}", self.seen.join("\n")),
            }
        }
    }

    /// The first line of stderr so far with these words in it.
    #[track_caller]
    pub fn seen_line(&self, words: &str) -> String {
        let found = self.seen.iter().find(|line| line.contains(words));
        found.cloned().unwrap_or_else(|| panic!("no `{words}` in:\n{}", self.seen.join("\n")))
    }

    /// All lines of stderr so far with these words in them; the last that is waited for is the last that is looked at.
    pub fn seen_lines(&self, words: &str) -> Vec<&str> {
        self.seen.iter().map(String::as_str).filter(|line| line.contains(words)).collect()
    }

    /// Runs a command against this broker.
    pub fn run(&self, words: &[&str]) -> Run {
        self.feed(words, b"")
    }

    /// The same, with stdin.
    pub fn feed(&self, words: &[&str], stdin: &[u8]) -> Run {
        run(&[&["--url", &self.url], words].concat(), stdin)
    }

    /// A command against this broker, to be started by the test.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = overtake();
        command.args(["--url", &self.url]).args(words);
        command
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// How it ends, and what it said.
    pub fn end(mut self) -> (ExitStatus, String) {
        // Its stderr ends when it does.
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.seen.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(_) => panic!("it does not end:\n{}", self.seen.join("\n")),
            }
        }
        (self.child.wait().expect("it ends"), std::mem::take(&mut self.seen).join("\n"))
    }

    /// SIGTERM; it must end well.
    #[track_caller]
    pub fn stop(self) {
        self.signal(Signal::TERM);
        let (status, said) = self.end();
        assert_eq!(status.code(), Some(0), "{said}");
    }

    /// SIGKILL: nothing is flushed, nothing is said.
    pub fn kill(self) {
        self.signal(Signal::KILL);
        self.end();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // A test that failed leaves no broker behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
