//! A Redis on a free port, in a directory of its own; and what tests say to it.

#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use overtake_peer::redis::Wire;
use overtake_streams::{DeadLetters, Entry, Lanes, RedisServer, Retry, SubscribeOptions, Subscriber};
use redis::{Value, cmd};
use tempfile::TempDir;

/// Longer than any test may take: what waits for so long must be woken.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

pub(crate) struct World {
    child: Option<Child>,
    dir: TempDir,
    pub(crate) port: u16,
    pub(crate) server: RedisServer,
}

impl World {
    /// `None` where there is no Redis.
    pub(crate) fn new() -> Option<Self> {
        if !is_there() {
            return None;
        }
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let url = format!("redis://127.0.0.1:{port}");
        let server = overtake_streams::server(&url).expect("a server");
        let mut world = Self { child: None, dir: tempfile::tempdir().expect("a directory"), port, server };
        world.start();
        Some(world)
    }

    /// Until it answers; what it had is there again.
    pub(crate) fn start(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(self.dir.path());
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("redis-server runs");
        let said = BufReader::new(child.stdout.take().expect("piped"));
        let mut lines = said.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("Ready to accept connections")), "it does not start");
        // What else it says must go somewhere, or it would wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        self.child = Some(child);
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("killed");
            child.wait().expect("ended");
        }
    }

    pub(crate) async fn wire(&self) -> Wire {
        self.server.connect().await.expect("a connection")
    }

    /// What the server answers to a line.
    pub(crate) async fn ask(&self, line: &str) -> Value {
        let mut words = line.split(' ');
        let mut command = cmd(words.next().expect("a word"));
        command.arg(words.collect::<Vec<_>>());
        self.wire().await.ask(&command).await.expect("there").expect("done")
    }

    pub(crate) async fn number(&self, line: &str) -> i64 {
        match self.ask(line).await {
            Value::Int(number) => number,
            other => panic!("{other:?}"),
        }
    }

    /// Adds entries about these, one after another.
    pub(crate) async fn add(&self, stream: &str, all: &[&str]) {
        for what in all {
            self.add_text(stream, &text(what)).await;
        }
    }

    pub(crate) async fn add_text(&self, stream: &str, text: &str) {
        let mut add = cmd("XADD");
        add.arg(stream).arg("*").arg("data").arg(text);
        self.wire().await.ask(&add).await.expect("there").expect("added");
    }

    pub(crate) async fn subscribe(&self, options: SubscribeOptions) -> Subscriber {
        Subscriber::connect(&self.server, options).await.expect("a subscriber")
    }

    pub(crate) fn dead_letters(&self) -> DeadLetters {
        DeadLetters::new(&self.server, "customer", Lanes::enabled()).expect("dead letters")
    }

    /// Ids are made of the server's time.
    pub(crate) async fn until_the_next_ms(&self) {
        let mut wire = self.wire().await;
        let mut now = async || wire.ask(&cmd("TIME")).await.expect("there").map(ms).expect("told");
        let first = now().await;
        while now().await == first {}
    }

    /// Waits until a stream has its first entry.
    pub(crate) async fn until_there_is_one_in(&self, stream: &str) {
        self.ask(&format!("XREAD BLOCK 0 STREAMS {stream} 0")).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Seconds and microseconds, up to the milliseconds.
fn ms(time: Value) -> String {
    let Value::Array(parts) = time else { panic!("{time:?}") };
    let [Value::BulkString(s), Value::BulkString(us)] = &parts[..] else { panic!("{parts:?}") };
    let us: u32 = String::from_utf8_lossy(us).parse().expect("a number");
    format!("{}.{}", String::from_utf8_lossy(s), us / 1_000)
}

pub(crate) fn text(what: &str) -> String {
    format!(r#"{{"data":"{what}","metadata":{{"headers":{{"type":"T"}}}}}}"#)
}

/// Both lanes; waits that a test would never see the end of, and short ones after failures.
pub(crate) fn options(consumer: &str) -> SubscribeOptions {
    SubscribeOptions {
        lanes: Lanes::enabled(),
        consumer: consumer.to_owned(),
        block: LONG,
        claim_idle: LONG,
        retry: Retry { initial: Duration::from_millis(5), ..Retry::default() },
        ..SubscribeOptions::new("customer", "mails")
    }
}

pub(crate) async fn next(subscriber: &Subscriber) -> Entry {
    subscriber.next().await.expect("an entry")
}

/// Takes so many, one after another, and says what they are about.
pub(crate) async fn drain(subscriber: &Subscriber, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..count {
        let entry = next(subscriber).await;
        all.push(entry.data().expect("text"));
        assert!(subscriber.ack(&entry).await.expect("heard"), "it was ours");
    }
    all
}

/// In CI it must be.
fn is_there() -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join("redis-server").is_file()));
    assert!(found || std::env::var_os("CI").is_none(), "redis-server must be there in CI");
    if !found {
        println!("skipped: redis-server is not there; on Debian: apt-get install redis-server");
    }
    found
}
