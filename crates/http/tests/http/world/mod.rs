//! A broker in a directory of its own, and a client that speaks to its router without sockets.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt;
use overtake_access::{Desks, Gate, Peer};
use overtake_categories::Categories;
use overtake_connectors::{Endpoints, Sources};
use overtake_engine::{Clock, Engine, LocalEngine, Options, SystemClock};
use overtake_http::{HttpOptions, Services};
use overtake_lane::PriorityLanes;
use overtake_overview::Overview;
use overtake_schedules::Schedules;
use overtake_store::MemoryDisk;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tower::ServiceExt;

pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) options: HttpOptions,
    pub(crate) engine: Arc<LocalEngine>,
    /// As long as this is there.
    _dir: Option<TempDir>,
    looking: Option<AbortHandle>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.looking.as_ref().inspect(|looking| looking.abort());
    }
}

/// The gate is opened on a thread of its own: worlds are made where nobody waits. Schedules are not run.
fn desks(engine: &Arc<LocalEngine>) -> (Desks, Services) {
    let engine: Arc<dyn Engine> = Arc::clone(engine) as _;
    let opening = Arc::clone(&engine);
    let opened = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let gate = Gate::open(Arc::clone(&opening), || SystemClock.now()).await.expect("it opens");
            let gate = Arc::new(gate);
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let all = (Arc::clone(&opening), Arc::clone(&gate), Arc::clone(&clock));
            let endpoints = Endpoints::open(all.0, all.1, all.2, Vec::new()).await.expect("they open");
            let all = (Arc::clone(&opening), Arc::clone(&gate), Arc::clone(&clock));
            let sources = Sources::open(all.0, all.1, all.2, Vec::new()).await.expect("they open");
            let overview = Arc::new(Overview::new(Arc::clone(&opening), Arc::clone(&clock)));
            let schedules = Schedules::open(opening, Arc::clone(&gate), clock).await.expect("they open");
            let categories = Arc::new(Categories::new(PriorityLanes::enabled()));
            (gate, Services { categories, schedules, endpoints, sources, overview })
        })
    });
    let (gate, services) = opened.join().expect("it does not panic");
    (Desks::new(engine, gate), services)
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
    pub(crate) fn new() -> Self {
        Self::with(HttpOptions {
            max_message_bytes: 1 << 16,
            max_request_bytes: 1 << 18,
            ..HttpOptions::default()
        })
    }

    pub(crate) fn with(options: HttpOptions) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let small = Options { segment_bytes: 1 << 20, ..Options::default() };
        let engine = LocalEngine::open_with(dir.path(), small, Arc::new(SystemClock)).expect("a store");
        Self::over(engine, Some(dir), options)
    }

    /// On a disk to which faults can happen.
    pub(crate) fn on(disk: &MemoryDisk) -> Self {
        let small = Options { segment_bytes: 1 << 16, ..Options::default() };
        let engine = LocalEngine::open_on(disk.clone(), small, Arc::new(SystemClock)).expect("a store");
        Self::over(engine, None, HttpOptions::default())
    }

    fn over(engine: LocalEngine, dir: Option<TempDir>, options: HttpOptions) -> Self {
        let engine = Arc::new(engine);
        let (desks, services) = desks(&engine);
        let counted = Arc::clone(&engine) as Arc<dyn Engine>;
        options.telemetry.add(Arc::new(overtake_telemetry::Broker::new(counted, &options.version)));
        let overview = Arc::clone(&services.overview);
        let router = overtake_http::router(desks, services, options.clone());
        // Where worlds are made outside of a runtime nobody asks for the overview.
        let looking = Handle::try_current().ok();
        let looking = looking.map(|handle| handle.spawn(async move { overview.run().await }).abort_handle());
        Self { router, options, engine, _dir: dir, looking }
    }

    /// A world with a queue `q` of these settings.
    pub(crate) async fn with_queue(settings: &str) -> Self {
        let world = Self::new();
        world.put("/v1/queues/q", settings).await.expect(201);
        world
    }

    /// As the user guest, from this machine, unless the request says otherwise.
    pub(crate) async fn begin(&self, mut request: Request<Body>) -> Response {
        let guest = || HeaderValue::from_static(GUEST);
        request.headers_mut().entry(header::AUTHORIZATION).or_insert_with(guest);
        self.begin_as_it_is(request).await
    }

    /// From this machine, unless the request says otherwise.
    pub(crate) async fn begin_as_it_is(&self, mut request: Request<Body>) -> Response {
        request.extensions_mut().get_or_insert(HERE);
        self.router.clone().oneshot(request).await.expect("a router does not fail")
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        Reply::of(self.begin(request).await).await
    }

    /// With this header `Authorization`, or none.
    pub(crate) async fn ask_as(&self, who: Option<&str>, method: &str, path: &str, body: &str) -> Reply {
        let mut request = Self::request(method, path, body);
        request.headers_mut().extend(who.map(|who| (header::AUTHORIZATION, who.parse().expect("a header"))));
        Reply::of(self.begin_as_it_is(request).await).await
    }

    fn request(method: &str, path: &str, body: &str) -> Request<Body> {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = Request::builder().method(method).uri(path);
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.body(Body::from(body.to_owned())).expect("a request")
    }
}

/// As the user guest.
pub(crate) const GUEST: &str = "Basic Z3Vlc3Q6Z3Vlc3Q=";
/// From this machine.
pub(crate) const HERE: Peer = Peer::at(IpAddr::V4(Ipv4Addr::LOCALHOST));

impl Reply {
    async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self { status: parts.status, headers: parts.headers, text, json }
    }
}

impl World {
    /// `body`: JSON, or empty for none.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        self.send(Self::request(method, path, body)).await
    }

    pub(crate) async fn raw(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut request = Request::builder().method(Method::POST).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body.to_vec())).expect("a request")).await
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

    /// Publishes each word `body:priority` (or `body`) to `q`.
    pub(crate) async fn publish(&self, words: &str) {
        for word in words.split_whitespace() {
            let (body, priority) = word.split_once(':').unwrap_or((word, ""));
            let priority = if priority.is_empty() { "null".to_owned() } else { priority.to_owned() };
            let message = format!(r#"{{"id":"{body}","body":"{body}","priority":{priority}}}"#);
            self.post("/v1/queues/q/messages", &message).await.expect(201);
        }
    }

    /// Leases up to `max` from `q`: the bodies in order, and the receipts.
    pub(crate) async fn lease(&self, max: u32) -> (String, Vec<String>) {
        let reply = self.post("/v1/queues/q/leases", &format!(r#"{{"max":{max}}}"#)).await.expect(200);
        (reply.bodies(), reply.all("receipt"))
    }
}

impl Reply {
    /// The same reply, if it has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }

    /// The problem's code; says the status with it.
    pub(crate) fn code(&self) -> String {
        format!("{} {}", self.status.as_u16(), self.json["code"].as_str().unwrap_or("-"))
    }

    /// One field of every message, in order.
    pub(crate) fn all(&self, field: &str) -> Vec<String> {
        let messages = self.json["messages"].as_array().expect("messages");
        messages
            .iter()
            .map(|message| message[field].as_str().map_or_else(|| message[field].to_string(), Into::into))
            .collect()
    }

    pub(crate) fn bodies(&self) -> String {
        self.all("body").join(" ")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}
