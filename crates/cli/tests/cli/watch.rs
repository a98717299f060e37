//! `overtake watch` against a broker: its lines, its news, and how it ends.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::Broker;
use crate::support::http::ask;
use crate::support::worker::{Story, Worker};

/// `overtake watch jobs`, every 200 ms.
fn watch(story: &Story, options: &[&str]) -> Worker {
    Worker::start(story.broker.command(&[&["watch", "jobs", "--interval", "200ms"], options].concat()))
}

fn publish(story: &Story, count: usize) {
    let messages: Vec<Value> = (0..count).map(|at| json!({"body": "x", "priority": at % 10})).collect();
    story.publish(messages.into());
}

#[test]
fn lines_say_what_waits_in_which_lane() {
    let story = Story::begin();
    publish(&story, 12);
    let text = watch(&story, &["--count", "2"]).end().ok();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("TIME ") && lines[0].ends_with(" LANES"), "{text}");
    assert!(lines[1].ends_with("-- messages wait, and nobody takes them"), "{text}");
    assert!(lines[2].ends_with("  9=1 8=1 7=1 6=1 5=1 4=1 3=1 2=1 1=2 0=2"), "{text}");
    assert_eq!(lines.len(), 4, "{text}");
    let quiet = watch(&story, &["--count", "2", "--quiet"]).end().ok();
    assert!(!quiet.contains("TIME"), "{quiet}");

    let text = watch(&story, &["--count", "1", "--json"]).end().ok();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert_eq!((&lines[0]["event"], lines.len()), (&json!("no_consumer"), 2), "{text}");
    assert_eq!((&lines[1]["ready"], &lines[1]["lanes"][0]["lane"]), (&json!(12), &json!("9")), "{text}");
    assert!(lines[1]["at_ms"].is_u64(), "{text}");
}

#[test]
fn what_happens_is_said_when_it_happens() {
    let story = Story::begin();
    let mut watch = watch(&story, &["--warn-age", "1ms"]);
    watch.await_line("TIME ");
    let url = &story.broker.url;
    ask(url, "PATCH", "/v1/queues/jobs", &json!({"paused": true})).expect(200);
    watch.await_line("-- paused: nothing is leased");
    ask(url, "PATCH", "/v1/queues/jobs", &json!({"max_length": 3, "paused": false})).expect(200);
    watch.await_line("-- resumed");
    publish(&story, 3);
    watch.await_line("-- full: ");
    watch.await_line("-- the oldest has waited ");
    let leased = ask(url, "POST", "/v1/queues/jobs/leases", &json!({"max": 3})).expect(200);
    let receipts: Vec<_> =
        leased["messages"].as_array().expect("messages").iter().map(|one| &one["receipt"]).collect();
    watch.await_line("-- nothing has waited for 1ms any more");
    ask(url, "POST", "/v1/queues/jobs/settle", &json!({"receipts": receipts, "how": "reject"})).expect(200);
    watch.await_line("-- 3 new dead letters, 3 in all");
    story.broker.run(&["queue", "delete", "jobs", "--yes"]).ok();
    let run = watch.end();
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("no queue `jobs` in vhost `/`"), "{run:?}");
}

#[test]
fn a_script_waits_until_nothing_is_left_to_do() {
    let story = Story::begin();
    publish(&story, 2);
    let mut waiting = watch(&story, &["--until-idle"]);
    waiting.await_line("0=1");
    story.broker.run(&["consume", "jobs", "--all"]).ok();
    assert_eq!(waiting.end().code, 0);
    // There is nothing to wait for.
    assert_eq!(watch(&story, &["--until-idle"]).end().ok(), "");

    publish(&story, 1);
    let run = watch(&story, &["--until-idle", "--for", "500ms", "--quiet"]).end();
    assert_eq!(run.code, 75, "{run:?}");
    assert!(
        run.stderr.starts_with("error: jobs is not idle after 500ms: 1 message ready, 0 leased\n"),
        "{run:?}"
    );
    assert_eq!(watch(&story, &["--for", "300ms"]).end().code, 0);
}

#[test]
fn a_broker_that_goes_away_is_asked_until_it_is_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "jobs"]);
    let address = broker.url.trim_start_matches("http://").to_owned();
    let mut watch = Worker::start(broker.command(&["watch", "jobs", "--interval", "200ms"]));
    watch.await_line("TIME ");
    broker.kill();
    watch.await_line("; asking again");
    let _broker = Broker::start_with(&data, &["--http", &address]);
    watch.await_line("-- the broker is back after ");
    watch.signal(Signal::INT);
    let run = watch.end();
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.stdout.matches("; asking again").count(), 1, "{run:?}");
}
