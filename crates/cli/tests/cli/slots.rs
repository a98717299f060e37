//! Slots: how many of a queue are out at once, whatever happens to those who hold them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support;
use crate::support::Broker;
use crate::support::http::ask;
use crate::support::worker::{Story, Worker};

/// The most urgent first.
const LEVELS: [&str; 5] = ["critical", "high", "normal", "low", "background"];

/// Leases so many of `jobs` that are there now; their receipts.
fn lease(url: &str, max: u32) -> Vec<Value> {
    let leased = ask(url, "POST", "/v1/queues/jobs/leases", &json!({ "max": max, "wait_ms": 0 }));
    leased.expect(200)["messages"].as_array().expect("messages").clone()
}

fn settle(url: &str, leased: &[Value]) {
    let receipts: Vec<&Value> = leased.iter().map(|message| &message["receipt"]).collect();
    let wanted = json!({ "receipts": receipts, "how": "ack" });
    let settled = ask(url, "POST", "/v1/queues/jobs/settle", &wanted).expect(200);
    let results = settled["results"].as_array().expect("results");
    assert!(results.len() == leased.len() && results.iter().all(|one| one["ok"] == true), "{settled}");
}

/// How full `jobs` is.
fn fullness(url: &str) -> Value {
    ask(url, "GET", "/api/v1/admin/executions/queue?queue=jobs", &Value::Null).expect(200)
}

/// Messages of `jobs` that are out.
fn out(url: &str) -> u64 {
    fullness(url)["active_count"].as_u64().expect("a number")
}

fn is_busy(fullness: &Value) -> bool {
    fullness["queue_depth"] != 0 || fullness["active_count"] != 0
}

/// The same store and the same port once more.
fn again(broker: Broker, story_dir: &Path) -> Broker {
    let address = broker.url.strip_prefix("http://").expect("a url").to_owned();
    broker.kill();
    Broker::start_with(&story_dir.join("data"), &["--http", &address])
}

#[test]
fn a_broker_that_is_killed_with_all_slots_taken_knows_each_of_them() {
    let Story { broker, dir } =
        Story::with(&json!({ "scheme": "named", "max_active": 10, "history": "past" }));
    ask(&broker.url, "PUT", "/v1/queues/past", &json!({ "order": "fifo" })).expect(201);
    let all: Vec<Value> = (0..30).map(|at| json!({ "id": format!("m{at}"), "body": "" })).collect();
    ask(&broker.url, "POST", "/v1/queues/jobs/messages", &json!({ "messages": all })).expect(201);
    let held = lease(&broker.url, 30);
    assert_eq!(held.len(), 10);

    let broker = again(broker, dir.path());
    assert_eq!((out(&broker.url), lease(&broker.url, 30).len()), (10, 0));
    settle(&broker.url, &held[..3]);
    let more = lease(&broker.url, 30);
    assert_eq!(more.len(), 3);

    let broker = again(broker, dir.path());
    assert_eq!((out(&broker.url), lease(&broker.url, 30).len()), (10, 0));
    settle(&broker.url, &[&held[3..], &more].concat());
    assert_eq!(lease(&broker.url, 30).len(), 10);
    assert_eq!(out(&broker.url), 10);
}

/// A lease of the only slot is told once it is durable, so whoever was told keeps the slot, however soon after that the broker is killed.
#[test]
fn the_holder_of_the_only_slot_keeps_it_through_every_kill() {
    const ROUNDS: usize = 16;
    let Story { mut broker, dir } =
        Story::with(&json!({ "max_active": 1, "visibility_timeout_ms": 3_600_000 }));
    let publish = |url: &str, ids: [String; 2]| {
        let messages = ids.map(|id| json!({ "id": id, "body": "" }));
        ask(url, "POST", "/v1/queues/jobs/messages", &json!({ "messages": messages })).expect(201);
    };
    for round in 0..ROUNDS {
        let ids = || [format!("first{round}"), format!("second{round}")];
        let url = broker.url.clone();
        let held = if round % 2 == 0 {
            publish(&url, ids());
            lease(&url, 2)
        } else {
            // Whoever waits is told of a lease that is made in the commit of the publish.
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let wanted = json!({ "max": 2, "wait_ms": 60_000 });
                    ask(&url, "POST", "/v1/queues/jobs/leases", &wanted).expect(200)["messages"].clone()
                });
                publish(&url, ids());
                waiting.join().expect("no panic").as_array().expect("messages").clone()
            })
        };
        broker = again(broker, dir.path());
        assert_eq!(held.len(), 1, "there is one slot");
        assert_eq!(lease(&broker.url, 2), Vec::<Value>::new(), "round {round}: the slot is taken");
        let path = format!("/v1/queues/jobs/messages/first{round}");
        let seen = ask(&broker.url, "GET", &path, &Value::Null).expect(200);
        assert_eq!((&seen["status"], &seen["deadline"]), (&json!("leased"), &held[0]["deadline"]), "{seen}");
        settle(&broker.url, &held);
        let next = lease(&broker.url, 2);
        assert_eq!(next.len(), 1, "round {round}: the slot is free");
        settle(&broker.url, &next);
    }
}

