//! Jobs: changes of many messages, which go on step by step between other requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use overtake_access::Desk;
use overtake_api::params::Params;
use overtake_api::schema::PrioritySchema;
use overtake_engine::{Change, JobState, JobView, Select, Started};
use overtake_lane::{Given, Status};
use serde::Serialize;
use tokio::time::sleep;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{CountOut, rfc3339};
use crate::app::{Answer, App, json};
use crate::login::At;
use crate::path::param;
use crate::problem::Problem;

/// The paths of jobs.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_jobs)).routes(routes!(show_job, cancel_job))
}

/// The job in the path.
struct JobNumber(String);

impl JobNumber {
    /// The number; text that is no number names no job.
    fn get(&self) -> Result<u64, Problem> {
        self.0.parse().map_err(|_| no_such_job(&self.0))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for JobNumber {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(param(parts, state, "job").await?))
    }
}

/// `wait_ms`: how long to wait; `None`: it is not there.
pub(crate) struct Wait(pub(crate) Option<Duration>);

impl<S: Send + Sync> FromRequestParts<S> for Wait {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(Params::from_request_parts(parts, state).await?.into_wait()?))
    }
}

/// Jobs.
#[derive(Serialize, ToSchema)]
#[schema(as = Jobs)]
struct JobList {
    /// By number.
    jobs: Vec<JobOut>,
}

/// A change of many messages of a queue. The job goes on step by step between other requests, whether or not somebody waits for it, and after a restart.
#[derive(Serialize, ToSchema)]
#[schema(as = Job)]
pub(crate) struct JobOut {
    /// Its number, unique in its virtual host.
    id: u64,
    /// The queue whose messages it changes.
    #[schema(value_type = String)]
    queue: Arc<str>,
    /// What it does: `reprioritise`, `remove`, `purge`, `cancel` or `replay`.
    change: &'static str,
    /// The priority that it gives, if it gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PrioritySchema>, nullable = false)]
    priority: Option<Given>,
    /// Which messages it changes: those that match, and were published before it began.
    filter: FilterOut,
    /// `running`, `done`, `failed` or `cancelled`. What was changed by then stays changed.
    state: &'static str,
    /// Messages changed so far.
    changed: u64,
    /// Messages looked at so far.
    looked: u64,
    /// Messages that the queue had when the job began. The job looks at no more than these, and at fewer if some leave before it comes to them.
    total: u64,
    /// When it began.
    began_at: String,
    /// When it ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ended_at: Option<String>,
    /// Why it failed, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    error: Option<Arc<str>>,
}

/// Which messages a job changes. Empty: all.
#[derive(Serialize, ToSchema)]
#[schema(as = JobFilter)]
struct FilterOut {
    /// Only messages with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    status: Option<Status>,
    /// Only this priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PrioritySchema>, nullable = false)]
    priority: Option<Given>,
    /// Only messages that were published without a priority.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    without_priority: bool,
    /// Only this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    key: Option<String>,
    /// Only messages with all these headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    /// Only messages of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    user_id: Option<String>,
}

impl From<JobView> for JobOut {
    fn from(job: JobView) -> Self {
        let priority = match &job.change {
            Change::Reprioritise(priority) => Some(priority.clone()),
            Change::Replay(promote) => promote.clone(),
            Change::Remove | Change::Purge | Change::Cancel => None,
        };
        let filter = job.filter;
        Self {
            id: job.id,
            queue: job.queue,
            change: job.change.name(),
            priority,
            filter: FilterOut {
                status: filter.status,
                priority: filter.priority,
                without_priority: filter.without_priority,
                key: filter.key,
                headers: filter.headers.into_iter().collect(),
                user_id: filter.user_id,
            },
            state: job.state.name(),
            changed: job.changed,
            looked: job.looked,
            total: job.total,
            began_at: rfc3339(job.began),
            ended_at: job.ended.map(rfc3339),
            error: job.error,
        }
    }
}

