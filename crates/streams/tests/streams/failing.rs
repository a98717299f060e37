use std::time::Duration;

use overtake_streams::{Fate, Lane, Retry, SubscribeOptions};

use crate::world::{World, drain, next, options};

#[tokio::test]
async fn what_failed_is_tried_again_in_its_own_lane_and_holds_up_nobody() {
    let Some(world) = World::new() else { return };
    for stream in ["customer", "customer:backfill"] {
        world.add(stream, &["bad", "good"]).await;
        let options = SubscribeOptions { group: stream.to_owned(), ..options("c") };
        let subscriber = world.subscribe(options).await;
        let first = next(&subscriber).await;
        assert_eq!((first.body(), first.attempt()), ("\"bad\"", 1));
        assert!(matches!(subscriber.fail(&first, "no").await, Ok(Fate::Again(_))));
        // Whichever comes first: the one that is due, or the next one.
        let (mut again, mut good) = (None, None);
        while again.is_none() || good.is_none() {
            let entry = next(&subscriber).await;
            subscriber.ack(&entry).await.expect("heard");
            let which = if entry.body() == "\"bad\"" { &mut again } else { &mut good };
            *which = Some(entry);
        }
        let again = again.expect("it came again");
        assert_eq!((again.stream(), again.attempt(), again.id()), (stream, 2, first.id()));
        world.ask(&format!("DEL {stream}")).await;
    }
}

#[tokio::test]
async fn what_waits_to_be_tried_again_lets_others_pass() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["bad", "1", "2"]).await;
    let retry = Retry { initial: crate::world::LONG, max: crate::world::LONG, ..Retry::default() };
    let subscriber = world.subscribe(SubscribeOptions { retry, ..options("c") }).await;
    let bad = next(&subscriber).await;
    assert_eq!(subscriber.fail(&bad, "no").await, Ok(Fate::Again(crate::world::LONG)));
    assert_eq!(drain(&subscriber, 2).await, ["1", "2"]);
    // Nothing is lost of it.
    assert_eq!(world.number("XLEN customer:dlq").await, 0);
}

#[tokio::test]
async fn what_is_due_again_ends_a_wait() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["bad"]).await;
    let subscriber = world.subscribe(options("c")).await;
    for attempt in 1..=2 {
        let entry = next(&subscriber).await;
        assert_eq!(entry.attempt(), attempt);
        subscriber.fail(&entry, "no").await.expect("heard");
    }
    // It waits for an hour, unless what is due wakes it.
    assert_eq!(next(&subscriber).await.attempt(), 3);
}

#[tokio::test]
async fn after_the_last_attempt_it_is_a_dead_letter_of_its_lane_and_only_then_acknowledged() {
    let Some(world) = World::new() else { return };
    for (stream, lane) in [("customer", Lane::Primary), ("customer:backfill", Lane::Backfill)] {
        world.add(stream, &["bad"]).await;
        let subscriber = world.subscribe(options("c")).await;
        for attempt in 1..=3 {
            let entry = next(&subscriber).await;
            let fate = subscriber.fail(&entry, "the mail server says no").await.expect("heard");
            assert_eq!(fate == Fate::Dead, attempt == 3, "{fate:?}");
        }
        assert_eq!(world.number(&format!("XLEN {stream}:dlq")).await, 1);
        assert_eq!(pending(&world, stream).await, 0);
        let letters = world.dead_letters().list(10).await.expect("a list");
        let letter = letters.iter().find(|letter| letter.lane == lane).expect("a letter");
        assert_eq!((letter.stream.as_str(), letter.attempts), (stream, Some(3)));
        assert_eq!(letter.reason.as_deref(), Some("the mail server says no"));
        assert_eq!((letter.group.as_deref(), letter.consumer.as_deref()), (Some("mails"), Some("c")));
        assert_eq!(letter.text(), Some(crate::world::text("bad").as_str()));
        subscriber.stop().await.expect("stopped");
    }
}

#[tokio::test]
async fn what_is_rejected_is_not_tried_again() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["bad"]).await;
    let subscriber = world.subscribe(options("c")).await;
    let entry = next(&subscriber).await;
    assert_eq!(subscriber.reject(&entry, "who is that").await, Ok(Fate::Dead));
    assert_eq!(subscriber.reject(&entry, "who is that").await, Ok(Fate::Gone));
    assert_eq!(subscriber.fail(&entry, "who is that").await, Ok(Fate::Gone));
    assert_eq!(world.number("XLEN customer:dlq").await, 1);
}

