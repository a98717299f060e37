//! Scheduling: what caps, histories and keys cost beside the same queue without them, and how quickly a queue of work is steered.
//!
//! In this process, 64-byte bodies, five levels, every answer after its `fdatasync`; broker, disk and asking thread share the machine.
//! Each shape runs several times in turn with the one without anything, and the middle of them counts.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use overtake_engine::{Browse, Content, Engine, LeaseRequest, LocalEngine, NewMessage, Select, Target};
use overtake_lane::{BrowseOrder, Given, LaneSettings, Outcome, RateLimit, Scheme, Settings};
use tokio::task::JoinSet;

use crate::Plan;
use crate::proc::Memory;
use crate::reference::Dice;
use crate::report::Row;
use crate::spread::Spread;

const QUEUE: &str = "jobs";
const LEVELS: [&str; 5] = ["critical", "high", "normal", "low", "background"];
const ROUNDS: usize = 5;
/// Callers that lease messages of keys.
const KEYS_AT_ONCE: usize = 20;
/// Messages that wait while a queue is steered.
const PENDING: usize = 100_000;

fn named() -> Settings {
    Settings { scheme: Scheme::Named, ..Settings::default() }
}

/// What is compared: a name, settings, and how many work at once.
fn shapes() -> Vec<(&'static str, Settings)> {
    let kept = [("background".to_owned(), LaneSettings { max_active: 600 })].into();
    let rate = RateLimit { messages: 1_000_000, per_ms: 1_000 };
    vec![
        ("max_active", Settings { max_active: 1_024, ..named() }),
        ("max_active and a lane's", Settings { max_active: 1_024, lanes: kept, ..named() }),
        ("a rate that never binds", Settings { rate_limit: Some(rate), ..named() }),
        ("group_limit, 1,000 keys", Settings { group_limit: 100, ..named() }),
        ("fair_keys, 1,000 keys", Settings { fair_keys: true, ..named() }),
        ("a history", Settings { history: Some("past".into()), ..named() }),
    ]
}

/// `--only=rate`, `--only=steer` or `--only=keys` measures one of them.
pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory for the store");
    let mut rows = Vec::new();
    if plan.wants("rate") {
        runtime.block_on(rates(dir.path(), plan, &mut rows));
    }
    if plan.wants("steer") {
        rows.extend(runtime.block_on(steer(dir.path())));
    }
    if plan.wants("keys") {
        rows.extend(runtime.block_on(keys(dir.path(), plan)));
    }
    rows
}

