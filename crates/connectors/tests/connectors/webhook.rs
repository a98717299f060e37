//! Webhooks against a server that is slow, refuses, resets, is busy, and is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use overtake_engine::{Content, Engine, NewMessage, Target};
use overtake_forward::State;
use overtake_lane::{HeaderValue, Headers};
use serde_json::{Value, json};

use crate::receiver::{Got, Receiver, Says};
use crate::world::World;

fn accepts(_: &Got) -> Says {
    Says::Status(204, "")
}

fn hook(url: &str) -> Value {
    json!({"to": {"webhook": {"url": url}}, "send": {
        "reconnect": {"initial_ms": 5, "multiplier": 1, "max_ms": 5},
        "retry": {"initial_ms": 20, "multiplier": 1, "max_ms": 20},
        "breaker": {"initial_ms": 20, "multiplier": 1, "max_ms": 20},
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_urgent_is_posted_first_and_each_priority_in_order() {
    let (world, mut server) = (World::new().await, Receiver::new(accepts).await);
    world.publish("a:1 b:5 c:1 d:9 e:5").await;
    world.put("hook", hook(&server.url())).await;
    assert_eq!(server.bodies(5).await, "d b e a c");
    world.until_empty().await;
    let view = world.view("hook").await.work;
    assert_eq!(view.lanes["5"].sent, 2);
    assert!(view.lanes["5"].sent_bytes > 2 && view.last_error.is_none());
}

/// What becomes of three messages of one priority, of which the receiver does this with the second: which come how often, and what is said of the dead one.
async fn poisoned(does: fn() -> Says, more: Value) -> (String, Vec<String>) {
    let world = World::new().await;
    let settings = overtake_lane::Settings { delivery_limit: 3, ..overtake_lane::Settings::default() };
    world.engine.declare_queue("out", settings).await.expect("declared");
    let mut server =
        Receiver::new(move |got| if got.text() == "poison" { does() } else { Says::Status(204, "") }).await;
    world.publish("a:5 poison:5 b:5 c:5").await;
    let mut json = hook(&server.url());
    json["send"].as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    world.put("hook", json).await;
    let errors = world.errors_of_the_dead("poison").await;
    (server.bodies(8).await, errors)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_at_which_it_hangs_up_dies_alone_after_its_attempts_with_the_reason() {
    let (came, errors) = poisoned(|| Says::Resets, json!({})).await;
    assert!(came.starts_with("a poison poison poison b"), "{came}");
    assert_eq!(came.matches("poison").count(), 5, "three, then one for each further attempt: {came}");
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors.iter().all(|error| error.starts_with("127.0.0.1:")), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_it_never_answers_dies_alone_after_its_attempts_with_the_reason() {
    let (came, errors) = poisoned(|| Says::Nothing, json!({"batch_ms": 200})).await;
    assert!(came.starts_with("a poison poison poison b"), "{came}");
    assert_eq!(came.matches("poison").count(), 5, "{came}");
    assert_eq!(errors, ["no answer within 200 ms"; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_it_refuses_dies_with_its_words() {
    let (world, server) = (World::new().await, Receiver::new(|_| Says::Status(422, "")).await);
    world.publish("a:5").await;
    world.put("hook", hook(&server.url())).await;
    assert_eq!(world.errors_of_the_dead("a").await, ["it answers 422 Unprocessable Entity: no"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_says_what_is_known_of_the_message() {
    let (world, mut server) = (World::new().await, Receiver::new(accepts).await);
    let mut headers = Headers::new();
    headers.insert("camera".into(), HeaderValue::Text("door".into()));
    let content = Content::new(Some("application/json"), &headers, r#"{"x":1}"#.into());
    let message = NewMessage {
        to: Target::Queue("out".into()),
        priority: 7.into(),
        id: Some("m-1".into()),
        key: Some("k".into()),
        key_weight: Some(3),
        ttl_ms: Some(60_000),
        content,
        ..NewMessage::default()
    };
    world.send(vec![message]).await;
    world.put("hook", hook(&server.url())).await;
    let got = server.next().await;
    assert!(got.line.starts_with("POST /hook?from=overtake HTTP/1.1"), "{}", got.line);
    assert_eq!(got.text(), r#"{"x":1}"#);
    let said = ["overtake-id", "overtake-priority", "overtake-key", "overtake-queue", "overtake-attempt"];
    assert_eq!(said.map(|name| got.header(name)), ["m-1", "7", "k", "out", "1"]);
    assert_eq!(got.header("overtake-key-weight"), "3");
    assert_eq!(got.header("overtake-header-camera"), "door");
    assert_eq!(got.header("content-type"), "application/json");
    assert!(got.header("overtake-expires") > got.header("overtake-published"), "{got:?}");
    assert_eq!(got.header("host"), server.address.to_string());
}

/// A message with a header that a request cannot say, and one that it can.
fn with_a_line_break() -> NewMessage {
    let text = |text: &str| HeaderValue::Text(text.to_owned());
    let headers = [
        ("trace".to_owned(), text("a\nb")),
        ("tenant".to_owned(), text("blue")),
        ("ratio".to_owned(), HeaderValue::Float(0.5_f64.to_bits())),
        ("price".to_owned(), HeaderValue::Decimal { scale: 2, value: 5 }),
        ("parts".to_owned(), HeaderValue::List(vec![HeaderValue::Int(1)])),
        ("nothing".to_owned(), HeaderValue::Void),
    ]
    .into();
    let content = Content::new(None, &headers, "body".into());
    NewMessage { to: Target::Queue("out".into()), priority: 5.into(), content, ..NewMessage::default() }
}

/// Waits for what an endpoint says last.
async fn until_says(world: &World, endpoint: &str, words: &str) {
    let says = async {
        while !world.view(endpoint).await.work.last_error.is_some_and(|(_, why)| why.contains(words)) {
            tokio::task::yield_now().await;
        }
    };
    crate::world::soon(words, says).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_a_request_cannot_say_is_named_and_the_message_goes() {
    let (world, mut server) = (World::new().await, Receiver::new(accepts).await);
    world.send(vec![with_a_line_break()]).await;
    world.put("hook", hook(&server.url())).await;
    let got = server.next().await;
    assert_eq!((got.text().as_str(), got.header("overtake-header-tenant")), ("body", "blue"));
    assert_eq!(
        ["trace", "ratio", "price"].map(|name| got.header(&format!("overtake-header-{name}"))),
        ["", "0.5", "0.05"]
    );
    until_says(&world, "hook", "a message was sent without `nothing`, `parts`, `trace`: ").await;
    world.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cloudevents_come_in_both_modes() {
    let (world, mut server) = (World::new().await, Receiver::new(accepts).await);
    let mut hook = hook(&server.url());
    hook["to"]["webhook"]["format"] = "cloudevents".into();
    hook["to"]["webhook"]["event_type"] = "org.example.alert".into();
    world.put("hook", hook.clone()).await;
    world.publish("fire!:9").await;
    let got = server.next().await;
    let said = ["ce-specversion", "ce-type", "ce-source", "ce-priority", "content-type"];
    assert_eq!(
        said.map(|name| got.header(name)),
        ["1.0", "org.example.alert", "/vhosts/%252F/queues/out", "9", "text/plain"]
    );
    assert_eq!(got.text(), "fire!");
    hook["to"]["webhook"]["format"] = "cloudevents_json".into();
    world.put("hook", hook).await;
    world.publish("fire!:9").await;
    let event: Value = serde_json::from_slice(&server.next().await.body).expect("JSON");
    assert_eq!((&event["data"], &event["datacontenttype"]), (&json!("fire!"), &json!("text/plain")));
    assert_eq!((&event["specversion"], &event["priority"]), (&json!("1.0"), &json!("9")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_tried_again_and_what_is_refused_is_dead() {
    let world = World::new().await;
    let mut server = Receiver::new(|got| match got.text().as_str() {
        "refused" => Says::Status(422, ""),
        "fails" if got.header("overtake-attempt") == "1" => Says::Status(500, ""),
        _ => Says::Status(200, ""),
    })
    .await;
    world.publish("refused:5 fails:5 fine:5").await;
    world.put("hook", hook(&server.url())).await;
    assert_eq!(server.bodies(4).await, "refused fails fine fails");
    world.until("hook", |view| view.work.lanes["5"].sent == 2).await;
    let view = world.view("hook").await.work;
    assert_eq!((view.lanes["5"].failed, view.lanes["5"].refused), (1, 1));
    world.until_sees("out", "refused dead").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_busy_says_when_to_come_again() {
    let world = World::new().await;
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let mut server = Receiver::new(move |got| {
        let is_first = got.text() == "low" && count.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first { Says::Status(429, "retry-after: 1\r\n") } else { Says::Status(200, "") }
    })
    .await;
    world.publish("low:1").await;
    world.put("hook", hook(&server.url())).await;
    assert_eq!(server.bodies(1).await, "low");
    world.publish("later:1 urgent:9").await;
    assert_eq!(server.bodies(3).await, "urgent low later", "its lane waits, in order; no other does");
    let view = world.view("hook").await.work;
    assert_eq!((view.lanes["1"].failed, view.lanes["1"].put_back >= 1), (0, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_gone_is_left_alone_until_somebody_resumes_it() {
    let world = World::new().await;
    let mut server = Receiver::new(|_| Says::Status(410, "")).await;
    world.publish("a:5").await;
    world.put("hook", hook(&server.url())).await;
    assert_eq!(server.bodies(1).await, "a");
    world.until("hook", |view| view.work.state == State::Paused).await;
    let view = world.view("hook").await;
    assert_eq!(view.work.last_error.expect("said").1.as_ref(), "it answers 410 Gone: no");
    world.until_sees("out", "a ready").await;
    server.now(accepts);
    let desk = world.desk("guest").await;
    world.endpoints.pause(&desk, "hook", false).await.expect("resumed");
    assert_eq!(server.bodies(1).await, "a");
    world.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_reset_loses_nothing() {
    let world = World::new().await;
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let mut server = Receiver::new(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        1 => Says::Resets,
        2 => Says::Closes,
        _ => Says::Status(200, ""),
    })
    .await;
    world.publish("a:5 b:5 c:5 d:5").await;
    world.put("hook", hook(&server.url())).await;
    assert_eq!(server.bodies(5).await, "a b b c d", "what was in doubt is sent again, with its id");
    world.until_empty().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_is_given_up_and_holds_up_nothing_more_urgent() {
    let world = World::new().await;
    let mut server =
        Receiver::new(|got| if got.text() == "low" { Says::Nothing } else { Says::Status(200, "") }).await;
    let mut hook = hook(&server.url());
    hook["send"]["batch_ms"] = 200.into();
    world.put("hook", hook).await;
    world.publish("low:1").await;
    assert_eq!(server.bodies(1).await, "low");
    world.publish("urgent:9").await;
    assert_eq!(server.bodies(1).await, "urgent");
    world.until("hook", |view| view.work.lanes.get("9").is_some_and(|lane| lane.sent == 1)).await;
    assert!(world.view("hook").await.work.last_error.expect("said").1.contains("no answer within 200 ms"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_down_finds_everything_when_it_is_back() {
    let world = World::new().await;
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("an address");
    drop(socket);
    world.put("hook", hook(&format!("http://{address}/"))).await;
    world.publish("a:1 b:9").await;
    world.until("hook", |view| view.work.last_error.is_some()).await;
    let why = world.view("hook").await.work.last_error.expect("said").1;
    assert!(why.contains("does not answer: Connection refused"), "{why}");
    assert_eq!(world.sees("out").await, "b ready · a ready", "what cannot be sent is not leased");
    let socket = tokio::net::TcpListener::bind(address).await.expect("the port is free");
    let mut server = Receiver::on(socket, accepts);
    assert_eq!(server.bodies(2).await, "b a");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_a_receiver_which_is_gone_cannot_have_started_is_started_when_it_is_back() {
    let (world, mut server) = (World::new().await, Receiver::new(|_| Says::Closes).await);
    let mut json = hook(&server.url());
    json["starts"] = json!({"deadline_ms": 3_600_000});
    world.put("hook", json).await;
    world.publish("a:1").await;
    assert_eq!(server.bodies(1).await, "a");
    let address = server.address;
    drop(server);
    // The first may go on the connection that is about to close, and then it may have started work there.
    world.publish("b:1 c:1").await;
    world
        .until("hook", |view| {
            let why = view.work.last_error.as_ref().map(|(_, why)| why);
            why.is_some_and(|why| why.contains("Connection refused"))
        })
        .await;
    let socket = tokio::net::TcpListener::bind(address).await.expect("the port is free");
    let mut server = Receiver::on(socket, accepts);
    if server.bodies(1).await == "b" {
        assert_eq!(server.bodies(1).await, "c");
    }
    assert_eq!(world.sees("out").await, "a leased · b leased · c leased");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_signed_as_standard_webhooks_have_it() {
    use base64::Engine as _;
    use hmac::{KeyInit, Mac};
    let (world, mut server) = (World::new().await, Receiver::new(accepts).await);
    let key = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(key.path(), "whsec_c2VjcmV0\n").expect("written");
    let mut json = hook(&server.url());
    json["queue"] = "out".into();
    json["to"]["webhook"]["signing_key"] = json!({"file": key.path()});
    let configured = vec![("hook".to_owned(), crate::world::endpoint(json))];
    let World { disk, engine, endpoints, .. } = world;
    endpoints.stop(std::time::Duration::ZERO).await;
    engine.close();
    disk.clear_hook();
    let world = World::open(disk, configured).await;
    world.publish("a:5").await;
    let got = server.next().await;
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(b"secret").expect("a key");
    mac.update(format!("{}.{}.a", got.header("webhook-id"), got.header("webhook-timestamp")).as_bytes());
    let expected = base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes());
    assert_eq!(got.header("webhook-signature"), format!("v1,{expected}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_and_headers_may_be_secrets_and_are_read_for_each_connection() {
    let (world, mut server) = (World::new().await, Receiver::new(accepts).await);
    let dir = tempfile::tempdir().expect("a directory");
    let kept = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("written");
        json!({"file": path})
    };
    let mut json = hook("");
    json["queue"] = "out".into();
    json["to"]["webhook"]["url"] = kept("url", &format!("{}&key=secret\n", server.url()));
    json["to"]["webhook"]["headers"] = json!({"x-key": kept("key", "sesame\n"), "x-plain": "7"});
    let configured = vec![("hook".to_owned(), crate::world::endpoint(json))];
    let World { disk, engine, endpoints, .. } = world;
    endpoints.stop(std::time::Duration::ZERO).await;
    engine.close();
    disk.clear_hook();
    let world = World::open(disk, configured).await;
    world.publish("a:5").await;
    let got = server.next().await;
    assert!(got.line.starts_with("POST /hook?from=overtake&key=secret HTTP/1.1"), "{}", got.line);
    assert_eq!(["x-key", "x-plain"].map(|name| got.header(name)), ["sesame", "7"]);
}
