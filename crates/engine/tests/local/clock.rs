//! A wall clock that is set, while the engine runs and while it does not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use overtake_engine::core::{Answer, Core, Opened, Out, Request};
use overtake_engine::{
    Clock, Engine, LeaseRequest, LocalEngine, ManualClock, NewMessage, SteadyClock, TimeSource,
};
use overtake_lane::{Command, ConsumerId, LeaseTerm, Settings, Time};
use overtake_store::MemoryDisk;

use crate::support::{START, TINY, clock, message, open_disk, options};

const DAY_MS: u64 = 24 * 3_600_000;

/// The clocks of a machine, ms, which go and are set as they are told.
struct Machine(Mutex<(u64, u64)>);

impl TimeSource for Machine {
    fn running(&self) -> Duration {
        Duration::from_millis(self.0.lock().expect("whole").0)
    }

    fn wall(&self) -> Duration {
        Duration::from_millis(self.0.lock().expect("whole").1)
    }
}

/// A steady clock of such a machine, by which nobody sleeps.
struct Steady(SteadyClock<Machine>);

impl Steady {
    fn at(wall: Time) -> Arc<Self> {
        Arc::new(Self(SteadyClock::new(Machine(Mutex::new((0, wall.0))))))
    }

    fn pass(&self, ms: u64) {
        let mut both = self.0.source().0.lock().expect("whole");
        *both = (both.0 + ms, both.1 + ms);
    }

    fn set(&self, wall: Time) {
        self.0.source().0.lock().expect("whole").1 = wall.0;
    }
}

impl Clock for Steady {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn until(&self, _when: Time) -> Option<Duration> {
        None
    }

    fn ahead_ms(&self) -> u64 {
        self.0.ahead_ms()
    }
}

fn open_steady(disk: &MemoryDisk, clock: &Arc<Steady>) -> LocalEngine {
    LocalEngine::open_on(disk.clone(), options(TINY), clock.clone()).expect("it opens")
}

fn lease(ms: u64) -> LeaseRequest {
    LeaseRequest { term: LeaseTerm::Ms(ms), ..LeaseRequest::new("q".into(), 10) }
}

/// What is leased now, for a minute.
async fn leased(engine: &LocalEngine) -> Vec<String> {
    let got = engine.lease(lease(60_000)).await.expect("it is answered");
    got.iter().map(|one| String::from_utf8_lossy(&one.content.body).into_owned()).collect()
}

/// `a` is leased for 30 s, and `b` delayed for 45.
async fn begin(engine: &LocalEngine) {
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.publish(vec![message("a", 5)]).await.expect("published");
    assert_eq!(engine.lease(lease(30_000)).await.expect("leased").len(), 1);
    let later = NewMessage { delay_ms: 45_000, ..message("b", 5) };
    engine.publish(vec![later]).await.expect("published");
}

#[tokio::test]
async fn a_lease_and_a_delay_take_as_long_when_the_clock_is_set_back_meanwhile() {
    let (disk, clock) = (MemoryDisk::new(1), Steady::at(START));
    let engine = open_steady(&disk, &clock);
    begin(&engine).await;
    clock.set(Time(START.0 - 2 * DAY_MS));
    clock.pass(29_999);
    assert!(leased(&engine).await.is_empty(), "neither is over");
    clock.pass(1);
    assert_eq!(leased(&engine).await, ["a"]);
    clock.pass(15_000);
    assert_eq!(leased(&engine).await, ["b"]);
}

#[tokio::test]
async fn a_lease_and_a_delay_are_over_when_the_clock_is_set_forwards() {
    let (disk, clock) = (MemoryDisk::new(1), Steady::at(START));
    let engine = open_steady(&disk, &clock);
    begin(&engine).await;
    clock.set(START.after(2 * DAY_MS));
    assert_eq!(leased(&engine).await, ["a", "b"]);
}

/// Opened again at this time, `a` and `b` wait as long as they would have, also when it is opened once more.
async fn check_restarts(disk: &MemoryDisk, now: Time, least_ms: u64, most_ms: u64) {
    let clock = Arc::new(ManualClock::new(now));
    open_disk(disk, &clock).expect("it opens").close();
    let engine = open_disk(disk, &clock).expect("it opens again");
    clock.advance(least_ms - 1);
    assert!(leased(&engine).await.is_empty(), "neither is over");
    clock.advance(most_ms - least_ms + 1);
    assert_eq!(leased(&engine).await, ["a"]);
    clock.advance(15_000);
    assert_eq!(leased(&engine).await, ["b"]);
    engine.close();
}

#[tokio::test]
async fn after_a_restart_nothing_waits_for_a_clock_that_was_ahead() {
    let (disk, ahead) = (MemoryDisk::new(1), clock());
    ahead.set(START.after(2 * DAY_MS));
    let engine = open_disk(&disk, &ahead).expect("it opens");
    begin(&engine).await;
    engine.close();
    check_restarts(&disk, START, 30_000, 30_000).await;
}

#[tokio::test]
async fn nor_for_one_that_was_set_back_while_it_ran_however_long_it_went_on() {
    let (disk, clock) = (MemoryDisk::new(1), Steady::at(START));
    let engine = open_steady(&disk, &clock);
    clock.set(Time(START.0 - 2 * DAY_MS));
    clock.pass(3 * DAY_MS);
    begin(&engine).await;
    engine.close();
    check_restarts(&disk, START.after(DAY_MS), 30_000, 30_000).await;
}

#[tokio::test]
async fn what_was_noted_a_minute_ago_makes_nothing_end_a_minute_late_or_early() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("it opens");
    begin(&engine).await;
    engine.close();
    // The clock is right: what was noted says nothing.
    check_restarts(&disk, START.after(1), 29_999, 29_999).await;
}

#[tokio::test]
async fn what_is_noted_of_the_clock_is_no_metadata_of_anybodys() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("it opens");
    begin(&engine).await;
    assert!(engine.metadata().await.expect("they are shown").is_empty());
}

/// Whether a lease of such a queue is told only once it is durable.
fn is_told_late(settings: Settings) -> bool {
    let Opened { mut core, mut committer, .. } =
        Core::open(MemoryDisk::new(1), &options(TINY), START).expect("it opens");
    let asked = [
        Request::Do(Command::declare("q".into(), Box::new(settings))),
        Request::Publish {
            messages: vec![NewMessage { key: Some("k".into()), ..message("a", 5) }],
            settlements: Vec::new(),
        },
        Request::Lease { consumer: ConsumerId(1), lease: lease(30_000) },
    ];
    let mut told = None;
    for request in asked {
        while core.wants_file() {
            core.file_ready(committer.prepare_file().expect("the disk is well"));
        }
        core.handle(START, request, ());
        told = core.take_outs().pop();
    }
    let Some(Out::Answer { result: Ok(Answer::Leased(messages)), durable, .. }) = told else {
        panic!("messages, not {told:?}")
    };
    assert_eq!(messages.len(), 1);
    durable
}

#[test]
fn where_leases_are_capped_they_are_told_when_they_are_durable() {
    assert!(!is_told_late(Settings::default()));
    assert!(is_told_late(Settings { max_active: 1, ..Settings::default() }));
    assert!(is_told_late(Settings { group_limit: 1, ..Settings::default() }));
}
