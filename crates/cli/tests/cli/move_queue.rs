//! `overtake move`: between a broker with a store of its own and one on a server, either way, and over a link on which the answer is lost.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::http::ask;
use crate::support::link::Link;
use crate::support::{Broker, PATIENCE, Run};
use crate::valkey::{Program, Server};

const LEVELS: [u8; 3] = [9, 4, 1];

fn declare(broker: &Broker, queue: &str, further: &Value) {
    let mut settings = json!({"max_length": 100_000});
    settings.as_object_mut().expect("an object").extend(further.as_object().expect("an object").clone());
    ask(&broker.url, "PUT", &format!("/v1/queues/{queue}"), &settings).expect(201);
}

fn publish(broker: &Broker, queue: &str, messages: &[Value]) {
    let path = format!("/v1/queues/{queue}/messages");
    ask(&broker.url, "POST", &path, &json!({"messages": messages})).expect(201);
}

fn totals(broker: &Broker, queue: &str) -> Value {
    ask(&broker.url, "GET", &format!("/v1/queues/{queue}"), &Value::Null).expect(200)["totals"].clone()
}

/// All that stands so, without what each broker says for itself.
fn seen(broker: &Broker, queue: &str, status: &str) -> Vec<Value> {
    let path = format!("/v1/queues/{queue}/messages?status={status}&limit=1000&properties=base64");
    let page = ask(&broker.url, "GET", &path, &Value::Null).expect(200);
    let mut messages = page["messages"].as_array().expect("a list").clone();
    for message in &mut messages {
        let message = message.as_object_mut().expect("an object");
        let seq = message.remove("seq").expect("it has one");
        if message["id"] == json!(format!("seq-{}", seq.as_str().expect("text"))) {
            message.remove("id");
        }
        for field in ["published_at", "delivery_count", "due_at"] {
            message.remove(field);
        }
        if let Some(Value::String(at)) = message.get_mut("expires_at") {
            // To the hour.
            at.truncate("2026-11-24T00".len());
        }
    }
    messages
}

fn words<'a>(queue: &'a str, to: &'a str, state: &'a Path) -> [&'a str; 6] {
    ["move", queue, "--to", to, "--state", state.to_str().expect("text")]
}

fn moved(run: Run) -> Value {
    let mut moved = run.json();
    moved.as_object_mut().expect("an object").retain(|_, value| *value != 0 && *value != false);
    moved
}

/// Of every kind.
fn mixed() -> Vec<Value> {
    let mut messages: Vec<Value> = (0..40)
        .map(|at| json!({"body": format!("{at}"), "priority": LEVELS[at % 3], "headers": {"n": at, "odd": at % 2 == 1}}))
        .collect();
    // The list says a correlation id, a priority and a header whose value is a list.
    let list = "LAAAAAAQAWxBAAAACWwAAAAAAAAABwkDYzQy";
    messages.push(json!({"body_base64": "/wA=", "priority": 1, "properties_base64": list, "key": "k"}));
    messages.push(json!({"body": "named", "priority": 4, "id": "a1", "ttl_ms": 400_000_000_u64, "content_type": "text/x"}));
    messages.extend(
        (0..3).map(|at| json!({"body": format!("later {at}"), "priority": 9, "delay_ms": 90_000_000 + at})),
    );
    messages
}

#[test]
fn a_queue_moves_to_a_server_and_back_with_all_that_its_messages_say() {
    for program in Program::all() {
        let server = Server::start_with(program, |_| vec!["--appendonly".to_owned(), "no".to_owned()]);
        let dir = tempfile::tempdir().expect("a directory");
        let [embedded, further] = ["embedded", "further"].map(|name| Broker::start(&dir.path().join(name)));
        let flags = ["--engine", "redis", "--engine-nodes", &server.url()];
        let served = Broker::start_with(&dir.path().join("served"), &flags);
        declare(&embedded, "jobs", &json!({}));
        publish(&embedded, "jobs", &mixed());
        let state = dir.path().join("state.json");
        let before = ["ready", "delayed"].map(|status| seen(&embedded, "jobs", status));
        assert_eq!(before.each_ref().map(Vec::len), [42, 3]);
        for (from, to) in [(&embedded, &served), (&served, &further)] {
            let words = [&words("jobs", &to.url, &state)[..], &["--json", "--delete"]].concat();
            assert_eq!(moved(from.run(&words)), json!({"moved": 45, "deleted": true}), "{program:?}");
            assert_eq!(["ready", "delayed"].map(|status| seen(to, "jobs", status)), before, "{program:?}");
            ask(&from.url, "GET", "/v1/queues/jobs", &Value::Null).expect(404);
            assert!(!state.exists(), "nothing is under way");
        }
    }
}