async fn rates(dir: &Path, plan: Plan, rows: &mut Vec<Row>) {
    let messages = if plan.quick { 20_000 } else { plan.times(100_000) };
    let shapes = shapes();
    let mut took: Vec<Vec<f64>> = vec![Vec::new(); shapes.len() + 1];
    for round in 0..if plan.quick { 1 } else { ROUNDS } {
        for (at, settings) in
            [&named()].into_iter().chain(shapes.iter().map(|(_, settings)| settings)).enumerate()
        {
            let dir = dir.join(format!("{round}-{at}"));
            took[at].push(drained(&dir, settings.clone(), messages).await);
            std::fs::remove_dir_all(&dir).expect("it was there");
        }
    }
    let middle = |at: usize| {
        let mut all = took[at].clone();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let row = |what: &str, at| {
        Row::of_rate(format!("lease 1 + ack 1, 1,024 at once: {what}"), "messages", middle(at))
    };
    rows.push(row("nothing", 0).reference());
    for (at, (what, _)) in (1..).zip(&shapes) {
        rows.push(row(what, at).beside(middle(at) / middle(0)));
    }
}

fn message(at: usize, priority: &str) -> NewMessage {
    NewMessage {
        to: Target::Queue(QUEUE.into()),
        priority: Given::from(priority),
        id: Some(format!("m{at}")),
        key: Some(format!("k{}", at % 1_000)),
        content: Content { body: Bytes::from_static(&[7; 64]), ..Content::default() },
        ..NewMessage::default()
    }
}

async fn fill(engine: &LocalEngine, messages: usize) {
    let mut dice = Dice::new();
    for from in (0..messages).step_by(1_000) {
        let batch = (from..from + 1_000).map(|at| message(at, LEVELS[dice.roll(5) as usize]));
        engine.publish(batch.collect()).await.map(drop).expect("there is room");
    }
}

fn one(wait_ms: u64) -> LeaseRequest {
    LeaseRequest { wait_ms, ..LeaseRequest::new(QUEUE.into(), 1) }
}

/// Messages per second until nothing is left.
async fn drained(dir: &Path, settings: Settings, messages: usize) -> f64 {
    let engine = Arc::new(LocalEngine::open(dir).expect("a new store"));
    engine.declare_queue(QUEUE, settings).await.expect("a new queue");
    let past = Settings { max_length: 10_000, ..named() };
    engine.declare_queue("past", past).await.expect("a new queue");
    fill(&engine, messages).await;
    let start = Instant::now();
    let mut open = JoinSet::new();
    for _ in 0..1_024 {
        let engine = Arc::clone(&engine);
        open.spawn(async move {
            loop {
                let leased = engine.lease(one(0)).await.expect("a lease");
                let Some(message) = leased.first() else { return };
                let receipts = vec![message.receipt];
                engine.settle(receipts, Outcome::Ack).await.map(drop).expect("an acknowledgement");
            }
        });
    }
    open.join_all().await;
    let rate = messages as f64 / start.elapsed().as_secs_f64();
    engine.close();
    rate
}

/// A queue in which much waits: another priority, a page of the list, and how soon what is urgent begins.
async fn steer(dir: &Path) -> Vec<Row> {
    let engine = LocalEngine::open(dir.join("steer")).expect("a new store");
    let kept = [("background".to_owned(), LaneSettings { max_active: 6 })].into();
    let settings = Settings { max_active: 10, lanes: kept, ..named() };
    engine.declare_queue(QUEUE, settings).await.expect("a new queue");
    fill(&engine, PENDING).await;
    let (mut dice, mut moved, mut listed, mut begun) =
        (Dice::new(), Spread::default(), Spread::default(), Spread::default());
    for _ in 0..2_000 {
        let select = Select::Id(format!("m{}", dice.roll(PENDING as u64)));
        let level = LEVELS[dice.roll(5) as usize];
        moved.saw(timed(engine.reprioritise(QUEUE, select, level.into())).await);
        let page = Browse { order: BrowseOrder::Newest, with_total: true, limit: 50, ..Browse::default() };
        listed.saw(timed(engine.browse(QUEUE, page)).await);
    }
    engine.purge(QUEUE, None).await.expect("it is there");
    let long = (0..1_000).map(|at| message(at, "background"));
    engine.publish(long.collect()).await.map(drop).expect("there is room");
    let slots = engine.lease(LeaseRequest { max: 10, ..one(0) }).await.expect("leases");
    assert_eq!(slots.len(), 6, "the others are kept");
    for at in 0..2_000 {
        let leased = engine.lease(one(60_000));
        let start = Instant::now();
        let urgent = engine.publish(vec![message(10_000 + at, "critical")]);
        let leased = leased.await.expect("a lease");
        begun.saw(start.elapsed().as_nanos() as u64);
        urgent.await.map(drop).expect("there is room");
        engine.settle(vec![leased[0].receipt], Outcome::Ack).await.map(drop).expect("an acknowledgement");
    }
    engine.close();
    [
        ("another priority by id, durable, 100,000 pending", moved),
        ("the newest 50 and how many there are, 100,000 pending", listed),
        ("critical, published until leased, 1,000 background with 6 of 10 slots", begun),
    ]
    .into_iter()
    .flat_map(|(what, mut spread)| {
        [(0.5, "median"), (0.99, "p99")].map(|(part, name)| {
            let ns = spread.percentile(part).expect("some were measured");
            Row::of_rate(format!("{what}: {name}"), "times", 1e9 / ns as f64)
        })
    })
    .collect()
}

/// Keys that take turns in a backlog, a hundred messages of each in any order: what it takes to publish, to start again and to lease, and how much memory.
async fn keys(dir: &Path, plan: Plan) -> Vec<Row> {
    let messages = if plan.quick { 100_000 } else { plan.times(1_000_000) };
    let (dir, keys) = (dir.join("keys"), messages / 100);
    let before = Memory::now().own;
    let memory = || format!("{} MiB of memory", Memory::now().own.saturating_sub(before) >> 20);
    let engine = LocalEngine::open(&dir).expect("a new store");
    engine.declare_queue(QUEUE, Settings { fair_keys: true, ..named() }).await.expect("a new queue");
    let (mut dice, start) = (Dice::new(), Instant::now());
    for from in (0..messages).step_by(1_000) {
        let batch = (from..from + 1_000).map(|at| NewMessage {
            key: Some(format!("k{}", dice.roll(keys as u64))),
            id: None,
            ..message(at, "normal")
        });
        engine.publish(batch.collect()).await.map(drop).expect("there is room");
    }
    let what = format!("publish, {messages} messages of {keys} keys: {}", memory());
    let published = Row::new(what, "messages", messages, start.elapsed());
    engine.close();
    drop(engine);
    let start = Instant::now();
    let engine = Arc::new(LocalEngine::open(&dir).expect("the store opens"));
    let what = format!("start again: {}", memory());
    let opened = Row::new(what, "messages", messages, start.elapsed());
    let (leases, start) = (messages / 5, Instant::now());
    let mut open = JoinSet::new();
    for _ in 0..KEYS_AT_ONCE {
        let engine = Arc::clone(&engine);
        open.spawn(async move {
            for _ in 0..leases / KEYS_AT_ONCE / 100 {
                let leased = engine.lease(LeaseRequest { max: 100, ..one(0) }).await.expect("a lease");
                let receipts = leased.iter().map(|message| message.receipt).collect();
                engine.settle(receipts, Outcome::Ack).await.map(drop).expect("an acknowledgement");
            }
        });
    }
    open.join_all().await;
    let what = format!("lease 100 + ack 100, {KEYS_AT_ONCE} at once, {leases} messages: {}", memory());
    let leased = Row::new(what, "messages", leases, start.elapsed());
    engine.close();
    vec![published, opened, leased]
}

async fn timed<T, E: std::fmt::Debug>(work: impl Future<Output = Result<T, E>>) -> u64 {
    let start = Instant::now();
    work.await.map(drop).expect("it is done");
    start.elapsed().as_nanos() as u64
}
