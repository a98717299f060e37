//! Requests that wait for messages: woken at once, ended by a drain, and taking nothing with them when they go.

use std::time::{Duration, Instant};

use axum::Extension;
use overtake_engine::{DeleteOnly, Engine};
use overtake_http::Drained;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{GUEST, HERE, World};

const WAIT: &str = r#"{"wait_ms":60000}"#;

/// Until so many requests wait at `q`.
async fn until_waiting(world: &World, count: u64) {
    let look = async {
        while world.engine.queue("q").await.expect("the queue").waiting != count {
            tokio::task::yield_now().await;
        }
    };
    let seen = tokio::time::timeout(Duration::from_secs(30), look).await;
    assert!(seen.is_ok(), "there are never {count} requests waiting");
}

#[tokio::test]
async fn a_waiting_request_is_woken_by_a_publish() {
    let world = World::with_queue("").await;
    let began = Instant::now();
    let (leased, ()) = tokio::join!(world.post("/v1/queues/q/leases", WAIT), async {
        until_waiting(&world, 1).await;
        world.publish("a").await;
    });
    assert_eq!(leased.expect(200).bodies(), "a");
    assert!(began.elapsed() < Duration::from_secs(30), "it waited for its time to end");
}

#[tokio::test]
async fn a_wait_that_is_over_is_an_empty_answer() {
    let world = World::with_queue("").await;
    let reply = world.post("/v1/queues/q/leases", r#"{"wait_ms":1}"#).await.expect(200);
    assert_eq!(reply.text, r#"{"messages":[]}"#);
}

/// Until somebody waits at `q` of a virtual host.
async fn until_waiting_in(world: &World, vhost: &str) {
    let vhost = world.engine.vhost(vhost).await.expect("it is there").vhost;
    let engine = world.engine.in_vhost(vhost);
    while engine.queue("q").await.expect("the queue").waiting == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_waiting_request_is_told_what_was_deleted() {
    let world = World::with_queue("").await;
    let (told, ()) = tokio::join!(world.post("/v1/queues/q/leases", WAIT), async {
        until_waiting(&world, 1).await;
        world.engine.delete_queue("q", DeleteOnly::default()).await.expect("deleted");
    });
    assert_eq!(
        (told.code().as_str(), &told.json["detail"]),
        ("404 no-such-queue", &"no queue `q` in vhost `/`".into())
    );
    let ann = user(&world).await;
    let everything = r#"{"configure":".*","write":".*","read":".*"}"#;
    for who in [GUEST, ann] {
        world.put("/v1/vhosts/shop", "{}").await.expect(201);
        world.put("/v1/users/ann/permissions/shop", everything).await.expect(204);
        world.put("/v1/queues/q?vhost=shop", "{}").await.expect(201);
        let waits = world.ask_as(Some(who), "POST", "/v1/queues/q/leases?vhost=shop", WAIT);
        let (told, ()) = tokio::join!(waits, async {
            until_waiting_in(&world, "shop").await;
            world.delete("/v1/vhosts/shop").await.expect(204);
        });
        assert_eq!(
            (told.code().as_str(), &told.json["detail"]),
            ("404 no-such-queue", &"no queue `q` in vhost `shop`, which is deleted".into())
        );
    }
}

/// The user ann, who may read `q` in `/`; as a request shows her.
async fn user(world: &World) -> &'static str {
    world.put("/v1/users/ann", r#"{"password":"secret"}"#).await;
    let reads = r#"{"configure":"","write":"","read":"^q$"}"#;
    world.put("/v1/users/ann/permissions/%2F", reads).await.expect(204);
    "Basic YW5uOnNlY3JldA=="
}

#[tokio::test]
async fn a_waiting_request_ends_with_the_permission_to_read() {
    let world = World::with_queue("").await;
    let nothing = r#"{"configure":"","write":"","read":""}"#;
    let took = "read access to queue 'q' in vhost '/' refused for user 'ann'";
    let out = "access to vhost '/' refused for user 'ann'";
    for (how, path, body, detail) in [
        ("PUT", "/v1/users/ann/permissions/%2F", nothing, took),
        ("DELETE", "/v1/users/ann/permissions/%2F", "", out),
        ("DELETE", "/v1/users/ann", "", out),
    ] {
        let ann = user(&world).await;
        let (told, ()) = tokio::join!(world.ask_as(Some(ann), "POST", "/v1/queues/q/leases", WAIT), async {
            until_waiting(&world, 1).await;
            world.ask(how, path, body).await.expect(204);
        });
        assert_eq!(
            (told.code().as_str(), &told.json["detail"]),
            ("403 access-refused", &detail.into()),
            "{how} {path}"
        );
        until_waiting(&world, 0).await;
    }
    let ann = user(&world).await;
    let made = world.ask_as(Some(ann), "POST", "/v1/tokens", "{}").await.expect(201);
    let bearer = format!("Bearer {}", made.json["secret"].as_str().expect("it is shown once"));
    let (told, ()) = tokio::join!(world.ask_as(Some(&bearer), "POST", "/v1/queues/q/leases", WAIT), async {
        until_waiting(&world, 1).await;
        let id = made.json["id"].as_str().expect("a number");
        world.delete(&format!("/v1/tokens/{id}")).await.expect(204);
    });
    assert_eq!(told.code(), "403 access-refused");
}

#[tokio::test]
async fn a_waiting_request_goes_on_under_another_password() {
    let world = World::with_queue("").await;
    let ann = user(&world).await;
    let (leased, ()) = tokio::join!(world.ask_as(Some(ann), "POST", "/v1/queues/q/leases", WAIT), async {
        until_waiting(&world, 1).await;
        world.put("/v1/users/ann", r#"{"password":"another"}"#).await.expect(200);
        world.publish("a").await;
    });
    assert_eq!(leased.bodies(), "a");
}

#[tokio::test]
async fn a_drain_ends_waiting_requests_and_takes_no_new_ones() {
    let world = World::with_queue("").await;
    let (leased, ()) = tokio::join!(world.post("/v1/queues/q/leases", WAIT), async {
        until_waiting(&world, 1).await;
        world.options.drain.begin(Duration::ZERO);
    });
    assert_eq!(leased.expect(200).text, r#"{"messages":[]}"#);
    let refused = world.post("/v1/queues/q/leases", WAIT).await;
    assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("503 draining", "1"));
    world.publish("a").await;
    assert_eq!(world.get("/v1/queues/q/messages?status=ready").await.bodies(), "a", "the wait was given up");
}

#[tokio::test]
async fn a_drain_is_awaited_by_whoever_asks_for_it() {
    let world = World::with_queue("").await;
    let drain = world.options.drain.clone();
    let wrong = world.post("/v1/drain?timeout_ms=soon", "").await;
    assert_eq!(wrong.code(), "422 value-invalid");
    assert!(!drain.begun().is_cancelled(), "what is wrong begins nothing");
    let (told, ()) = tokio::join!(world.post("/v1/drain?timeout_ms=1500", ""), async {
        drain.begun().cancelled().await;
        assert_eq!(drain.bound(), Duration::from_millis(1_500));
        drain.finish(Drained { drained: false, unacknowledged: 2 });
    });
    assert_eq!(told.expect(200).text, r#"{"drained":false,"unacknowledged":2}"#);
    let again = world.post("/v1/drain", "").await;
    assert_eq!(again.expect(200).text, r#"{"drained":false,"unacknowledged":2}"#);
    assert_eq!(drain.bound(), Duration::from_millis(1_500), "it is the same drain");
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_takes_no_message_with_it() {
    let world = World::with_queue("").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server =
        tokio::spawn(axum::serve(listener, world.router.clone().layer(Extension(HERE))).into_future());

    let mut gone = TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "POST /v1/queues/q/leases HTTP/1.1\r\nHost: x\r\nAuthorization: {GUEST}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{WAIT}",
        WAIT.len()
    );
    gone.write_all(request.as_bytes()).await.expect("sent");
    until_waiting(&world, 1).await;
    drop(gone);
    until_waiting(&world, 0).await;
    world.publish("a").await;

    let mut stays = TcpStream::connect(address).await.expect("a connection");
    stays
        .write_all(request.replace("Host: x", "Host: x\r\nConnection: close").as_bytes())
        .await
        .expect("sent");
    let mut answer = String::new();
    stays.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains(r#""body":"a""#) && answer.contains(r#""delivery_count":1"#), "{answer}");
    server.abort();
}
