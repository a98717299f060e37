//! Finding executions: in the queue, and in its history.

use std::sync::Arc;

use overtake_access::NotDone;
use overtake_engine::{Browse, BrowsedMessage, Filter};
use overtake_lane::{BrowseOrder, Refusal, Status};
use serde::Serialize;
use utoipa::ToSchema;

use super::ask::{ExecutionQuery, Executions};
use super::item::{Execution, id_in_history};
use crate::problem::Problem;

/// A page of executions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecutionList {
    /// The newest first.
    executions: Vec<Execution>,
    /// How many there are in all.
    total: u64,
    /// Most executions of the page.
    limit: usize,
    /// How many were left out first.
    skip: u64,
    /// Whether there are more after these.
    has_more: bool,
}

/// Where executions are looked for, how they are shown, and which of them.
struct Source {
    name: Arc<str>,
    show: fn(&BrowsedMessage) -> Execution,
    filter: Filter,
}

impl Executions {
    /// A page.
    pub(super) async fn list(&self, query: ExecutionQuery) -> Result<ExecutionList, Problem> {
        let (mut executions, mut total, mut skip) = (Vec::new(), 0, query.skip);
        for source in self.sources(&query) {
            let left = query.limit - executions.len();
            let (found, there) = self.page_of(&source, skip, left).await?;
            executions.extend(found);
            total += there;
            skip = skip.saturating_sub(there);
        }
        let shown = query.skip.saturating_add(executions.len() as u64);
        let ExecutionQuery { limit, skip, .. } = query;
        Ok(ExecutionList { executions, total, limit, skip, has_more: shown < total })
    }

    fn sources(&self, query: &ExecutionQuery) -> Vec<Source> {
        let ExecutionQuery { status, priority, user_id, .. } = query;
        let ending = status.and_then(|status| status.ending());
        let filter =
            Filter { ending, priority: priority.clone(), user_id: user_id.clone(), ..Filter::default() };
        // What died before the queue had a history, or has none, is finished too.
        let has_dead = self.view.lanes.iter().any(|lane| lane.dead > 0);
        let standing = status.and_then(|status| status.standing());
        let here = Source {
            name: Arc::clone(&self.queue),
            show: Execution::in_queue,
            filter: Filter { status: standing.or(ending.map(|_| Status::Dead)), ..filter.clone() },
        };
        let here = (ending.is_none() || has_dead).then_some(here);
        let past = self.history.iter().filter(|_| standing.is_none()).map(|history| Source {
            name: Arc::clone(history),
            show: Execution::in_history,
            filter: filter.clone(),
        });
        here.into_iter().chain(past).collect()
    }

    /// At most so many, and how many there are in all.
    async fn page_of(
        &self,
        source: &Source,
        skip: u64,
        limit: usize,
    ) -> Result<(Vec<Execution>, u64), Problem> {
        let (mut executions, mut total) = (Vec::new(), 0);
        let filter = source.filter.clone();
        let mut browse =
            Browse { filter, order: BrowseOrder::Newest, skip, with_total: true, limit, ..Browse::default() };
        loop {
            let page = match self.desk.browse(&source.name, browse.clone()).await {
                Ok(page) => page,
                Err(not) if source.name == self.queue => return Err(not.into()),
                Err(not) if is_no_queue(&not) => return Ok((executions, total)),
                Err(not) => return Err(self.other_scheme(not)),
            };
            // A page ends early where it has much content.
            executions.extend(page.messages.iter().map(source.show));
            total = page.total.unwrap_or(total);
            browse.limit -= page.messages.len();
            if page.next.is_none() || browse.limit == 0 {
                return Ok((executions, total));
            }
            browse = Browse { cursor: page.next, skip: 0, with_total: false, ..browse };
        }
    }

    /// A priority that the queue knows and its history does not is no fault of whoever asks.
    fn other_scheme(&self, not: NotDone) -> Problem {
        let is_unknown = not.is(Refusal::PriorityUnknown) || not.is(Refusal::PriorityOutOfRange);
        let problem = Problem::from(not);
        let scheme = self.view.effective_settings().scheme;
        let hint = || {
            format!(
                "use a priority of the scheme of the queue, `{scheme}`, and give its history the same one"
            )
        };
        if is_unknown { problem.hint(hint()) } else { problem }
    }

    /// One execution, wherever it is.
    pub(super) async fn find(&self, id: &str) -> Result<Option<Execution>, Problem> {
        match self.in_queue(id).await? {
            Some(here) => Ok(Some(here)),
            None => self.in_history(id).await,
        }
    }

    /// One execution that is in the queue.
    pub(super) async fn in_queue(&self, id: &str) -> Result<Option<Execution>, Problem> {
        let found = there(self.desk.message(&self.queue, id).await)?;
        Ok(found.map(|found| Execution::in_queue(&found).with_past_attempts(&found)))
    }

    /// One execution that is in the history.
    pub(super) async fn in_history(&self, id: &str) -> Result<Option<Execution>, Problem> {
        let (Some(history), Some(id)) = (&self.history, id_in_history(id)) else { return Ok(None) };
        let found = there(self.desk.message(history, id).await)?;
        Ok(found.map(|found| Execution::in_history(&found).with_past_attempts(&found)))
    }
}

/// What is there, or nothing.
fn there(found: Result<BrowsedMessage, NotDone>) -> Result<Option<BrowsedMessage>, Problem> {
    match found {
        Ok(message) => Ok(Some(message)),
        Err(not) if is_no_queue(&not) || not.is(Refusal::NoSuchMessage) => Ok(None),
        Err(not) => Err(not.into()),
    }
}

fn is_no_queue(not: &NotDone) -> bool {
    not.is(Refusal::NoSuchQueue)
}
