//! The task that writes down what became of rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::due::Due;
use super::{Tried, Trouble, pause};
use crate::database::Database;
use crate::error::Error;
use crate::metrics::Watch;
use crate::policy::{Retry, judge};
use crate::row::Marks;

/// How often it is tried to write something down once the relay is to stop.
const LAST_TRIES: u32 = 3;

pub(super) struct Marker {
    pub(super) database: Database,
    pub(super) outcomes: mpsc::Receiver<Tried>,
    pub(super) retry: Retry,
    pub(super) lock: Duration,
    /// When rows of this relay that failed are due.
    pub(super) due: Arc<Due>,
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) watch: Watch,
}

impl Marker {
    pub(super) async fn run(mut self) {
        while let Some(Tried { batch, outcomes }) = self.outcomes.recv().await {
            let marks = judge(&batch.rows, outcomes, &self.retry, chance);
            let Some(changed) = self.write(&batch.token, &marks, batch.claimed + self.lock).await else {
                continue;
            };
            self.due.expect(marks.failed.iter().map(|(.., wait)| *wait));
            self.watch.count(|seen| {
                let all = batch.rows.len() as u64;
                seen.published += marks.published.len() as u64;
                seen.failed += marks.failed.len() as u64;
                seen.abandoned += marks.abandoned.len() as u64;
                seen.released += marks.released.len() as u64;
                seen.overtaken += all.saturating_sub(changed);
            });
            for (key, why) in &marks.abandoned {
                tracing::warn!(%key, %why, "a row is given up");
            }
        }
    }

    /// Until it is written: how many rows were still the claim's. A lost connection is waited for, since the rows are published; what the database declines is let go once the
    /// lock is over.
    async fn write(&mut self, token: &str, marks: &Marks, until: Instant) -> Option<u64> {
        let mut trouble = Trouble::new("what became of rows cannot be written down");
        let mut last_tries = 0;
        loop {
            let error = match self.database.mark(token, marks).await {
                Ok(changed) => {
                    trouble.is_over();
                    return Some(changed);
                }
                Err(error) => error,
            };
            let wait = trouble.says(&error);
            if pause(wait, &mut self.stopping).await {
                last_tries += 1;
                // It is asked at once else.
                tokio::time::sleep(wait).await;
            }
            let is_hopeless = !matches!(error, Error::Lost(_)) && Instant::now() >= until;
            if is_hopeless || last_tries >= LAST_TRIES {
                tracing::error!(%error, token, "what became of rows is not written down: they come back when their lock is over");
                return None;
            }
        }
    }
}

/// From 0 to 1.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without chance nothing is drawn from a wait.
    let _ = getrandom::fill(&mut bytes);
    f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX)
}
