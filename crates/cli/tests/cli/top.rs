//! `overtake top` against a broker, on a terminal and without one.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support;
use crate::support::Broker;
use crate::support::http::ask;
use crate::support::pty::Pty;

/// A broker with two queues, one of which has work.
fn broker(dir: &tempfile::TempDir) -> Broker {
    let broker = Broker::start_with(
        &dir.path().join("data"),
        &["--queue", "jobs={scheme=\"named\"}", "--queue", "mails"],
    );
    let messages = json!({"messages": [
        {"body": "a", "id": "order-17", "priority": "critical"},
        {"body": "b", "priority": "background"},
        {"body": "c", "priority": "background"},
    ]});
    ask(&broker.url, "POST", "/v1/queues/jobs/messages", &messages).expect(201);
    broker
}

#[test]
fn without_a_terminal_it_is_a_frame_of_text() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = broker(&dir);
    let text = broker.run(&["top", "--interval", "200ms"]).ok();
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("overtake ") && lines[0].ends_with(&format!("{}: ready", broker.url)),
        "{text}"
    );
    assert_eq!(lines[1], "2 queues, ready 3, leased 0, in 0/s, out 0/s");
    assert!(lines[3].starts_with("QUEUE "), "{text}");
    assert!(lines[4].starts_with("jobs  ") && lines[4].ends_with("  no consumer"), "{text}");
    assert!(lines[4].contains("████········"), "{text}");
    assert!(lines[5].starts_with("mails "), "{text}");

    let only = broker.run(&["top", "--queue", "m*", "--interval", "200ms"]).ok();
    assert!(only.contains("\n1 queue, ") && only.contains("mails") && !only.contains("jobs"), "{only}");
    let none = broker.run(&["top", "--queue", "nothing*", "--interval", "200ms"]).ok();
    assert!(none.contains("\n0 queues, "), "{none}");
    let unknown = broker.run(&["top", "--queue", "job"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(
        unknown.stderr.contains("error: there is no queue job\n hint: `overtake queue list`"),
        "{unknown:?}"
    );
}

#[test]
fn for_programs_each_poll_is_a_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = broker(&dir);
    let line = broker.run(&["top", "--once", "--json", "--interval", "200ms", "--sort", "name"]).json();
    assert_eq!((&line["broker"]["ready"], &line["broker"]["vhost"]), (&json!(true), &json!("/")), "{line}");
    assert_eq!((&line["totals"]["ready"], &line["totals"]["in_per_s"]), (&json!(3), &json!(0.0)), "{line}");
    let jobs = &line["queues"][0];
    assert_eq!((&jobs["name"], &jobs["states"]), (&json!("jobs"), &json!(["no_consumer"])), "{line}");
    let lanes: Vec<_> = jobs["lanes"].as_array().expect("lanes").iter().collect();
    assert_eq!(
        lanes.iter().map(|lane| (&lane["lane"], &lane["ready"])).collect::<Vec<_>>(),
        [(&json!("critical"), &json!(1)), (&json!("background"), &json!(2))]
    );
    assert_eq!(jobs["wait_p95_ms"], Value::Null);
}

#[test]
fn on_a_terminal_a_queue_is_opened_and_left_and_nothing_is_left_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = broker(&dir);
    let lease = ask(&broker.url, "POST", "/v1/queues/jobs/leases", &json!({"max": 1})).expect(200);
    assert_eq!(lease["messages"][0]["id"], "order-17");
    let mut top = Pty::start(broker.command(&["top", "--interval", "200ms"]), 100, 24);
    top.await_text("\u{1b}[?1049h");
    top.await_text("mails");
    // Into the first queue: who holds what is asked for with it.
    top.press("\r");
    top.await_text("1 message leased");
    top.await_text("order-17");
    top.press("?");
    top.await_text("any key goes back");
    top.press("x");
    top.await_text("critical");
    top.press("\u{1b}");
    top.await_text("mails");
    top.press("q");
    assert_eq!(top.end(), 0);
}

#[test]
fn a_broker_that_goes_is_lost_and_comes_back_by_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let broker = Broker::start_with(&data, &["--queue", "jobs"]);
    let address = broker.url.trim_start_matches("http://").to_owned();
    let mut top = Pty::start(broker.command(&["top", "--interval", "200ms"]), 80, 24);
    top.await_text("jobs");
    broker.kill();
    top.await_text("lost for ");
    top.press("j");
    let broker = Broker::start_with(&data, &["--http", &address]);
    ask(&broker.url, "PUT", "/v1/queues/new", &json!({})).expect(201);
    top.await_text("new");
    top.signal(Signal::TERM);
    assert_eq!(top.end(), 0);
}

#[test]
fn a_terminal_whose_owner_wants_no_colours_gets_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = broker(&dir);
    let colours = |no_color: Option<&str>| {
        let mut command = broker.command(&["top"]);
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let mut top = Pty::start(command, 80, 24);
        // The last thing that is drawn.
        top.await_text(" bulk");
        let text = top.text();
        top.press("q");
        assert_eq!(top.end(), 0);
        // The first sixteen, by number.
        text.contains("38;5;")
    };
    assert!(colours(None));
    assert!(!colours(Some("1")));
}

#[test]
fn what_is_wrong_at_the_start_is_said_without_taking_the_terminal() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = broker(&dir);
    let denied = broker.command(&["top", "--once"]).env("OVERTAKE_TOKEN", "wrong").output().expect("it runs");
    assert_eq!(support::Run::of(denied).code, 77);
    let address = broker.url.clone();
    broker.stop();
    let run = support::run(&["--url", &address, "top"], b"");
    assert_eq!(run.code, 69, "{run:?}");
    assert!(run.stderr.starts_with("error: cannot reach the broker at "), "{run:?}");
}
