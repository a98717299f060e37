//! The story of the cameras: a hundred times as much telemetry as alerts, a link of 100 kB/s that is down for a while, and a broker that is killed
//! meanwhile.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::http::ask;
use crate::support::link::Link;
use crate::support::{Broker, PATIENCE};

const BYTES_PER_SECOND: u32 = 100_000;
/// Bytes of a message of telemetry.
const TELEMETRY: usize = 600;
/// How long telemetry lives that is of no use later.
const SHORT_S: u64 = 2;

/// What the design that routes come from deploys, with telemetry that is soon too old.
fn manifest() -> Value {
    let from = |output: &str| format!("FROM /messages/modules/SecCamMod/outputs/{output} INTO $upstream");
    json!({"routes": {
        "alerts": {"route": from("P0_Alerts"), "priority": 0, "timeToLiveSecs": 86_400},
        "data": {"route": from("P1_Data"), "priority": 1, "timeToLiveSecs": 1_800},
        "soon": {"route": from("P1_Soon"), "priority": 1, "timeToLiveSecs": SHORT_S},
    }})
}

/// A site with cameras, a cloud, and the link between them.
struct Site {
    dir: TempDir,
    edge: Broker,
    cloud: Broker,
    link: Link,
    published: u64,
    alerts: BTreeSet<u64>,
    data: BTreeSet<u64>,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let cloud = Broker::start(&dir.path().join("cloud"));
        ask(&cloud.url, "PUT", "/v1/queues/received", &json!({"order": "fifo"})).expect(201);
        let link = Link::to(&cloud.amqp, BYTES_PER_SECOND);
        let edge = Broker::start(&dir.path().join("edge"));
        ask(&edge.url, "PUT", "/v1/routes", &manifest()).expect(200);
        let amqp = json!({"url": format!("amqp://{}", link.address), "routing_key": "received"});
        let quick = json!({"initial_ms": 20, "multiplier": 1, "max_ms": 20});
        let endpoint = json!({"queue": "$upstream", "to": {"amqp": amqp}, "send": {"reconnect": quick}});
        ask(&edge.url, "PUT", "/v1/endpoints/cloud", &endpoint).expect(201);
        let (alerts, data) = (BTreeSet::new(), BTreeSet::new());
        Self { dir, edge, cloud, link, published: 0, alerts, data }
    }

    fn send(&mut self, output: &str, count: u64) -> Vec<u64> {
        let numbers: Vec<u64> = (self.published..self.published + count).collect();
        self.published += count;
        let len = if output == "P0_Alerts" { 80 } else { TELEMETRY };
        let message = |number: &u64| json!({"body": format!("{number:0len$}")});
        let messages: Vec<Value> = numbers.iter().map(message).collect();
        let path = format!("/v1/topics/%2Fmessages%2Fmodules%2FSecCamMod%2Foutputs%2F{output}");
        ask(&self.edge.url, "POST", &path, &json!({"messages": messages})).expect(201);
        numbers
    }

    /// A hundred of telemetry, and then an alert, as often.
    fn minute(&mut self, times: u64) {
        for _ in 0..times {
            let data = self.send("P1_Data", 100);
            self.data.extend(data);
            let alert = self.send("P0_Alerts", 1);
            self.alerts.extend(alert);
        }
    }

    fn lanes(&self) -> Vec<Value> {
        let queue = ask(&self.edge.url, "GET", "/v1/queues/%24upstream", &Value::Null).expect(200);
        queue["lanes"].as_array().expect("lanes").clone()
    }

    /// Waits until the lanes stand so.
    #[track_caller]
    fn until(&self, what: &str, is: impl Fn(&[Value]) -> bool) {
        let until = std::time::Instant::now() + 2 * PATIENCE;
        while !is(&self.lanes()) {
            assert!(std::time::Instant::now() < until, "{what}: {:?}", self.lanes());
        }
    }

    /// What has arrived, in order: the number of each message.
    fn arrived(&self) -> Vec<u64> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/queues/received/messages?order=published&limit=1000{cursor}");
            let page = ask(&self.cloud.url, "GET", &path, &Value::Null).expect(200);
            for message in page["messages"].as_array().expect("a page") {
                all.push(message["body"].as_str().expect("text").parse().expect("a number"));
            }
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return all,
            }
        }
    }
}

fn sum(lanes: &[Value], key: &str) -> u64 {
    lanes.iter().filter_map(|lane| lane[key].as_u64()).sum()
}

#[test]
fn every_alert_arrives_before_the_telemetry_that_waited_and_nothing_unexpired_is_lost() {
    let mut site = Site::new();
    site.minute(2);
    site.link.until_carried(30_000);
    site.link.cut();
    let before = site.arrived();
    site.minute(2);
    let soon: BTreeSet<u64> = site.send("P1_Soon", 50).into_iter().collect();
    let Site { dir, edge, cloud, link, published, alerts, data } = site;
    edge.kill();
    let edge = Broker::start(&dir.path().join("edge"));
    let mut site = Site { dir, edge, cloud, link, published, alerts, data };
    site.minute(2);
    site.until("what is too old is gone", |lanes| sum(lanes, "expired") == soon.len() as u64);
    let at_the_mend = site.arrived();
    assert!(at_the_mend.len() <= before.len() + 16, "nothing passes a link that is down");
    site.link.mend();
    site.until("all has been sent", |lanes| sum(lanes, "ready") + sum(lanes, "leased") == 0);
    let arrived = site.arrived();

    // What was in doubt when the link was cut carried its id, and an Overtake knows it while it waits there.
    let first: BTreeSet<u64> = arrived.iter().copied().collect();
    assert_eq!(arrived.len(), first.len(), "nothing came twice");
    assert_eq!(first, &site.alerts | &site.data, "all that had time arrived, and nothing else");
    for (kind, what) in [(&site.alerts, "alerts"), (&site.data, "telemetry")] {
        assert!(arrived.iter().filter(|number| kind.contains(number)).is_sorted(), "{what} come in order");
    }
    // What waited when the link came back: all alerts went first.
    let waited = &arrived[at_the_mend.len()..];
    let alerts = site.alerts.iter().filter(|number| !at_the_mend.contains(number)).count();
    assert!(alerts >= 4, "alerts were waiting");
    assert!(
        waited[..alerts].iter().all(|number| site.alerts.contains(number)),
        "{:?}",
        &waited[..alerts + 3]
    );
}
