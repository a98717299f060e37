//! A process that begins to serve a queue of several places which is there already.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use overtake_engine::{Content, Engine, LeaseRequest, NewMessage, Target};
use overtake_lane::{
    ApplyTo, Definition, PartitionMode, Partitions, Pattern, Policy, PolicyKind, QueueId, Refusal, Settings,
};
use overtake_peer::Vault;
use overtake_valkey::engine::{ClusterEngine, Options};

use crate::world::{Program, World};

const PLACES: u16 = 16;
/// Processes, one after the other.
const STARTS: usize = 3;
/// Leases that are asked for during a start, at most.
const ASKED_MAX: usize = 4_000;

async fn open(world: &World) -> ClusterEngine {
    let sweep = Duration::from_secs(3_600);
    let options = Options { sweep, ..Options::new(world.nodes(), Vault::ANY) };
    ClusterEngine::open(options).await.expect("the servers are there")
}

async fn declare(engine: &ClusterEngine) {
    let partitions = Partitions { mode: PartitionMode::Hash, count: PLACES, ..Partitions::default() };
    engine.declare_queue("q", Settings { partitions, ..Settings::default() }).await.expect("declared");
}

fn message() -> NewMessage {
    let content = Content { body: "a".into(), ..Content::default() };
    NewMessage { to: Target::Queue("q".into()), content, ..NewMessage::default() }
}

/// One message to each place.
async fn publish(engine: &ClusterEngine) {
    for _ in 0..PLACES {
        engine.publish(vec![message()]).await.expect("published");
    }
}

/// The last call of each place that is written down there.
async fn calls(world: &World, queue: QueueId) -> Vec<String> {
    let mut all = Vec::new();
    for place in 0..PLACES {
        all.push(world.text(0, &format!("HGET {{{}:{place}}}:c calls", queue.0)).await);
    }
    all
}

#[tokio::test]
async fn nothing_is_written_to_places_that_have_what_holds_whatever_else_was_defined() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let first = open(&world).await;
        declare(&first).await;
        publish(&first).await;
        first.declare_queue("other", Settings::default()).await.expect("declared");
        let queue = first.queue("q").await.expect("there").queue;
        first.close().await;
        let before = calls(&world, queue).await;
        let second = open(&world).await;
        let leased = second.lease(LeaseRequest::new("q".into(), 1)).await.expect("leased");
        assert_eq!(leased.len(), 1, "what the places show is known");
        let after = calls(&world, queue).await;
        let written = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        assert_eq!(written, 1, "but for the lease");
        second.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_at_any_moment_of_a_start_is_served() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let first = open(&world).await;
        declare(&first).await;
        first.close().await;
        for _ in 0..STARTS {
            let engine = open(&world).await;
            let is_served = Arc::new(AtomicBool::new(false));
            let mut asked = Vec::new();
            // As soon as one of them is answered the start is over.
            while !is_served.load(Ordering::Relaxed) && asked.len() < ASKED_MAX {
                let (leased, is_served) =
                    (engine.lease(LeaseRequest::new("q".into(), 1)), Arc::clone(&is_served));
                asked.push(tokio::spawn(async move {
                    let leased = leased.await;
                    is_served.store(true, Ordering::Relaxed);
                    leased
                }));
                tokio::task::yield_now().await;
            }
            for leased in asked {
                // So many at once may be too many; but nobody is told that it is not there.
                let leased = leased.await.expect("no panic").map(|leased| leased.len());
                assert_ne!(leased, Err(Refusal::NoSuchQueue.into()), "the queue is there");
            }
            engine.close().await;
        }
    }
}

/// Nothing is heard where nobody may subscribe, and a queue waits for it as long as it does before its places are told what holds.
#[tokio::test]
async fn what_is_defined_while_a_queue_begins_to_be_served_holds_there() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let first = open(&world).await;
        first.declare_queue("q", Settings::default()).await.expect("declared");
        first.close().await;
        world.ask(0, "ACL SETUSER default -ssubscribe").await;
        let engine = open(&world).await;
        let definition = Definition { max_length: Some(1), ..Definition::default() };
        let pattern = Pattern::new("^q$").expect("a pattern");
        let policy = Policy { pattern, definition, priority: 0, apply_to: ApplyTo::All };
        let (published, set) =
            tokio::join!(engine.publish(vec![message()]), engine.set_policy(PolicyKind::User, "p", policy));
        published.expect("published");
        set.expect("set");
        engine.publish(vec![message()]).await.expect("published");
        let view = engine.queue("q").await.expect("it is there");
        let ready: u64 = view.lanes.iter().map(|lane| lane.ready).sum();
        assert_eq!(ready, 1, "by the policy it holds no more");
        engine.close().await;
    }
}
