//! Virtual hosts: those one may enter; administrators make, change and delete them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_lane::{VhostSettings, VhostView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App, done, json};
use crate::decode::Json;
use crate::login::Who;
use crate::path::VhostName;

/// The paths of virtual hosts.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_vhosts)).routes(routes!(put_vhost, show_vhost, delete_vhost))
}

/// What a virtual host is told to be. What is missing is empty, or has no limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = VhostIn)]
struct VhostIn {
    /// What it is for.
    #[serde(default)]
    description: String,
    /// Words to find it by.
    #[serde(default)]
    tags: Vec<String>,
    /// At most so many queues.
    max_queues: Option<u64>,
    /// At most so many AMQP connections.
    max_connections: Option<u64>,
}

/// A virtual host.
#[derive(Serialize, ToSchema)]
#[schema(as = Vhost)]
struct VhostOut<'a> {
    /// Its name.
    name: &'a str,
    /// What it is for.
    description: &'a str,
    /// Words to find it by.
    tags: &'a [String],
    /// At most so many queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_queues: Option<u64>,
    /// At most so many AMQP connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_connections: Option<u64>,
    /// Queues in it.
    queues: u64,
}

/// Virtual hosts, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = Vhosts)]
struct VhostList<'a> {
    /// Those one may enter.
    vhosts: Vec<VhostOut<'a>>,
}

impl<'a> VhostOut<'a> {
    fn of(view: &'a VhostView) -> Self {
        let VhostSettings { description, tags, max_queues, max_connections } = &view.settings;
        let (max_queues, max_connections) = (*max_queues, *max_connections);
        Self { name: &view.name, description, tags, max_queues, max_connections, queues: view.queues }
    }
}

/// The virtual hosts that one may enter; with the tag `monitoring` all.
#[utoipa::path(get, path = "/v1/vhosts", tag = "vhosts", responses((status = 200, description = "By name", body = VhostList)))]
async fn list_vhosts(State(app): State<Arc<App>>, Who(who): Who) -> Answer {
    let vhosts = app.desks.vhosts(&who).await?;
    json(StatusCode::OK, &VhostList { vhosts: vhosts.iter().map(VhostOut::of).collect() })
}

/// Makes a virtual host, or changes what is said of it. For administrators.
///
/// Whoever makes one has all rights in it. What is in one that is there stays.
#[utoipa::path(
    put, path = "/v1/vhosts/{vhost}", tag = "vhosts",
    params(("vhost" = String, Path, description = "Name, percent-encoded: `%2F` is `/`")),
    request_body = VhostIn,
    responses(
        (status = 201, description = "Made", body = VhostOut),
        (status = 200, description = "It was there", body = VhostOut),
    )
)]
async fn put_vhost(
    State(app): State<Arc<App>>,
    Who(who): Who,
    VhostName(name): VhostName,
    Json(vhost): Json<VhostIn>,
) -> Answer {
    let office = app.desks.office(who.clone())?;
    let VhostIn { description, tags, max_queues, max_connections } = vhost;
    let is_new =
        office.put_vhost(&name, VhostSettings { description, tags, max_queues, max_connections }).await?;
    let vhost = app.desks.vhost(&who, &name).await?;
    json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &VhostOut::of(&vhost))
}

/// One virtual host.
#[utoipa::path(
    get, path = "/v1/vhosts/{vhost}", tag = "vhosts",
    params(("vhost" = String, Path, description = "Name, percent-encoded: `%2F` is `/`")),
    responses((status = 200, description = "The virtual host", body = VhostOut))
)]
async fn show_vhost(State(app): State<Arc<App>>, Who(who): Who, VhostName(name): VhostName) -> Answer {
    json(StatusCode::OK, &VhostOut::of(&app.desks.vhost(&who, &name).await?))
}

/// Deletes a virtual host with all that is in it, and all rights in it. For administrators. AMQP connections to it are closed.
#[utoipa::path(
    delete, path = "/v1/vhosts/{vhost}", tag = "vhosts",
    params(("vhost" = String, Path, description = "Name, percent-encoded")),
    responses((status = 204, description = "Gone"))
)]
async fn delete_vhost(State(app): State<Arc<App>>, Who(who): Who, VhostName(name): VhostName) -> Answer {
    app.desks.office(who)?.delete_vhost(&name).await?;
    done()
}
