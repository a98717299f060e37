use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use overtake_streams::{Lane, SubscribeOptions};
use redis::{Value, cmd};

use crate::world::{World, drain, next, options};

/// Short enough for a test.
const IDLE: Duration = Duration::from_millis(90);

#[tokio::test]
async fn consumers_of_a_group_share_and_have_nothing_twice() {
    let Some(world) = World::new() else { return };
    let numbers: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let all: Vec<&str> = numbers.iter().map(String::as_str).collect();
    world.add("customer", &all[..20]).await;
    world.add("customer:backfill", &all[20..]).await;
    let one = world.subscribe(SubscribeOptions { batch: 1, ..options("one") }).await;
    let other = world.subscribe(SubscribeOptions { batch: 1, ..options("other") }).await;
    let (mut had, theirs) = tokio::join!(drain(&one, 20), drain(&other, 20));
    had.extend(theirs);
    had.sort_by_key(|number| number.parse::<u32>().expect("a number"));
    assert_eq!(had, numbers);
}

#[tokio::test]
async fn what_a_consumer_held_that_was_killed_is_claimed_in_both_lanes() {
    let Some(world) = World::new() else { return };
    let example = std::env::current_exe().expect("a path");
    let example = example.parent().and_then(|deps| deps.parent()).expect("above").join("examples/subscribe");
    assert!(example.is_file(), "{} is built with the tests: cargo build --examples", example.display());
    let url = format!("redis://127.0.0.1:{}", world.port);
    for stream in ["customer", "customer:backfill"] {
        world.add(stream, &["held"]).await;
        let mut program = Command::new(&example);
        program.args([&url, "customer", "mails"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().expect("it runs");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
        assert!(line.contains("\"held\"") && line.contains("attempt 1"), "{line}");
        child.kill().expect("killed");
        child.wait().expect("ended");
        let subscriber = world.subscribe(SubscribeOptions { claim_idle: IDLE, ..options("c") }).await;
        let claimed = next(&subscriber).await;
        assert_eq!((claimed.stream(), claimed.body(), claimed.attempt()), (stream, "\"held\"", 2));
        assert!(subscriber.ack(&claimed).await.expect("heard"));
        subscriber.stop().await.expect("stopped");
    }
}

#[tokio::test]
async fn what_others_left_in_the_primary_lane_goes_before_what_they_left_in_the_other() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["p1", "p2"]).await;
    world.add("customer:backfill", &["b1", "b2"]).await;
    for lane in ["customer", "customer:backfill"] {
        world.ask(&format!("XGROUP CREATE {lane} mails 0")).await;
        world.ask(&format!("XREADGROUP GROUP mails gone STREAMS {lane} >")).await;
    }
    let long_ago = Duration::from_millis(10);
    let subscriber = world.subscribe(SubscribeOptions { claim_idle: long_ago, ..options("c") }).await;
    assert_eq!(drain(&subscriber, 4).await, ["p1", "p2", "b1", "b2"]);
}

/// Under a steady backlog of new entries; counted in new entries that are handled after it may be taken over.
#[tokio::test]
async fn what_a_consumer_left_is_taken_over_after_one_batch_of_new_entries_at_most() {
    for (stream, batch) in [("customer", 10), ("customer:backfill", 1)] {
        let Some(world) = World::new() else { return };
        // Behind many that somebody is at work on.
        let lives = world.subscribe(SubscribeOptions { claim_idle: IDLE, ..options("lives") }).await;
        for _ in 0..300 {
            world.add(stream, &["at work"]).await;
            next(&lives).await;
        }
        // More than a batch.
        let left: Vec<String> = (0..12).map(|number| format!("left {number}")).collect();
        for entry in &left {
            world.add(stream, &[entry]).await;
        }
        world.add(stream, &["new"; 20]).await;
        let subscriber = world.subscribe(SubscribeOptions { claim_idle: IDLE, ..options("c") }).await;
        world.ask(&format!("XREADGROUP GROUP mails gone COUNT {} STREAMS {stream} >", left.len())).await;
        let idle = format!("XPENDING {stream} mails IDLE {} - + {} gone", IDLE.as_millis(), left.len());
        let may_be_taken =
            async || matches!(world.ask(&idle).await, Value::Array(all) if all.len() == left.len());
        let mut handled = Vec::new();
        // It looks now and then for what others left, and may find it before we do.
        while !may_be_taken().await && !handled.contains(&left[0]) {
            world.add(stream, &["new"]).await;
            handled.extend(drain(&subscriber, 1).await);
        }
        handled.retain(|body| body == &left[0]);
        while !handled.contains(&left[left.len() - 1]) {
            world.add(stream, &["new"]).await;
            handled.extend(drain(&subscriber, 1).await);
            let new = handled.iter().filter(|body| *body == "new").count();
            assert!(new < batch, "{stream}: {handled:?}");
        }
        handled.retain(|body| left.contains(body));
        assert_eq!(handled, left, "the oldest first");
    }
}

