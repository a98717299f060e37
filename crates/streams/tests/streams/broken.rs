//! Lanes and settlements that the server declines.

use std::time::Duration;

use overtake_streams::{Lanes, SubscribeOptions};

use crate::world::{World, drain, next, options};

fn short(consumer: &str) -> SubscribeOptions {
    SubscribeOptions { block: Duration::from_millis(20), ..options(consumer) }
}

#[tokio::test]
async fn a_lane_that_cannot_be_read_does_not_end_the_other() {
    for (broken, sound) in [("customer", "customer:backfill"), ("customer:backfill", "customer")] {
        let Some(world) = World::new() else { return };
        let subscriber = world.subscribe(short("c")).await;
        world.add(sound, &["1"]).await;
        assert_eq!(drain(&subscriber, 1).await, ["1"]);
        world.ask(&format!("SET {broken} something")).await;
        while subscriber.broken().is_none() {
            world.add(sound, &["2"]).await;
            assert_eq!(drain(&subscriber, 1).await, ["2"]);
            // It looks further while somebody waits.
            let _ = tokio::time::timeout(Duration::from_millis(1), subscriber.next()).await;
        }
        let why = subscriber.broken().expect("it is broken");
        assert!(why.contains(broken) && why.contains("WRONGTYPE"), "{why}");
        world.add(sound, &["3"]).await;
        assert_eq!(drain(&subscriber, 1).await, ["3"]);
        subscriber.stop().await.expect("nothing is held of it");
    }
}

#[tokio::test]
async fn where_no_lane_can_be_read_that_is_told_whenever_it_is_asked() {
    for lanes in [Lanes::enabled(), Lanes::default()] {
        let Some(world) = World::new() else { return };
        let subscriber = world.subscribe(SubscribeOptions { lanes: lanes.clone(), ..short("c") }).await;
        for &lane in lanes.all() {
            world.ask(&format!("SET {} something", lanes.stream("customer", lane))).await;
        }
        for _ in 0..2 {
            let why = subscriber.next().await.unwrap_err();
            assert!(why.contains("WRONGTYPE"), "{why}");
        }
        // Somebody has put it right.
        for &lane in lanes.all() {
            world.ask(&format!("DEL {}", lanes.stream("customer", lane))).await;
        }
        world.add("customer", &["1"]).await;
        assert_eq!(drain(&subscriber, 1).await, ["1"]);
    }
}

#[tokio::test]
async fn an_entry_whose_acknowledgement_is_declined_comes_again() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["1"]).await;
    let subscriber = world.subscribe(options("c")).await;
    let entry = next(&subscriber).await;
    world.ask("ACL SETUSER default -xack").await;
    let why = subscriber.ack(&entry).await.unwrap_err();
    assert!(why.contains("is not acknowledged"), "{why}");
    world.ask("ACL SETUSER default +xack").await;
    let again = next(&subscriber).await;
    assert_eq!((again.id(), again.attempt()), (entry.id(), 2));
    assert_eq!(subscriber.ack(&again).await, Ok(true));
}
