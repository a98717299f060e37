//! Queues and routes of an engine on servers, looked at in rounds: whoever collects waits a second at most, and then has what the last round found.
//!
//! A scrape that waits for servers that do not answer says nothing of the outage. Rounds never overlap, however often somebody collects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use overtake_engine::Engine;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::broker;
use crate::family::Family;
use crate::family::Kind::Gauge;

/// Longest that a collection waits for a round.
const PATIENCE: Duration = Duration::from_secs(1);
/// For how long what a round found is told, if no later one finds anything.
const TOLD: Duration = Duration::from_secs(300);

/// What the last round found.
#[derive(Clone)]
struct Found {
    at: Instant,
    families: Arc<[Family]>,
}

/// The rounds of one engine.
pub(crate) struct Rounds {
    engine: Arc<dyn Engine>,
    is_under_way: Arc<AtomicBool>,
    /// Changes with the end of each round, whether that found anything or not.
    found: watch::Sender<Option<Found>>,
}

impl Rounds {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, is_under_way: Arc::default(), found: watch::Sender::new(None) }
    }

    /// What a round finds that ends within a second, or what the last one found; and how long ago that was.
    pub(crate) async fn families(&self) -> Vec<Family> {
        let mut found = self.found.subscribe();
        self.begin();
        // Without an end in time the last one counts.
        let _ = timeout(PATIENCE, found.changed()).await;
        let Some(Found { at, families }) = found.borrow().clone().filter(|found| found.at.elapsed() < TOLD)
        else {
            return Vec::new();
        };
        let help = "How long ago the figures of queues, lanes and routes were read from the servers.";
        let age = Family::new("overtake.queues.age", Gauge, "s", help).of(at.elapsed().as_secs());
        families.iter().cloned().chain([age]).collect()
    }

    /// Begins a round, unless one is under way.
    fn begin(&self) {
        if self.is_under_way.swap(true, Ordering::AcqRel) {
            return;
        }
        let (engine, found, is_under_way) =
            (Arc::clone(&self.engine), self.found.clone(), Arc::clone(&self.is_under_way));
        tokio::spawn(async move {
            let at = Instant::now();
            let families = broker::look(&*engine).await;
            is_under_way.store(false, Ordering::Release);
            found.send_modify(|found| {
                if let Some(families) = families {
                    *found = Some(Found { at, families: families.into() });
                }
            });
        });
    }
}
