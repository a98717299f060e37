//! Pushing: every so often what is so now, whatever became of the time before.
//!
//! Numbers only grow or say how it stands, so nothing is kept for a collector that does not answer: the next push says it all.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use prost::Message;
use tokio::time::MissedTickBehavior;

use super::encode::{Resource, requests};
use super::exporter::{Exporter, NotPosted};
use super::message::ExportServiceResponse;
use crate::family::{Family, Kind, Value, labels};
use crate::registry::{Collected, Registry, Source, now};

const PATH: &str = "/v1/metrics";

/// Pushes everything of a registry.
pub struct Push {
    registry: Weak<Registry>,
    exporter: Exporter,
    resource: Resource,
    version: Arc<str>,
    done: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
    /// The last push failed, and that was logged.
    fails: AtomicBool,
}

impl Push {
    /// Of this registry, which it joins to tell of itself.
    #[must_use]
    pub fn join(
        registry: &Arc<Registry>,
        exporter: Exporter,
        resource: Resource,
        version: &str,
    ) -> Arc<Self> {
        let push = Arc::new(Self {
            registry: Arc::downgrade(registry),
            exporter,
            resource,
            version: version.into(),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            fails: AtomicBool::new(false),
        });
        registry.add(Arc::clone(&push) as Arc<dyn Source>);
        push
    }

    /// Pushes once in each interval, until it is dropped.
    pub async fn run(&self, interval: Duration) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first is at once: there is nothing to tell yet.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.once().await;
        }
    }

    /// Pushes once. What goes wrong is logged when it begins and when it is over, and counted.
    pub async fn once(&self) {
        let Some(registry) = self.registry.upgrade() else { return };
        let families = registry.collect().await;
        match self.post(families, registry.since()).await {
            Ok(()) => {
                self.done.fetch_add(1, Ordering::Relaxed);
                if self.fails.swap(false, Ordering::Relaxed) {
                    tracing::info!("metrics arrive at {} again", self.exporter.endpoint().as_str());
                }
            }
            Err(why) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                if !self.fails.swap(true, Ordering::Relaxed) {
                    let to = self.exporter.endpoint().as_str();
                    tracing::warn!("metrics do not arrive at {to}: {why}; said once, until they do");
                }
            }
        }
    }

    async fn post(&self, families: Vec<Family>, since: SystemTime) -> Result<(), NotPosted> {
        let (resource, version) = (&self.resource, &self.version);
        let (mut rejected, mut why) = (0, String::new());
        for body in requests(&families, resource, version, since, now()) {
            let answer = self.exporter.post(PATH, body).await?;
            // Of an answer that cannot be read nothing is known but that all is well, by its status.
            let answer = ExportServiceResponse::decode(answer).unwrap_or_default();
            let Some(part) = answer.partial_success else { continue };
            rejected += u64::try_from(part.rejected).unwrap_or_default();
            if why.is_empty() {
                why = part.error_message;
            }
        }
        self.rejected.fetch_add(rejected, Ordering::Relaxed);
        if rejected > 0 || !why.is_empty() {
            tracing::warn!("{} rejects {rejected} series: {why}", self.exporter.endpoint().as_str());
        }
        Ok(())
    }
}

impl Source for Push {
    fn collect(&self) -> Collected<'_> {
        let number = |counter: &AtomicU64| Value::Whole(counter.load(Ordering::Relaxed));
        let pushes = "Pushes of all metrics to the collector, by what became of them.";
        let rejected = "Series of pushes that the collector rejected.";
        let all = vec![
            Family::new("overtake.otlp.pushes", Kind::Counter, "{push}", pushes)
                .with(labels([("outcome", "done")]), number(&self.done))
                .with(labels([("outcome", "failed")]), number(&self.failed)),
            Family::new("overtake.otlp.rejected_points", Kind::Counter, "{point}", rejected)
                .with(labels([]), number(&self.rejected)),
        ];
        Box::pin(async { all })
    }
}
