//! Several processes on the same servers: none has anything that the others need.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use overtake_access::{Account, Change, Gate, Permission};
use overtake_engine::conformance::{binding, refused};
use overtake_engine::{ConsumeRequest, Content, DeclareQueue, Engine, LeaseRequest, NewMessage, Target};
use overtake_lane::{
    ExchangeKind, ExchangeSettings, Existing, Identity, Outcome, PartitionMode, Partitions, Refusal,
    Settings, Time,
};
use overtake_peer::Vault;
use overtake_valkey::engine::{ClusterEngine, Options};
use overtake_valkey::functions::{DEFINITIONS, Of};
use redis::Value;
use tokio::task::JoinSet;

use crate::world::{Program, World, text};

pub(crate) async fn processes(world: &World, count: usize) -> Vec<Arc<ClusterEngine>> {
    let mut all = Vec::new();
    for _ in 0..count {
        let options = Options::new(world.nodes(), Vault::ANY);
        all.push(Arc::new(ClusterEngine::open(options).await.expect("the servers are there")));
    }
    all
}

/// The names of the processes at places.
pub(crate) async fn callers(world: &World) -> Vec<String> {
    let Value::Array(names) = world.ask(0, &format!("ZRANGE {DEFINITIONS}:roll 0 -1")).await else {
        panic!("a set has members");
    };
    names.into_iter().map(|name| format!("p{}", text(name))).collect()
}

/// Whose places the queue `q` has.
pub(crate) async fn of_q(world: &World) -> Of {
    Of::queue(&world.text(0, &format!("HGET {DEFINITIONS} incarnation")).await, "/", "q")
}

fn message(to: Target, priority: i64, body: &str) -> NewMessage {
    let content = Content { body: body.to_owned().into(), ..Content::default() };
    NewMessage { to, priority: priority.into(), content, ..NewMessage::default() }
}

/// Waits for what one process has defined to be known to another.
pub(crate) async fn until<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}

/// Users, permissions and tokens are the same in every process, whichever changes them.
#[tokio::test]
async fn who_may_what_is_heard_by_other_processes() {
    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let all = processes(&world, 2).await;
    let mut gates = Vec::new();
    for engine in &all {
        let engine = Arc::clone(engine) as Arc<dyn Engine>;
        let gate = Arc::new(Gate::open(engine, || Time(1)).await.expect("it opens"));
        let followed = Arc::clone(&gate);
        tokio::spawn(async move { followed.follow().await });
        gates.push(gate);
    }
    let mut changes = gates[1].roll().changes();
    let mut change = async |change: Change| {
        changes.mark_unchanged();
        gates[0].change(None, vec![change]).await.expect("changed");
        changes.changed().await.expect("the gate is there");
    };
    let password = Some(gates[0].hashed("secret".to_owned()).await.expect("a password"));
    let account = Account { password, ..Account::default() };
    change(Change::PutUser { name: "ann".into(), account }).await;
    let ann = gates[1].log_in("ann", "secret", HERE).await.expect("known here, too");
    assert!(ann.must_enter("/").is_err());
    let permission = Permission::everything();
    change(Change::SetPermission { user: "ann".into(), vhost: "/".into(), permission }).await;
    assert!(ann.must_enter("/").is_ok());
    change(Change::ForgetVhost { vhost: "/".into() }).await;
    assert!(ann.must_enter("/").is_err());
    change(Change::DeleteUser { name: "ann".into() }).await;
    assert!(!ann.is_there(Time(1)));
    assert!(gates[1].log_in("ann", "secret", HERE).await.is_err());
    for engine in all {
        engine.close().await;
    }
}

