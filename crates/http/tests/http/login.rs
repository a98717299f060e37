//! Who may do what: every route without a login, with too few rights, with unknown names and with rubbish.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{Request, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body::Frame;
use overtake_access::Peer;
use serde_json::{Value, json};

use crate::world;
use crate::world::{GUEST, World};

const OPEN: [&str; 5] = ["/livez", "/healthz", "/readyz", "/openapi.json", "/v1/session"];

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// What a route answers to somebody who may nothing, to names of nothing, and to rubbish; as the document has it.
struct Route {
    method: String,
    path: String,
    takes_body: bool,
}

/// Every route of the document, which is made of the router.
fn routes() -> Vec<Route> {
    let document: Value = serde_json::from_str(&overtake_http::openapi_json()).expect("JSON");
    let of_path = |(path, item): (&String, &Value)| {
        let methods = item.as_object().expect("a path item").iter();
        let route = |(method, operation): (&String, &Value)| Route {
            method: method.to_uppercase(),
            path: path.clone(),
            takes_body: operation.get("requestBody").is_some(),
        };
        methods.map(route).collect::<Vec<_>>()
    };
    document["paths"].as_object().expect("paths").iter().flat_map(of_path).collect()
}

/// Those for which one has to log in, and whose answers end.
fn closed() -> impl Iterator<Item = Route> {
    let is = |route: &Route| !OPEN.contains(&&*route.path) && route.path != "/v1/overview/events";
    routes().into_iter().filter(is)
}

impl Route {
    /// With names of things that are there, or of nothing.
    fn with(&self, name: &str) -> String {
        let names = [
            ("{queue}", "q"),
            ("{exchange}", "x"),
            ("{user}", "nobody"),
            ("{vhost}", "%2F"),
            ("{token}", "t"),
            ("{number}", "7"),
            ("{schedule}", "s"),
            ("{id}", "m"),
        ];
        let there = names.iter().fold(self.path.clone(), |path, (hole, there)| path.replace(hole, there));
        if name.is_empty() {
            there
        } else {
            names.iter().fold(self.path.clone(), |path, (hole, _)| path.replace(hole, name))
        }
    }

    /// A body that could be meant.
    fn body(&self) -> &'static str {
        match (&*self.method, &*self.path) {
            ("PUT", "/v1/exchanges/{exchange}") => r#"{"kind":"direct"}"#,
            (_, "/v1/exchanges/{exchange}/bindings") if self.takes_body => r#"{"queue":"q"}"#,
            ("PUT", "/v1/users/{user}/permissions/{vhost}") => r#"{"configure":"","write":"","read":""}"#,
            (
                "PUT",
                "/v1/queues/{queue}/messages/{id}/priority" | "/api/v1/admin/executions/{id}/priority",
            ) => r#"{"priority":1}"#,
            ("PUT", "/api/v1/admin/executions/queue/max_concurrent") => r#"{"max_concurrent":1}"#,
            ("POST", "/v1/queues/{queue}/reprioritise") => r#"{"all":true,"priority":1}"#,
            ("POST", "/v1/queues/{queue}/remove" | "/v1/queues/{queue}/cancel") => r#"{"all":true}"#,
            ("POST", "/v1/queues/{queue}/replay") => r#"{"id":"m"}"#,
            ("POST", "/v1/queues/{queue}/settle") => r#"{"receipts":["0-1-1"],"how":"ack"}"#,
            ("POST", "/v1/queues/{queue}/extend") => r#"{"receipts":["0-1-1"],"visibility_timeout_ms":1}"#,
            ("POST", "/v1/transactions") => r#"{"publish":[{"queue":"q","body":""}]}"#,
            (
                "POST",
                "/v1/queues/{queue}/messages" | "/v1/exchanges/{exchange}/messages" | "/v1/topics/{path}",
            ) => r#"{"body":""}"#,
            ("PUT", "/v1/routes") => r#"{"routes":{}}"#,
            ("POST", "/v1/routes/test") => r#"{"path":"/"}"#,
            ("PUT", "/v1/schedules/{schedule}") => r#"{"queue":"q","cron":"@daily","message":{"body":""}}"#,
            ("PUT", "/v1/endpoints/{endpoint}") => r#"{"queue":"q","to":{"queue":{"name":"r"}}}"#,
            ("PUT", "/v1/sources/{source}") => {
                r#"{"from":{"amqp":{"url":"amqp://localhost","queue":"r"}},"to":{"queue":"q"}}"#
            }
            ("POST", "/v1/endpoints/{endpoint}/test" | "/v1/sources/{source}/test") => "{}",
            ("POST", "/v1/tokens") => r#"{"user":"guest"}"#,
            _ if self.takes_body => "{}",
            _ => "",
        }
    }

    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

