//! What tracing costs: the same by one session, untraced, looked at, and told.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use overtake_engine::traces::{Span, SpanSink, Traces};
use overtake_engine::{Content, Engine, LocalEngine, Options, SystemClock};
use overtake_lane::Settings;

use super::QUEUE;
use super::session::{consume, publish};
use crate::Plan;
use crate::report::Row;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Where spans are let go of at once: what telling them to a collector costs is not the broker thread's.
struct Nowhere;

impl SpanSink for Nowhere {
    fn ended(&self, span: Span) {
        drop(span);
    }

    fn missed(&self, _spans: u64) {}
}

/// Messages that say their trace, to a broker that does not trace, one that samples none of them, and one that samples all. With
/// `TRACES=off`, `none` or `all` in the environment one of these, for a profiler.
pub(super) async fn run(dir: &Path, plan: Plan) -> Vec<Row> {
    let messages = plan.times(300_000);
    let mut rows = Vec::new();
    for (name, share) in [("off", None), ("none", Some(0.0)), ("all", Some(1.0))] {
        if std::env::var("TRACES").is_ok_and(|only| only != name) {
            continue;
        }
        let traces = share.map(|share| Traces::new(Arc::new(Nowhere), share));
        let options = Options { traces, ..Options::default() };
        let engine =
            LocalEngine::open_with(dir.join(name), options, Arc::new(SystemClock)).expect("a new store");
        engine.declare_queue(QUEUE, Settings::default()).await.expect("a new queue");
        let traced = Content::default().with_trace(PARENT, None);
        let start = Instant::now();
        publish(engine.session(), messages, &traced.properties).await;
        rows.push(Row::new(
            format!("traces {name}: publish, durable"),
            "messages",
            messages,
            start.elapsed(),
        ));
        let start = Instant::now();
        consume(engine.session(), 100, messages).await;
        rows.push(Row::new(format!("traces {name}: consume + ack"), "messages", messages, start.elapsed()));
        engine.close();
    }
    rows
}
