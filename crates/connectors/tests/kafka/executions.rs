//! The execution queue between its topics: requested by an event of Kafka, run by workers under a cap, the most urgent first, and what became of each
//! told by an event of Kafka.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use overtake_connectors::{Endpoint, Endpoints, Source, Sources};
use overtake_engine::{Content, Engine, LeaseRequest, LocalEngine, NewMessage, Target};
use overtake_lane::{
    Binding, Destination, ExchangeKind, ExchangeSettings, Headers, Outcome, Scheme, Settings,
};
use rdkafka::ClientConfig;
use rdkafka::message::Message;
use rdkafka::producer::{FutureProducer, FutureRecord};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::world::World;

const CAP: u32 = 2;

async fn declare(engine: &LocalEngine) {
    let executions = Settings { scheme: Scheme::Named, max_active: CAP, paused: true, ..Settings::default() };
    engine.declare_queue("executions", executions).await.expect("declared");
    engine.declare_queue("events", Settings::default()).await.expect("declared");
    let topic = ExchangeSettings::new(ExchangeKind::Topic);
    engine.declare_exchange("executions.done", topic).await.expect("declared");
    let all = Binding::new("executions.done", Destination::Queue("events".into()), "#");
    engine.bind(all).await.expect("bound");
}

/// Requested in no order of urgency.
async fn request(servers: &str) {
    let producer: FutureProducer =
        ClientConfig::new().set("bootstrap.servers", servers).create().expect("a producer");
    let requested = [
        ("a", "background"),
        ("b", "normal"),
        ("c", "critical"),
        ("d", "low"),
        ("e", "high"),
        ("f", "critical"),
    ];
    for (id, priority) in requested {
        let event = json!({"event_type": "execution_requested", "execution_id": id, "priority": priority});
        let event = event.to_string();
        let record = FutureRecord::to("execution-requested").key(id).payload(&event);
        producer.send(record, std::time::Duration::from_secs(10)).await.expect("it is in the topic");
    }
}

/// Runs what it gets; what is called `d` fails. Ends with its work, and says what it began.
async fn work(engine: Arc<LocalEngine>, began: mpsc::Sender<String>, busy: Arc<AtomicUsize>) {
    loop {
        let lease = LeaseRequest { wait_ms: 60_000, ..LeaseRequest::new("executions".into(), 1) };
        for leased in engine.lease(lease).await.expect("leased") {
            let at_once = busy.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(at_once <= CAP as usize, "{at_once} run at once");
            let event: Value = serde_json::from_slice(&leased.content.body).expect("JSON");
            let id = event["execution_id"].as_str().expect("an id").to_owned();
            began.send(id.clone()).await.expect("somebody listens");
            let (kind, outcome) =
                if id == "d" { ("failed", Outcome::Reject) } else { ("completed", Outcome::Ack) };
            let said = json!({"event_type": format!("execution_{kind}"), "execution_id": id}).to_string();
            let done = NewMessage {
                to: Target::Exchange {
                    name: "executions.done".into(),
                    routing_key: kind.into(),
                    more_keys: Vec::new(),
                    mandatory: true,
                },
                key: Some(id),
                content: Content::new(Some("application/json"), &Headers::new(), said.into()),
                ..NewMessage::default()
            };
            busy.fetch_sub(1, Ordering::SeqCst);
            // In one: no crash leaves an execution that ran without its event.
            engine.transact(vec![done], vec![(leased.receipt, outcome)]).await.expect("done");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_requested_in_kafka_runs_under_the_cap_and_its_events_go_back() {
    let world = World::new().await;
    for topic in ["execution-requested", "execution-completed", "execution-failed"] {
        world.kafka.create_topic(topic, 1, 1).expect("a topic");
    }
    declare(&world.engine).await;
    let brokers = world.kafka.bootstrap_servers();
    let source: Source = serde_json::from_value(json!({
        "from": {"kafka": {"brokers": [brokers], "topics": ["execution-requested"], "group": "executions"}},
        "to": {"queue": "executions"},
        "priority": {"body": "/priority"},
    }))
    .expect("a source");
    let endpoint: Endpoint = serde_json::from_value(json!({
        "queue": "events",
        "to": {"kafka": {"brokers": [brokers], "topic": "execution-{routing_key}"}},
    }))
    .expect("an endpoint");
    let (engine, gate, clock) = (world.engine.clone(), Arc::clone(&world.gate), world.clock.clone());
    let sources = Sources::open(engine.clone(), gate, clock.clone(), vec![("requests".to_owned(), source)]);
    let sources = sources.await.expect("it opens");
    let endpoints = Endpoints::open(
        engine.clone(),
        Arc::clone(&world.gate),
        clock,
        vec![("events".to_owned(), endpoint)],
    );
    let endpoints = endpoints.await.expect("it opens");

    request(&brokers).await;
    let all = async || {
        engine.queue("executions").await.expect("there").lanes.iter().map(|lane| lane.ready).sum::<u64>()
    };
    while all().await < 6 {
        tokio::task::yield_now().await;
    }
    let settings = Settings { scheme: Scheme::Named, max_active: CAP, ..Settings::default() };
    engine.declare_queue("executions", settings).await.expect("it runs");
    let (began, mut order) = mpsc::channel(6);
    let busy = Arc::new(AtomicUsize::new(0));
    let worker = tokio::spawn(work(engine.clone(), began, busy));
    let mut started = String::new();
    for _ in 0..6 {
        started += &order.recv().await.expect("six begin");
    }
    assert_eq!(started, "cfebda", "critical, high, normal, low, background; each in the order of requests");
    let completed: BTreeSet<String> = {
        let reader = world.reader("execution-completed");
        let mut keys = BTreeSet::new();
        while keys.len() < 5 {
            let record = reader.next().await;
            let event: Value = serde_json::from_slice(record.payload().expect("a body")).expect("JSON");
            assert_eq!(event["event_type"], "execution_completed");
            keys.insert(String::from_utf8_lossy(record.key().expect("a key")).into_owned());
        }
        keys
    };
    assert_eq!(completed.into_iter().collect::<String>(), "abcef");
    assert_eq!(world.reader("execution-failed").next().await.key(), Some(b"d".as_slice()));
    worker.abort();
    sources.stop(std::time::Duration::from_secs(5)).await;
    endpoints.stop(std::time::Duration::from_secs(5)).await;
}
