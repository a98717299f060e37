//! `overtake work`: what programs are told, and what becomes of their messages.

use serde_json::{Value, json};

use crate::support;
use crate::support::Run;
use crate::support::worker::{Story, Worker, ends, text};

fn id_and(end: &Value, key: &str) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("{} {}", text(&end["id"]), text(&end[key]))
}

#[test]
fn the_body_is_read_and_the_properties_are_in_the_environment() {
    let story = Story::begin();
    story.publish(json!([{
        "id": "a", "body": "the body", "priority": 7, "key": "k", "content_type": "text/plain",
        "headers": { "x-trace": "t", "n": 5 },
    }]));
    let lines = story.work_off(&[], "cat; echo; env | grep ^OVERTAKE_ | sort");
    let output = lines[1]["output"].as_str().expect("output");
    let is_steady = |line: &&str| !line.contains("_URL=") && !line.contains("PUBLISHED_AT=");
    let seen: Vec<_> = output.lines().filter(is_steady).collect();
    let expect = [
        "the body",
        "OVERTAKE_ATTEMPT=1",
        "OVERTAKE_BYTES=48",
        "OVERTAKE_CONTENT_TYPE=text/plain",
        "OVERTAKE_GIVEN_PRIORITY=7",
        "OVERTAKE_HEADER_N=5",
        "OVERTAKE_HEADER_X_TRACE=t",
        "OVERTAKE_ID=a",
        "OVERTAKE_KEY=k",
        "OVERTAKE_LANE=7",
        "OVERTAKE_LEVEL=7",
        "OVERTAKE_PRIORITY=7",
        "OVERTAKE_QUEUE=jobs",
        "OVERTAKE_REDELIVERED=false",
        "OVERTAKE_SEQ=1",
        "OVERTAKE_VHOST=/",
    ];
    assert_eq!(seen, expect);
    assert_eq!(lines[1]["exit_code"], 0);
    assert_eq!(lines[2]["done"], 1);
}

#[test]
fn a_program_knows_nothing_of_another_message_and_how_to_reach_the_broker() {
    let story = Story::begin();
    story.publish(json!([{ "body": "a" }]));
    let mut command = story.broker.command(&["work", "jobs", "--until-empty", "--json", "--", "sh", "-c"]);
    command.arg("echo \"$OVERTAKE_KEY-$OVERTAKE_HEADER_X-$OVERTAKE_URL\"");
    command.env("OVERTAKE_KEY", "outer").env("OVERTAKE_HEADER_X", "outer");
    let said = Worker::start(command).end().ok();
    let expect = format!("--{}", story.broker.url);
    assert!(said.contains(&expect), "{said}");
}

#[test]
fn one_slot_works_in_the_order_of_the_queue() {
    let story = Story::begin();
    story.publish(json!([
        { "body": "1", "priority": 1 },
        { "body": "9", "priority": 9 },
        { "body": "5", "priority": 5 },
        { "body": "9b", "priority": 9 },
    ]));
    story.work_off(&[], "cat >> order; echo >> order");
    assert_eq!(text(&story.path("order")), "9\n9b\n5\n1\n");
}

#[test]
fn exit_codes_and_signals_say_what_becomes_of_a_message() {
    let story = Story::begin();
    story.publish(json!([
        { "id": "a", "body": "exit 0" },
        { "id": "b", "body": "exit 1" },
        { "id": "c", "body": "exit 65" },
        { "id": "d", "body": "kill -9 $$" },
    ]));
    let lines = story.work_off(&["--reject-on", "64,65", "--delay", "1h"], ". /dev/stdin");
    let ends = ends(&lines);
    let seen = |key: &str| ends.iter().map(|end| id_and(end, key)).collect::<Vec<_>>();
    assert_eq!(seen("outcome"), ["a done", "b failed", "c rejected", "d failed"]);
    assert_eq!(seen("exit_code"), ["a 0", "b 1", "c 65", "d null"]);
    assert_eq!(seen("error"), ["a null", "b exit 1", "c exit 65", "d signal 9"]);
    assert_eq!(story.standing("delayed"), ["b 1", "d 1"]);
    assert_eq!(story.standing("dead"), ["c 1"]);
    assert_eq!(story.standing("ready"), [""; 0]);
}

#[test]
fn what_fails_is_tried_again_until_the_queue_has_had_enough() {
    let story = Story::with(&json!({ "delivery_limit": 3 }));
    story.publish(json!([{ "id": "a", "body": "" }]));
    let lines = story.work_off(&[], "echo $OVERTAKE_ATTEMPT $OVERTAKE_REDELIVERED; exit 1");
    let outputs: Vec<_> = ends(&lines).iter().map(|end| end["output"].as_str().expect("output")).collect();
    assert_eq!(outputs, ["1 false\n", "2 true\n", "3 true\n"]);
    assert_eq!(story.standing("dead"), ["a 3"]);
}

