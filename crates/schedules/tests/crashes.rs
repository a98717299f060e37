//! The broker is killed, or its power cut, at every operation of the disk that a change takes: what waits then is what the schedule
//! says that survived, once.

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use overtake_store::{Fault, OperationKind};
use world::{MINUTE, World, schedule};

/// Does something to a world with the schedule `tick` again and again, each time with this fault at a later operation, until it is
/// through before that. After each it is opened again, and one of these pictures must be seen. Answers how often it was struck.
async fn strike(fault: Fault, act: impl AsyncFn(&World), expect: &[&str]) -> u64 {
    for at in 0.. {
        let world = World::new().await;
        world.tick().await;
        let (seen, struck) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
        let strikes = Arc::clone(&struck);
        world.disk.set_hook(move |operation| {
            let counts = operation.kind != OperationKind::Read && !strikes.load(Ordering::Relaxed);
            if !counts || seen.fetch_add(1, Ordering::Relaxed) < at {
                return Fault::None;
            }
            strikes.store(true, Ordering::Relaxed);
            fault
        });
        act(&world).await;
        let was_struck = struck.load(Ordering::Relaxed);
        let world = world.down_for(0).await;
        let picture = format!("{} | {}", world.told("tick").await, world.sees("q").await);
        assert!(expect.contains(&&*picture), "{fault:?} at {at}: {picture}");
        if !was_struck {
            assert_eq!(picture, expect[expect.len() - 1], "nothing happened to it");
            return at;
        }
    }
    unreachable!("it comes to an end")
}

async fn check(act: impl AsyncFn(&World), expect: &[&str]) {
    for fault in [Fault::Kill, Fault::PowerCut] {
        assert!(strike(fault, &act, expect).await >= 2, "the disk is written to");
    }
}

#[tokio::test]
async fn a_change_struck_anywhere_leaves_the_old_schedule_or_the_new_one() {
    let change = async |world: &World| drop(world.put("tick", schedule("30 * * * *", "y")).await);
    check(change, &["0 * * * * x | tick@10:00 x delayed", "30 * * * * y | tick@09:30 y delayed"]).await;
}

#[tokio::test]
async fn a_change_of_the_message_alone_is_not_mixed_up() {
    let change = async |world: &World| drop(world.put("tick", schedule("0 * * * *", "y")).await);
    check(change, &["0 * * * * x | tick@10:00 x delayed", "0 * * * * y | tick@10:00 y delayed"]).await;
}

#[tokio::test]
async fn a_delete_struck_anywhere_leaves_all_of_it_or_nothing() {
    let delete = async |world: &World| {
        let desk = world.desk("guest", "/").await;
        drop(world.schedules.delete(&desk, "tick").await);
    };
    check(delete, &["0 * * * * x | tick@10:00 x delayed", "nothing | "]).await;
}

#[tokio::test]
async fn an_occurrence_struck_anywhere_is_there_once_and_so_is_the_next() {
    let pass = async |world: &World| world.pass(40 * MINUTE).await;
    check(pass, &["0 * * * * x | tick@10:00 x ready · tick@11:00 x delayed"]).await;
}
