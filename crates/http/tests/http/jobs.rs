//! Changes of more messages than one step may change.

use overtake_engine::{Engine, NewMessage, Target};
use serde_json::json;

use crate::world::World;

/// More than one step looks at.
const MANY: usize = 6_000;

async fn with_many() -> World {
    let world = World::with_queue("").await;
    let message = NewMessage { to: Target::Queue("q".into()), ..NewMessage::default() };
    for _ in 0..MANY / 1_000 {
        world.engine.publish(vec![message.clone(); 1_000]).await.expect("published");
    }
    world
}

async fn ready(world: &World) -> u64 {
    world.engine.queue("q").await.expect("the queue").lanes.iter().map(|lane| lane.ready).sum()
}

#[tokio::test]
async fn a_change_that_nobody_waits_for_is_a_job() {
    let world = with_many().await;
    let begun = world.post("/v1/queues/q/reprioritise?wait_ms=0", r#"{"all":true,"priority":7}"#).await;
    let begun = begun.expect(202).json;
    assert_eq!(
        (&begun["queue"], &begun["change"], &begun["priority"], &begun["filter"], &begun["total"]),
        (&json!("q"), &json!("reprioritise"), &json!(7), &json!({}), &json!(MANY))
    );
    let path = format!("/v1/jobs/{}", begun["id"]);
    let over = world.get(&format!("{path}?wait_ms=60000")).await.expect(200).json;
    assert_eq!(
        (&over["state"], &over["changed"], &over["looked"]),
        (&json!("done"), &json!(MANY), &json!(MANY))
    );
    assert!(over["ended_at"].is_string() && over["began_at"] == begun["began_at"], "{over}");
    assert_eq!(world.get("/v1/jobs").await.expect(200).json, json!({"jobs": [over]}));
    assert_eq!(world.delete(&path).await.expect(200).json, over, "one that is over is left as it is");
}

#[tokio::test]
async fn whoever_waits_is_told_the_count() {
    let world = with_many().await;
    for query in ["", "?wait_ms=60000"] {
        let body = r#"{"filter":{"without_priority":true},"priority":7}"#;
        let reply = world.post(&format!("/v1/queues/q/reprioritise{query}"), body).await;
        let expected = if query.is_empty() { MANY } else { 0 };
        assert_eq!(reply.expect(200).json, json!({"count": expected}));
    }
}

#[tokio::test]
async fn a_cancelled_job_has_changed_what_it_says() {
    let world = with_many().await;
    let begun = world.post("/v1/queues/q/remove?wait_ms=0", r#"{"all":true}"#).await.expect(202).json;
    let ended = world.delete(&format!("/v1/jobs/{}", begun["id"])).await.expect(200).json;
    // It may have come to its end first.
    assert!(ended["state"] == "cancelled" || ended["state"] == "done", "{ended}");
    assert_eq!(Some(MANY as u64 - ready(&world).await), ended["changed"].as_u64());
}

#[tokio::test]
async fn a_change_that_is_refused_is_no_job() {
    let world = with_many().await;
    let counted = r#"{"filter":{"without_priority":true},"expect":5}"#;
    assert_eq!(world.post("/v1/queues/q/remove", counted).await.code(), "409 count-differs");
    let reply = world.post("/v1/queues/q/reprioritise", r#"{"all":true,"priority":"nope"}"#).await;
    assert_eq!(reply.code(), "422 priority-unknown");
    for path in ["/v1/jobs/17", "/v1/jobs/nope", "/v1/jobs/17?wait_ms=1"] {
        assert_eq!(world.get(path).await.code(), "404 no-such-job", "{path}");
    }
    assert_eq!(world.delete("/v1/jobs/17").await.code(), "404 no-such-job");
    for query in ["wait_ms=", "wait_ms=-1", "wait_ms=1s", "wait_ms=86400001", "wait_ms=1&wait_ms=2"] {
        let reply = world.post(&format!("/v1/queues/q/remove?{query}"), r#"{"all":true}"#).await;
        assert_eq!(reply.code(), "422 value-invalid", "{query}");
    }
    assert_eq!(ready(&world).await, MANY as u64);
}