/// The answer to what was published there is lost, so it is not acknowledged here.
fn until_some_are_in_both(here: &Broker, there: &Broker) {
    let until = Instant::now() + PATIENCE;
    let count = |totals: &Value, what: &str| totals[what].as_u64().expect("a number");
    loop {
        let came = totals(there, "jobs");
        let left = totals(here, "jobs");
        if count(&left, "ready") + count(&left, "leased") + count(&came, "ready") > 2_000 {
            return;
        }
        assert!(Instant::now() < until, "{left} here, {came} there");
    }
}

#[test]
fn a_move_that_is_killed_goes_on_and_nothing_comes_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| Broker::start(&dir.path().join(name)));
    declare(&here, "jobs", &json!({}));
    let messages: Vec<_> =
        (0..2_000).map(|at| json!({"body": format!("{at:0>200}"), "priority": 1})).collect();
    publish(&here, "jobs", &messages);
    let link = Link::to(there.url.trim_start_matches("http://"), 10_000_000);
    let (to, state) = (format!("http://{}", link.address), dir.path().join("state.json"));
    for bytes in [20_000, 200_000, 400_000] {
        let mut command = here.command(&words("jobs", &to, &state));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        link.until_carried(bytes);
        link.deafen();
        until_some_are_in_both(&here, &there);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        link.mend();
    }
    assert!(state.exists(), "something is under way");
    let told = moved(here.run(&[&words("jobs", &to, &state)[..], &["--json"]].concat()));
    assert!(told["known"].as_u64() > Some(0), "what was in doubt is known there: {told}");
    assert_eq!(told["leased"], Value::Null, "{told}");
    assert_eq!(
        (&totals(&here, "jobs")["ready"], &totals(&there, "jobs")["ready"]),
        (&json!(0), &json!(2_000))
    );
    let mut bodies: Vec<_> = Vec::new();
    while bodies.len() < 2_000 {
        let leased = ask(&there.url, "POST", "/v1/queues/jobs/leases", &json!({"max": 1_000})).expect(200);
        let leased = leased["messages"].as_array().expect("a list").clone();
        bodies.extend(leased.iter().map(|one| one["body"].as_str().expect("text").to_owned()));
    }
    bodies.sort();
    assert!(bodies.iter().enumerate().all(|(at, body)| *body == format!("{at:0>200}")), "each once");
    assert!(!state.exists(), "nothing is under way any more");
}

#[test]
fn a_move_that_was_killed_before_it_knew_its_leases_is_named_by_the_next() {
    let dir = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| Broker::start(&dir.path().join(name)));
    declare(&here, "jobs", &json!({}));
    let messages: Vec<_> = (0..5).map(|at| json!({"body": format!("{at}"), "priority": 1})).collect();
    publish(&here, "jobs", &messages);
    let lease = |worker: &str, max: u32| {
        let wish = json!({"max": max, "worker": worker});
        ask(&here.url, "POST", "/v1/queues/jobs/leases", &wish).expect(200);
    };
    lease("overtake move", 2);
    lease("somebody", 1);
    let state = dir.path().join("state.json");
    let run = here.run(&words("jobs", &there.url, &state)).ok();
    assert!(run.contains("1 is leased here by others"), "{run}");
    assert!(run.contains("2 are leased here by a move that was cut off"), "{run}");
    let told = moved(here.run(&[&words("jobs", &there.url, &state)[..], &["--json"]].concat()));
    assert_eq!(told, json!({"leased": 1, "leased_by_move": 2}));
}

#[test]
fn messages_that_are_too_large_to_go_at_once_go_in_fewer() {
    let dir = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| Broker::start(&dir.path().join(name)));
    declare(&here, "jobs", &json!({}));
    let large: Vec<_> = (0..40).map(|at| json!({"body": "x".repeat(30_000), "priority": at % 10})).collect();
    (0..3).for_each(|_| publish(&here, "jobs", &large));
    let state = dir.path().join("state.json");
    let told = moved(here.run(&[&words("jobs", &there.url, &state)[..], &["--json"]].concat()));
    assert_eq!((told, &totals(&there, "jobs")["ready"]), (json!({"moved": 120}), &json!(120)));
}

