//! Servers of others, as Debian has them, each on a free port and in a directory of its own.

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use overtake_free_port::free_port;
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
        Self::redis_with(|_| more.iter().map(|word| (*word).to_owned()).collect())
    }

    /// As [`Server::redis`], with what depends on its port and directory.
    pub(crate) fn redis_with(more: impl FnOnce(&Self) -> Vec<String>) -> Option<Self> {
        if !is_there("redis-server") {
            return None;
        }
        let mut server = Self::new("redis-server", "Ready to accept connections");
        let (port, dir) = (server.port.to_string(), server.dir().to_str().expect("text").to_owned());
        let words = ["--port", &port, "--bind", "127.0.0.1", "--dir", &dir, "--save", ""];
        let durable = ["--appendonly", "yes", "--appendfsync", "always"];
        server.args = words.into_iter().chain(durable).map(str::to_owned).collect();
        let more = more(&server);
        server.args.extend(more);
        server.start();
        Some(server)
    }

    /// Mosquitto, with these lines in its configuration; `None` where it is not installed.
    pub(crate) fn mosquitto(lines: &str) -> Option<Self> {
        Self::mosquitto_with(|_| lines.to_owned())
    }

    /// As [`Server::mosquitto`], with what depends on its directory.
    pub(crate) fn mosquitto_with(lines: impl FnOnce(&Self) -> String) -> Option<Self> {
        if !is_there("mosquitto") {
            return None;
        }
        let server = Self::new("mosquitto", " running");
        let lines = lines(&server);
        Some(server.configured(&lines))
    }

    fn configured(mut self, lines: &str) -> Self {
        let (port, dir) = (self.port, self.dir().display());
        let listener = format!("listener {port} 127.0.0.1\nlog_dest stderr\nuser root\n");
        let all = format!("{listener}persistence_location {dir}/\n{lines}\n");
        let config = self.dir().join("mosquitto.conf");
        std::fs::write(&config, all).expect("a file");
        self.args = ["-c", config.to_str().expect("text")].map(str::to_owned).into();
        self.start();
        self
    }

    fn new(program: &'static str, ready: &'static str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self { program, args: Vec::new(), ready, child: None, dir, port: free_port() }
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Until it answers.
    pub(crate) fn start(&mut self) {
        let mut command = Command::new(self.program);
        // Debian has Mosquitto where only root looks for programs.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin"));
        command.args(&self.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let [out, err] = both(&mut child);
        // Mosquitto's stdout is late: it has a buffer of its own.
        let (said, other) = if self.program == "mosquitto" { (err, out) } else { (out, err) };
        std::thread::spawn(move || BufReader::new(other).lines().map_while(Result::ok).for_each(drop));
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        let mut heard = Vec::new();
        let is_ready = lines.by_ref().any(|line| {
            let is_it = line.contains(self.ready);
            heard.push(line);
            is_it
        });
        assert!(is_ready, "{} does not start: {}", self.program, heard.join("\n"));
        // What else it says must go somewhere, or it would wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        self.child = Some(child);
    }

    /// As whoever looks after it stops it: it writes down what it has.
    #[allow(dead_code, reason = "the tests outside of the crate do without")]
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let asked = Command::new("sh").args(["-c", &format!("kill {}", child.id())]).status();
            assert!(asked.expect("it runs").success(), "it is asked to end");
            child.wait().expect("ended");
        }
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

fn both(child: &mut Child) -> [Box<dyn Read + Send>; 2] {
    let (out, err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    [Box::new(out), Box::new(err)]
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
