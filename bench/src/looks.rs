//! Looks at a deep queue: how long publishes to another queue take meanwhile, beside publishes while nobody looks.

use std::time::{Duration, Instant};

use overtake_engine::{Browse, Content, Engine, Filter, LocalEngine, NewMessage, Target};
use overtake_lane::{BrowseOrder, Settings};

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
    runtime.block_on(measure(messages))
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
        ("by key, in dispatch order: one step", page(&key, BrowseOrder::Dispatch, false)),
    ]
}

/// Publishes a message to the other queue, and notes how long that took.
async fn publish(engine: &LocalEngine, spread: &mut Spread) {
    let start = Instant::now();
    engine.publish(vec![message("other", 9, None)]).await.map(drop).expect("there is room");
    spread.saw(start.elapsed().as_nanos() as u64);
}

async fn measure(messages: usize) -> Vec<Row> {
    let dir = tempfile::tempdir().expect("a directory for the store");
    let engine = LocalEngine::open(dir.path()).expect("a new store");
    for queue in [DEEP, "other"] {
        engine.declare_queue(queue, Settings::default()).await.expect("a new queue");
    }
    for batch in 0..messages / 1_000 {
        let batch = (0..1_000).map(|at| message(DEEP, at % 10, Some(format!("k{batch}"))));
        engine.publish(batch.collect()).await.map(drop).expect("there is room");
    }
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
    for (what, browse) in looks() {
        let mut meanwhile = Spread::default();
        let look = engine.browse(DEEP, browse);
        let look = tokio::spawn(async move {
            let start = Instant::now();
            let page = look.await.expect("it is answered");
            assert!(page.messages.is_empty(), "nothing matches");
            start.elapsed()
        });
        // The last one waited for the end of the look.
        while !look.is_finished() {
            publish(&engine, &mut meanwhile).await;
        }
        let took = look.await.expect("no panic");
        let ratio = |quiet: u64, busy: u64| quiet as f64 / busy as f64;
        let (busy_p99, busy_most) = (p99(&mut meanwhile), most(&mut meanwhile));
        rows.push(longest(&format!("{what}: p99"), busy_p99).beside(ratio(quiet_p99, busy_p99)));
        rows.push(longest(what, busy_most).beside(ratio(quiet_most, busy_most)));
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
    engine.close();
    rows
}
