//! Endpoints and sources over HTTP: made, seen, tested, paused, deleted.

use serde_json::json;

use crate::world::World;

const MOVE: &str = r#"{"queue":"q","to":{"queue":{"name":"r"}},"send":{"batch":5}}"#;

#[tokio::test]
async fn an_endpoint_is_made_shown_paused_and_deleted() {
    let world = World::with_queue("").await;
    world.put("/v1/queues/r", "").await.expect(201);
    let made = world.put("/v1/endpoints/move", MOVE).await.expect(201).json;
    assert_eq!(
        (&made["queue"], &made["kind"], &made["provenance"]),
        (&json!("q"), &json!("queue"), &json!("api"))
    );
    assert_eq!(made["definition"], serde_json::from_str::<serde_json::Value>(MOVE).expect("JSON"));
    world.put("/v1/endpoints/move", MOVE).await.expect(200);
    let tested = world.post("/v1/endpoints/move/test", "{}").await.expect(200).json;
    assert_eq!(tested["ok"], true);
    let draft = r#"{"definition":{"queue":"q","to":{"queue":{"name":"nowhere"}}}}"#;
    let tested = world.post("/v1/endpoints/move/test", draft).await.expect(200).json;
    assert!(tested["why"].as_str().expect("a reason").starts_with("nowhere: "), "{tested}");
    assert_eq!(world.post("/v1/endpoints/move/pause", "").await.expect(200).json["state"], "paused");
    let listed = world.get("/v1/endpoints").await.expect(200).json;
    assert_eq!(
        (&listed["endpoints"][0]["name"], &listed["endpoints"][0]["state"]),
        (&json!("move"), &json!("paused"))
    );
    world.post("/v1/endpoints/move/resume", "").await.expect(200);
    world.delete("/v1/endpoints/move").await.expect(204);
    assert_eq!(world.get("/v1/endpoints/move").await.code(), "404 no-such-connector");
}

#[tokio::test]
async fn a_source_is_made_shown_and_deleted() {
    let world = World::with_queue("").await;
    let source = r#"{"from":{"amqp":{"url":"amqp://127.0.0.1:1","queue":"r"}},"to":{"queue":"q"}}"#;
    let made = world.put("/v1/sources/in", source).await.expect(201).json;
    assert_eq!((&made["kind"], &made["taken"]), (&json!("amqp"), &json!(0)));
    let tested = world.post("/v1/sources/in/test", "{}").await.expect(200).json;
    assert_eq!(tested["why"], "127.0.0.1:1 does not answer: Connection refused (os error 111)");
    world.delete("/v1/sources/in").await.expect(204);
    assert_eq!(world.get("/v1/sources").await.expect(200).json["sources"], json!([]));
}

#[tokio::test]
async fn what_cannot_be_names_the_key() {
    let world = World::with_queue("").await;
    let said = [
        (r#"{"to":{"queue":{"name":"r"}},"send":{"bacht":5}}"#, "send.bacht"),
        (r#"{"to":{"pigeon":{}}}"#, "to"),
        (r#"{"to":{"webhook":{"url":"ftp://x"}}}"#, "to.webhook"),
        (r#"{"to":{"queue":{"name":"r"}},"send":{"fan_out":0}}"#, "send"),
    ];
    for (definition, key) in said {
        let reply = world.put("/v1/endpoints/q", definition).await;
        assert_eq!(
            (reply.code(), &reply.json["key"]),
            ("422 value-invalid".to_owned(), &json!(key)),
            "{}",
            reply.text
        );
    }
}
