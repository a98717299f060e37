//! Changes to many messages of a queue at once.

use std::sync::Arc;

use axum::http::StatusCode;
use overtake_api::body::{PurgeIn, ReplayIn, ReprioritiseIn, SelectIn};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::CountOut;
use crate::app::{Answer, App, json};
use crate::decode::Json;
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
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    request_body = ReprioritiseIn,
    responses((status = 200, description = "Done", body = CountOut))
)]
async fn reprioritise(At(desk): At, QueueName(queue): QueueName, Json(ask): Json<ReprioritiseIn>) -> Answer {
    let (select, priority) = ask.into_parts()?;
    json(StatusCode::OK, &CountOut { count: desk.reprioritise(&queue, select, priority).await? })
}

/// Removes messages: ready, delayed, leased and dead ones.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/remove", tag = "messages",
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    request_body = SelectIn,
    responses((status = 200, description = "Done", body = CountOut))
)]
async fn remove(At(desk): At, QueueName(queue): QueueName, Json(ask): Json<SelectIn>) -> Answer {
    json(StatusCode::OK, &CountOut { count: desk.remove(&queue, ask.into_select()?).await? })
}

/// Takes messages back: those that wait end at once, as `cancelled` in the history of the queue.
///
/// Who has leased one is told when it asks to lengthen the lease (409, `cancel-asked`), and is to end its work and settle. However it
/// settles, but for `ack`, and when the lease runs out, the message is cancelled.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/cancel", tag = "messages",
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    request_body = SelectIn,
    responses((status = 200, description = "Done, or asked for", body = CountOut))
)]
async fn cancel(At(desk): At, QueueName(queue): QueueName, Json(ask): Json<SelectIn>) -> Answer {
    json(StatusCode::OK, &CountOut { count: desk.cancel_messages(&queue, ask.into_select()?).await? })
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
    params(("queue" = String, Path, description = "Name, percent-encoded")),
    request_body = ReplayIn,
    responses((status = 200, description = "Done", body = CountOut))
)]
async fn replay(At(desk): At, QueueName(queue): QueueName, Json(ask): Json<ReplayIn>) -> Answer {
    let (select, promote) = ask.into_parts()?;
    json(StatusCode::OK, &CountOut { count: desk.replay(&queue, select, promote).await? })
}
