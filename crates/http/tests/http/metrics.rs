//! `/metrics`: read as Prometheus reads it.

use std::collections::{BTreeMap, BTreeSet};

use overtake_engine::Engine;
use overtake_lane::{Settings, VhostSettings};
use serde_json::json;

use crate::world::World;

/// Every sample by its name and labels, after checking what a scraper would refuse.
fn scrape(text: &str) -> BTreeMap<String, f64> {
    let (mut types, mut samples, mut closed) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} has two types");
            assert!(closed.insert(current.clone()), "{current} is there in two places");
            current = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| help.ends_with('.')), "{line}");
        } else {
            let (series, number) = line.rsplit_once(' ').expect("a sample");
            let name = series.split('{').next().expect("a name");
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            assert!(name == current || family == Some(&current), "{line} in {current}");
            check_labels(series.strip_prefix(name).expect("labels"));
            let number: f64 = number.parse().expect("a number");
            assert!(samples.insert(series.to_owned(), number).is_none(), "{series} is there twice");
        }
    }
    samples
}

/// `{name="value",…}` with `\\`, `\"` and `\n` as the only escapes.
fn check_labels(labels: &str) {
    let Some(inner) = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return assert_eq!(labels, "");
    };
    let mut rest = inner;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{labels}");
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => assert!(matches!(chars.next(), Some((_, '\\' | '"' | 'n'))), "{labels}"),
                _ => {}
            }
        };
        rest = after[end + 1..].trim_start_matches(',');
    }
}

