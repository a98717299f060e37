//! A broker on a disk in memory, Kafka as librdkafka's mock cluster within this process, and an endpoint from the queue `q` to the topic `t`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use overtake_access::{Desk, Desks, Gate};
use overtake_connectors::{Endpoint, Endpoints};
use overtake_engine::{Clock, Content, Engine, LocalEngine, NewMessage, Options, SystemClock, Target};
use overtake_lane::{Given, Settings, Time};
use overtake_store::MemoryDisk;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::{Headers, Message, OwnedMessage};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::{Value, json};

/// The clock of the machine, which can be put forward.
#[derive(Default)]
pub(crate) struct Dial(AtomicU64);

impl Dial {
    pub(crate) fn put_forward(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for Dial {
    fn now(&self) -> Time {
        SystemClock.now().after(self.0.load(Ordering::Relaxed))
    }

    fn until(&self, when: Time) -> Option<Duration> {
        Some(Duration::from_millis(when.since(self.now())))
    }
}

pub(crate) struct World {
    pub(crate) kafka: MockCluster<'static, DefaultProducerContext>,
    pub(crate) clock: Arc<Dial>,
    pub(crate) engine: Arc<LocalEngine>,
    pub(crate) gate: Arc<Gate>,
    disk: MemoryDisk,
    /// The endpoint only starts work, with this deadline.
    pub(crate) starts_ms: Option<u64>,
    endpoints: Option<Arc<Endpoints>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let kafka = MockCluster::new(1).expect("a cluster");
        kafka.create_topic("t", 1, 1).expect("a topic");
        let clock = Arc::new(Dial::default());
        let disk = MemoryDisk::new(7);
        let (engine, gate) = open(&disk, &clock).await;
        engine.declare_queue("q", Settings::default()).await.expect("declared");
        Self { kafka, clock, engine, gate, disk, starts_ms: None, endpoints: None }
    }

    /// The broker is killed, and begins again with what it wrote.
    pub(crate) async fn kill(&mut self) {
        self.disk.kill();
        (self.engine, self.gate) = open(&self.disk, &self.clock).await;
    }

    fn endpoint(&self, topic: &str, more: &Value) -> Endpoint {
        let mut kafka = json!({"brokers": [self.kafka.bootstrap_servers()], "topic": topic});
        let (all, more) = (kafka.as_object_mut(), more.as_object());
        all.expect("an object").extend(more.expect("an object").clone());
        let send = json!({"batch": 1_000, "retry": {"initial_ms": 50}, "reconnect": {"initial_ms": 50}});
        let mut endpoint = json!({"queue": "q", "to": {"kafka": kafka}, "send": send});
        if let Some(deadline_ms) = self.starts_ms {
            endpoint["starts"] = json!({"deadline_ms": deadline_ms});
        }
        serde_json::from_value(endpoint).expect("an endpoint")
    }

    /// The endpoint sends from now on.
    pub(crate) async fn send(&mut self, topic: &str, more: Value) {
        let endpoint = ("out".to_owned(), self.endpoint(topic, &more));
        let (engine, gate) = (self.engine.clone(), Arc::clone(&self.gate));
        let opened = Endpoints::open(engine, gate, self.clock.clone(), vec![endpoint]).await;
        self.endpoints = Some(opened.expect("endpoints"));
    }

    /// What becomes of a connection that is tried out.
    pub(crate) async fn try_out(&self, topic: &str) -> Result<Duration, String> {
        let endpoints =
            Endpoints::open(self.engine.clone(), Arc::clone(&self.gate), self.clock.clone(), Vec::new())
                .await;
        let endpoint = self.endpoint(topic, &json!({}));
        let endpoints = endpoints.expect("endpoints");
        endpoints.test(&self.desk().await, "draft", Some(endpoint)).await.expect("tried")
    }

    /// Waits for something to go wrong, and says what.
    pub(crate) async fn trouble(&self) -> String {
        let (desk, endpoints) = (self.desk().await, self.endpoints.as_ref().expect("it sends"));
        loop {
            let view = endpoints.show(&desk, "out").await.expect("it is there");
            if let Some((_, why)) = view.work.last_error {
                return why.to_string();
            }
            tokio::task::yield_now().await;
        }
    }

    async fn desk(&self) -> Desk {
        let desks = Desks::new(self.engine.clone(), Arc::clone(&self.gate));
        desks.desk(self.gate.on_behalf_of("guest"), "/").await.expect("a desk")
    }

    pub(crate) async fn publish(&self, priority: i64, body: &str) {
        self.publish_as(NewMessage { priority: Given::Number(priority), ..text(body) }).await;
    }

    pub(crate) async fn publish_as(&self, message: NewMessage) {
        self.engine.publish(vec![message]).await.expect("published");
    }

    /// What is in a topic, from its beginning, and what comes.
    pub(crate) fn reader(&self, topic: &str) -> Reader {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.kafka.bootstrap_servers());
        config.set("group.id", "reader");
        config.set("fetch.wait.max.ms", "10");
        let consumer: StreamConsumer = config.create().expect("a consumer");
        let mut places = TopicPartitionList::new();
        places.add_partition_offset(topic, 0, Offset::Beginning).expect("a place");
        consumer.assign(&places).expect("assigned");
        Reader(consumer)
    }
}

async fn open(disk: &MemoryDisk, clock: &Arc<Dial>) -> (Arc<LocalEngine>, Arc<Gate>) {
    let options = Options { segment_bytes: 1 << 20, seed: 7, ..Options::default() };
    let engine = LocalEngine::open_on(disk.clone(), options, Arc::clone(clock) as Arc<dyn Clock>);
    let engine = Arc::new(engine.expect("the store opens"));
    let gate = Gate::open(engine.clone(), || SystemClock.now()).await.expect("it opens");
    (engine, Arc::new(gate))
}

pub(crate) fn text(body: &str) -> NewMessage {
    let content = Content { body: body.to_owned().into(), ..Content::default() };
    NewMessage { to: Target::Queue("q".into()), content, ..NewMessage::default() }
}

pub(crate) struct Reader(StreamConsumer);

impl Reader {
    pub(crate) async fn next(&self) -> OwnedMessage {
        loop {
            // While the brokers are down it says so.
            if let Ok(record) = self.0.recv().await {
                return record.detach();
            }
        }
    }

    pub(crate) async fn body(&self) -> String {
        String::from_utf8_lossy(self.next().await.payload().unwrap_or_default()).into_owned()
    }

    pub(crate) async fn bodies(&self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        while all.len() < count {
            all.push(self.body().await);
        }
        all
    }
}

/// What a header of a record says.
pub(crate) fn header<'a>(record: &'a OwnedMessage, name: &str) -> Option<&'a str> {
    let header = record.headers()?.iter().find(|header| header.key == name)?;
    std::str::from_utf8(header.value?).ok()
}
