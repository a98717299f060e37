//! A broker in memory, and a tool that speaks to its router without sockets.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use overtake_access::{Account, Change, Desks, Gate, Hashing, PasswordHash, Peer, Permission};
use overtake_engine::{Engine, LocalEngine, ManualClock, Options};
use overtake_lane::Time;
use overtake_management::{Caller, Connections, Listener, Looks, ManagementOptions, Question};
use overtake_store::MemoryDisk;
use serde_json::Value;
use tower::ServiceExt;

/// RabbitMQ's example of a hash: of the password `test12`.
pub(crate) const TEST12: &str = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";

pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) engine: Arc<LocalEngine>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) desks: Desks,
    connections: Connections,
    clock: Arc<ManualClock>,
}

/// When each world begins: 2026-11-27T16:00:00Z.
const BEGINNING: Time = Time(1_795_795_200_000);

thread_local! {
    /// The time of the world that was begun last on this thread; its handlers run here.
    static NOW: Cell<Time> = const { Cell::new(BEGINNING) };
}

fn now() -> Time {
    NOW.get()
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl World {
    /// With `guest`, who may do everything.
    pub(crate) async fn new() -> Self {
        Self::sampled_every(ManagementOptions::default().sampled_every).await
    }

    /// One whose counters are sampled so often, once they are watched.
    pub(crate) async fn sampled_every(sampled_every: Duration) -> Self {
        let small = Options { segment_bytes: 1 << 16, ..Options::default() };
        let clock = Arc::new(ManualClock::new(BEGINNING));
        let engine = LocalEngine::open_on(MemoryDisk::new(1), small, clock.clone()).expect("a store");
        let engine = Arc::new(engine);
        let dynamic: Arc<dyn Engine> = engine.clone();
        NOW.set(BEGINNING);
        let gate = Gate::open(Arc::clone(&dynamic), now).await.expect("a gate");
        let gate = Arc::new(gate);
        let options = ManagementOptions {
            node: "overtake@here".to_owned(),
            max_request_bytes: 1 << 16,
            max_message_bytes: 1 << 10,
            listeners: vec![Listener { protocol: "amqp", address: ([127, 0, 0, 1], 5_672).into() }],
            clock: now,
            sampled_every,
            ..ManagementOptions::default()
        };
        let desks = Desks::new(dynamic, Arc::clone(&gate));
        let connections = Connections::default();
        let router = overtake_management::router(desks.clone(), connections.clone(), options);
        Self { router, engine, gate, desks, connections, clock }
    }

    /// Has guest connect over AMQP. The connection looks as this says each time somebody looks at it.
    pub(crate) fn connect(&self, mut look: impl FnMut() -> Looks + Send + 'static) {
        let address = |port| ([127, 0, 0, 1], port).into();
        let (peer, local) = (address(40_000), address(5_672));
        let caller = Caller { peer, local, is_secure: false, connected_at: BEGINNING };
        let mut seat = self.connections.enter(caller);
        tokio::spawn(async move {
            while let Question::Look(tell) = seat.question().await {
                // Whoever asked may have gone.
                let _ = tell.send(look());
            }
        });
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, ms: u64) {
        NOW.set(NOW.get().after(ms));
        self.clock.advance(ms);
    }

    /// With somebody more, whose password is `test12`, with rights to all names in `/` or to none.
    pub(crate) async fn with_user(self, name: &str, tags: &str, rights: &str) -> Self {
        let password = PasswordHash::imported(Hashing::Sha256, TEST12).expect("a hash");
        let tags = tags.split_whitespace().collect();
        let account = Account { password: Some(password), tags, ..Account::default() };
        let mut changes = vec![Change::PutUser { name: name.into(), account }];
        if !rights.is_empty() {
            let permission = Permission::new(rights, rights, rights).expect("patterns");
            changes.push(Change::SetPermission { user: name.into(), vhost: "/".into(), permission });
        }
        self.gate.change(None, changes).await.expect("it can be made");
        self
    }

    pub(crate) async fn send(&self, mut request: Request<Body>) -> Reply {
        request.extensions_mut().insert(Peer::at(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let response = self.router.clone().oneshot(request).await.expect("a router does not fail");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Reply { status: parts.status, headers: parts.headers, text, json }
    }

    /// As somebody with a password, or as nobody.
    pub(crate) async fn ask_as(
        &self,
        who: Option<(&str, &str)>,
        method: &str,
        path: &str,
        body: &str,
    ) -> Reply {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = Request::builder().method(method).uri(path);
        if let Some((user, password)) = who {
            let pair = STANDARD.encode(format!("{user}:{password}"));
            request = request.header(header::AUTHORIZATION, format!("Basic {pair}"));
        }
        self.send(request.body(Body::from(body.to_owned())).expect("a request")).await
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        self.ask_as(Some(("guest", "guest")), method, path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "").await
    }

    pub(crate) async fn put(&self, path: &str, body: &str) -> Reply {
        self.ask("PUT", path, body).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Reply {
        self.ask("POST", path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.ask("DELETE", path, "").await
    }

    /// A queue of these arguments.
    pub(crate) async fn queue(&self, name: &str, arguments: &str) {
        let body = format!(r#"{{"durable":true,"arguments":{arguments}}}"#);
        self.put(&format!("/api/queues/%2F/{name}"), &body).await.expect(201);
    }

    /// Publishes each word `body:priority` (or `body`) to a queue.
    pub(crate) async fn publish(&self, queue: &str, words: &str) {
        for word in words.split_whitespace() {
            let (body, priority) = word.split_once(':').unwrap_or((word, "0"));
            let message = format!(
                r#"{{"properties":{{"priority":{priority}}},"routing_key":"{queue}","payload":"{body}"}}"#
            );
            let reply = self.post("/api/exchanges/%2F/amq.default/publish", &message).await.expect(200);
            assert_eq!(reply.json["routed"], true);
        }
    }
}

impl Reply {
    /// The same reply, if it has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }

    /// One field of every item, in order.
    pub(crate) fn all(&self, field: &str) -> String {
        let items = self.json.as_array().or_else(|| self.json["items"].as_array()).expect("a list");
        let shown =
            items.iter().map(|item| item[field].as_str().map_or_else(|| item[field].to_string(), Into::into));
        shown.collect::<Vec<String>>().join(" ")
    }

    pub(crate) fn reason(&self) -> &str {
        self.json["reason"].as_str().unwrap_or_default()
    }
}
