//! Servers of others, as Debian has them, each on a free port and in a directory of its own.

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A server that runs until it is killed or this is dropped.
pub(crate) struct Server {
    program: &'static str,
    args: Vec<String>,
    /// What it says when it answers.
    ready: &'static str,
    child: Option<Child>,
    dir: TempDir,
    pub(crate) port: u16,
}

impl Server {
    /// Redis, which writes down what it has before it answers; `None` where it is not installed.
    pub(crate) fn redis(more: &[&str]) -> Option<Self> {
        if !is_there("redis-server") {
            return None;
        }
        let mut server = Self::new("redis-server", "Ready to accept connections");
        let (port, dir) = (server.port.to_string(), server.dir().to_str().expect("text").to_owned());
        let words = ["--port", &port, "--bind", "127.0.0.1", "--dir", &dir, "--save", ""];
        let durable = ["--appendonly", "yes", "--appendfsync", "always"];
        server.args = [&words[..], &durable, more].concat().into_iter().map(str::to_owned).collect();
        server.start();
        Some(server)
    }

    fn new(program: &'static str, ready: &'static str) -> Self {
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = free.local_addr().expect("bound").port();
        let dir = tempfile::tempdir().expect("a directory");
        Self { program, args: Vec::new(), ready, child: None, dir, port }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Until it answers.
    pub(crate) fn start(&mut self) {
        let mut command = Command::new(self.program);
        command.args(&self.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(self.ready)), "{} does not start", self.program);
        // What else it says must go somewhere, or it would wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        self.child = Some(child);
    }

    /// At once, and without a word.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("killed");
            child.wait().expect("ended");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In CI it must be.
fn is_there(program: &str) -> bool {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).chain(["/usr/sbin".into()]).any(|dir| dir.join(program).is_file())
    });
    assert!(found || std::env::var_os("CI").is_none(), "{program} must be there in CI");
    if !found {
        println!("skipped: {program} is not there; on Debian: apt-get install redis-server mosquitto");
    }
    found
}
