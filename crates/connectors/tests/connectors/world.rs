//! A broker on a disk in memory, and its endpoints.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::time::Duration;

use overtake_access::{Desk, Desks, Gate};
use overtake_connectors::{ConnectorView, Endpoint, Endpoints, NotConfigured};
use overtake_engine::{
    Browse, Content, Engine, LeaseRequest, LocalEngine, NewMessage, Options, SystemClock, Target,
};
use overtake_lane::{BrowseOrder, DeadLetterTo, Headers, Settings, Status, Time};
use overtake_store::MemoryDisk;
use serde_json::Value;

/// Nothing here takes longer, or something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct World {
    pub(crate) disk: MemoryDisk,
    pub(crate) engine: Arc<LocalEngine>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) endpoints: Arc<Endpoints>,
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: &str, coming: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, coming).await {
        Ok(there) => there,
        Err(_) => panic!("{what} does not come"),
    }
}

impl World {
    /// With a queue `out`, and a queue `in`.
    pub(crate) async fn new() -> Self {
        let world = Self::open(MemoryDisk::new(7), Vec::new()).await;
        for queue in ["out", "in"] {
            let settings = Settings { dead_letter: DeadLetterTo::Keep, ..Settings::default() };
            world.engine.declare_queue(queue, settings).await.expect("declared");
        }
        world
    }

    pub(crate) async fn open(disk: MemoryDisk, configured: Vec<(String, Endpoint)>) -> Self {
        let options = Options { segment_bytes: 1 << 20, seed: 7, ..Options::default() };
        let engine = LocalEngine::open_on(disk.clone(), options, Arc::new(SystemClock));
        let engine = Arc::new(engine.expect("the store opens"));
        let all: Arc<dyn Engine> = engine.clone();
        let gate = Arc::new(Gate::open(Arc::clone(&all), || Time(0)).await.expect("it opens"));
        let endpoints = Endpoints::open(all, Arc::clone(&gate), Arc::new(SystemClock), configured).await;
        Self { disk, engine, gate, endpoints: endpoints.expect("they open") }
    }

    /// The broker ends, and begins again with what was durable.
    pub(crate) async fn again(self) -> Self {
        let Self { disk, engine, endpoints, .. } = self;
        endpoints.stop(Duration::ZERO).await;
        engine.close();
        disk.clear_hook();
        Self::open(disk, Vec::new()).await
    }

    pub(crate) async fn desk(&self, user: &str) -> Desk {
        let desks = Desks::new(self.engine.clone(), Arc::clone(&self.gate));
        desks.desk(self.gate.on_behalf_of(user), "/").await.expect("a desk")
    }

    pub(crate) async fn try_put(&self, name: &str, json: Value) -> Result<bool, NotConfigured> {
        let endpoint = endpoint(json);
        let desk = self.desk("guest").await;
        self.endpoints.put(&desk, name, endpoint).await.map(|(is_new, _)| is_new)
    }

    /// An endpoint of the queue `out`.
    pub(crate) async fn put(&self, name: &str, mut json: Value) {
        json["queue"] = "out".into();
        self.try_put(name, json).await.expect("it is configured");
    }

    pub(crate) async fn view(&self, name: &str) -> ConnectorView<Endpoint> {
        let desk = self.desk("guest").await;
        self.endpoints.show(&desk, name).await.expect("it is there")
    }

    /// Waits until an endpoint stands so.
    pub(crate) async fn until(&self, name: &str, is: impl Fn(&ConnectorView<Endpoint>) -> bool) {
        let standing = async {
            loop {
                let view = self.view(name).await;
                if is(&view) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(PATIENCE, standing).await.is_err() {
            panic!("{name} stands so: {:?}", self.view(name).await);
        }
    }

    /// `a:5 b:9`: bodies and priorities.
    pub(crate) async fn publish(&self, text: &str) {
        let one = |word: &str| {
            let (body, priority) = word.split_once(':').expect("body:priority");
            let priority: i64 = priority.parse().expect("a priority");
            let content = Content::new(Some("text/plain"), &Headers::new(), body.to_owned().into());
            NewMessage {
                to: Target::Queue("out".into()),
                priority: priority.into(),
                content,
                ..NewMessage::default()
            }
        };
        self.send(text.split_whitespace().map(one).collect()).await;
    }

    pub(crate) async fn send(&self, messages: Vec<NewMessage>) {
        self.engine.publish(messages).await.expect("published");
    }

    /// What is in a queue, in the order in which it goes: bodies, and how they stand.
    pub(crate) async fn sees(&self, queue: &str) -> String {
        let browse = Browse { order: BrowseOrder::Dispatch, limit: 1_000, ..Browse::default() };
        let page = self.engine.browse(queue, browse).await.expect("a page");
        let one = |message: &overtake_engine::BrowsedMessage| {
            let body = String::from_utf8_lossy(&message.content.body).into_owned();
            format!("{body} {:?}", message.message.status).to_lowercase()
        };
        page.messages.iter().map(one).collect::<Vec<_>>().join(" · ")
    }

    /// Waits until nothing is in the queue `out` any more.
    pub(crate) async fn until_empty(&self) {
        self.until_sees("out", "").await;
    }

    /// Waits until [`Self::sees`] says so. An endpoint counts what it was answered before the broker has settled the message.
    pub(crate) async fn until_sees(&self, queue: &str, expected: &str) {
        let seen = async {
            while self.sees(queue).await != expected {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(PATIENCE, seen).await.is_err() {
            let desk = self.desk("guest").await;
            let endpoints = self.endpoints.list(&desk).await;
            panic!("{queue} has {:?}, not {expected:?}: {endpoints:?}", self.sees(queue).await);
        }
    }

    /// What went wrong with the attempts at a message of the queue `out`, once it is dead.
    pub(crate) async fn errors_of_the_dead(&self, body: &str) -> Vec<String> {
        let dead = async {
            loop {
                let browse = Browse { limit: 1_000, ..Browse::default() };
                let page = self.engine.browse("out", browse).await.expect("a page");
                let is_it = |one: &&overtake_engine::BrowsedMessage| {
                    one.message.status == Status::Dead && *one.content.body == *body.as_bytes()
                };
                if let Some(one) = page.messages.iter().find(is_it) {
                    return one.message.attempts.clone();
                }
                tokio::task::yield_now().await;
            }
        };
        let attempts = soon("its death", dead).await.expect("they are kept");
        attempts.iter().map(|one| one.report.error.as_deref().unwrap_or("-").to_owned()).collect()
    }

    /// Leases so many messages of a queue, when they are there.
    pub(crate) async fn takes(&self, queue: &str, count: usize) -> Vec<String> {
        let mut bodies = Vec::new();
        while bodies.len() < count {
            let lease = LeaseRequest { wait_ms: 30_000, ..LeaseRequest::new(queue.into(), 1) };
            let leased = self.engine.lease(lease).await.expect("leased");
            assert!(!leased.is_empty(), "{count} messages come: {bodies:?}");
            bodies.extend(leased.iter().map(|one| String::from_utf8_lossy(&one.content.body).into_owned()));
        }
        bodies
    }
}

pub(crate) fn endpoint(json: Value) -> Endpoint {
    serde_json::from_value(json).expect("an endpoint")
}
