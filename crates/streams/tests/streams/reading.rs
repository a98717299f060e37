use std::future::ready;
use std::sync::Arc;

use overtake_streams::{Lane, Lanes, SubscribeOptions};

use crate::world::{World, drain, next, options};

#[tokio::test]
async fn the_primary_lane_is_drained_first_and_each_lane_is_in_order() {
    let Some(world) = World::new() else { return };
    world.add("customer:backfill", &["b1", "b2", "b3"]).await;
    world.add("customer", &["p1", "p2", "p3"]).await;
    let subscriber = world.subscribe(options("c")).await;
    assert_eq!(drain(&subscriber, 6).await, ["p1", "p2", "p3", "b1", "b2", "b3"]);
}

#[tokio::test]
async fn an_arrival_in_either_lane_ends_a_wait() {
    let Some(world) = World::new() else { return };
    let subscriber = Arc::new(world.subscribe(options("c")).await);
    for stream in ["customer", "customer:backfill", "customer"] {
        // The wait it ends would take an hour.
        let waits = tokio::spawn({
            let subscriber = Arc::clone(&subscriber);
            async move { drain(&subscriber, 1).await }
        });
        until_it_waits(&world).await;
        world.add(stream, &["x"]).await;
        assert_eq!(waits.await.expect("it ends"), ["x"]);
    }
}

pub(crate) async fn until_it_waits(world: &World) {
    let mut wire = world.wire().await;
    loop {
        let info = wire.ask(redis::cmd("INFO").arg("clients")).await.expect("there").expect("told");
        let redis::Value::BulkString(info) = info else { panic!("{info:?}") };
        if String::from_utf8_lossy(&info).contains("blocked_clients:1") {
            return;
        }
    }
}

#[tokio::test]
async fn an_urgent_arrival_is_next_after_what_is_held() {
    let Some(world) = World::new() else { return };
    // Also what was fetched, and handed to nobody, stands back.
    for batch_backfill in [1, 3] {
        let subscriber = world.subscribe(SubscribeOptions { batch_backfill, ..options("c") }).await;
        world.add("customer:backfill", &["b1", "b2", "b3"]).await;
        let held = next(&subscriber).await;
        assert_eq!((held.body(), held.lane()), ("\"b1\"", Lane::Backfill));
        world.add("customer", &["urgent"]).await;
        assert_eq!(drain(&subscriber, 1).await, ["urgent"]);
        subscriber.ack(&held).await.expect("heard");
        assert_eq!(drain(&subscriber, 2).await, ["b2", "b3"]);
    }
}

#[tokio::test]
async fn each_group_has_its_own_copy_and_place() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["1", "2"]).await;
    let one = world.subscribe(options("c")).await;
    assert_eq!(drain(&one, 2).await, ["1", "2"]);
    let other = world.subscribe(SubscribeOptions { group: "bills".to_owned(), ..options("c") }).await;
    assert_eq!(drain(&other, 1).await, ["1"]);
    world.add("customer", &["3"]).await;
    assert_eq!(drain(&one, 1).await, ["3"]);
    assert_eq!(drain(&other, 2).await, ["2", "3"]);
}

#[tokio::test]
async fn a_group_may_begin_with_what_is_new() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["old"]).await;
    let new = SubscribeOptions { start: overtake_streams::Start::New, ..options("c") };
    let subscriber = world.subscribe(new).await;
    world.add("customer", &["new"]).await;
    assert_eq!(drain(&subscriber, 1).await, ["new"]);
}

#[tokio::test]
async fn where_lanes_are_not_enabled_there_is_one_stream() {
    let Some(world) = World::new() else { return };
    world.add("customer:backfill", &["b"]).await;
    world.add("customer", &["1", "2"]).await;
    let subscriber = world.subscribe(SubscribeOptions { lanes: Lanes::default(), ..options("c") }).await;
    assert_eq!(drain(&subscriber, 2).await, ["1", "2"]);
    let mut next = std::pin::pin!(subscriber.next());
    tokio::select! {
        biased;
        _ = &mut next => panic!("nobody reads the other stream"),
        () = until_it_waits(&world) => {}
    }
}

#[tokio::test]
async fn what_arrives_when_nobody_waits_any_more_is_there_for_whoever_waits_next() {
    let Some(world) = World::new() else { return };
    let subscriber = world.subscribe(options("c")).await;
    for _ in 0..2 {
        tokio::select! {
            biased;
            _ = subscriber.next() => panic!("there is nothing"),
            () = ready(()) => {}
        }
        until_it_waits(&world).await;
    }
    world.add("customer", &["1"]).await;
    assert_eq!(drain(&subscriber, 1).await, ["1"]);
}

#[tokio::test]
async fn a_key_that_is_no_stream_is_told() {
    let Some(world) = World::new() else { return };
    world.ask("SET customer x").await;
    let refused = overtake_streams::Subscriber::connect(&world.server, options("c")).await;
    let why = refused.err().expect("refused");
    assert!(why.contains("customer") && why.contains("WRONGTYPE"), "{why}");
    world.ask("DEL customer").await;
    // Later it is told where no lane is left that can be read.
    let subscriber = world.subscribe(SubscribeOptions { lanes: Lanes::default(), ..options("c") }).await;
    world.ask("SET customer x").await;
    let why = subscriber.next().await.expect_err("no stream");
    assert!(why.contains("WRONGTYPE"), "{why}");
    world.ask("DEL customer").await;
    world.add("customer", &["1"]).await;
    assert_eq!(drain(&subscriber, 1).await, ["1"]);
}
