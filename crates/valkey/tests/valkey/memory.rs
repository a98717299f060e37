//! Servers whose memory is full: what frees memory is done, and what takes it is refused, with the server's name.

use overtake_engine::{Content, DeleteOnly, Engine, Failure, Full, LeaseRequest, NewMessage, Target};
use overtake_lane::{Outcome, PartitionMode, Partitions, Receipt, Refusal, Settings};
use overtake_valkey::engine::ClusterEngine;

use crate::processes::processes;
use crate::world::{Program, World};

fn message(number: usize) -> NewMessage {
    let content = Content { body: format!("{number}").into(), ..Content::default() };
    NewMessage { to: Target::Queue("q".into()), content, ..NewMessage::default() }
}

/// With several partitions, so that transactions are over several.
async fn declare(engine: &ClusterEngine) {
    let partitions = Partitions { mode: PartitionMode::Hash, count: 4, ..Partitions::default() };
    engine.declare_queue("q", Settings { partitions, ..Settings::default() }).await.expect("declared");
}

async fn lease(engine: &ClusterEngine, max: u32) -> Vec<Receipt> {
    engine
        .lease(LeaseRequest::new("q".into(), max))
        .await
        .expect("leased")
        .into_iter()
        .map(|message| message.receipt)
        .collect()
}

async fn set_memory(world: &World, bytes: u64) {
    for at in 0..world.servers.len() {
        world.ask(at, &format!("CONFIG SET maxmemory {bytes}")).await;
    }
}

/// Waits until the engine says that it is full, or is not.
async fn until_full(engine: &ClusterEngine, is_full: bool) {
    let mut full = engine.cluster().full();
    full.wait_for(|full| full.is_some() == is_full).await.expect("the cluster is there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_full_memory_what_frees_it_is_done_and_publishes_are_refused_with_the_name_of_the_server() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let engine = processes(&world, 1).await.pop().expect("one");
        declare(&engine).await;
        let messages = (0..64).map(message).collect();
        engine.publish(messages).await.expect("published");
        let held = lease(&engine, 16).await;
        set_memory(&world, 1 << 20).await;
        until_full(&engine, true).await;
        let refused = engine.publish(vec![message(64)]).await.err();
        assert!(
            matches!(&refused, Some(Failure::Refused(why)) if why.refusal == Refusal::StoreFull),
            "{refused:?}"
        );
        let Some(Full::Memory { node, .. }) = engine.health().full else { panic!("it is full") };
        assert!(world.servers.iter().any(|server| server.url().ends_with(&*node)), "{node}");

        let acks = |receipts: &[Receipt]| receipts.iter().map(|receipt| (*receipt, Outcome::Ack)).collect();
        engine.transact(Vec::new(), acks(&held[..1])).await.expect("one partition settles");
        engine.transact(Vec::new(), acks(&held[1..8])).await.expect("several partitions settle, all or none");
        let refused = engine.transact(vec![message(64)], acks(&held[8..9])).await;
        assert!(refused.is_err(), "{refused:?}");
        let settled = engine.settle(held[8..12].to_vec(), Outcome::Ack).await.expect("settled");
        assert!(settled.iter().all(Result::is_ok), "{settled:?}");
        let extended = engine.extend(held[12..].to_vec(), 60_000).await.expect("extended");
        assert!(extended.iter().all(Result::is_ok), "{extended:?}");
        let back = engine.settle(held[12..].to_vec(), Outcome::Release).await.expect("put back");
        assert!(back.iter().all(Result::is_ok), "{back:?}");
        engine.sweep().await;
        let more = lease(&engine, 4).await;
        assert_eq!(more.len(), 4);
        let another = processes(&world, 1).await.pop().expect("a broker starts with full servers");
        assert_eq!(
            another.queue("q").await.expect("it is there").queue,
            engine.queue("q").await.expect("there").queue
        );
        another.close().await;
        assert_eq!(engine.purge("q", None).await, Ok(48));
        engine.delete_queue("q", DeleteOnly::default()).await.expect("deleted");

        set_memory(&world, 0).await;
        until_full(&engine, false).await;
        declare(&engine).await;
        engine.publish(vec![message(0)]).await.expect("there is memory again");
        assert_eq!(engine.health().full, None);
        engine.close().await;
    }
}
