//! One server of Redis or Valkey on a free port, in a directory of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use overtake_free_port::free_port;
use tempfile::TempDir;

/// A server that is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Redis,
    Valkey,
}

impl Program {
    /// Those that are there. In CI all must be.
    pub(crate) fn all() -> Vec<Self> {
        let (there, missing): (Vec<_>, Vec<_>) =
            [Self::Redis, Self::Valkey].into_iter().partition(|program| is_in_path(program.server()));
        for program in &missing {
            println!(
                "skipped on {program:?}: {} is not there; on Debian: {}",
                program.server(),
                program.how()
            );
        }
        let is_fine = missing.is_empty() || std::env::var_os("CI").is_none();
        assert!(is_fine, "redis-server and valkey-server must be there in CI");
        there
    }

    fn server(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
        }
    }

    fn how(self) -> &'static str {
        match self {
            Self::Redis => "apt-get install redis-server",
            Self::Valkey => "apt-get install valkey-server, on Debian 12 from bookworm-backports",
        }
    }
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Runs until it is killed or this is dropped.
pub(crate) struct Server {
    program: Program,
    args: Vec<String>,
    child: Option<Child>,
    dir: TempDir,
    pub(crate) port: u16,
    /// Where nodes of a cluster speak among themselves.
    pub(crate) bus: u16,
    /// Free for TLS, if it is told to.
    pub(crate) tls: u16,
}

impl Server {
    /// One that answers, with words in its command line that may depend on its directory; `{dir}`, `{port}`, `{bus}` and `{tls}` in them are its own.
    pub(crate) fn start_with(program: Program, more: impl Fn(&Path) -> Vec<String>) -> Self {
        let [port, bus, tls] = [free_port(), free_port(), free_port()];
        let dir = tempfile::tempdir().expect("a directory");
        let more = more(dir.path());
        let mut server = Self { program, args: Vec::new(), child: None, dir, port, bus, tls };
        server.args = server.own_words().into_iter().chain(more).collect();
        server.args = server.args.iter().map(|word| server.filled_in(word)).collect();
        server.start();
        server
    }

    fn own_words(&self) -> Vec<String> {
        let words = "--port {port} --bind 127.0.0.1 --dir {dir} --save --appendonly yes --appendfsync everysec \
                     --cluster-port {bus} --repl-diskless-sync-delay 0 --repl-ping-replica-period 1 --enable-debug-command yes";
        let words = words.split_whitespace().map(str::to_owned);
        words.flat_map(|word| if word == "--save" { vec![word, String::new()] } else { vec![word] }).collect()
    }

    fn filled_in(&self, word: &str) -> String {
        let dir = self.dir.path().to_str().expect("text");
        let word = word.replace("{port}", &self.port.to_string()).replace("{bus}", &self.bus.to_string());
        word.replace("{tls}", &self.tls.to_string()).replace("{dir}", dir)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Until it answers; what it had is there again.
    pub(crate) fn start(&mut self) {
        let mut command = Command::new(self.program.server());
        command.args(&self.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let is_ready = lines.by_ref().any(|line| {
            let is_it = line.contains("Ready to accept connections");
            said.push(line);
            is_it
        });
        assert!(is_ready, "{} does not start: {}", self.program.server(), said.join("\n"));
        // What else it says must go somewhere, or it would wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        self.child = Some(child);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// At once, and without a word.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("killed");
            child.wait().expect("ended");
        }
    }

    /// It does nothing, and what it has open stays open, until it is told to go on.
    pub(crate) fn pause(&self) {
        self.signal("STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("it runs").id();
        let asked = Command::new("kill").args([format!("-{name}"), id.to_string()]).status();
        assert!(asked.expect("kill runs").success(), "it is told");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
