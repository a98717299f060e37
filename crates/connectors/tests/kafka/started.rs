//! An execution queue that only starts work: what ends it comes back as events, late, twice or out of order, while a worker and the broker are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use overtake_connectors::{Endpoint, Endpoints, Source, Sources};
use overtake_engine::{Browse, Clock, Engine, NewMessage};
use overtake_lane::{Backoff, Ending, Scheme, Settings, Status};
use rdkafka::ClientConfig;
use rdkafka::message::Message;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use rdkafka::util::Timeout;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::world::{Reader, World, header, text};

const CAP: usize = 2;
const ALL: usize = 200;
const DEADLINE_MS: u64 = 600_000;

/// The broker's side of it.
struct Connected {
    sources: Arc<Sources>,
    endpoints: Arc<Endpoints>,
}

async fn connect(world: &World) -> Connected {
    let brokers = [world.kafka.bootstrap_servers()];
    let quick =
        json!({"session.timeout.ms": "4000", "heartbeat.interval.ms": "100", "fetch.wait.max.ms": "10"});
    let from = |topics: Value, group: &str| json!({"kafka": {"brokers": brokers, "topics": topics, "group": group, "properties": quick}});
    let requested = json!({
        "from": from(json!(["execution-requested"]), "requests"),
        "to": {"queue": "executions"},
        "priority": {"body": "/priority"},
        "id": {"body": "/execution_id"},
        "user_id": {"body": "/user_id"},
    });
    let ended = json!({
        "from": from(json!(["execution-completed", "execution-failed", "execution-timeout", "execution-running"]), "ends"),
        "to": {"settle": {
            "queue": "executions",
            "events": {
                "execution-completed": "completed",
                "execution-failed": "failed",
                "execution-timeout": "timeout",
                "execution-running": "extend",
            },
            "extend_ms": 2 * DEADLINE_MS,
            "attempt": {"body": "/attempt"},
            "error": {"body": "/error"},
        }},
        "id": {"body": "/execution_id"},
    });
    let source = |name: &str, definition: Value| {
        (name.to_owned(), serde_json::from_value::<Source>(definition).expect("a source"))
    };
    let started: Endpoint = serde_json::from_value(json!({
        "queue": "executions",
        "to": {"kafka": {"brokers": brokers, "topic": "execution-started", "key": "id"}},
        "starts": {"deadline_ms": DEADLINE_MS},
    }))
    .expect("an endpoint");
    let (engine, gate, clock) = (world.engine.clone(), Arc::clone(&world.gate), world.clock.clone());
    let sources = vec![source("requests", requested), source("ends", ended)];
    let sources = Sources::open(engine.clone(), Arc::clone(&gate), clock.clone(), sources).await;
    let endpoints = Endpoints::open(engine, gate, clock, vec![("starts".to_owned(), started)]).await;
    Connected { sources: sources.expect("it opens"), endpoints: endpoints.expect("it opens") }
}

/// What is out: the attempt, by the id of the execution.
type Out = Arc<Mutex<BTreeMap<String, String>>>;

/// The worker that stands in.
struct Worker {
    producer: FutureProducer,
    /// What was started and not begun here.
    started: mpsc::Receiver<(String, String)>,
    /// What was started and has not ended, whether begun here or not.
    out: Out,
    running: BTreeMap<String, String>,
    ended: BTreeSet<String>,
}

/// Sees at once whatever is started.
async fn watch(records: Reader, out: Out, tell: mpsc::Sender<(String, String)>) {
    loop {
        let record = records.next().await;
        let id = String::from_utf8_lossy(record.key().expect("a key")).into_owned();
        let attempt = header(&record, "attempt").expect("an attempt").to_owned();
        {
            let mut out = out.lock().expect("nobody panicked");
            assert!(out.insert(id.clone(), attempt.clone()).is_none(), "{id} is started twice");
            assert!(out.len() <= CAP, "{out:?} are out at once");
        }
        tell.send((id, attempt)).await.expect("somebody listens");
    }
}

impl Worker {
    /// Begins the next execution.
    async fn begin(&mut self) -> (String, String) {
        let (id, attempt) = self.started.recv().await.expect("what is started is well");
        assert!(!self.ended.contains(&id), "{id} has ended, and is started again");
        self.running.insert(id.clone(), attempt.clone());
        (id, attempt)
    }

    /// It runs no more. Answers its attempt.
    fn stop(&mut self, id: &str) -> String {
        self.out.lock().expect("nobody panicked").remove(id);
        self.running.remove(id).expect("it runs")
    }

    async fn send(&self, topic: &str, id: &str, event: &Value) {
        send(&self.producer, topic, id, event).await;
    }

