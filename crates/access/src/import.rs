//! The priority of messages that wait without one when their queue begins to be served by priority.
//!
//! While a queue is served in publish order its publishers need not say a priority. Once it is served by priority, messages without one
//! would have the priority that the scheme gives them, whatever was meant. So whoever changes the order says which priority they get.

use overtake_engine::{Browse, Engine, Failure, Filter, Select};
use overtake_lane::{Given, Order, Priority, Refusal, Scheme, Settings, Status};

use crate::desk::{Desk, Done};

/// The word for the most urgent priority of a scheme, in place of a priority.
pub const MOST_URGENT: &str = "most-urgent";

/// How many messages of a queue wait that were published without a priority, if priorities decide with the settings `after` what goes
/// next and do not with those `before`; else 0.
///
/// # Errors
/// As [`Engine::browse`].
pub async fn waiting_without_priority(
    engine: &dyn Engine,
    queue: &str,
    before: &Settings,
    after: &Settings,
) -> Result<u64, Failure> {
    let mut count = 0;
    if before.order == Order::Fifo && after.order != Order::Fifo {
        for status in [Status::Ready, Status::Delayed] {
            let filter = Filter { status: Some(status), ..without_priority() };
            let page = Browse { filter, limit: 1, with_total: true, ..Browse::default() };
            count += engine.browse(queue, page).await?.total.unwrap_or_default();
        }
    }
    Ok(count)
}

fn without_priority() -> Filter {
    Filter { without_priority: true, ..Filter::default() }
}

/// The priority that a change of settings gives to messages that wait without one, once the scheme `after` the change knows it, or `None` where
/// the change says none. It is checked whether or not there are such messages: a word that means nothing would be found out with the first.
///
/// # Errors
/// [`Refusal::PriorityUnknown`] and [`Refusal::PriorityOutOfRange`].
pub(crate) fn checked_import(priority: Option<&Given>, after: &Settings) -> Result<Option<Given>, Failure> {
    let priority = match priority {
        None => return Ok(None),
        Some(word) if *word == Given::from(MOST_URGENT) => {
            after.scheme.words_for(Scheme::Route, Priority(10))
        }
        Some(priority) => priority.clone(),
    };
    after.map_priority(&priority)?;
    Ok(Some(priority))
}

impl Desk {
    /// Before the settings of a queue change: gives messages that wait without a priority this one, if they need one. Read and write.
    pub(crate) async fn import(
        &self,
        queue: &str,
        before: &Settings,
        after: &Settings,
        priority: Option<Given>,
    ) -> Done<()> {
        let count = waiting_without_priority(&*self.engine, queue, before, after).await?;
        if count == 0 {
            return Ok(());
        }
        let Some(priority) = priority else {
            return Err(Failure::from(Refusal::ImportPriorityMissing { count }).into());
        };
        self.reprioritise(queue, Select::Matching(without_priority()), priority).await.map(drop)
    }
}
