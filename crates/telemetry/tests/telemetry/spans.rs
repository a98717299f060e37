//! What is told of traced messages, as another's crate reads it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::StatusCode;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode as SpanStatus};
use overtake_engine::traces::{SpanQueue, Traces};
use overtake_engine::{Engine, LeaseRequest, LocalEngine, NewMessage, Options, SystemClock};
use overtake_lane::{DeadLetterTo, Outcome, Settings};
use overtake_store::MemoryDisk;
use overtake_telemetry::otlp::Tell;
use overtake_telemetry::{Registry, text};

use crate::world::{Collector, Mood, exporter, message, resource};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let text = |value: &any_value::Value| match value {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let value = |pair: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        text(pair.value.as_ref().and_then(|value| value.value.as_ref()).expect("a value"))
    };
    span.attributes.iter().map(|pair| (pair.key.as_str(), value(pair))).collect()
}

fn traced(priority: i64) -> NewMessage {
    let plain = message("q", priority);
    NewMessage { content: plain.content.clone().with_trace(PARENT, Some("a=1")), ..plain }
}

async fn engine(queue: &Arc<SpanQueue>) -> LocalEngine {
    let traces = Some(Traces::new(Arc::clone(queue) as Arc<_>, 1.0));
    let options = Options { segment_bytes: 64 << 10, traces, ..Options::default() };
    let engine = LocalEngine::open_on(MemoryDisk::new(1), options, Arc::new(SystemClock)).expect("it opens");
    let settings = Settings { dead_letter: DeadLetterTo::Drop, ..Settings::default() };
    engine.declare_queue("q", settings).await.expect("declared");
    engine
}

fn tell(queue: &Arc<SpanQueue>, address: &str) -> (Registry, Arc<Tell>) {
    let registry = Registry::default();
    let tell = Tell::join(&registry, Arc::clone(queue), exporter(address, ""), resource(), "1.2.3");
    (registry, tell)
}

#[tokio::test]
async fn spans_are_told_in_the_words_of_the_conventions() {
    let queue = SpanQueue::new(100);
    let engine = engine(&queue).await;
    let (collector, address) = Collector::start().await;
    let (registry, tell) = tell(&queue, &address);
    engine.publish(vec![traced(7)]).await.expect("published");
    let leased = engine.lease(LeaseRequest::new("q".into(), 1)).await.expect("leased");
    engine.settle(vec![leased[0].receipt], Outcome::Reject).await.expect("settled");
    tell.rest().await;
    let spans = collector.spans();
    let by_name: BTreeMap<&str, &Span> = spans.iter().map(|span| (span.name.as_str(), span)).collect();
    let [publish, wait, handle] = ["publish q", "wait q", "handle q"].map(|name| by_name[name]);
    let kinds = [SpanKind::Producer, SpanKind::Internal, SpanKind::Consumer].map(|kind| kind as i32);
    assert_eq!([publish.kind, wait.kind, handle.kind], kinds);
    for span in [publish, wait, handle] {
        assert_eq!(span.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes());
        assert_eq!(span.parent_span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
        assert_eq!((span.trace_state.as_str(), span.flags), ("a=1", 0x301));
        assert!(span.start_time_unix_nano > 0 && span.start_time_unix_nano <= span.end_time_unix_nano);
    }
    assert!(publish.links.is_empty() && publish.status.is_none() && wait.status.is_none());
    assert_eq!((&wait.links[0].span_id, &handle.links[0].span_id), (&publish.span_id, &wait.span_id));
    assert_eq!(handle.status.as_ref().map(|status| status.code), Some(SpanStatus::Error as i32));
    let said = attributes(handle);
    for (key, value) in [
        ("messaging.system", "overtake"),
        ("messaging.destination.name", "q"),
        ("messaging.message.id", "seq-1"),
        ("messaging.operation.name", "handle"),
        ("messaging.operation.type", "process"),
        ("overtake.priority", "7"),
        ("overtake.lane", "7"),
        ("overtake.vhost", "/"),
        ("overtake.attempt", "1"),
        ("overtake.outcome", "dropped"),
        ("error.type", "dropped"),
    ] {
        assert_eq!(said.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(attributes(publish)["messaging.operation.type"], "send");
    let text = text::render(&registry.collect().await);
    assert!(text.contains("overtake_otlp_spans_total{outcome=\"done\"} 3"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_is_away_gets_the_spans_when_it_is_back() {
    let queue = SpanQueue::new(3);
    let engine = engine(&queue).await;
    let (collector, address) = Collector::start().await;
    let (registry, tell) = tell(&queue, &address);
    *collector.mood.lock().unwrap() = Mood::Fails(StatusCode::SERVICE_UNAVAILABLE, "busy");
    engine.publish(vec![traced(7)]).await.expect("published");
    let telling = Arc::clone(&tell);
    let telling = tokio::spawn(async move { telling.run().await });
    collector.arrived.notified().await;
    // Nobody waits for it: what does not fit is dropped, and counted.
    engine.publish((0..5).map(traced).collect()).await.expect("published");
    *collector.mood.lock().unwrap() = Mood::Takes;
    while collector.spans().len() < 4 {
        collector.arrived.notified().await;
    }
    telling.abort();
    let text = text::render(&registry.collect().await);
    assert!(text.contains("overtake_otlp_spans_total{outcome=\"dropped\"} 2"), "{text}");
    *collector.mood.lock().unwrap() = Mood::Fails(StatusCode::BAD_REQUEST, "no");
    engine.publish(vec![traced(7)]).await.expect("published");
    tell.rest().await;
    let text = text::render(&registry.collect().await);
    assert!(text.contains("overtake_otlp_spans_total{outcome=\"failed\"} 1"), "{text}");
}
