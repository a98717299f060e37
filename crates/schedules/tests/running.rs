//! Schedules over an engine whose clock goes when it is told to: what waits in the queue, after whatever happens.

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use overtake_access::{Change, Permission};
use overtake_engine::{Clock, DeleteOnly, Engine, ManualClock, Select};
use overtake_lane::{Given, LastValue, Outcome, Settings, Status, Time, VhostSettings};
use overtake_schedules::{BODY_LEN_MAX, NotScheduled, Schedule, Schedules};
use overtake_store::MemoryDisk;
use world::{HOUR, MINUTE, START, World, schedule};

#[tokio::test]
async fn one_occurrence_ahead_waits_in_the_queue() {
    let world = World::new().await;
    world.tick().await;
    assert_eq!(world.sees("q").await, "tick@10:00 x delayed");
    world.pass(10 * MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x delayed");
    world.pass(30 * MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@11:00 x delayed");
    world.pass(HOUR).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@11:00 x ready · tick@12:00 x delayed");
    assert_eq!(world.lease().await[0].content.user_id(), Some("guest"));
}

#[tokio::test]
async fn putting_the_same_again_changes_nothing() {
    let world = World::new().await;
    world.tick().await;
    assert_eq!(world.put("tick", schedule("0  * * * *", "x")).await, Ok(false));
    assert_eq!(world.sees("q").await, "tick@10:00 x delayed");
    let deeds = world.gate.audit().recent();
    assert_eq!(deeds.iter().filter(|deed| deed.action == "schedule.put").count(), 1);
}

#[tokio::test]
async fn what_came_due_while_nobody_was_there_runs_once_and_the_rest_is_left_out() {
    let world = World::new().await;
    world.tick().await;
    let world = world.down_for(4 * HOUR).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@14:00 x delayed");
    let world = world.down_for(MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@14:00 x delayed");
}

/// A world whose wall clock can be set, as the engine's time cannot.
async fn with_wall_clock() -> (World, Arc<ManualClock>) {
    let (disk, clock) = (MemoryDisk::new(7), Arc::new(ManualClock::new(START)));
    let wall = Arc::new(ManualClock::new(START));
    let world = World::open_by(disk, clock, Arc::clone(&wall)).await;
    world.engine.declare_queue("q", Settings::default()).await.expect("declared");
    world.tick().await;
    (world, wall)
}

#[tokio::test]
async fn a_wall_clock_that_is_set_back_by_days_brings_the_occurrences_of_then() {
    let (world, wall) = with_wall_clock().await;
    // The engine's time goes on.
    wall.set(Time(START.0 - 48 * HOUR));
    world.schedules.look().await;
    assert_eq!(world.sees("q").await, "tick@2026-11-20t10:00 x delayed");
    wall.advance(40 * MINUTE);
    world.pass(40 * MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@2026-11-20t10:00 x ready · tick@2026-11-20t11:00 x delayed");
}

#[tokio::test]
async fn a_wall_clock_that_is_set_forwards_brings_what_was_ahead_once_and_then_goes_on() {
    let (world, wall) = with_wall_clock().await;
    wall.set(START.after(48 * HOUR));
    // The engine's time follows.
    world.pass(48 * HOUR).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@2026-11-24t10:00 x delayed");
}

#[tokio::test]
async fn an_end_between_an_occurrence_and_the_next_publish_brings_neither_twice() {
    let world = World::new().await;
    world.tick().await;
    // The engine makes it ready, and nobody looks any more.
    world.clock.advance(40 * MINUTE);
    assert_eq!(world.sees("q").await, "tick@10:00 x ready");
    world.ack_all().await;
    let world = world.down_for(MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@11:00 x delayed");
}

#[tokio::test]
async fn an_end_between_a_publish_and_whatever_follows_brings_nothing_twice() {
    let world = World::new().await;
    world.tick().await;
    let mut world = world;
    for _ in 0..3 {
        world = world.down_for(0).await;
    }
    assert_eq!(world.sees("q").await, "tick@10:00 x delayed");
}

#[tokio::test]
async fn a_change_takes_the_waiting_occurrence_out() {
    let world = World::new().await;
    world.engine.declare_queue("other", Settings::default()).await.expect("declared");
    world.tick().await;
    assert_eq!(world.put("tick", schedule("30 * * * *", "x")).await, Ok(false));
    assert_eq!(world.sees("q").await, "tick@09:30 x delayed");
    assert_eq!(world.put("tick", schedule("30 * * * *", "y")).await, Ok(false));
    assert_eq!(world.sees("q").await, "tick@09:30 y delayed", "the same instant, another message");
    let elsewhere = Schedule { queue: "other".into(), ..schedule("30 * * * *", "y") };
    assert_eq!(world.put("tick", elsewhere).await, Ok(false));
    assert_eq!(
        (world.sees("q").await, world.sees("other").await),
        (String::new(), "tick@09:30 y delayed".into())
    );
    let world = world.down_for(0).await;
    assert_eq!(
        (world.sees("q").await, world.sees("other").await),
        (String::new(), "tick@09:30 y delayed".into())
    );
}

#[tokio::test]
async fn what_is_due_stays_when_a_schedule_is_changed_or_deleted() {
    let world = World::new().await;
    world.tick().await;
    world.pass(40 * MINUTE).await;
    assert_eq!(world.put("tick", schedule("30 * * * *", "y")).await, Ok(false));
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@10:30 y delayed");
    let desk = world.desk("guest", "/").await;
    world.schedules.delete(&desk, "tick").await.expect("deleted");
    assert_eq!(world.sees("q").await, "tick@10:00 x ready");
    assert_eq!(world.schedules.delete(&desk, "tick").await, Err(NotScheduled::NoSuchSchedule));
    let world = world.down_for(HOUR).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready");
    assert_eq!(world.schedules.look().await, Time::NEVER);
}

#[tokio::test]
async fn an_occurrence_that_is_removed_is_skipped() {
    let world = World::new().await;
    world.tick().await;
    let id = Select::Id("tick@2026-11-22T10:00:00Z".into());
    world.engine.remove("q", id).await.expect("removed");
    world.pass(MINUTE).await;
    assert_eq!(world.sees("q").await, "");
    world.pass(40 * MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@11:00 x delayed");
}

#[tokio::test]
async fn a_queue_that_is_gone_is_said_and_waited_for() {
    let world = World::new().await;
    world.tick().await;
    world.engine.delete_queue("q", DeleteOnly::default()).await.expect("deleted");
    world.pass(40 * MINUTE).await;
    assert_eq!(world.error("tick").await.as_deref(), Some("no such queue"));
    world.pass(2 * HOUR).await;
    world.engine.declare_queue("q", Settings::default()).await.expect("declared");
    world.pass(MINUTE).await;
    assert_eq!(world.error("tick").await, None);
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@13:00 x delayed", "what is owed, once");
}

#[tokio::test]
async fn another_queue_of_that_name_gets_what_waited_in_the_one_before() {
    let world = World::new().await;
    world.tick().await;
    for _ in 0..2 {
        world.engine.delete_queue("q", DeleteOnly::default()).await.expect("deleted");
        world.engine.declare_queue("q", Settings::default()).await.expect("declared");
        world.pass(MINUTE).await;
        assert_eq!(world.sees("q").await, "tick@10:00 x delayed");
    }
    // Also when its time comes before anybody looks.
    world.engine.delete_queue("q", DeleteOnly::default()).await.expect("deleted");
    world.engine.declare_queue("q", Settings::default()).await.expect("declared");
    world.pass(40 * MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@11:00 x delayed");
}

#[tokio::test]
async fn a_full_queue_is_tried_again() {
    let world = World::new().await;
    let full = Settings { max_length: 1, overflow: overtake_lane::Overflow::Reject, ..Settings::default() };
    world.engine.declare_queue("q", full).await.expect("changed");
    world.tick().await;
    world.pass(40 * MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready");
    assert!(world.error("tick").await.is_some_and(|why| why.contains("full")));
    world.ack_all().await;
    world.pass(MINUTE).await;
    assert_eq!((world.sees("q").await, world.error("tick").await), ("tick@11:00 x delayed".into(), None));
}

#[tokio::test]
async fn rights_are_those_of_whoever_made_it_when_it_is_published() {
    let world = World::new().await;
    world.user("ann", "^q$").await;
    world.user("bob", "").await;
    let of = |user: &str| Schedule { user: user.into(), ..schedule("0 * * * *", "x") };
    let bob = world.desk("bob", "/").await;
    let not = world.schedules.put(&bob, "tick", of("bob"), 1).await.expect_err("denied");
    assert!(not.to_string().contains("bob"), "{not}");
    let ann = world.desk("ann", "/").await;
    world.schedules.put(&ann, "tick", of("ann"), 1).await.expect("made");
    assert_eq!(world.schedules.show(&bob, "tick", 1).await.err(), Some(NotScheduled::NoSuchSchedule));
    assert_eq!(world.schedules.delete(&bob, "tick").await, Err(NotScheduled::NoSuchSchedule));
    assert_eq!(world.schedules.list(&bob).await.map(|all| all.len()), Ok(0));
    assert_eq!(world.schedules.list(&ann).await.map(|all| all.len()), Ok(1));
    world.user("ann", "").await;
    world.pass(40 * MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready");
    assert!(world.error("tick").await.is_some_and(|why| why.contains("ann")));
    world.user("ann", "^q$").await;
    world.pass(MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@11:00 x delayed");
}

#[tokio::test]
async fn what_cannot_be_is_refused_at_once() {
    let world = World::new().await;
    let last = Settings { last_value: Some(LastValue::Key), ..Settings::default() };
    world.engine.declare_queue("last", last).await.expect("declared");
    let told = async |name: &str, schedule: Schedule| match world.put(name, schedule).await {
        Ok(_) => "made".to_owned(),
        Err(not) => not.to_string(),
    };
    let good = || schedule("0 * * * *", "x");
    assert!(told("", good()).await.starts_with("the name of a schedule"));
    assert!(told(&"n".repeat(180), good()).await.starts_with("the name of a schedule"));
    assert_eq!(told("a", Schedule { queue: "none".into(), ..good() }).await, "no such queue");
    assert!(told("a", Schedule { queue: "last".into(), ..good() }).await.contains("last message of a key"));
    let mut odd = good();
    odd.message.priority = Given::Name("urgent".into());
    assert!(told("a", odd).await.contains("priority"));
    let mut large = good();
    large.message.content.body = vec![0; BODY_LEN_MAX + 1].into();
    assert!(told("a", large).await.contains("32 KiB"));
    assert_eq!(world.schedules.look().await, Time::NEVER);
    assert_eq!(told(&"n".repeat(179), good()).await, "made");
    let mut large = good();
    large.message.content.body = vec![0; BODY_LEN_MAX].into();
    assert_eq!(told("a", large).await, "made");
}

#[tokio::test]
async fn a_time_to_live_begins_when_the_occurrence_is_due() {
    let world = World::new().await;
    let mut short = schedule("0 * * * *", "x");
    short.message.ttl_ms = Some(5 * MINUTE);
    world.put("tick", short).await.expect("made");
    world.pass(41 * MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x ready · tick@11:00 x delayed");
    world.pass(5 * MINUTE).await;
    assert_eq!(world.sees("q").await, "tick@11:00 x delayed");
}

#[tokio::test]
async fn an_occurrence_that_will_not_live_so_long_is_said() {
    let world = World::new().await;
    let short = Settings { ttl_ms: 5 * MINUTE, ..Settings::default() };
    world.engine.declare_queue("q", short).await.expect("changed");
    world.tick().await;
    assert!(world.error("tick").await.is_some_and(|why| why.contains("ttl_ms")));
    world.pass(36 * MINUTE).await;
    assert_eq!(world.sees("q").await, "");
}

#[tokio::test]
async fn a_schedule_goes_with_its_virtual_host() {
    let world = World::new().await;
    let made = async || {
        let vhost = world.engine.declare_vhost("v", VhostSettings::default()).await.expect("made");
        world.engine.in_vhost(vhost).declare_queue("q", Settings::default()).await.expect("declared");
    };
    made().await;
    let (user, permission) = ("guest".into(), Permission::everything());
    let may = Change::SetPermission { user, vhost: "v".into(), permission };
    world.gate.change(None, vec![may]).await.expect("changed");
    let desk = world.desk("guest", "v").await;
    world.schedules.put(&desk, "tick", schedule("0 * * * *", "x"), 1).await.expect("made");
    assert_eq!(world.sees("q").await, "", "it is in the other one");
    world.engine.delete_vhost("v").await.expect("deleted");
    made().await;
    let desk = world.desk("guest", "v").await;
    assert_eq!(world.schedules.list(&desk).await.map(|all| all.len()), Ok(0));
    world.pass(HOUR).await;
    assert_eq!(world.schedules.look().await, Time::NEVER);
    let metadata = world.engine.metadata().await.expect("metadata");
    assert!(metadata.iter().all(|(key, _)| !key.starts_with("schedules/")));
}

#[tokio::test]
async fn the_occurrences_ahead_are_told() {
    let world = World::new().await;
    world.tick().await;
    let desk = world.desk("guest", "/").await;
    let view = world.schedules.show(&desk, "tick", 3).await.expect("it is there");
    let next: Vec<String> = view.next.iter().map(|at| overtake_schedules::rfc3339(*at)).collect();
    assert_eq!(next, ["2026-11-22T10:00:00Z", "2026-11-22T11:00:00Z", "2026-11-22T12:00:00Z"]);
}

#[tokio::test]
async fn it_runs_by_itself() {
    let world = World::new().await;
    let schedules = Arc::clone(&world.schedules);
    let running = tokio::spawn(async move { schedules.run().await });
    world.tick().await;
    for hour in 10..13 {
        // Whoever waits for the occurrence gets it, and then the next one is there.
        while !world.sees("q").await.contains(&format!("tick@{hour}:00 x delayed")) {
            tokio::task::yield_now().await;
        }
        world.clock.advance(HOUR);
        let leased = world.lease().await;
        let ids: Vec<&str> = leased.iter().map(|leased| &*leased.message.id).collect();
        assert_eq!(ids, [format!("tick@2026-11-22T{hour}:00:00Z")]);
        assert_eq!(leased[0].message.status, Status::Leased);
        let receipts = leased.iter().map(|leased| leased.receipt).collect();
        world.engine.settle(receipts, Outcome::Ack).await.expect("settled");
    }
    running.abort();
}

/// A clock that can be set.
struct Dial(Mutex<Time>);

impl Clock for Dial {
    fn now(&self) -> Time {
        *self.0.lock().expect("nobody panics")
    }

    fn until(&self, _: Time) -> Option<Duration> {
        None
    }
}

#[tokio::test]
async fn a_clock_that_was_far_ahead_and_is_set_right_leaves_nothing_far_ahead() {
    let world = World::new().await;
    let dial = Arc::new(Dial(Mutex::new(START)));
    let engine: Arc<dyn Engine> = world.engine.clone();
    let schedules = Schedules::open(engine, Arc::clone(&world.gate), dial.clone()).await.expect("it opens");
    let set = async |now: Time| {
        *dial.0.lock().expect("nobody panics") = now;
        schedules.look().await;
    };
    let desk = world.desk("guest", "/").await;
    schedules.put(&desk, "tick", schedule("0 * * * *", "x"), 1).await.expect("made");
    assert_eq!(world.sees("q").await, "tick@10:00 x delayed");
    set(Time(START.0 + 8 * HOUR)).await;
    assert_eq!(
        world.sees("q").await,
        "tick@10:00 x delayed · tick@18:00 x delayed",
        "to the engine it is 9:20"
    );
    set(Time(START.0 + MINUTE)).await;
    assert_eq!(world.sees("q").await, "tick@10:00 x delayed");
}
