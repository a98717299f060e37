//! `overtake work` in a queue with a history: how each program ended is found there.

mod support;

use serde_json::{Value, json};
use support::http::ask;
use support::worker::{Story, Worker};

/// The queue `jobs` with a history, and these settings besides.
fn story(settings: Value) -> Story {
    let mut all = json!({ "history": "past", "delivery_limit": 2 });
    all.as_object_mut().expect("an object").extend(settings.as_object().expect("an object").clone());
    let story = Story::with(&all);
    ask(&story.broker.url, "PUT", "/v1/queues/past", &json!({ "order": "fifo" })).expect(201);
    story
}

/// What the history says of a message.
fn record(story: &Story, id: &str) -> Value {
    let found = ask(&story.broker.url, "GET", &format!("/v1/queues/past/messages/{id}"), &Value::Null);
    found.expect(200)["record"].clone()
}

#[test]
fn how_each_program_ended_is_in_the_history() {
    let story = story(json!({}));
    story.publish(json!([{ "id": "good", "body": "echo fine" }, { "id": "bad", "body": "echo oh; exit 3" }]));
    story.work_off(&[], "sh");
    let good = record(&story, "good");
    assert_eq!(
        (&good["ending"], &good["exit_code"], &good["output"]),
        (&json!("completed"), &json!(0), &json!("fine\n"))
    );
    let bad = record(&story, "bad");
    let said = (&bad["ending"], &bad["exit_code"], &bad["error"], &bad["output"], &bad["attempts"]);
    assert_eq!(said, (&json!("failed"), &json!(3), &json!("exit 3"), &json!("oh\n"), &json!(2)));
}

#[test]
fn a_program_whose_message_is_cancelled_is_ended() {
    let story = story(json!({}));
    story.publish(json!([{ "id": "a", "body": "" }, { "id": "b", "body": "" }]));
    let mut worker = story.work(&["--lease", "1s"], "echo begun; exec sleep 1000");
    worker.await_line("a  priority");
    let said = story.broker.run(&["cancel", "jobs", "a", "b"]).ok();
    assert!(said.contains("2 messages cancelled, or asked for"), "{said}");
    worker.await_line("cancelled a");
    end(worker);
    let (a, b) = (record(&story, "a"), record(&story, "b"));
    assert_eq!(
        (&a["ending"], &a["error"], &a["attempts"]),
        (&json!("cancelled"), &json!("cancelled"), &json!(1))
    );
    assert_eq!((&b["ending"], &b["attempts"]), (&json!("cancelled"), &json!(0)));
}

#[test]
fn a_program_that_runs_for_too_long_is_ended_and_its_message_is_over() {
    let story = story(json!({ "run_timeout_ms": 300 }));
    story.publish(json!([{ "id": "a", "body": "" }]));
    let mut worker = story.work(&["--lease", "1s"], "exec sleep 1000");
    worker.await_line("lost     a");
    end(worker);
    assert_eq!(record(&story, "a")["ending"], "timeout");
}

fn end(worker: Worker) {
    worker.signal(rustix::process::Signal::TERM);
    worker.end();
}
