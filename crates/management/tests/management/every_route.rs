//! What holds for every route, whichever are to come: nobody gets in without a login, without its tag, by a name that is
//! nobody's, or with a body that says nothing.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::Request;
use http_body_util::channel::Channel;
use overtake_management::{Route, routes};

use crate::world::World;

/// Routes that look at no body, or that name nothing that has to be there.
const BODILESS: [&str; 2] = ["/api/rebalance/queues", "/api/vhosts/{vhost}/start/{node}"];
const NAMELESS: [&str; 4] = [
    // Who has no connection has none to be closed.
    "/api/connections/username/{user}",
    // These name what is asked about.
    "/api/health/checks/port-listener/{port}",
    "/api/health/checks/protocol-listener/{protocol}",
    // Of a component nothing may be set.
    "/api/parameters/{component}",
];

/// Routes that make what they name.
const MAKING: [&str; 3] = ["/api/users/{user}", "/api/vhosts/{vhost}", "/api/global-parameters/{name}"];

fn path(route: &Route, fill: impl Fn(&str) -> &'static str) -> String {
    let parts = route.path.split('/').map(|part| match part.strip_prefix('{') {
        Some(name) => fill(name.trim_end_matches('}')).to_owned(),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Names of what is there.
fn known(name: &str) -> &'static str {
    match name {
        "vhost" => "%2F",
        "user" => "guest",
        "node" => "overtake@here",
        "port" => "5672",
        "protocol" => "amqp",
        "limit" => "max-connections",
        "source" => "amq.direct",
        "properties" => "~",
        _ => "q",
    }
}

#[tokio::test]
async fn without_a_login_nobody_gets_in() {
    let world = World::new().await;
    for route in routes() {
        let path = path(&route, known);
        for who in [None, Some(("guest", "wrong")), Some(("nobody", "at all"))] {
            // A wrong password is slow by intent: it is tried where it costs a moment only.
            if who.is_some() && route.path != "/api/overview" {
                continue;
            }
            let reply = world.ask_as(who, route.method.as_str(), &path, "").await.expect(401);
            assert_eq!(reply.text, r#"{"error":"not_authorized","reason":"Login failed"}"#, "{route:?}");
            assert_eq!(reply.headers["www-authenticate"], "Basic realm=\"Overtake Management\"");
        }
    }
}

#[tokio::test]
async fn without_a_login_nothing_is_read() {
    let world = World::new().await;
    for route in routes() {
        let (body, promised) = Channel::<Bytes, Infallible>::new(1);
        // It never comes: whoever waits for it waits for ever.
        let _never = body;
        let request = Request::builder().method(route.method.clone()).uri(path(&route, known));
        let reply = world.send(request.body(Body::new(promised)).expect("a request")).await;
        assert_eq!(reply.status, 401, "{route:?}");
    }
}

#[tokio::test]
async fn without_a_tag_nobody_may_do_anything() {
    let world = World::new().await.with_user("plain", "", ".*").await;
    for route in routes() {
        let path = path(&route, known);
        let reply = world.ask_as(Some(("plain", "test12")), route.method.as_str(), &path, "").await;
        assert_eq!(reply.status, 403, "{route:?} {}", reply.text);
        assert_eq!(reply.json["error"], "not_authorized", "{route:?}");
    }
}

#[tokio::test]
async fn a_tag_opens_what_takes_it_and_no_more() {
    use overtake_access::Tag;
    let world = World::new().await.with_user("clerk", "management", ".*").await;
    world.queue("q", "{}").await;
    for route in routes() {
        let path = path(&route, |name| if name == "vhost" { "%2F" } else { "no-such" });
        let reply = world.ask_as(Some(("clerk", "test12")), route.method.as_str(), &path, "").await;
        assert_eq!(reply.status == 403, route.tag != Tag::Management, "{route:?} {}", reply.text);
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = World::new().await;
    for route in routes() {
        if !route.path.contains('{') || NAMELESS.contains(&route.path) {
            continue;
        }
        let path = path(&route, |_| "no-such");
        let reply = world.ask(
            route.method.as_str(),
            &path,
            r#"{"value":1,"tags":"","configure":"","write":"","read":""}"#,
        );
        let reply = reply.await;
        let makes_it = route.method == "PUT" && MAKING.contains(&route.path);
        if makes_it {
            assert!(reply.status.is_success(), "{route:?} {}", reply.text);
            world.delete(&path).await.expect(204);
            continue;
        }
        assert_eq!(reply.status, 404, "{route:?} {}", reply.text);
        assert_eq!(reply.text, r#"{"error":"Object Not Found","reason":"Not Found"}"#, "{route:?}");
    }
}

#[tokio::test]
async fn rubbish_is_refused() {
    let world = World::new().await;
    world.queue("q", "{}").await;
    world.put("/api/exchanges/%2F/q", r#"{"type":"fanout"}"#).await.expect(201);
    for route in routes() {
        if !["PUT", "POST"].contains(&route.method.as_str()) || BODILESS.contains(&route.path) {
            continue;
        }
        for rubbish in ["{", "[1,2]", "7", "\"text\"", "\u{7f}"] {
            let reply = world.ask(route.method.as_str(), &path(&route, known), rubbish).await;
            assert_eq!(reply.status, 400, "{route:?} {rubbish} {}", reply.text);
            assert_eq!(reply.json["error"], "bad_request", "{route:?}");
            assert!(reply.reason().contains("not understood"), "{route:?} {}", reply.text);
        }
    }
}

#[tokio::test]
async fn what_is_served_nowhere_is_said_so() {
    let world = World::new().await;
    world.get("/api/no-such-thing").await.expect(404);
    let reply = world.ask("PATCH", "/api/overview", "").await.expect(405);
    assert_eq!(reply.json["error"], "Method Not Allowed");
    let large = format!(r#"{{"name":"{}"}}"#, "x".repeat(1 << 17));
    world.put("/api/cluster-name", &large).await.expect(413);
}