    /// Ends an execution, with an event that comes so often.
    async fn end(&mut self, id: &str, kind: &str, times: usize) {
        let attempt = self.stop(id);
        self.ended.insert(id.to_owned());
        let event = json!({"execution_id": id, "attempt": attempt, "error": "exit 1"});
        for _ in 0..times {
            self.send(&format!("execution-{kind}"), id, &event).await;
        }
    }
}

fn producer(world: &World) -> FutureProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", world.kafka.bootstrap_servers()).create().expect("a producer")
}

async fn send(producer: &FutureProducer, topic: &str, id: &str, event: &Value) {
    let event = event.to_string();
    let record = FutureRecord::to(topic).key(id).payload(&event);
    producer.send(record, Timeout::Never).await.expect("it is in the topic");
}

/// Topics and queues. What failed waits so long for its next attempt.
async fn declare(world: &World, wait_ms: u64) {
    for topic in ["requested", "started", "running", "completed", "failed", "timeout"] {
        world.kafka.create_topic(&format!("execution-{topic}"), 1, 1).expect("a topic");
    }
    world.engine.declare_queue("executions.history", Settings::default()).await.expect("declared");
    let executions = Settings {
        scheme: Scheme::Named,
        max_active: CAP as u32,
        history: Some("executions.history".to_owned()),
        delivery_limit: 3,
        backoff: Backoff { initial_ms: wait_ms, ..Backoff::default() },
        ..Settings::default()
    };
    world.engine.declare_queue("executions", executions).await.expect("declared");
}

/// How many executions are leased.
async fn leased(world: &World) -> usize {
    let view = world.engine.queue("executions").await.expect("there");
    view.lanes.iter().map(|lane| lane.leased).sum::<u64>() as usize
}

#[tokio::test]
async fn what_kafka_did_not_take_is_started_again_and_what_it_took_stays_leased() {
    let mut world = World::new().await;
    world.starts_ms = Some(DEADLINE_MS);
    world.kafka.request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_POLICY_VIOLATION]);
    world.publish_as(NewMessage { id: Some("a".to_owned()), ..text("a") }).await;
    world.send("t", json!({})).await;
    let reader = world.reader("t");
    assert_eq!(header(&reader.next().await, "attempt"), Some("2"));
    // One lane, one connection: the next is sent after what became of the first is known.
    world.publish(1, "b").await;
    assert_eq!(reader.body().await, "b");
    assert_eq!(world.engine.message("q", "a").await.expect("there").message.status, Status::Leased);
}

#[tokio::test]
async fn what_may_be_in_kafka_is_not_started_again_before_its_deadline() {
    let mut world = World::new().await;
    world.starts_ms = Some(DEADLINE_MS);
    world.send("t", json!({"properties": {"message.timeout.ms": "2000"}})).await;
    let reader = world.reader("t");
    world.publish(1, "before").await;
    assert_eq!(reader.body().await, "before");
    world.kafka.broker_down(-1).expect("down");
    world.publish_as(NewMessage { id: Some("a".to_owned()), ..text("a") }).await;
    world.trouble().await;
    world.kafka.broker_up(-1).expect("up");
    world.publish(1, "after").await;
    assert_eq!(reader.body().await, "after");
    assert_eq!(world.engine.message("q", "a").await.expect("there").message.status, Status::Leased);
    world.clock.put_forward(DEADLINE_MS);
    // The broker sees the time when it is asked for something.
    world.publish(1, "later").await;
    let mut all = reader.bodies(4).await;
    all.sort();
    assert_eq!(all, ["a", "after", "before", "later"], "no event has ended any");
}

