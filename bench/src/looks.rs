//! Looks at a deep queue: how long publishes to another queue take meanwhile, beside publishes while nobody looks.

use std::time::{Duration, Instant};

use overtake_engine::{
    Browse, Content, DeleteOnly, Engine, Filter, LocalEngine, NewMessage, Pending, Select, Target,
};
use overtake_lane::{BrowseOrder, Given, Settings};

use crate::Plan;
use crate::report::Row;
use crate::spread::Spread;

const DEEP: &str = "deep";
/// Messages that wait in it.
const MESSAGES: usize = 3_000_000;
const BODY_LEN: usize = 100;
/// Publishes while nobody looks.
const QUIET: usize = 2_000;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let messages = if plan.quick { MESSAGES / 10 } else { plan.times(MESSAGES) };
    runtime.block_on(measure(plan, messages))
}

fn message(queue: &str, priority: usize, key: Option<String>) -> NewMessage {
    NewMessage {
        to: Target::Queue(queue.into()),
        priority: (priority as i64).into(),
        key,
        content: Content { body: vec![b'x'; BODY_LEN].into(), ..Content::default() },
        ..NewMessage::default()
    }
}

/// Changes after which memory is given back later.
const CLEARED: [&str; 2] = ["a purge", "the deletion of the queue"];

/// A change of the deep queue.
type Change = fn(&LocalEngine) -> Pending<u64>;

