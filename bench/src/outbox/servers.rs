//! The processes of the story, each in a directory of its own and gone with this program: PostgreSQL as Debian has it, with its own settings; Redis; a broker; a relay.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::amqp::peer::process::{Process, overtake};
use overtake_free_port::free_port;

/// The variable in which the relay finds the password of the broker.
pub(super) const PASSWORD: &str = "STORY_PASSWORD";

/// Where the relay sends rows, and the handler takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Broker,
    Redis,
}

impl To {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Broker => "overtake",
            Self::Redis => "redis",
        }
    }
}

pub(super) struct Postgres {
    _process: Process,
    dir: TempDir,
}

impl Postgres {
    pub(super) fn start() -> Result<Self> {
        let versions =
            fs::read_dir("/usr/lib/postgresql").context("not installed: apt-get install postgresql")?;
        let newest = versions.filter_map(Result::ok).map(|version| version.path()).max();
        let bin = newest.context("PostgreSQL has no version")?.join("bin");
        let dir = tempfile::tempdir()?;
        // The server runs as somebody else where we are root.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777))?;
        let data = dir.path().join("data").display().to_string();
        let initdb = bin.join("initdb").display().to_string();
        let words = as_user(&[
            &initdb,
            "-D",
            &data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ]);
        let made = Command::new(&words[0]).args(&words[1..]).current_dir(dir.path()).output()?;
        if !made.status.success() {
            bail!("initdb: {}", String::from_utf8_lossy(&made.stderr));
        }
        let (postgres, socket) =
            (bin.join("postgres").display().to_string(), dir.path().display().to_string());
        let words = as_user(&[&postgres, "-D", &data, "-k", &socket, "-h", "", "-c", "max_wal_size=4GB"]);
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let mut process = Process::start(Path::new(&words[0]), &args, &[], dir.path().join("log"))?;
        let is_there = dir.path().join(".s.PGSQL.5432");
        process.wait_for(|| std::os::unix::net::UnixStream::connect(&is_there).ok())?;
        Ok(Self { _process: process, dir })
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://postgres@localhost/postgres?host={}", self.dir.path().display())
    }
}

/// Databases do not run as root.
fn as_user(words: &[&str]) -> Vec<String> {
    let before: &[&str] =
        if rustix::process::geteuid().is_root() { &["runuser", "-u", "postgres", "--"] } else { &[] };
    before.iter().chain(words).map(|word| (*word).to_owned()).collect()
}

/// A server of its own.
pub(super) struct Redis {
    process: Option<Process>,
    dir: TempDir,
    port: u16,
}

impl Redis {
    pub(super) fn start() -> Result<Self> {
        let mut redis = Self { process: None, dir: tempfile::tempdir()?, port: free_port() };
        redis.begin()?;
        Ok(redis)
    }

    /// As durable as the broker: each write is on the disk before it is answered.
    fn begin(&mut self) -> Result<()> {
        let (at, port) = (self.dir.path().display().to_string(), self.port.to_string());
        let place = ["--port", &port, "--bind", "127.0.0.1", "--dir", &at, "--save", ""];
        let args = [&place[..], &["--appendonly", "yes", "--appendfsync", "always"]].concat();
        let log = self.dir.path().join("log");
        let mut process = Process::start(Path::new("redis-server"), &args, &[], log.clone())
            .context("not installed: apt-get install redis-server")?;
        process.wait_for(|| {
            fs::read_to_string(&log).ok()?.contains("Ready to accept connections").then_some(())
        })?;
        self.process = Some(process);
        Ok(())
    }

    /// SIGKILL, and once more from its disk.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.process = None;
        self.begin()
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }
}

/// A broker that may be killed, and is back at the same ports.
pub(super) struct Broker {
    process: Option<Process>,
    dir: TempDir,
    lanes: bool,
    http: u16,
    amqp: u16,
}

impl Broker {
    pub(super) fn start(lanes: bool) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut broker = Self { process: None, dir, lanes, http: free_port(), amqp: free_port() };
        broker.begin()?;
        Ok(broker)
    }

    fn begin(&mut self) -> Result<()> {
        let path = |name: &str| self.dir.path().join(name).display().to_string();
        let (http, amqp) = (format!("127.0.0.1:{}", self.http), format!("127.0.0.1:{}", self.amqp));
        let (data, ports) = (path("data"), path("ports.json"));
        let _ = fs::remove_file(&ports);
        let lanes = format!("--priority-lanes={}", self.lanes);
        let args =
            ["serve", "--http", &http, "--amqp", &amqp, "--data-dir", &data, "--ports-file", &ports, &lanes];
        let mut process = Process::start(&overtake()?, &args, &[], self.dir.path().join("log"))?;
        process.wait_for(|| serde_json::from_str::<Value>(&fs::read_to_string(&ports).ok()?).ok())?;
        self.process = Some(process);
        Ok(())
    }

    /// SIGKILL, and once more from its disk.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.process = None;
        self.begin()
    }

    pub(super) fn amqp(&self) -> String {
        format!("amqp://guest@127.0.0.1:{}", self.amqp)
    }

    pub(super) fn http(&self) -> String {
        format!("http://127.0.0.1:{}", self.http)
    }
}

/// A relay that may be killed, and is there again.
pub(super) struct Relay {
    process: Option<Process>,
    dir: TempDir,
}

impl Relay {
    /// With this configuration but its database's table, which is made.
    pub(super) fn start(config: &str) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        fs::write(dir.path().join("relay.toml"), config)?;
        let mut relay = Self { process: None, dir };
        let made = Command::new(overtake()?)
            .args(["relay", "init", "--config"])
            .arg(relay.config())
            .env(PASSWORD, "guest")
            .output()?;
        if !made.status.success() {
            bail!("relay init: {}", String::from_utf8_lossy(&made.stderr));
        }
        relay.begin()?;
        Ok(relay)
    }

    fn config(&self) -> String {
        self.dir.path().join("relay.toml").display().to_string()
    }

    fn begin(&mut self) -> Result<()> {
        let log = self.dir.path().join("log");
        let mut process = Process::start(
            &overtake()?,
            &["relay", "--config", &self.config()],
            &[(PASSWORD, "guest".to_owned())],
            log.clone(),
        )?;
        process.wait_for(|| fs::read_to_string(&log).ok()?.contains("ready").then_some(()))?;
        self.process = Some(process);
        Ok(())
    }

    /// SIGKILL, and another.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.process = None;
        self.begin()
    }

    /// Time on a processor so far, ns.
    pub(super) fn busy_ns(&self) -> Result<u64> {
        self.process.as_ref().context("it runs")?.usage().busy_ns()
    }
}
