//! Changes of more messages than one step of the broker may change, as the command line waits for them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::fake::Fake;
use crate::support::worker::Worker;
use crate::support::{Broker, overtake};

/// A job that removes 5,000 messages, as it is when so many are gone.
fn job(changed: u64, state: &str) -> Value {
    json!({
        "id": 17, "queue": "q", "change": "remove", "filter": {}, "state": state, "changed": changed, "looked": changed,
        "total": 5_000, "began_at": "2026-11-28T03:00:00.000Z"
    })
}

fn remove(fake: &Fake) -> Worker {
    let mut command = overtake();
    command.args(["--url", &fake.url, "remove", "q", "--all", "--yes"]);
    Worker::start(command)
}

#[test]
fn a_command_waits_until_its_job_is_over() {
    let asked = AtomicU64::new(0);
    let fake = Fake::start(move |what, _| match what {
        "remove?wait_ms=50" => Some((202, job(1_000, "running"))),
        "17?wait_ms=1000" => match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Some((200, job(2_000, "running"))),
            _ => Some((200, job(4_999, "done"))),
        },
        _ => None,
    });
    let ended = remove(&fake).end();
    assert_eq!(ended.picture(), "exit 0\n4,999 messages removed\n");
}

#[test]
fn ctrl_c_cancels_the_job_that_is_waited_for() {
    let fake = Fake::start(move |what, _| match what {
        "remove?wait_ms=50" => Some((202, job(1_000, "running"))),
        "17?wait_ms=1000" => Some((200, job(2_000, "running"))),
        "17" => Some((200, job(2_500, "cancelled"))),
        _ => None,
    });
    let command = remove(&fake);
    fake.await_asked("17?wait_ms=1000");
    command.signal(Signal::INT);
    fake.await_asked("17");
    assert_eq!(
        command.end().picture(),
        "exit 1\n\
         error: job 17 is cancelled: 2,500 messages changed, 2,500 of 5,000 looked at\n \
         hint: what was changed stays changed; the same command goes on with what is left\n"
    );
}

/// As when somebody sees the mistake at once.
#[test]
fn ctrl_c_before_the_job_has_a_number_cancels_it_too() {
    let (go, wait) = mpsc::sync_channel(1);
    let wait = Mutex::new(wait);
    let fake = Fake::start(move |what, _| match what {
        "remove?wait_ms=50" => {
            wait.lock().expect("nobody panicked").recv().expect("the signal is sent");
            Some((202, job(1_000, "running")))
        }
        "17?wait_ms=1000" => Some((200, job(2_000, "running"))),
        "17" => Some((200, job(2_500, "cancelled"))),
        _ => None,
    });
    let command = remove(&fake);
    fake.await_asked("remove?wait_ms=50");
    command.signal(Signal::INT);
    go.send(()).expect("it is waited for");
    let ended = command.end();
    assert!(ended.code == 1 && ended.stderr.starts_with("error: job 17 is cancelled: 2,500"), "{ended:?}");
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_the_broker() {
    let (go, wait) = mpsc::sync_channel::<()>(1);
    let wait = Mutex::new(wait);
    let fake = Fake::start(move |what, _| {
        let _ = (what, wait.lock().expect("nobody panicked").recv());
        None
    });
    let mut command = remove(&fake);
    fake.await_asked("remove?wait_ms=50");
    // Two that come at once may be one.
    let ended = loop {
        command.signal(Signal::INT);
        if command.is_over() {
            break command.end();
        }
    };
    drop(go);
    assert_eq!(
        ended.picture(),
        "exit 1\n\
         error: stopped before the broker answered: it may go on with the change\n \
         hint: see whether it does: overtake job list\n"
    );
}

#[test]
fn whoever_loses_the_broker_is_told_that_the_job_goes_on() {
    let fake = Fake::start(move |what, _| match what {
        "remove?wait_ms=50" => Some((202, job(1_000, "running"))),
        _ => None,
    });
    let ended = remove(&fake).end();
    let hint = "hint: the broker goes on with it; see how far it is: overtake job show 17\n";
    assert!(ended.code == 69 && ended.stderr.ends_with(hint), "{ended:?}");
}

#[test]
fn a_broker_of_an_earlier_version_answers_when_it_is_done() {
    let unknown = json!({ "title": "no", "status": 422, "code": "parameter-unknown", "hint": "" });
    let fake = Fake::start(move |what, _| match what {
        "remove?wait_ms=50" => Some((422, unknown.clone())),
        "remove" => Some((200, json!({ "count": 7 }))),
        _ => None,
    });
    assert_eq!(remove(&fake).end().picture(), "exit 0\n7 messages removed\n");
}

#[test]
fn jobs_are_listed_shown_and_cancelled() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = Broker::start_with(&dir.path().join("data"), &["--queue", "q"]);
    assert_eq!(broker.run(&["job", "list"]).ok(), "no jobs\n");
    let lines = "x\n".repeat(6_000);
    broker.feed(&["publish", "q", "--lines", "-"], lines.as_bytes()).ok();
    assert_eq!(
        broker.run(&["reprioritise", "q", "--all", "--to", "7"]).ok(),
        "6,000 messages now with priority 7\n"
    );
    let listed = broker.run(&["job", "list"]).ok();
    let row: Vec<&str> = listed.lines().nth(1).expect("a job").split_whitespace().collect();
    assert_eq!(row[..7], ["1", "q", "reprioritise", "done", "6,000", "6,000", "6,000"], "{listed}");
    let shown = broker.run(&["job", "show", "1"]).ok();
    for line in [
        "job 1",
        "  queue: q",
        "  change: reprioritise",
        "  priority: 7",
        "  messages: all",
        "  state: done",
        "  so far: 6,000 messages changed, 6,000 of 6,000 looked at",
    ] {
        assert!(shown.lines().any(|there| there == line), "{line}: {shown}");
    }
    assert_eq!(
        broker.run(&["job", "cancel", "1"]).ok(),
        "job 1 was over before (done): 6,000 messages changed, 6,000 of 6,000 looked at\n"
    );
    let missing = broker.run(&["job", "show", "2"]);
    assert!(missing.code == 1 && missing.stderr.contains("there is no job `2`"), "{missing:?}");
    broker.kill();
    let broker = Broker::start(&dir.path().join("data"));
    assert_eq!(broker.run(&["job", "list"]).ok(), listed, "a restart forgets none");
}
