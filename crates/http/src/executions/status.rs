//! The queue of executions: how full it is, how many run at once, and whether any begin.

use std::sync::Arc;

use axum::http::StatusCode;
use overtake_api::body::Ranged;
use overtake_lane::{LaneView, QueueView, Settings};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::Executions;
use crate::app::{Answer, App, json};
use crate::decode::Json;
use crate::problem::Problem;

/// The paths of the queue.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(show_execution_queue))
        .routes(routes!(set_max_concurrent))
        .routes(routes!(pause_executions))
        .routes(routes!(resume_executions))
}

/// A queue of executions as it is now.
#[derive(Serialize, ToSchema)]
struct ExecutionQueue<'a> {
    /// Its name.
    queue: &'a str,
    /// The queue of what is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<&'a str>,
    /// Executions that wait: queued and delayed.
    queue_depth: u64,
    /// Executions that run.
    active_count: u64,
    /// Most executions that run at once; 0: as many as somebody takes.
    max_concurrent: u32,
    /// Whether none begins for now.
    paused: bool,
    /// Executions that wait, of each level that has any, the most urgent first.
    #[schema(value_type = std::collections::BTreeMap<String, u64>)]
    by_priority: ByPriority<'a>,
}

/// How many wait in each lane that has any.
struct ByPriority<'a>(&'a [LaneView]);

impl Serialize for ByPriority<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let waiting = self.0.iter().map(|lane| (&*lane.lane, lane.ready + lane.delayed));
        serializer.collect_map(waiting.filter(|(_, count)| *count > 0))
    }
}

impl<'a> ExecutionQueue<'a> {
    fn of(view: &'a QueueView) -> Self {
        let settings = view.effective_settings();
        let sum = |of: fn(&LaneView) -> u64| view.lanes.iter().map(of).sum();
        Self {
            queue: &view.name,
            history: settings.history.as_deref(),
            queue_depth: sum(|lane| lane.ready + lane.delayed),
            active_count: sum(|lane| lane.leased),
            max_concurrent: settings.max_active,
            paused: settings.paused,
            by_priority: ByPriority(&view.lanes),
        }
    }
}

/// How many may run at once.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MaxConcurrent)]
struct MaxConcurrentIn {
    /// Most executions that run at once; 0: as many as somebody takes. What runs already goes on.
    #[schema(value_type = u32)]
    max_concurrent: Ranged<0, { u32::MAX as u64 }>,
}

/// How full the queue is, and how many run. For administrators.
#[utoipa::path(
    get, path = "/api/v1/admin/executions/queue", tag = "executions",
    params(("queue" = Option<String>, Query, description = "The queue, else `executions`")),
    responses((status = 200, description = "The queue", body = ExecutionQueue))
)]
async fn show_execution_queue(executions: Executions) -> Answer {
    json(StatusCode::OK, &ExecutionQueue::of(&executions.view))
}

/// Says how many may run at once: the setting `max_active` of the queue. For administrators.
#[utoipa::path(
    put, path = "/api/v1/admin/executions/queue/max_concurrent", tag = "executions",
    params(("queue" = Option<String>, Query, description = "The queue, else `executions`")),
    request_body = MaxConcurrentIn,
    responses((status = 200, description = "The queue as it is now", body = ExecutionQueue))
)]
async fn set_max_concurrent(
    executions: Executions,
    Json(MaxConcurrentIn { max_concurrent }): Json<MaxConcurrentIn>,
) -> Answer {
    let most = u32::try_from(max_concurrent.0).unwrap_or(u32::MAX);
    change(&executions, |settings| settings.max_active = most).await
}

/// From now on none begins; what runs goes on: the setting `paused` of the queue. For administrators.
#[utoipa::path(
    post, path = "/api/v1/admin/executions/queue/pause", tag = "executions",
    params(("queue" = Option<String>, Query, description = "The queue, else `executions`")),
    responses((status = 200, description = "The queue as it is now", body = ExecutionQueue))
)]
async fn pause_executions(executions: Executions) -> Answer {
    change(&executions, |settings| settings.paused = true).await
}

/// They begin again. For administrators.
#[utoipa::path(
    post, path = "/api/v1/admin/executions/queue/resume", tag = "executions",
    params(("queue" = Option<String>, Query, description = "The queue, else `executions`")),
    responses((status = 200, description = "The queue as it is now", body = ExecutionQueue))
)]
async fn resume_executions(executions: Executions) -> Answer {
    change(&executions, |settings| settings.paused = false).await
}

/// Changes a setting and leaves all others as they are.
async fn change(executions: &Executions, change: impl Fn(&mut Settings)) -> Answer {
    let Executions { desk, queue, .. } = executions;
    let changed = |before: &Settings| {
        let mut settings = before.clone();
        change(&mut settings);
        Ok::<_, Problem>(settings)
    };
    desk.change_queue(queue, None, changed).await?;
    json(StatusCode::OK, &ExecutionQueue::of(&desk.queue(queue).await?))
}
