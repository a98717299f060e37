//! `overtake work`: programs side by side, and how they, the worker and the broker end.

use std::process::Stdio;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use crate::support::fifo::Fifo;
use crate::support::worker::{Story, ends, text};
use crate::support::{Broker, Run};

/// Whether a process is no more.
fn is_gone(pid: &str) -> bool {
    let pid = pid.parse().ok().and_then(Pid::from_raw).expect(pid);
    test_kill_process(pid) == Err(Errno::SRCH)
}

#[test]
fn slots_run_side_by_side() {
    let story = Story::begin();
    let (_ping, _pong) = (story.fifo("ping"), story.fifo("pong"));
    // Each waits for the other.
    story
        .publish(json!([{ "body": "echo > ping; read x < pong" }, { "body": "read x < ping; echo > pong" }]));
    let lines = story.work_off(&["--slots", "2"], ". /dev/stdin");
    assert_eq!(lines.last().expect("a line")["done"], 2);
}

#[test]
fn a_slot_that_is_free_takes_what_comes_while_another_works() {
    let story = Story::begin();
    let (begun, go) = (story.fifo("begun"), story.fifo("go"));
    let mut worker = story.work(&["--slots", "2", "--max", "2"], ". /dev/stdin");
    story.publish(json!([{ "id": "a", "body": "echo > begun; read x < go" }]));
    begun.read();
    story.publish(json!([{ "id": "b", "body": "true" }]));
    worker.await_line("done     b");
    go.open();
    worker.await_line("done     a");
    assert_eq!(worker.end().code, 0);
}

#[test]
fn no_more_than_so_many_are_taken() {
    let story = Story::begin();
    story.publish(json!([{ "body": "1" }, { "body": "2" }, { "body": "3" }]));
    let said = story.work(&["--slots", "3", "--max", "2"], "true").end().ok();
    assert!(said.ends_with("stopped: 2 done, 0 failed\n"), "{said}");
    assert_eq!(story.standing("ready"), ["seq-3 0"]);
}

#[test]
fn the_first_signal_waits_for_what_runs() {
    let story = Story::begin();
    let (begun, go) = (story.fifo("begun"), story.fifo("go"));
    story.publish(json!([{ "id": "a", "body": "" }, { "id": "b", "body": "" }]));
    let mut worker = story.work(&[], "echo > begun; read x < go");
    begun.read();
    worker.signal(Signal::INT);
    worker.await_notice("stopping: 1 program left to finish");
    go.open();
    let Run { code, stdout, .. } = worker.end();
    assert_eq!(code, 0);
    assert!(stdout.ends_with("stopped: 1 done, 0 failed\n"), "{stdout}");
    assert_eq!(story.standing("ready"), ["b 0"]);
}

#[test]
fn the_second_signal_ends_what_runs_with_all_its_children_and_puts_it_back() {
    let story = Story::begin();
    let begun = story.fifo("begun");
    story.publish(json!([{ "id": "a", "body": "" }]));
    // Neither heeds SIGTERM: what is ignored is ignored by children, too.
    let script = "trap '' TERM; sleep 1000 & echo $$ $! > begun; wait";
    let mut worker = story.work(&["--grace", "100ms"], script);
    let pids = begun.read();
    worker.signal(Signal::TERM);
    worker.await_notice("stopping");
    worker.signal(Signal::TERM);
    worker.await_notice("ending 1 program");
    let Run { code, stdout, .. } = worker.end();
    assert_eq!(code, 0);
    assert!(stdout.ends_with("stopped: 0 done, 0 failed, 1 put back\n"), "{stdout}");
    assert!(pids.split(' ').count() == 2 && pids.split(' ').all(is_gone), "{pids}");
    // A release is no delivery.
    assert_eq!(story.standing("ready"), ["a 0"]);
}

#[test]
fn the_third_signal_kills_and_waits_for_nothing() {
    let story = Story::begin();
    let begun = story.fifo("begun");
    story.publish(json!([{ "id": "a", "body": "" }]));
    let mut worker =
        story.work(&["--grace", "1h"], "trap '' TERM; echo $$ > begun; while :; do sleep 1000; done");
    let pid = begun.read();
    for said in ["stopping", "ending", "leaving"] {
        worker.signal(Signal::TERM);
        worker.await_notice(said);
    }
    let Run { code, stderr, .. } = worker.end();
    assert_eq!(code, 1);
    assert!(stderr.contains("error: 1 message left as they were"), "{stderr}");
    assert!(is_gone(&pid), "{pid}");
    assert_eq!(story.standing("leased"), ["a 1"]);
}

