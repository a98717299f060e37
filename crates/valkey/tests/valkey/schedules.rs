//! Schedules of several brokers: all know them, one runs them.

use std::sync::Arc;

use overtake_access::{Desk, Desks, Gate};
use overtake_engine::{Browse, Content, Engine, Leader, WallClock};
use overtake_lane::{Settings, Time};
use overtake_schedules::{Cron, Schedule, ScheduleView, Schedules, Template};
use overtake_valkey::engine::ClusterEngine;
use tokio::task::AbortHandle;

use crate::processes::{processes, until};
use crate::world::{Program, World};

/// A broker, as far as schedules go.
struct Broker {
    engine: Arc<ClusterEngine>,
    schedules: Arc<Schedules>,
    desk: Desk,
    running: AbortHandle,
}

impl Broker {
    async fn begin(engine: Arc<ClusterEngine>) -> Self {
        let all = Arc::clone(&engine) as Arc<dyn Engine>;
        let gate = Arc::new(Gate::open(Arc::clone(&all), || Time(1)).await.expect("it opens"));
        let opened = Schedules::open(Arc::clone(&all), Arc::clone(&gate), Arc::new(WallClock)).await;
        let schedules = opened.expect("it opens");
        let run = Arc::clone(&schedules);
        let running = tokio::spawn(async move { run.run().await }).abort_handle();
        let desk = Desks::new(all, Arc::clone(&gate)).desk(gate.on_behalf_of("guest"), "/").await;
        Self { engine, schedules, desk: desk.expect("a desk"), running }
    }

    async fn put(&self, name: &str, body: &'static str) {
        // Not on a day of this test.
        let cron = Cron::parse("0 0 1 1 *", "UTC").expect("a line");
        let content = Content { body: body.into(), ..Content::default() };
        let message = Template { content, ..Template::default() };
        let schedule = Schedule { queue: "q".into(), cron, user: "guest".into(), message };
        self.schedules.put(&self.desk, name, schedule, 1).await.expect("put");
    }

    async fn view(&self, name: &str) -> Option<ScheduleView> {
        self.schedules.show(&self.desk, name, 1).await.ok()
    }

    async fn leads(&self) -> bool {
        self.view("a").await.is_some_and(|view| view.leader.is_us())
    }

    /// Names and bodies of what waits in the queue, as far as this broker knows it.
    async fn waits(&self) -> String {
        let page = self.engine.browse("q", Browse { limit: 10, ..Browse::default() }).await.expect("a page");
        let one = |message: &overtake_engine::BrowsedMessage| {
            let name = message.message.id.split('@').next().unwrap_or_default().to_owned();
            format!("{name}={}", String::from_utf8_lossy(&message.content.body))
        };
        let mut all: Vec<_> = page.messages.iter().map(one).collect();
        all.sort();
        all.join(" ")
    }
}

async fn two(world: &World) -> [Broker; 2] {
    let mut engines = processes(world, 2).await;
    engines[0].declare_queue("q", Settings::default()).await.expect("declared");
    until(|| async { engines[1].queue("q").await.is_ok() }).await;
    let first = Broker::begin(engines.remove(0)).await;
    first.put("a", "1").await;
    until(|| async { first.leads().await }).await;
    [first, Broker::begin(engines.remove(0)).await]
}

#[tokio::test]
async fn what_one_broker_changes_another_runs() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let [first, second] = two(&world).await;
        until(|| async { first.waits().await == "a=1" }).await;
        second.put("b", "1").await;
        until(|| async { first.waits().await == "a=1 b=1" }).await;
        second.put("a", "2").await;
        until(|| async { first.waits().await == "a=2 b=1" }).await;
        let [here, there] = [first.view("a").await, second.view("a").await].map(|view| view.expect("there"));
        assert!(here.leader.is_us() && matches!(there.leader, Leader::Other { .. }), "{there:?}");
        assert_eq!((here.leader.broker(), &here.next), (there.leader.broker(), &there.next));
        second.schedules.delete(&second.desk, "b").await.expect("deleted");
        until(|| async { first.view("b").await.is_none() && first.waits().await == "a=2" }).await;
        first.schedules.delete(&first.desk, "a").await.expect("deleted");
        until(|| async { second.view("a").await.is_none() && second.waits().await.is_empty() }).await;
        for broker in [first, second] {
            broker.engine.close().await;
        }
    }
}

#[tokio::test]
async fn where_a_broker_stops_another_goes_on_and_nothing_is_there_twice() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let [first, second] = two(&world).await;
        until(|| async { first.waits().await == "a=1" }).await;
        first.running.abort();
        until(|| async { second.leads().await }).await;
        second.put("b", "1").await;
        until(|| async { second.waits().await == "a=1 b=1" }).await;
        first.put("c", "1").await;
        until(|| async { second.waits().await == "a=1 b=1 c=1" }).await;
        for broker in [first, second] {
            broker.engine.close().await;
        }
    }
}
