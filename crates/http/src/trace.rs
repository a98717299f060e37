//! Traces over HTTP: a request's own context for the messages that have none, and what a message says of its trace.

use std::str::FromStr;

use axum::http::{HeaderMap, HeaderValue};
use overtake_engine::traces::{TRACEPARENT, TRACESTATE, TraceContext};
use overtake_engine::{Content, NewMessage};
use serde::Serialize;
use utoipa::ToSchema;

/// Longest `tracestate` that goes on with messages, bytes: what the recommendation has everybody pass on at least (3.3.1.5).
const STATE_LEN_MAX: usize = 512;
/// What stands for the trace in the address of a page that shows traces.
const PLACEHOLDER: &str = "{trace_id}";

/// Gives the context of a request to those of its messages that have none. One that cannot be read is none, as the recommendation has
/// it.
pub(crate) fn inherit(request: &HeaderMap, messages: &mut [NewMessage]) {
    let Some(parent) = only(request, TRACEPARENT).filter(|parent| TraceContext::from_str(parent).is_ok())
    else {
        return;
    };
    let state: Vec<&str> = request.get_all(TRACESTATE).iter().filter_map(text).collect();
    let state = Some(state.join(",")).filter(|state| !state.is_empty() && state.len() <= STATE_LEN_MAX);
    for message in messages {
        let said = message.content.properties.view().headers();
        if said.is_some_and(|headers| headers.get(TRACEPARENT).is_some()) {
            continue;
        }
        let content = std::mem::take(&mut message.content);
        message.content = content.with_trace(parent, state.as_deref());
    }
}

fn only<'a>(request: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut all = request.get_all(name).iter();
    all.next().filter(|_| all.next().is_none()).and_then(text)
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}

/// The trace that a message is of.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trace)]
pub(crate) struct TraceOut {
    /// The trace: 32 hexadecimal digits.
    trace_id: String,
    /// Whoever published told its part of it.
    sampled: bool,
    /// Where it can be looked at, if the configuration says so (`telemetry.trace_url`).
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl TraceOut {
    /// `None` where the message says none.
    pub(crate) fn of(content: &Content, pages: Option<&str>) -> Option<Self> {
        let context = content.trace()?;
        let trace_id = context.trace_id.to_string();
        let url = pages.map(|pages| pages.replace(PLACEHOLDER, &trace_id));
        Some(Self { trace_id, sampled: context.is_sampled, url })
    }
}