#[tokio::test]
async fn what_one_publishes_another_gives_in_order() {
    for program in Program::all() {
        let world = World::cluster(program, 0, &[]).await;
        let all = processes(&world, 3).await;
        all[0].declare_queue("q", Settings::default()).await.expect("declared");
        for (at, engine) in all.iter().enumerate() {
            until(|| async { engine.queue("q").await.is_ok() }).await;
            for priority in [1, 9, 5] {
                let body = format!("{priority}-{at}");
                let to = Target::Queue("q".into());
                engine.publish(vec![message(to, priority, &body)]).await.expect("published");
            }
        }
        let mut got = Vec::new();
        for turn in 0..9 {
            let engine = &all[turn % 3];
            let leased = engine.lease(LeaseRequest::new("q".into(), 1)).await.expect("leased");
            got.push(String::from_utf8_lossy(&leased[0].content.body).into_owned());
            // Whoever has the receipt may settle it, wherever that is asked.
            let other = &all[(turn + 1) % 3];
            let settled = other.settle(vec![leased[0].receipt], Outcome::Ack).await;
            assert_eq!(settled, Ok(vec![Ok(())]));
        }
        assert_eq!(got.join(" "), "9-0 9-1 9-2 5-0 5-1 5-2 1-0 1-1 1-2");
        for engine in all {
            engine.close().await;
        }
    }
}

#[tokio::test]
async fn a_lease_that_was_answered_looks_no_further() {
    const PLACES: u16 = 64;
    const MESSAGES: u64 = 400;
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let options = Options { sweep: Duration::from_secs(3_600), ..Options::new(world.nodes(), Vault::ANY) };
    let engine = Arc::new(ClusterEngine::open(options).await.expect("the servers are there"));
    let partitions = Partitions { mode: PartitionMode::Hash, count: PLACES, ..Partitions::default() };
    engine.declare_queue("q", Settings { partitions, ..Settings::default() }).await.expect("declared");
    for _ in 0..MESSAGES {
        engine.publish(vec![message(Target::Queue("q".into()), 5, "a")]).await.expect("published");
    }
    let before = engine.cluster().counts().calls;
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let engine = Arc::clone(&engine);
        callers.spawn(async move {
            let mut count = 0;
            loop {
                let leased = engine.lease(LeaseRequest::new("q".into(), 1)).await.expect("leased");
                if leased.is_empty() {
                    return count;
                }
                count += leased.len() as u64;
            }
        });
    }
    let all: u64 = callers.join_all().await.into_iter().sum();
    assert_eq!(all, MESSAGES);
    // If each of them had looked at all places in the end it would be tens of thousands.
    let calls = engine.cluster().counts().calls - before;
    assert!(calls < MESSAGES * 16, "{calls}");
    engine.close().await;
}

#[tokio::test]
async fn a_consumer_of_one_gets_what_another_publishes_by_an_exchange_of_a_third() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let all = processes(&world, 3).await;
    all[0].declare_queue("q", Settings::default()).await.expect("declared");
    until(|| async { all[1].queue("q").await.is_ok() && all[2].queue("q").await.is_ok() }).await;
    let mut consumer = all[1].consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    all[2].declare_exchange("x", ExchangeSettings::new(ExchangeKind::Topic)).await.expect("declared");
    all[2].bind(binding("x", "q a.*")).await.expect("bound");
    until(|| async { all[0].bindings("x").await.is_ok_and(|bindings| bindings.len() == 1) }).await;
    let to = Target::Exchange {
        name: "x".into(),
        routing_key: "a.b".into(),
        more_keys: Vec::new(),
        mandatory: true,
    };
    all[0].publish(vec![message(to, 3, "by x")]).await.expect("published");
    assert_eq!(consumer.next().await.expect("it comes").content.body, "by x");
}

#[tokio::test]
async fn two_that_define_at_once_both_do() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let all = processes(&world, 2).await;
    for round in 0..20 {
        let names = [format!("a{round}"), format!("b{round}")];
        let (one, other) = tokio::join!(
            all[0].declare_queue(&names[0], Settings::default()),
            all[1].declare_queue(&names[1], Settings::default())
        );
        assert!(one.expect("declared").made && other.expect("declared").made);
    }
    for engine in &all {
        until(|| async { engine.queues(None, 100).await.is_ok_and(|page| page.queues.len() == 40) }).await;
    }
    // None has the number of another.
    let page = all[0].queues(None, 100).await.expect("shown");
    let numbers: std::collections::BTreeSet<_> = page.queues.iter().map(|queue| queue.queue).collect();
    assert_eq!(numbers.len(), 40);
}

