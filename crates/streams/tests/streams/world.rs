//! A Redis on a free port, in a directory of its own; and what tests say to it.

use std::time::Duration;

use overtake_peer::redis::Wire;
use overtake_streams::{DeadLetters, Entry, Lanes, RedisServer, Retry, SubscribeOptions, Subscriber};
use redis::{Value, cmd};

use crate::servers::Server as Redis;

/// Longer than any test may take: what waits for so long must be woken.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

pub(crate) struct World {
    redis: Redis,
    pub(crate) port: u16,
    pub(crate) server: RedisServer,
}

impl World {
    /// `None` where there is no Redis.
    pub(crate) fn new() -> Option<Self> {
        let redis = Redis::redis(&[])?;
        let port = redis.port;
        let server = overtake_streams::server(&format!("redis://127.0.0.1:{port}")).expect("a server");
        Some(Self { redis, port, server })
    }

    /// Until it answers; what it had is there again.
    pub(crate) fn start(&mut self) {
        self.redis.start();
    }

    pub(crate) fn kill(&mut self) {
        self.redis.kill();
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
