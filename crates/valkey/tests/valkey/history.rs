//! Definitions that the servers have lost, or have older ones of: a flush, a snapshot, a backup, a failover that lost the last second.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use overtake_engine::conformance::refused;
use overtake_engine::{ConsumeRequest, Content, Engine, LeaseRequest, NewMessage, Target};
use overtake_lane::{Outcome, PartitionMode, Partitions, Refusal, Settings, VhostSettings};
use overtake_peer::Vault;
use overtake_valkey::cluster::Slot;
use overtake_valkey::engine::{ClusterEngine, Options};
use overtake_valkey::functions::DEFINITIONS;

use crate::processes::{processes, until};
use crate::world::{Program, World};

/// The keys of the definitions.
const KEYS: [&str; 4] = ["", ":log", ":tags", ":base"];

async fn forget(world: &World) {
    let all = KEYS.map(|key| format!("{DEFINITIONS}{key}")).join(" ");
    world.ask(0, &format!("DEL {all} {DEFINITIONS}:roll")).await;
}

/// Keeps the definitions as they are now.
async fn snapshot(world: &World) {
    for key in KEYS {
        world.ask(0, &format!("COPY {DEFINITIONS}{key} {{overtake}}:kept{key} REPLACE")).await;
    }
}

/// They are again as they were kept; what was no key then is none again.
async fn go_back(world: &World) {
    let words = [
        "EVAL",
        "for _, key in ipairs(ARGV) do if redis.call('COPY', KEYS[2] .. key, KEYS[1] .. key, 'REPLACE') == 0 then redis.call('DEL', KEYS[1] .. key) end end return 1",
        "2",
        DEFINITIONS,
        "{overtake}:kept",
    ];
    let words: Vec<&str> = words.into_iter().chain(KEYS).collect();
    world.try_ask_words(0, &words).await.expect("it answers").expect("done");
}

async fn publish(engine: &dyn Engine, queue: &str, body: &str) {
    let content = Content { body: body.to_owned().into(), ..Content::default() };
    let to = Target::Queue(queue.into());
    engine.publish(vec![NewMessage { to, content, ..NewMessage::default() }]).await.expect("published");
}

async fn next(engine: &dyn Engine, queue: &str) -> Option<String> {
    let leased = engine.lease(LeaseRequest::new(queue.into(), 1)).await.expect("leased");
    leased.first().map(|message| String::from_utf8_lossy(&message.content.body).into_owned())
}

async fn one(world: &World) -> Arc<ClusterEngine> {
    processes(world, 1).await.remove(0)
}

#[tokio::test]
async fn definitions_that_are_lost_are_written_back_by_a_broker_that_knows_them() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let running = one(&world).await;
        running.declare_queue("q", Settings::default()).await.expect("declared");
        publish(&*running, "q", "a").await;
        forget(&world).await;
        // One that comes now could begin anew.
        let new = one(&world).await;
        assert_eq!(next(&*new, "q").await.as_deref(), Some("a"));
        new.declare_queue("r", Settings::default()).await.expect("declared");
        until(|| async { running.queue("r").await.is_ok() }).await;
    }
}

#[tokio::test]
async fn definitions_that_went_back_are_written_back_by_a_broker_that_knows_more() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let running = one(&world).await;
    running.declare_queue("q", Settings::default()).await.expect("declared");
    snapshot(&world).await;
    running.declare_queue("r", Settings::default()).await.expect("declared");
    publish(&*running, "r", "a").await;
    go_back(&world).await;
    // With the next change, or when it says that it is there.
    running.declare_queue("s", Settings::default()).await.expect("declared");
    let new = one(&world).await;
    assert_eq!(next(&*new, "r").await.as_deref(), Some("a"));
    assert!(new.queue("q").await.is_ok() && new.queue("s").await.is_ok());
}

