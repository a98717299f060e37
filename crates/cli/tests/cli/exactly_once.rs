//! From one broker to another each message once: over a link on which answers are lost, with a consumer there that leaves nothing behind, while
//! either broker is killed, and a store is put back from a copy.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::http::ask;
use crate::support::link::Link;
use crate::support::{Broker, PATIENCE, run};

/// The link is quick.
const BYTES_PER_SECOND: u32 = 100_000_000;
/// From this number on messages are urgent.
const URGENT_FROM: usize = 100;
/// An endpoint sends so many without an answer.
const IN_DOUBT: usize = 16;

struct Two {
    dir: TempDir,
    edge: Broker,
    cloud: Broker,
    link: Link,
    /// What the consumer there got.
    got: Vec<String>,
}

impl Two {
    fn new() -> Self {
        Self::of(&json!({}))
    }

    /// Two brokers whose queues have these settings.
    fn of(settings: &Value) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let cloud = Broker::start(&dir.path().join("cloud"));
        ask(&cloud.url, "PUT", "/v1/queues/in", settings).expect(201);
        let link = Link::to(&cloud.amqp, BYTES_PER_SECOND);
        let edge = Broker::start(&dir.path().join("edge"));
        ask(&edge.url, "PUT", "/v1/queues/out", settings).expect(201);
        let this = Self { dir, edge, cloud, link, got: Vec::new() };
        this.put_endpoint();
        this
    }

    fn put_endpoint(&self) {
        let amqp = json!({"url": format!("amqp://{}", self.link.address), "routing_key": "in"});
        let quick = json!({"initial_ms": 20, "multiplier": 1, "max_ms": 20});
        let send = json!({"reconnect": quick, "connect_ms": 60_000, "batch": 64});
        let endpoint = json!({"queue": "out", "to": {"amqp": amqp}, "send": send});
        ask(&self.edge.url, "PUT", "/v1/endpoints/cloud", &endpoint).expect(201);
    }

    fn publish(&self, bodies: std::ops::Range<usize>) {
        let one = |body| json!({"body": format!("{body}"), "priority": u8::from(body >= URGENT_FROM) * 9});
        let messages: Vec<Value> = bodies.map(one).collect();
        ask(&self.edge.url, "POST", "/v1/queues/out/messages", &json!({"messages": messages})).expect(201);
    }

    /// Takes and acknowledges there until so many have come in all.
    fn consume(&mut self, count: usize) {
        let until = std::time::Instant::now() + 2 * PATIENCE;
        while self.got.len() < count {
            assert!(std::time::Instant::now() < until, "{count} come: {:?}", self.got);
            self.take(5_000);
        }
    }

    fn take(&mut self, wait_ms: u64) -> usize {
        let request = json!({"max": 100, "wait_ms": wait_ms});
        let leased = ask(&self.cloud.url, "POST", "/v1/queues/in/leases", &request).expect(200);
        let messages = leased["messages"].as_array().expect("messages");
        let receipts: Vec<&Value> = messages.iter().map(|message| &message["receipt"]).collect();
        self.got.extend(messages.iter().map(|message| message["body"].as_str().expect("text").to_owned()));
        if !receipts.is_empty() {
            let settle = json!({"receipts": receipts, "how": "ack"});
            ask(&self.cloud.url, "POST", "/v1/queues/in/settle", &settle).expect(200);
        }
        messages.len()
    }

    fn left(&self) -> u64 {
        let queue = ask(&self.edge.url, "GET", "/v1/queues/out", &Value::Null).expect(200);
        let lanes = queue["lanes"].as_array().expect("lanes").clone();
        ["ready", "leased", "delayed", "dead"].into_iter().map(|key| sum(&lanes, key)).sum()
    }

    /// Waits until nothing is left here, takes what came, and answers each message of which there is not exactly one.
    fn wrong(&mut self, count: usize) -> Vec<String> {
        let until = std::time::Instant::now() + 2 * PATIENCE;
        while self.left() > 0 {
            assert!(std::time::Instant::now() < until, "all is sent: {} left", self.left());
            self.take(10);
        }
        while self.take(0) > 0 {}
        let times = |body: &usize| self.got.iter().filter(|got| **got == body.to_string()).count();
        let wrong = (0..count).filter(|body| times(body) != 1);
        wrong.map(|body| format!("{body}: {} times", times(&body))).collect()
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }
}

fn sum(lanes: &[Value], key: &str) -> u64 {
    lanes.iter().filter_map(|lane| lane[key].as_u64()).sum()
}

