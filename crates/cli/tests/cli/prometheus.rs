//! What is deployed beside a broker, against a real one with traffic: the dashboard, the alerts, Prometheus itself.

#![allow(clippy::print_stdout, reason = "it says why it is skipped")]

use std::collections::BTreeSet;
use std::net::TcpStream;

use overtake_amqp::method::{basic, channel};
use overtake_properties::TableRef;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::Broker;
use crate::support::amqp::{Client, text};
use crate::support::http;
use crate::support::prometheus::{Prometheus, deployed, is_there, promtool};
use crate::support::tls::connect;

/// A broker at which something of everything happened, and somebody who holds a message of it.
struct Shop {
    dir: TempDir,
    broker: Broker,
    _consumer: Client<TcpStream>,
}

impl Shop {
    fn open() -> Self {
        let dir = TempDir::new().expect("a directory");
        // Nobody listens there: pushes fail.
        let broker = Broker::start_with(&dir.path().join("data"), &["--otlp-endpoint", "http://127.0.0.1:1"]);
        let post = |path: &str, body: &Value| http::ask(&broker.url, "POST", path, body).expect(200);
        let named = json!({"scheme": "named", "lanes": {"critical": {"max_active": 1}}});
        http::ask(&broker.url, "PUT", "/v1/queues/jobs", &named).expect(201);
        for priority in ["critical", "critical", "critical", "low", "low"] {
            let message = json!({"body": "x", "priority": priority});
            http::ask(&broker.url, "POST", "/v1/queues/jobs/messages", &message).expect(201);
        }
        // A critical one, and both low ones past its lane's cap.
        let leased = post("/v1/queues/jobs/leases", &json!({"max": 3}));
        let receipt = |at: usize| leased["messages"][at]["receipt"].clone();
        post("/v1/queues/jobs/settle", &json!({"receipts": [receipt(0)], "how": "ack"}));
        post("/v1/queues/jobs/settle", &json!({"receipts": [receipt(1)], "how": "reject"}));
        let consumer = consume(&broker, "jobs");
        Self { dir, broker, _consumer: consumer }
    }

    /// Publishes to `work` and leases what was published, three times of each priority.
    fn work(&self) {
        for priority in ["high", "low"] {
            for _ in 0..3 {
                let message = json!({"body": "x", "priority": priority});
                http::ask(&self.broker.url, "POST", "/v1/queues/work/messages", &message).expect(201);
            }
        }
        http::ask(&self.broker.url, "POST", "/v1/queues/work/leases", &json!({"max": 6})).expect(200);
    }
}

/// Somebody with a window of one, who got a message and holds it.
fn consume(broker: &Broker, queue: &'static str) -> Client<TcpStream> {
    let mut client = Client::open(connect(&broker.amqp), "PLAIN", b"\0guest\0guest");
    client.say(1, channel::Open { out_of_band: text("") });
    client.hear();
    client.say(1, basic::Qos { prefetch_size: 0, prefetch_count: 1, global: false });
    client.hear();
    client.say(
        1,
        basic::Consume {
            ticket: 0,
            queue: text(queue),
            consumer_tag: text("here"),
            no_local: false,
            no_ack: false,
            exclusive: false,
            no_wait: false,
            arguments: TableRef::EMPTY,
        },
    );
    client.hear();
    let delivered = client.hear();
    assert!(delivered.starts_with("BasicDeliver"), "{delivered}");
    client
}

/// The names of all series of a scrape, and those of the families.
fn names(scrape: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let series = scrape.lines().filter(|line| !line.starts_with('#'));
    let name = |line: &str| line.split(['{', ' ']).next().expect("a name").to_owned();
    let families = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(name);
    (series.map(name).collect(), families.collect())
}

/// The metrics that a query or a text names.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
    let ours = words.filter(|word| ["overtake_", "queue_", "process_"].iter().any(|p| word.starts_with(p)));
    ours.map(str::to_owned).collect()
}

/// Every text under a key, however deep.
fn texts<'a>(value: &'a Value, keys: &[&str], found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                found.extend(value.as_str().filter(|_| keys.contains(&key.as_str())));
                texts(value, keys, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, keys, found)),
        _ => {}
    }
}