#[test]
fn what_a_program_leaves_behind_ends_with_it() {
    let story = Story::begin();
    story.publish(json!([{ "body": "" }]));
    let lines = story.work_off(&[], "sleep 1000 & echo $!");
    let pid = ends(&lines)[0]["output"].as_str().expect("output").trim().to_owned();
    assert!(is_gone(&pid), "{pid}");
}

#[test]
fn what_leaves_its_group_is_left_alone_and_not_waited_for() {
    let story = Story::begin();
    let _away = story.fifo("away");
    story.publish(json!([{ "body": "" }]));
    let script = "setsid sh -c 'echo $$ > away; exec sleep 1000' & read pid < away; echo $pid";
    let lines = story.work_off(&[], script);
    let pid = ends(&lines)[0]["output"].as_str().expect("output").trim().to_owned();
    assert!(!is_gone(&pid), "{pid}");
    let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::KILL).expect("it runs");
}

#[test]
fn lines_that_nobody_reads_any_more_stop_the_worker() {
    let story = Story::begin();
    story.publish(json!([{ "body": "" }, { "body": "" }]));
    let mut command = story.broker.command(&["work", "jobs", "--", "true"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(story.standing("leased"), [""; 0]);
}

#[test]
fn a_program_whose_message_is_gone_is_ended() {
    let story = Story::begin();
    let begun = story.fifo("begun");
    story.publish(json!([{ "id": "a", "body": "" }]));
    let mut worker = story.work(&["--lease", "1s", "--max", "1"], "echo $$ > begun; exec sleep 1000");
    let pid = begun.read();
    story.broker.run(&["remove", "jobs", "a"]).ok();
    worker.await_line("removed  a");
    assert!(is_gone(&pid), "{pid}");
    let said = worker.end().ok();
    assert!(said.ends_with("stopped: 0 done, 0 failed, 1 removed\n"), "{said}");
}

#[test]
fn a_worker_ends_when_its_queue_is_deleted_and_names_it() {
    let story = Story::begin();
    let begun = story.fifo("begun");
    story.publish(json!([{ "id": "a", "body": "" }]));
    let mut worker = story.work(&["--lease", "1s"], "echo $$ > begun; exec sleep 1000");
    let pid = begun.read();
    story.broker.run(&["queue", "delete", "jobs", "--yes"]).ok();
    worker.await_line("removed  a");
    assert!(is_gone(&pid), "{pid}");
    let run = worker.end();
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("no queue `jobs` in vhost `/`"), "{run:?}");
}

#[test]
fn a_broker_that_is_killed_and_comes_back_costs_nothing_and_repeats_nothing() {
    let story = Story::begin();
    let begun = [story.fifo("begun-1"), story.fifo("begun-2")];
    let go = [story.fifo("go-1"), story.fifo("go-2")];
    let ids: Vec<_> = (1..=20).map(|n| format!("{n}")).collect();
    let of = |ids: &[String]| ids.iter().map(|id| json!({ "id": id, "body": "" })).collect();
    story.publish(of(&ids[..2]));
    let script = "case $OVERTAKE_ID in 1|2) echo > begun-$OVERTAKE_ID; read x < go-$OVERTAKE_ID ;; esac
        echo $OVERTAKE_ID >> result";
    let mut worker = story.work(&["--slots", "2", "--lease", "1h", "--until-empty"], script);
    begun.iter().for_each(|begun| drop(begun.read()));
    // What is confirmed is durable, and so is all that happened before: the leases.
    story.publish(of(&ids[2..]));

    let Story { broker, dir } = story;
    let address = broker.url.trim_start_matches("http://").to_owned();
    broker.kill();
    // Both end while there is nobody to tell.
    go.iter().for_each(Fifo::open);
    worker.await_notice("cannot reach the broker");
    let _broker = Broker::start_with(&dir.path().join("data"), &["--http", &address]);
    worker.await_notice("the broker is back");
    let said = worker.end().ok();
    assert!(said.ends_with("stopped: 20 done, 0 failed\n"), "{said}");
    let mut seen: Vec<_> = text(&dir.path().join("result")).lines().map(str::to_owned).collect();
    seen.sort_by_key(|id| id.parse::<u32>().expect("a number"));
    assert_eq!(seen, ids);
}
