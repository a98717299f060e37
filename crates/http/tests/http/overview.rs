//! The overview: what somebody sees of it, in which order, as an answer, as events, and over time.

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::world;
use crate::world::World;

fn names(overview: &Value) -> Vec<&str> {
    let queues = overview["queues"].as_array().expect("queues");
    queues.iter().map(|queue| queue["name"].as_str().expect("a name")).collect()
}

/// Three queues: one is empty, one waits for a consumer, one is paused.
async fn world() -> World {
    let world = World::with_queue("").await;
    world.put("/v1/queues/empty", "").await.expect(201);
    world.put("/v1/queues/paused", r#"{"scheme":"named","paused":true,"max_active":7}"#).await.expect(201);
    world.publish("a:9 b:1").await;
    world.post("/v1/queues/paused/messages", r#"{"body":"x","priority":"high"}"#).await.expect(201);
    world
}

/// Asks until the answer is as wanted: a look is up to a second old.
async fn until(world: &World, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    loop {
        let overview = world.get(path).await.expect(200).json;
        if is_so(&overview) {
            return overview;
        }
        // What is asked for may wait for nothing, and whoever looks has its turn.
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn queues_in_trouble_come_first_with_what_is_wrong() {
    let world = world().await;
    let full = |overview: &Value| overview["totals"]["ready"] == 3;
    let overview = until(&world, "/v1/overview", full).await;
    assert_eq!(names(&overview), ["q", "paused", "empty"]);
    let [q, paused, empty] = [0, 1, 2].map(|at| &overview["queues"][at]);
    assert_eq!(q["troubles"], json!([{"kind": "no-consumer", "severity": 3, "messages": 2}]));
    assert_eq!(paused["troubles"][0]["kind"], "paused");
    assert_eq!((&paused["scheme"], &paused["max_active"]), (&json!("named"), &json!(7)));
    assert_eq!(empty["troubles"], json!([]));
    assert_eq!(q["rights"], json!(["configure", "write", "read"]));
    let lanes: Vec<_> = q["lanes"].as_array().expect("lanes").iter().map(|lane| &lane["lane"]).collect();
    assert_eq!(lanes, [&json!("9"), &json!("1")], "the most urgent first");
    assert_eq!((&overview["broker"]["state"], &overview["matching"]), (&json!("ok"), &json!(3)));
}

#[tokio::test]
async fn one_asks_for_some_and_in_another_order() {
    let world = world().await;
    until(&world, "/v1/overview", |overview| overview["totals"]["ready"] == 3).await;
    let shown = async |query: &str| {
        let overview = world.get(&format!("/v1/overview?{query}")).await.expect(200).json;
        names(&overview).join(" ")
    };
    assert_eq!(shown("sort=name").await, "empty paused q");
    assert_eq!(shown("sort=ready&limit=1").await, "q");
    assert_eq!(shown("name=PAU").await, "paused");
    assert_eq!(shown("queue=pau").await, "");
    assert_eq!(shown("queue=paused&vhost=/").await, "paused");
    for (query, code) in [
        ("sort=what", "422 value-invalid"),
        ("limit=0", "422 value-invalid"),
        ("limit=1001", "422 value-invalid"),
        ("what=1", "422 parameter-unknown"),
    ] {
        assert_eq!(world.get(&format!("/v1/overview?{query}")).await.code(), code, "{query}");
        assert_eq!(world.get(&format!("/v1/overview/events?{query}")).await.code(), code, "{query}");
    }
}

#[tokio::test]
async fn one_sees_what_one_has_rights_to() {
    let world = world().await;
    world.put("/v1/users/ann", r#"{"password":"secret"}"#).await.expect(201);
    let rights = r#"{"configure":"","write":"^paused$","read":"^paused$"}"#;
    world.put("/v1/users/ann/permissions/%2F", rights).await.expect(204);
    until(&world, "/v1/overview", |overview| overview["totals"]["ready"] == 3).await;
    let ann = "Basic YW5uOnNlY3JldA==";
    let overview = world.ask_as(Some(ann), "GET", "/v1/overview", "").await.expect(200).json;
    assert_eq!(names(&overview), ["paused"]);
    assert_eq!((&overview["totals"]["queues"], &overview["totals"]["ready"]), (&json!(1), &json!(1)));
    assert_eq!(overview["queues"][0]["rights"], json!(["write", "read"]));
    let of = async |queue: &str| {
        let path = format!("/v1/overview/history?queue={queue}");
        world.ask_as(Some(ann), "GET", &path, "").await.status.as_u16()
    };
    assert_eq!((of("paused").await, of("q").await), (200, 403));
}

#[tokio::test]
async fn events_come_one_after_the_other() {
    let world = world().await;
    let request = Request::get("/v1/overview/events?sort=name").body(Body::empty()).expect("a request");
    let response = world.begin(request).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let frame = body.frame().await.expect("a frame").expect("no error").into_data().expect("data");
        let text = String::from_utf8(frame.to_vec()).expect("text");
        let data = text.strip_prefix("event: overview\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        let overview: Value = serde_json::from_str(data.expect("an event")).expect("JSON");
        if overview["totals"]["queues"] == 3 {
            assert_eq!(names(&overview), ["empty", "paused", "q"]);
            seen.push(overview["at"].as_u64().expect("a time"));
        }
    }
    assert!(seen[0] < seen[1], "{seen:?}");
}

#[tokio::test]
async fn events_end_with_the_server_and_with_the_user() {
    let world = world().await;
    world.put("/v1/users/ann", r#"{"password":"secret"}"#).await.expect(201);
    world.put("/v1/users/ann/permissions/%2F", r#"{"configure":"","write":"","read":""}"#).await.expect(204);
    let request = |who: &str| {
        let request = Request::get("/v1/overview/events").header("authorization", who);
        request.body(Body::empty()).expect("a request")
    };
    let of_ann = world.begin(request("Basic YW5uOnNlY3JldA==")).await;
    let of_guest = world.begin(request(world::GUEST)).await;
    world.delete("/v1/users/ann").await.expect(204);
    of_ann.into_body().collect().await.expect("it ends");
    world.options.shutdown.cancel();
    of_guest.into_body().collect().await.expect("it ends");
}

#[tokio::test]
async fn samples_are_told_for_all_and_for_each_lane_of_a_queue() {
    let world = world().await;
    let has_begun =
        |history: &Value| history["totals"]["ready"].as_array().is_some_and(|all| !all.is_empty());
    let history = until(&world, "/v1/overview/history", has_begun).await;
    assert_eq!((&history["step_ms"], &history["lanes_without_samples"]), (&json!(10_000), &json!(0)));
    assert_eq!(history["lanes"], Value::Null);
    let of_queue = world.get("/v1/overview/history?queue=q").await.expect(200).json;
    let lanes = of_queue["lanes"].as_array().expect("lanes");
    assert_eq!(lanes.iter().map(|lane| &lane["lane"]).collect::<Vec<_>>(), ["9", "1"]);
    for series in
        ["ready", "leased", "dead", "oldest_age_ms", "published", "delivered", "settled", "wait_p95_ms"]
    {
        let count = |of: &Value| of[series].as_array().expect("a series").len();
        assert_eq!(count(&lanes[0]), count(&history["totals"]), "{series}");
    }
    assert_eq!(world.get("/v1/overview/history?queue=none").await.code(), "404 no-such-queue");
}

#[tokio::test]
async fn what_is_of_a_user_is_changed_together() {
    let world = World::with_queue("").await;
    for (id, user) in [("a", "guest"), ("b", "ann")] {
        let message = format!(r#"{{"id":"{id}","body":"x","user_id":"{user}"}}"#);
        world.post("/v1/queues/q/messages", &message).await.expect(201);
    }
    let change = r#"{"priority":9,"filter":{"user_id":"ann"}}"#;
    assert_eq!(world.post("/v1/queues/q/reprioritise", change).await.expect(200).json["count"], 1);
    assert_eq!(world.get("/v1/queues/q/messages").await.all("id").join(" "), "b a");
}