#[test]
fn the_end_of_what_is_printed_is_kept_in_the_order_in_which_it_came() {
    let story = Story::begin();
    story.publish(
        json!([{ "id": "a", "body": "seq 1 100000" }, { "id": "b", "body": "echo 1; echo 2 >&2; echo 3" }]),
    );
    let lines = story.work_off(&["--keep", "1KiB"], ". /dev/stdin");
    let ends = ends(&lines);
    let output = ends[0]["output"].as_str().expect("output");
    assert!(output.len() <= 1_024 && output.ends_with("\n99999\n100000\n"), "{output}");
    assert_eq!(ends[1]["output"], "1\n2\n3\n");
}

#[test]
fn a_long_body_may_be_read_or_not() {
    let story = Story::begin();
    let body = "x".repeat(1_000_000);
    for id in ["a", "b", "c"] {
        story.publish(json!([{ "id": id, "body": body }]));
    }
    let script = "case $OVERTAKE_ID in a) ;; b) cat ;; c) exec 0<&-; echo closed ;; esac";
    let lines = story.work_off(&[], script);
    let ends = ends(&lines);
    assert!(ends.iter().all(|end| end["outcome"] == "done"), "{ends:?}");
    assert_eq!(ends[0]["output"], Value::Null);
    assert_eq!(ends[1]["output"], "x".repeat(8 << 10));
    assert_eq!(ends[2]["output"], "closed\n");
}

#[test]
fn a_program_that_went_away_is_a_failed_attempt() {
    let story = Story::begin();
    let program = story.path("program");
    std::fs::copy("/bin/true", &program).expect("a copy");
    story.publish(json!([{ "id": "a", "body": "" }]));
    let mut command = story.broker.command(&["work", "jobs", "--max", "2", "--json", "--delay", "1h", "--"]);
    command.arg(&program);
    let mut worker = Worker::start(command);
    worker.await_line("\"ended\"");
    std::fs::remove_file(&program).expect("it was there");
    story.publish(json!([{ "id": "b", "body": "" }]));
    let said = worker.end().ok();
    assert!(said.contains("\"error\":\"cannot be started: No such file or directory\""), "{said}");
    assert_eq!(story.standing("delayed"), ["b 1"]);
}

#[test]
fn lines_are_for_people_and_what_programs_print_is_passed_on_where_it_is_wanted() {
    let story = Story::begin();
    story.publish(json!([{ "id": "a", "body": "", "priority": 3 }]));
    let Run { code, stdout, stderr } =
        story.work(&["--max", "1", "--show"], "echo one; printf '\\033[31mtwo' >&2; exit 3").end();
    assert_eq!((code, stderr.as_str()), (0, "a: one\na: \\u{1b}[31mtwo\n"));
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(lines[0], "started  a  priority 3");
    let (ended, took) = lines[1].split_once(", ").expect("a comma");
    assert!(ended == "failed   a  priority 3" && took.ends_with("s: exit 3"), "{stdout}");
    assert_eq!(lines[2], "stopped: 0 done, 1 failed");
}

#[test]
fn a_program_that_cannot_be_run_is_known_before_anything_is_leased() {
    let story = Story::begin();
    story.publish(json!([{ "id": "a", "body": "" }]));
    let plain = story.path("plain");
    std::fs::write(&plain, "").expect("a file");
    let plain = plain.to_str().expect("utf-8");
    for (program, why) in [
        ("no-such-program", "cannot run `no-such-program`: there is no such program"),
        ("/no/such/program", "cannot run `/no/such/program`: there is no such program"),
        (plain, "it may not be executed"),
        ("/tmp", "there is no such program"),
    ] {
        let run = story.broker.run(&["work", "jobs", "--", program]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(why), "{run:?}");
    }
    assert_eq!(story.standing("ready"), ["a 0"]);
}

#[test]
fn nothing_to_do_is_done_at_once_where_that_is_wanted() {
    let story = Story::begin();
    let run = story.broker.run(&["work", "jobs", "--until-empty", "--", "true"]);
    assert_eq!(run.picture(), "exit 0\nstopped: 0 done, 0 failed\n");
}

#[test]
fn a_queue_that_is_not_there_and_a_broker_that_is_not_are_errors() {
    let story = Story::begin();
    let run = story.broker.run(&["work", "jbos", "--", "true"]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.is_empty() && run.stderr.contains("404 no-such-queue"), "{run:?}");
    let Story { broker, dir: _dir } = story;
    let url = broker.url.clone();
    broker.kill();
    let run = support::run(&["--url", &url, "work", "jobs", "--", "true"], b"");
    assert_eq!(run.code, 69, "{run:?}");
}
