//! Routes over HTTP: set whole or not at all, seen with what they did, tried, and published into.

use serde_json::{Value, json};

use crate::world::World;

const MANIFEST: &str = r#"{"routes": {
    "alerts": {"route": "FROM /messages/modules/Cam/* WHERE severity = 'high' INTO $upstream", "priority": 0, "timeToLiveSecs": 60},
    "all": "FROM /messages/* INTO $upstream",
    "work": "FROM /messages/* WHERE as_number(size) > 10 INTO Queue('q')"}}"#;

#[tokio::test]
async fn routes_are_set_whole_seen_and_changed() {
    let world = World::with_queue("").await;
    let empty = world.get("/v1/routes").await.expect(200).json;
    assert_eq!((&empty["routes"], &empty["published"]), (&json!([]), &json!(0)));
    let check = world.put("/v1/routes?check=true", MANIFEST).await.expect(200).json;
    assert_eq!((&check["applied"], check["changes"].as_array().map(Vec::len)), (&json!(false), Some(3)));
    assert_eq!(world.get("/v1/routes").await.json["routes"], json!([]), "it was only checked");
    world.put("/v1/routes", MANIFEST).await.expect(200);
    let again = world.put("/v1/routes", MANIFEST).await.expect(200).json;
    assert_eq!(again, json!({"applied": true, "changes": []}));
    let seen = world.get("/v1/routes").await.expect(200).json;
    let names: Vec<_> =
        seen["routes"].as_array().expect("routes").iter().map(|route| &route["name"]).collect();
    assert_eq!(names, ["alerts", "all", "work"]);
    assert_eq!((&seen["routes"][0]["priority"], &seen["routes"][0]["ttl_secs"]), (&json!(0), &json!(60)));
    assert_eq!(world.get("/v1/queues/%24upstream").await.expect(200).json["settings"]["scheme"], "route");
    let manifest = world.get("/v1/routes/manifest").await.expect(200).text;
    let again = world.put("/v1/routes", &manifest).await.expect(200).json;
    assert_eq!(again, json!({"applied": true, "changes": []}), "{manifest}");
    let changed =
        world.put("/v1/routes", r#"{"routes": {"all": "FROM /* INTO $upstream"}}"#).await.expect(200);
    assert_eq!(changed.json["changes"].as_array().map(Vec::len), Some(3), "{}", changed.text);
    let audit = world.get("/v1/audit").await.expect(200).json;
    assert_eq!(audit["deeds"][0]["action"], "routes.set");
}

#[tokio::test]
async fn an_endpoint_whose_name_looks_like_a_lane_of_another_is_another() {
    let world = World::with_queue("").await;
    let manifest = r#"{"routes": {
        "a": {"route": "FROM /a INTO Endpoint('e')", "priority": 0},
        "b": "FROM /b INTO Endpoint('e_Pri0')"}}"#;
    world.put("/v1/routes", manifest).await.expect(200);
    for path in ["a", "b", "b"] {
        world.post(&format!("/v1/topics/{path}"), r#"{"body":"x"}"#).await.expect(201);
    }
    let seen = world.get("/v1/routes").await.expect(200).json;
    let lane = |endpoint: usize| {
        let endpoint = &seen["endpoints"][endpoint];
        (endpoint["queue"].clone(), endpoint["lanes"][0].clone())
    };
    let looks = |lane: &str, ready: u64| json!({"name": "e_Pri0", "lane": lane, "ready": ready, "leased": 0, "expired": 0});
    assert_eq!([lane(0), lane(1)], [(json!("e"), looks("0", 1)), (json!("e_Pri0"), looks("default", 2))]);
}

