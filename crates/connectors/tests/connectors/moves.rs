//! Queues and exchanges of this broker as receivers: in one step out of one queue and into the other.

use serde_json::json;

use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn messages_move_to_another_queue_the_most_urgent_first() {
    let world = World::new().await;
    world.publish("a:1 b:9 c:5").await;
    world.put("move", json!({"to": {"queue": {"name": "in"}}})).await;
    world.until_empty().await;
    assert_eq!(world.sees("in").await, "b ready · c ready · a ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_queue_has_no_room_for_waits() {
    let world = World::new().await;
    let full = overtake_lane::Settings {
        max_length: 1,
        overflow: overtake_lane::Overflow::Reject,
        ..overtake_lane::Settings::default()
    };
    use overtake_engine::Engine;
    world.engine.declare_queue("in", full).await.expect("declared");
    world.publish("a:5 b:5").await;
    let retry = json!({"initial_ms": 10, "multiplier": 1, "max_ms": 10});
    world.put("move", json!({"to": {"queue": {"name": "in"}}, "send": {"retry": retry}})).await;
    assert_eq!(world.takes("in", 1).await, ["a"]);
    world.engine.purge("in", Some(overtake_lane::Status::Leased)).await.expect("purged");
    assert_eq!(world.takes("in", 1).await, ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_not_there_is_said() {
    let world = World::new().await;
    world.put("move", json!({"to": {"queue": {"name": "nowhere"}}})).await;
    world.until("move", |view| view.work.last_error.is_some()).await;
    let why = world.view("move").await.work.last_error.expect("said").1;
    assert!(why.starts_with("nowhere: "), "{why}");
    let desk = world.desk("guest").await;
    let tested = world.endpoints.test(&desk, "move", None).await.expect("tested");
    assert!(tested.expect_err("it is not there").starts_with("nowhere: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_deleted_is_named_and_waited_for_at_either_end() {
    use overtake_engine::{DeleteOnly, Engine};
    let world = World::new().await;
    let soon = json!({"initial_ms": 10, "multiplier": 1, "max_ms": 10});
    let send = json!({"reconnect": soon, "retry": soon});
    world.put("move", json!({"to": {"queue": {"name": "in"}}, "send": send})).await;
    world.publish("a:5").await;
    world.until_empty().await;
    for (queue, said) in [("in", "in: no such queue"), ("out", "the queue out: no such queue")] {
        world.engine.delete_queue(queue, DeleteOnly::default()).await.expect("deleted");
        if queue == "in" {
            world.publish("b:5").await;
        }
        world
            .until("move", |view| view.work.last_error.as_ref().is_some_and(|(_, why)| **why == *said))
            .await;
        world.engine.declare_queue(queue, overtake_lane::Settings::default()).await.expect("declared");
        if queue == "out" {
            world.publish("c:5").await;
        }
        world.until_empty().await;
    }
    assert_eq!(world.sees("in").await, "b ready · c ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_waits_for_messages_ends_at_once() {
    let world = World::new().await;
    world.publish("a:5").await;
    world.put("move", json!({"to": {"queue": {"name": "in"}}})).await;
    world.until_empty().await;
    let began = std::time::Instant::now();
    world.endpoints.stop(crate::world::PATIENCE).await;
    let minute = std::time::Duration::from_secs(60);
    assert!(began.elapsed() < minute / 2, "it waited for the next time at which something else is done");
}