/// What the process at the other end never heard of was taken there, and is gone there, too.
#[test]
fn what_was_in_doubt_and_consumed_meanwhile_does_not_come_twice() {
    let mut two = Two::new();
    two.publish(0..10);
    two.consume(10);
    two.link.deafen();
    two.publish(10..100);
    // They came, and no confirm went back.
    two.consume(10 + IN_DOUBT);
    let Two { dir, edge, cloud, link, got } = two;
    edge.kill();
    link.cut();
    cloud.kill();
    let cloud = Broker::start(&dir.path().join("cloud"));
    link.leads_to(&cloud.amqp);
    let edge = Broker::start(&dir.path().join("edge"));
    let mut two = Two { dir, edge, cloud, link, got };
    two.link.mend();
    two.publish(100..120);
    assert_eq!(two.wrong(120), Vec::<String>::new());
}

/// A priority is as urgent there as it was here, though the schemes of the two queues count in opposite directions.
#[test]
fn what_is_urgent_here_is_as_urgent_there() {
    let mut two = Two::of(&json!({"scheme": "route"}));
    ask(&two.cloud.url, "PUT", "/v1/queues/ten", &json!({"scheme": "ten-level"})).expect(201);
    ask(&two.cloud.url, "PUT", "/v1/exchanges/in", &json!({"kind": "fanout"})).expect(200);
    for queue in ["in", "ten"] {
        ask(&two.cloud.url, "POST", "/v1/exchanges/in/bindings", &json!({"queue": queue})).expect(201);
    }
    let amqp = json!({"url": format!("amqp://{}", two.link.address), "exchange": "in"});
    let endpoint = json!({"queue": "out", "to": {"amqp": amqp}});
    ask(&two.edge.url, "PUT", "/v1/endpoints/cloud", &endpoint).expect(200);
    let message = |body: &str, priority: Value| json!({"body": body, "priority": priority});
    let messages = [
        message("p9", 9.into()),
        message("none", Value::Null),
        message("p0", 0.into()),
        message("p5", 5.into()),
    ];
    ask(&two.edge.url, "POST", "/v1/queues/out/messages", &json!({"messages": messages})).expect(201);
    two.consume(4);
    assert_eq!(two.got, ["p0", "p5", "p9", "none"]);
    let there =
        ask(&two.cloud.url, "GET", "/v1/queues/ten/messages?order=dispatch", &Value::Null).expect(200);
    let said =
        |message: &Value| format!("{} {}", message["body"].as_str().expect("text"), message["priority"]);
    let all: Vec<String> = there["messages"].as_array().expect("messages").iter().map(said).collect();
    assert_eq!(all, ["p0 9", "p5 4", "p9 0", "none 0"]);
}

/// The numbers of what was published after the copy was made are given once more, to other messages.
#[test]
fn a_store_that_is_put_back_from_a_copy_loses_nothing() {
    let mut two = Two::new();
    two.publish(0..10);
    two.consume(10);
    let (copy, back) = (two.at("copy"), two.at("back"));
    two.edge.run(&["store", "snapshot", path(&copy)]).ok();
    two.publish(10..30);
    two.consume(30);
    let Two { dir, edge, cloud, link, got } = two;
    edge.kill();
    run(&["store", "restore", path(&copy), path(&back)], b"").ok();
    let edge = Broker::start(&back);
    let mut two = Two { dir, edge, cloud, link, got };
    two.publish(30..60);
    assert_eq!(two.wrong(60), Vec::<String>::new());
}

/// Nor are the messages of a queue that is made anew those of the old one.
#[test]
fn a_queue_that_is_made_anew_loses_nothing() {
    let mut two = Two::new();
    two.publish(0..10);
    two.consume(10);
    two.edge.run(&["queue", "delete", "out", "--yes"]).ok();
    ask(&two.edge.url, "PUT", "/v1/queues/out", &json!({})).expect(201);
    two.publish(10..40);
    assert_eq!(two.wrong(40), Vec::<String>::new());
}

/// Names and numbers below 0, for which AMQP has no room.
#[test]
fn how_urgent_a_message_is_goes_along() {
    for (settings, priorities) in [
        (json!({"scheme": "named"}), [json!("critical"), json!("high"), json!("low")]),
        (json!({"scheme": "signed"}), [json!(1_000), json!(3), json!(-7)]),
    ] {
        let two = Two::of(&settings);
        let one = |priority| json!({"body": "x", "priority": priority});
        let messages: Vec<Value> = priorities.iter().rev().map(one).collect();
        ask(&two.edge.url, "POST", "/v1/queues/out/messages", &json!({"messages": messages})).expect(201);
        let until = std::time::Instant::now() + 2 * PATIENCE;
        let there = || ask(&two.cloud.url, "GET", "/v1/queues/in/messages", &Value::Null).expect(200);
        while there()["messages"].as_array().is_none_or(|messages| messages.len() < 3) {
            assert!(std::time::Instant::now() < until, "three come: {}", there());
        }
        let came = there()["messages"].as_array().expect("a page").clone();
        let came: Vec<&Value> = came.iter().map(|message| &message["priority"]).collect();
        assert_eq!(came, priorities.iter().collect::<Vec<_>>());
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("text")
}
