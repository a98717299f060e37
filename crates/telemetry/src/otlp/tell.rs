//! Telling spans: those that have ended, soon after.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::StatusCode;
use overtake_engine::traces::{Span, SpanQueue};
use prost::Message;
use tokio::time::sleep;

use super::encode::Resource;
use super::exporter::{Exporter, NotPosted};
use super::message::ExportServiceResponse;
use super::spans::trace_request;
use crate::family::{Family, Kind, Value, labels};
use crate::registry::{Collected, Registry, Source};

const PATH: &str = "/v1/traces";
/// Most spans of one request: with long names about half a megabyte.
const SPANS_MAX: usize = 512;
/// Spans gather for so long before they are told.
const GATHER: Duration = Duration::from_secs(1);
/// The first wait before a collector is asked again that did not answer, and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Tells the spans of a queue to a collector.
pub struct Tell {
    queue: Arc<SpanQueue>,
    exporter: Exporter,
    resource: Resource,
    version: Arc<str>,
    done: AtomicU64,
    failed: AtomicU64,
}

impl Tell {
    /// Of this queue; it joins the registry, to count what becomes of spans.
    #[must_use]
    pub fn join(
        registry: &Registry,
        queue: Arc<SpanQueue>,
        exporter: Exporter,
        resource: Resource,
        version: &str,
    ) -> Arc<Self> {
        let (done, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        let tell = Arc::new(Self { queue, exporter, resource, version: version.into(), done, failed });
        registry.add(Arc::clone(&tell) as Arc<dyn Source>);
        tell
    }

    /// Tells what comes, until it is dropped.
    pub async fn run(&self) {
        loop {
            self.queue.came().await;
            sleep(GATHER).await;
            loop {
                let spans = self.queue.take(SPANS_MAX);
                if spans.is_empty() {
                    break;
                }
                self.tell(&spans).await;
            }
        }
    }

    /// Tells all that is there, once: for a server that stops.
    pub async fn rest(&self) {
        loop {
            let spans = self.queue.take(SPANS_MAX);
            if spans.is_empty() {
                return;
            }
            if let Err(why) = self.post(&spans).await {
                return self.lose(&spans, &why);
            }
        }
    }

    /// Asks again as long as the collector may answer otherwise; meanwhile spans gather, up to what the queue holds.
    async fn tell(&self, spans: &[Span]) {
        let mut wait = FIRST_WAIT;
        let mut was_said = false;
        while let Err(why) = self.post(spans).await {
            let to = self.exporter.endpoint().as_str();
            if !passes(&why) {
                return self.lose(spans, &why);
            }
            if !was_said {
                tracing::warn!("spans do not arrive at {to}: {why}; said once, until they do");
            }
            was_said = true;
            sleep(wait).await;
            wait = (2 * wait).min(LONGEST_WAIT);
        }
        if was_said {
            tracing::info!("spans arrive at {} again", self.exporter.endpoint().as_str());
        }
    }

    fn lose(&self, spans: &[Span], why: &NotPosted) {
        self.failed.fetch_add(spans.len() as u64, Ordering::Relaxed);
        let to = self.exporter.endpoint().as_str();
        tracing::warn!("{} spans are lost: {to} does not take them: {why}", spans.len());
    }

    async fn post(&self, spans: &[Span]) -> Result<(), NotPosted> {
        let body = trace_request(spans, &self.resource, &self.version);
        let answer = self.exporter.post(PATH, body).await?;
        // Of an answer that cannot be read nothing is known but that all is well, by its status.
        let part = ExportServiceResponse::decode(answer).unwrap_or_default().partial_success;
        let rejected = part.as_ref().map_or(0, |part| u64::try_from(part.rejected).unwrap_or_default());
        let rejected = rejected.min(spans.len() as u64);
        self.failed.fetch_add(rejected, Ordering::Relaxed);
        self.done.fetch_add(spans.len() as u64 - rejected, Ordering::Relaxed);
        if let Some(part) = part.filter(|part| rejected > 0 || !part.error_message.is_empty()) {
            let to = self.exporter.endpoint().as_str();
            tracing::warn!("{to} rejects {rejected} spans: {}", part.error_message);
        }
        Ok(())
    }
}

/// Whether the collector may take the same later (<https://opentelemetry.io/docs/specs/otlp/#failures-1>).
fn passes(why: &NotPosted) -> bool {
    match why {
        NotPosted::Unreachable(_) => true,
        NotPosted::Refused(status, _) => matches!(
            *status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        ),
    }
}

impl Source for Tell {
    fn collect(&self) -> Collected<'_> {
        let number = |counter: u64| Value::Whole(counter);
        let spans = "Spans of traced messages, by what became of them: told, not taken by the collector, or dropped for want of room.";
        let family = Family::new("overtake.otlp.spans", Kind::Counter, "{span}", spans)
            .with(labels([("outcome", "done")]), number(self.done.load(Ordering::Relaxed)))
            .with(labels([("outcome", "failed")]), number(self.failed.load(Ordering::Relaxed)))
            .with(labels([("outcome", "dropped")]), number(self.queue.dropped()));
        Box::pin(async { vec![family] })
    }
}