async fn world_with(user: &str, permission: Value) -> World {
    let world = World::with_queue("").await;
    world.put("/v1/exchanges/x", r#"{"kind":"direct"}"#).await.expect(200);
    world.put(&format!("/v1/users/{user}"), r#"{"password":"secret"}"#).await.expect(201);
    if !permission.is_null() {
        let path = format!("/v1/users/{user}/permissions/%2F");
        world.put(&path, &permission.to_string()).await.expect(204);
    }
    world
}

/// A body that goes on for ever, and counts what is read of it.
struct Endless(Arc<AtomicUsize>);

/// Bytes of each of its frames.
const FRAME: usize = 64;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let read = self.0.fetch_add(FRAME, Ordering::Relaxed);
        assert!(read < 1 << 20, "it is read without end");
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; FRAME])))))
    }
}

#[tokio::test]
async fn until_somebody_is_known_next_to_nothing_is_read() {
    let world = World::with_queue("").await;
    for (number, route) in routes().into_iter().enumerate() {
        let is_open = OPEN.contains(&&*route.path);
        let most = if is_open { (8 << 10) + FRAME } else { 0 };
        let wrong = basic(&format!("user-{number}"), "wrong");
        for who in [None, Some("Digest x"), Some(&*wrong)] {
            let read = Arc::new(AtomicUsize::new(0));
            let request = Request::builder().method(&*route.method).uri(route.with(""));
            let request = request.header(header::CONTENT_TYPE, "application/json");
            let request =
                who.iter().fold(request, |request, who| request.header(header::AUTHORIZATION, *who));
            let body = Body::new(Endless(Arc::clone(&read)));
            let reply = world.begin_as_it_is(request.body(body).expect("a request")).await;
            let read = read.load(Ordering::Relaxed);
            assert!(read <= most, "{} {who:?}: {read} bytes were read", route.name());
            let expected = match route.method.as_str() {
                _ if !is_open => 401,
                "POST" => 413,
                "DELETE" => 204,
                _ => 200,
            };
            assert_eq!(reply.status(), expected, "{} {who:?}", route.name());
        }
    }
    let login = |length: usize| {
        let body = json!({"user": "guest", "password": "x".repeat(length)}).to_string();
        let request = Request::post("/v1/session").header(header::CONTENT_TYPE, "application/json");
        request.header(header::CONTENT_LENGTH, body.len()).body(Body::from(body)).expect("a request")
    };
    assert_eq!(world.begin_as_it_is(login(8 << 10)).await.status(), 413);
    assert_eq!(world.begin_as_it_is(login(1 << 10)).await.status(), 401, "a long password is one");
}

#[tokio::test]
async fn no_route_but_five_is_open_to_those_who_do_not_log_in() {
    let world = World::with_queue("").await;
    for (number, route) in routes().into_iter().enumerate() {
        let reply = world.ask_as(None, &route.method, &route.with(""), route.body()).await;
        if OPEN.contains(&&*route.path) {
            let expected = match route.method.as_str() {
                "POST" => 422,
                "DELETE" => 204,
                _ => 200,
            };
            assert_eq!(reply.status, expected, "{}", route.name());
            continue;
        }
        assert_eq!(reply.code(), "401 login-required", "{}", route.name());
        assert!(reply.header("www-authenticate").starts_with("Basic "), "{}", route.name());
        // Another one each time: whoever is wrong again and again has to wait.
        let wrong = basic(&format!("user-{number}"), "wrong");
        let reply = world.ask_as(Some(&wrong), &route.method, &route.with(""), "").await;
        assert_eq!(reply.code(), "401 login-refused", "{}", route.name());
    }
    for path in ["/", "/v1/nothing", "/v1/queues/a/b/c"] {
        assert_eq!(world.ask_as(None, "GET", path, "").await.code(), "401 login-required", "{path}");
    }
}

