//! Whoever has something to count, and everything that is counted.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use overtake_engine::{Clock, SystemClock};

use crate::family::Family;

/// What a source answers.
pub type Collected<'a> = Pin<Box<dyn Future<Output = Vec<Family>> + Send + 'a>>;

/// Something that can be counted.
pub trait Source: Send + Sync {
    /// Its families as they are now. No other source has one of the same name.
    fn collect(&self) -> Collected<'_>;
}

/// All sources. Who is scraped and who pushes share it.
pub struct Registry {
    since: SystemTime,
    sources: Mutex<Vec<Arc<dyn Source>>>,
}

impl Registry {
    /// Since when counters count.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// One source more.
    pub fn add(&self, source: Arc<dyn Source>) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    /// Every family as it is now, in the order in which the sources came; none without series.
    pub async fn collect(&self) -> Vec<Family> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all = Vec::new();
        for source in sources {
            all.extend(source.collect().await);
        }
        all.retain(|family| !family.points.is_empty());
        all
    }
}

/// Without sources yet, of a broker that is opened now.
impl Default for Registry {
    fn default() -> Self {
        Self { since: now(), sources: Mutex::default() }
    }
}

/// The time of the broker, by which spans are told, too: a push is never of a moment before counters began, however the wall clock is set.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(SystemClock.nanos())
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("since", &self.since).finish_non_exhaustive()
    }
}