/// Shows the jobs of the virtual host: those that go on, and those that are over. The broker tells of the last hundred that are over.
///
/// Only jobs of queues that one may read. Where the messages are kept on a Redis or Valkey cluster there are none: there a change is answered when it
/// is done.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "messages",
    responses((status = 200, description = "The jobs", body = JobList))
)]
async fn list_jobs(At(desk): At) -> Answer {
    let jobs = desk.jobs().await?.into_iter().map(JobOut::from).collect();
    json(StatusCode::OK, &JobList { jobs })
}

/// Shows a job: now or, with `wait_ms`, when it is over or so many milliseconds have passed.
#[utoipa::path(
    get, path = "/v1/jobs/{job}", tag = "messages",
    params(
        ("job" = String, Path, description = "Its number"),
        ("wait_ms" = Option<u64>, Query, description = "Waits so long for its end, ms, at most a day", minimum = 0, maximum = 86_400_000)
    ),
    responses((status = 200, description = "The job", body = JobOut))
)]
async fn show_job(At(desk): At, State(app): State<Arc<App>>, number: JobNumber, params: Params) -> Answer {
    let wait = params.into_wait()?.unwrap_or_default();
    desk.must_look()?;
    let job = wait_for(&desk, &app, number.get()?, Some(wait)).await?;
    json(StatusCode::OK, &JobOut::from(job))
}

/// Cancels a job: it ends where it is, and what it has changed stays changed. One that is over is left as it is. Answers the job.
#[utoipa::path(
    delete, path = "/v1/jobs/{job}", tag = "messages",
    params(("job" = String, Path, description = "Its number")),
    responses((status = 200, description = "The job as it ended", body = JobOut))
)]
async fn cancel_job(At(desk): At, number: JobNumber) -> Answer {
    desk.must_look()?;
    let id = number.get()?;
    let job = desk.cancel_job(id).await?.ok_or_else(|| no_such_job(&id.to_string()))?;
    json(StatusCode::OK, &JobOut::from(job))
}

fn no_such_job(id: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no-such-job",
        "there is no such job",
        "list the jobs with GET /v1/jobs: those that are over are told of for a while",
    )
    .detail(format!("there is no job `{id}` in this virtual host"))
}

/// Changes messages, and waits for so long at most, else until that is done.
pub(crate) async fn change(
    (desk, app): (&Desk, &App),
    queue: &str,
    select: Select,
    change: Change,
    wait: Option<Duration>,
) -> Answer {
    let job = match desk.start_change(queue, select, change).await? {
        Started::Done(count) => return json(StatusCode::OK, &CountOut { count }),
        Started::Job(job) if wait == Some(Duration::ZERO) => {
            return json(StatusCode::ACCEPTED, &JobOut::from(*job));
        }
        Started::Job(job) => *job,
    };
    let job = wait_for(desk, app, job.id, wait).await?;
    match (job.state, job.refusal) {
        (JobState::Done, _) => json(StatusCode::OK, &CountOut { count: job.changed }),
        (JobState::Failed, Some(refusal)) => Err(half_done(refusal.into(), job.changed)),
        _ => json(StatusCode::ACCEPTED, &JobOut::from(job)),
    }
}

fn half_done(problem: Problem, changed: u64) -> Problem {
    if changed == 0 {
        return problem;
    }
    problem.detail(format!("{changed} messages were changed before; they stay changed"))
}

/// A job when it is over, or as it is after so long, or when the broker is being drained.
async fn wait_for(desk: &Desk, app: &App, id: u64, wait: Option<Duration>) -> Result<JobView, Problem> {
    let over = async {
        match wait {
            Some(wait) => sleep(wait).await,
            None => std::future::pending().await,
        }
    };
    let drain_begun = app.options.drain.begun();
    let job = tokio::select! {
        biased;
        job = desk.job(id, wait != Some(Duration::ZERO)) => job?,
        () = over => desk.job(id, false).await?,
        () = drain_begun.cancelled() => desk.job(id, false).await?,
    };
    job.ok_or_else(|| no_such_job(&id.to_string()))
}