#[tokio::test]
async fn who_has_no_rights_may_do_nothing_but_see_who_one_is() {
    let nobody = basic("nobody", "secret");
    for permission in [Value::Null, json!({"configure": "^a$", "write": "^a$", "read": "^a$"})] {
        let world = world_with("nobody", permission.clone()).await;
        let may_enter = !permission.is_null();
        for route in closed() {
            let reply = world.ask_as(Some(&nobody), &route.method, &route.with(""), route.body()).await;
            match &*route.name() {
                "GET /v1/whoami" | "GET /v1/tokens" | "GET /v1/vhosts" => drop(reply.expect(200)),
                "GET /v1/vhosts/{vhost}" if may_enter => drop(reply.expect(200)),
                // Lists show what one may see.
                "GET /v1/overview" => assert_eq!(reply.expect(200).json["queues"], json!([])),
                "GET /v1/overview/history" => drop(reply.expect(200)),
                "GET /v1/queues" if may_enter => assert_eq!(reply.json["queues"], json!([])),
                "GET /v1/exchanges" if may_enter => assert_eq!(reply.json["exchanges"], json!([])),
                "GET /v1/categories" if may_enter => assert_eq!(reply.json["categories"], json!([])),
                "GET /v1/routes" | "GET /v1/routes/manifest" | "POST /v1/routes/test" if may_enter => {
                    drop(reply.expect(200))
                }
                "GET /v1/endpoints" if may_enter => assert_eq!(reply.json["endpoints"], json!([])),
                "GET /v1/sources" if may_enter => assert_eq!(reply.json["sources"], json!([])),
                "GET /v1/endpoints/{endpoint}" | "GET /v1/sources/{source}" if may_enter => {
                    assert_eq!(reply.code(), "404 no-such-connector");
                }
                "GET /v1/schedules" if may_enter => assert_eq!(reply.json["schedules"], json!([])),
                "GET /v1/jobs" if may_enter => assert_eq!(reply.json["jobs"], json!([])),
                // One of a queue that one may not see is not told from none.
                "GET /v1/jobs/{job}" | "DELETE /v1/jobs/{job}" if may_enter => {
                    assert_eq!(reply.code(), "404 no-such-job");
                }
                "GET /v1/schedules/{schedule}" | "DELETE /v1/schedules/{schedule}" if may_enter => {
                    assert_eq!(reply.code(), "404 no-such-schedule");
                }
                name => assert_eq!(reply.code(), "403 access-refused", "{name}"),
            }
        }
    }
}

