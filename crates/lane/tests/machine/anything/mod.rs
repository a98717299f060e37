//! Several queues, exchanges, dead letters that travel, last values, transactions, restarts, changed settings: after every
//! step all that a [`Watch`] watches holds, every message moved only as its life allows, and nothing that could have been
//! leased was left lying or passed over.

mod drawing;
mod judging;
mod world;

use overtake_lane::Settings;
use proptest::prelude::*;

use drawing::*;
use world::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_broker_is_asked_its_invariants_hold(
        declared in prop::collection::vec(settings(), QUEUES.len()),
        ops in prop::collection::vec(op(), 1..200),
        keep in prop::option::of(0..3_usize),
    ) {
        compare(keep, declared, ops);
    }

    #[test]
    fn whatever_is_asked_of_deep_queues_nobody_sees_what_is_not_in_memory(
        declared in prop::collection::vec(deep_settings(), QUEUES.len()),
        ops in prop::collection::vec(deep_op(), 1..120),
        keep in 0..3_usize,
    ) {
        compare(Some(keep), declared, ops);
    }
}

/// Asks a broker that spills and one that never does the same.
fn compare(keep: Option<usize>, declared: impl IntoIterator<Item = Box<Settings>>, ops: Vec<Op>) {
    let mut worlds = vec![World::new(keep)];
    worlds.extend(keep.map(|_| World::new(None)));
    let declared = declared.into_iter().enumerate();
    let first = declared
        .flat_map(|(queue, settings)| [Op::Declare { queue, settings }, Op::Bind { queue, key: "#" }]);
    for op in first.chain(ops) {
        for world in &mut worlds {
            world.act(&op);
        }
        if let [spilling, other] = &worlds[..] {
            assert_eq!(spilling.picture(), other.picture(), "one that spills and one that never does");
        }
    }
}