/// One key of them is gone, and the others are there.
#[tokio::test]
async fn a_part_of_the_definitions_that_is_lost_is_written_back_and_nobody_begins_without_it() {
    let Some(program) = Program::all().into_iter().next() else { return };
    for key in KEYS {
        let world = World::one(program, &[]);
        let all = processes(&world, 2).await;
        all[0].declare_queue("q", Settings::default()).await.expect("declared");
        until(|| async { all[1].queue("q").await.is_ok() }).await;
        world.ask(0, &format!("DEL {DEFINITIONS}{key}")).await;
        all[0].declare_queue("r", Settings::default()).await.expect("declared");
        until(|| async { all[1].queue("r").await.is_ok() }).await;
        let new = one(&world).await;
        assert!(new.queue("q").await.is_ok() && new.queue("r").await.is_ok(), "{key}");
        for engine in all.into_iter().chain([new]) {
            engine.close().await;
        }
        world.ask(0, &format!("DEL {DEFINITIONS}{key}")).await;
        let opened = ClusterEngine::open(Options::new(world.nodes(), Vault::ANY)).await;
        match (key, opened) {
            // Without the first of them nothing says that there were any.
            ("", opened) => assert!(opened.is_ok()),
            (":log" | ":tags" | ":base", Err(why)) => assert!(why.to_string().contains("lost a part")),
            (key, _) => panic!("{key}"),
        }
    }
}

/// Whoever knew them has stopped.
#[tokio::test]
async fn a_queue_of_lost_definitions_is_nobody_elses() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let before = one(&world).await;
        let vhost = before.declare_vhost("b", VhostSettings::default()).await.expect("declared");
        let there = before.in_vhost(vhost);
        there.declare_queue("secret", Settings::default()).await.expect("declared");
        publish(&*there, "secret", "a").await;
        drop(there);
        before.close().await;
        forget(&world).await;
        let after = one(&world).await;
        after.declare_queue("fresh", Settings::default()).await.expect("declared");
        assert_eq!(next(&*after, "fresh").await, None);
        let orphans = after.orphans().await.expect("listed");
        let seen: Vec<_> = orphans
            .iter()
            .map(|one| (one.vhost.as_deref(), &*one.name, one.messages, one.partitions))
            .collect();
        assert_eq!(seen, [(Some("b"), "secret", 1, 1)]);
        let number = orphans[0].queue;
        after.adopt_orphan(number, None).await.expect("adopted");
        let there = after.in_vhost(after.vhost("b").await.expect("it is there").vhost);
        assert_eq!(next(&*there, "secret").await.as_deref(), Some("a"));
        assert_eq!(after.orphans().await.expect("listed"), []);
    }
}

#[tokio::test]
async fn a_queue_of_lost_definitions_is_adopted_by_another_name_with_all_its_partitions() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::cluster(program, 0, &[]).await;
    let before = one(&world).await;
    let partitions = Partitions { mode: PartitionMode::Hash, count: 5, ..Partitions::default() };
    let settings = Settings { partitions, ..Settings::default() };
    before.declare_queue("q", settings.clone()).await.expect("declared");
    for body in ["a", "b", "c", "d"] {
        publish(&*before, "q", body).await;
    }
    before.close().await;
    let holds = world.primary_of(0, Slot::of(DEFINITIONS.as_bytes())).await.expect("somebody");
    let all = KEYS.map(|key| format!("{DEFINITIONS}{key}")).join(" ");
    world.ask(holds, &format!("DEL {all} {DEFINITIONS}:roll")).await;
    let after = one(&world).await;
    after.declare_queue("q", Settings::default()).await.expect("declared");
    let orphan = after.orphans().await.expect("listed").remove(0);
    assert_eq!((orphan.messages, orphan.partitions), (4, 5));
    after.adopt_orphan(orphan.queue, Some("q2")).await.expect("adopted");
    assert_eq!(after.queue("q2").await.expect("there").effective_settings(), &settings);
    let mut got = BTreeSet::new();
    while let Some(body) = next(&*after, "q2").await {
        got.insert(body);
    }
    assert_eq!(got.len(), 4);
    assert_eq!(next(&*after, "q").await, None);
}

