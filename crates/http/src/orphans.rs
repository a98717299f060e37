//! Queues on servers whose definition was lost: administrators list, adopt and remove them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_api::name::checked;
use overtake_engine::Orphan;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App, json};
use crate::decode::Json;
use crate::login::Who;
use crate::path::QueueNumber;

/// The paths of such queues.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_orphans))
        .routes(routes!(remove_orphan))
        .routes(routes!(adopt_orphan))
}

/// A queue of which the servers have messages and no definition, or had none.
#[derive(Serialize, ToSchema)]
#[schema(as = Orphan)]
struct OrphanOut<'a> {
    /// By which it is adopted or removed.
    number: u32,
    /// The virtual host that it was in. Missing: not known, so it can only be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    vhost: Option<&'a str>,
    /// Its name.
    name: &'a str,
    /// Partitions of it that were found.
    partitions: u64,
    /// Messages in them, whatever their status.
    messages: u64,
}

/// All of them, by number.
#[derive(Serialize, ToSchema)]
#[schema(as = Orphans)]
struct OrphanList<'a> {
    /// Nobody is given their messages.
    orphans: Vec<OrphanOut<'a>>,
}

/// How a queue is adopted.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OrphanAdopt)]
struct AdoptIn {
    /// Another name than it had, where a queue has that by now.
    name: Option<String>,
}

/// What was removed.
#[derive(Serialize, ToSchema)]
#[schema(as = OrphanRemoved)]
struct RemovedOut {
    /// So many messages.
    messages: u64,
}

impl<'a> OrphanOut<'a> {
    fn of(orphan: &'a Orphan) -> Self {
        let Orphan { queue, vhost, name, partitions, messages } = orphan;
        let (partitions, messages) = (*partitions, *messages);
        Self { number: queue.0, vhost: vhost.as_deref(), name, partitions, messages }
    }
}

/// Queues on the servers whose definition was lost. For administrators.
///
/// Their messages are kept, and nobody is given them before the queue is adopted. A broker that keeps its messages itself has none.
#[utoipa::path(get, path = "/v1/cluster/orphans", tag = "cluster", responses((status = 200, description = "By number", body = OrphanList)))]
async fn list_orphans(State(app): State<Arc<App>>, Who(who): Who) -> Answer {
    let orphans = app.desks.office(who)?.orphans().await?;
    json(StatusCode::OK, &OrphanList { orphans: orphans.iter().map(OrphanOut::of).collect() })
}

/// Defines such a queue again as it was, with its messages. For administrators.
///
/// Its virtual host is made where it is not there; nobody has rights in it then but administrators who give them to themselves.
#[utoipa::path(
    post, path = "/v1/cluster/orphans/{number}/adopt", tag = "cluster",
    params(("number" = u32, Path, description = "Its number")),
    request_body = AdoptIn,
    responses((status = 200, description = "It is a queue like others", body = OrphanOut))
)]
async fn adopt_orphan(
    State(app): State<Arc<App>>,
    Who(who): Who,
    QueueNumber(queue): QueueNumber,
    Json(AdoptIn { name }): Json<AdoptIn>,
) -> Answer {
    let office = app.desks.office(who)?;
    let name = name.as_deref().map(|name| checked(name, "queue")).transpose()?;
    json(StatusCode::OK, &OrphanOut::of(&office.adopt_orphan(queue, name).await?))
}

/// Removes such a queue with its messages. For administrators.
#[utoipa::path(
    delete, path = "/v1/cluster/orphans/{number}", tag = "cluster",
    params(("number" = u32, Path, description = "Its number")),
    responses((status = 200, description = "It is gone", body = RemovedOut))
)]
async fn remove_orphan(
    State(app): State<Arc<App>>,
    Who(who): Who,
    QueueNumber(queue): QueueNumber,
) -> Answer {
    let messages = app.desks.office(who)?.remove_orphan(queue).await?;
    json(StatusCode::OK, &RemovedOut { messages })
}
