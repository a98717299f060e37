//! The broker's part in the traces of its messages (`docs/tracing.md`).
//!
//! ```text
//!   traceparent ──▶ publish ◀─link─ wait ◀─link─ handle            each a child of the producer's span
//!                   durable        leased        settled or returned, then wait and handle again
//! ```
//!
//! A message says which trace it is of in its header `traceparent`, and nothing else is stored with it: the ids of spans are made of
//! what is known of it at any time ([`SpanId`]). Spans that have ended go to a [`SpanSink`], which never makes anybody wait.

mod context;
mod queue;
mod span;

use std::fmt;
use std::sync::Arc;

pub use context::{BadContext, TRACEPARENT, TRACESTATE, TraceContext, TraceId};
pub use queue::SpanQueue;
pub(crate) use span::Origin;
pub use span::{About, Operation, Outcome, Span, SpanId};

use crate::clock::{Clock, SystemClock};

/// Where spans go that have ended.
pub trait SpanSink: Send + Sync + 'static {
    /// Takes one, at once: what there is no room for is dropped.
    fn ended(&self, span: Span);
    /// So many spans could not be told, since more was under way than is remembered.
    fn missed(&self, spans: u64);
}

/// How messages are traced.
#[derive(Clone)]
pub struct Traces {
    sink: Arc<dyn SpanSink>,
    clock: Arc<dyn Clock>,
    /// Of the 2^56 numbers that a trace id may end with, the first so many are sampled.
    below: u64,
}

impl Traces {
    /// Into this sink; of the traces that their producers sample this share, 0 to 1, by trace id, so that a trace is told whole.
    #[must_use]
    pub fn new(sink: Arc<dyn SpanSink>, share: f64) -> Self {
        let below = (share.clamp(0.0, 1.0) * TraceId::ENDS as f64) as u64;
        Self { sink, clock: Arc::new(SystemClock), below }
    }

    /// The same by another clock.
    #[must_use]
    pub fn by(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Whether spans are told of this trace.
    #[must_use]
    pub fn samples(&self, context: &TraceContext) -> bool {
        context.is_sampled && context.trace_id.end() < self.below
    }

    /// Now, ns since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.clock.nanos()
    }

    pub(crate) fn sink(&self) -> &dyn SpanSink {
        &*self.sink
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("below", &self.below).finish_non_exhaustive()
    }
}

/// Publishes that are told as soon as they are durable.
#[derive(Debug, Default)]
pub struct Published(Option<(Traces, Vec<Span>)>);

impl Published {
    pub(crate) fn of(traces: &Traces, spans: Vec<Span>) -> Self {
        Self((!spans.is_empty()).then(|| (traces.clone(), spans)))
    }

    /// They are.
    pub fn durable(self) {
        let Some((traces, spans)) = self.0 else { return };
        let end = traces.now();
        spans.into_iter().for_each(|span| traces.sink.ended(Span { end: end.max(span.start), ..span }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_sampled_by_its_id_where_its_producer_does() {
        let traces = |share| Traces::new(SpanQueue::new(1), share);
        let context = |end: &str, flags: &str| -> TraceContext {
            format!("00-000000000000000000{end}-00f067aa0ba902b7-{flags}").parse().expect("a context")
        };
        let first = context("00000000000001", "01");
        let half = context("80000000000000", "01");
        let last = context("ffffffffffffff", "01");
        let sampled = |share| [&first, &half, &last].map(|context| traces(share).samples(context));
        assert_eq!(sampled(0.0), [false; 3]);
        assert_eq!(sampled(0.5), [true, false, false]);
        assert_eq!(sampled(0.6), [true, true, false]);
        assert_eq!(sampled(1.0), [true; 3]);
        assert!(!traces(1.0).samples(&context("00000000000001", "00")), "its producer does not sample it");
    }
}
