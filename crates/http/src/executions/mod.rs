//! Executions: the messages of a queue and of its history as one list of work, for administrators.
//!
//! ```text
//!   queue    ready, delayed, leased   ─▶ queued, delayed, running
//!   history  records                  ─▶ completed, failed, timeout, cancelled
//! ```
//!
//! Newest first: what is in the queue, the last submitted first; then what is in its history, the last finished first. So a page costs what
//! is on it, however deep both are.

mod ask;
mod item;
mod list;
mod status;

use std::sync::Arc;

use axum::http::StatusCode;
use overtake_access::NotDone;
use overtake_api::body::PriorityIn;
use overtake_engine::{Failure, Select};
use overtake_lane::Refusal;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App, done, json};
use crate::decode::Json;
use crate::path::MessageId;
use crate::problem::Problem;
use ask::{Executions, Listed};
use item::Execution;
use list::ExecutionList;

/// The paths of executions.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_executions))
        .merge(status::routes())
        .routes(routes!(show_execution))
        .routes(routes!(reprioritise_execution))
        .routes(routes!(cancel_execution))
        .routes(routes!(retry_execution))
}

/// A page of executions. For administrators.
///
/// First what is in the queue, the last submitted first; then what is in its history, the last finished first. The path may end with a
/// slash.
#[utoipa::path(
    get, path = "/api/v1/admin/executions", tag = "executions",
    params(
        ("queue" = Option<String>, Query, description = "The queue, else `executions`"),
        ("status" = Option<String>, Query, description = "`queued`, `delayed`, `running`, `completed`, `failed`, `timeout` or `cancelled`"),
        ("priority" = Option<String>, Query, description = "A name or a number, in the words of the queue's scheme"),
        ("user_id" = Option<String>, Query, description = "Whose they are"),
        ("limit" = Option<u64>, Query, description = "1 to 200, else 50"),
        ("skip" = Option<u64>, Query, description = "Leave out so many first"),
    ),
    responses((status = 200, description = "A page", body = ExecutionList))
)]
async fn list_executions(Listed(executions, query): Listed) -> Answer {
    json(StatusCode::OK, &executions.list(query).await?)
}

/// One execution. For administrators.
#[utoipa::path(
    get, path = "/api/v1/admin/executions/{id}", tag = "executions",
    params(
        ("id" = String, Path, description = "Its id; `%71ueue` for one that is called `queue`"),
        ("queue" = Option<String>, Query, description = "The queue, else `executions`"),
    ),
    responses((status = 200, description = "The execution", body = Execution))
)]
async fn show_execution(executions: Executions, MessageId(id): MessageId) -> Answer {
    json(StatusCode::OK, &executions.find(&id).await?.ok_or_else(|| no_such(&id))?)
}

/// Gives an execution that is queued or delayed another priority; it keeps its age. For administrators.
#[utoipa::path(
    put, path = "/api/v1/admin/executions/{id}/priority", tag = "executions",
    params(
        ("id" = String, Path, description = "Its id"),
        ("queue" = Option<String>, Query, description = "The queue, else `executions`"),
    ),
    request_body = PriorityIn,
    responses((status = 200, description = "The execution as it is now", body = Execution))
)]
async fn reprioritise_execution(
    executions: Executions,
    MessageId(id): MessageId,
    Json(PriorityIn { priority }): Json<PriorityIn>,
) -> Answer {
    let select = Select::Id(id.clone());
    match executions.desk.reprioritise(&executions.queue, select, priority.0).await {
        Ok(_) => json(StatusCode::OK, &executions.find(&id).await?.ok_or_else(|| no_such(&id))?),
        Err(not) => Err(executions.why_not(&id, not).await),
    }
}

/// Takes an execution back: what waits is cancelled at once, who works on one is asked to end. For administrators.
///
/// One that is asked for is `running` with `cancel_asked` until whoever works on it settles, or its lease is over.
#[utoipa::path(
    post, path = "/api/v1/admin/executions/{id}/cancel", tag = "executions",
    params(
        ("id" = String, Path, description = "Its id"),
        ("queue" = Option<String>, Query, description = "The queue, else `executions`"),
    ),
    responses((status = 200, description = "The execution as it is now", body = Execution))
)]
async fn cancel_execution(executions: Executions, MessageId(id): MessageId) -> Answer {
    let before = executions.in_queue(&id).await?;
    match executions.desk.cancel_messages(&executions.queue, Select::Id(id.clone())).await {
        Ok(_) => {
            let now = executions.find(&id).await?.or_else(|| before.map(Execution::cancelled));
            json(StatusCode::OK, &now.ok_or_else(|| no_such(&id))?)
        }
        Err(not) => Err(executions.why_not(&id, not).await),
    }
}

/// Puts an execution that is finished back into its queue, to be done once more, as new. For administrators.
#[utoipa::path(
    post, path = "/api/v1/admin/executions/{id}/retry", tag = "executions",
    params(
        ("id" = String, Path, description = "Its id"),
        ("queue" = Option<String>, Query, description = "The queue, else `executions`"),
    ),
    responses(
        (status = 200, description = "The execution as it is now", body = Execution),
        (status = 204, description = "Done; it had no id of its own, and has another one now"),
    )
)]
async fn retry_execution(executions: Executions, MessageId(id): MessageId) -> Answer {
    let there = executions.in_queue(&id).await?;
    if let Some(pending) = there.as_ref().filter(|there| there.is_pending()) {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "execution-pending",
            "the execution is not finished",
            "wait until it is over, or cancel it first",
        )
        .detail(format!("`{id}` {}", pending.doing())));
    }
    let from_history = executions.history.as_ref().map(|history| (history, item::id_in_history(&id)));
    let (from, select) = match (there, from_history) {
        (Some(_), _) => (&executions.queue, id.as_str()),
        (None, Some((history, Some(id)))) => (history, id),
        (None, _) => return Err(no_such(&id)),
    };
    match executions.desk.replay(from, Select::Id(select.to_owned()), None).await {
        Ok(_) => {}
        Err(NotDone::Failed(Failure::Refused(refused)))
            if matches!(refused.refusal, Refusal::NoSuchMessage | Refusal::NoSuchQueue) =>
        {
            return Err(no_such(&id));
        }
        Err(not) => return Err(not.into()),
    }
    match executions.in_queue(&id).await? {
        Some(now) => json(StatusCode::OK, &now),
        None => done(),
    }
}

impl Executions {
    /// Why something that is for what waits was not done.
    async fn why_not(&self, id: &str, not: NotDone) -> Problem {
        let NotDone::Failed(Failure::Refused(refused)) = &not else { return not.into() };
        match refused.refusal {
            Refusal::Dead => finished(id),
            Refusal::NoSuchMessage => match self.in_history(id).await {
                Ok(Some(_)) => finished(id),
                Ok(None) => no_such(id),
                Err(problem) => problem,
            },
            _ => not.into(),
        }
    }
}

fn no_such(id: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no-such-execution",
        "there is no execution with this id",
        "list those there are; the history forgets what has been finished for long",
    )
    .detail(format!("there is no execution `{id}`, neither in the queue nor in its history"))
}

fn finished(id: &str) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "execution-finished",
        "the execution is finished",
        "put it back with retry to have it done once more",
    )
    .detail(format!("`{id}` is finished"))
}
