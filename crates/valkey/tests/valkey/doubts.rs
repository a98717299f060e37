//! What an answer promises, and when there is none.

use overtake_valkey::cluster::{Call, CallError};
use redis::Value;

use crate::story::{add, all, connect, list, long, soon};
use crate::world::{Program, World, until};

fn doubt(answer: &Result<Value, CallError>) -> &str {
    match answer {
        Err(CallError::InDoubt(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// A cluster in which a write waits for a replica, and where the slot of `p` is.
async fn waiting(program: Program) -> (World, overtake_valkey::cluster::Nodes, usize) {
    let world = World::cluster(program, 1, &[]).await;
    let primary = world.primary_of(0, overtake_valkey::cluster::Slot::of(b"p")).await.expect("held");
    let mut nodes = world.nodes();
    nodes.durability.replicas_acked = 1;
    nodes.patience.shortfall_ms = 60_000;
    nodes.patience.replicas_ms = 50;
    (world, nodes, primary)
}

#[tokio::test]
async fn a_write_that_too_few_replicas_have_is_in_doubt_until_they_have_it() {
    for program in Program::all() {
        let (world, nodes, primary) = waiting(program).await;
        let cluster = connect(nodes).await;
        assert_eq!(cluster.call(long(), add("p", 0)).await, Ok(Value::Int(1)));
        world.servers[primary + 3].pause();
        let short = cluster.call(soon(), add("p", 1)).await;
        assert!(doubt(&short).contains("0 of 1 replicas"), "{short:?}");
        assert_eq!(list(&cluster, "p").await, ["0", "1"], "it was done, and a read waits for nobody");
        let once = Call { retry_in_doubt: false, ..add("p", 2) };
        let answers = cluster.calls(long(), vec![once, add("p", 3)]);
        let (answers, ()) = tokio::join!(answers, async {
            let before = cluster.counts().wait_shortfalls;
            until(async || cluster.counts().wait_shortfalls > before + 1).await;
            world.servers[primary + 3].resume();
        });
        assert_eq!(answers, [Ok(Value::Int(1)), Ok(Value::Int(1))], "done once, and waited for twice");
    }
}

/// Valkey's `WAIT` waits for what its own connection wrote, and who finds it done writes nothing.
#[tokio::test]
async fn who_asks_again_over_another_connection_for_what_is_done_waits_for_replicas_all_the_same() {
    for program in Program::all() {
        let (world, nodes, primary) = waiting(program).await;
        let first = connect(nodes.clone()).await;
        let second = connect(nodes).await;
        assert_eq!(second.call(long(), add("p", 0)).await, Ok(Value::Int(1)));
        world.servers[primary + 3].pause();
        assert!(doubt(&first.call(soon(), add("p", 1)).await).contains("0 of 1 replicas"));
        let again = second.call(soon(), add("p", 1)).await;
        assert!(doubt(&again).contains("0 of 1 replicas"), "{again:?}");
        world.servers[primary + 3].resume();
        assert_eq!(second.call(long(), add("p", 1)).await, Ok(Value::Int(0)));
    }
}

#[tokio::test]
async fn what_is_only_in_memory_is_waited_for_where_the_log_is_asked_for() {
    for program in Program::all() {
        let mut world = World::one(program, &["--appendfsync", "everysec"]);
        let mut nodes = world.nodes();
        nodes.durability.is_fsync_acked = true;
        if program == Program::Redis {
            let library = crate::story::LIBRARY;
            let refused =
                overtake_valkey::cluster::Cluster::connect(nodes, overtake_peer::Vault::ANY, library).await;
            let why = refused.err().expect("Redis 7.0 cannot");
            assert!(why.contains("WAITAOF") && why.contains("upgrade"), "{why}");
            continue;
        }
        let cluster = connect(nodes).await;
        assert_eq!(cluster.call(long(), add("p", 0)).await, Ok(Value::Int(1)));
        let log = std::fs::read_dir(world.servers[0].dir().join("appendonlydir")).expect("there");
        let logs: Vec<_> =
            log.map(|file| std::fs::read(file.expect("a file").path()).expect("read")).collect();
        assert!(logs.iter().any(|log| log.windows(6).any(|part| part == b"{p}:id")), "it is in the log");
        world.servers[0].kill();
        world.servers[0].start();
        assert_eq!(
            cluster.call(long(), all("p")).await,
            Ok(Value::Array(vec![Value::BulkString(b"0".to_vec())]))
        );
    }
}