/// What the clients do together.
#[derive(Default)]
struct Together {
    holding: usize,
    most: usize,
    done: usize,
}

#[test]
fn sixty_four_clients_never_hold_more_than_the_cap() {
    const CAP: usize = 7;
    const MESSAGES: usize = 2_000;
    let story = Story::with(&json!({ "max_active": CAP }));
    let all: Vec<Value> = (0..MESSAGES).map(|at| json!({ "body": "", "priority": at % 10 })).collect();
    story.publish(json!(all));
    let url = &*story.broker.url;
    let (together, changed) = (Mutex::new(Together::default()), Condvar::new());
    let work_on = |leased: &[Value]| {
        let mut now = together.lock().expect("no panic");
        now.holding += leased.len();
        now.most = now.most.max(now.holding);
        changed.notify_all();
        // Nobody gives back before all places are taken, but at the end.
        let is_alone =
            |now: &mut Together| !now.holding.is_multiple_of(CAP) && now.done + now.holding < MESSAGES;
        now = changed.wait_while(now, is_alone).expect("no panic");
        (now.holding, now.done) = (now.holding - leased.len(), now.done + leased.len());
        drop(now);
        settle(url, leased);
    };
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                while together.lock().expect("no panic").done < MESSAGES {
                    // Others may be served before it again and again, so it may wait long for its places to be taken.
                    let wanted = json!({ "max": 1, "wait_ms": 200, "visibility_timeout_ms": 600_000 });
                    let leased = ask(url, "POST", "/v1/queues/jobs/leases", &wanted).expect(200);
                    let leased = leased["messages"].as_array().expect("messages");
                    if !leased.is_empty() {
                        work_on(leased);
                    }
                }
            });
        }
    });
    let together = together.into_inner().expect("no panic");
    assert_eq!((together.most, together.done), (CAP, MESSAGES));
}

#[test]
fn long_background_work_leaves_the_slots_that_are_kept_for_others() {
    let story = Story::with(&json!({
        "scheme": "named", "max_active": 10, "lanes": { "background": { "max_active": 6 } },
    }));
    let long: Vec<Value> = (0..1_000)
        .map(|at| json!({ "id": format!("long{at}"), "priority": "background", "body": "" }))
        .collect();
    story.publish(json!(long));
    let script = "case $OVERTAKE_ID in long*) exec sleep 1000;; esac";
    let mut worker = story.work(&["--slots", "10", "--grace", "0s"], script);
    for at in 0..6 {
        worker.await_line(&format!("started  long{at} "));
    }
    for at in 0..20 {
        story.publish(json!([{ "id": format!("urgent{at}"), "priority": "critical", "body": "" }]));
        worker.await_line(&format!("started  urgent{at} "));
        worker.await_line(&format!("done     urgent{at} "));
        assert_eq!(out(&story.broker.url), 6);
    }
    worker.signal(Signal::TERM);
    worker.await_notice("once more ends them");
    worker.signal(Signal::TERM);
    worker.end();
}

/// What the `at`-th of two thousand programs is, and does.
fn program(at: usize) -> (&'static str, String) {
    match at % 20 {
        0 if at.is_multiple_of(200) => ("hangs", "exec sleep 1000".into()),
        1 | 2 => ("fails", "exit 3".into()),
        3..=8 => ("counts", format!("sha256sum < file{}", at % 7)),
        _ => ("sleeps", format!("sleep 0.0{}", at % 3)),
    }
}

const ATTEMPTS: u64 = 6;
const SLOTS: u64 = 8;

