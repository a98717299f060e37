//! What cannot be: for each the status, the code, and always a hint.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::Request;
use http_body::Frame;
use overtake_http::HttpOptions;
use serde_json::{Value, json};

use crate::world::{Reply, World};

/// Method, path, body, expected status and code, expected key.
const BAD: &[(&str, &str, &str, &str, &str)] = &[
    // Paths and methods.
    ("GET", "/", "", "404 no-such-path", ""),
    ("GET", "/v1/nothing", "", "404 no-such-path", ""),
    ("GET", "/v1/queues/a/b/c", "", "404 no-such-path", ""),
    ("POST", "/v1/queues", "", "405 method-not-allowed", ""),
    ("TRACE", "/v1/queues/q", "", "405 method-not-allowed", ""),
    ("GET", "/v1/queues/q/leases", "", "405 method-not-allowed", ""),
    ("POST", "/livez", "", "405 method-not-allowed", ""),
    // Names.
    ("PUT", "/v1/queues/a%00b", "{}", "422 name-invalid", "queue"),
    ("PUT", "/v1/queues/a%0Ab", "{}", "422 name-invalid", "queue"),
    ("PUT", "/v1/queues/a%C2%85b", "{}", "422 name-invalid", "queue"),
    ("PUT", "/v1/queues/%FF", "{}", "422 name-invalid", "queue"),
    ("PUT", "/v1/queues/LONG", "{}", "422 name-invalid", "queue"),
    ("GET", "/v1/queues/LONG/messages", "", "422 name-invalid", "queue"),
    ("PUT", "/v1/exchanges/a%7Fb", r#"{"kind":"direct"}"#, "422 name-invalid", "exchange"),
    ("GET", "/v1/queues/q/messages/a%00", "", "422 id-invalid", "id"),
    ("GET", "/v1/queues/nope", "", "404 no-such-queue", ""),
    ("DELETE", "/v1/queues/nope", "", "404 no-such-queue", ""),
    ("POST", "/v1/queues/nope/messages", r#"{"body":"a"}"#, "404 no-such-queue", ""),
    ("POST", "/v1/queues/nope/leases", "{}", "404 no-such-queue", ""),
    ("POST", "/v1/queues/nope/settle", r#"{"receipts":["1-1-1"],"how":"ack"}"#, "404 no-such-queue", ""),
    ("GET", "/v1/queues/nope/messages", "", "404 no-such-queue", ""),
    ("GET", "/v1/queues/q/messages/nope", "", "404 no-such-message", ""),
    ("DELETE", "/v1/queues/q/messages/seq-99", "", "404 no-such-message", ""),
    ("PUT", "/v1/queues/q/messages/nope/priority", r#"{"priority":1}"#, "404 no-such-message", ""),
    ("POST", "/v1/queues/q/replay", r#"{"id":"nope"}"#, "404 no-such-message", ""),
    ("GET", "/v1/exchanges/nope/bindings", "", "404 no-such-exchange", ""),
    ("POST", "/v1/exchanges/nope/messages", r#"{"body":""}"#, "404 no-such-exchange", ""),
    ("POST", "/v1/exchanges/amq.topic/bindings", r#"{"queue":"nope"}"#, "404 no-such-queue", ""),
    ("DELETE", "/v1/exchanges/amq.topic", "", "422 exchange-reserved", ""),
    ("PUT", "/v1/exchanges/amq.mine", r#"{"kind":"topic"}"#, "422 exchange-reserved", ""),
    // Bodies.
    ("PUT", "/v1/queues/q", "{", "400 json-malformed", ""),
    ("PUT", "/v1/queues/q", "[]", "422 value-invalid", ""),
    ("PUT", "/v1/queues/q", "\"q\"", "422 value-invalid", ""),
    ("PUT", "/v1/queues/q", r#"{"max_activ":1}"#, "422 field-unknown", "max_activ"),
    ("PUT", "/v1/queues/q", r#"{"max_active":-1}"#, "422 value-invalid", "max_active"),
    ("PUT", "/v1/queues/q", r#"{"max_active":1e99}"#, "422 value-invalid", "max_active"),
    ("PUT", "/v1/queues/q", r#"{"max_active":4294967296}"#, "422 value-invalid", "max_active"),
    ("PUT", "/v1/queues/q", r#"{"ttl_ms":315360000001}"#, "422 value-invalid", "ttl_ms"),
    ("PUT", "/v1/queues/q", r#"{"scheme":"five"}"#, "422 value-invalid", "scheme"),
    ("PUT", "/v1/queues/q", r#"{"backoff":{"multiplier":0}}"#, "422 value-invalid", "backoff.multiplier"),
    ("PUT", "/v1/queues/q", r#"{"backoff":{"initial":1}}"#, "422 field-unknown", "backoff.initial"),
    ("PUT", "/v1/queues/q", r#"{"lanes":{"11":{"max_active":1}}}"#, "422 value-invalid", "lanes.11"),
    ("PUT", "/v1/queues/q", r#"{"lanes":{"1":{},"1":{}}}"#, "422 field-duplicate", "lanes.1"),
    ("PATCH", "/v1/queues/q", r#"{"ttl_ms":1,"ttl_ms":1}"#, "422 field-duplicate", "ttl_ms"),
    ("PATCH", "/v1/queues/q", r#"{"lanes":{"1":null,"1":null}}"#, "422 field-duplicate", "lanes.1"),
    ("PUT", "/v1/categories/c/groups/g", r#"{"ttl_ms":1,"ttl_ms":2}"#, "422 field-duplicate", "ttl_ms"),
    ("PUT", "/v1/endpoints/e", r#"{"queue":"q","queue":"r"}"#, "422 field-duplicate", "queue"),
    ("GET", "/v1/queues?limit=1&limit=1", "", "422 value-invalid", "limit"),
    // A condition that is lost on its way is not none.
    ("DELETE", "/v1/queues/q?if=", "", "422 value-invalid", "if"),
    ("DELETE", "/v1/exchanges/amq.topic?if=", "", "422 value-invalid", "if"),
    ("POST", "/v1/queues/q/remove", r#"{"filter":["ready"]}"#, "422 value-invalid", "filter"),
    ("POST", "/v1/queues/q/cancel", r#"{"filter":[]}"#, "422 value-invalid", "filter"),
    ("POST", "/v1/queues/q/replay", r#"{"filter":["dead"]}"#, "422 value-invalid", "filter"),
    ("POST", "/v1/queues/q/messages", r#"{"body":"a""#, "400 json-malformed", ""),
    ("POST", "/v1/queues/q/messages", r#"{"body":"a","prio":1}"#, "422 field-unknown", "prio"),
    (
        "POST",
        "/v1/queues/q/messages",
        r#"{"body":"a","priority":-1}"#,
        "422 priority-out-of-range",
        "priority",
    ),
    (
        "POST",
        "/v1/queues/q/messages",
        r#"{"body":"a","priority":"high"}"#,
        "422 priority-unknown",
        "priority",
    ),
    ("POST", "/v1/queues/q/messages", r#"{"body":"a","priority":1.5}"#, "422 value-invalid", "priority"),
    ("POST", "/v1/queues/q/messages", r#"{"body":"a","id":""}"#, "422 id-invalid", "id"),
    ("POST", "/v1/queues/q/messages", r#"{"body":"a","id":"seq-5"}"#, "422 id-invalid", "id"),
    ("POST", "/v1/queues/q/messages", r#"{"body":"a","key":"\u0001"}"#, "422 key-invalid", "key"),
    ("POST", "/v1/queues/q/messages", r#"{"body":"a","key_weight":2}"#, "422 key-weight-alone", "key_weight"),
    (
        "POST",
        "/v1/queues/q/messages",
        r#"{"body":"a","key":"k","key_weight":1001}"#,
        "422 key-weight-invalid",
        "key_weight",
    ),
    (
        "POST",
        "/v1/queues/q/messages",
        r#"{"body":"a","key":"k","key_weight":1.5}"#,
        "422 value-invalid",
        "key_weight",
    ),
    (
        "PUT",
        "/v1/schedules/s",
        r#"{"queue":"q","cron":"* * * * *","message":{"body":"a","key":"k","key_weight":0}}"#,
        "422 key-weight-invalid",
        "message.key_weight",
    ),
    ("POST", "/v1/queues/q/messages", r#"{"body":"a","delay_ms":1e999}"#, "422 value-invalid", "delay_ms"),
    ("POST", "/v1/queues/q/messages?priority=9", r#"{"body":"a"}"#, "422 parameter-unknown", "priority"),
    ("POST", "/v1/queues/q/leases", r#"{"max":0}"#, "422 value-invalid", "max"),
    ("POST", "/v1/queues/q/leases", r#"{"wait_ms":60001}"#, "422 value-invalid", "wait_ms"),
    ("POST", "/v1/queues/q/leases", r#"{"wait_ms":"5s"}"#, "422 value-invalid", "wait_ms"),
    ("POST", "/v1/queues/q/settle", "", "422 field-missing", "receipts"),
    ("POST", "/v1/queues/q/settle", r#"{"receipts":["x"],"how":"ack"}"#, "422 value-invalid", "receipts[0]"),
    (
        "POST",
        "/v1/queues/q/settle",
        r#"{"receipts":["ffff-1-1"],"how":"ack"}"#,
        "422 value-invalid",
        "receipts[0]",
    ),
    (
        "POST",
        "/v1/queues/q/extend",
        r#"{"receipts":["x"],"visibility_timeout_ms":1}"#,
        "422 value-invalid",
        "receipts[0]",
    ),
    (
        "POST",
        "/v1/queues/q/extend",
        r#"{"receipts":["1-1-1"]}"#,
        "422 field-missing",
        "visibility_timeout_ms",
    ),
    ("POST", "/v1/queues/q/remove", "", "422 value-invalid", "filter"),
    ("POST", "/v1/queues/q/reprioritise", r#"{"priority":1}"#, "422 value-invalid", "filter"),
    ("POST", "/v1/queues/q/reprioritise", r#"{"all":true}"#, "422 field-missing", "priority"),
    (
        "POST",
        "/v1/queues/q/reprioritise",
        r#"{"all":true,"priority":"x"}"#,
        "422 priority-unknown",
        "priority",
    ),
    ("POST", "/v1/queues/q/purge?status=dead", "", "422 parameter-unknown", "status"),
    ("POST", "/v1/queues/q/purge", r#"{"status":"leased"}"#, "422 value-invalid", "status"),
    ("POST", "/v1/queues/q/replay", "{}", "422 value-invalid", "id"),
    ("POST", "/v1/transactions", "{}", "422 value-invalid", "publish"),
    (
        "POST",
        "/v1/transactions",
        r#"{"publish":[{"queue":"nope","body":""}]}"#,
        "404 no-such-queue",
        "publish[0]",
    ),
    ("PUT", "/v1/exchanges/x", r#"{"kind":"quick"}"#, "422 value-invalid", "kind"),
    ("PUT", "/v1/exchanges/x", "{}", "422 field-missing", "kind"),
    ("POST", "/v1/exchanges/amq.topic/bindings", "{}", "422 value-invalid", "queue"),
    (
        "POST",
        "/v1/exchanges/amq.topic/bindings",
        r#"{"queue":"q","to_exchange":"x"}"#,
        "422 value-invalid",
        "queue",
    ),
    (
        "POST",
        "/v1/exchanges/amq.topic/bindings",
        r#"{"queue":"q","any":true,"match":"all"}"#,
        "422 value-invalid",
        "any",
    ),
    (
        "POST",
        "/v1/exchanges/amq.topic/bindings",
        r#"{"queue":"q","match":"some"}"#,
        "422 value-invalid",
        "match",
    ),
    (
        "POST",
        "/v1/exchanges/amq.topic/bindings",
        r#"{"queue":"q","arguments_base64":"!"}"#,
        "422 value-invalid",
        "arguments_base64",
    ),
    ("PUT", "/v1/exchanges/x", r#"{"kind":"topic","alternate":""}"#, "422 name-invalid", "alternate"),
    ("DELETE", "/v1/exchanges/x?if=empty", "", "422 value-invalid", "if"),
    ("POST", "/v1/exchanges/amq.rabbitmq.trace/messages", r#"{"body":""}"#, "409 exchange-internal", ""),
    // Parameters.
    ("DELETE", "/v1/queues/q?if=full", "", "422 value-invalid", "if"),
    ("DELETE", "/v1/queues/q?iff=empty", "", "422 parameter-unknown", "iff"),
    ("DELETE", "/v1/queues/q?if=empty&if=unused", "", "422 value-invalid", "if"),
    ("GET", "/v1/queues?vhost=/&vhost=/", "", "422 value-invalid", "vhost"),
    (
        "PUT",
        "/v1/endpoints/e",
        r#"{"to":{"webhook":["http://127.0.0.1:1/"]}}"#,
        "422 value-invalid",
        "to.webhook",
    ),
    ("PUT", "/v1/endpoints/e", r#"{"to":{"queue":{"queue":"a"}},"send":[4]}"#, "422 value-invalid", "send"),
    (
        "PUT",
        "/v1/sources/s",
        r#"{"from":{"amqp":["a"]},"into":{"queue":"q"}}"#,
        "422 value-invalid",
        "from.amqp",
    ),
    ("GET", "/v1/queues?limit=0", "", "422 value-invalid", "limit"),
    ("GET", "/v1/queues?limit=1001", "", "422 value-invalid", "limit"),
    ("GET", "/v1/queues?cursor=q", "", "422 value-invalid", "cursor"),
    ("GET", "/v1/queues?cursor=d5", "", "422 value-invalid", "cursor"),
    ("GET", "/v1/queues?name=a", "", "422 parameter-unknown", "name"),
    ("GET", "/v1/queues/q/messages?limit=1001", "", "422 value-invalid", "limit"),
    ("GET", "/v1/queues/q/messages?cursor=x", "", "422 value-invalid", "cursor"),
    ("GET", "/v1/queues/q/messages?priority=high", "", "422 priority-unknown", "priority"),
    ("GET", "/v1/queues/q/messages?colour=red", "", "422 parameter-unknown", "colour"),
    ("GET", "/v1/queues/q/messages?header.a=1&header.a=2", "", "422 value-invalid", "header.a"),
    ("GET", "/v1/overview?vhost=nope", "", "404 no-such-vhost", "vhost"),
    ("GET", "/v1/overview/events?vhost=nope", "", "404 no-such-vhost", "vhost"),
    ("GET", "/v1/overview/history?vhost=nope", "", "404 no-such-vhost", "vhost"),
    ("GET", "/v1/overview/history?vhost=nope&queue=q", "", "404 no-such-vhost", "vhost"),
    // A list is no table, although it may have the values of its fields.
    ("PUT", "/v1/queues/new", r#"{"backoff":[7]}"#, "422 value-invalid", "backoff"),
    ("PATCH", "/v1/queues/q", r#"{"backoff":[7]}"#, "422 value-invalid", "backoff"),
    ("PUT", "/v1/queues/new", r#"{"rate_limit":[5,5]}"#, "422 value-invalid", "rate_limit"),
    ("PUT", "/v1/queues/new", r#"{"key_rate_limit":[5,5]}"#, "422 value-invalid", "key_rate_limit"),
    ("PUT", "/v1/queues/new", r#"{"reject_below":[5,5]}"#, "422 value-invalid", "reject_below"),
    ("PUT", "/v1/queues/new", r#"{"order":{"lanes":[["p",0]]}}"#, "422 value-invalid", "order.lanes[0]"),
    (
        "PUT",
        "/v1/queues/new",
        r#"{"dead_letter":{"exchange":["x"]}}"#,
        "422 value-invalid",
        "dead_letter.exchange",
    ),
    (
        "PUT",
        "/v1/queues/new",
        r#"{"scheme":"named","lanes":{"high":[3]}}"#,
        "422 value-invalid",
        "lanes.high",
    ),
    ("POST", "/v1/queues/q/messages", r#"{"messages":[["a"]]}"#, "422 value-invalid", "messages[0]"),
    ("POST", "/v1/transactions", r#"{"publish":[["q",["a"]]]}"#, "422 value-invalid", "publish[0]"),
    ("POST", "/v1/queues/q/remove", r#"{"filter":["ready"]}"#, "422 value-invalid", "filter"),
];

#[tokio::test]
async fn every_bad_request_has_its_status_its_code_and_a_hint() {
    let world = World::with_queue("").await;
    for (method, path, body, code, key) in BAD {
        let path = path.replace("LONG", &"a".repeat(201));
        let reply = world.ask(method, &path, body).await;
        let what = format!("{method} {path} {body}: {}", reply.text);
        assert_eq!(reply.code(), *code, "{what}");
        assert_eq!(reply.json["key"].as_str().unwrap_or_default(), *key, "{what}");
        check_problem(&reply, &what);
    }
    let queue = world.get("/v1/queues/q").await.expect(200);
    assert_eq!(queue.json["totals"]["published"], 0, "nothing was done");
}

#[tokio::test]
async fn no_operation_ignores_a_parameter_that_it_does_not_know() {
    let document: Value = serde_json::from_str(&overtake_http::openapi_json()).expect("JSON");
    let world = World::with_queue("").await;
    let mut asked = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        // Load balancers and Prometheus may add parameters of their own to the other paths.
        if !path.starts_with("/v1/") && !path.starts_with("/api/v1/") {
            continue;
        }
        let path = path.split('/').map(|part| if part.starts_with('{') { "q" } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        for method in item.as_object().expect("methods").keys() {
            let reply = world.ask(&method.to_uppercase(), &format!("{path}?colour=red"), "").await;
            let what = format!("{method} {path}: {}", reply.text);
            assert_eq!(reply.code(), "422 parameter-unknown", "{what}");
            assert!(said(&reply).starts_with("colour: "), "{what}");
            check_problem(&reply, &what);
            asked += 1;
        }
    }
    assert!(asked > 70, "{asked}");
    let near = world.get("/v1/queues/q/messages?staus=dead").await;
    assert_eq!(near.json["hint"], "did you mean `status`?");
}

fn check_problem(reply: &Reply, what: &str) {
    assert_eq!(reply.header("content-type"), "application/problem+json", "{what}");
    assert_eq!(reply.json["status"], reply.status.as_u16(), "{what}");
    let code = reply.json["code"].as_str().expect("a code");
    assert_eq!(reply.json["type"], format!("urn:overtake:problem:{code}"), "{what}");
    for field in ["title", "detail", "hint"] {
        assert!(!reply.json[field].as_str().unwrap_or_default().is_empty(), "no {field}: {what}");
    }
}

/// The message of a problem as a person sees it: the key, and what happened.
fn said(reply: &Reply) -> String {
    format!(
        "{}: {}",
        reply.json["key"].as_str().unwrap_or_default(),
        reply.json["detail"].as_str().unwrap_or_default()
    )
}

#[tokio::test]
async fn a_wrong_value_of_a_setting_is_named_with_its_key() {
    let document: Value = serde_json::from_str(&overtake_http::openapi_json()).expect("JSON");
    let settings = document["components"]["schemas"]["Settings"]["properties"].as_object().expect("settings");
    assert!(settings.len() > 30);
    let world = World::with_queue("").await;
    for key in settings.keys() {
        let mut refused = 0;
        for wrong in [json!("?!"), json!(-7), json!(0.5), json!(315_360_000_000_001_u64)] {
            let body = json!({ key: wrong }).to_string();
            for (method, path) in
                [("PUT", "/v1/queues/new"), ("PATCH", "/v1/queues/q"), ("PUT", "/v1/categories/c/groups/g")]
            {
                let reply = world.ask(method, path, &body).await;
                if reply.status.is_success() || reply.code().starts_with("404") {
                    continue;
                }
                refused += 1;
                let value = wrong.as_str().map_or_else(|| wrong.to_string(), ToOwned::to_owned);
                let said = said(&reply);
                assert_eq!(reply.status, 422, "{method} {path} {body}: {said}");
                assert!(
                    said.contains(key.as_str()) && said.contains(&value),
                    "{method} {path} {body}: {said}"
                );
                check_problem(&reply, &body);
            }
            world.ask("PUT", "/v1/queues/q?replace=true", "").await.expect(200);
            world.delete("/v1/queues/new").await;
        }
        assert!(refused > 0, "{key}");
    }
}

#[tokio::test]
async fn a_wrong_value_of_a_parameter_is_named_with_it() {
    let document: Value = serde_json::from_str(&overtake_http::openapi_json()).expect("JSON");
    // Any text may be the value of these.
    let are_free = ["vhost", "queue", "name", "key", "user_id", "header.NAME"];
    let world = World::with_queue("").await;
    world.put("/v1/queues/executions", r#"{"scheme":"named"}"#).await.expect(201);
    let mut checked = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let place = path.replace("{queue}", "q").replace("{exchange}", "amq.topic").replace("{path}", "a");
        for (method, operation) in operations.as_object().expect("operations") {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            for name in parameters.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str()) {
                if are_free.contains(&name) {
                    continue;
                }
                let id = if place.contains("{id}") { "seq-1" } else { "" };
                let uri = format!("{}?{name}=z%C3%BC!", place.replace("{id}", id));
                let reply = world.ask(&method.to_uppercase(), &uri, "").await;
                let said = said(&reply);
                assert_eq!(reply.status, 422, "{method} {uri}: {said}");
                assert!(said.contains(name) && said.contains("`zü!`"), "{method} {uri}: {said}");
                check_problem(&reply, &uri);
                checked.push(name.to_owned());
            }
        }
    }
    checked.sort_unstable();
    checked.dedup();
    let expected = [
        "body",
        "check",
        "cursor",
        "if",
        "import_priority",
        "limit",
        "mandatory",
        "order",
        "priority",
        "properties",
    ];
    assert!(expected.iter().all(|name| checked.iter().any(|one| one == name)), "{checked:?}");
}

#[tokio::test]
async fn what_is_wrong_is_said_with_the_value_that_was_sent() {
    let world = World::with_queue(r#"{"scheme":"named"}"#).await;
    world.publish("a").await;
    let check = async |method: &str, path: &str, body: &str, expect: &str| {
        let reply = world.ask(method, path, body).await;
        assert!(said(&reply).contains(expect), "{method} {path} {body}: {}", reply.text);
    };
    let (queue, messages) = ("/v1/queues/q", "/v1/queues/q/messages");
    check(
        "PATCH",
        queue,
        r#"{"overflow":"drop"}"#,
        "`overflow` is `drop`: expected one of `evict`, `reject`",
    )
    .await;
    check("PATCH", queue, r#"{"picker":"foo"}"#, "`picker` is `foo`: expected one of `strict`, `aging_ms`")
        .await;
    check(
        "PATCH",
        queue,
        r#"{"delivery_limit":-1}"#,
        "`delivery_limit` is `-1`: expected a whole number from 0",
    )
    .await;
    check("PATCH", queue, r#"{"max_unacked":0}"#, "`max_unacked` is `0`: it must be 1 to").await;
    check(
        "PATCH",
        queue,
        r#"{"history":"q"}"#,
        "`history` is `q`: the `history` of the queue is the queue itself",
    )
    .await;
    check("GET", "/v1/queues/q/messages?priority=zz", "", "`priority` is `zz`: queue `q` has scheme `named`")
        .await;
    check("POST", messages, r#"{"body":"b","priority":"zz"}"#, "`priority` is `zz`: queue `q` has scheme")
        .await;
    check(
        "POST",
        messages,
        r#"{"messages":[{"body":"b"},{"body":"c","priority":7}]}"#,
        "`messages[1].priority` is `7`",
    )
    .await;
    check("POST", messages, r#"{"body":"b","id":"seq-7"}"#, "`id` is `seq-7`").await;
    check("POST", "/v1/queues/q/purge", r#"{"expect":2}"#, "`expect` is `2`: 1 messages are selected").await;
    check("POST", "/v1/queues/q/purge", r#"{"expect":-2}"#, "`expect` is `-2`: expected a whole number")
        .await;
    let raw = world.raw(messages, &[TEXT, ("Overtake-Priority", "zz")], b"x").await;
    assert!(said(&raw).contains("`priority` is `zz`: queue `q`"), "{}", raw.text);
    let raw = world.raw(messages, &[TEXT, ("Overtake-Priority", "")], b"x").await;
    assert!(said(&raw).ends_with(": `overtake-priority` is there without a value"), "{}", raw.text);
    // A body that may hold a secret is not repeated.
    let secret = world.put("/v1/users/u", r#"{"password":5150}"#).await;
    assert!(secret.status == 422 && !secret.text.contains("5150"), "{}", secret.text);
}

#[tokio::test]
async fn a_priority_for_what_waits_without_one_is_checked_when_nothing_waits() {
    let world = World::with_queue(r#"{"scheme":"named","order":"fifo"}"#).await;
    let check = async |method: &str, path: &str, body: &str, code: &str, hint: &str| {
        let reply = world.ask(method, path, body).await;
        assert_eq!(reply.code(), code, "{path}: {}", reply.text);
        assert_eq!(reply.json["key"], "import_priority", "{path}");
        assert!(reply.text.contains(hint), "{path}: {}", reply.text);
    };
    for body in ["{}", r#"{"order":"priority"}"#] {
        check("PATCH", "/v1/queues/q?import_priority=zz", body, "422 priority-unknown", "`most-urgent`")
            .await;
        check("PATCH", "/v1/queues/q?import_priority=7", body, "422 priority-unknown", "`most-urgent`").await;
        check("PATCH", "/v1/queues/q?import_priority=", body, "422 value-invalid", "").await;
        let new = "/v1/queues/new?replace=true&import_priority=zz";
        check("PUT", new, body, "422 priority-unknown", "").await;
        let new = "/v1/queues/new?import_priority=1";
        check("PUT", new, body, "422 value-invalid", "replace=true").await;
    }
    let body = r#"{"order":"priority","import_priority":"high"}"#;
    check("PATCH", "/v1/queues/q", body, "422 field-unknown", "parameter of the query").await;
    check("PUT", "/v1/queues/q", body, "422 field-unknown", "parameter of the query").await;
    assert_eq!(world.get("/v1/queues/q").await.json["settings"]["order"], "fifo");
}

#[tokio::test]
async fn malformed_json_is_placed() {
    let world = World::with_queue("").await;
    let reply =
        world.post("/v1/queues/q/messages", "{\n  \"body\": \"a\",\n  \"priority\": 5,\n}").await.expect(400);
    assert_eq!(reply.json["at"], json!({"line": 4, "column": 1}));
}

#[tokio::test]
async fn a_body_nested_without_end_is_refused() {
    let world = World::new();
    let deep = format!(r#"{{"default_priority":{}"#, "[".repeat(100_000));
    assert_eq!(world.put("/v1/queues/q", &deep).await.code(), "400 json-malformed");
}

#[tokio::test]
async fn a_method_that_is_not_taken_is_told_which_are() {
    let reply = World::new().ask("POST", "/v1/queues/q", "").await.expect(405);
    let mut allowed: Vec<_> = reply.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["DELETE", "GET", "HEAD", "PATCH", "PUT"]);
}

#[tokio::test]
async fn a_body_that_is_no_json_is_told_so() {
    let world = World::with_queue("").await;
    for headers in [&[][..], &[("Content-Type", "application/x-www-form-urlencoded")]] {
        let reply = world.raw("/v1/queues/q/leases", headers, b"{}").await;
        assert_eq!(reply.code(), "415 media-type-unsupported");
        check_problem(&reply, "leases");
    }
    let typed = [("Content-Type", "Application/JSON; charset=utf-8")];
    world.raw("/v1/queues/q/leases", &typed, b"{}").await.expect(200);
}

const TEXT: (&str, &str) = ("Content-Type", "text/plain");

#[tokio::test]
async fn json_that_is_sent_as_a_form_is_not_published_as_text() {
    let world = World::with_queue("").await;
    world.put("/v1/exchanges/x", r#"{"kind":"fanout"}"#).await.expect(200);
    let body = br#"{"body":"hi","priority":"critical"}"#;
    let types = [
        Some("application/x-www-form-urlencoded"),
        Some("APPLICATION/x-www-form-urlencoded; charset=utf-8"),
        Some("multipart/form-data; boundary=x"),
        None,
    ];
    for path in ["/v1/queues/q/messages", "/v1/exchanges/x/messages", "/v1/topics/a/b"] {
        for said in types {
            let headers: Vec<_> = said.iter().map(|said| ("Content-Type", *said)).collect();
            let reply = world.raw(path, &headers, body).await;
            assert_eq!(reply.code(), "415 media-type-unsupported", "{path} {said:?}");
            assert!(reply.json["hint"].as_str().unwrap_or_default().contains("application/json"), "{path}");
            check_problem(&reply, path);
        }
    }
    assert_eq!(world.get("/v1/queues/q").await.expect(200).json["totals"]["ready"], 0);
}

#[tokio::test]
async fn raw_messages_are_checked_like_others() {
    let world = World::with_queue("").await;
    let check = async |headers: &[(&str, &str)], body: &[u8], code: &str, key: &str| {
        let reply = world.raw("/v1/queues/q/messages", headers, body).await;
        assert_eq!(
            (reply.code().as_str(), reply.json["key"].as_str().unwrap_or_default()),
            (code, key),
            "{headers:?}"
        );
        check_problem(&reply, &format!("{headers:?}"));
    };
    check(&[TEXT, ("Overtake-Prio", "1")], b"x", "422 header-unknown", "overtake-prio").await;
    check(&[TEXT, ("Overtake-Ttl-Ms", "soon")], b"x", "422 value-invalid", "overtake-ttl-ms").await;
    check(&[TEXT, ("Overtake-Priority", "-1")], b"x", "422 priority-out-of-range", "priority").await;
    check(&[TEXT, ("Overtake-Id", "seq-1")], b"x", "422 id-invalid", "id").await;
    check(&[], b"", "422 value-invalid", "body").await;
    check(&[TEXT], &vec![b'x'; (1 << 16) + 1], "413 message-too-large", "body").await;
}

#[tokio::test]
async fn what_is_too_large_is_told_the_limit() {
    let options = HttpOptions { max_message_bytes: 100, max_request_bytes: 1_000, ..HttpOptions::default() };
    let world = World::with(options);
    world.put("/v1/queues/q", "").await.expect(201);
    let message = |len| json!({"body": "x".repeat(len)}).to_string();
    world.post("/v1/queues/q/messages", &message(100)).await.expect(201);
    let large = world.post("/v1/queues/q/messages", &message(101)).await;
    assert_eq!((large.code(), &large.json["limit"]), ("413 message-too-large".to_owned(), &json!(100)));
    let larger = world.post("/v1/queues/q/messages", &message(1_000)).await;
    assert_eq!((larger.code(), &larger.json["limit"]), ("413 request-too-large".to_owned(), &json!(1_000)));
    // Without a Content-Length the limit holds while the body is read; with one nothing is read.
    let request = Request::post("/v1/queues/q/messages").header("content-type", "text/plain");
    let endless = world.send(request.body(Body::new(Stranger::Endless)).expect("a request")).await;
    assert_eq!(endless.code(), "413 request-too-large");
    let request = Request::post("/v1/queues/q/messages").header("content-length", "1001");
    let promised = world.send(request.body(Body::new(Stranger::Untouched)).expect("a request")).await;
    assert_eq!(promised.code(), "413 request-too-large");
}

/// A body that goes on for ever, and one that must not be read.
enum Stranger {
    Endless,
    Untouched,
}

impl http_body::Body for Stranger {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match *self {
            Self::Endless => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 64]))))),
            Self::Untouched => panic!("a body that says it is too large is not read"),
        }
    }
}

#[tokio::test]
async fn a_receipt_of_another_queue_is_refused() {
    let world = World::with_queue("").await;
    world.put("/v1/queues/other", "").await.expect(201);
    world.publish("a").await;
    let (_, receipts) = world.lease(1).await;
    let settle = json!({"receipts": receipts, "how": "ack"}).to_string();
    let reply = world.post("/v1/queues/other/settle", &settle).await;
    assert_eq!((reply.code(), &reply.json["key"]), ("422 value-invalid".to_owned(), &json!("receipts[0]")));
    world.post("/v1/queues/q/settle", &settle).await.expect(200);
}

#[tokio::test]
async fn a_receipt_does_not_survive_its_queue() {
    let world = World::with_queue("").await;
    world.publish("a").await;
    let (_, receipts) = world.lease(1).await;
    let settle = json!({"receipts": receipts, "how": "ack"}).to_string();
    world.delete("/v1/queues/q").await.expect(204);
    assert_eq!(world.post("/v1/queues/q/settle", &settle).await.code(), "404 no-such-queue");
    world.put("/v1/queues/q", "").await.expect(201);
    let reply = world.post("/v1/queues/q/settle", &settle).await;
    assert!(["409 stale-receipt", "422 value-invalid"].contains(&reply.code().as_str()), "{}", reply.text);
}

#[tokio::test]
async fn conflicts_say_what_stands_in_the_way() {
    let world = World::with_queue("").await;
    world.publish("a").await;
    let fixed = world.put("/v1/queues/q?replace=true", r#"{"scheme":"named"}"#).await;
    assert_eq!((fixed.code(), &fixed.json["key"]), ("409 setting-fixed".to_owned(), &json!("scheme")));
    assert_eq!(world.delete("/v1/queues/q?if=empty").await.code(), "409 not-empty");
    assert_eq!(world.post("/v1/queues/q/replay", r#"{"id":"a"}"#).await.code(), "409 not-dead");
}

#[tokio::test]
async fn a_full_queue_asks_to_come_again() {
    let world = World::with_queue(r#"{"max_length":1,"overflow":"reject"}"#).await;
    world.publish("a").await;
    let full = world.post("/v1/queues/q/messages", r#"{"body":"b"}"#).await;
    assert_eq!((full.code().as_str(), full.header("retry-after")), ("429 queue-full", "1"));
    assert_eq!(full.json["detail"], "queue `q` is full; messages that wait: 1 of 1 (`max_length`)");
    world.put("/v1/queues/q?replace=true", r#"{"reject_below":{"depth":1,"priority":5}}"#).await.expect(200);
    let below = world.post("/v1/queues/q/messages", r#"{"body":"b","priority":4}"#).await;
    assert_eq!((below.code().as_str(), below.header("retry-after")), ("429 below-priority", "1"));
    world.post("/v1/queues/q/messages", r#"{"body":"b","priority":5}"#).await.expect(201);
}

#[tokio::test]
async fn a_message_that_is_too_large_for_its_queue_is_told_the_limit() {
    let world = World::with_queue(r#"{"max_bytes":60,"max_message_bytes":40}"#).await;
    let body = json!({"body": "x".repeat(50)}).to_string();
    let large = world.post("/v1/queues/q/messages", &body).await;
    assert_eq!(large.code(), "413 message-too-large");
    let told = "the message is larger than queue `q` takes: 40 bytes with its headers (`max_message_bytes`)";
    assert_eq!(large.json["detail"], told);
    world.put("/v1/exchanges/q", r#"{"kind":"fanout"}"#).await.expect(200);
    world.post("/v1/exchanges/q/bindings", r#"{"queue":"q"}"#).await.expect(201);
    let large = world.post("/v1/exchanges/q/messages", &body).await;
    assert_eq!(large.json["detail"], "the message is too large", "the name is an exchange's: {}", large.text);
}

#[tokio::test]
async fn a_refused_batch_says_which_message_is_at_fault() {
    let world = World::with_queue(r#"{"max_length":2,"overflow":"reject"}"#).await;
    let check = async |path: &str, body: &str, code: &str, key: &str, detail: &str| {
        let reply = world.post(path, body).await;
        let seen = (reply.code(), reply.json["key"].as_str().unwrap_or_default().to_owned());
        assert_eq!(seen, (code.to_owned(), key.to_owned()), "{body}: {}", reply.text);
        assert!(said(&reply).ends_with(detail), "{body}: {}", said(&reply));
        check_problem(&reply, body);
    };
    let queue = "/v1/queues/q/messages";
    check(
        queue,
        r#"{"messages":[{"body":"a"},{"body":"b","priority":-1},{"body":"c","priority":-2}]}"#,
        "422 priority-out-of-range",
        "messages[1].priority",
        "message 2 of 3 is refused: queue `q` has scheme `ten-level`, whose priorities are 0 to 9, larger first; above 9 counts as 9, up to 32 bits; nothing was done",
    )
    .await;
    check(
        queue,
        r#"{"messages":[{"body":"a"},{"body":"b"},{"body":"c"},{"body":"d"}]}"#,
        "429 queue-full",
        "messages[2]",
        "queue `q` never holds all of them at once: they are 4 messages, and its `max_length` is 2; nothing was done",
    )
    .await;
    world.put("/v1/queues/half", r#"{"max_length":2,"overflow":"reject"}"#).await.expect(201);
    world.post("/v1/queues/half/messages", r#"{"body":"there"}"#).await.expect(201);
    check(
        "/v1/queues/half/messages",
        r#"{"messages":[{"body":"a"},{"body":"b"}]}"#,
        "429 queue-full",
        "messages[1]",
        "message 2 of 2 is refused: queue `half` is full; messages that wait: 1 of 2 (`max_length`); nothing was done",
    )
    .await;
    world.put("/v1/queues/small", r#"{"max_bytes":5,"overflow":"reject"}"#).await.expect(201);
    check(
        "/v1/transactions",
        r#"{"publish":[{"queue":"q","body":"a"},{"queue":"small","body":"bbb"},{"queue":"small","body":"ccc"}]}"#,
        "429 queue-full",
        "publish[2]",
        "queue `small` never holds all of them at once: they are 6 bytes, and its `max_bytes` is 5; nothing was done",
    )
    .await;
    // One message is known without being counted.
    check(
        queue,
        r#"{"messages":[{"body":"a","id":"seq-1"}]}"#,
        "422 id-invalid",
        "id",
        "the id cannot be used",
    )
    .await;
    check(
        "/v1/exchanges/amq.direct/messages",
        r#"{"messages":[{"body":"a"},{"body":"b","routing_key":"k","mandatory":true}]}"#,
        "422 unroutable",
        "messages[1]",
        "message 2 of 2 is refused: no queue is bound for this message; nothing was done",
    )
    .await;
    assert_eq!(world.get("/v1/queues/q").await.json["totals"]["published"], 0);
}

/// By the name in the path or in the body, and with a name that is nearly the same.
#[tokio::test]
async fn a_refusal_names_what_is_not_there() {
    let world = World::with_queue(r#"{"scheme":"named"}"#).await;
    world.put("/v1/queues/orders", "").await.expect(201);
    let check = async |method: &str, path: &str, body: &str, detail: &str| {
        let reply = world.ask(method, path, body).await;
        assert!(said(&reply).ends_with(detail), "{method} {path} {body}: {}", reply.text);
        check_problem(&reply, path);
    };
    let near = "no queue `order` in vhost `/`; did you mean `orders`?";
    check("GET", "/v1/queues/order", "", near).await;
    check("POST", "/v1/queues/order/leases", "{}", near).await;
    check("POST", "/v1/queues/a%2Fb/messages", r#"{"body":""}"#, "no queue `a/b` in vhost `/`").await;
    check("POST", "/v1/exchanges/amq.topic/bindings", r#"{"queue":"order"}"#, near).await;
    let exchange = "no exchange `amq.topik` in vhost `/`; did you mean `amq.topic`?";
    check("GET", "/v1/exchanges/amq.topik/bindings", "", exchange).await;
    check("POST", "/v1/exchanges/amq.topik/bindings", r#"{"queue":"q"}"#, exchange).await;
    check("POST", "/v1/exchanges/amq.fanout/bindings", r#"{"to_exchange":"amq.topik"}"#, exchange).await;
    check("GET", "/v1/queues?vhost=shop", "", "no vhost `shop`").await;
    check(
        "POST",
        "/v1/queues/q/messages",
        r#"{"body":"","priority":"urgent"}"#,
        "queue `q` has scheme `named`, whose priorities are critical, high, normal, low, background, or for these 100, 50, 0, -50, -100",
    )
    .await;
}

#[tokio::test]
async fn a_field_that_is_unknown_is_told_with_the_one_that_was_meant() {
    let world = World::new();
    let hint = async |body: &str| {
        let reply = world.put("/v1/queues/q", body).await;
        check_problem(&reply, body);
        (
            reply.json["detail"].as_str().unwrap_or_default().to_owned(),
            reply.json["hint"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let (detail, near) = hint(r#"{"max_activ":1}"#).await;
    assert_eq!((&*detail, &*near), ("there is no field `max_activ` here", "did you mean `max_active`?"));
    let (_, all) = hint(r#"{"colour":1}"#).await;
    assert!(all.starts_with("the fields here are scheme, default_priority, "), "{all}");
    let (_, unit) = hint(r#"{"ttl_ms":"60s"}"#).await;
    assert_eq!(unit, "send a number of milliseconds, such as 60000 for 60s; nothing was done");
}

#[tokio::test]
async fn a_batch_that_is_too_large_as_a_whole_is_told_so() {
    let options =
        HttpOptions { max_message_bytes: 1 << 18, max_request_bytes: 1 << 22, ..HttpOptions::default() };
    let world = World::with(options);
    world.put("/v1/queues/q", "").await.expect(201);
    let messages = vec![json!({"body": "x".repeat(200_000)}); 8];
    let reply = world.post("/v1/queues/q/messages", &json!({"messages": messages}).to_string()).await;
    assert_eq!((reply.code().as_str(), reply.json.get("key")), ("413 too-large-at-once", None));
    assert_eq!(reply.json["detail"], "the 8 messages are too large to be stored at once; nothing was done");
    check_problem(&reply, "together");
}

#[tokio::test]
async fn a_refused_transaction_says_which_part_is_at_fault() {
    let world = World::with_queue("").await;
    world.publish("a b c").await;
    let (_, receipts) = world.lease(3).await;
    let ack = |receipts: &[String]| json!({"receipts": receipts, "how": "ack"});
    world.post("/v1/queues/q/settle", &ack(&receipts[2..]).to_string()).await.expect(200);
    let check = async |body: serde_json::Value, code: &str, key: &str, detail: &str| {
        let reply = world.post("/v1/transactions", &body.to_string()).await;
        let seen = (reply.code(), reply.json["key"].as_str().unwrap_or_default().to_owned());
        assert_eq!(seen, (code.to_owned(), key.to_owned()), "{body}: {}", reply.text);
        assert!(said(&reply).ends_with(detail), "{body}: {}", said(&reply));
        check_problem(&reply, &body.to_string());
    };
    check(
        json!({"publish": [{"queue": "q", "body": ""}, {"queue": "nope", "body": ""}], "settle": [ack(&receipts)]}),
        "404 no-such-queue",
        "publish[1]",
        "message 2 of 2 is refused: no queue `nope` in vhost `/`; nothing was done",
    )
    .await;
    check(
        json!({"publish": [{"queue": "q", "body": "", "priority": "urgent"}]}),
        "422 priority-unknown",
        "publish[0].priority",
        "message 1 of 1 is refused: queue `q` has scheme `ten-level`, whose priorities are 0 to 9, larger first; above 9 counts as 9, up to 32 bits; nothing was done",
    )
    .await;
    check(
        json!({"publish": [{"queue": "q", "body": ""}], "settle": [ack(&receipts[..1]), ack(&receipts[1..])]}),
        "409 stale-receipt",
        "settle[1].receipts[1]",
        "receipt 2 of 2 in settlement 2 is refused: the lease is over; nothing was done",
    )
    .await;
    check(
        json!({"settle": [ack(&receipts[..2]), {"receipts": [receipts[0]], "how": "nack"}]}),
        "409 stale-receipt",
        "settle[1].receipts[0]",
        "receipt 1 of 1 in settlement 2 is refused: the lease is over; nothing was done",
    )
    .await;
    assert_eq!(world.get("/v1/queues/q/messages?status=leased").await.bodies(), "a b", "nothing was done");
}

/// One rule for every door: a name in any case and otherwise exact, and a number of 32 bits.
#[tokio::test]
async fn a_priority_is_taken_as_it_is_or_not_at_all() {
    let world = World::with_queue(r#"{"scheme":"named"}"#).await;
    world.put("/v1/queues/ten", "").await.expect(201);
    world.put("/v1/queues/one", r#"{"scheme":"max-255","order":"fifo"}"#).await.expect(201);
    world
        .put("/v1/routes", r#"{"routes": {"a": {"route": "FROM /a INTO Endpoint('e')", "priority": 0}}}"#)
        .await
        .expect(200);
    let check = async |method: &str, path: &str, body: &str, code: &str| {
        let reply = world.ask(method, path, body).await;
        assert_eq!(reply.code(), code, "{method} {path} {body}: {}", reply.text);
    };
    let (unknown, beyond) = ("422 priority-unknown", "422 priority-out-of-range");
    check("POST", "/v1/queues/q/messages", r#"{"body":"","priority":" high"}"#, unknown).await;
    check("GET", "/v1/queues/q/messages?priority=high%20", "", unknown).await;
    check("GET", "/v1/queues/q/messages?priority=", "", "422 value-invalid").await;
    for queue in ["ten", "one"] {
        let messages = format!("/v1/queues/{queue}/messages");
        for number in ["2147483648", "-2147483649"] {
            check("POST", &messages, &format!(r#"{{"body":"","priority":{number}}}"#), beyond).await;
            check("GET", &format!("{messages}?priority={number}"), "", beyond).await;
        }
    }
    let schedule = r#"{"queue":"ten","cron":"0 3 * * *","message":{"body":"","priority":2147483648}}"#;
    check("PUT", "/v1/schedules/s", schedule, beyond).await;
    // No queue is asked about these: a route says how urgent they are, or nothing takes them.
    for path in ["/v1/topics/a", "/v1/topics/nowhere", "/v1/exchanges/amq.topic/messages"] {
        check("POST", path, r#"{"body":"","priority":"urgent"}"#, unknown).await;
        check("POST", path, r#"{"body":"","priority":2147483648}"#, beyond).await;
        check("POST", path, r#"{"body":"","priority":"HIGH"}"#, "201 -").await;
    }
    let both =
        world.post("/v1/topics/a", r#"{"messages":[{"body":""},{"body":"","priority":"urgent"}]}"#).await;
    assert_eq!((both.code().as_str(), &both.json["key"]), (unknown, &json!("messages[1].priority")));
    // Where priorities only travel, a name goes on as its number.
    world.post("/v1/queues/one/messages", r#"{"body":"","priority":"low"}"#).await.expect(201);
    assert_eq!(world.get("/v1/queues/one/messages").await.json["messages"][0]["priority"], -50);
}

#[tokio::test]
async fn a_body_that_is_another_kind_of_json_is_told_so_in_words_of_json() {
    let world = World::with_queue("").await;
    for (body, detail) in [
        (r#"{"body":{"job":7}}"#, "expected a string"),
        (r#"{"body":["job"]}"#, "expected a string"),
        ("[]", "expected an object, found a list"),
    ] {
        let reply = world.post("/v1/queues/q/messages", body).await;
        assert_eq!(reply.code(), "422 value-invalid", "{body}: {}", reply.text);
        assert!(said(&reply).contains(detail) && !reply.text.contains("table"), "{body}: {}", reply.text);
    }
}

#[tokio::test]
async fn a_weight_is_told_its_range_and_is_of_a_key_that_a_message_can_have() {
    let world = World::with_queue(r#"{"fair_keys":true}"#).await;
    let long = "k".repeat(201);
    for (change, detail) in [
        (
            r#"{"key_weights":{"a":-1}}"#.to_owned(),
            "`key_weights.a` is `-1`: expected a whole number from 1 to 1000",
        ),
        (r#"{"key_weights":{"a":1001}}"#.to_owned(), "`key_weights.a` is `1001`: it must be 1 to 1000"),
        (r#"{"picker":{"weighted":{"9":-1}}}"#.to_owned(), "expected a whole number from 1 to 1000000"),
        (
            format!(r#"{{"key_weights":{{"{long}":2}}}}"#),
            "a key is at most 200 bytes without control characters",
        ),
    ] {
        let reply = world.ask("PATCH", "/v1/queues/q", &change).await;
        assert_eq!(reply.code(), "422 value-invalid", "{change}: {}", reply.text);
        assert!(said(&reply).contains(detail), "{change}: {}", reply.text);
    }
    world.ask("PATCH", "/v1/queues/q", r#"{"key_weights":{"":2}}"#).await.expect(200);
}