#[tokio::test]
async fn a_queue_that_is_one_sessions_own_is_nobody_elses_and_goes_with_it() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let all = processes(&world, 2).await;
    let session = all[0].connect();
    let identity = Identity { exclusive: true, durable: false, ..Identity::default() };
    let own = DeclareQueue { identity, existing: Existing::Same, ..DeclareQueue::default() };
    session.declare("mine", own).await.expect("declared");
    until(|| async { all[1].queue("mine").await.is_ok() }).await;
    assert_eq!(refused(all[1].connect().get("mine", false).await), Refusal::QueueLocked);
    drop(session);
    until(|| async { all[1].queue("mine").await.is_err() }).await;
}

#[tokio::test]
async fn what_a_process_held_that_ends_is_ready_for_others() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let all = processes(&world, 2).await;
    all[0].declare_queue("q", Settings::default()).await.expect("declared");
    until(|| async { all[1].queue("q").await.is_ok() }).await;
    let mut consumer = all[0].consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    all[1].publish(vec![message(Target::Queue("q".into()), 5, "a")]).await.expect("published");
    assert_eq!(consumer.next().await.expect("it comes").count, 1);
    let mut other = all[1].consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    all[0].close().await;
    let again = other.next().await.expect("it comes");
    assert_eq!((again.count, &again.content.body[..]), (2, &b"a"[..]));
}

/// Servers may go back in time: a snapshot, a backup, a failover that lost the last second.
#[tokio::test]
async fn a_process_that_comes_when_the_servers_have_forgotten_the_others_is_none_of_them() {
    const MESSAGES: u64 = 40;
    for program in Program::all() {
        let world = World::one(program, &[]);
        let mut all = processes(&world, 1).await;
        all[0].declare_queue("q", Settings::default()).await.expect("declared");
        world.ask(0, &format!("DEL {DEFINITIONS}:roll")).await;
        world.ask(0, &format!("HDEL {DEFINITIONS} processes")).await;
        all.extend(processes(&world, 1).await);
        until(|| async { all[1].queue("q").await.is_ok() }).await;
        for at in 0..MESSAGES {
            let engine = &all[at as usize % 2];
            engine.publish(vec![message(Target::Queue("q".into()), 5, "a")]).await.expect("published");
        }
        let view = all[1].queue("q").await.expect("it is there");
        let ready: u64 = view.lanes.iter().map(|lane| lane.ready).sum();
        assert_eq!(ready, MESSAGES, "each that was confirmed is there");
    }
}

#[tokio::test]
async fn a_process_that_the_servers_have_forgotten_ends_its_sessions_and_joins_again() {
    let Some(program) = Program::all().into_iter().next() else { return };
    let world = World::one(program, &[]);
    let all = processes(&world, 2).await;
    all[0].declare_queue("q", Settings::default()).await.expect("declared");
    let session = all[0].connect();
    let identity = Identity { exclusive: true, durable: false, ..Identity::default() };
    let own = DeclareQueue { identity, existing: Existing::Same, ..DeclareQueue::default() };
    session.declare("mine", own).await.expect("declared");
    until(|| async { all[1].queue("mine").await.is_ok() }).await;
    let mut consumer = session.consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    world.ask(0, &format!("DEL {DEFINITIONS}:roll")).await;
    assert!(consumer.next().await.is_none(), "its session is over");
    until(|| async { all[1].queue("mine").await.is_err() }).await;
    until(|| async { world.text(0, &format!("ZCARD {DEFINITIONS}:roll")).await == "2" }).await;
    let mut consumer = all[0].consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    all[1].publish(vec![message(Target::Queue("q".into()), 5, "a")]).await.expect("published");
    assert_eq!(&consumer.next().await.expect("it comes").content.body[..], b"a");
}