#[test]
fn what_is_held_back_here_moves_and_what_others_hold_or_is_dead_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| Broker::start(&dir.path().join(name)));
    declare(&here, "jobs", &json!({"max_active": 2}));
    publish(&here, "jobs", &mixed()[..10]);
    let leased = ask(&here.url, "POST", "/v1/queues/jobs/leases", &json!({"max": 2})).expect(200);
    let dead = json!({"receipts": [leased["messages"][0]["receipt"]], "how": "reject"});
    ask(&here.url, "POST", "/v1/queues/jobs/settle", &dead).expect(200);
    ask(&here.url, "POST", "/v1/queues/jobs/leases", &json!({"max": 1})).expect(200);
    let state = dir.path().join("state.json");
    let told =
        moved(here.run(&[&words("jobs", &there.url, &state)[..], &["--json", "--as", "work"]].concat()));
    assert_eq!(told, json!({"moved": 7, "leased": 2, "dead": 1}));
    let settings = ask(&here.url, "GET", "/v1/queues/jobs", &Value::Null).expect(200);
    assert_eq!(settings["settings"]["paused"], false, "it is paused no more");
    assert_eq!(totals(&there, "work")["ready"], 7);
    let said = here.run(&words("jobs", &there.url, &state)).ok();
    let expect = format!(
        "0 messages moved to jobs at {}; 2 are leased here by others: run it again when they came back; 1 dead letter stays here\n",
        there.url
    );
    assert_eq!(said, expect);
}

#[test]
fn a_queue_is_not_moved_to_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    let here = Broker::start(&dir.path().join("here"));
    let link = Link::to(here.url.trim_start_matches("http://"), 10_000_000);
    let (to, state) = (format!("http://{}", link.address), dir.path().join("state.json"));
    let expect = |ready: u64, delayed: u64| {
        let said = here.run(&words("jobs", &to, &state));
        assert_eq!(said.code, 1, "{}", said.picture());
        assert!(said.stderr.contains("are the same queue; "), "{}", said.picture());
        let totals = totals(&here, "jobs");
        assert_eq!((&totals["ready"], &totals["delayed"]), (&json!(ready), &json!(delayed)));
        assert_eq!(totals["delivered"], 0, "refused before anything is leased");
    };
    declare(&here, "jobs", &json!({}));
    publish(&here, "jobs", &mixed()[42..]);
    expect(0, 3);
    publish(&here, "jobs", &mixed()[..42]);
    expect(42, 3);
}

#[test]
fn what_cannot_be_moved_is_said_and_stays() {
    let dir = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| Broker::start(&dir.path().join(name)));
    declare(&here, "jobs", &json!({}));
    declare(&there, "jobs", &json!({"max_length": 5, "overflow": "reject"}));
    publish(&here, "jobs", &mixed()[..10]);
    let state = dir.path().join("state.json");
    // Only as many are leased as there is room for.
    for said in ["what was moved before is there, and the rest is here", "nothing was moved"] {
        let full = here.run(&words("jobs", &there.url, &state));
        assert_eq!(full.code, 1, "{}", full.picture());
        let why = "is full: its max_length is 5, and its overflow is reject; ";
        assert!(full.stderr.contains(&format!("{why}{said}")), "{}", full.picture());
        assert!(!state.exists(), "nothing is under way");
        let [left, came] = [&here, &there].map(|broker| totals(broker, "jobs"));
        assert_eq!((&left["ready"], &left["delivered"], &came["ready"]), (&json!(5), &json!(5), &json!(5)));
    }
    let other = here.run(&words("jobs", "http://127.0.0.1:9", &state));
    assert_eq!(other.code, 69, "{}", other.picture());
    let nowhere = here.run(&words("jobs", &there.url, &dir.path().join("none/state.json")));
    assert_eq!(nowhere.code, 1, "{}", nowhere.picture());
    assert_eq!(totals(&here, "jobs")["ready"], 5, "none is leased");
    let missing = here.run(&words("none", &there.url, &state));
    assert!(missing.stderr.contains("there is no queue none at "), "{}", missing.picture());
    assert!(!missing.stderr.contains("run it again"), "{}", missing.picture());
    ask(&there.url, "PATCH", "/v1/queues/jobs", &json!({"max_length": 100})).expect(200);
    here.run(&words("jobs", &there.url, &state)).ok();
    assert_eq!((&totals(&here, "jobs")["ready"], &totals(&there, "jobs")["ready"]), (&json!(0), &json!(10)));
}

