//! A user with only the rights that are needed.

use overtake_peer::{Secret, Vault};
use overtake_valkey::cluster::{CallError, Cluster, Heard, Nodes, facts};
use redis::Value;

use crate::story::{LIBRARY, add, connect, list, long};
use crate::world::{Program, World, until};

/// What the way to the functions needs; `WAITAOF` is of newer servers.
const RIGHTS: &str = "+ping +info +cluster|slots +cluster|info +function|list +function|load +fcall +fcall_ro +wait +asking +ssubscribe +sunsubscribe";
/// What the functions do, which the user must have the right to, too.
const OF_FUNCTIONS: &str = "+sadd +rpush +lrange";
/// The mark before a wait.
const OF_MARK: &str = "+set";

async fn allow(world: &World, rights: &str) {
    for at in 0..world.servers.len() {
        world.ask(at, &format!("ACL SETUSER broker reset on >pw ~{{* ~story_mark:* &{{* {rights}")).await;
    }
}

fn nodes(world: &World) -> Nodes {
    let file = world.servers[0].dir().join("password");
    std::fs::write(&file, "pw").expect("a file");
    let mut nodes =
        Nodes { username: Some("broker".into()), password: Some(Secret::File(file)), ..world.nodes() };
    nodes.durability.replicas_acked = 1;
    nodes
}

#[tokio::test]
async fn a_user_with_the_rights_that_are_listed_can_do_all_of_it() {
    for program in Program::all() {
        let world = World::cluster(program, 1, &[]).await;
        allow(&world, &format!("{RIGHTS} {OF_FUNCTIONS} {OF_MARK}")).await;
        let cluster = connect(nodes(&world)).await;
        assert_eq!(cluster.call(long(), add("p", 1)).await, Ok(Value::Int(1)));
        assert_eq!(list(&cluster, "p").await, ["1"]);
        let slot = overtake_valkey::cluster::Slot::of(b"p");
        let from = world.primary_of(0, slot).await.expect("held");
        let mut heard = cluster.subscribe("{p}:heads".into()).await;
        assert_eq!(heard.next().await, Some(Heard::Gap));
        world.begin_move(slot, from, (from + 1) % 3).await;
        world.move_keys(slot, from, (from + 1) % 3, 9).await;
        assert_eq!(cluster.call(long(), add("p", 2)).await, Ok(Value::Int(1)), "asked for on its way");
        world.end_move(slot, from, (from + 1) % 3).await;
        assert_eq!(heard.next().await, Some(Heard::Gap));
        assert_eq!(list(&cluster, "p").await, ["1", "2"]);
        let counts = cluster.counts();
        assert_eq!(counts.wait_shortfalls, 0, "{counts:?}");
        let facts = cluster.facts().await;
        assert!(
            facts.nodes.iter().all(|node| node.trouble.is_none() && node.appendfsync.is_none()),
            "{facts:#?}"
        );
        assert!(facts.nodes.iter().all(|node| node.rights_missing.is_empty()), "{facts:#?}");
    }
}

#[tokio::test]
async fn a_right_that_is_missing_is_named() {
    for program in Program::all() {
        let world = World::cluster(program, 1, &[]).await;
        for (missing, named) in
            [("+info", "INFO"), ("+cluster|slots", "CLUSTER SLOTS"), ("+function|list", "FUNCTION LIST")]
        {
            allow(&world, &RIGHTS.replace(missing, "")).await;
            let why = Cluster::connect(nodes(&world), Vault::ANY, LIBRARY).await.err().expect("refused");
            assert!(
                why.contains("NOPERM") && why.contains(named) && why.contains("ACL SETUSER"),
                "{missing}: {why}"
            );
        }
        allow(&world, RIGHTS).await;
        let cluster = connect(nodes(&world)).await;
        let answer = cluster.call(long(), add("p", 1)).await;
        assert!(matches!(&answer, Err(CallError::Refused(_))), "{answer:?}");
        allow(&world, &format!("{RIGHTS} {OF_FUNCTIONS}")).await;
        let cluster = connect(nodes(&world)).await;
        let (unmarked, ()) = tokio::join!(cluster.call(crate::story::soon(), add("p", 1)), async {
            until(async || cluster.counts().batches > 1).await;
        });
        assert!(
            matches!(&unmarked, Err(CallError::InDoubt(why)) if why.contains("story_mark")),
            "{unmarked:?}"
        );
    }
}

#[tokio::test]
async fn facts_name_each_right_that_is_missing_and_change_nothing() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let before = world.text(0, "DBSIZE").await;
        let rights = format!("{RIGHTS} {OF_MARK}");
        for right in [
            "+function|load",
            "+fcall",
            "+fcall_ro",
            "+wait",
            "+asking",
            "+ssubscribe",
            "+sunsubscribe",
            "+set",
        ] {
            let fewer: Vec<_> = rights.split(' ').filter(|there| *there != right).collect();
            allow(&world, &fewer.join(" ")).await;
            let found = facts(&nodes(&world), Vault::ANY, LIBRARY).await.expect("it answers");
            assert!(found.nodes.iter().all(|node| node.rights_missing == [right]), "{right}: {found:#?}");
        }
        for at in 0..world.servers.len() {
            world.ask(at, &format!("ACL SETUSER broker reset on >pw {rights}")).await;
        }
        let found = facts(&nodes(&world), Vault::ANY, LIBRARY).await.expect("it answers");
        let patterns = ["~{*", "~story_mark:*", "&{*"];
        assert!(found.nodes.iter().all(|node| node.rights_missing == patterns), "{found:#?}");
        assert_eq!(world.text(0, "DBSIZE").await, before);
        assert_eq!(
            world.ask(0, "FUNCTION LIST").await,
            Value::Array(vec![]),
            "asking for facts loads nothing"
        );
    }
}
