use std::sync::Arc;

use overtake_streams::SubscribeOptions;

use crate::world::{World, drain, next, options};

#[tokio::test]
async fn a_connection_that_is_lost_comes_again_and_nothing_is_lost_with_it() {
    let Some(mut world) = World::new() else { return };
    world.add("customer", &["1", "2", "3"]).await;
    let subscriber = Arc::new(world.subscribe(options("c")).await);
    let held = next(&subscriber).await;
    world.kill();
    let settles = tokio::spawn({
        let subscriber = Arc::clone(&subscriber);
        async move { subscriber.ack(&held).await }
    });
    world.start();
    // Settled with the server that came back.
    assert_eq!(settles.await.expect("it ends"), Ok(true));
    assert_eq!(drain(&subscriber, 2).await, ["2", "3"]);
    let waits = tokio::spawn({
        let subscriber = Arc::clone(&subscriber);
        async move { drain(&subscriber, 1).await }
    });
    world.kill();
    world.start();
    world.add("customer", &["4"]).await;
    assert_eq!(waits.await.expect("it ends"), ["4"]);
}

#[tokio::test]
async fn what_was_on_its_way_when_the_connection_was_lost_is_asked_for_again() {
    let Some(world) = World::new() else { return };
    let subscriber = world.subscribe(options("c")).await;
    // As if the server had handed it over, and the answer were lost.
    world.add("customer", &["lost"]).await;
    world.ask("XREADGROUP GROUP mails c STREAMS customer >").await;
    world.ask("CLIENT KILL TYPE normal SKIPME yes").await;
    let entry = next(&subscriber).await;
    assert_eq!((entry.body(), entry.attempt()), ("\"lost\"", 2));
}

#[tokio::test]
async fn a_stream_that_is_deleted_has_its_group_again() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["1"]).await;
    let subscriber = world.subscribe(options("c")).await;
    assert_eq!(drain(&subscriber, 1).await, ["1"]);
    world.ask("DEL customer customer:backfill").await;
    world.add("customer", &["2"]).await;
    assert_eq!(drain(&subscriber, 1).await, ["2"]);
}

#[tokio::test]
async fn what_was_deleted_while_it_waited_is_let_go_of() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["bad", "good"]).await;
    let subscriber = world.subscribe(SubscribeOptions { batch: 1, ..options("c") }).await;
    let bad = next(&subscriber).await;
    world.ask(&format!("XDEL customer {}", bad.id())).await;
    subscriber.fail(&bad, "no").await.expect("heard");
    assert_eq!(drain(&subscriber, 1).await, ["good"]);
    world.add("customer:backfill", &["later"]).await;
    assert_eq!(drain(&subscriber, 1).await, ["later"]);
}