#[tokio::test]
async fn names_of_nothing_are_not_found_and_rubbish_is_told_what_is_wrong() {
    let world = World::with_queue("").await;
    world.put("/v1/exchanges/x", r#"{"kind":"direct"}"#).await.expect(200);
    for route in closed() {
        // Messages may come from any path.
        if route.path.contains('{') && route.method != "PUT" && route.path != "/v1/topics/{path}" {
            let reply = world.ask_as(Some(GUEST), &route.method, &route.with("nothing"), route.body()).await;
            assert_eq!(reply.status, 404, "{}: {}", route.name(), reply.text);
        }
        if route.takes_body {
            for rubbish in ["{", "[[", r#"{"what":1}"#, "\"x\"", "{\"a\":\u{1}}", "nil"] {
                let reply = world.ask_as(Some(GUEST), &route.method, &route.with(""), rubbish).await;
                let (status, hint) = (reply.status.as_u16(), reply.json["hint"].as_str().unwrap_or_default());
                assert!((400..=422).contains(&status), "{}: {rubbish}: {}", route.name(), reply.text);
                assert!(!hint.is_empty(), "{}: {rubbish}: {}", route.name(), reply.text);
            }
        }
        if route.path != "/v1/store/snapshot" && route.path != "/v1/drain" {
            let path = format!("{}?what=1", route.with(""));
            let reply = world.ask_as(Some(GUEST), &route.method, &path, route.body()).await;
            assert!(reply.status.as_u16() < 500, "{}: {}", route.name(), reply.text);
        }
    }
}

#[tokio::test]
async fn guest_comes_from_this_machine_only() {
    let world = World::new();
    let ask = |from: Option<Ipv4Addr>| {
        let request = Request::get("/v1/whoami").header(header::AUTHORIZATION, GUEST);
        let request = match from {
            Some(from) => request.extension(Peer::at(IpAddr::V4(from))),
            None => request,
        };
        world.begin_as_it_is(request.body(Body::empty()).expect("a request"))
    };
    assert_eq!(ask(None).await.status(), 200, "the world says it is here");
    assert_eq!(ask(Some(Ipv4Addr::new(127, 0, 0, 9))).await.status(), 200);
    assert_eq!(ask(Some(Ipv4Addr::new(192, 168, 1, 1))).await.status(), 401);
}

#[tokio::test]
async fn rights_are_by_name_and_by_what_is_done() {
    let world =
        world_with("ann", json!({"configure": "^own", "write": "^(own|x$)", "read": "^(own|q$)"})).await;
    let ann = basic("ann", "secret");
    let check = async |method: &str, path: &str, body: &str, expect: &str| {
        let reply = world.ask_as(Some(&ann), method, path, body).await;
        assert_eq!(reply.code(), expect, "{method} {path}: {}", reply.text);
        reply
    };
    check("PUT", "/v1/queues/own", "{}", "201 -").await;
    let refused = check("PUT", "/v1/queues/other", "{}", "403 access-refused").await;
    let expect = "configure access to queue 'other' in vhost '/' refused for user 'ann'";
    assert_eq!(refused.json["detail"], expect);
    let dead = r#"{"dead_letter":{"exchange":{"name":"amq.topic"}}}"#;
    check("PUT", "/v1/queues/own", dead, "403 access-refused").await;
    check("PATCH", "/v1/queues/own", dead, "403 access-refused").await;
    check("PATCH", "/v1/queues/q", r#"{"paused":true}"#, "403 access-refused").await;
    check("PATCH", "/v1/queues/own", r#"{"dead_letter":{"exchange":{"name":"x"}}}"#, "200 -").await;
    check("POST", "/v1/queues/own/messages", r#"{"body":"a"}"#, "201 -").await;
    check("POST", "/v1/queues/q/messages", r#"{"body":"a"}"#, "403 access-refused").await;
    check("POST", "/v1/exchanges/x/messages", r#"{"body":"a"}"#, "201 -").await;
    check("POST", "/v1/exchanges/amq.fanout/messages", r#"{"body":"a"}"#, "403 access-refused").await;
    check("POST", "/v1/exchanges/x/bindings", r#"{"queue":"own"}"#, "403 access-refused").await;
    check("POST", "/v1/queues/q/leases", "{}", "200 -").await;
    check("POST", "/v1/queues/q/purge", "{}", "200 -").await;
    check("POST", "/v1/queues/q/reprioritise", r#"{"all":true,"priority":1}"#, "403 access-refused").await;
    check("DELETE", "/v1/queues/q", "", "403 access-refused").await;
    check("GET", "/v1/users", "", "403 access-refused").await;
    check("GET", "/metrics", "", "403 access-refused").await;
    let seen = check("GET", "/v1/queues", "", "200 -").await.json;
    let names: Vec<_> =
        seen["queues"].as_array().expect("queues").iter().map(|queue| &queue["name"]).collect();
    assert_eq!(names, ["own", "q"]);
}

#[tokio::test]
async fn a_receipt_of_a_queue_one_may_not_read_settles_nothing() {
    let world = world_with("ann", json!({"configure": "", "write": ".*", "read": "^own"})).await;
    world.publish("a").await;
    let (_, receipts) = world.lease(1).await;
    let ann = basic("ann", "secret");
    let settle = json!({"settle": [{"receipts": receipts, "how": "ack"}]}).to_string();
    let reply = world.ask_as(Some(&ann), "POST", "/v1/transactions", &settle).await;
    assert_eq!(reply.code(), "403 access-refused");
    let settle = json!({"receipts": receipts, "how": "ack"}).to_string();
    let reply = world.ask_as(Some(&ann), "POST", "/v1/queues/q/settle", &settle).await;
    assert_eq!(reply.code(), "403 access-refused");
    let gone = json!({"settle": [{"receipts": ["63-1-1"], "how": "ack"}]}).to_string();
    let reply = world.post("/v1/transactions", &gone).await;
    assert_eq!(
        (reply.code().as_str(), &reply.json["key"]),
        ("409 stale-receipt", &json!("settle[0].receipts[0]"))
    );
    world.post("/v1/queues/q/settle", &settle).await.expect(200);
}

#[tokio::test]
async fn a_user_is_made_changed_and_deleted_and_no_secret_is_shown() {
    let world = World::new();
    let made =
        world.put("/v1/users/a%2Fb", r#"{"password":"secret","tags":["monitoring"]}"#).await.expect(201);
    let expect =
        json!({"name": "a/b", "tags": ["monitoring"], "has_password": true, "limits": {}, "permissions": []});
    assert_eq!(made.json, expect);
    let changed = world.put("/v1/users/a%2Fb", r#"{"limits":{"max_connections":2}}"#).await.expect(200);
    assert_eq!(
        (&changed.json["tags"], &changed.json["limits"]),
        (&json!(["monitoring"]), &json!({"max_connections": 2}))
    );
    let whoami = world.ask_as(Some(&basic("a/b", "secret")), "GET", "/v1/whoami", "").await.expect(200);
    assert_eq!(whoami.json, json!({"name": "a/b", "tags": ["monitoring"]}));
    world.ask_as(Some(&basic("a/b", "secret")), "GET", "/metrics", "").await.expect(200);
    let path = "/v1/users/a%2Fb/permissions/%2F";
    world.put(path, r#"{"configure":"","write":"^a","read":".*"}"#).await.expect(204);
    let shown = world.get("/v1/users/a%2Fb").await.expect(200).json;
    assert_eq!(shown["permissions"], json!([{"vhost": "/", "configure": "", "write": "^a", "read": ".*"}]));
    world.delete(path).await.expect(204);
    assert_eq!(world.delete(path).await.code(), "404 no-such-permission");
    world.delete("/v1/users/a%2Fb").await.expect(204);
    assert_eq!(world.get("/v1/users/a%2Fb").await.code(), "404 no-such-user");
    assert_eq!(world.delete("/v1/users/guest").await.code(), "409 last-administrator");
    assert_eq!(world.put("/v1/users/guest", r#"{"tags":[]}"#).await.code(), "409 last-administrator");
    let audit = world.get("/v1/audit").await.expect(200);
    let actions: Vec<_> = audit.json["deeds"]
        .as_array()
        .expect("deeds")
        .iter()
        .map(|deed| deed["action"].as_str().expect("text"))
        .collect();
    let expect = [
        "user.delete",
        "permission.clear",
        "permission.set",
        "user.put",
        "user.put",
        "permission.set",
        "user.put",
    ];
    assert_eq!(actions, expect);
    assert!(!audit.text.contains("secret") && !audit.text.contains("$argon2"), "{}", audit.text);
}

#[tokio::test]
async fn a_password_may_come_as_a_hash_of_rabbitmq() {
    let world = World::new();
    let user = json!({"password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"}).to_string();
    world.put("/v1/users/moved", &user).await.expect(201);
    world.ask_as(Some(&basic("moved", "test12")), "GET", "/v1/whoami", "").await.expect(200);
    for (body, key) in [
        (r#"{"password":""}"#, "password"),
        (r#"{"password":"a","password_hash":"b"}"#, "password_hash"),
        (r#"{"password_hash":"b"}"#, "password_hash"),
        (r#"{"password_hash":"b","hashing_algorithm":"rot13"}"#, "hashing_algorithm"),
    ] {
        let reply = world.put("/v1/users/u", body).await;
        assert_eq!((reply.code().as_str(), &reply.json["key"]), ("422 value-invalid", &json!(key)), "{body}");
    }
    let reply =
        world.put("/v1/users/moved/permissions/%2F", r#"{"configure":"(","write":"","read":""}"#).await;
    assert_eq!(reply.code(), "422 value-invalid");
}

#[tokio::test]
async fn a_token_is_shown_once_and_does_no_more_than_it_says() {
    let world = world_with("ann", json!({"configure": "", "write": ".*", "read": ".*"})).await;
    let ann = basic("ann", "secret");
    let ask = r#"{"label":"worker","read":"^q$","write":""}"#;
    let made = world.ask_as(Some(&ann), "POST", "/v1/tokens", ask).await.expect(201).json;
    let (secret, id) = (made["secret"].as_str().expect("text"), made["id"].as_str().expect("text"));
    let bearer = format!("Bearer {secret}");
    world.ask_as(Some(&bearer), "POST", "/v1/queues/q/leases", "{}").await.expect(200);
    let reply = world.ask_as(Some(&bearer), "POST", "/v1/queues/q/messages", r#"{"body":""}"#).await;
    assert_eq!(reply.code(), "403 access-refused");
    let reply = world.ask_as(Some(&bearer), "POST", "/v1/tokens", "{}").await;
    assert_eq!(reply.code(), "403 access-refused", "a token makes no tokens");
    let listed = world.ask_as(Some(&ann), "GET", "/v1/tokens", "").await.expect(200);
    assert_eq!(listed.json["tokens"].as_array().map(Vec::len), Some(1));
    assert!(!listed.text.contains(secret), "{}", listed.text);
    assert_eq!(world.get("/v1/tokens").await.expect(200).json["tokens"][0]["user"], "ann");
    let path = format!("/v1/tokens/{id}");
    world.ask_as(Some(&ann), "DELETE", &path, "").await.expect(204);
    let reply = world.ask_as(Some(&bearer), "GET", "/v1/whoami", "").await;
    assert_eq!(reply.code(), "401 login-refused");
    assert_eq!(
        world.ask_as(Some(&ann), "DELETE", &path, "").await.code(),
        "403 access-refused",
        "it is nobody's"
    );
    assert_eq!(world.delete(&path).await.code(), "404 no-such-token");
}

#[tokio::test]
async fn routes_know_who_published_and_when_whatever_a_message_says() {
    let world = world_with("edge%2Fcam", json!({"configure": "", "write": ".*", "read": ""})).await;
    let manifest = r#"{"routes": {
        "cam": "FROM /* WHERE $connectionDeviceId = 'edge' AND {$connectionModuleId} = 'cam' INTO Endpoint('cam')",
        "door": "FROM /* WHERE {$connectionModuleId} = 'door' INTO Endpoint('door')",
        "late": "FROM /* WHERE {$enqueuedTime} < '2020' INTO Endpoint('late')"}}"#;
    world.put("/v1/routes", manifest).await.expect(200);
    let cam = basic("edge/cam", "secret");
    let said = r#"{"body":"a","headers":{"$connectionModuleId":"door","$enqueuedTime":"1999"}}"#;
    world.ask_as(Some(&cam), "POST", "/v1/topics/messages/modules/door", said).await.expect(201);
    assert_eq!(world.get("/v1/queues/cam/messages").await.bodies(), "a");
    let tried = world.post("/v1/routes/test", r#"{"path":"/x"}"#).await.expect(200).json;
    let why = tried["routes"][0]["why"].to_string();
    assert!(why.contains("guest"), "it is tried as whoever asks would publish it: {why}");
    // An administrator's word about another is taken, and so is its path.
    let said = r#"{"body":"b","user_id":"edge"}"#;
    world.post("/v1/topics/messages/modules/cam", said).await.expect(201);
    world.post("/v1/topics/messages/modules/door", r#"{"body":"c"}"#).await.expect(201);
    assert_eq!(world.get("/v1/queues/cam/messages").await.bodies(), "a b");
    assert_eq!(world.get("/v1/queues/door/messages").await.bodies(), "c");
    assert_eq!(world.get("/v1/queues/late/messages").await.bodies(), "");
}

#[tokio::test]
async fn virtual_hosts_are_apart_and_entered_by_right() {
    let world = world_with("ann", json!({"configure": ".*", "write": ".*", "read": ".*"})).await;
    let ann = basic("ann", "secret");
    let made =
        world.put("/v1/vhosts/a%2Fb", r#"{"description":"for tests","max_queues":1}"#).await.expect(201);
    assert_eq!(
        made.json,
        json!({"name": "a/b", "description": "for tests", "tags": [], "max_queues": 1, "queues": 0})
    );
    // Whoever makes one has all rights in it; nobody else has any.
    world.put("/v1/queues/q?vhost=a%2Fb", r#"{"scheme":"named"}"#).await.expect(201);
    assert_eq!(world.get("/v1/queues/q").await.json["settings"]["scheme"], "ten-level");
    assert_eq!(world.get("/v1/queues/q?vhost=a%2Fb").await.json["settings"]["scheme"], "named");
    assert_eq!(world.put("/v1/queues/r?vhost=a%2Fb", "{}").await.code(), "409 vhost-queues-max");
    world.post("/v1/queues/q/messages?vhost=a%2Fb", r#"{"body":"there"}"#).await.expect(201);
    assert_eq!(world.get("/v1/queues/q/messages").await.bodies(), "");
    assert_eq!(world.get("/v1/queues/q/messages?vhost=a%2Fb&status=ready").await.bodies(), "there");
    let leased = world.post("/v1/queues/q/leases?vhost=a%2Fb", "{}").await.expect(200);
    let settle = json!({"receipts": leased.all("receipt"), "how": "ack"}).to_string();
    assert_eq!(
        world.post("/v1/queues/q/settle", &settle).await.code(),
        "422 value-invalid",
        "it is of another queue"
    );
    world.post("/v1/queues/q/settle?vhost=a%2Fb", &settle).await.expect(200);

    let reply = world.ask_as(Some(&ann), "GET", "/v1/queues?vhost=a%2Fb", "").await;
    assert_eq!(reply.code(), "403 access-refused");
    assert_eq!(reply.json["detail"], "access to vhost 'a/b' refused for user 'ann'");
    let names = |reply: world::Reply| {
        let all = reply.json["vhosts"].as_array().expect("vhosts").clone();
        all.iter().map(|vhost| vhost["name"].as_str().expect("text").to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(world.ask_as(Some(&ann), "GET", "/v1/vhosts", "").await), "/");
    assert_eq!(names(world.get("/v1/vhosts").await), "/ a/b");
    assert_eq!(world.get("/v1/queues?vhost=none").await.code(), "404 no-such-vhost");
    assert_eq!(world.delete("/v1/vhosts/%2F").await.code(), "409 vhost-reserved");
    world.get("/v1/queues").await.expect(200);
    world.delete("/v1/vhosts/a%2Fb").await.expect(204);
    assert_eq!(world.get("/v1/queues/q?vhost=a%2Fb").await.code(), "404 no-such-vhost");
    let shown = world.get("/v1/users/guest").await.expect(200).json;
    assert_eq!(shown["permissions"].as_array().map(Vec::len), Some(1), "rights in it are gone with it");
}

#[tokio::test]
async fn an_administrator_without_a_password_and_a_tag_that_means_nothing_must_be_meant() {
    let world = World::with_queue("").await;
    let put = async |user: &str, body: &str| world.put(&format!("/v1/users/{user}"), body).await;
    let no_password = put("ann", r#"{"tags":["administrator"]}"#).await;
    assert_eq!(no_password.code(), "422 administrator-without-password");
    world.get("/v1/users/ann").await.expect(404);
    put("ann", r#"{"password":"secret","tags":["administrator"]}"#).await.expect(201);
    put("ann", r#"{"tags":["administrator","monitoring"]}"#).await.expect(200);
    put("cert", r#"{"password_hash":"","tags":["administrator"]}"#).await.expect(201);
    put("cert", r#"{"limits":{"max_connections":1}}"#).await.expect(200);
    put("sensor", "").await.expect(201);
    assert_eq!(
        put("sensor", r#"{"tags":["administrator"]}"#).await.code(),
        "422 administrator-without-password"
    );

    for (tag, detail) in [
        ("admin", "there is no tag `admin`; did you mean `administrator`?"),
        ("Administrator", "there is no tag `Administrator`; did you mean `administrator`?"),
        ("montioring", "there is no tag `montioring`; did you mean `monitoring`?"),
        ("vip", "there is no tag `vip`"),
        ("", "there is no tag ``"),
    ] {
        let tags = json!({"password": "secret", "tags": ["management", tag]}).to_string();
        let reply = put("bob", &tags).await;
        assert_eq!((reply.code().as_str(), &reply.json["detail"]), ("422 tag-unknown", &json!(detail)));
        let reply = world.post("/v1/tokens", &json!({"tags": [tag]}).to_string()).await;
        assert_eq!(reply.code(), "422 tag-unknown", "a token with {tag}");
    }
    world.get("/v1/users/bob").await.expect(404);
}
