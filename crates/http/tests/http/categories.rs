//! Categories: each group has its own copy, in two lanes that are shown as streams.

use serde_json::{Value, json};

use crate::world::World;

async fn joined(groups: &[&str]) -> World {
    let world = World::new();
    for group in groups {
        world.put(&format!("/v1/categories/customer/groups/{group}"), "").await.expect(201);
    }
    world
}

async fn publish(world: &World, body: &str, priority: i32) {
    let message = json!({ "body": body, "priority": priority, "mandatory": true }).to_string();
    world.post("/v1/exchanges/customer/messages", &message).await.expect(201);
}

/// Leases one message of a group and settles it so. Answers its body.
async fn take(world: &World, group: &str, how: &str) -> String {
    let queue = format!("/v1/queues/customer@{group}");
    let leased = world.post(&format!("{queue}/leases"), "{}").await.expect(200).json;
    let message = &leased["messages"][0];
    let settle = json!({ "receipts": [message["receipt"]], "how": how }).to_string();
    world.post(&format!("{queue}/settle"), &settle).await.expect(200);
    message["body"].as_str().unwrap_or_default().to_owned()
}

/// Of each stream of a group what is in it: `name ready/dead`.
async fn streams(world: &World, group: &str) -> Vec<String> {
    let view = world.get(&format!("/v1/categories/customer/groups/{group}")).await.expect(200).json;
    let of = |stream: &Value| {
        let name = stream["stream"].as_str().unwrap_or_default();
        format!("{name} {}/{}", stream["ready"], stream["dead"])
    };
    view["streams"].as_array().expect("streams").iter().map(of).collect()
}

#[tokio::test]
async fn each_group_has_a_copy_of_its_own_and_drains_the_primary_lane_first() {
    let world = joined(&["mails", "billing"]).await;
    publish(&world, "migrated 1", -50).await;
    publish(&world, "migrated 2", -100).await;
    publish(&world, "order", 0).await;
    publish(&world, "payment", 50).await;
    assert_eq!(streams(&world, "mails").await, ["customer 2/0", "customer:backfill 2/0"]);
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.push(take(&world, "mails", "ack").await);
    }
    // First in, first out inside a lane, whatever the priority.
    assert_eq!(taken, ["order", "payment", "migrated 1", "migrated 2"]);
    assert_eq!(streams(&world, "mails").await, ["customer 0/0", "customer:backfill 0/0"]);
    assert_eq!(streams(&world, "billing").await, ["customer 2/0", "customer:backfill 2/0"]);
}

#[tokio::test]
async fn what_fails_is_a_dead_letter_of_its_lane_and_goes_back_into_it() {
    let world = joined(&["mails"]).await;
    publish(&world, "migrated", -50).await;
    publish(&world, "order", 0).await;
    for body in ["order", "migrated"] {
        assert_eq!(take(&world, "mails", "reject").await, body);
    }
    let view = world.get("/v1/categories/customer").await.expect(200).json;
    let streams_shown = &view["groups"][0]["streams"];
    assert_eq!(streams_shown[0]["dead_letters"], "customer:dlq");
    assert_eq!(streams_shown[1]["dead_letters"], "customer:backfill:dlq");
    assert_eq!(streams(&world, "mails").await, ["customer 0/1", "customer:backfill 0/1"]);
    world.post("/v1/queues/customer@mails/replay", r#"{"all":true}"#).await.expect(200);
    assert_eq!(streams(&world, "mails").await, ["customer 1/0", "customer:backfill 1/0"]);
}

#[tokio::test]
async fn joining_again_changes_what_is_given_and_nothing_else() {
    let world = joined(&["mails"]).await;
    let path = "/v1/categories/customer/groups/mails";
    world.put(path, r#"{"delivery_limit": 7}"#).await.expect(200);
    world.put(path, "").await.expect(200);
    let settings = world.get("/v1/queues/customer@mails").await.json["settings"].clone();
    assert_eq!((&settings["delivery_limit"], &settings["scheme"]), (&json!(7), &json!("signed")));
    for (body, key) in [(r#"{"order":"fifo"}"#, "order"), (r#"{"max_unacked":0}"#, "max_unacked")] {
        let refused = world.put(path, body).await;
        assert_eq!((refused.code(), &refused.json["key"]), ("422 value-invalid".into(), &json!(key)));
    }
    assert_eq!(world.get("/v1/queues/customer@mails").await.json["settings"], settings);
}

#[tokio::test]
async fn a_category_is_listed_from_the_first_and_deleted_without_groups_only() {
    let world = World::new();
    world.put("/v1/categories/customer", "").await.expect(200);
    world.put("/v1/exchanges/other", r#"{"kind":"topic"}"#).await.expect(200);
    let listed = world.get("/v1/categories").await.expect(200).json;
    assert_eq!(listed["categories"], json!([{ "name": "customer", "groups": [] }]));
    assert_eq!(listed["lanes"], json!({ "enabled": true, "threshold": 0, "backfill_suffix": "backfill" }));
    world.put("/v1/categories/customer/groups/mails", "").await.expect(201);
    assert_eq!(world.delete("/v1/categories/customer").await.code(), "409 category-has-groups");
    world.delete("/v1/categories/customer/groups/mails").await.expect(204);
    assert_eq!(world.delete("/v1/categories/customer/groups/mails").await.code(), "404 no-such-group");
    world.delete("/v1/categories/customer").await.expect(204);
    assert_eq!(world.get("/v1/categories/customer").await.code(), "404 no-such-category");
    assert_eq!(world.get("/v1/categories/other").await.code(), "404 no-such-category");
}

#[tokio::test]
async fn names_that_would_be_mixed_up_are_refused() {
    let world = World::new();
    for path in ["customer:dlq", "customer@x", "customer:x/groups/mails", "customer/groups/a@b"] {
        let refused = world.put(&format!("/v1/categories/{path}"), "").await;
        assert_eq!(refused.code(), "422 name-invalid", "{path}");
    }
    let other = world.put("/v1/categories/amq.direct", "").await;
    assert_eq!(other.status, 409, "{}", other.text);
}

#[tokio::test]
async fn a_group_whose_queue_is_deleted_has_left() {
    let world = joined(&["mails", "billing"]).await;
    world.delete("/v1/queues/customer@mails").await.expect(204);
    let view = world.get("/v1/categories/customer").await.expect(200).json;
    assert_eq!(view["groups"].as_array().map(Vec::len), Some(1), "{view}");
    publish(&world, "order", 0).await;
    assert_eq!(take(&world, "billing", "ack").await, "order", "the others go on");
}
