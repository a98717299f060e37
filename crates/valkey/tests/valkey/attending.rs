//! Consumers of one queue at several processes: what goes by all of them.

use std::sync::Arc;

use overtake_engine::conformance::refused;
use overtake_engine::{
    ConsumeRequest, Consumer, Content, DeclareQueue, DeleteOnly, Engine, NewMessage, Target,
};
use overtake_lane::{Existing, Identity, Refusal, Settings};
use overtake_peer::Vault;
use overtake_valkey::cluster::Cluster;
use overtake_valkey::engine::ClusterEngine;
use overtake_valkey::functions::{Alive, LIBRARY, Terms};
use overtake_valkey::places::Places;

use crate::processes::{callers, of_q, processes, until};
use crate::story::long;
use crate::world::{Program, World};

/// A queue `q` that is so, known to all of so many processes.
async fn known_to(world: &World, count: usize, declare: DeclareQueue) -> Vec<Arc<ClusterEngine>> {
    let all = processes(world, count).await;
    all[0].declare("q", declare).await.expect("declared");
    for engine in &all {
        until(|| async { engine.queue("q").await.is_ok() }).await;
    }
    all
}

fn so(identity: Identity, settings: Settings) -> DeclareQueue {
    DeclareQueue { identity, settings, existing: Existing::Same }
}

fn auto_delete() -> DeclareQueue {
    so(Identity { auto_delete: true, ..Identity::default() }, Settings::default())
}

fn single() -> DeclareQueue {
    so(Identity::default(), Settings { single_active_consumer: true, ..Settings::default() })
}

async fn publish(engine: &ClusterEngine, body: &str) {
    let content = Content { body: body.to_owned().into(), ..Content::default() };
    let message = NewMessage { to: Target::Queue("q".into()), content, ..NewMessage::default() };
    engine.publish(vec![message]).await.expect("published");
}

async fn consume(engine: &ClusterEngine, exclusive: bool) -> Result<Consumer, overtake_engine::Failure> {
    engine.consume(ConsumeRequest { exclusive, ..ConsumeRequest::new("q".into()) }).await
}

async fn consumers(engine: &ClusterEngine) -> u64 {
    engine.queue("q").await.expect("it is there").consumers
}

async fn next(consumer: &mut Consumer) -> String {
    String::from_utf8_lossy(&consumer.next().await.expect("it comes").content.body).into_owned()
}

/// For the servers a process is gone, though it is there.
async fn bury(world: &World, engine: &ClusterEngine, process: &str) {
    let cluster = Cluster::connect(world.nodes(), Vault::ANY, LIBRARY).await.expect("a server");
    let queue = engine.queue("q").await.expect("there").queue.0;
    let terms = Terms::new("q".into(), &Settings::default(), 0, 0);
    let nobody = ("nobody".to_owned(), Arc::default());
    let places = Places::new(
        cluster,
        (queue, of_q(world).await),
        1,
        terms,
        nobody,
        std::time::Duration::from_secs(3_600),
    );
    places.ask(0, &Alive::gone(process.to_owned()), long()).await.expect("it is done");
}

#[tokio::test]
async fn an_exclusive_consumer_is_alone_wherever_others_are() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let all = known_to(&world, 2, DeclareQueue::default()).await;
        let alone = consume(&all[0], true).await.expect("taken");
        for engine in &all {
            assert_eq!(refused(consume(engine, false).await.map(drop)), Refusal::ConsumerExclusive);
        }
        drop(alone);
        until(|| async { consumers(&all[1]).await == 0 }).await;
        let _first = consume(&all[1], false).await.expect("taken");
        assert_eq!(refused(consume(&all[0], true).await.map(drop)), Refusal::ConsumerExclusive);
        // What was declined is not counted.
        assert_eq!((consumers(&all[0]).await, consumers(&all[1]).await), (1, 1));
    }
}

#[tokio::test]
async fn a_process_that_was_given_up_and_finds_an_exclusive_consumer_cancels_its_own() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let all = known_to(&world, 2, DeclareQueue::default()).await;
    let mut lost = consume(&all[0], false).await.expect("taken");
    for process in callers(&world).await {
        bury(&world, &all[1], &process).await;
    }
    let mut alone = consume(&all[1], true).await.expect("the other is gone");
    assert!(lost.next().await.is_none(), "it is cancelled");
    publish(&all[0], "a").await;
    assert_eq!(next(&mut alone).await, "a");
}

#[tokio::test]
async fn of_single_active_consumers_that_of_the_process_is_served_that_came_first() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let all = known_to(&world, 3, single()).await;
        let mut first = consume(&all[1], false).await.expect("taken");
        let mut second = consume(&all[0], false).await.expect("taken");
        let mut third = consume(&all[2], false).await.expect("taken");
        for body in ["a", "b"] {
            publish(&all[0], body).await;
            assert_eq!(next(&mut first).await, body);
        }
        // What it held goes to the next with all that comes.
        drop(first);
        for body in ["a", "b"] {
            assert_eq!(next(&mut second).await, body);
        }
        all[0].close().await;
        for body in ["a", "b"] {
            assert_eq!(next(&mut third).await, body);
        }
    }
}

#[tokio::test]
async fn a_queue_goes_with_the_last_consumer_of_all() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let all = known_to(&world, 2, auto_delete()).await;
        let first = consume(&all[0], false).await.expect("taken");
        let second = consume(&all[1], false).await.expect("taken");
        assert_eq!((consumers(&all[0]).await, consumers(&all[1]).await), (2, 2));
        drop(first);
        until(|| async { consumers(&all[1]).await == 1 }).await;
        let unused = DeleteOnly { if_unused: true, ..DeleteOnly::default() };
        assert_eq!(refused(all[0].delete_queue("q", unused).await), Refusal::InUse);
        assert_eq!(all[0].declare("q", auto_delete()).await.expect("it is there").consumers, 1);
        drop(second);
        until(|| async { all[0].queue("q").await.is_err() }).await;
    }
}

/// It says nothing more for 15 seconds.
#[tokio::test]
async fn consumers_of_a_process_that_is_gone_without_a_word_have_left() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let mut all = known_to(&world, 3, single()).await;
    all[1].declare("passing", auto_delete()).await.expect("declared");
    let gone = all.remove(0);
    until(|| async { gone.queue("passing").await.is_ok() }).await;
    let mut held = consume(&gone, false).await.expect("taken");
    let passing = gone.consume(ConsumeRequest::new("passing".into())).await.expect("taken");
    let mut second = consume(&all[0], false).await.expect("taken");
    publish(&all[1], "a").await;
    assert_eq!(next(&mut held).await, "a");
    drop(gone);
    assert_eq!(next(&mut second).await, "a");
    assert_eq!(consumers(&all[1]).await, 1);
    until(|| async { all[1].queue("passing").await.is_err() }).await;
    drop((held, passing));
}
