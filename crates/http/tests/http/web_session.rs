//! A browser that logs in: what its cookie lets it do, and what a page of others cannot do with it.

use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::world::World;

/// What a browser sends and gets: status, headers, JSON.
async fn send(
    world: &World,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, HeaderMap, Value) {
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:15672");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = world.begin_as_it_is(request.body(Body::from(body.to_owned())).expect("a request")).await;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    (parts.status.as_u16(), parts.headers, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

const JSON: (&str, &str) = ("content-type", "application/json");
const PAGE: (&str, &str) = ("overtake-page", "1");

/// The cookie that a login with this body gives, as it is sent back.
async fn log_in(world: &World, body: &Value) -> String {
    let (status, headers, who) = send(world, "POST", "/v1/session", &[JSON, PAGE], &body.to_string()).await;
    assert_eq!(status, 200, "{who}");
    let cookie = headers[header::SET_COOKIE].to_str().expect("text");
    assert!(cookie.starts_with("overtake-session-15672=ovt_"), "{cookie}");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    cookie.split(';').next().expect("a pair").to_owned()
}

fn guest() -> Value {
    json!({"user": "guest", "password": "guest"})
}

#[tokio::test]
async fn a_cookie_counts_for_the_page_and_not_for_pages_of_others() {
    let world = World::with_queue("").await;
    let cookie = log_in(&world, &guest()).await;
    let cookie = ("cookie", cookie.as_str());
    let (status, _, who) = send(&world, "GET", "/v1/whoami", &[cookie], "").await;
    assert_eq!((status, &who["name"]), (200, &json!("guest")));
    let publish = "/v1/queues/q/messages";
    let (status, _, problem) = send(&world, "POST", publish, &[cookie, JSON], r#"{"body":"a"}"#).await;
    assert_eq!((status, &problem["code"]), (401, &json!("login-required")), "without the header of the page");
    let (status, ..) = send(&world, "POST", publish, &[cookie, JSON, PAGE], r#"{"body":"a"}"#).await;
    assert_eq!(status, 201);
}

#[tokio::test]
async fn who_logs_out_is_nobody_and_no_browser_asks_for_a_password_by_itself() {
    let world = World::with_queue("").await;
    let cookie = log_in(&world, &guest()).await;
    let cookie = ("cookie", cookie.as_str());
    let (status, headers, _) = send(&world, "DELETE", "/v1/session", &[cookie, PAGE], "").await;
    assert_eq!(status, 204);
    assert!(headers[header::SET_COOKIE].to_str().expect("text").contains("Max-Age=0"));
    let (status, headers, _) = send(&world, "GET", "/v1/whoami", &[cookie, PAGE], "").await;
    assert_eq!(status, 401);
    assert!(!headers.contains_key(header::WWW_AUTHENTICATE));
    let (_, headers, _) = send(&world, "GET", "/v1/whoami", &[cookie], "").await;
    assert!(headers.contains_key(header::WWW_AUTHENTICATE), "a program is told how to log in");
}

#[tokio::test]
async fn a_session_ends_with_the_password_and_with_the_user() {
    let world = World::with_queue("").await;
    let ann = json!({"user": "ann", "password": "secret"});
    world.put("/v1/users/ann", r#"{"password":"secret"}"#).await.expect(201);
    let first = log_in(&world, &ann).await;
    let seen = async |cookie: &str| send(&world, "GET", "/v1/whoami", &[("cookie", cookie)], "").await.0;
    assert_eq!(seen(&first).await, 200);
    world.put("/v1/users/ann", r#"{"tags":["monitoring"]}"#).await.expect(200);
    assert_eq!(seen(&first).await, 200, "other tags leave it as it is");
    world.put("/v1/users/ann", r#"{"password":"another"}"#).await.expect(200);
    assert_eq!(seen(&first).await, 401);
    let second = log_in(&world, &json!({"user": "ann", "password": "another"})).await;
    world.delete("/v1/users/ann").await.expect(204);
    assert_eq!(seen(&second).await, 401);
}

#[tokio::test]
async fn a_stream_of_events_ends_with_its_session() {
    let world = World::with_queue("").await;
    for ends_by in ["logout", "password"] {
        world.put("/v1/users/ann", r#"{"password":"secret"}"#).await;
        let cookie = log_in(&world, &json!({"user": "ann", "password": "secret"})).await;
        let request = Request::get("/v1/overview/events").header(header::HOST, "localhost:15672");
        let request = request.header(header::COOKIE, &cookie).body(Body::empty()).expect("a request");
        let stream = world.begin_as_it_is(request).await;
        assert_eq!(stream.status(), 200);
        match ends_by {
            "logout" => {
                send(&world, "DELETE", "/v1/session", &[("cookie", &cookie), PAGE], "").await;
            }
            _ => drop(world.put("/v1/users/ann", r#"{"password":"another"}"#).await.expect(200)),
        }
        stream.into_body().collect().await.expect("it ends");
    }
}

#[tokio::test]
async fn a_session_by_a_token_is_no_more_than_the_token() {
    let world = World::with_queue("").await;
    let made = world.post("/v1/tokens", r#"{"label":"page","write":"","configure":""}"#).await.expect(201);
    let token = json!({"token": made.json["secret"]});
    let cookie = log_in(&world, &token).await;
    let cookie = ("cookie", cookie.as_str());
    let (status, ..) = send(&world, "GET", "/v1/queues/q/messages", &[cookie], "").await;
    assert_eq!(status, 200);
    let (status, ..) = send(&world, "DELETE", "/v1/queues/q", &[cookie, PAGE], "").await;
    assert_eq!(status, 403);
    let id = made.json["id"].as_str().expect("an id");
    world.delete(&format!("/v1/tokens/{id}")).await.expect(204);
    let (status, ..) = send(&world, "GET", "/v1/whoami", &[cookie], "").await;
    assert_eq!(status, 401, "it ends with the token");
}

#[tokio::test]
async fn what_logs_nobody_in_is_told_why() {
    let world = World::with_queue("").await;
    for (body, code) in [
        (r#"{"user":"guest","password":"wrong"}"#, "login-refused"),
        (r#"{"token":"ovt_none"}"#, "login-refused"),
        (r#"{"user":"guest"}"#, "value-invalid"),
        (r#"{"user":"guest","password":"guest","token":"x"}"#, "value-invalid"),
        ("{}", "value-invalid"),
    ] {
        let (status, headers, problem) = send(&world, "POST", "/v1/session", &[JSON, PAGE], body).await;
        assert_eq!(problem["code"], json!(code), "{body}: {problem}");
        assert!(status == 401 || status == 422, "{body}: {status}");
        assert!(!headers.contains_key(header::SET_COOKIE), "{body}");
        assert!(!headers.contains_key(header::WWW_AUTHENTICATE), "{body}");
    }
}