#[tokio::test]
async fn a_queue_of_lost_definitions_can_be_removed_and_one_that_is_defined_cannot() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let before = one(&world).await;
    before.declare_queue("q", Settings::default()).await.expect("declared");
    publish(&*before, "q", "a").await;
    before.close().await;
    forget(&world).await;
    let after = one(&world).await;
    after.declare_queue("q", Settings::default()).await.expect("declared");
    publish(&*after, "q", "b").await;
    let own = after.queue("q").await.expect("there").queue;
    assert_eq!(refused(after.remove_orphan(own).await), Refusal::NoSuchOrphan);
    let orphan = after.orphans().await.expect("listed").remove(0);
    assert_eq!(refused(after.adopt_orphan(orphan.queue, None).await), Refusal::QueueExists);
    assert_eq!(after.remove_orphan(orphan.queue).await, Ok(1));
    assert_eq!(after.orphans().await.expect("listed"), []);
    assert_eq!(next(&*after, "q").await.as_deref(), Some("b"));
}

/// A backup of another time, or of other servers, is brought under brokers that run.
#[tokio::test]
async fn other_definitions_than_a_broker_knew_end_its_sessions_and_hold() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let first = one(&world).await;
    first.declare_queue("theirs", Settings::default()).await.expect("declared");
    first.close().await;
    snapshot(&world).await;
    forget(&world).await;
    let running = one(&world).await;
    running.declare_queue("q", Settings::default()).await.expect("declared");
    publish(&*running, "q", "a").await;
    let session = running.connect();
    let mut consumer = session.consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    assert_eq!(consumer.next().await.expect("it comes").count, 1);
    go_back(&world).await;
    assert!(consumer.next().await.is_none(), "the session is over");
    until(|| async { running.queue("theirs").await.is_ok() }).await;
    assert!(running.queue("q").await.is_err());
    let orphans = running.orphans().await.expect("listed");
    assert_eq!(orphans.iter().map(|one| (&*one.name, one.messages)).collect::<Vec<_>>(), [("q", 1)]);
    // Nobody's version is greater than what is defined from now on.
    running.declare_queue("new", Settings::default()).await.expect("declared");
    publish(&*running, "new", "b").await;
    assert_eq!(next(&*running, "new").await.as_deref(), Some("b"));
}

/// Nobody was there when they went back; a place knows a later version of its queue's settings.
#[tokio::test]
async fn settings_hold_that_are_changed_after_definitions_went_back_unseen() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let before = one(&world).await;
    before.declare_queue("q", Settings::default()).await.expect("declared");
    snapshot(&world).await;
    for max_length in 1..20 {
        before.declare_queue("q", Settings { max_length, ..Settings::default() }).await.expect("declared");
    }
    before.close().await;
    go_back(&world).await;
    let options = Options::new(world.nodes(), Vault::ANY);
    let after = ClusterEngine::open(options).await.expect("opens");
    after.declare_queue("q", Settings { max_length: 2, ..Settings::default() }).await.expect("declared");
    for body in ["a", "b", "c"] {
        publish(&after, "q", body).await;
    }
    let view = after.queue("q").await.expect("there");
    assert_eq!(view.lanes.iter().map(|lane| lane.ready).sum::<u64>(), 2, "what was said last holds");
}

/// A replica that was behind takes over: the place has counted fewer calls than were heard of.
#[tokio::test]
async fn what_a_place_shows_that_went_back_is_believed() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    // Nobody looks at it unasked.
    let options = Options { sweep: Duration::from_secs(3_600), ..Options::new(world.nodes(), Vault::ANY) };
    let engine = ClusterEngine::open(options).await.expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut consumer = engine.consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    for body in ["a", "b", "c"] {
        publish(&engine, "q", body).await;
        let leased = consumer.next().await.expect("it comes");
        assert_eq!(leased.content.body, body);
        engine.settle(vec![leased.receipt], Outcome::Ack).await.expect("settled");
    }
    let queue = engine.queue("q").await.expect("there").queue.0;
    world.ask(0, &format!("HSET {{{queue}:0}}:c calls 1 lease 1 leaves 1")).await;
    publish(&engine, "q", "d").await;
    assert_eq!(consumer.next().await.expect("it comes").content.body, "d");
}
