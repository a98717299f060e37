//! `overtake work` in a queue with a history: how each program ended is found there.

use serde_json::{Value, json};

use crate::support::http::ask;
use crate::support::worker::{Story, Worker};

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
    // It is heard at once, and not when the lease is next extended.
    let mut worker = story.work(&["--lease", "1h"], "echo begun; exec sleep 1000");
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
    let mut worker = story.work(&["--lease", "1h"], "echo half; exec sleep 1000");
    worker.await_line("timeout  a");
    let said = end(worker);
    assert!(said.contains("ran too long") && said.contains("1 timeout"), "{said}");
    let record = record(&story, "a");
    assert_eq!((&record["ending"], &record["error"]), (&json!("timeout"), &json!("ran too long")));
}

#[test]
fn somebody_may_follow_what_works_and_ask_who_does() {
    let story = story(json!({}));
    let go = story.fifo("go");
    story.publish(json!([{ "id": "a", "body": "" }]));
    let mut worker = story.work(&["--name", "build-7"], "echo begun; read line < go; echo $line; exit 3");
    worker.await_line("started  a");
    let follow = story.broker.command(&["exec", "show", "a", "--queue", "jobs", "--follow"]);
    let mut follower = Worker::start(follow);
    follower.await_line("begun");
    let peeked = story.broker.run(&["peek", "jobs"]).ok();
    assert!(peeked.contains("HOLDER") && peeked.contains("guest build-7 127.0.0.1"), "{peeked}");
    let shown = story.broker.run(&["exec", "show", "a", "--queue", "jobs"]).ok();
    assert!(shown.contains("  holder: guest build-7 127.0.0.1\n"), "{shown}");
    assert!(shown.ends_with("  output so far:\n    begun\n"), "{shown}");
    let listed = story.broker.run(&["exec", "list", "--queue", "jobs"]).ok();
    assert!(listed.contains("guest build-7 127.0.0.1"), "{listed}");
    go.open();
    worker.await_line("failed");
    // It is tried once more, and prints the same.
    go.open();
    let followed = follower.end();
    assert_eq!(followed.code, 1);
    assert!(
        followed.stdout.starts_with("begun\n") && followed.stdout.ends_with("go\n"),
        "{}",
        followed.stdout
    );
    assert!(followed.stderr.contains("a ended as failed: exit 3"), "{}", followed.stderr);
    end(worker);
}

#[test]
fn a_program_is_of_the_trace_of_its_message() {
    let story = story(json!({}));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = json!({ "traceparent": parent, "tracestate": "a=1" });
    story.publish(
        json!([{ "id": "a", "body": "", "headers": headers }, { "id": "b", "body": "", "priority": 1 }]),
    );
    story.work_off(&[], "echo ${TRACEPARENT-none} ${TRACESTATE-none}");
    assert_eq!(record(&story, "a")["output"], format!("{parent} a=1\n"));
    assert_eq!(record(&story, "b")["output"], "none none\n");
}

/// Ends a worker, and answers what it said.
fn end(worker: Worker) -> String {
    worker.signal(rustix::process::Signal::TERM);
    worker.end().stdout
}
