//! The examples of the client library, which run.

use super::{World, go};

#[path = "../../../../client/examples/scopes.rs"]
mod scopes;

#[test]
fn the_four_examples_of_scopes_come_out_most_urgent_lane_first() {
    let world = World::new();
    let all = go(async { scopes::run(&world.client().await).await.unwrap() });
    let expected = [
        "critical: CRITICAL",
        "critical all the same: CRITICAL",
        "tier of customer 1: LOW",
        "tier of customer 2: LOW",
        "tier of customer 3: LOW",
        "low: LOW",
        "low again: LOW",
        "reindex: BULK",
    ];
    assert_eq!(all, expected, "in each lane first in, first out");
}
