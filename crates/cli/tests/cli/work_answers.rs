//! `overtake work` and what a broker seldom says.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support;
use crate::support::fake::{Fake, Told};
use crate::support::fifo::Fifo;
use crate::support::worker::Worker;

/// The one message there is, for the first who asks.
fn leased(asked: &AtomicU32) -> Told {
    let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
    let message = json!({ "id": "a", "receipt": "r", "priority": 4, "delivery_count": 1, "body": "" });
    Some((200, json!({ "messages": if first { vec![message] } else { Vec::new() } })))
}

fn ok() -> Told {
    Some((200, json!({ "results": [{ "receipt": "r", "ok": true }] })))
}

fn conflict(code: &str) -> Told {
    Some((409, json!({ "title": "no", "status": 409, "code": code, "hint": "" })))
}

fn work(fake: &Fake, options: &[&str], script: &str) -> Worker {
    let mut command = support::overtake();
    command.args(["--url", &fake.url, "work", "jobs", "--until-empty"]).args(options);
    command.args(["--", "sh", "-c", script]);
    Worker::start(command)
}

/// What is reported of a program that printed nothing.
fn report(exit_code: impl Into<Value>, error: impl Into<Value>) -> Value {
    json!({ "exit_code": exit_code.into(), "error": error.into(), "output": null })
}

#[test]
fn a_lease_is_extended_while_its_program_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let go = Fifo::make(dir.path().join("go"));
    let leases = AtomicU32::new(0);
    let fake = Fake::start(move |what, _| if what == "leases" { leased(&leases) } else { ok() });
    let worker = work(&fake, &["--lease", "1s", "--name", "w"], &format!("read x < {}", go.path().display()));
    let lease = json!({ "max": 1, "wait_ms": 0, "visibility_timeout_ms": 1_000, "worker": "w" });
    assert_eq!(fake.await_asked("leases"), lease);
    for _ in 0..3 {
        let extend = json!({ "receipts": ["r"], "visibility_timeout_ms": 1_000, "wait_ms": 333 });
        assert_eq!(fake.await_asked("extend"), extend);
    }
    go.open();
    assert_eq!(
        fake.await_asked("settle"),
        json!({ "receipts": ["r"], "how": "ack", "report": report(0, Value::Null) })
    );
    worker.end().ok();
}

#[test]
fn a_message_that_is_wanted_back_ends_its_program_and_is_rejected() {
    let leases = AtomicU32::new(0);
    let fake = Fake::start(move |what, _| match what {
        "leases" => leased(&leases),
        "extend" => conflict("cancel-asked"),
        _ => ok(),
    });
    let mut worker = work(&fake, &["--lease", "1s"], "exec sleep 1000");
    worker.await_line("cancelled a  priority 4");
    assert_eq!(
        fake.await_asked("settle"),
        json!({ "receipts": ["r"], "how": "reject", "report": report(Value::Null, "cancelled") })
    );
    let said = worker.end().ok();
    assert!(said.ends_with("stopped: 0 done, 0 failed, 1 cancelled\n"), "{said}");
}

#[test]
fn a_settlement_whose_answer_was_lost_is_sent_again_and_stale_then_means_done() {
    let (leases, settles) = (AtomicU32::new(0), AtomicU32::new(0));
    let fake = Fake::start(move |what, _| match what {
        "leases" => leased(&leases),
        "settle" if settles.fetch_add(1, Ordering::SeqCst) == 0 => None,
        _ => conflict("stale-receipt"),
    });
    let said = work(&fake, &[], "true").end();
    assert!(said.stdout.ends_with("stopped: 1 done, 0 failed\n"), "{said:?}");
    assert_eq!(said.stderr.lines().count(), 2, "{said:?}");
    let sent: Vec<Value> = (0..2).map(|_| fake.await_asked("settle")).collect();
    assert_eq!(sent[0], sent[1]);
}

/// The broker answers only when it hears that the request is over.
#[test]
fn an_idle_worker_stops_at_once_and_puts_back_what_comes_in_that_moment() {
    let leases = AtomicU32::new(0);
    let fake =
        Fake::start_with("leases", move |what, _| if what == "leases" { leased(&leases) } else { ok() });
    let mut command = support::overtake();
    command.args(["--url", &fake.url, "work", "jobs", "--", "true"]);
    let mut worker = Worker::start(command);
    fake.await_asked("leases");
    worker.signal(Signal::INT);
    worker.await_notice("stopping");
    assert_eq!(fake.await_asked("settle"), json!({ "receipts": ["r"], "how": "release" }));
    let said = worker.end();
    assert_eq!((said.code, &*said.stdout), (0, "stopped: 0 done, 0 failed\n"), "{said:?}");
}

#[test]
fn a_settlement_that_is_stale_at_once_is_somebody_elses() {
    let leases = AtomicU32::new(0);
    let fake = Fake::start(
        move |what, _| {
            if what == "leases" { leased(&leases) } else { conflict("stale-receipt") }
        },
    );
    let said = work(&fake, &[], "true").end().ok();
    assert!(said.ends_with("stopped: 0 done, 0 failed, 1 lost\n"), "{said}");
}

#[test]
fn a_broker_that_gives_out_nothing_and_takes_settlements_is_spoken_of_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let go = Fifo::make(dir.path().join("go"));
    let leases = AtomicU32::new(0);
    let fake = Fake::start(move |what, _| match what {
        "leases" if leases.load(Ordering::SeqCst) == 0 => leased(&leases),
        "leases" => Some((503, json!({ "title": "drained", "status": 503, "code": "draining", "hint": "" }))),
        _ => ok(),
    });
    let script = format!("read x < {}", go.path().display());
    let worker = work(&fake, &["--lease", "1s", "--slots", "2"], &script);
    for _ in 0..2 {
        fake.await_asked("leases");
        fake.await_asked("extend");
    }
    go.open();
    fake.await_asked("settle");
    fake.await_asked("leases");
    worker.signal(Signal::TERM);
    let said = worker.end();
    assert!(said.stdout.ends_with("stopped: 1 done, 0 failed\n"), "{said:?}");
    let notices: Vec<_> = said.stderr.lines().filter(|line| !line.starts_with("stopping")).collect();
    assert_eq!(notices, ["drained (503 draining); asking again"]);
}