/// In how many ms the lease of an execution ends.
async fn ends_in(world: &World, id: &str) -> u64 {
    let found = world.engine.message("executions", id).await.expect("it is leased");
    found.message.deadline.expect("it has an end").since(world.clock.now())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_after_the_deadline_ends_what_waits_and_a_completed_one_also_what_runs_again() {
    let world = World::new().await;
    declare(&world, DEADLINE_MS).await;
    let (producer, started) = (producer(&world), world.reader("execution-started"));
    let connected = connect(&world).await;
    for (id, kind, runs_again, ending) in [
        ("e-0", "timeout", false, Ending::Timeout),
        ("e-1", "failed", false, Ending::Failed),
        ("e-2", "completed", false, Ending::Completed),
        ("e-3", "completed", true, Ending::Completed),
    ] {
        send(&producer, "execution-requested", id, &json!({"execution_id": id})).await;
        let record = started.next().await;
        assert_eq!((record.key(), header(&record, "attempt")), (Some(id.as_bytes()), Some("1")));
        world.clock.put_forward(DEADLINE_MS);
        // The broker sees the time when it is asked for something.
        assert_eq!(leased(&world).await, 0, "the deadline frees the slot");
        if runs_again {
            world.clock.put_forward(DEADLINE_MS);
            leased(&world).await;
            assert_eq!(header(&started.next().await, "attempt"), Some("2"));
        }
        send(&producer, &format!("execution-{kind}"), id, &json!({"execution_id": id, "attempt": 1})).await;
        while world.engine.message("executions", id).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert_eq!(leased(&world).await, 0);
        let found = world.engine.message("executions.history", id).await.expect("it is in the history");
        let record = found.message.record.expect("a record");
        assert_eq!((record.ending, record.attempts), (ending, 1 + u32::from(runs_again)), "{id}");
        let reason = (kind == "timeout").then_some(overtake_lane::DeathReason::Timeout);
        let died =
            found.message.deaths.as_ref().map(|deaths| deaths.last().reason).filter(|_| kind != "failed");
        assert_eq!(died, reason, "{id}");
    }
    let Connected { sources, endpoints } = connected;
    sources.stop(Duration::from_secs(5)).await;
    endpoints.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_started_holds_its_slot_until_its_event_and_ends_once_whoever_is_killed() {
    let mut world = World::new().await;
    declare(&world, 0).await;
    let (tell, started) = mpsc::channel(2 * ALL);
    let out = Out::default();
    let watched = tokio::spawn(watch(world.reader("execution-started"), Arc::clone(&out), tell));
    let mut worker =
        Worker { producer: producer(&world), started, out, running: BTreeMap::new(), ended: BTreeSet::new() };
    for at in 0..ALL {
        let id = format!("e-{at}");
        let request = json!({"execution_id": id, "priority": "high", "user_id": format!("u-{}", at % 3)});
        worker.send("execution-requested", &id, &request).await;
    }
    let mut connected = connect(&world).await;
    let (mut killed, mut failed) = (BTreeSet::new(), BTreeSet::new());
    while worker.ended.len() < ALL {
        while worker.running.len() < CAP.min(ALL - worker.ended.len()) {
            worker.begin().await;
        }
        let id = worker.running.first_key_value().expect("some run").0.clone();
        // An event of an execution that has ended long ago comes late.
        if let Some(before) = worker.ended.iter().nth(worker.ended.len() / 2) {
            worker.send("execution-failed", before, &json!({"execution_id": before})).await;
        }
        match worker.ended.len() {
            // The broker is killed, and all that runs goes on.
            60 | 130 if killed.insert(format!("broker {}", worker.ended.len())) => {
                world.kill().await;
                connected = connect(&world).await;
                assert_eq!(leased(&world).await, CAP, "what was started is still leased");
            }
            // The worker is killed with one execution. The other one goes on, says so, and outlives the deadline.
            20 | 90 | 150 if killed.insert(id.clone()) => {
                let attempt = worker.stop(&id);
                let other = worker.running.first_key_value().expect("another one runs").0.clone();
                worker.send("execution-running", &other, &json!({"execution_id": other})).await;
                while ends_in(&world, &other).await <= DEADLINE_MS {
                    tokio::task::yield_now().await;
                }
                world.clock.put_forward(DEADLINE_MS);
                // The broker sees the time when it is asked for something.
                leased(&world).await;
                assert_eq!(worker.begin().await, (id.clone(), "2".to_owned()));
                // That the attempt that was killed failed comes while the next one runs.
                let late = json!({"execution_id": id, "attempt": attempt});
                worker.send("execution-failed", &id, &late).await;
                // Events of one topic are heard in their order.
                failed.insert(other.clone());
                worker.end(&other, "failed", 1).await;
                while world.engine.message("executions", &other).await.is_ok() {
                    tokio::task::yield_now().await;
                }
                let found = world.engine.message("executions", &id).await.expect("the next attempt goes on");
                assert_eq!((found.message.status, found.message.count), (Status::Leased, 2));
            }
            at if at % 17 == 0 => {
                failed.insert(id.clone());
                worker.end(&id, "failed", 2).await;
            }
            at => worker.end(&id, "completed", 1 + at % 3).await,
        }
    }
    while leased(&world).await > 0 {
        tokio::task::yield_now().await;
    }
    let mut past = BTreeMap::new();
    let page = Browse { limit: ALL, ..Browse::default() };
    for found in world.engine.browse("executions.history", page).await.expect("a page").messages {
        let record = found.message.record.expect("a record");
        let user = found.content.user_id().expect("whose it is").to_owned();
        past.insert(found.message.id, (record.ending, record.attempts, user));
    }
    assert_eq!(past.len(), ALL);
    for (id, (ending, attempts, user)) in past {
        let number: usize = id.strip_prefix("e-").expect("an id").parse().expect("a number");
        assert_eq!(user, format!("u-{}", number % 3));
        assert_eq!(ending == Ending::Failed, failed.contains(&id), "{id}");
        assert_eq!(attempts, if killed.contains(&id) { 2 } else { 1 }, "{id}");
    }
    watched.abort();
    let Connected { sources, endpoints } = connected;
    sources.stop(Duration::from_secs(5)).await;
    endpoints.stop(Duration::from_secs(5)).await;
}
