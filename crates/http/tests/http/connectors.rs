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
        (r#"{"to":{"queue":{"name":"r"}},"reserve_from":7}"#, "reserve_from"),
        (r#"{"to":{"kafka":{"brokers":["a:1"],"topic":"t","password":"hunter2"}}}"#, "to.kafka.password"),
        (r#"{"to":{"kafka":{"brokers":4711,"topic":"t"}}}"#, "to.kafka.brokers"),
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

#[tokio::test]
async fn no_value_is_repeated_and_only_what_the_api_takes_is_advised() {
    let world = World::with_queue("").await;
    let webhook = |more: &str| format!(r#"{{"to":{{"webhook":{{"url":"http://h",{more}}}}}}}"#);
    let definitions = [
        webhook(r#""bearer_token":"hunter2""#),
        webhook(r#""signing_key":{"env":"HUNTER2","file":"hunter2"}"#),
        webhook(r#""headers":{"x-key":{"hunter2":1}}"#),
        webhook(r#""headers":{"authorization":"hunter2"}"#),
        webhook(r#""headers":{"x-key":"***"}"#),
        webhook(r#""format":"hunter2""#),
        webhook(r#""refused":"hunter2""#),
        r#"{"to":{"webhook":{"url":"http://ann:hunter2@h"}}}"#.to_owned(),
        r#"{"to":{"webhook":{"url":"http://ann:hunter2/hunter2@h"}}}"#.to_owned(),
        r#"{"to":{"amqp":{"url":"amqp://ann:hunter2#hunter2@h","password":{"env":"HUNTER2"}}}}"#.to_owned(),
        r#"{"to":{"amqp":{"url":"amqp://h","password":"hunter2"}}}"#.to_owned(),
        r#"{"to":{"kafka":{"brokers":["a:1"],"topic":"t","password":"hunter2"}}}"#.to_owned(),
        r#"{"to":{"amqp://ann:hunter2@h":{}}}"#.to_owned(),
        r#"{"to":"hunter2"}"#.to_owned(),
    ];
    for definition in definitions {
        let text = world.put("/v1/endpoints/q", &definition).await.expect(422).text;
        let is_discreet = !text.contains("hunter2") && !text.contains("invalid type");
        assert!(is_discreet, "{definition}: {text}");
        let is_of_a_secret = text.contains("env");
        assert!(!is_of_a_secret || text.contains("OVERTAKE_SECRET_"), "{definition}: {text}");
        assert!(!text.contains("{ env") && !text.contains("file = "), "{definition}: {text}");
    }
    // The settings of a queue hold no secrets: there the value is shown.
    let said = world.put("/v1/queues/r", r#"{"paused":"soon"}"#).await.expect(422).json;
    assert_eq!(
        (&said["key"], &said["detail"]),
        (&json!("paused"), &json!("`paused` is `soon`: expected true or false"))
    );
}
