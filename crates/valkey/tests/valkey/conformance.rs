//! The suite that defines an engine, on one server.

use std::sync::Arc;
use std::time::Duration;

use overtake_engine::conformance::Fixture;
use overtake_engine::{Clock, Engine, SystemClock};
use overtake_lane::{PartitionMode, Partitions, Settings, Time};
use overtake_peer::Vault;
use overtake_valkey::engine::{ClusterEngine, Options};
use tokio::time::{MissedTickBehavior, interval};

use crate::world::{Program, World};

/// A process on servers of its own.
struct Running {
    world: World,
    engine: Arc<ClusterEngine>,
    /// In how many places queues are kept.
    places: u16,
}

async fn open(world: &World) -> Arc<ClusterEngine> {
    let options = Options::new(world.nodes(), Vault::ANY);
    Arc::new(ClusterEngine::open(options).await.expect("the servers are there"))
}

impl Running {
    async fn new(places: u16) -> Self {
        let world = World::one(Program::Redis, &[]);
        let engine = open(&world).await;
        Self { world, engine, places }
    }
}

impl Fixture for Running {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.engine) as Arc<dyn Engine>
    }

    fn settings(&self, settings: Settings) -> Settings {
        // Of those each place has its share.
        let is_shared = settings.max_length > 0
            || settings.max_bytes > 0
            || settings.reject_below.is_some()
            || settings.rate_limit.is_some();
        let is_in_places = settings.partitions.mode != PartitionMode::None;
        if self.places == 1
            || is_in_places
            || is_shared
            || settings.fair_keys
            || settings.last_value.is_some()
        {
            return settings;
        }
        let partitions = Partitions { mode: PartitionMode::Hash, count: self.places, bands: Vec::new() };
        Settings { partitions, ..settings }
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
        Running::new(1).await
    }

    overtake_engine::conformance_tests!(fixture);
}

mod in_sixteen_places {
    use super::*;

    async fn fixture() -> Running {
        Running::new(16).await
    }

    overtake_engine::conformance_tests!(fixture, but EXCEPT);

    /// What is not the same in several places, and why.
    const EXCEPT: &[(&str, &str)] = &[
        ("admin::declaring_a_queue_again_makes_no_second_one", REDECLARED),
        ("ids::a_message_of_a_pending_id_is_not_stored_again", POSITION),
        ("ids::a_publish_tells_how_many_messages_are_ahead", POSITION),
        ("lanes::a_priority_with_a_name_always_finds_a_lane", LANES),
        ("lanes::a_queue_has_so_many_lanes_and_no_more", LANES),
        ("lanes::the_scheme_is_fixed_while_messages_are_there", REDECLARED),
        ("limits::a_limit_that_is_lowered_drops_nothing_by_itself", REDECLARED),
        ("policies::a_policy_may_have_publishes_refused", SHARE),
        ("policies::a_queue_under_a_policy_is_declared_again_as_it_was", REDECLARED),
        ("policies::a_shorter_length_holds_at_once", SHARE),
        ("policies::fewer_bytes_hold_at_once", SHARE),
        ("policies::policies_survive", SHARE),
        ("policies::priorities_come_into_a_deep_queue", SHARE),
        ("refusals::settings_that_messages_depend_on_are_fixed_while_they_are_there", REDECLARED),
        ("restart::settings_survive", REDECLARED),
        ("transactions::a_message_that_would_open_a_lane_too_many_is_named", LANES),
        ("transactions::a_publish_of_many_is_all_or_none", POSITION),
        ("vhosts::a_name_in_two_virtual_hosts_is_two_queues", SEQUENCE),
    ];
    const REDECLARED: &str = "the case declares the queue again as it was meant, which is in one place";
    const POSITION: &str = "a publish does not tell how many messages are ahead in other places";
    const LANES: &str = "each place has so many lanes";
    const SHARE: &str = "each place has an equal share of what the queue may hold";
    const SEQUENCE: &str = "sequences have a clock and a place in them";

    #[test]
    fn what_is_excepted_is_there() {
        let missing = EXCEPT.iter().find(|(case, _)| !overtake_engine::conformance::CASES.contains(case));
        assert_eq!(missing, None);
    }
}
