//! What tools read: the scalers, exporters and clients that ask this API, each by the fields that it takes.

use overtake_engine::{Engine as _, LeaseRequest};
use serde_json::{Value, json};

use crate::world;
use crate::world::World;

/// Fields that must be there, with a value that is right.
#[track_caller]
fn has(item: &Value, expect: &Value) {
    for (field, expect) in expect.as_object().expect("an object") {
        assert_eq!(&item[field], expect, "{field} of {item:#}");
    }
}

#[tokio::test]
async fn a_queue_is_what_keda_flower_and_exporters_read() {
    let world = World::new().await;
    world.queue("jobs", r#"{"x-max-priority":10,"x-message-ttl":60000}"#).await;
    world.publish("jobs", "a:1 b:9 c:9").await;
    let body = r#"{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}"#;
    world.post("/api/queues/%2F/jobs/get", body).await.expect(200);
    let queue = world.get("/api/queues/%2F/jobs").await.expect(200).json;
    has(
        &queue,
        &json!({
            "name": "jobs", "vhost": "/", "type": "classic", "state": "running", "node": "overtake@here",
            "durable": true, "auto_delete": false, "exclusive": false, "policy": null,
            "arguments": {"x-max-priority": 10, "x-message-ttl": 60_000},
            "messages": 2, "messages_ready": 2, "messages_unacknowledged": 0, "consumers": 0,
            "messages_details": {"rate": 0.0},
        }),
    );
    has(
        &queue["message_stats"],
        &json!({
            "publish": 3, "deliver_get": 1, "ack": 1, "redeliver": 0, "publish_details": {"rate": 0.0},
            "deliver_get_details": {"rate": 0.0}, "ack_details": {"rate": 0.0},
        }),
    );
    has(&queue["messages_by_priority"]["9"], &json!({"messages": 1, "messages_ready": 1}));
    has(&queue["backing_queue_status"]["priority_lengths"], &json!({"1": 1, "9": 1}));
    // A client that reads a number of this width where there is none would stop.
    assert!(queue["consumer_utilisation"].is_number() && queue["memory"].is_u64());
}

#[tokio::test]
async fn the_bytes_of_a_queue_are_told_by_how_its_messages_stand() {
    let world = World::new().await;
    world.queue("jobs", r#"{"x-max-priority":10}"#).await;
    // Each takes one byte more for its priority.
    world.publish("jobs", "aaaa:9 bb:1 c:1").await;
    let lease = LeaseRequest::new("jobs".into(), 2);
    assert_eq!(world.engine.lease(lease).await.expect("two are leased").len(), 2);
    let queue = world.get("/api/queues/%2F/jobs").await.expect(200).json;
    has(
        &queue,
        &json!({
            "messages": 3, "messages_ready": 1, "messages_unacknowledged": 2,
            "message_bytes": 10, "message_bytes_ready": 2, "message_bytes_unacknowledged": 8,
            "message_bytes_ram": 10, "message_bytes_persistent": 10, "message_bytes_paged_out": 0,
            "messages_ram": 3, "messages_ready_ram": 1, "messages_unacknowledged_ram": 2,
            "messages_persistent": 3, "messages_paged_out": 0, "memory": 10,
        }),
    );
    has(
        &queue["messages_by_priority"]["1"],
        &json!({"message_bytes": 5, "message_bytes_ready": 2, "message_bytes_unacknowledged": 3}),
    );
}

#[tokio::test]
async fn a_queue_says_since_when_it_is_idle() {
    let world = World::new().await;
    world.queue("q", "{}").await;
    let idle_since = async || world.get("/api/queues").await.json[0]["idle_since"].clone();
    assert_eq!(idle_since().await, Value::Null, "it was just declared");
    world.advance(10_000);
    assert_eq!(idle_since().await, "2026-11-27T16:00:00.000+00:00");
    world.publish("q", "a").await;
    assert_eq!(idle_since().await, Value::Null);
    world.advance(5_250);
    assert_eq!(idle_since().await, "2026-11-27T16:00:10.000+00:00", "looking is not activity");
    world.delete("/api/queues/%2F/q/contents").await.expect(204);
    assert_eq!(idle_since().await, Value::Null);
    world.advance(1_000);
    assert_eq!(idle_since().await, "2026-11-27T16:00:15.250+00:00");
}

#[tokio::test]
async fn lists_are_filtered_sorted_and_cut() {
    let world = World::new().await;
    for name in ["a.1", "a.2", "b.1", "B.2", "c"] {
        world.queue(name, "{}").await;
    }
    world.publish("a.2", "x y").await;
    let get = async |query: &str| world.get(&format!("/api/queues/%2F?{query}")).await;
    assert_eq!(get("").await.all("name"), "B.2 a.1 a.2 b.1 c");
    let page = get("page=1&page_size=2").await.expect(200);
    has(
        &page.json,
        &json!({
            "total_count": 5, "filtered_count": 5, "item_count": 2, "page": 1, "page_size": 2, "page_count": 3,
        }),
    );
    assert_eq!(page.all("name"), "B.2 a.1");
    assert_eq!(get("page=3&page_size=2").await.all("name"), "c");
    // As the KEDA scaler asks.
    let keda = get("page=1&use_regex=true&pagination=false&name=%5Ea%5C.&page_size=100").await.expect(200);
    has(&keda.json, &json!({"total_count": 5, "filtered_count": 2}));
    assert_eq!(keda.all("name"), "a.1 a.2");
    assert_eq!(get("page=1&name=b").await.all("name"), "B.2 b.1", "a part of the name, in any case");
    assert_eq!(get("sort=messages&sort_reverse=true&page=1&page_size=1").await.all("name"), "a.2");
    let columns = get("columns=name,message_stats.publish").await.json;
    assert_eq!(columns[2], json!({"name": "a.2", "message_stats": {"publish": 2}}));
    for (query, error) in [
        ("page=4&page_size=2", "page_out_of_range"),
        ("page=0", "bad_request"),
        ("page=1&page_size=501", "bad_request"),
        ("page=x", "bad_request"),
        ("page=1&use_regex=true&name=(", "bad_request"),
    ] {
        assert_eq!(get(query).await.expect(400).json["error"], error, "{query}");
    }
}

#[tokio::test]
async fn a_number_may_be_text_and_one_that_cannot_be_is_named_with_its_range() {
    let world = World::new().await;
    world.queue("q", "{}").await;
    let publish = async |properties: Value| {
        let message = json!({"properties": properties, "routing_key": "q", "payload": "x"});
        world.post("/api/exchanges/%2F/amq.default/publish", &message.to_string()).await
    };
    publish(json!({"priority": "3", "delivery_mode": "2", "timestamp": "7"})).await.expect(200);
    let get = async |body: Value| world.post("/api/queues/%2F/q/get", &body.to_string()).await;
    let page = json!({"count": "1", "ackmode": "ack_requeue_true", "truncate": "50000"});
    has(&get(page).await.expect(200).json[0]["properties"], &json!({"priority": 3, "delivery_mode": 2}));
    for (field, value, most) in
        [("priority", json!(-1), 255), ("priority", json!("high"), 255), ("delivery_mode", json!(256), 255)]
    {
        let reply = publish(json!({field: value})).await.expect(400);
        let reason = format!("{field} is {value}: it must be a whole number from 0 to {most}");
        assert_eq!(reply.json["reason"], reason);
    }
    for (field, value) in [("count", json!(0)), ("count", json!("all")), ("truncate", json!(-1))] {
        let mut body = json!({"count": 1, "ackmode": "ack_requeue_true"});
        body[field] = value.clone();
        let reason = get(body).await.expect(400).json["reason"].as_str().unwrap_or_default().to_owned();
        assert!(
            reason.starts_with(&format!("{field} is {value}: it must be a whole number from ")),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn messages_are_published_and_fetched() {
    let world = World::new().await;
    world.queue("q", "{}").await;
    let message = json!({
        "properties": {"priority": 3, "delivery_mode": 2, "message_id": "m", "headers": {"n": 7}},
        "routing_key": "q", "payload": "aMO8", "payload_encoding": "base64",
    });
    let publish = "/api/exchanges/%2F/amq.default/publish";
    assert_eq!(world.post(publish, &message.to_string()).await.expect(200).json, json!({"routed": true}));
    world.publish("q", "second").await;
    let lost = r#"{"properties":{},"routing_key":"nobody","payload":"x","payload_encoding":"string"}"#;
    assert_eq!(world.post(publish, lost).await.expect(200).json, json!({"routed": false}));

    let fetch = async |body: &str| world.post("/api/queues/%2F/q/get", body).await.expect(200).json;
    let peek = fetch(r#"{"count":"1","ackmode":"ack_requeue_true","encoding":"auto","truncate":1}"#).await;
    assert_eq!(
        peek,
        json!([{
            "payload_bytes": 3, "redelivered": false, "exchange": "", "routing_key": "q", "message_count": 1,
            "properties": {"priority": 3, "delivery_mode": 2, "message_id": "m", "headers": {"n": 7}},
            "payload": "h", "payload_encoding": "string",
        }])
    );
    let both = fetch(r#"{"count":5,"requeue":false,"encoding":"base64"}"#).await;
    has(
        &both[0],
        &json!({"payload": "aMO8", "payload_encoding": "base64", "redelivered": false, "message_count": 1}),
    );
    has(&both[1], &json!({"payload_bytes": 6, "message_count": 0}));
    assert_eq!(fetch(r#"{"count":5,"ackmode":"ack_requeue_false"}"#).await, json!([]));
    for wrong in
        [r#"{"count":0,"ackmode":"ack_requeue_true"}"#, r#"{"count":1}"#, r#"{"count":1,"ackmode":"no"}"#]
    {
        world.post("/api/queues/%2F/q/get", wrong).await.expect(400);
    }
    let large = format!(r#"{{"routing_key":"q","payload":"{}"}}"#, "x".repeat(2_000));
    assert!(world.post(publish, &large).await.expect(400).reason().contains("more than 1024 bytes"));
}

#[tokio::test]
async fn queues_come_and_go_and_say_what_differs() {
    let world = World::new().await;
    let path = "/api/queues/%2F/q";
    // As rabbitmqadmin says it.
    let body =
        r#"{"vhost":"/","name":"q","durable":"true","auto_delete":"false","arguments":{},"node":null}"#;
    world.put(path, body).await.expect(201);
    world.put(path, body).await.expect(204);
    let reply = world.put(path, r#"{"durable":false}"#).await.expect(400);
    let expect =
        "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'";
    assert_eq!((reply.json["error"].as_str(), reply.reason()), (Some("bad_request"), expect));
    let reply = world.put("/api/queues/%2F/r", r#"{"arguments":{"x-overflow":"no"}}"#).await.expect(400);
    assert!(
        reply.reason().starts_with("invalid arg 'x-overflow' for queue 'r' in vhost '/'"),
        "{}",
        reply.text
    );
    world.publish("q", "a").await;
    for wrong in ["if-empty=true", "if-empty=yes", "if-empty=", "if-unused=1"] {
        world.delete(&format!("/api/queues/%2F/q?{wrong}")).await.expect(400);
    }
    world.delete("/api/queues/%2F/q/contents").await.expect(204);
    world.delete("/api/queues/%2F/q?if-empty=true").await.expect(204);
    world.get(path).await.expect(404);
    world.put("/api/queues/%2F/amq.mine", "{}").await.expect(403);
}

#[tokio::test]
async fn bindings_are_known_by_their_key() {
    let world = World::new().await;
    world.queue("q", "{}").await;
    world.put("/api/exchanges/%2F/x", r#"{"type":"topic","durable":true,"arguments":{}}"#).await.expect(201);
    assert_eq!(world.get("/api/exchanges/%2F/x").await.json["type"], "topic");
    let between = "/api/bindings/%2F/e/x/q/q";
    let made = world.post(between, r##"{"routing_key":"a.*.#","arguments":{}}"##).await.expect(201);
    assert_eq!(made.headers["location"], "q/a.*.%23");
    world.post(between, "{}").await.expect(201);
    world.post(between, r#"{"routing_key":"k","arguments":{"n":7}}"#).await.expect(201);
    let keys = world.get(between).await.expect(200).all("properties_key");
    let third = keys.split(' ').nth(2).expect("three");
    assert!(keys.starts_with("~ a.*.%23 k~"), "{keys}");
    let one = world.get(&format!("{between}/{third}")).await.expect(200);
    has(
        &one.json,
        &json!({
            "source": "x", "vhost": "/", "destination": "q", "destination_type": "queue", "routing_key": "k",
            "arguments": {"n": 7},
        }),
    );
    world.delete(&format!("{between}/a.*.%23")).await.expect(204);
    world.delete(&format!("{between}/~")).await.expect(204);
    world.delete(&format!("{between}/~")).await.expect(404);
    world.post("/api/bindings/%2F/e/amq.direct/e/x", r#"{"routing_key":"in"}"#).await.expect(201);
    assert_eq!(world.get("/api/exchanges/%2F/x/bindings/destination").await.all("source"), "amq.direct");
    assert_eq!(world.get("/api/exchanges/%2F/x/bindings/source").await.all("routing_key"), "k");
    assert_eq!(world.get("/api/queues/%2F/q/bindings").await.all("source"), " x");
    assert_eq!(world.get("/api/bindings").await.json.as_array().map(Vec::len), Some(3));
    let reply = world.post("/api/bindings/%2F/e/amq.default/q/q", "{}").await.expect(403);
    assert_eq!(reply.reason(), "operation not permitted on the default exchange");
}

#[tokio::test]
async fn users_get_passwords_rights_and_limits() {
    let world = World::new().await;
    world.put("/api/users/ann", r#"{"password":"secret","tags":"management"}"#).await.expect(201);
    let ann = Some(("ann", "secret"));
    has(
        &world.ask_as(ann, "GET", "/api/whoami", "").await.json,
        &json!({"name": "ann", "tags": ["management"]}),
    );
    assert_eq!(world.ask_as(ann, "GET", "/api/vhosts", "").await.json, json!([]));
    assert_eq!(world.get("/api/users/without-permissions").await.all("name"), "ann");
    let rights = r#"{"configure":".*","write":"","read":"^q"}"#;
    world.put("/api/permissions/%2F/ann", rights).await.expect(201);
    world.put("/api/permissions/%2F/ann", rights).await.expect(204);
    let expect = json!({"user": "ann", "vhost": "/", "configure": ".*", "write": "", "read": "^q"});
    assert_eq!(world.get("/api/users/ann/permissions").await.json, json!([expect]));
    assert_eq!(world.get("/api/permissions/%2F/ann").await.json, expect);
    assert_eq!(world.get("/api/vhosts/%2F/permissions").await.all("user"), "ann guest");
    world.put("/api/user-limits/ann/max-connections", r#"{"value":7}"#).await.expect(204);
    assert_eq!(
        world.get("/api/user-limits").await.json,
        json!([{"user": "ann", "value": {"max-connections": 7}}])
    );
    world.delete("/api/user-limits/ann/max-connections").await.expect(204);
    assert_eq!(world.get("/api/user-limits/ann").await.json, json!([]));
    let hash = format!(
        r#"{{"password_hash":"{}","hashing_algorithm":"rabbit_password_hashing_sha256","tags":""}}"#,
        world::TEST12
    );
    world.put("/api/users/bob", &hash).await.expect(201);
    assert_eq!(world.get("/api/users/bob").await.json["password_hash"], world::TEST12);
    world.post("/api/users/bulk-delete", r#"{"users":["ann","bob","nobody"]}"#).await.expect(204);
    assert_eq!(world.get("/api/users").await.all("name"), "guest");
    world.put("/api/users/eve", r#"{"password":"x"}"#).await.expect(400);
}

#[tokio::test]
async fn virtual_hosts_are_apart_and_whoever_makes_one_has_all_rights_there() {
    let world = World::new().await;
    world.put("/api/vhosts/a%2Fb", r#"{"description":"d","tags":"x,y"}"#).await.expect(201);
    world.put("/api/vhosts/a%2Fb", "").await.expect(204);
    let vhost = world.get("/api/vhosts/a%2Fb").await.expect(200).json;
    has(&vhost, &json!({"name": "a/b", "description": "d", "tags": ["x", "y"], "messages": 0}));
    world.queue("q", "{}").await;
    world.put("/api/queues/a%2Fb/q", "{}").await.expect(201);
    assert_eq!(world.get("/api/queues").await.all("vhost"), "/ a/b");
    world.put("/api/vhost-limits/a%2Fb/max-queues", r#"{"value":1}"#).await.expect(204);
    world.put("/api/queues/a%2Fb/r", "{}").await.expect(400);
    let limits = json!([{"vhost": "a/b", "value": {"max-queues": 1}}]);
    assert_eq!(world.get("/api/vhost-limits").await.json, limits);
    world.delete("/api/vhost-limits/a%2Fb/max-queues").await.expect(204);
    world.delete("/api/vhosts/a%2Fb").await.expect(204);
    world.get("/api/queues/a%2Fb").await.expect(404);
    assert_eq!(world.get("/api/permissions").await.all("vhost"), "/");
    world.delete("/api/vhosts/%2F").await.expect(403);
}

#[tokio::test]
async fn the_broker_says_what_it_is() {
    let world = World::new().await;
    world.queue("q", "{}").await;
    world.publish("q", "a b").await;
    let overview = world.get("/api/overview").await.expect(200).json;
    has(
        &overview,
        &json!({
            "product_name": "Overtake", "rabbitmq_version": "4.1.0", "node": "overtake@here",
            "cluster_name": "overtake@here",
            "object_totals": {"connections": 0, "channels": 0, "consumers": 0, "queues": 1, "exchanges": 7},
            "listeners": [{"node": "overtake@here", "protocol": "amqp", "ip_address": "127.0.0.1", "port": 5_672}],
        }),
    );
    has(
        &overview["queue_totals"],
        &json!({"messages": 2, "messages_ready": 2, "messages_unacknowledged": 0}),
    );
    has(&overview["message_stats"], &json!({"publish": 2, "publish_details": {"rate": 0.0}}));
    let node = world.get("/api/nodes").await.expect(200).json;
    has(
        &node[0],
        &json!({"name": "overtake@here", "running": true, "mem_alarm": false, "disk_free_alarm": false}),
    );
    world.put("/api/cluster-name", r#"{"name":"mine"}"#).await.expect(204);
    assert_eq!(world.get("/api/cluster-name").await.json, json!({"name": "mine"}));
    assert_eq!(world.get("/api/global-parameters/cluster_name").await.json["value"], "mine");
    world.put("/api/parameters/shovel/%2F/s", r#"{"value":{"a":1}}"#).await.expect(201);
    let expect = json!([{"component": "shovel", "vhost": "/", "name": "s", "value": {"a": 1}}]);
    assert_eq!(world.get("/api/parameters/shovel/%2F").await.json, expect);
    world.delete("/api/parameters/shovel/%2F/s").await.expect(204);
    for check in
        ["alarms", "local-alarms", "virtual-hosts", "port-listener/5672", "protocol-listener/amqp091"]
    {
        let reply = world.get(&format!("/api/health/checks/{check}")).await.expect(200);
        assert_eq!(reply.json["status"], "ok");
    }
    let reply = world.get("/api/health/checks/port-listener/1").await.expect(503).json;
    assert_eq!(
        reply,
        json!({"status": "failed", "reason": "No active listener", "missing": 1, "ports": [5_672]})
    );
    assert_eq!(world.get("/api/aliveness-test/%2F").await.expect(200).json, json!({"status": "ok"}));
}

#[tokio::test]
async fn somebody_with_few_rights_sees_little() {
    let world = World::new().await.with_user("clerk", "management", "^own").await;
    world.queue("own", "{}").await;
    world.queue("other", "{}").await;
    let clerk = Some(("clerk", "test12"));
    assert_eq!(world.ask_as(clerk, "GET", "/api/queues", "").await.all("name"), "own");
    world.ask_as(clerk, "GET", "/api/queues/%2F/other", "").await.expect(403);
    let reply = world.ask_as(clerk, "DELETE", "/api/queues/%2F/other/contents", "").await.expect(403);
    assert!(reply.reason().starts_with("read access to queue 'other'"), "{}", reply.text);
    let overview = world.ask_as(clerk, "GET", "/api/overview", "").await.expect(200).json;
    assert_eq!((&overview["object_totals"]["queues"], &overview["listeners"]), (&json!(1), &Value::Null));
}

#[tokio::test]
async fn numbers_for_prometheus_are_those_that_are_asked_for() {
    let world = World::new().await;
    world.queue("q", "{}").await;
    world.queue("q%22", "{}").await;
    world.publish("q", "a b").await;
    let get = async |query: &str| world.get(&format!("/metrics/detailed?{query}")).await.expect(200).text;
    assert_eq!(get("").await, "");
    let coarse = get("vhost=%2F&family=queue_coarse_metrics&family=queue_consumer_count").await;
    assert!(coarse.contains("# TYPE rabbitmq_detailed_queue_messages_ready gauge\n"), "{coarse}");
    assert!(coarse.contains("rabbitmq_detailed_queue_messages{vhost=\"/\",queue=\"q\"} 2\n"), "{coarse}");
    assert!(
        coarse.contains("rabbitmq_detailed_queue_consumers{vhost=\"/\",queue=\"q\\\"\"} 0\n"),
        "{coarse}"
    );
    assert!(!coarse.contains("published"), "{coarse}");
    assert_eq!(get("vhost=other&family=queue_consumer_count").await.lines().count(), 1);
}
