//! Spans as requests of `/v1/traces`, by the conventions of OpenTelemetry for messaging
//! (<https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/>).

use overtake_engine::traces::{Operation, Span};
use prost::Message;

use super::encode::Resource;
use super::message::{InstrumentationScope, KeyValue};
use super::span_message::{
    CONSUMER, ERROR, ExportTraceServiceRequest, INTERNAL, IS_OURS, Link, PARENT_IS_REMOTE, PRODUCER,
    ResourceSpans, SAMPLED, ScopeSpans, Span as SpanMessage, Status,
};

/// These spans, as the body of a request.
#[must_use]
pub fn trace_request(spans: &[Span], resource: &Resource, version: &str) -> Vec<u8> {
    let scope = InstrumentationScope { name: "overtake".to_owned(), version: version.to_owned() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans: spans.iter().map(message).collect() }];
    let resource_spans = vec![ResourceSpans { resource: Some(resource.message()), scope_spans }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn message(span: &Span) -> SpanMessage {
    let context = &span.about.context;
    let (trace_id, trace_state) =
        (context.trace_id.0.to_vec(), context.state.as_deref().unwrap_or_default().to_owned());
    let link = |id: overtake_engine::traces::SpanId| Link {
        trace_id: trace_id.clone(),
        span_id: id.0.to_vec(),
        trace_state: trace_state.clone(),
        flags: SAMPLED | IS_OURS,
    };
    SpanMessage {
        span_id: span.span_id.0.to_vec(),
        parent_span_id: context.parent.0.to_vec(),
        name: format!("{} {}", span.operation.word(), span.about.queue),
        kind: match span.operation {
            Operation::Publish => PRODUCER,
            Operation::Wait => INTERNAL,
            Operation::Handle => CONSUMER,
        },
        start_time_unix_nano: span.start,
        end_time_unix_nano: span.end,
        attributes: attributes(span),
        links: span.link.map(link).into_iter().collect(),
        status: status(span),
        flags: SAMPLED | PARENT_IS_REMOTE,
        trace_id,
        trace_state,
    }
}

fn attributes(span: &Span) -> Vec<KeyValue> {
    let about = &*span.about;
    let texts = [
        ("messaging.system", "overtake"),
        ("messaging.operation.name", span.operation.word()),
        ("messaging.destination.name", &about.queue),
        ("messaging.message.id", &about.id),
        ("overtake.priority", &about.priority.to_string()),
        ("overtake.lane", &about.lane),
        ("overtake.vhost", &about.vhost),
    ];
    let mut all: Vec<KeyValue> = texts.iter().map(|(key, value)| KeyValue::text(key, value)).collect();
    all.push(KeyValue::int("messaging.message.body.size", about.bytes.into()));
    // The convention has no word for waiting.
    match span.operation {
        Operation::Publish => all.push(KeyValue::text("messaging.operation.type", "send")),
        Operation::Handle => all.push(KeyValue::text("messaging.operation.type", "process")),
        Operation::Wait => {}
    }
    if span.attempt > 0 {
        all.push(KeyValue::int("overtake.attempt", span.attempt.into()));
    }
    if let Some(outcome) = span.outcome {
        all.push(KeyValue::text("overtake.outcome", outcome.word()));
        if outcome.is_error() {
            all.push(KeyValue::text("error.type", outcome.word()));
        }
    }
    all
}

fn status(span: &Span) -> Option<Status> {
    let error = span.outcome.filter(|outcome| outcome.is_error())?;
    Some(Status { message: error.word().replace('_', " "), code: ERROR })
}