#[tokio::test]
async fn a_message_from_a_path_goes_where_routes_say() {
    let world = World::with_queue("").await;
    world.put("/v1/routes", MANIFEST).await.expect(200);
    let publish =
        async |path: &str, body: &str| world.post(&format!("/v1/topics/{path}"), body).await.expect(201).json;
    let plain = publish("messages/modules/Cam/outputs/o", r#"{"body":"plain"}"#).await;
    assert_eq!(plain["messages"][0]["queue"], "$upstream");
    let urgent = r#"{"body":"urgent","headers":{"severity":"high","size":11}}"#;
    let urgent = publish("/messages/modules/Cam/outputs/o", urgent).await;
    assert_eq!(urgent["messages"].as_array().map(Vec::len), Some(2), "{urgent}");
    publish("messages%2Fmodules%2FCam", r#"{"messages":[{"body":"a"},{"body":"b"}]}"#).await;
    assert_eq!(world.get("/v1/queues/%24upstream/messages").await.bodies(), "urgent plain a b");
    assert_eq!(world.get("/v1/queues/q/messages").await.bodies(), "urgent");
    assert_eq!(publish("elsewhere", r#"{"body":"x"}"#).await["messages"], json!([]));
    let lost = world.post("/v1/topics/elsewhere?mandatory=true", r#"{"body":"x"}"#).await;
    assert_eq!(lost.code(), "422 unroutable");
    let headers = [("content-type", "text/plain"), ("overtake-header-size", "12")];
    world.raw("/v1/topics/messages/raw", &headers, b"raw").await.expect(201);
    let seen = world.get("/v1/routes").await.expect(200).json;
    assert_eq!((&seen["published"], &seen["unrouted"]), (&json!(7), &json!(2)));
    let work = seen["routes"]
        .as_array()
        .expect("routes")
        .iter()
        .find(|route| route["name"] == "work")
        .expect("there");
    assert_eq!((&work["matched"], &work["undefined"], &work["copies"]), (&json!(2), &json!(3), &json!(2)));
    let lanes = &seen["endpoints"][0]["lanes"];
    assert_eq!((&lanes[0]["name"], &lanes[0]["ready"]), (&json!("$upstream_Pri0"), &json!(1)));
    assert_eq!((&lanes[1]["name"], &lanes[1]["ready"]), (&json!("$upstream"), &json!(4)));
    assert_eq!(
        seen["endpoints"][1]["lanes"][0]["name"], "4",
        "its scheme knows other priorities than routes do"
    );
    let other = MANIFEST.replace("'high'", "'extreme'");
    world.put("/v1/routes", &other).await.expect(200);
    let after = world.get("/v1/routes").await.expect(200).json;
    assert_eq!(after["published"], 7);
    let matched = |seen: &Value| -> Vec<(Value, Value)> {
        let of = |route: &Value| (route["name"].clone(), route["matched"].clone());
        seen["routes"].as_array().expect("routes").iter().map(of).collect()
    };
    let (before, after) = (matched(&seen), matched(&after));
    assert_eq!(
        (&after[0], &after[1..]),
        (&(json!("alerts"), json!(0)), &before[1..]),
        "what is the same counts on"
    );
}

#[tokio::test]
async fn routes_are_tried_without_publishing() {
    let world = World::with_queue("").await;
    world.put("/v1/routes", MANIFEST).await.expect(200);
    let ask = json!({"path": "messages/modules/Cam/o", "message": {"headers": {"severity": "low"}}});
    let tried = world.post("/v1/routes/test", &ask.to_string()).await.expect(200).json;
    let says: Vec<_> =
        tried["routes"].as_array().expect("routes").iter().map(|route| &route["says"]).collect();
    assert_eq!(says, ["does-not-match", "matches", "undefined"]);
    assert!(tried["routes"][2]["why"].as_str().expect("a reason").contains("size"), "{tried}");
    assert_eq!(tried["copies"], json!([{"route": "all", "queue": "$upstream"}]));
    let other = json!({"path": "/x", "manifest": {"routes": {"x": {"route": "FROM /x INTO Endpoint('e')", "priority": 3}}}});
    let tried = world.post("/v1/routes/test", &other.to_string()).await.expect(200).json;
    assert_eq!(tried["copies"], json!([{"route": "x", "queue": "e", "priority": 3}]));
    assert_eq!(world.get("/v1/queues/%24upstream/messages").await.bodies(), "");
    assert_eq!(world.get("/v1/queues/e").await.code(), "404 no-such-queue");
    let nowhere = json!({"path": "/x", "manifest": {"routes": {"x": "FROM /x INTO Queue('gone')"}}});
    let tried = world.post("/v1/routes/test", &nowhere.to_string()).await.expect(200).json;
    assert_eq!(tried["copies"], json!([{"route": "x", "queue": "gone", "left_out": true}]));
    world.delete("/v1/queues/%24upstream").await.expect(204);
    let tried = world.post("/v1/routes/test", &ask.to_string()).await.expect(200).json;
    assert_eq!(tried["copies"], json!([{"route": "all", "queue": "$upstream", "left_out": true}]));
}

#[tokio::test]
async fn a_manifest_that_does_not_hold_changes_nothing() {
    let world = World::with_queue("").await;
    world.put("/v1/routes", MANIFEST).await.expect(200);
    let before = world.get("/v1/routes").await.json;
    for (manifest, code, words) in [
        (r#"{"routes": {"a": "FROM /x WHERE a == 'b' INTO $upstream"}}"#, "422 manifest-invalid", "^"),
        (
            r#"{"routes": {"a": {"route": "FROM /x INTO $upstream", "priority": 10}}}"#,
            "422 manifest-invalid",
            "priority",
        ),
        (
            r#"{"routes": {"a": "FROM /x INTO Queue('nowhere')"}}"#,
            "404 no-such-queue",
            "no queue `nowhere` in",
        ),
        ("nonsense", "422 manifest-invalid", ""),
    ] {
        let reply = world.put("/v1/routes", manifest).await;
        assert_eq!(reply.code(), code, "{manifest}: {}", reply.text);
        assert!(reply.json["detail"].as_str().expect("a detail").contains(words), "{}", reply.text);
    }
    assert_eq!(world.put("/v1/routes?chek=true", MANIFEST).await.code(), "422 parameter-unknown");
    assert_eq!(world.put("/v1/routes?check=perhaps", MANIFEST).await.code(), "422 value-invalid");
    assert_eq!(world.get("/v1/routes").await.json, before);
}

#[tokio::test]
async fn a_twin_is_set_and_what_is_passed_over_is_noted() {
    let world = World::with_queue("").await;
    let twin = r#"{"deviceId": "line-7", "moduleId": "$edgeHub", "properties": {"desired": {"$metadata": {"$lastUpdated": "2025-11-02T16:40:05Z"},
        "$version": 17, "mqttBroker": {"authorizations": []}, "schemaVersion": "1.2", "storeAndForwardConfiguration": {"timeToLiveSecs": -1},
        "routes": {"all": "FROM /* INTO $upstream"}}, "reported": {"$version": 231}}}"#;
    let answer = world.put("/v1/routes", twin).await.expect(200).json;
    let note = "/properties/desired/mqttBroker: `mqttBroker` says nothing about routes, and is passed over";
    assert_eq!(answer["notes"], json!([note]));
    assert_eq!(world.get("/v1/routes").await.json["ttl_secs"], u32::MAX);
    let manifest = world.get("/v1/routes/manifest").await.json;
    assert_eq!(manifest["storeAndForwardConfiguration"], json!({"timeToLiveSecs": -1}));
    let again = world.put("/v1/routes", &manifest.to_string()).await.expect(200).json;
    assert_eq!(again, json!({"applied": true, "changes": []}));
}

#[tokio::test]
async fn routes_are_of_a_virtual_host() {
    let world = World::with_queue("").await;
    world.put("/v1/vhosts/v", "{}").await.expect(201);
    world
        .put("/v1/routes?vhost=v", r#"{"routes": {"all": "FROM /* INTO Endpoint('theirs')"}}"#)
        .await
        .expect(200);
    assert_eq!(world.get("/v1/routes").await.json["routes"], json!([]));
    world.post("/v1/topics/a/b?vhost=v", r#"{"body":"x"}"#).await.expect(201);
    assert_eq!(world.get("/v1/queues/theirs/messages?vhost=v").await.bodies(), "x");
    assert_eq!(world.get("/v1/queues/theirs").await.json["code"], "no-such-queue");
}
