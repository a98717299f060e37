//! Replicas that are missing: what must outlive a failover says so, and nothing else waits for them.

use std::sync::Arc;

use overtake_engine::{ConsumeRequest, Content, Engine, Failure, LeaseRequest, NewMessage, Target};
use overtake_lane::{Outcome, PartitionMode, Partitions, Settings};
use overtake_peer::Vault;
use overtake_valkey::cluster::Slot;
use overtake_valkey::engine::{ClusterEngine, Options};
use overtake_valkey::functions::DEFINITIONS;
use tokio::task::JoinSet;

use crate::processes::processes;
use crate::world::{Program, QUICK, World, until};

fn message(priority: i64) -> NewMessage {
    let content = Content { body: priority.to_string().into(), ..Content::default() };
    NewMessage { to: Target::Queue("q".into()), priority: priority.into(), content, ..NewMessage::default() }
}

async fn open(world: &World) -> Arc<ClusterEngine> {
    let mut nodes = world.nodes();
    nodes.durability.replicas_acked = 1;
    (nodes.patience.replicas_ms, nodes.patience.shortfall_ms) = (50, 100);
    Arc::new(ClusterEngine::open(Options::new(nodes, Vault::ANY)).await.expect("opens"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_replicas_leases_go_on_and_what_would_be_lost_with_the_primary_is_not_confirmed() {
    for program in Program::all() {
        let mut world = World::cluster(program, 1, &[]).await;
        let engine = open(&world).await;
        engine.declare_queue("q", Settings::default()).await.expect("declared");
        engine.publish(vec![message(1), message(9)]).await.expect("published");
        // Has nothing to do with the queue before.
        let other = open(&world).await;
        for replica in 3..6 {
            world.servers[replica].kill();
        }
        let mut receipts = Vec::new();
        for (engine, expected) in [(&other, "9"), (&engine, "1")] {
            let leased = engine.lease(LeaseRequest::new("q".into(), 1)).await.expect("leased");
            assert_eq!(leased[0].content.body, expected);
            receipts.push(leased[0].receipt);
        }
        let Err(Failure::Unavailable(why)) = engine.publish(vec![message(5)]).await else {
            panic!("it would be lost with the primary");
        };
        assert!(why.contains("0 of 1 replicas") && why.contains("127.0.0.1:"), "{why}");
        assert!(engine.settle(receipts, Outcome::Ack).await.is_err());
        for replica in 3..6 {
            world.servers[replica].start();
        }
        until(async || engine.publish(vec![message(7)]).await.is_ok()).await;
    }
}

/// A place that is being asked shows nothing; whoever asks meanwhile is not to be given what is less urgent elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_gets_at_one_broker_gets_the_most_urgent_of_all_partitions() {
    const EACH: i64 = 60;
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let engine = processes(&world, 1).await.remove(0);
    let partitions = Partitions { mode: PartitionMode::Hash, count: 4, ..Partitions::default() };
    engine.declare_queue("q", Settings { partitions, ..Settings::default() }).await.expect("declared");
    for _ in 0..EACH {
        for priority in [1, 9, 5] {
            engine.publish(vec![message(priority)]).await.expect("published");
        }
    }
    let session = engine.connect();
    let mut getters = JoinSet::new();
    for _ in 0..8 {
        let session = Arc::clone(&session);
        getters.spawn(async move {
            let mut got = Vec::new();
            while let Some(one) = session.get("q", false).await.expect("got") {
                got.push((one.message.receipt.lease, one.message.content.body.clone()));
            }
            got
        });
    }
    let mut got = getters.join_all().await.concat();
    // Leases are numbered by the clock of the server.
    got.sort_by_key(|(lease, _)| *lease);
    let order: Vec<_> = got.iter().map(|(_, body)| String::from_utf8_lossy(body).into_owned()).collect();
    let expected: Vec<_> = ["9", "5", "1"].into_iter().flat_map(|one| vec![one; EACH as usize]).collect();
    assert_eq!(order, expected);
}

/// Of a queue in several partitions those of a server that is away are left out, and said to be; the others go on, and what may go anywhere goes there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_primary_has_is_left_out_and_named_and_is_back_with_its_replica() {
    const EACH: usize = 24;
    for program in Program::all() {
        let mut world = World::cluster(program, 1, &QUICK).await;
        let engine = processes(&world, 1).await.remove(0);
        let partitions = Partitions { mode: PartitionMode::Hash, count: 24, ..Partitions::default() };
        engine.declare_queue("q", Settings { partitions, ..Settings::default() }).await.expect("declared");
        for _ in 0..EACH {
            engine.publish(vec![message(5)]).await.expect("published");
        }
        // All of it is at the replicas, too, before one of them is all there is.
        for primary in 0..3 {
            world.ask(primary, "WAIT 1 0").await;
        }
        world.servers[0].kill();
        let mut got = 0;
        let why = loop {
            match engine.lease(LeaseRequest::new("q".into(), 1)).await {
                Ok(leased) if leased.is_empty() => panic!("nobody knows that there is no more"),
                Ok(leased) => got += leased.len(),
                Err(Failure::Unavailable(why)) => break why,
                Err(why) => panic!("{why}"),
            }
        };
        assert!((1..EACH).contains(&got), "{got}");
        assert!(why.contains("not served") && why.contains("is down"), "{why}");
        for _ in 0..24 {
            engine.publish(vec![message(7)]).await.expect("it goes elsewhere");
        }
        while engine.lease(LeaseRequest::new("q".into(), 1)).await.is_ok_and(|leased| !leased.is_empty()) {
            got += 1;
        }
        // A consumer is given the rest once the replica has taken over.
        let mut consumer = engine.consume(ConsumeRequest::new("q".into())).await.expect("consumes");
        while got < EACH + 24 {
            let leased = consumer.next().await.expect("it comes");
            engine.settle(vec![leased.receipt], Outcome::Ack).await.expect("settled");
            got += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_begins_with_the_partitions_that_are_served_and_is_told_of_the_others() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let mut world = World::cluster(program, 0, &[]).await;
    let first = processes(&world, 1).await.remove(0);
    let partitions = Partitions { mode: PartitionMode::Hash, count: 24, ..Partitions::default() };
    let settings = Settings { partitions, ..Settings::default() };
    first.declare_queue("q", settings.clone()).await.expect("declared");
    for _ in 0..24 {
        first.publish(vec![message(5)]).await.expect("published");
    }
    first.close().await;
    // Any but the primary of the definitions.
    let holds = world.primary_of(0, Slot::of(DEFINITIONS.as_bytes())).await.expect("somebody");
    let dead = (holds + 1) % 3;
    world.servers[dead].kill();
    let mut nodes = world.nodes();
    nodes.nodes.swap(0, holds);
    let second = ClusterEngine::open(Options::new(nodes, Vault::ANY)).await.expect("opens");
    let mut got = 0;
    while let Ok(leased) = second.lease(LeaseRequest::new("q".into(), 1)).await {
        got += leased.len();
    }
    assert!((1..24).contains(&got), "{got}");
    world.servers[dead].start();
    let mut consumer = second.consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    while got < 24 {
        consumer.next().await.expect("it comes");
        got += 1;
    }
}