#[tokio::test]
async fn metrics_say_what_the_broker_holds() {
    let world = World::with_queue("").await;
    world.put("/v1/queues/odd%22%5Cname", r#"{"scheme":"signed"}"#).await.expect(201);
    world.post("/v1/queues/odd%22%5Cname/messages", r#"{"body":"x"}"#).await.expect(201);
    world.publish("a:9 b:9 c:1").await;
    let (_, receipts) = world.lease(1).await;
    world
        .post("/v1/queues/q/settle", &json!({"receipts": receipts, "how": "ack"}).to_string())
        .await
        .expect(200);
    world.get("/nothing").await.expect(404);
    let reply = world.get("/metrics").await.expect(200);
    assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let seen = scrape(&reply.text);
    let check = |series: &str, number: f64| {
        assert_eq!(seen.get(series), Some(&number), "{series} in\n{}", reply.text);
    };
    check(r#"overtake_lane_ready_messages{vhost="/",queue="q",lane="9"}"#, 1.0);
    check(r#"overtake_lane_ready_messages{vhost="/",queue="q",lane="1"}"#, 1.0);
    check(r#"overtake_lane_published_total{vhost="/",queue="q",lane="9"}"#, 2.0);
    check(r#"overtake_lane_settled_total{vhost="/",queue="q",lane="9"}"#, 1.0);
    check(r#"queue_wait_time_count{vhost="/",queue="q",priority="9"}"#, 1.0);
    check(r#"queue_wait_time_bucket{vhost="/",queue="q",priority="9",le="+Inf"}"#, 1.0);
    check(r#"overtake_lane_ready_messages{vhost="/",queue="odd\"\\name",lane="NORMAL"}"#, 1.0);
    check(r#"queue_depth{vhost="/",queue="q",priority="9"}"#, 1.0);
    check(r#"queue_active{vhost="/",queue="q",priority="9"}"#, 0.0);
    check(r#"queue_enqueue_total{vhost="/",queue="q",priority="9"}"#, 2.0);
    check(r#"queue_schedule_total{vhost="/",queue="q",priority="9"}"#, 1.0);
    check(r#"overtake_queue_info{vhost="/",queue="q",picker="strict",order="priority",held_back="no"}"#, 1.0);
    check("overtake_engine_up", 1.0);
    check(
        r#"overtake_http_requests_total{route="/v1/queues/{queue}/messages",method="POST",status="201"}"#,
        4.0,
    );
    check(r#"overtake_http_requests_total{route="none",method="GET",status="404"}"#, 1.0);
    assert!(seen["overtake_disk_free_bytes"] > 0.0 && seen["overtake_disk_low_watermark_bytes"] > 0.0);
    assert!(seen["overtake_disk_high_watermark_bytes"] > seen["overtake_disk_low_watermark_bytes"]);
    assert!(seen.contains_key("overtake_disk_low"));
    assert!(seen["overtake_journal_bytes"] > 0.0 && seen["overtake_journal_syncs_total"] > 0.0);
    assert!(
        seen["overtake_journal_sync_seconds_sum"] > 0.0 && seen["overtake_journal_written_bytes_total"] > 0.0
    );
    assert_eq!(seen["overtake_journal_sync_seconds_count"], seen["overtake_journal_syncs_total"]);
}

#[tokio::test]
async fn keys_with_the_most_messages_are_named() {
    let world = World::with_queue("").await;
    let settings = r#"{"fair_keys":true,"key_weights":{"small":2}}"#;
    world.put("/v1/queues/fair", settings).await.expect(201);
    let keys =
        (0..12).map(|at| format!("key-{at}")).chain(["small", "large", "large", "large"].map(str::to_owned));
    for key in keys {
        let weight = (key == "large").then_some(5);
        let message = json!({"body": "x", "key": key, "key_weight": weight}).to_string();
        world.post("/v1/queues/fair/messages", &message).await.expect(201);
    }
    for _ in 0..2 {
        world.post("/v1/queues/fair/messages", r#"{"body":"x"}"#).await.expect(201);
    }
    let shown = world.get("/v1/queues/fair").await.expect(200).json;
    let names: Vec<_> = shown["keys"].as_array().expect("keys").iter().map(|key| &key["key"]).collect();
    assert_eq!((names.len(), names[0], names[1]), (10, &json!("large"), &json!("")), "{shown}");
    assert_eq!((&shown["keys"][0]["ready"], &shown["keys"][0]["weight"]), (&json!(3), &json!(5)), "{shown}");
    world.post("/v1/queues/fair/leases", r#"{"max":1}"#).await.expect(200);
    let text = world.get("/metrics").await.expect(200).text;
    let seen = scrape(&text);
    let leased = seen.iter().filter(|(series, _)| series.starts_with("overtake_key_leased_messages{"));
    let leased: Vec<f64> = leased.map(|(_, number)| *number).collect();
    let large = r#"{vhost="/",queue="fair",key="large"}"#;
    assert_eq!(seen.get(&format!("overtake_key_ready_messages{large}")), Some(&3.0), "{text}");
    assert!(seen.contains_key(&format!("overtake_key_oldest_age_seconds{large}")), "{text}");
    assert_eq!((leased.len(), leased.iter().sum()), (10, 1.0), "{text}");
    let plain = world.get("/v1/queues/q").await.expect(200).json;
    assert!(plain.get("keys").is_none(), "{plain}");
}

/// Work that is over does not wait: it is counted as messages of the queue where it lies, and not as work.
#[tokio::test]
async fn a_history_is_no_queue_of_work() {
    let world = World::with_queue("").await;
    world.put("/v1/queues/a.history", "{}").await.expect(201);
    world.put("/v1/queues/z", r#"{"history":"a.history"}"#).await.expect(201);
    for _ in 0..2 {
        world.post("/v1/queues/z/messages", r#"{"body":"x"}"#).await.expect(201);
    }
    let leased = world.post("/v1/queues/z/leases", r#"{"max":1}"#).await.expect(200);
    let receipts = json!([leased.json["messages"][0]["receipt"]]);
    let settle = json!({ "receipts": receipts, "how": "ack" }).to_string();
    world.post("/v1/queues/z/settle", &settle).await.expect(200);
    let text = world.get("/metrics").await.expect(200).text;
    let seen = scrape(&text);
    let sum = |name: &str| -> f64 {
        let of_it = seen.iter().filter(|(series, _)| series.starts_with(name));
        of_it.map(|(_, number)| number).sum()
    };
    assert_eq!(
        (sum("queue_depth"), sum("queue_enqueue_total"), sum("queue_schedule_total")),
        (1.0, 2.0, 1.0)
    );
    let lies = |(series, number): (&String, &f64)| {
        series.starts_with("overtake_lane_ready_messages") && series.contains("a.history") && *number == 1.0
    };
    assert!(seen.iter().any(lies), "{text}");
}

#[tokio::test]
async fn the_same_name_in_two_virtual_hosts_is_two_queues() {
    let world = World::with_queue("").await;
    let vhost = world.engine.declare_vhost("e\"u", VhostSettings::default()).await.expect("declared");
    let there = world.engine.in_vhost(vhost);
    there.declare_queue("q", Settings::default()).await.expect("declared");
    world.publish("a:9").await;
    let text = world.get("/metrics").await.text;
    let seen = scrape(&text);
    assert_eq!(seen.get(r#"overtake_queue_consumers{vhost="/",queue="q"}"#), Some(&0.0), "{text}");
    assert_eq!(seen.get(r#"overtake_queue_consumers{vhost="e\"u",queue="q"}"#), Some(&0.0), "{text}");
    assert_eq!(seen.get(r#"overtake_lane_ready_messages{vhost="/",queue="q",lane="9"}"#), Some(&1.0));
    assert!(!seen.contains_key(r#"overtake_lane_ready_messages{vhost="e\"u",queue="q",lane="9"}"#));
}

#[tokio::test]
async fn metrics_say_what_routes_did_and_what_waits_in_endpoints() {
    let world = World::with_queue("").await;
    let plain = world.get("/metrics").await.text;
    assert!(!plain.contains("queue_length") && !plain.contains("overtake_route"), "there are none yet");
    let manifest = r#"{"routes": {
        "all": "FROM /messages/* INTO $upstream",
        "hot": {"route": "FROM /messages/* WHERE as_number(size) > 10 INTO $upstream", "priority": 0},
        "lost": {"route": "FROM /stray INTO Endpoint('e')", "fallback": true}}}"#;
    world.put("/v1/routes", manifest).await.expect(200);
    for (path, size) in [("messages/a", "11"), ("messages/a", "big"), ("stray", "1"), ("nowhere", "1")] {
        let message = json!({"body": "x", "headers": {"size": size}}).to_string();
        world.post(&format!("/v1/topics/{path}"), &message).await.expect(201);
    }
    let text = world.get("/metrics").await.text;
    let seen = scrape(&text);
    for (series, number) in [
        (r#"queue_length{vhost="/",endpoint="$upstream",priority="0"}"#, 1.0),
        (r#"queue_length{vhost="/",endpoint="$upstream",priority="default"}"#, 1.0),
        (r#"queue_length{vhost="/",endpoint="e",priority="default"}"#, 1.0),
        (r#"messages_dropped_total{vhost="/",endpoint="$upstream",priority="0",reason="ttl_expiry"}"#, 0.0),
        (r#"messages_dropped_total{vhost="/",endpoint="",priority="",reason="no_route"}"#, 1.0),
        (r#"overtake_routes_messages_total{vhost="/",outcome="routed"}"#, 2.0),
        (r#"overtake_routes_messages_total{vhost="/",outcome="fallback"}"#, 1.0),
        (r#"overtake_routes_messages_total{vhost="/",outcome="unrouted"}"#, 1.0),
        (r#"overtake_route_matched_total{vhost="/",route="all"}"#, 2.0),
        (r#"overtake_route_undefined_total{vhost="/",route="hot"}"#, 1.0),
        (r#"overtake_route_copies_total{vhost="/",route="all",endpoint="$upstream"}"#, 1.0),
        (r#"overtake_route_copies_total{vhost="/",route="hot",endpoint="$upstream"}"#, 1.0),
    ] {
        assert_eq!(seen.get(series), Some(&number), "{series} in\n{text}");
    }
    assert!(!text.contains(r#"queue_length{vhost="/",endpoint="q""#), "it is no endpoint");
}

#[tokio::test]
async fn a_wait_histogram_only_grows_from_bucket_to_bucket() {
    let world = World::with_queue("").await;
    world.publish("a b c").await;
    world.lease(3).await;
    let seen = scrape(&world.get("/metrics").await.text);
    let prefix = r#"queue_wait_time_bucket{vhost="/",queue="q",priority="4",le=""#;
    let bound = |series: &str| {
        let text = series.strip_prefix(prefix)?.strip_suffix("\"}")?;
        Some(if text == "+Inf" { f64::INFINITY } else { text.parse().expect("a bound") })
    };
    let mut buckets: Vec<_> =
        seen.iter().filter_map(|(series, count)| Some((bound(series)?, *count))).collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(buckets.len() > 2 && buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{buckets:?}");
    assert_eq!(buckets.last(), Some(&(f64::INFINITY, 3.0)));
}
