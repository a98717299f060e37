//! The suite that defines an engine, on one server.

use std::sync::Arc;
use std::time::Duration;

use overtake_engine::conformance::Fixture;
use overtake_engine::{Clock, Engine, SystemClock};
use overtake_lane::Time;
use overtake_peer::Vault;
use overtake_valkey::engine::{ClusterEngine, Options};
use tokio::time::{MissedTickBehavior, interval};

use crate::world::{Program, World};

/// A process on servers of its own.
struct Running {
    world: World,
    engine: Arc<ClusterEngine>,
}

async fn open(world: &World) -> Arc<ClusterEngine> {
    let options = Options::new(world.nodes(), Vault::Any);
    Arc::new(ClusterEngine::open(options).await.expect("the servers are there"))
}

impl Fixture for Running {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.engine) as Arc<dyn Engine>
    }

    fn now(&self) -> Time {
        SystemClock.now()
    }

    async fn advance(&self, ms: u64) {
        let then = self.now().after(ms);
        let mut look = interval(Duration::from_millis(1));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.now() <= then {
            look.tick().await;
        }
        self.engine.sweep().await;
    }

    async fn restart(&mut self) {
        self.engine.close().await;
        self.engine = open(&self.world).await;
    }
}

mod on_redis {
    use super::*;

    async fn fixture() -> Running {
        let world = World::one(Program::Redis, &[]);
        let engine = open(&world).await;
        Running { world, engine }
    }

    overtake_engine::conformance_tests!(fixture);
}
