//! Changes to many messages of a queue at once. One that takes long is a [job](crate::jobs).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_api::body::{PurgeIn, ReplayIn, ReprioritiseIn, SelectIn};
use overtake_engine::Change;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::CountOut;
use crate::app::{Answer, App, json};
use crate::decode::Json;
use crate::jobs::{JobOut, Wait, change};
use crate::login::At;
use crate::path::QueueName;

/// The paths of changes to many messages.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(reprioritise))
        .routes(routes!(remove))
        .routes(routes!(cancel))
        .routes(routes!(purge))
        .routes(routes!(replay))
}

/// Gives ready and delayed messages another priority; each keeps its sequence.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/reprioritise", tag = "messages",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("wait_ms" = Option<u64>, Query, description = "Waits so long for the end, ms, at most a day; without it, until the end", minimum = 0, maximum = 86_400_000)
    ),
    request_body = ReprioritiseIn,
    responses(
        (status = 200, description = "Done", body = CountOut),
        (status = 202, description = "It goes on: the wait was over first, or the job was cancelled", body = JobOut)
    )
)]
async fn reprioritise(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(queue): QueueName,
    Wait(wait): Wait,
    Json(ask): Json<ReprioritiseIn>,
) -> Answer {
    let (select, priority) = ask.into_parts()?;
    change((&desk, &app), &queue, select, Change::Reprioritise(priority), wait).await
}

/// Removes messages: ready, delayed, leased and dead ones.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/remove", tag = "messages",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("wait_ms" = Option<u64>, Query, description = "Waits so long for the end, ms, at most a day; without it, until the end", minimum = 0, maximum = 86_400_000)
    ),
    request_body = SelectIn,
    responses(
        (status = 200, description = "Done", body = CountOut),
        (status = 202, description = "It goes on: the wait was over first, or the job was cancelled", body = JobOut)
    )
)]
async fn remove(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(queue): QueueName,
    Wait(wait): Wait,
    Json(ask): Json<SelectIn>,
) -> Answer {
    change((&desk, &app), &queue, ask.into_select()?, Change::Remove, wait).await
}

/// Takes messages back: those that wait end at once, as `cancelled` in the history of the queue.
///
/// Who has leased one is told when it asks to lengthen the lease (409, `cancel-asked`), and is to end its work and settle. However it
/// settles, but for `ack`, and when the lease runs out, the message is cancelled.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/cancel", tag = "messages",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("wait_ms" = Option<u64>, Query, description = "Waits so long for the end, ms, at most a day; without it, until the end", minimum = 0, maximum = 86_400_000)
    ),
    request_body = SelectIn,
    responses(
        (status = 200, description = "Done, or asked for", body = CountOut),
        (status = 202, description = "It goes on: the wait was over first, or the job was cancelled", body = JobOut)
    )
)]
async fn cancel(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(queue): QueueName,
    Wait(wait): Wait,
    Json(ask): Json<SelectIn>,
) -> Answer {
    change((&desk, &app), &queue, ask.into_select()?, Change::Cancel, wait).await
}

/// Removes everything that stands so; without `status` what is ready or delayed.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/purge", tag = "messages",
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    request_body = PurgeIn,
    responses((status = 200, description = "Done", body = CountOut))
)]
async fn purge(At(desk): At, QueueName(queue): QueueName, Json(ask): Json<PurgeIn>) -> Answer {
    let count = desk.purge(&queue, ask.checked()?, ask.expect).await?;
    json(StatusCode::OK, &CountOut { count })
}

/// Puts dead letters back into their lanes, with another priority if the request has one.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/replay", tag = "messages",
    params(
        ("queue" = String, Path, description = "Name, percent-encoded"),
        ("wait_ms" = Option<u64>, Query, description = "Waits so long for the end, ms, at most a day; without it, until the end", minimum = 0, maximum = 86_400_000)
    ),
    request_body = ReplayIn,
    responses(
        (status = 200, description = "Done", body = CountOut),
        (status = 202, description = "It goes on: the wait was over first, or the job was cancelled", body = JobOut)
    )
)]
async fn replay(
    At(desk): At,
    State(app): State<Arc<App>>,
    QueueName(queue): QueueName,
    Wait(wait): Wait,
    Json(ask): Json<ReplayIn>,
) -> Answer {
    let (select, promote) = ask.into_parts()?;
    change((&desk, &app), &queue, select, Change::Replay(promote), wait).await
}
