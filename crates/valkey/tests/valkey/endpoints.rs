//! Endpoints of several brokers: all know them, each works at one of them.

use std::sync::Arc;
use std::time::Duration;

use overtake_access::{Desk, Desks, Gate};
use overtake_connectors::{ConnectorView, Endpoint, Endpoints};
use overtake_engine::{Content, Engine, Leader, NewMessage, SystemClock, Target};
use overtake_lane::{Settings, Time};
use overtake_valkey::engine::ClusterEngine;
use redis::Value;
use serde_json::json;

use crate::processes::{processes, until};
use crate::world::{Program, World, text};

/// A broker, as far as endpoints go.
struct Broker {
    engine: Arc<ClusterEngine>,
    endpoints: Arc<Endpoints>,
    desk: Desk,
}

impl Broker {
    async fn begin(engine: Arc<ClusterEngine>) -> Self {
        let all = Arc::clone(&engine) as Arc<dyn Engine>;
        let gate = Arc::new(Gate::open(Arc::clone(&all), || Time(1)).await.expect("it opens"));
        let clock = Arc::new(SystemClock);
        let opened = Endpoints::open(Arc::clone(&all), Arc::clone(&gate), clock, Vec::new()).await;
        let desk = Desks::new(all, Arc::clone(&gate)).desk(gate.on_behalf_of("guest"), "/").await;
        Self { engine, endpoints: opened.expect("they open"), desk: desk.expect("a desk") }
    }

    /// The endpoint `e`, of the queue `q`, to a stream on the server.
    async fn put(&self, world: &World, stream: &str) {
        let to = json!({"redis": {"url": world.servers[0].url(), "stream": stream}});
        let endpoint = json!({"queue": "q", "to": to, "send": {"fan_out": 1, "batch": 7}});
        let endpoint: Endpoint = serde_json::from_value(endpoint).expect("a definition");
        self.endpoints.put(&self.desk, "e", endpoint).await.expect("it is configured");
    }

    async fn view(&self) -> Option<ConnectorView<Endpoint>> {
        self.endpoints.show(&self.desk, "e").await.ok()
    }

    async fn leads(&self) -> bool {
        self.view().await.is_some_and(|view| view.leader.is_us())
    }

    async fn publish(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            let content = Content { body: format!("n{number}").into(), ..Content::default() };
            let to = Target::Queue("q".into());
            let message = NewMessage { to, content, ..NewMessage::default() };
            self.engine.publish(vec![message]).await.expect("published");
        }
    }

    /// As a broker that is told to stop.
    async fn stop(self) {
        self.endpoints.stop(Duration::from_secs(10)).await;
        self.engine.close().await;
    }
}

async fn brokers(world: &World, count: usize) -> Vec<Broker> {
    let engines = processes(world, count).await;
    engines[0].declare_queue("q", Settings::default()).await.expect("declared");
    let mut all = Vec::new();
    for engine in engines {
        until(|| async { engine.queue("q").await.is_ok() }).await;
        all.push(Broker::begin(engine).await);
    }
    all
}

/// What was sent to a stream, in order.
async fn sent(world: &World, stream: &str) -> Vec<u32> {
    let Value::Array(entries) = world.ask(0, &format!("XRANGE {stream} - +")).await else {
        panic!("a stream has entries");
    };
    let body = |entry: &Value| {
        let Value::Array(entry) = entry else { panic!("an entry has an id and fields") };
        let Value::Array(fields) = entry[1].clone() else { panic!("an entry has fields") };
        fields.into_iter().find_map(|field| text(field).strip_prefix('n')?.parse().ok()).expect("a number")
    };
    entries.iter().map(body).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_three_brokers_go_over_one_connection_in_their_order() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let all = brokers(&world, 3).await;
        all[0].put(&world, "s").await;
        for broker in &all[1..] {
            until(|| async { broker.view().await.is_some() }).await;
        }
        all[1].publish(0..100).await;
        until(|| async { sent(&world, "s").await.len() == 100 }).await;
        assert_eq!(sent(&world, "s").await, (0..100).collect::<Vec<_>>());
        let mut here = 0;
        for broker in &all {
            here += u32::from(broker.leads().await);
        }
        assert_eq!(here, 1, "it works at one of them");
        for broker in all {
            broker.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_broker_changes_holds_where_the_endpoint_works() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let [first, second] = <[Broker; 2]>::try_from(brokers(&world, 2).await).ok().expect("two");
        first.put(&world, "s").await;
        let follows = |view: ConnectorView<Endpoint>| matches!(view.leader, Leader::Other { .. });
        until(|| async { first.leads().await && second.view().await.is_some_and(follows) }).await;
        let there = second.view().await.expect("it is there");
        assert_eq!(there.leader.broker(), first.view().await.expect("it is there").leader.broker());

        let is_paused = async || first.view().await.is_some_and(|view| view.is_paused);
        second.endpoints.pause(&second.desk, "e", true).await.expect("paused");
        until(|| async { is_paused().await }).await;
        first.publish(0..3).await;
        second.put(&world, "t").await;
        second.endpoints.pause(&second.desk, "e", false).await.expect("resumed");
        until(|| async { sent(&world, "t").await == [0, 1, 2] }).await;
        assert!(sent(&world, "s").await.is_empty(), "it was changed while it was paused");
        assert!(first.leads().await, "it works where it did");

        second.endpoints.delete(&second.desk, "e").await.expect("deleted");
        until(|| async { first.view().await.is_none() }).await;
        second.put(&world, "u").await;
        first.publish(3..4).await;
        until(|| async { sent(&world, "u").await == [3] }).await;
        for broker in [first, second] {
            broker.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_broker_stops_another_goes_on_in_order() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let [first, second] = <[Broker; 2]>::try_from(brokers(&world, 2).await).ok().expect("two");
        first.put(&world, "s").await;
        until(|| async { first.leads().await && second.view().await.is_some() }).await;
        let stopped = async {
            until(|| async { sent(&world, "s").await.len() >= 50 }).await;
            first.stop().await;
        };
        tokio::join!(second.publish(0..200), stopped);
        until(|| async { second.leads().await && sent(&world, "s").await.len() >= 200 }).await;
        assert_eq!(sent(&world, "s").await, (0..200).collect::<Vec<_>>(), "each once, in order");
        second.stop().await;
    }
}
