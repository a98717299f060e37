//! Policies as tools set them, and what comes of them at once.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_policy_holds_at_once_for_what_it_matches_and_no_more_when_it_goes() {
    let world = World::new().await;
    world.queue("jobs", "{}").await;
    world.queue("other", "{}").await;
    world.publish("jobs", "low:1 high:9").await;
    let policy = r#"{"pattern":"^jobs$","definition":{"max-priority":9,"max-length":100},"priority":1,"apply-to":"queues"}"#;
    world.put("/api/policies/%2F/urgent", policy).await.expect(201);
    world.put("/api/policies/%2F/urgent", policy).await.expect(204);
    let shown = world.get("/api/policies/%2F/urgent").await.expect(200).json;
    let expect = json!({
        "vhost": "/", "name": "urgent", "pattern": "^jobs$", "priority": 1, "apply-to": "queues",
        "definition": {"max-priority": 9, "max-length": 100},
    });
    assert_eq!(shown, expect);
    assert_eq!(world.get("/api/policies").await.json, json!([expect]));
    let queue = world.get("/api/queues/%2F/jobs").await.json;
    assert_eq!((&queue["policy"], &queue["operator_policy"]), (&json!("urgent"), &json!(null)));
    assert_eq!(queue["effective_policy_definition"], expect["definition"]);
    assert_eq!(world.get("/api/queues/%2F/other").await.json["policy"], json!(null));
    let get = r#"{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}"#;
    let got = world.post("/api/queues/%2F/jobs/get", get).await.expect(200).json;
    assert_eq!(got[0]["properties"]["priority"], 9, "what waited in one lane is in order now");
    world.delete("/api/policies/%2F/urgent").await.expect(204);
    world.delete("/api/policies/%2F/urgent").await.expect(404);
    let got = world.post("/api/queues/%2F/jobs/get", get).await.expect(200).json;
    assert_eq!(got[0]["properties"]["priority"], 1, "one lane again, in the order of publishing");
}

#[tokio::test]
async fn an_operator_s_policy_bounds_the_others() {
    let world = World::new().await;
    world.queue("jobs", "{}").await;
    let user = r#"{"pattern":"","definition":{"max-length":100,"expires":60000}}"#;
    world.put("/api/policies/%2F/p", user).await.expect(201);
    let operator = r#"{"pattern":"","definition":{"max-length":10}}"#;
    world.put("/api/operator-policies/%2F/o", operator).await.expect(201);
    let queue = world.get("/api/queues/%2F/jobs").await.json;
    assert_eq!((&queue["policy"], &queue["operator_policy"]), (&json!("p"), &json!("o")));
    assert_eq!(queue["effective_policy_definition"], json!({"max-length": 10, "expires": 60_000}));
    let refused =
        world.put("/api/operator-policies/%2F/x", r#"{"pattern":"","definition":{"max-priority":9}}"#).await;
    assert!(refused.expect(400).reason().contains("max-priority"));
}

#[tokio::test]
async fn a_policy_that_cannot_be_says_why() {
    let world = World::new().await;
    for (policy, why) in [
        (r#"{"pattern":"(","definition":{"max-length":1}}"#, "no regular expression"),
        (r#"{"pattern":"","definition":{"max-lenght":1}}"#, "max-lenght"),
        (r#"{"pattern":"","definition":{"max-length":-1}}"#, r#"(it is `{"max-length":-1}`)"#),
        (r#"{"pattern":"","definition":{}}"#, "definition"),
        (
            r#"{"pattern":"","definition":{"max-length":1},"apply-to":"streams"}"#,
            "apply-to: expected one of `",
        ),
        (r#"{"definition":{"max-length":1}}"#, "pattern"),
    ] {
        let refused = world.put("/api/policies/%2F/p", policy).await.expect(400);
        assert!(refused.reason().contains(why), "{policy}: {}", refused.text);
    }
    assert_eq!(world.get("/api/policies").await.json, json!([]));
}

#[tokio::test]
async fn policies_move_with_definitions() {
    let world = World::new().await;
    let policy = r#"{"pattern":"^a","definition":{"message-ttl":1000}}"#;
    world.put("/api/policies/%2F/p", policy).await.expect(201);
    world.put("/api/operator-policies/%2F/o", policy).await.expect(201);
    let definitions = world.get("/api/definitions").await.expect(200).text;
    let same = world.post("/api/definitions?dry_run=true", &definitions).await.expect(200);
    assert_eq!(same.json, json!({"changes": []}));
    let other = World::new().await;
    let plan = other.post("/api/definitions?dry_run=true", &definitions).await.expect(200).json;
    let changes = plan["changes"].to_string();
    assert!(changes.contains("policy o in /") && changes.contains("policy p in /"), "{changes}");
    other.post("/api/definitions", &definitions).await.expect(204);
    assert_eq!(other.get("/api/policies/%2F/p").await.json, world.get("/api/policies/%2F/p").await.json);
    other.get("/api/operator-policies/%2F/o").await.expect(200);
}
