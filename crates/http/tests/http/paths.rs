//! Each path, when everything is well.

use std::collections::BTreeSet;
use std::time::Duration;

use overtake_http::HttpOptions;
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn a_queue_is_made_changed_shown_and_deleted() {
    let world = World::new();
    let made = world.put("/v1/queues/q", r#"{"scheme":"named","max_active":3}"#).await.expect(201);
    assert_eq!(made.json["name"], "q");
    assert_eq!(made.json["settings"]["max_active"], 3);
    assert_eq!(made.json["settings"]["visibility_timeout_ms"], 30_000);
    world.put("/v1/queues/q", r#"{"scheme":"named","max_active":3}"#).await.expect(200);
    world.put("/v1/queues/q", r#"{"scheme":"named"}"#).await.expect(200);
    let changed = world.put("/v1/queues/q?replace=true", r#"{"scheme":"named"}"#).await.expect(200);
    assert_eq!(changed.json["settings"]["max_active"], 0, "what is missing has its default");
    world.put("/v1/queues/empty-body", "").await.expect(201);
    let names = world.get("/v1/queues").await.expect(200).json["queues"].clone();
    assert_eq!((&names[0]["name"], &names[1]["name"]), (&json!("empty-body"), &json!("q")));
    world.delete("/v1/queues/q?if=empty,unused").await.expect(204);
    assert_eq!(world.get("/v1/queues/q").await.code(), "404 no-such-queue");
}

#[tokio::test]
async fn a_declaration_changes_nothing_and_says_what_differs() {
    let world = World::with_queue(r#"{"scheme":"named","max_active":3,"delivery_limit":5}"#).await;
    world.put("/v1/queues/q", "").await.expect(200);
    world.put("/v1/queues/q", r#"{"delivery_limit":5}"#).await.expect(200);
    let differs = world.put("/v1/queues/q", r#"{"scheme":"named","max_active":2,"ttl_ms":9}"#).await;
    assert_eq!(differs.code(), "409 queue-differs");
    let differences = json!([
        {"setting": "max_active", "here": 3, "asked": 2},
        {"setting": "ttl_ms", "here": 0, "asked": 9},
    ]);
    assert_eq!(differs.json["differences"], differences);
    let detail = "queue `q` exists with other settings: `max_active` is 3 and 2 was asked, `ttl_ms` is 0 and 9 was asked; \
                  nothing was changed";
    assert_eq!(differs.json["detail"], detail);
    let settings = &world.get("/v1/queues/q").await.json["settings"];
    assert_eq!((&settings["max_active"], &settings["delivery_limit"]), (&json!(3), &json!(5)));
    assert_eq!(world.put("/v1/queues/q", r#"{"max_active":-1}"#).await.code(), "422 value-invalid");
    assert_eq!(world.put("/v1/queues/q?replace=yes", "").await.code(), "422 value-invalid");
    assert_eq!(world.put("/v1/queues/q?replac=true", "").await.code(), "422 parameter-unknown");
}

#[tokio::test]
async fn settings_are_changed_one_by_one() {
    let world = World::with_queue(r#"{"scheme":"named","max_active":3,"delivery_limit":5}"#).await;
    let patch = async |body: &str| world.ask("PATCH", "/v1/queues/q", body).await;
    let changed = patch(r#"{"max_active":20,"lanes":{"low":{"max_active":1}}}"#).await.expect(200);
    let settings = &changed.json["settings"];
    assert_eq!((&settings["max_active"], &settings["delivery_limit"]), (&json!(20), &json!(5)));
    let reset = patch(r#"{"max_active":null,"lanes":{"low":null},"paused":true}"#).await.expect(200);
    let settings = &reset.json["settings"];
    assert_eq!((&settings["max_active"], &settings["paused"]), (&json!(0), &json!(true)));
    assert_eq!((&settings["scheme"], &settings["lanes"]), (&json!("named"), &Value::Null));
    let unknown = patch(r#"{"max_activ":1}"#).await;
    assert_eq!((unknown.code(), &unknown.json["key"]), ("422 field-unknown".to_owned(), &json!("max_activ")));
    assert_eq!(patch(r#"{"max_active":-1}"#).await.code(), "422 value-invalid");
    patch(r#"{"paused":false}"#).await.expect(200);
    world.publish("a").await;
    let fixed = patch(r#"{"scheme":"signed"}"#).await;
    assert_eq!((fixed.code(), &fixed.json["key"]), ("409 setting-fixed".to_owned(), &json!("scheme")));
    patch(r#"{"scheme":"named"}"#).await.expect(200);
    assert_eq!(world.ask("PATCH", "/v1/queues/none", "{}").await.code(), "404 no-such-queue");
    assert_eq!(world.get("/v1/queues/none").await.code(), "404 no-such-queue");
}

/// Where priorities begin to decide, whoever changes that says what messages without one count as; nothing changes before.
#[tokio::test]
async fn messages_without_a_priority_are_asked_about_where_priorities_begin_to_decide() {
    let world = World::with_queue(r#"{"order":"fifo"}"#).await;
    let patch = async |path: &str| world.ask("PATCH", path, r#"{"order":"priority"}"#).await;
    let publish = async |message: Value| {
        world.post("/v1/queues/q/messages", &message.to_string()).await.expect(201);
    };
    publish(json!({"body": "prioritised", "priority": 9})).await;
    publish(json!({"body": "none"})).await;
    publish(json!({"body": "delayed", "delay_ms": 600_000})).await;
    let refused = patch("/v1/queues/q").await;
    assert_eq!(
        (refused.code(), &refused.json["key"]),
        ("409 import-priority-missing".to_owned(), &json!("import_priority"))
    );
    assert!(refused.text.contains("published without one (2)"), "{}", refused.text);
    let put = world.put("/v1/queues/q?replace=true", "{}").await;
    assert_eq!(put.code(), "409 import-priority-missing");
    let unknown = patch("/v1/queues/q?import_priority=urgent").await;
    assert_eq!(
        (unknown.code(), &unknown.json["key"]),
        ("422 priority-unknown".to_owned(), &json!("import_priority"))
    );
    assert_eq!(world.get("/v1/queues/q").await.json["settings"]["order"], json!("fifo"));
    let left = world.get("/v1/queues/q/messages?without_priority=true").await.expect(200);
    assert_eq!(left.bodies(), "none delayed");

    patch("/v1/queues/q?import_priority=most-urgent").await.expect(200);
    let urgent = world.get("/v1/queues/q/messages?priority=9").await.expect(200);
    assert_eq!(urgent.bodies(), "prioritised none delayed");
    patch("/v1/queues/q").await.expect(200);
    publish(json!({"body": "later"})).await;
    world.ask("PATCH", "/v1/queues/q", r#"{"order":"fifo"}"#).await.expect(200);
    world.put("/v1/queues/q?replace=true&import_priority=0", "{}").await.expect(200);
    assert_eq!(world.get("/v1/queues/q/messages?priority=0").await.expect(200).bodies(), "later");
}

#[tokio::test]
async fn changes_of_different_settings_at_once_all_hold() {
    let world = World::with_queue("").await;
    let change = async |key: &str| {
        let body = json!({ key: 7 }).to_string();
        world.ask("PATCH", "/v1/queues/q", &body).await.expect(200);
    };
    let keys = ["max_active", "max_length", "ttl_ms", "delivery_limit", "max_consumers", "max_bytes"];
    let [a, b, c, d, e, f] = keys.map(change);
    tokio::join!(a, b, c, d, e, f);
    let settings = world.get("/v1/queues/q").await.json["settings"].clone();
    assert!(keys.iter().all(|key| settings[*key] == 7), "{settings}");
}

#[tokio::test]
async fn queues_are_listed_in_pages() {
    let world = World::new();
    for name in ["a%2Fb", "c", "d%20%C3%BC", "e", "f"] {
        world.put(&format!("/v1/queues/{name}"), "").await.expect(201);
    }
    let names = |page: &serde_json::Value| -> Vec<String> {
        let queues = page["queues"].as_array().expect("queues");
        queues.iter().map(|queue| queue["name"].as_str().expect("a name").to_owned()).collect()
    };
    let mut path = "/v1/queues?limit=2".to_owned();
    let mut pages = Vec::new();
    loop {
        let page = world.get(&path).await.expect(200).json;
        pages.push(names(&page).join(" "));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        // A queue that is gone is still a place in the order of names.
        world.delete("/v1/queues/c").await;
        path = format!("/v1/queues?limit=2&cursor={cursor}");
    }
    assert_eq!(pages, ["a/b c", "d \u{fc} e", "f"]);
    let all = world.get("/v1/queues").await.expect(200).json;
    assert_eq!((names(&all).len(), all.get("next_cursor")), (4, None));
    for name in 0..47 {
        world.put(&format!("/v1/queues/n{name}"), "").await.expect(201);
    }
    let first = world.get("/v1/queues").await.expect(200).json;
    assert_eq!(names(&first).len(), 50, "the documented limit");
    assert!(first["next_cursor"].is_string());
}

#[tokio::test]
async fn a_queue_shows_totals_and_lanes() {
    let world = World::with_queue("").await;
    world.publish("a:9 b:1 c:1").await;
    let (_, receipts) = world.lease(2).await;
    world
        .post("/v1/queues/q/settle", &json!({"receipts": [receipts[0]], "how": "ack"}).to_string())
        .await
        .expect(200);
    let queue = world.get("/v1/queues/q").await.expect(200).json;
    let totals = &queue["totals"];
    let numbers = ["ready", "delayed", "leased", "dead", "published", "delivered", "settled", "redelivered"];
    let seen: Vec<_> = numbers.iter().map(|name| totals[name].as_u64().expect("a number")).collect();
    assert_eq!(seen, [1, 0, 1, 0, 3, 2, 1, 0]);
    let lane =
        queue["lanes"].as_array().expect("lanes").iter().find(|lane| lane["lane"] == "1").expect("lane 1");
    assert_eq!((&lane["ready"], &lane["leased"], &lane["level"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!(lane["wait"]["count"], 1);
}

#[tokio::test]
async fn a_name_may_hold_slashes_and_any_letters() {
    let world = World::new();
    let made = world.put("/v1/queues/team%2Fjobs%20%C3%BC", "").await.expect(201);
    assert_eq!(made.json["name"], "team/jobs ü");
    world.post("/v1/queues/team%2Fjobs%20%C3%BC/messages", r#"{"body":"a","id":"x/y"}"#).await.expect(201);
    let message = world.get("/v1/queues/team%2Fjobs%20%C3%BC/messages/x%2Fy").await.expect(200);
    assert_eq!(message.json["body"], "a");
}

#[tokio::test]
async fn published_messages_are_leased_by_priority_and_settled() {
    let world = World::with_queue("").await;
    let body =
        r#"{"messages":[{"body":"low","priority":1},{"body":"high","priority":8},{"body":"none","id":"n"}]}"#;
    let published = world.post("/v1/queues/q/messages", body).await.expect(201);
    assert_eq!(published.all("seq"), ["1", "2", "3"]);
    assert_eq!(published.json["messages"][0]["seq"], "1", "text: a number could be greater than 2^53");
    assert_eq!(published.all("priority"), ["1", "8", "4"]);
    assert_eq!(published.all("id"), ["seq-1", "seq-2", "n"]);
    assert!(published.json["messages"][0].get("queue").is_none());
    let leased = world.post("/v1/queues/q/leases", r#"{"max":3}"#).await.expect(200);
    assert_eq!(leased.bodies(), "high none low");
    let first = &leased.json["messages"][0];
    assert_eq!(
        (&first["delivery_count"], &first["redelivered"], &first["status"]),
        (&json!(1), &json!(false), &json!("leased"))
    );
    assert!(first["deadline"].as_str().expect("a deadline").ends_with('Z'));
    assert!(first["published_at"].as_str().expect("a time").len() == "2026-11-21T03:04:05.678Z".len());
    let receipts = leased.all("receipt");
    let settle = |how: &str, receipt: &str| json!({"receipts": [receipt], "how": how}).to_string();
    let acked = world.post("/v1/queues/q/settle", &settle("ack", &receipts[0])).await.expect(200);
    assert_eq!(acked.json, json!({"results": [{"receipt": receipts[0], "ok": true}]}));
    world.post("/v1/queues/q/settle", &settle("nack", &receipts[1])).await.expect(200);
    world.post("/v1/queues/q/settle", &settle("reject", &receipts[2])).await.expect(200);
    let again = world.post("/v1/queues/q/leases", r#"{"max":3}"#).await.expect(200);
    assert_eq!(again.bodies(), "none");
    assert_eq!(again.json["messages"][0]["redelivered"], true);
    assert_eq!(world.get("/v1/queues/q/messages?status=dead").await.bodies(), "low");
}

#[tokio::test]
async fn position_says_how_many_are_ahead() {
    let world = World::with_queue("").await;
    world.publish("a:9 b:1").await;
    let published =
        world.post("/v1/queues/q/messages", r#"{"body":"c","id":"c","priority":1}"#).await.expect(201);
    let c = &published.json["messages"][0];
    assert_eq!((&c["position"], &c["position_in_priority"]), (&json!(2), &json!(1)));
    assert!(c.get("duplicate").is_none());
    let again =
        world.post("/v1/queues/q/messages", r#"{"body":"c","id":"c","priority":1}"#).await.expect(201);
    assert_eq!(again.json["messages"][0]["duplicate"], true);
    let shown = world.get("/v1/queues/q/messages/c").await.expect(200).json;
    assert_eq!((&shown["position"], &shown["position_in_priority"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn bytes_and_headers_come_back_as_they_went() {
    let world = World::with_queue("").await;
    let message =
        r#"{"body_base64":"/wA=","headers":{"tenant":"a","n":-5,"vip":true},"key":"k","content_type":"x/y"}"#;
    world.post("/v1/queues/q/messages", message).await.expect(201);
    let leased = world.post("/v1/queues/q/leases", "").await.expect(200).json["messages"][0].clone();
    assert_eq!(leased["body_base64"], "/wA=");
    assert!(leased.get("body").is_none());
    assert_eq!(leased["headers"], json!({"tenant": "a", "n": -5, "vip": true}));
    assert_eq!((&leased["key"], &leased["content_type"]), (&json!("k"), &json!("x/y")));
}

#[tokio::test]
async fn a_raw_body_is_a_message() {
    let world = World::with_queue("").await;
    let headers = [
        ("Content-Type", "image/png"),
        ("Overtake-Priority", "7"),
        ("Overtake-Id", "pic"),
        ("Overtake-Key", "k"),
        ("Overtake-Ttl-Ms", "60000"),
        ("Overtake-Header-Tenant", "a"),
    ];
    world.raw("/v1/queues/q/messages", &headers, b"\xff\x00").await.expect(201);
    let message = world.get("/v1/queues/q/messages/pic").await.expect(200).json;
    assert_eq!((&message["priority"], &message["body_base64"]), (&json!(7), &json!("/wA=")));
    assert_eq!(
        (&message["content_type"], &message["headers"]),
        (&json!("image/png"), &json!({"tenant": "a"}))
    );
    assert!(message["expires_at"].is_string());
    world
        .raw(
            "/v1/queues/q/messages",
            &[headers[0], ("Overtake-Delay-Ms", "60000"), ("Overtake-Id", "d")],
            b"x",
        )
        .await
        .expect(201);
    let delayed = world.get("/v1/queues/q/messages/d").await.expect(200).json;
    assert_eq!(delayed["status"], "delayed");
    assert!(delayed["due_at"].is_string());
}

#[tokio::test]
async fn leases_are_extended_and_a_stale_one_conflicts() {
    let world = World::with_queue("").await;
    world.publish("a b").await;
    let (_, receipts) = world.lease(2).await;
    let extend = json!({"receipts": receipts, "visibility_timeout_ms": 60_000}).to_string();
    let extended = world.post("/v1/queues/q/extend", &extend).await.expect(200);
    assert_eq!(extended.json["results"][1]["ok"], true);
    let one = json!({"receipts": [receipts[0]], "how": "ack"}).to_string();
    world.post("/v1/queues/q/settle", &one).await.expect(200);
    let stale = world.post("/v1/queues/q/settle", &one).await;
    assert_eq!(stale.code(), "409 stale-receipt");
    let both = json!({"receipts": receipts, "how": "ack"}).to_string();
    let results = world.post("/v1/queues/q/settle", &both).await.expect(200).json["results"].clone();
    assert_eq!((&results[0]["ok"], &results[0]["code"]), (&json!(false), &json!("stale-receipt")));
    assert!(results[0]["hint"].is_string());
    assert_eq!(results[1], json!({"receipt": receipts[1], "ok": true}));
}

#[tokio::test]
async fn a_nack_with_a_delay_waits_and_a_release_does_not() {
    let world = World::with_queue("").await;
    world.publish("a b").await;
    let (_, receipts) = world.lease(2).await;
    let nack = json!({"receipts": [receipts[0]], "how": "nack", "delay_ms": 600_000}).to_string();
    world.post("/v1/queues/q/settle", &nack).await.expect(200);
    let release = json!({"receipts": [receipts[1]], "how": "release"}).to_string();
    world.post("/v1/queues/q/settle", &release).await.expect(200);
    assert_eq!(world.get("/v1/queues/q/messages?status=delayed").await.bodies(), "a");
    assert_eq!(world.lease(2).await.0, "b");
}

#[tokio::test]
async fn a_request_looks_at_no_more_messages_than_it_says_and_tells_how_far_it_came() {
    let world = World::with_queue("").await;
    world.publish("a:1 b:9 c:5 d:9 e:1 f:3 g:3").await;
    for order in ["dispatch", "published", "newest"] {
        for body in ["full", "none"] {
            let (mut cursor, mut looked, mut found, mut pages) = (String::new(), 0, Vec::new(), 0);
            loop {
                // No message has it.
                let path =
                    format!("/v1/queues/q/messages?header.x=1&looks=2&order={order}&body={body}{cursor}");
                let page = world.get(&path).await.expect(200);
                let at = page.json["looked_at"].as_u64().expect("a number");
                assert!(at <= 2, "{at} messages");
                assert_eq!(page.json["in_queue"], 7);
                (looked, pages) = (looked + at, pages + 1);
                found.extend(page.json["messages"].as_array().expect("messages").clone());
                let Some(next) = page.json["next_cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert_eq!((looked, found.len()), (7, 0), "{order} {body}");
            assert!(pages >= 4, "{pages} pages of {order} {body}");
        }
    }
    assert_eq!(world.get("/v1/queues/q/messages?looks=0").await.code(), "422 value-invalid");
}

#[tokio::test]
async fn messages_are_browsed_in_pages() {
    let world = World::with_queue("").await;
    world.publish("a:1 b:9 c:5 d:9 e:1").await;
    let mut path = "/v1/queues/q/messages?limit=2".to_owned();
    let mut pages = Vec::new();
    loop {
        let page = world.get(&path).await.expect(200);
        pages.push(page.bodies());
        let Some(cursor) = page.json["next_cursor"].as_str() else { break };
        path = format!("/v1/queues/q/messages?limit=2&cursor={cursor}");
    }
    assert_eq!(pages.join(" ").trim(), "b d c a e");
    assert_eq!(world.get("/v1/queues/q/messages?order=published").await.bodies(), "a b c d e");
    assert_eq!(world.get("/v1/queues/q/messages?priority=9").await.bodies(), "b d");
    let bare = world.get("/v1/queues/q/messages?body=none&limit=1").await.expect(200);
    assert!(bare.json["messages"][0].get("body").is_none());
    assert_eq!(bare.all("id"), ["b"]);
}

/// With 70 messages of 250,000 bytes, of which 67 fit into 16 MiB.
async fn world_of_large_messages(body: &str, headers: &serde_json::Value) -> World {
    let options =
        HttpOptions { max_message_bytes: 1 << 18, max_request_bytes: 1 << 20, ..HttpOptions::default() };
    let world = World::with(options);
    world.put("/v1/queues/q", "").await.expect(201);
    for id in 0..70 {
        let message = json!({"id": format!("m{id}"), "body": body, "headers": headers, "priority": id % 2});
        world.post("/v1/queues/q/messages", &message.to_string()).await.expect(201);
    }
    world
}

#[tokio::test]
async fn a_page_of_large_messages_ends_early() {
    let world = world_of_large_messages(&"x".repeat(250_000), &json!({})).await;
    for order in ["dispatch", "published"] {
        let path = format!("/v1/queues/q/messages?limit=1000&order={order}");
        let first = world.get(&path).await.expect(200);
        let cursor = first.json["next_cursor"].as_str().expect("there are more");
        let second = world.get(&format!("{path}&cursor={cursor}")).await.expect(200);
        assert_eq!((first.all("id").len(), second.all("id").len()), (67, 3), "{order}");
        assert!(second.json.get("next_cursor").is_none());
        let seen: BTreeSet<_> = first.all("id").into_iter().chain(second.all("id")).collect();
        assert_eq!(seen.len(), 70, "{order}");
    }
    let bare = world.get("/v1/queues/q/messages?limit=1000&body=none").await.expect(200);
    assert_eq!(bare.all("id").len(), 70, "bodies that are not shown do not count");
    let filtered = world.get("/v1/queues/q/messages?limit=69&body=none&priority=1").await.expect(200);
    assert_eq!((filtered.all("id").len(), filtered.json.get("next_cursor")), (35, None));
}

#[tokio::test]
async fn headers_count_also_where_bodies_are_not_shown() {
    let name = |at: usize| format!("{at:02}{}", "h".repeat(98));
    let headers: serde_json::Map<_, _> = (0..50).map(|at| (name(at), "x".repeat(4_900).into())).collect();
    let world = world_of_large_messages("", &headers.into()).await;
    let path = "/v1/queues/q/messages?limit=1000&body=none";
    let first = world.get(path).await.expect(200);
    let cursor = first.json["next_cursor"].as_str().expect("there are more");
    let second = world.get(&format!("{path}&cursor={cursor}")).await.expect(200);
    assert_eq!((first.all("id").len(), second.all("id").len()), (67, 3));
}

#[tokio::test]
async fn browsing_filters_by_key_and_header() {
    let world = World::with_queue("").await;
    let body =
        r#"{"messages":[{"body":"a","key":"k 1","headers":{"n":5}},{"body":"b","headers":{"n":6,"x":"y"}}]}"#;
    world.post("/v1/queues/q/messages", body).await.expect(201);
    assert_eq!(world.get("/v1/queues/q/messages?key=k%201").await.bodies(), "a");
    assert_eq!(world.get("/v1/queues/q/messages?header.n=6&header.x=y").await.bodies(), "b");
    assert_eq!(world.get("/v1/queues/q/messages?header.n=6&header.x=z").await.bodies(), "");
}

#[tokio::test]
async fn one_message_is_reprioritised_and_removed() {
    let world = World::with_queue("").await;
    world.publish("a:1 b:5").await;
    let count = world.put("/v1/queues/q/messages/a/priority", r#"{"priority":9}"#).await.expect(200);
    assert_eq!(count.json, json!({"count": 1}));
    assert_eq!(world.get("/v1/queues/q/messages").await.bodies(), "a b");
    world.delete("/v1/queues/q/messages/a").await.expect(204);
    assert_eq!(world.get("/v1/queues/q/messages/a").await.code(), "404 no-such-message");
    assert_eq!(world.get("/v1/queues/q/messages").await.bodies(), "b");
}

#[tokio::test]
async fn a_leased_message_keeps_its_priority_until_it_is_back() {
    let world = World::with_queue("").await;
    world.publish("a").await;
    world.lease(1).await;
    assert_eq!(world.put("/v1/queues/q/messages/a/priority", r#"{"priority":9}"#).await.code(), "409 leased");
}

#[tokio::test]
async fn many_messages_are_reprioritised_removed_purged_and_replayed() {
    let world = World::with_queue("").await;
    world.publish("a:1 b:1 c:5 d:7").await;
    let up = r#"{"filter":{"priority":1},"priority":9}"#;
    assert_eq!(world.post("/v1/queues/q/reprioritise", up).await.expect(200).json["count"], 2);
    assert_eq!(world.get("/v1/queues/q/messages").await.bodies(), "a b d c");
    let remove = r#"{"filter":{"priority":7}}"#;
    assert_eq!(world.post("/v1/queues/q/remove", remove).await.expect(200).json["count"], 1);
    let (_, receipts) = world.lease(1).await;
    world
        .post("/v1/queues/q/settle", &json!({"receipts": receipts, "how": "reject"}).to_string())
        .await
        .expect(200);
    assert_eq!(world.post("/v1/queues/q/purge", "").await.expect(200).json["count"], 2);
    assert_eq!(world.get("/v1/queues/q/messages").await.bodies(), "a", "a dead letter is not purged unasked");
    let dead = world.get("/v1/queues/q/messages/a").await.expect(200).json["dead_letter"].clone();
    assert_eq!(
        (&dead["reason"], &dead["queue"], &dead["lane"]),
        (&json!("rejected"), &json!("q"), &json!("9"))
    );
    assert_eq!(
        world.post("/v1/queues/q/replay", r#"{"id":"a","priority":3}"#).await.expect(200).json["count"],
        1
    );
    assert_eq!(world.get("/v1/queues/q/messages/a").await.json["priority"], 3);
    assert_eq!(world.post("/v1/queues/q/replay", r#"{"all":true}"#).await.expect(200).json["count"], 0);
    assert_eq!(world.post("/v1/queues/q/remove", r#"{"all":true}"#).await.expect(200).json["count"], 1);
}

#[tokio::test]
async fn a_change_of_many_is_done_only_where_as_many_are_there_as_were_seen() {
    let world = World::with_queue("").await;
    for id in ["a", "b", "c"] {
        world.publish(id).await;
    }
    for (path, body) in [
        ("remove", r#"{"all":true,"expect":2}"#),
        ("cancel", r#"{"filter":{"status":"ready"},"expect":2}"#),
        ("reprioritise", r#"{"filter":{"status":"ready"},"priority":1,"expect":4}"#),
        ("purge", r#"{"expect":2}"#),
    ] {
        let reply = world.post(&format!("/v1/queues/q/{path}"), body).await;
        assert_eq!((reply.code(), &reply.json["key"]), ("409 count-differs".to_owned(), &json!("expect")));
        let detail = reply.json["detail"].as_str().unwrap_or_default();
        assert!(
            detail.starts_with("`expect` is `")
                && detail.ends_with("`: 3 messages are selected, and another number was expected"),
            "{detail}"
        );
    }
    let empty =
        world.post("/v1/queues/q/cancel", r#"{"filter":{"status":"ready","headers":{"h":""}}}"#).await;
    assert_eq!((empty.code(), &empty.json["key"]), ("422 value-invalid".to_owned(), &json!("filter")));
    let done = world.post("/v1/queues/q/reprioritise", r#"{"all":true,"priority":1,"expect":3}"#).await;
    assert_eq!(done.expect(200).json["count"], 3);
    assert_eq!(
        world.post("/v1/queues/q/replay", r#"{"all":true,"expect":3}"#).await.code(),
        "409 count-differs"
    );
    assert_eq!(
        world.post("/v1/queues/q/replay", r#"{"all":true,"expect":0}"#).await.expect(200).json["count"],
        0
    );
    assert_eq!(world.post("/v1/queues/q/purge", r#"{"expect":3}"#).await.expect(200).json["count"], 3);
}

#[tokio::test]
async fn exchanges_route_to_the_queues_bound_to_them() {
    let world = World::with_queue("").await;
    world.put("/v1/queues/r", "").await.expect(201);
    let made = world.put("/v1/exchanges/x", r#"{"kind":"topic"}"#).await.expect(200);
    let plain = json!({"name": "x", "kind": "topic", "durable": true, "auto_delete": false, "internal": false, "delayed": false, "bindings": 0});
    assert_eq!(made.json, plain);
    world.put("/v1/exchanges/x", r#"{"kind":"topic"}"#).await.expect(200);
    assert_eq!(world.put("/v1/exchanges/x", r#"{"kind":"direct"}"#).await.code(), "409 exchange-differs");
    let q = r#"{"queue":"q","routing_key":"a.*"}"#;
    world.post("/v1/exchanges/x/bindings", q).await.expect(201);
    world.post("/v1/exchanges/x/bindings", r##"{"queue":"r","routing_key":"#"}"##).await.expect(201);
    let bindings = world.get("/v1/exchanges/x/bindings").await.expect(200).json["bindings"].clone();
    assert_eq!(
        bindings[0],
        json!({"queue": "q", "routing_key": "a.*", "headers": {}, "any": false, "match": "all"})
    );
    let copies = world
        .post("/v1/exchanges/x/messages", r#"{"routing_key":"a.b","body":"1","priority":3}"#)
        .await
        .expect(201);
    assert_eq!(copies.all("queue"), ["q", "r"]);
    world.ask("DELETE", "/v1/exchanges/x/bindings", q).await.expect(204);
    assert_eq!(world.ask("DELETE", "/v1/exchanges/x/bindings", q).await.code(), "404 no-such-binding");
    let headers = [("Content-Type", "text/plain"), ("Overtake-Routing-Key", "a.b")];
    let copies = world.raw("/v1/exchanges/x/messages", &headers, b"2").await.expect(201);
    assert_eq!(copies.all("queue"), ["r"]);
    world.delete("/v1/exchanges/x").await.expect(204);
    assert_eq!(world.get("/v1/exchanges/x/bindings").await.code(), "404 no-such-exchange");
}

#[tokio::test]
async fn what_no_queue_is_bound_for_is_dropped_unless_it_is_mandatory() {
    let world = World::new();
    let dropped =
        world.post("/v1/exchanges/amq.direct/messages", r#"{"routing_key":"k","body":""}"#).await.expect(201);
    assert_eq!(dropped.json, json!({"messages": []}));
    let mandatory = r#"{"routing_key":"k","body":"","mandatory":true}"#;
    assert_eq!(world.post("/v1/exchanges/amq.direct/messages", mandatory).await.code(), "422 unroutable");
    let all = world.get("/v1/exchanges").await.expect(200).json["exchanges"].clone();
    assert_eq!(all.as_array().expect("a list").len(), 6);
}

#[tokio::test]
async fn a_transaction_happens_whole_or_not_at_all() {
    let world = World::with_queue("").await;
    world.put("/v1/queues/next", "").await.expect(201);
    world.publish("a").await;
    let (_, receipts) = world.lease(1).await;
    let forward = json!({
        "publish": [{"queue": "next", "body": "b"}, {"queue": "q", "body": "c"}],
        "settle": [{"receipts": receipts, "how": "ack"}],
    });
    let done = world.post("/v1/transactions", &forward.to_string()).await.expect(200);
    assert_eq!(done.all("queue"), ["next", "q"]);
    assert_eq!(world.post("/v1/transactions", &forward.to_string()).await.code(), "409 stale-receipt");
    assert_eq!(world.get("/v1/queues/next/messages").await.bodies(), "b", "none of the second one");
}

#[tokio::test]
async fn machines_are_told_how_it_is() {
    let world = World::new();
    assert_eq!(world.get("/livez").await.expect(200).json["status"], "ok");
    assert_eq!(world.get("/healthz").await.expect(200).json["status"], "ok");
    assert_eq!(world.get("/readyz").await.expect(200).json["status"], "ready");
    world.options.readiness.not_ready("loading definitions");
    let not = world.get("/readyz").await;
    assert_eq!(
        (not.code(), &not.json["detail"]),
        ("503 not-ready".to_owned(), &json!("loading definitions"))
    );
    world.options.readiness.ready();
    world.get("/readyz").await.expect(200);
    world.options.drain.begin(Duration::ZERO);
    assert_eq!(world.get("/readyz").await.code(), "503 not-ready");
    world.get("/livez").await.expect(200);
    assert_eq!(
        world.get("/openapi.json").await.expect(200).text.len(),
        serde_json::to_string(
            &serde_json::from_str::<serde_json::Value>(&overtake_http::openapi_json()).expect("JSON")
        )
        .expect("JSON")
        .len()
    );
}

#[tokio::test]
async fn an_exchange_is_shown_as_it_was_declared() {
    let world = World::new();
    let ask = json!({
        "kind": "consistent-hash", "durable": false, "auto_delete": true, "internal": true, "alternate": "rest",
        "delayed": true, "hash_on": {"header": "user"}, "arguments_base64": "AQID",
    });
    let mut expect = ask.clone();
    (expect["name"], expect["bindings"]) = (json!("x"), json!(0));
    assert_eq!(world.put("/v1/exchanges/x", &ask.to_string()).await.expect(200).json, expect);
    assert_eq!(world.get("/v1/exchanges/x").await.expect(200).json, expect);
    let other = world.put("/v1/exchanges/x", r#"{"kind":"consistent-hash","durable":false}"#).await;
    assert_eq!(other.code(), "409 exchange-differs");
    assert_eq!(other.json["key"], "auto_delete");
}

#[tokio::test]
async fn exchanges_are_bound_to_exchanges_and_bindings_are_shown_as_they_were_made() {
    let world = World::new();
    world.put("/v1/queues/q", "{}").await.expect(201);
    world.put("/v1/exchanges/h", r#"{"kind":"headers"}"#).await.expect(200);
    let made = json!({
        "queue": "q", "routing_key": "", "headers": {"a": null, "n": 7}, "any": true, "match": "any-with-x",
        "arguments_base64": "AQID",
    });
    let ask = r#"{"queue":"q","headers":{"a":null,"n":7},"match":"any-with-x","arguments_base64":"AQID"}"#;
    assert_eq!(world.post("/v1/exchanges/h/bindings", ask).await.expect(201).json, made);
    let on = r#"{"to_exchange":"h","routing_key":"k"}"#;
    world.post("/v1/exchanges/amq.direct/bindings", on).await.expect(201);
    let bindings = world.get("/v1/exchanges/amq.direct/bindings").await.expect(200).json["bindings"].clone();
    assert_eq!(bindings[0]["to_exchange"], "h");
    let message = r#"{"routing_key":"none","more_keys":["k","l"],"body":"1","headers":{"n":7}}"#;
    let copies = world.post("/v1/exchanges/amq.direct/messages", message).await.expect(201);
    assert_eq!(copies.all("queue"), ["q"]);
    assert_eq!(world.delete("/v1/exchanges/h?if=unused").await.code(), "409 exchange-in-use");
    world.delete("/v1/exchanges/h").await.expect(204);
    let left = world.get("/v1/exchanges/amq.direct").await.expect(200);
    assert_eq!(left.json["bindings"], 0);
}

#[tokio::test]
async fn a_message_shows_the_trace_that_it_is_of() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let options = HttpOptions {
        trace_url: Some("https://traces.example/t/{trace_id}?from=overtake".into()),
        ..HttpOptions::default()
    };
    let world = World::with(options);
    world.put("/v1/queues/q", "").await.expect(201);
    let own = json!({"messages": [
        {"id": "own", "body": "", "headers": {"traceparent": PARENT.replace("-01", "-00")}},
        {"id": "wrong", "body": "", "headers": {"traceparent": "nonsense"}},
        {"id": "none", "body": ""},
    ]});
    world.post("/v1/queues/q/messages", &own.to_string()).await.expect(201);
    let trace = async |id: &str| {
        world.get(&format!("/v1/queues/q/messages/{id}")).await.expect(200).json["trace"].clone()
    };
    let url = "https://traces.example/t/0af7651916cd43dd8448eb211c80319c?from=overtake";
    let expect =
        |sampled| json!({"trace_id": "0af7651916cd43dd8448eb211c80319c", "sampled": sampled, "url": url});
    assert_eq!(
        [trace("own").await, trace("wrong").await, trace("none").await],
        [expect(false), json!(null), json!(null)]
    );
    let leased = world.post("/v1/queues/q/leases", "").await.expect(200);
    assert_eq!(leased.json["messages"][0]["headers"]["traceparent"], PARENT.replace("-01", "-00"));
}

#[tokio::test]
async fn messages_without_a_trace_are_of_that_of_their_request() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let world = World::with_queue("").await;
    let json_body = ("content-type", "application/json");
    let trace = [json_body, ("traceparent", PARENT), ("tracestate", "a=1")];
    let own = PARENT.replace("0af7", "ffff");
    let many = json!({"messages": [
        {"id": "a", "body": "", "headers": {"k": 1}},
        {"id": "b", "body": "", "headers": {"traceparent": own}},
    ]});
    world.raw("/v1/queues/q/messages", &trace, many.to_string().as_bytes()).await.expect(201);
    let raw = [trace[1], trace[2], ("content-type", "text/plain"), ("overtake-id", "c")];
    world.raw("/v1/queues/q/messages", &raw, "text".as_bytes()).await.expect(201);
    let transaction = json!({"publish": [{"queue": "q", "id": "d", "body": ""}]});
    world.raw("/v1/transactions", &trace, transaction.to_string().as_bytes()).await.expect(200);
    let nonsense = [json_body, ("traceparent", "00-0-0-00")];
    world.raw("/v1/queues/q/messages", &nonsense, r#"{"id":"e","body":""}"#.as_bytes()).await.expect(201);
    let headers = async |id: &str| {
        world.get(&format!("/v1/queues/q/messages/{id}")).await.expect(200).json["headers"].clone()
    };
    let inherited = json!({"traceparent": PARENT, "tracestate": "a=1"});
    assert_eq!(headers("a").await, json!({"k": 1, "traceparent": PARENT, "tracestate": "a=1"}));
    assert_eq!(headers("b").await, json!({"traceparent": own}), "what it says itself is left as it is");
    assert_eq!([headers("c").await, headers("d").await], [inherited.clone(), inherited]);
    assert_eq!(headers("e").await, json!({}));
}