#[test]
fn two_thousand_programs_end_once_each_whoever_is_killed() {
    let mut story = Story::with(&json!({
        "scheme": "named", "max_active": SLOTS, "history": "past", "delivery_limit": ATTEMPTS,
        "run_timeout_ms": 5_000, "visibility_timeout_ms": 2_000,
    }));
    ask(&story.broker.url, "PUT", "/v1/queues/past", &json!({ "order": "fifo" })).expect(201);
    for at in 0..7_usize {
        std::fs::write(story.path(&format!("file{at}")), vec![at as u8; 100_000 * at])
            .expect("it can be written");
    }
    let all = (0..2_000).map(|at| {
        let (kind, script) = program(at);
        json!({ "id": format!("{kind}{at}"), "priority": LEVELS[at * 7 % 5], "body": script })
    });
    story.publish(json!(all.collect::<Vec<_>>()));

    let url = story.broker.url.clone();
    let (is_over, asking) = (AtomicBool::new(false), Mutex::new(()));
    let worker = |story: &Story| story.work(&["--slots", "8", "--lease", "2s", "--json"], ". /dev/stdin");
    let (mut first, mut second) = (worker(&story), worker(&story));
    let most = std::thread::scope(|scope| {
        let over = Over(&is_over);
        let watch = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::SeqCst) {
                let _asked = asking.lock();
                most = most.max(out(&url));
            }
            most
        });
        await_ends(&mut first, 250);
        first.signal(Signal::KILL);
        drop(first);
        await_ends(&mut second, 400);
        let not_asked = asking.lock();
        let dir = story.dir.path().to_owned();
        let broker = std::mem::replace(&mut story.broker, Broker::spawn(support::overtake()));
        story.broker = again(broker, &dir);
        drop(not_asked);
        // Both of one moment: what goes back into the queue is in neither of two answers.
        while is_busy(&fullness(&url)) {}
        drop(over);
        second.signal(Signal::TERM);
        let said = second.end();
        assert_eq!(said.code, 0, "{}", said.stderr);
        watch.join().expect("no panic")
    });
    assert!((1..=SLOTS).contains(&most), "{most} at once");
    judge(&story);
}

/// Says so when it is dropped, also where something fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn await_ends(worker: &mut Worker, count: usize) {
    for _ in 0..count {
        worker.await_line("\"ended\"");
    }
}

/// What `sha256sum` prints of a file that it reads from standard input.
fn sha256sum(file: &Path) -> String {
    let file = File::open(file).expect("it was written");
    let output = Command::new("sha256sum").stdin(file).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text")
}

/// Each ended once, as it must; none began before a more urgent one that waited all the time; never were too many running.
fn judge(story: &Story) {
    let url = &story.broker.url;
    let (mut cursor, mut records) = (String::new(), BTreeMap::new());
    loop {
        let path = format!("/v1/queues/past/messages?order=published&limit=1000{cursor}");
        let page = ask(url, "GET", &path, &Value::Null).expect(200);
        for message in page["messages"].as_array().expect("messages") {
            let id = message["id"].as_str().expect("an id").to_owned();
            assert!(records.insert(id, message["record"].clone()).is_none(), "{message} is there twice");
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(records.len(), 2_000);
    let left = fullness(url);
    assert_eq!((&left["queue_depth"], &left["active_count"]), (&json!(0), &json!(0)), "{left}");

    let sums: Vec<String> = (0..7).map(|at| sha256sum(&story.path(&format!("file{at}")))).collect();
    let mut waited: Vec<(usize, usize, &str)> = Vec::new();
    let mut running: Vec<(&str, i32)> = Vec::new();
    for at in 0..2_000 {
        let (kind, _) = program(at);
        let id = format!("{kind}{at}");
        let record = &records[&id];
        let expected = match kind {
            "fails" => ("failed", json!(3)),
            "hangs" => ("timeout", Value::Null),
            _ => ("completed", json!(0)),
        };
        assert_eq!(
            (record["ending"].as_str(), &record["exit_code"]),
            (Some(expected.0), &expected.1),
            "{id}: {record}"
        );
        assert!(kind != "counts" || record["output"] == *sums[at % 7], "{id}: {record}");
        let attempts = record["attempts"].as_u64().expect("a number");
        assert!(kind != "fails" || attempts == ATTEMPTS, "{id}: {record}");
        let times = |name: &str| record[name].as_str().expect("a time");
        running.extend([(times("started"), 1), (times("finished"), -1)]);
        if attempts == 1 {
            waited.push((at * 7 % 5, at, times("started")));
        }
    }
    assert!(waited.len() > 1_000, "{} were begun once", waited.len());
    waited.sort_unstable();
    // Messages on their way to a worker or broker that is killed come back untouched, and begin late in their first attempt: at most as many as there are slots, for each of the two.
    let mut soonest = None;
    let late = waited.iter().rev().filter(|(_, _, started)| {
        let is_late = soonest.is_some_and(|soonest| *started > soonest);
        soonest = Some(soonest.map_or(*started, |soonest| (*started).min(soonest)));
        is_late
    });
    let late = late.count() as u64;
    assert!(late <= 2 * SLOTS, "{late} began after less urgent ones");
    // What ends in a millisecond makes room for what begins in it.
    running.sort_unstable();
    let most = running
        .iter()
        .scan(0, |now, (_, change)| {
            *now += change;
            Some(*now)
        })
        .max();
    assert!(most.is_some_and(|most| most <= SLOTS as i32), "{most:?} were running");
}