#[test]
fn messages_without_a_priority_need_one_where_priorities_begin_to_decide() {
    let dir = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| Broker::start(&dir.path().join(name)));
    let state = dir.path().join("state.json");
    declare(&here, "jobs", &json!({"order": "fifo"}));
    declare(&there, "jobs", &json!({}));
    publish(&here, "jobs", &[json!({"body": "a"}), json!({"body": "b", "priority": 2})]);
    let words = words("jobs", &there.url, &state);
    let refused = here.run(&words);
    assert!(refused.stderr.contains("--import-priority most-urgent"), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("nothing was moved") && !refused.stderr.contains("goes on"),
        "{}",
        refused.stderr
    );
    let unknown = here.run(&[&words[..], &["--import-priority", "zz"]].concat());
    assert!(unknown.stderr.contains("`zz` for --import-priority"), "{}", unknown.stderr);
    assert!(
        here.run(&[&words[..], &["--import-priority", ""]].concat()).stderr.contains("--import-priority")
    );
    assert_eq!(totals(&there, "jobs")["ready"], 0);
    // It was refused before anything was leased, and leaves no file behind.
    assert!(!state.exists());
    assert_eq!(
        (&totals(&here, "jobs")["ready"], &totals(&here, "jobs")["delivered"]),
        (&json!(2), &json!(0))
    );
    let answer = moved(here.run(&[&words[..], &["--json", "--import-priority", "most-urgent"]].concat()));
    assert_eq!(answer, json!({"moved": 2}));
    let priorities: Vec<_> = seen(&there, "jobs", "ready")
        .iter()
        .map(|one| (one["body"].clone(), one["priority"].clone()))
        .collect();
    assert_eq!(priorities, [(json!("a"), json!(9)), (json!("b"), json!(2))]);
}

#[test]
fn a_move_that_is_refused_counts_no_delivery() {
    let dir = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| Broker::start(&dir.path().join(name)));
    let state = dir.path().join("state.json");
    declare(&here, "jobs", &json!({"scheme": "signed", "delivery_limit": 1}));
    let refused = |to: &str, why: &str, delivered: u64| {
        let said = here.run(&[&words("jobs", &there.url, &state)[..], &["--as", to]].concat());
        assert_eq!(said.code, 1, "{}", said.picture());
        assert!(said.stderr.contains(why) && said.stderr.contains("nothing was moved"), "{}", said.picture());
        let totals = totals(&here, "jobs");
        assert_eq!((&totals["ready"], &totals["delivered"]), (&json!(2), &json!(delivered)));
        let page = ask(&here.url, "GET", "/v1/queues/jobs/messages", &Value::Null).expect(200);
        let counts = page["messages"].as_array().expect("a list").iter();
        assert!(counts.clone().all(|one| one["delivery_count"] == 0), "{page}");
    };
    // The queue there knows no such priority: seen before anything is leased.
    publish(
        &here,
        "jobs",
        &[json!({"body": "first", "priority": 5}), json!({"body": "b", "priority": "LOW"})],
    );
    declare(&there, "levels", &json!({}));
    refused("levels", "message seq-2 has priority `LOW`, which is no priority of the scheme ten-level", 0);
    // Full by its bytes, or as a policy says.
    declare(&there, "bytes", &json!({"scheme": "signed", "max_bytes": 5, "overflow": "reject"}));
    declare(&there, "ruled", &json!({"scheme": "signed"}));
    let rule = r#"{"max-length": 1, "overflow": "reject-publish"}"#;
    there.run(&["policy", "set", "rule", "^ruled$", rule]).ok();
    for (queue, limit) in [("bytes", "max_bytes is 5"), ("ruled", "max_length is 1")] {
        publish(&there, queue, &[json!({"body": "there"})]);
        refused(queue, &format!("is full: its {limit}, and its overflow is reject"), 0);
    }
    // Seen only at the publish: the messages go back as they were.
    declare(&there, "small", &json!({"scheme": "signed", "max_message_bytes": 3}));
    refused("small", "max_message_bytes", 2);
}

#[test]
fn what_fits_is_moved_into_a_queue_that_is_bounded_by_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let [here, there] = ["here", "there"].map(|name| Broker::start(&dir.path().join(name)));
    let state = dir.path().join("state.json");
    declare(&here, "jobs", &json!({}));
    declare(&there, "jobs", &json!({"max_bytes": 5, "overflow": "reject"}));
    publish(&here, "jobs", &[json!({"body": "aaaa"}), json!({"body": "bbbb"}), json!({"body": "c"})]);
    let said = here.run(&words("jobs", &there.url, &state));
    assert_eq!(said.code, 1, "{}", said.picture());
    assert!(
        said.stderr.contains("what was moved before is there, and the rest is here"),
        "{}",
        said.picture()
    );
    assert_eq!(totals(&there, "jobs")["ready"], 1);
    let page = ask(&here.url, "GET", "/v1/queues/jobs/messages", &Value::Null).expect(200);
    let left: Vec<_> = page["messages"].as_array().expect("a list").iter().map(|one| &one["body"]).collect();
    assert_eq!(left, ["bbbb", "c"]);
}
