//! Work of which one of several processes at a time does it.

use std::sync::Arc;

use overtake_engine::{Engine, Leader, Leadership};
use overtake_valkey::engine::ClusterEngine;

use crate::processes::processes;
use crate::world::{Program, World};

/// What becomes of a wish: the fence where it is granted.
async fn leads(leadership: &Leadership) -> u64 {
    let mut watch = leadership.watch();
    let leader = watch.wait_for(Leader::is_us).await.expect("the engine is there").clone();
    let Leader::Us { fence, .. } = leader else { unreachable!("it was waited for") };
    fence
}

async fn follows(leadership: &Leadership) -> Arc<str> {
    let mut watch = leadership.watch();
    let is_other = |leader: &Leader| matches!(leader, Leader::Other { .. });
    let leader = watch.wait_for(is_other).await.expect("the engine is there");
    leader.broker().cloned().expect("it was waited for")
}

async fn two(world: &World) -> [Arc<ClusterEngine>; 2] {
    let mut all = processes(world, 2).await;
    [all.remove(0), all.remove(0)]
}

#[tokio::test]
async fn one_leads_until_it_does_not_wish_to_any_more() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let [one, other] = two(&world).await;
        let first = one.lead("endpoints/0/a");
        let fence = leads(&first).await;
        let again = one.lead("endpoints/0/a");
        assert_eq!(leads(&again).await, fence, "one process is told the same however often it asks");
        let second = other.lead("endpoints/0/a");
        let name = follows(&second).await;
        assert!(name.len() == 8, "{name}");
        let elsewhere = other.lead("endpoints/0/b");
        assert!(leads(&elsewhere).await > fence, "each work has a leader of its own");
        drop(first);
        assert!(again.is_us(), "somebody still wishes to");
        drop(again);
        assert!(leads(&second).await > fence);
        for engine in [one, other] {
            engine.close().await;
        }
    }
}

#[tokio::test]
async fn who_stops_gives_back_and_who_dies_is_waited_for() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let [one, other] = two(&world).await;
        let first = one.lead("schedules");
        let mut fence = leads(&first).await;
        let second = other.lead("schedules");
        follows(&second).await;
        one.close().await;
        assert!(!first.is_us(), "before another begins");
        let later = leads(&second).await;
        assert!(later > fence);
        fence = later;
        let third = processes(&world, 1).await.remove(0);
        let last = third.lead("schedules");
        follows(&last).await;
        // Without a word.
        drop(other);
        assert!(!second.is_us());
        assert!(leads(&last).await > fence);
        third.close().await;
    }
}

#[tokio::test]
async fn who_cannot_reach_the_servers_leads_no_more() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let [one, other] = two(&world).await;
        let first = one.lead("schedules");
        let fence = leads(&first).await;
        world.servers[0].pause();
        let mut watch = first.watch();
        watch.wait_for(|leader| *leader == Leader::Unknown).await.expect("the engine is there");
        world.servers[0].resume();
        assert!(leads(&first).await >= fence);
        for engine in [one, other] {
            engine.close().await;
        }
    }
}
