//! Announcements that are lost: what they would have told is known all the same.

use std::sync::Arc;

use overtake_access::{Account, Change, Gate, Permission};
use overtake_engine::Engine;
use overtake_lane::{Settings, Time};
use overtake_peer::{Secret, Vault};
use overtake_valkey::cluster::Nodes;
use overtake_valkey::engine::{ClusterEngine, Options};

use crate::processes::{processes, until};
use crate::world::{Program, World};

/// A broker that may hear no channel, and one that may.
async fn deaf_and_hearing(world: &World) -> [Arc<ClusterEngine>; 2] {
    world.ask(0, "ACL SETUSER deaf reset on >pw ~* resetchannels +@all").await;
    let file = world.servers[0].dir().join("password");
    std::fs::write(&file, "pw").expect("a file");
    let nodes = Nodes { username: Some("deaf".into()), password: Some(Secret::File(file)), ..world.nodes() };
    let deaf = ClusterEngine::open(Options::new(nodes, Vault::ANY)).await.expect("the servers are there");
    let hearing = processes(world, 1).await.remove(0);
    [Arc::new(deaf), hearing]
}

async fn gate(engine: &Arc<ClusterEngine>) -> Arc<Gate> {
    let engine = Arc::clone(engine) as Arc<dyn Engine>;
    let gate = Arc::new(Gate::open(engine, || Time(1)).await.expect("it opens"));
    let followed = Arc::clone(&gate);
    tokio::spawn(async move { followed.follow().await });
    gate
}

#[tokio::test]
async fn what_is_defined_is_known_to_a_broker_that_was_not_told() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let [deaf, hearing] = deaf_and_hearing(&world).await;
        hearing.declare_queue("q", Settings::default()).await.expect("declared");
        until(|| async { deaf.queue("q").await.is_ok() }).await;
        for engine in [deaf, hearing] {
            engine.close().await;
        }
    }
}

#[tokio::test]
async fn whoever_was_deleted_is_gone_at_a_broker_that_was_not_told() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let all = deaf_and_hearing(&world).await;
        let [deaf, hearing] = &all;
        // The first one to open it writes who is there.
        let hearing = gate(hearing).await;
        until(|| async { !deaf.metadata().await.expect("it answers").is_empty() }).await;
        let deaf = gate(deaf).await;
        let permission = Permission::everything();
        let ann = Change::PutUser { name: "ann".into(), account: Account::default() };
        let may = Change::SetPermission { user: "ann".into(), vhost: "/".into(), permission };
        hearing.change(None, vec![ann, may]).await.expect("changed");
        let ann = deaf.on_behalf_of("ann");
        until(|| async { ann.must_enter("/").is_ok() }).await;
        hearing.change(None, vec![Change::ForgetVhost { vhost: "/".into() }]).await.expect("changed");
        until(|| async { ann.must_enter("/").is_err() }).await;
        assert!(ann.is_there(Time(1)));
        hearing.change(None, vec![Change::DeleteUser { name: "ann".into() }]).await.expect("changed");
        until(|| async { !ann.is_there(Time(1)) }).await;
        for engine in all {
            engine.close().await;
        }
    }
}