#[test]
fn dashboard_rules_and_documentation_name_what_is_there() {
    let shop = Shop::open();
    let all = http::text(&shop.broker.url, "/metrics");
    let each = http::text(&shop.broker.url, "/metrics/connections");
    let ((mut series, families), (of_each, families_of_each)) = (names(&all), names(&each));
    series.extend(of_each);

    let dashboard = std::fs::read_to_string(deployed("grafana/overtake.json")).expect("it is there");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let mut queries = Vec::new();
    texts(&dashboard, &["expr", "query", "definition"], &mut queries);
    assert!(queries.len() > 40, "{queries:?}");
    let docs = deployed("../docs");
    let documented = named(&std::fs::read_to_string(docs.join("metrics.md")).expect("it is there"));
    // A broker on servers has more; a test of those looks whether they are there.
    let of_servers = ["overtake_cluster_", "overtake_servers_"];
    let is_of_servers = |name: &&String| of_servers.iter().any(|prefix| name.starts_with(prefix));
    series.extend(documented.iter().filter(is_of_servers).cloned());
    let used: BTreeSet<_> = queries.iter().flat_map(|query| named(query)).collect();
    assert_eq!(used.difference(&series).collect::<Vec<_>>(), Vec::<&String>::new(), "in the dashboard");

    let rules = std::fs::read_to_string(deployed("prometheus/overtake.rules.yml")).expect("it is there");
    // A relay serves its own; docs/outbox.md says which.
    let (of_relay, used): (BTreeSet<_>, BTreeSet<_>) =
        named(&rules).into_iter().partition(|name| name.starts_with("overtake_relay_"));
    let of_relay_known = named(&std::fs::read_to_string(deployed("../docs/outbox.md")).expect("it is there"));
    assert_eq!(
        of_relay.difference(&of_relay_known).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "in the rules"
    );
    assert!(used.len() > 10, "{used:?}");
    assert_eq!(used.difference(&series).collect::<Vec<_>>(), Vec::<&String>::new(), "in the rules");

    for family in families.iter().chain(&families_of_each) {
        assert!(documented.contains(family), "docs/metrics.md does not say what {family} is");
    }
    let alerts = std::fs::read_to_string(docs.join("alerts.md")).expect("it is there");
    for line in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(
            alerts.contains(&format!("## {line}\n")),
            "docs/alerts.md does not say what to do about {line}"
        );
        let runbook = format!("runbook: docs/alerts.md#{}", line.to_lowercase());
        assert!(rules.contains(&runbook), "{line} has no {runbook}");
    }
}