/// Changes of the deep queue, each with how many of its messages it changes.
fn changes(messages: u64) -> [(&'static str, Change, u64); 5] {
    fn all() -> Select {
        Select::Matching(Filter::default())
    }
    let none = |engine: &LocalEngine| {
        engine.remove(DEEP, Select::Matching(Filter { key: Some("nope".into()), ..Filter::default() }))
    };
    [
        ("a removal by key that takes none", none, 0),
        ("another priority for all", |engine| engine.reprioritise(DEEP, all(), Given::Number(3)), messages),
        ("a removal of all by a filter", |engine| engine.remove(DEEP, all()), messages),
        (CLEARED[0], |engine| engine.purge(DEEP, None), messages),
        (CLEARED[1], |engine| engine.delete_queue(DEEP, DeleteOnly::default()), messages),
    ]
}

/// Looks that take no message, so that each looks at all there are.
fn looks() -> Vec<(&'static str, Browse)> {
    let header = Filter { headers: vec![("nope".into(), "1".into())], ..Filter::default() };
    let key = Filter { key: Some("nope".into()), ..Filter::default() };
    let page = |filter: &Filter, order, with_total| Browse {
        filter: filter.clone(),
        order,
        with_total,
        limit: 1,
        ..Browse::default()
    };
    vec![
        ("by key, as published", page(&key, BrowseOrder::Published, false)),
        ("by key, the newest first", page(&key, BrowseOrder::Newest, false)),
        ("by key, and how many", page(&key, BrowseOrder::Newest, true)),
        ("by a header, as published", page(&header, BrowseOrder::Published, false)),
        ("by key, in dispatch order", page(&key, BrowseOrder::Dispatch, false)),
    ]
}

/// Publishes a message to the other queue, and notes how long that took.
async fn publish(engine: &LocalEngine, spread: &mut Spread) {
    let start = Instant::now();
    engine.publish(vec![message("other", 9, None)]).await.map(drop).expect("there is room");
    spread.saw(start.elapsed().as_nanos() as u64);
}

async fn fill(engine: &LocalEngine, messages: usize) {
    for batch in 0..messages / 1_000 {
        let batch = (0..1_000).map(|at| message(DEEP, at % 10, Some(format!("k{batch}"))));
        engine.publish(batch.collect()).await.map(drop).expect("there is room");
    }
}

/// How long it took, and publishes to the other queue meanwhile. The last one waited for its end.
async fn beside(engine: &LocalEngine, work: impl Future<Output = ()> + Send + 'static) -> (Duration, Spread) {
    let start = Instant::now();
    let work = tokio::spawn(async move {
        work.await;
        start.elapsed()
    });
    let mut meanwhile = Spread::default();
    while !work.is_finished() {
        publish(engine, &mut meanwhile).await;
    }
    (work.await.expect("no panic"), meanwhile)
}

/// How long it took until the work was done, and until the memory of what it took was given back; and publishes to the other queue meanwhile.
async fn beside_until_cleared(
    engine: &LocalEngine,
    work: impl Future<Output = ()> + Send + 'static,
) -> (Duration, Duration, Spread) {
    let (start, bytes) = (Instant::now(), engine.health().memory.bytes);
    let (took, mut meanwhile) = beside(engine, work).await;
    while engine.health().memory.bytes > bytes / 10 {
        publish(engine, &mut meanwhile).await;
    }
    (took, start.elapsed(), meanwhile)
}

async fn measure(plan: Plan, messages: usize) -> Vec<Row> {
    let dir = tempfile::tempdir().expect("a directory for the store");
    let engine = LocalEngine::open(dir.path()).expect("a new store");
    for queue in [DEEP, "other"] {
        engine.declare_queue(queue, Settings::default()).await.expect("a new queue");
    }
    fill(&engine, messages).await;
    let mut quiet = Spread::default();
    for _ in 0..QUIET {
        publish(&engine, &mut quiet).await;
    }
    let mut rows = Vec::new();
    let longest = |what: &str, ns: u64| {
        let what = format!("longest publish to another queue, {what}");
        Row::new(what, "publishes", 1, Duration::from_nanos(ns))
    };
    let p99 = |spread: &mut Spread| spread.percentile(0.99).expect("some were measured");
    let most = |spread: &mut Spread| spread.percentile(1.0).expect("some were measured");
    let (quiet_p99, quiet_most) = (p99(&mut quiet), most(&mut quiet));
    rows.push(longest(&format!("nobody looks: p99 of {QUIET}"), quiet_p99).reference());
    rows.push(longest("nobody looks", quiet_most).reference());
    let ratio = |quiet: u64, busy: u64| quiet as f64 / busy as f64;
    let others = |what: &str, mut meanwhile: Spread| {
        let (busy_p99, busy_most) = (p99(&mut meanwhile), most(&mut meanwhile));
        [
            longest(&format!("{what}: p99"), busy_p99).beside(ratio(quiet_p99, busy_p99)),
            longest(what, busy_most).beside(ratio(quiet_most, busy_most)),
        ]
    };
    for (what, browse) in looks().into_iter().filter(|(what, _)| plan.wants(what)) {
        let look = engine.browse(DEEP, browse);
        let (took, meanwhile) = beside(&engine, async move {
            let page = look.await.expect("it is answered");
            assert!(page.messages.is_empty(), "nothing matches");
        })
        .await;
        rows.extend(others(what, meanwhile));
        rows.push(Row::new(
            format!("messages looked at, beside publishes, {what}"),
            "messages",
            messages,
            took,
        ));
        let start = Instant::now();
        let alone = looks().into_iter().find(|(other, _)| *other == what).expect("it is one of them").1;
        engine.browse(DEEP, alone).await.map(drop).expect("it is answered");
        rows.push(Row::new(
            format!("messages looked at, alone, {what}"),
            "messages",
            messages,
            start.elapsed(),
        ));
    }
    for (what, change, expected) in changes(messages as u64).into_iter().filter(|(what, ..)| plan.wants(what))
    {
        if engine.queue(DEEP).await.expect("it is there").lanes.iter().all(|lane| lane.ready == 0) {
            fill(&engine, messages).await;
        }
        let change = change(&engine);
        let work = async move {
            assert_eq!(change.await.expect("it is answered"), expected, "{what}");
        };
        let (took, meanwhile) = if CLEARED.contains(&what) {
            let (took, cleared, meanwhile) = beside_until_cleared(&engine, work).await;
            let what = format!("messages, {what}, until all memory is given back");
            rows.push(Row::new(what, "messages", messages, cleared));
            (took, meanwhile)
        } else {
            beside(&engine, work).await
        };
        rows.extend(others(what, meanwhile));
        rows.push(Row::new(format!("messages, {what}"), "messages", messages, took));
    }
    engine.close();
    rows
}