#[tokio::test]
async fn attempts_survive_the_consumer() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["bad"]).await;
    let subscriber = world.subscribe(options("c")).await;
    let entry = next(&subscriber).await;
    subscriber.fail(&entry, "no").await.expect("heard");
    drop(subscriber);
    let subscriber = world.subscribe(options("c")).await;
    let entry = next(&subscriber).await;
    assert_eq!(entry.attempt(), 2);
    subscriber.fail(&entry, "no").await.expect("heard");
    drop(subscriber);
    let subscriber = world.subscribe(options("c")).await;
    let entry = next(&subscriber).await;
    assert_eq!(entry.attempt(), 3);
    assert_eq!(subscriber.fail(&entry, "no").await, Ok(Fate::Dead));
}

#[tokio::test]
async fn what_nobody_can_read_is_a_dead_letter_at_once() {
    let Some(world) = World::new() else { return };
    world.add_text("customer", "garbage").await;
    world.add_text("customer", "[1,2]").await;
    world.add_text("customer:backfill", "{\"event\":1}").await;
    world.ask("XADD customer * body x").await;
    world.add("customer:backfill", &["good"]).await;
    let subscriber = world.subscribe(options("c")).await;
    assert_eq!(drain(&subscriber, 1).await, ["good"]);
    let letters = world.dead_letters().list(10).await.expect("a list");
    let told: Vec<_> = letters.iter().map(|letter| letter.reason.clone().expect("a reason")).collect();
    for reason in ["no JSON object: expected", "no JSON object: invalid", "no field `data`", "no `data`"] {
        let is_there = told.iter().any(|why| why.contains(reason) && why.starts_with("it cannot be read"));
        assert!(is_there, "{reason}: {told:?}");
    }
    assert_eq!(told.len(), 4);
    assert_eq!((pending(&world, "customer").await, pending(&world, "customer:backfill").await), (0, 0));
    // And it comes back as what it was.
    let garbage = letters.iter().find(|letter| letter.text() == Some("garbage")).expect("kept");
    world.dead_letters().replay(&garbage.id, Some(garbage.lane)).await.expect("replayed");
    let last = world.ask("XREVRANGE customer + - COUNT 1").await;
    assert!(format!("{last:?}").contains("garbage"), "{last:?}");
}

#[tokio::test]
async fn where_dead_letters_cannot_be_written_the_entry_stays_until_they_can() {
    let Some(world) = World::new() else { return };
    for (breaks, mends) in
        [("SET customer:dlq x", "DEL customer:dlq"), ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")]
    {
        world.add("customer", &["bad"]).await;
        let subscriber = world.subscribe(options("c")).await;
        let entry = next(&subscriber).await;
        world.ask(breaks).await;
        let fate = subscriber.reject(&entry, "no").await.expect("heard");
        let Fate::Kept(why) = fate else { panic!("{fate:?}") };
        assert!(why.contains("customer:dlq cannot be written"), "{why}");
        assert_eq!(pending(&world, "customer").await, 1);
        world.ask(mends).await;
        tokio::select! {
            _ = subscriber.next() => panic!("it is for nobody any more"),
            () = world.until_there_is_one_in("customer:dlq") => {}
        }
        let letters = world.dead_letters().list(10).await.expect("a list");
        assert_eq!((letters.len(), letters[0].reason.as_deref()), (1, Some("no")));
        world.ask("DEL customer customer:dlq").await;
    }
}

#[tokio::test]
async fn an_entry_that_ends_whoever_has_it_is_not_handed_over_for_ever() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["poison"]).await;
    let subscriber = world.subscribe(options("c")).await;
    let poison = next(&subscriber).await;
    drop(subscriber);
    let set = format!("XCLAIM customer mails c 0 {} RETRYCOUNT 13 IDLE 100000", poison.id());
    world.ask(&set).await;
    world.add("customer", &["good"]).await;
    let retry = Retry { max: Duration::from_millis(1), ..Retry::default() };
    let subscriber = world.subscribe(SubscribeOptions { retry, ..options("c") }).await;
    assert_eq!(drain(&subscriber, 1).await, ["good"]);
    let letter = world.dead_letters().list(1).await.expect("a list").pop().expect("a letter");
    let why = letter.reason.expect("a reason");
    assert!(why.contains("handed over 13 times and never settled"), "{why}");
}

async fn pending(world: &World, stream: &str) -> i64 {
    let summary = world.ask(&format!("XPENDING {stream} mails")).await;
    let redis::Value::Array(parts) = summary else { panic!("{summary:?}") };
    let redis::Value::Int(count) = parts[0] else { panic!("{parts:?}") };
    count
}
