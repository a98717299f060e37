//! Servers that fall, and come back.

use std::time::Duration;

use overtake_valkey::cluster::{Call, CallError, Slot};
use redis::Value;

use crate::story::{Load, add, connect, list, long, numbers, soon};
use crate::world::{Program, QUICK, World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_is_killed_and_calls_go_on_where_its_replica_takes_over() {
    for program in Program::all() {
        let mut world = World::cluster(program, 1, &QUICK).await;
        let mut nodes = world.nodes();
        nodes.durability.replicas_acked = 1;
        nodes.patience.shortfall_ms = 60_000;
        let cluster = connect(nodes).await;
        let tags = numbers(12);
        // With its only replica promoted nobody could acknowledge: so it has another.
        let another = world.add_node().await;
        world.replicate(another, 0).await;
        world.until_whole().await;
        let load = Load::begin(&cluster, &tags, 10);
        load.more(500).await;
        let slot = Slot::new(0).expect("a slot");
        world.servers[0].kill();
        world.until_taken_over(1, slot, 0).await;
        load.more(500).await;
        world.servers[0].start();
        world.until_whole().await;
        load.more(500).await;
        let sum = load.end(&cluster).await;
        let counts = cluster.counts();
        println!(
            "{program:?}: {sum} calls while a primary fell: {} in doubt, {} retries",
            counts.in_doubt, counts.retries
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_hands_over_in_good_order_and_takes_over_again() {
    for program in Program::all() {
        let world = World::cluster(program, 1, &[]).await;
        let mut nodes = world.nodes();
        nodes.durability.replicas_acked = 1;
        nodes.patience.shortfall_ms = 60_000;
        let cluster = connect(nodes).await;
        let load = Load::begin(&cluster, &numbers(12), 10);
        let slot = Slot::new(0).expect("a slot");
        for (from, to) in [(0, 3), (3, 0)] {
            load.more(500).await;
            world.hand_over(slot, from, to).await;
            world.until_whole().await;
        }
        load.more(500).await;
        load.end(&cluster).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_is_paused_is_left_for_its_replica_and_what_it_says_when_it_wakes_is_not_believed() {
    for program in Program::all() {
        let mut world = World::cluster(program, 1, &QUICK).await;
        let another = world.add_node().await;
        world.replicate(another, 0).await;
        world.until_whole().await;
        let mut nodes = world.nodes();
        nodes.durability.replicas_acked = 1;
        nodes.patience.shortfall_ms = 60_000;
        nodes.patience.answer_ms = 60_000;
        nodes.patience.look_ms = 100;
        let cluster = connect(nodes).await;
        let tags = numbers(12);
        let load = Load::begin(&cluster, &tags, 10);
        load.more(500).await;
        world.servers[0].pause();
        world.until_taken_over(1, Slot::new(0).expect("a slot"), 0).await;
        load.more(2_000).await;
        world.servers[0].resume();
        world.until_whole().await;
        load.more(500).await;
        load.end(&cluster).await;
    }
}

#[tokio::test]
async fn one_server_is_killed_and_calls_go_on_when_it_is_back() {
    for program in Program::all() {
        let mut world = World::one(program, &["--appendfsync", "always"]);
        let cluster = connect(world.nodes()).await;
        assert_eq!(cluster.call(long(), add("p", 0)).await, Ok(Value::Int(1)));
        world.servers[0].kill();
        // What is written before anybody notices is in doubt.
        assert!(cluster.call(soon(), add("p", 1)).await.is_err());
        let away = cluster.call(soon(), add("p", 1)).await;
        assert!(matches!(&away, Err(CallError::NotDone(why)) if why.contains("does not answer")), "{away:?}");
        let before = cluster.counts().retries;
        let (late, ()) = tokio::join!(cluster.call(long(), add("p", 2)), async {
            until(async || cluster.counts().retries > before + 2).await;
            world.servers[0].start();
        });
        assert_eq!(late, Ok(Value::Int(1)));
        assert_eq!(list(&cluster, "p").await, ["0", "2"]);
    }
}

#[tokio::test]
async fn a_call_whose_connection_breaks_is_in_doubt_or_asked_for_again_as_it_says() {
    for program in Program::all() {
        let mut world = World::one(program, &["--appendfsync", "always"]);
        let cluster = connect(world.nodes()).await;
        cluster.call(long(), add("p", 0)).await.expect("done");
        world.servers[0].pause();
        let once = Call { retry_in_doubt: false, ..add("p", 1) };
        let calls = cluster.calls(long(), vec![once, add("p", 2)]);
        let (answers, ()) = tokio::join!(calls, async {
            until(async || cluster.counts().calls == 3).await;
            world.servers[0].kill();
            world.servers[0].start();
        });
        assert!(matches!(&answers[0], Err(CallError::InDoubt(_))), "{answers:?}");
        assert_eq!(answers[1], Ok(Value::Int(1)));
        assert_eq!(list(&cluster, "p").await, ["0", "2"], "a server that is paused has read nothing");
    }
}

#[tokio::test]
async fn functions_that_a_server_forgot_are_loaded_again() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let cluster = connect(world.nodes()).await;
        cluster.call(long(), add("p", 0)).await.expect("done");
        world.ask(0, "FUNCTION FLUSH").await;
        assert_eq!(cluster.call(long(), add("p", 1)).await, Ok(Value::Int(1)));
        let unknown = Call { function: "story_of_another", ..add("p", 1) };
        let answer = cluster.call(long(), unknown).await;
        assert!(
            matches!(&answer, Err(CallError::Refused(fault)) if fault.details().contains("not found")),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn who_does_not_wait_any_more_is_not_written_for() {
    for program in Program::all() {
        let mut world = World::one(program, &["--appendfsync", "always"]);
        let cluster = connect(world.nodes()).await;
        world.servers[0].kill();
        let waiting = cluster.call(long(), add("p", 0));
        assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err(), "nobody answers");
        world.servers[0].start();
        cluster.call(long(), add("p", 1)).await.expect("done");
        assert_eq!(list(&cluster, "p").await, ["1"]);
    }
}
