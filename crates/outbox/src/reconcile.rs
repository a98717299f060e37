//! The table compared with what it should be, and what can be put right.

use std::time::Duration;

use crate::database::{Database, Held, Lag, PUT_BACK_MAX, Reason};
use crate::error::Error;
use crate::relay::Cleaning;
use crate::table::Status;

/// How an outbox stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// What waits, by priority.
    pub lag: Vec<Lag>,
    /// Which claims have rows.
    pub held: Vec<Held>,
    /// Why rows failed or were given up.
    pub reasons: Vec<Reason>,
}

/// What was found, and what was done about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reconciled {
    /// Claims whose lock is over, or that have none: their relay is gone, or hangs.
    pub gone: Vec<Held>,
    /// Why rows failed or were given up. Trying those again is a decision: [`Database::retry`].
    pub reasons: Vec<Reason>,
    /// Published rows that should have been cleaned.
    pub published: u64,
    /// Abandoned rows that should have been.
    pub abandoned: u64,
    /// Rows that were put back, where that was asked for.
    pub returned: u64,
    /// Rows that were cleaned, where that was asked for.
    pub cleaned: u64,
}

impl Database {
    /// How it stands. It reads all that waits: a million rows take a good part of a second.
    ///
    /// # Errors
    /// Of the database.
    pub async fn status(&self) -> Result<Standing, Error> {
        Ok(Standing { lag: self.lag().await?, held: self.held().await?, reasons: self.reasons().await? })
    }

    /// Looks for what a relay that died left behind, and for what should not be there any more; with `fix`, puts rows back that nobody has, or whose time has come, and cleans what is
    /// old. A row that is in the sink and not marked cannot be told from one that is not: it is published again, under the same id.
    ///
    /// # Errors
    /// Of the database; some of it may be done.
    pub async fn reconcile(&self, cleaning: &Cleaning, fix: bool) -> Result<Reconciled, Error> {
        let held = self.held().await?;
        let mut found = Reconciled {
            gone: held.into_iter().filter(|held| held.left_s.is_none_or(|left| left <= 0.0)).collect(),
            reasons: self.reasons().await?,
            published: self.old(Status::Published, cleaning.published_after).await?,
            abandoned: self.old(Status::Abandoned, cleaning.abandoned_after).await?,
            ..Reconciled::default()
        };
        if fix {
            loop {
                let returned =
                    self.return_expired().await? + self.return_undated().await? + self.return_due().await?;
                found.returned += returned;
                if returned < PUT_BACK_MAX as u64 {
                    break;
                }
            }
            for (status, after) in cleaning.both() {
                let Some(after) = after else { continue };
                loop {
                    let cleaned = self.clean(status, after, cleaning.batch).await?;
                    found.cleaned += cleaned;
                    if cleaned < cleaning.batch as u64 {
                        break;
                    }
                }
            }
        }
        Ok(found)
    }

    async fn old(&self, status: Status, after: Option<Duration>) -> Result<u64, Error> {
        match after {
            Some(after) => self.uncleaned(status, after).await,
            None => Ok(0),
        }
    }
}

impl Cleaning {
    /// Which rows go, and after how long.
    pub(crate) fn both(&self) -> [(Status, Option<Duration>); 2] {
        [(Status::Published, self.published_after), (Status::Abandoned, self.abandoned_after)]
    }
}
