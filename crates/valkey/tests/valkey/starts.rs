//! A process that begins to serve a queue of several places which is there already.

use std::time::Duration;

use overtake_engine::{Content, Engine, LeaseRequest, NewMessage, Target};
use overtake_lane::{PartitionMode, Partitions, Settings};
use overtake_peer::Vault;
use overtake_valkey::engine::{ClusterEngine, Options};

use crate::world::{Program, World};

const PLACES: u16 = 16;

async fn open(world: &World) -> ClusterEngine {
    let sweep = Duration::from_secs(3_600);
    let options = Options { sweep, ..Options::new(world.nodes(), Vault::Any) };
    ClusterEngine::open(options).await.expect("the servers are there")
}

async fn declare(engine: &ClusterEngine) {
    let partitions = Partitions { mode: PartitionMode::Hash, count: PLACES, ..Partitions::default() };
    engine.declare_queue("q", Settings { partitions, ..Settings::default() }).await.expect("declared");
}

/// One message to each place.
async fn publish(engine: &ClusterEngine) {
    for _ in 0..PLACES {
        let content = Content { body: "a".into(), ..Content::default() };
        let message = NewMessage { to: Target::Queue("q".into()), content, ..NewMessage::default() };
        engine.publish(vec![message]).await.expect("published");
    }
}

/// How often the places have been asked something that is written down there.
async fn calls(world: &World) -> u64 {
    let mut all = 0;
    for place in 0..PLACES {
        let calls = world.text(0, &format!("HGET {{0:{place}}}:c calls")).await;
        all += calls.parse::<u64>().expect("it counts");
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
        first.close().await;
        let before = calls(&world).await;
        let second = open(&world).await;
        let leased = second.lease(LeaseRequest::new("q".into(), 1)).await.expect("leased");
        assert_eq!(leased.len(), 1, "what the places show is known");
        assert_eq!(calls(&world).await, before + 1, "but for the lease");
        second.close().await;
    }
}
