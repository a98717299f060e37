//! Slots that move while they are in use.

use overtake_valkey::cluster::Slot;
use redis::Value;

use crate::story::{Load, add, connect, list, long, numbers};
use crate::world::{Program, World};

#[tokio::test]
async fn a_call_follows_a_slot_that_has_moved_and_the_next_goes_there_at_once() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let cluster = connect(world.nodes()).await;
        let slot = Slot::of(b"p");
        let from = world.primary_of(0, slot).await.expect("held");
        let to = (from + 1) % 3;
        assert_eq!(cluster.call(long(), add("p", 0)).await, Ok(Value::Int(1)));
        world.move_slot(slot, from, to).await;
        assert_eq!(cluster.call(long(), add("p", 1)).await, Ok(Value::Int(1)));
        let moves = cluster.counts().moves;
        assert!(moves <= 1, "it knows, or is told once: {moves}");
        assert_eq!(list(&cluster, "p").await, ["0", "1"]);
        assert_eq!(cluster.counts().moves, moves);
    }
}

#[tokio::test]
async fn while_a_slot_is_on_its_way_each_call_is_done_where_its_keys_are() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let cluster = connect(world.nodes()).await;
        let slot = Slot::of(b"p");
        let from = world.primary_of(0, slot).await.expect("held");
        let to = (from + 1) % 3;
        cluster.call(long(), add("p", 0)).await.expect("done");
        world.begin_move(slot, from, to).await;
        cluster.call(long(), add("p", 1)).await.expect("its keys are where they were");
        // One of two: neither node can do it now.
        world.move_keys(slot, from, to, 1).await;
        let (split, ()) = tokio::join!(cluster.call(long(), add("p", 2)), async {
            crate::world::until(async || cluster.counts().retries > 0).await;
            world.move_keys(slot, from, to, 1).await;
        });
        assert_eq!(split, Ok(Value::Int(1)));
        assert!(cluster.counts().moves > 0, "it was asked for there");
        cluster.call(long(), add("p", 3)).await.expect("its keys are where they come to");
        world.end_move(slot, from, to).await;
        cluster.call(long(), add("p", 4)).await.expect("it is there");
        assert_eq!(list(&cluster, "p").await, numbers(5));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reshard_under_load_loses_nothing_does_nothing_twice_and_keeps_the_order() {
    for program in Program::all() {
        let mut world = World::cluster(program, 1, &[]).await;
        let mut nodes = world.nodes();
        nodes.durability.replicas_acked = 1;
        let cluster = connect(nodes).await;
        let tags = numbers(12);
        let load = Load::begin(&cluster, &tags, 10);
        load.more(500).await;
        let added = world.add_node().await;
        let replica = world.add_node().await;
        world.replicate(replica, added).await;
        world.until_whole().await;
        for tag in &tags {
            let slot = Slot::of(tag.as_bytes());
            let from = world.primary_of(0, slot).await.expect("held");
            world.move_slot(slot, from, added).await;
            load.more(50).await;
        }
        for tag in &tags[..6] {
            let slot = Slot::of(tag.as_bytes());
            world.move_slot(slot, added, 0).await;
        }
        load.more(500).await;
        let sum = load.end(&cluster).await;
        let counts = cluster.counts();
        println!(
            "{program:?}: {sum} calls while slots moved: {} moves, {} retries",
            counts.moves, counts.retries
        );
        assert!(counts.moves > 0, "{counts:?}");
        assert!(counts.nodes.len() >= 4, "the node that was added was asked: {counts:?}");
    }
}
