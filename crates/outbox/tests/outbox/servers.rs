//! Database servers, as Debian has them: one of each kind for all tests, on a socket in a directory of its own, gone when the tests are.

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use overtake_free_port::free_port;
use tempfile::TempDir;

/// Runs a program until nobody holds the other end of its standard input, whatever became of them; then takes its directory away.
const UNTIL_ALONE: &str = r#"dir=$1; signal=$2; shift 2; exec 3<&0; "$@" </dev/null >&2 & cat <&3 >/dev/null; exec 2>/dev/null; kill -s $signal $!; wait $!; [ -e "$dir/stay" ] || rm -rf "$dir""#;

/// What PostgreSQL says when it answers.
const POSTGRES_READY: &str = "ready to accept connections";

/// A server that runs.
pub(crate) struct Server {
    dir: PathBuf,
    command: Vec<String>,
    ready: &'static str,
    child: Option<Child>,
}

impl Server {
    /// PostgreSQL, which keeps nothing through a crash of the machine; `None` where it is not installed.
    pub(crate) fn postgres() -> Option<Self> {
        let bin = newest("/usr/lib/postgresql").map(|version| version.join("bin"));
        let bin = bin.filter(|bin| bin.join("postgres").is_file());
        let bin = there(bin, "PostgreSQL", "postgresql")?;
        let dir = directory("postgres");
        let data = text(&dir.join("data"));
        let program = |name: &str| text(&bin.join(name));
        let initdb =
            ["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8"];
        run_as("postgres", &[&[program("initdb").as_str()], &initdb[..]].concat());
        let socket = text(&dir);
        let words = [program("postgres"), "-D".into(), data, "-k".into(), socket, "-h".into(), String::new()];
        let settings = ["-c", "fsync=off", "-c", "max_connections=400", "-c", "max_wal_size=4GB"];
        let words = words.into_iter().chain(settings.map(str::to_owned));
        let command = as_user("postgres", words.collect());
        Some(Self { dir, command, ready: POSTGRES_READY, child: None }.started())
    }

    /// MariaDB; `None` where it is not installed.
    pub(crate) fn mariadb() -> Option<Self> {
        let program = Some(PathBuf::from("/usr/sbin/mariadbd")).filter(|program| program.is_file());
        let program = there(program, "MariaDB", "mariadb-server")?;
        let dir = directory("mysql");
        let data = text(&dir.join("data"));
        // Else one that starts takes away what others have in the directory that all share.
        let tmpdir = format!("TMPDIR={}", text(&dir));
        let install = [
            "env",
            &tmpdir,
            "mariadb-install-db",
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            &format!("--datadir={data}"),
        ];
        run_as("mysql", &install);
        let words = [
            text(&program),
            "--no-defaults".into(),
            format!("--datadir={data}"),
            format!("--socket={}", text(&dir.join("s"))),
            format!("--tmpdir={}", text(&dir)),
            "--skip-networking".into(),
            "--innodb-flush-log-at-trx-commit=0".into(),
            "--innodb-buffer-pool-size=512M".into(),
        ];
        let command = as_user("mysql", words.into());
        Some(Self { dir, command, ready: "ready for connections", child: None }.started())
    }

    /// Redis on a free port, and that; `None` where it is not installed.
    pub(crate) fn redis() -> Option<(Self, u16)> {
        let program = Some(PathBuf::from("/usr/bin/redis-server")).filter(|program| program.is_file());
        let program = there(program, "Redis", "redis-server")?;
        let port = free_port();
        let dir = tempfile::Builder::new().prefix("outbox-").tempdir().expect("a directory").keep();
        let words = [
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "yes",
            "--dir",
        ];
        let words = [text(&program)].into_iter().chain(words.map(str::to_owned)).chain([text(&dir)]);
        let command = words.collect();
        Some((Self { dir, command, ready: "Ready to accept connections", child: None }.started(), port))
    }

    /// Where it is, with this database.
    pub(crate) fn url(&self, database: &str) -> String {
        let dir = self.dir.display();
        match self.ready {
            POSTGRES_READY => format!("postgres://postgres@localhost/{database}?host={dir}"),
            _ => format!("mysql://root@localhost/{database}?socket={dir}/s"),
        }
    }

    /// At once. PostgreSQL wants to take its processes along.
    fn signal(&self) -> &'static str {
        if self.ready == POSTGRES_READY { "QUIT" } else { "KILL" }
    }

    fn started(mut self) -> Self {
        self.start();
        self
    }

    /// Until it answers.
    pub(crate) fn start(&mut self) {
        let dir = text(&self.dir);
        let mut command = Command::new("sh");
        command.args(["-c", UNTIL_ALONE, "sh", &dir, self.signal()]).args(&self.command);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let said = BufReader::new(child.stderr.take().expect("piped"));
        let mut lines = said.lines().map_while(Result::ok);
        let mut heard = Vec::new();
        let is_ready = lines.by_ref().any(|line| {
            let is_it = line.contains(self.ready);
            heard.push(line);
            is_it
        });
        assert!(is_ready, "it does not start: {}", heard.join("\n"));
        // What else it says must go somewhere, or it would wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        self.child = Some(child);
    }

    /// As after a crash of it.
    pub(crate) fn restart(&mut self) {
        let stay = self.dir.join("stay");
        std::fs::write(&stay, "").expect("a file");
        self.end();
        std::fs::remove_file(stay).expect("it was there");
        self.start();
    }

    /// Ends it and what is in it.
    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            child.wait().expect("ended");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// The one that all tests share, which is never dropped.
pub(crate) fn shared_postgres() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(Server::postgres).as_ref()
}

/// As [`shared_postgres`].
pub(crate) fn shared_mariadb() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(Server::mariadb).as_ref()
}

/// In CI it must be.
fn there(found: Option<PathBuf>, what: &str, package: &str) -> Option<PathBuf> {
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "{what} must be there in CI");
    if found.is_none() {
        println!("skipped: {what} is not there; on Debian: apt-get install {package}");
    }
    found
}

fn newest(versions: &str) -> Option<PathBuf> {
    let found = std::fs::read_dir(versions).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    found.max_by_key(|path| path.file_name()?.to_str()?.parse::<u32>().ok())
}

/// One that goes with the server, and that its user may use: neither server runs as root.
fn directory(user: &str) -> PathBuf {
    let dir: TempDir = tempfile::Builder::new().prefix("outbox-").tempdir().expect("a directory");
    let dir = dir.keep();
    if is_root() {
        let done = Command::new("chown").arg(user).arg(&dir).status().expect("it runs");
        assert!(done.success(), "there is a user {user}");
    }
    dir
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("it runs");
    id.stdout.starts_with(b"0\n")
}

/// In the place of whoever asks, so that what is killed is the server.
fn as_user(user: &str, words: Vec<String>) -> Vec<String> {
    if !is_root() {
        return words;
    }
    let as_user = ["setpriv", &format!("--reuid={user}"), &format!("--regid={user}"), "--init-groups", "--"];
    as_user.into_iter().map(str::to_owned).chain(words).collect()
}

fn run_as(user: &str, words: &[&str]) {
    let words = as_user(user, words.iter().map(|word| (*word).to_owned()).collect());
    let done = Command::new(&words[0]).args(&words[1..]).current_dir("/tmp").output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {said}", words.join(" "));
}

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}