#[test]
fn every_connection_and_consumer_can_be_seen_by_who_asks_for_it() {
    let shop = Shop::open();
    let all = http::text(&shop.broker.url, "/metrics");
    let says = |text: &str, series: &str, number: &str| {
        let line = text.lines().find(|line| {
            line.starts_with(series.split('{').next().expect("a name"))
                && series.split(['{', '}', ',']).skip(1).all(|label| line.contains(label))
        });
        assert!(line.is_some_and(|line| line.ends_with(number)), "{series} is {line:?}, not {number}");
    };
    says(&all, r#"overtake_connections{protocol="amqp",user="guest"}"#, " 1");
    says(&all, r#"overtake_unacknowledged_messages{protocol="amqp",user="guest"}"#, " 1");
    says(&all, r#"overtake_consumers{protocol="amqp",user="guest"}"#, " 1");
    says(&all, r#"overtake_lane_inversions_total{queue="jobs",lane="low"}"#, " 2");
    says(&all, r#"overtake_lane_dead_lettered_total{queue="jobs",lane="low"}"#, " 1");
    let each = http::text(&shop.broker.url, "/metrics/connections");
    says(&each, r#"overtake_consumer_delivered_total{consumer="here",queue="jobs"}"#, " 1");
    says(&each, r#"overtake_consumer_window_messages{consumer="here",queue="jobs"}"#, " 1");
    says(&each, r#"overtake_channel_unacknowledged_messages{channel="1"}"#, " 1");
    says(&each, r#"overtake_channel_acknowledged_total{channel="1"}"#, " 0");
    assert!(!all.contains("overtake_consumer_delivered_total"), "that is asked for apart");
}

/// The queries of the dashboard as rules, so that promtool reads them.
fn queries_as_rules() -> String {
    let dashboard = std::fs::read_to_string(deployed("grafana/overtake.json")).expect("it is there");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let mut queries = Vec::new();
    texts(&dashboard, &["expr"], &mut queries);
    let rule = |(at, query): (usize, &&str)| {
        let query = json!(query.replace("$__rate_interval", "5m"));
        format!("  - {{record: \"a:b\", expr: {query}, labels: {{at: \"{at}\"}}}}\n")
    };
    let rules: String = queries.iter().enumerate().map(rule).collect();
    format!("groups:\n- name: dashboard\n  rules:\n{rules}")
}

#[test]
fn promtool_finds_nothing_wrong() {
    if !is_there() {
        return println!("skipped: prometheus is not there; on Debian: apt-get install prometheus");
    }
    let shop = Shop::open();
    for path in ["/metrics", "/metrics/connections"] {
        let (is_fine, said) = promtool(&["check", "metrics"], &http::text(&shop.broker.url, path));
        assert!(is_fine && said.is_empty(), "{path}: {said}");
    }
    let dashboard = shop.dir.path().join("dashboard.yml");
    std::fs::write(&dashboard, queries_as_rules()).expect("a file");
    let dashboard = dashboard.to_str().expect("text");
    let file = |name: &str| deployed(&format!("prometheus/{name}")).to_str().expect("text").to_owned();
    for words in [
        &["check", "rules", dashboard][..],
        &["check", "rules", &file("overtake.rules.yml")],
        &["test", "rules", &file("overtake.rules.test.yml")],
        &["check", "config", "--syntax-only", &file("prometheus.yml")],
    ] {
        let (is_fine, said) = promtool(words, "");
        assert!(is_fine, "{words:?}: {said}");
    }
}

#[test]
fn prometheus_answers_what_an_execution_queue_is_asked() {
    if !is_there() {
        return println!("skipped: prometheus is not there; on Debian: apt-get install prometheus");
    }
    let shop = Shop::open();
    http::ask(&shop.broker.url, "PUT", "/v1/queues/work", &json!({"scheme": "named"})).expect(201);
    shop.work();
    let prometheus = Prometheus::start(shop.dir.path(), &shop.broker);
    let of_work = |found: &[(Value, f64)], priority: &str| {
        found
            .iter()
            .find(|(of, _)| of["queue"] == "work" && of["priority"] == priority)
            .map(|(_, number)| *number)
    };
    // What was there when it came; what happens from now on is a rate.
    prometheus.await_query("queue_schedule_total", |found| of_work(found, "low") == Some(3.0));
    shop.work();
    for priority in ["high", "normal"] {
        let message = json!({"body": "waits", "priority": priority});
        http::ask(&shop.broker.url, "POST", "/v1/queues/work/messages", &message).expect(201);
    }

    // The three queries as the documentation prints them.
    let docs = std::fs::read_to_string(deployed("../docs/metrics.md")).expect("it is there");
    let promql =
        docs.split_once("```promql\n").and_then(|(_, rest)| rest.split_once("```")).expect("queries").0;
    let queries: Vec<&str> =
        promql.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let [depth, throughput, p95] = queries[..] else { panic!("{queries:?}") };

    let found = prometheus.await_query(depth, |found| of_work(found, "normal") == Some(1.0));
    let depths = ["high", "normal", "low"].map(|priority| of_work(&found, priority));
    assert_eq!(depths, [Some(1.0), Some(1.0), Some(0.0)]);
    let found =
        prometheus.await_query(throughput, |found| of_work(found, "low").is_some_and(|rate| rate > 0.0));
    assert!(of_work(&found, "high").is_some_and(|rate| rate > 0.0), "{found:?}");
    let found = prometheus.await_query(p95, |found| of_work(found, "low").is_some_and(f64::is_finite));
    for priority in ["high", "low"] {
        let wait = of_work(&found, priority).expect("by priority");
        assert!(wait > 0.0 && wait <= longest(&shop.broker, priority), "p95 of {priority} is {wait}");
    }
    // By its token and by its password it came in.
    let found = prometheus.await_query("up", |found| found.len() == 2);
    assert!(found.iter().all(|(_, up)| *up == 1.0), "{found:?}");
    prometheus.await_query("overtake_consumer_window_messages", |found| found.len() == 1);
}

/// The least bound below which all waits of a priority at the queue `work` are.
fn longest(broker: &Broker, priority: &str) -> f64 {
    let text = http::text(&broker.url, "/metrics");
    let of = format!("{{vhost=\"/\",queue=\"work\",priority=\"{priority}\"");
    let number = |line: &str| {
        line.rsplit_once(' ').and_then(|(_, number)| number.parse::<f64>().ok()).expect("a number")
    };
    let count = text.lines().find(|line| line.starts_with(&format!("queue_wait_time_count{of}"))).map(number);
    let bucket = text
        .lines()
        .filter(|line| line.starts_with(&format!("queue_wait_time_bucket{of}")))
        .find(|line| Some(number(line)) == count)
        .expect("a bucket with all");
    let bound = bucket.split_once("le=\"").and_then(|(_, rest)| rest.split_once('"')).expect("a bound").0;
    bound.parse().expect("a number")
}
