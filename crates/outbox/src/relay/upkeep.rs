//! What is done beside the loop: rows are put back whose time has come or whose relay died, old rows are cleaned, what waits is counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::due::Due;
use super::{Cleaning, Trouble};
use crate::database::{Database, PUT_BACK_MAX};
use crate::error::Error;
use crate::metrics::Watch;

/// How often the table is asked for what is due and what has expired; what failed here is known to the moment.
const ROUND: Duration = Duration::from_secs(1);
/// How often it is asked for what other programs left without a time.
const UNDATED_EVERY: Duration = Duration::from_secs(30);
/// What is due one after the other is asked for together.
const TOGETHER: Duration = Duration::from_millis(20);
/// Counting takes at most a part of the time.
pub(super) const COUNTING_PART: u32 = 20;

pub(super) struct Upkeep {
    pub(super) database: Database,
    pub(super) cleaning: Cleaning,
    pub(super) lag_every: Duration,
    pub(super) hint: Arc<Notify>,
    pub(super) due: Arc<Due>,
    pub(super) watch: Watch,
}

/// When each is to be done next.
struct Times {
    /// When rows were last put back.
    last: Instant,
    round: Instant,
    undated: Instant,
    clean: Instant,
    /// Nothing: never.
    lag: Option<Instant>,
}

impl Upkeep {
    pub(super) async fn run(self) {
        let now = Instant::now();
        let mut times = Times {
            last: now,
            round: now,
            undated: now,
            clean: now,
            lag: (!self.lag_every.is_zero()).then_some(now),
        };
        let mut trouble = Trouble::new("the outbox cannot be looked after");
        loop {
            let wait = match self.turn(&mut times).await {
                Ok(()) => {
                    trouble.is_over();
                    self.next(&times).saturating_duration_since(Instant::now())
                }
                Err(error) => trouble.says(&error),
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => (),
                () = self.due.changed.notified() => (),
            }
        }
    }

    fn next(&self, times: &Times) -> Instant {
        let next = times.round.min(times.undated).min(times.clean);
        let next = times.lag.map_or(next, |lag| lag.min(next));
        self.due.next().map_or(next, |due| due.max(times.last + TOGETHER).min(next))
    }

    async fn turn(&self, times: &mut Times) -> Result<(), Error> {
        let now = Instant::now();
        if self.due.take(now) || times.round <= now {
            self.put_back().await?;
            times.last = now;
            times.round = now + ROUND;
        }
        if times.undated <= now {
            self.came_back(self.database.return_undated().await?);
            times.undated = now + UNDATED_EVERY;
        }
        if times.clean <= now {
            self.clean().await?;
            times.clean = now + self.cleaning.every;
        }
        if times.lag.is_some_and(|lag| lag <= now) {
            let lag = self.database.lag().await?;
            self.watch.count(|seen| seen.lag = lag);
            times.lag = Some(now + self.lag_every.max(now.elapsed() * COUNTING_PART));
        }
        Ok(())
    }

    async fn put_back(&self) -> Result<(), Error> {
        loop {
            let expired = self.database.return_expired().await?;
            self.watch.count(|seen| seen.expired += expired);
            self.came_back(expired);
            let due = self.database.return_due().await?;
            self.came_back(due);
            if expired.max(due) < PUT_BACK_MAX as u64 {
                return Ok(());
            }
        }
    }

    fn came_back(&self, rows: u64) {
        if rows > 0 {
            self.hint.notify_one();
        }
    }

    async fn clean(&self) -> Result<(), Error> {
        let batch = self.cleaning.batch;
        for (status, after) in self.cleaning.both() {
            let Some(after) = after else { continue };
            loop {
                let cleaned = self.database.clean(status, after, batch).await?;
                self.watch.count(|seen| seen.cleaned += cleaned);
                if cleaned < batch as u64 {
                    break;
                }
            }
        }
        Ok(())
    }
}
