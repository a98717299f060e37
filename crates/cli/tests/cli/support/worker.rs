//! A worker that runs while a test goes on, and what it says.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fifo::Fifo;
use super::http::ask;
use super::{Broker, PATIENCE, Run};

/// Lines that may wait to be read.
const LINES_MAX: usize = 100_000;

/// `overtake work`.
pub struct Worker {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

/// What comes line by line, and what was seen of it.
struct Lines {
    coming: Receiver<String>,
    seen: Vec<String>,
}

impl Worker {
    /// Starts it.
    pub fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let stdout = Lines::of(child.stdout.take().expect("piped"));
        let stderr = Lines::of(child.stderr.take().expect("piped"));
        Self { child, stdout, stderr }
    }

    /// Waits for a line of standard output with these words in it.
    #[track_caller]
    pub fn await_line(&mut self, words: &str) {
        self.stdout.find(words);
    }

    /// Waits for a line of standard error with these words in it.
    #[track_caller]
    pub fn await_notice(&mut self, words: &str) {
        self.stderr.find(words);
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("it is ours").is_some()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Run {
        let (stdout, stderr) = (self.stdout.rest(), self.stderr.rest());
        let code = self.child.wait().expect("it ends").code().expect("not killed");
        Run { code, stdout, stderr }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A test that failed leaves no worker behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let (send, coming) = sync_channel(LINES_MAX);
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        std::thread::spawn(move || lines.into_iter().try_for_each(|line| send.send(line)));
        Self { coming, seen: Vec::new() }
    }

    #[track_caller]
    fn find(&mut self, words: &str) {
        while let Ok(line) = self.coming.recv_timeout(PATIENCE) {
            self.seen.push(line);
            if self.seen.last().is_some_and(|line| line.contains(words)) {
                return;
            }
        }
        panic!("no `{words}` in:\n{}", self.seen.join("\n"));
    }

    fn rest(&mut self) -> String {
        self.seen.extend(self.coming.iter());
        self.seen.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A broker with the queue `jobs`, and a directory for the programs.
pub struct Story {
    pub broker: Broker,
    pub dir: TempDir,
}

impl Story {
    /// As queues are made when nobody says how.
    pub fn begin() -> Self {
        Self::with(&json!({}))
    }

    /// With these settings of the queue.
    pub fn with(settings: &Value) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let broker = Broker::start(&dir.path().join("data"));
        ask(&broker.url, "PUT", "/v1/queues/jobs", settings).expect(201);
        Self { broker, dir }
    }

    /// Of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A named pipe in the directory.
    pub fn fifo(&self, name: &str) -> Fifo {
        Fifo::make(self.path(name))
    }

    /// Publishes messages.
    #[track_caller]
    pub fn publish(&self, messages: Value) {
        ask(&self.broker.url, "POST", "/v1/queues/jobs/messages", &json!({ "messages": messages }))
            .expect(201);
    }

    /// A worker with these options, and a script of the shell, which runs in the directory.
    pub fn work(&self, options: &[&str], script: &str) -> Worker {
        let words = [&["work", "jobs"], options, &["--", "sh", "-c", script]].concat();
        let mut command = self.broker.command(&words);
        command.current_dir(self.dir.path());
        Worker::start(command)
    }

    /// The same, until nothing is left; what it says of each message, in JSON.
    #[track_caller]
    pub fn work_off(&self, options: &[&str], script: &str) -> Vec<Value> {
        let lines = self.work(&[&["--until-empty", "--json"], options].concat(), script).end().ok();
        lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// The ids of what stands so in the queue, and how often each was leased.
    pub fn standing(&self, status: &str) -> Vec<String> {
        let path = format!("/v1/queues/jobs/messages?status={status}");
        let page = ask(&self.broker.url, "GET", &path, &Value::Null).expect(200);
        let messages = page["messages"].as_array().expect("messages").iter();
        messages
            .map(|message| format!("{} {}", message["id"].as_str().expect("id"), message["delivery_count"]))
            .collect()
    }
}

/// What is said of the ends of messages, in the order of their ids.
pub fn ends(lines: &[Value]) -> Vec<&Value> {
    let mut ends: Vec<_> = lines.iter().filter(|line| line["event"] == "ended").collect();
    ends.sort_by_key(|end| end["id"].to_string());
    ends
}

/// What is in a file.
pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}
