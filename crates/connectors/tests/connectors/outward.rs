//! A broker on a disk in memory with a queue `q` and one endpoint, `e`, that sends it; and perhaps a source into a queue `in`.

use std::sync::Arc;
use std::time::Duration;

use overtake_access::{Desk, Desks, Gate};
use overtake_connectors::{ConnectorView, Endpoint, Endpoints, IntakeState, Source, Sources};
use overtake_engine::{
    Content, Engine, LeaseRequest, LeasedMessage, LocalEngine, NewMessage, Options, SystemClock, Target,
};
use overtake_lane::{Given, Headers, Settings, Time};
use overtake_store::MemoryDisk;
use serde_json::{Value, json};

/// So long nothing takes.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Outward {
    pub(crate) engine: Arc<LocalEngine>,
    pub(crate) endpoints: Arc<Endpoints>,
    gate: Arc<Gate>,
    desk: Desk,
}

impl Outward {
    /// An endpoint that sends to this receiver, and tries again soon.
    pub(crate) async fn open(to: Value) -> Self {
        let options = Options { segment_bytes: 1 << 20, seed: 7, ..Options::default() };
        let engine = LocalEngine::open_on(MemoryDisk::new(7), options, Arc::new(SystemClock));
        let engine = Arc::new(engine.expect("the store opens"));
        engine.declare_queue("q", Settings::default()).await.expect("declared");
        let all: Arc<dyn Engine> = engine.clone();
        let gate = Arc::new(Gate::open(Arc::clone(&all), || Time(0)).await.expect("it opens"));
        let desks = Desks::new(Arc::clone(&all), Arc::clone(&gate));
        let desk = desks.desk(gate.on_behalf_of("guest"), "/").await.expect("a desk");
        let soon = json!({"initial_ms": 20, "multiplier": 1, "max_ms": 20});
        let endpoint = json!({"queue": "q", "to": to, "send": {"reconnect": soon, "retry": soon}});
        let endpoint: Endpoint = serde_json::from_value(endpoint).expect("an endpoint");
        let configured = vec![("e".to_owned(), endpoint)];
        let endpoints = Endpoints::open(all, Arc::clone(&gate), Arc::new(SystemClock), configured).await;
        let endpoints = endpoints.unwrap_or_else(|(name, not)| panic!("{name}: {not}"));
        Self { engine, endpoints, gate, desk }
    }

    /// A source from there into the queue `in`, once it takes in what comes.
    pub(crate) async fn source(&self, from: Value) -> Arc<Sources> {
        self.engine.declare_queue("in", Settings::default()).await.expect("declared");
        let json = json!({"from": from, "to": {"queue": "in"}});
        let source: Source = serde_json::from_value(json).expect("a source");
        let engine: Arc<dyn Engine> = self.engine.clone();
        let configured = vec![("s".to_owned(), source)];
        let all = Sources::open(engine, Arc::clone(&self.gate), Arc::new(SystemClock), configured).await;
        let all = all.expect("they open");
        let running = async {
            let mut often = tokio::time::interval(Duration::from_millis(10));
            while all.show(&self.desk, "s").await.expect("it is there").work.state != IntakeState::Running {
                often.tick().await;
            }
        };
        tokio::time::timeout(PATIENCE, running).await.expect("it takes in what comes");
        all
    }

    /// What comes into the queue `in` next.
    pub(crate) async fn comes_in(&self) -> LeasedMessage {
        let lease = LeaseRequest { wait_ms: 30_000, ..LeaseRequest::new("in".into(), 1) };
        self.engine.lease(lease).await.expect("leased").pop().expect("one comes")
    }

    pub(crate) async fn pause(&self, is_paused: bool) {
        self.endpoints.pause(&self.desk, "e", is_paused).await.expect("it is there");
    }

    pub(crate) async fn view(&self) -> ConnectorView<Endpoint> {
        self.endpoints.show(&self.desk, "e").await.expect("it is there")
    }

    /// Why its receiver cannot be connected to.
    pub(crate) async fn trouble(&self) -> String {
        let tested = self.endpoints.test(&self.desk, "e", None).await.expect("it is there");
        tested.expect_err("there is trouble")
    }

    pub(crate) async fn publish(&self, message: NewMessage) {
        self.engine.publish(vec![message]).await.expect("published");
    }

    pub(crate) async fn publish_all(&self, ids: impl Iterator<Item = u32>) {
        let all = ids.map(|id| message(&id.to_string(), 5)).collect();
        self.engine.publish(all).await.expect("published");
    }

    /// Until the endpoint is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&ConnectorView<Endpoint>) -> bool) {
        let waiting = async {
            let mut often = tokio::time::interval(Duration::from_millis(10));
            while !is_so(&self.view().await) {
                often.tick().await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("not {what}: {:?}", self.view().await.work);
        }
    }

    pub(crate) async fn until_empty(&self) {
        let waiting = async {
            let mut often = tokio::time::interval(Duration::from_millis(10));
            while self.waits().await > 0 {
                often.tick().await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("not all is settled: {:?}", self.view().await.work);
        }
    }

    /// How many messages are in the queue, leased ones among them.
    pub(crate) async fn waits(&self) -> usize {
        let browse = overtake_engine::Browse { limit: 1_000, ..overtake_engine::Browse::default() };
        self.engine.browse("q", browse).await.expect("a page").messages.len()
    }
}

/// A message whose body is its id.
pub(crate) fn message(id: &str, priority: i64) -> NewMessage {
    let content = Content::new(None, &Headers::new(), id.to_owned().into());
    NewMessage {
        to: Target::Queue("q".into()),
        priority: Given::Number(priority),
        id: Some(id.to_owned()),
        content,
        ..NewMessage::default()
    }
}