#[tokio::test]
async fn what_is_worked_on_for_long_is_taken_by_nobody() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["long"]).await;
    let short = |name: &str| SubscribeOptions { claim_idle: IDLE, ..options(name) };
    let (one, other) = (world.subscribe(short("one")).await, world.subscribe(short("other")).await);
    let held = next(&one).await;
    let other = Arc::new(other);
    let waits = tokio::spawn({
        let other = Arc::clone(&other);
        async move { next(&other).await }
    });
    // Longer than it may be idle, by the server's own clock.
    let (mut wire, mut resets, mut last) = (world.wire().await, 0, 0);
    while resets < 8 {
        let mut pending = cmd("XPENDING");
        pending.arg("customer").arg("mails").arg("-").arg("+").arg(10);
        let Value::Array(all) = wire.ask(&pending).await.expect("there").expect("told") else { panic!() };
        let Some(Value::Array(parts)) = all.first() else { panic!("{all:?}") };
        let Value::Int(idle) = parts[2] else { panic!("{parts:?}") };
        assert_eq!(parts[3], Value::Int(1), "nobody had it since");
        resets += u32::from(idle < last);
        last = idle;
    }
    world.add("customer", &["new"]).await;
    assert_eq!(waits.await.expect("it ends").body(), "\"new\"");
    assert!(one.ack(&held).await.expect("heard"));
}

#[tokio::test]
async fn who_stops_gives_back_what_it_holds_and_it_does_not_count() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["1", "2", "3"]).await;
    let one = world.subscribe(options("one")).await;
    assert_eq!(drain(&one, 1).await, ["1"]);
    one.stop().await.expect("stopped");
    // They would be taken over after an hour.
    let other = world.subscribe(options("other")).await;
    for expected in ["\"2\"", "\"3\""] {
        let entry = next(&other).await;
        assert_eq!((entry.body(), entry.attempt(), entry.lane()), (expected, 1, Lane::Primary));
        other.ack(&entry).await.expect("heard");
    }
}

#[tokio::test]
async fn a_consumer_that_holds_nothing_leaves_the_group_when_it_stops() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["1", "2"]).await;
    let one = world.subscribe(SubscribeOptions { batch: 1, ..options("one") }).await;
    assert_eq!(drain(&one, 1).await, ["1"]);
    assert!(consumers(&world).await.contains("one"));
    one.stop().await.expect("stopped");
    assert_eq!(consumers(&world).await, "");
    let two = world.subscribe(options("two")).await;
    let _held = next(&two).await;
    two.stop().await.expect("stopped");
    assert!(consumers(&world).await.contains("two"), "what it holds is pending under its name");
}

async fn consumers(world: &World) -> String {
    let Value::Array(all) = world.ask("XINFO CONSUMERS customer mails").await else { panic!() };
    let names = all.into_iter().map(|consumer| match consumer {
        Value::Array(parts) => format!("{:?}", parts[1]),
        other => panic!("{other:?}"),
    });
    names.collect::<Vec<_>>().join(" ")
}
