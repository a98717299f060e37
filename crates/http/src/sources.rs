//! Sources: other systems whose messages are taken in.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_access::Desk;
use overtake_connectors::{ConnectorView, IntakeState, Source};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::rfc3339;
use crate::app::{Answer, App, done, json};
use crate::connectors::{
    LastErrorOut, TestIn, TestedOut, as_value, definition, provenance, state_of, tested,
};
use crate::decode::Json;
use crate::login::At;
use crate::path::SourceName;

/// The paths of sources.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_sources))
        .routes(routes!(put_source, show_source, delete_source))
        .routes(routes!(test_source))
        .routes(routes!(pause_source))
        .routes(routes!(resume_source))
}

/// A source as it stands. Counts are since it was started.
#[derive(Serialize, ToSchema)]
#[schema(as = Source)]
struct SourceOut {
    /// Its name.
    name: String,
    /// The kind of system: `amqp`, `redis`, `mqtt`, `kafka`.
    kind: &'static str,
    /// `file`: it stands in the server's configuration, and is changed there; `api`.
    provenance: &'static str,
    /// `connecting`, `running`, `blocked` while there is no room here, `down` until the next attempt, `paused`; `elsewhere`: another broker runs it, and knows the rest;
    /// `unknown`: it is not known which broker runs it.
    state: &'static str,
    /// The broker that runs it, where several brokers are on the same servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<String>,
    /// Messages that were taken in.
    taken: u64,
    /// Bytes of their content.
    taken_bytes: u64,
    /// Messages that can never be taken.
    refused: u64,
    /// When the last one was taken in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    last_taken: Option<String>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<LastErrorOut>,
    /// What it is, as it was given.
    #[schema(value_type = Object)]
    definition: Value,
}

/// Sources, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = Sources)]
struct SourceList {
    /// Those whose queue or exchange one may see.
    sources: Vec<SourceOut>,
}

impl SourceOut {
    fn of(view: &ConnectorView<Source>) -> Self {
        let work = &view.work;
        Self {
            name: view.name.to_string(),
            kind: view.definition.from.kind(),
            provenance: provenance(view.provenance),
            state: state_of(view, told(IntakeState::Paused), told(work.state)),
            broker: view.leader.broker().map(ToString::to_string),
            taken: work.taken,
            taken_bytes: work.taken_bytes,
            refused: work.refused,
            last_taken: work.last_taken.map(rfc3339),
            last_error: LastErrorOut::of(work.last_error.as_ref()),
            definition: as_value(view),
        }
    }
}

/// What a source does, in a word.
fn told(state: IntakeState) -> &'static str {
    match state {
        IntakeState::Connecting => "connecting",
        IntakeState::Running => "running",
        IntakeState::Blocked => "blocked",
        IntakeState::Down => "down",
        IntakeState::Paused => "paused",
    }
}

/// The sources of a virtual host that one may see.
#[utoipa::path(get, path = "/v1/sources", tag = "sources", responses((status = 200, description = "By name", body = SourceList)))]
async fn list_sources(State(app): State<Arc<App>>, At(desk): At) -> Answer {
    let sources = app.services.sources.list(&desk).await?;
    json(StatusCode::OK, &SourceList { sources: sources.iter().map(SourceOut::of).collect() })
}

/// Makes a source, or changes the one of this name: what another system has is taken in, at least once. Administrator.
///
/// The body is as in the configuration file, see docs/endpoints.md. Secrets are named, and never said: `{"env": "OVERTAKE_SECRET_…"}`.
#[utoipa::path(
    put, path = "/v1/sources/{source}", tag = "sources",
    params(("source" = String, Path, description = "Name, percent-encoded; 1 to 200 bytes")),
    request_body(content = Object, description = "The definition", example = json!({"from": {"amqp": {"url": "amqp://rabbit.example", "queue": "requests"}}, "to": {"queue": "requests"}})),
    responses(
        (status = 201, description = "Made", body = SourceOut),
        (status = 200, description = "It was there", body = SourceOut),
    )
)]
async fn put_source(
    State(app): State<Arc<App>>,
    At(desk): At,
    SourceName(name): SourceName,
    Json(body): Json<Value>,
) -> Answer {
    let (is_new, view) = app.services.sources.put(&desk, &name, definition(body)?).await?;
    json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &SourceOut::of(&view))
}

/// One source. Takes any right to where its messages go.
#[utoipa::path(
    get, path = "/v1/sources/{source}", tag = "sources",
    params(("source" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The source", body = SourceOut))
)]
async fn show_source(State(app): State<Arc<App>>, At(desk): At, SourceName(name): SourceName) -> Answer {
    json(StatusCode::OK, &SourceOut::of(&app.services.sources.show(&desk, &name).await?))
}

/// Deletes a source; what it took in stays. Administrator.
#[utoipa::path(
    delete, path = "/v1/sources/{source}", tag = "sources",
    params(("source" = String, Path, description = "Name, percent-encoded")),
    responses((status = 204, description = "Gone"))
)]
async fn delete_source(State(app): State<Arc<App>>, At(desk): At, SourceName(name): SourceName) -> Answer {
    app.services.sources.delete(&desk, &name).await?;
    done()
}

/// Connects to the other system as the source does, and says what is wrong. Nothing is taken. Administrator.
#[utoipa::path(
    post, path = "/v1/sources/{source}/test", tag = "sources",
    params(("source" = String, Path, description = "Name, percent-encoded")),
    request_body = TestIn,
    responses((status = 200, description = "What came of it", body = TestedOut))
)]
async fn test_source(
    State(app): State<Arc<App>>,
    At(desk): At,
    SourceName(name): SourceName,
    Json(TestIn { definition: draft }): Json<TestIn>,
) -> Answer {
    let draft = draft.map(definition).transpose()?;
    tested(app.services.sources.test(&desk, &name, draft).await?)
}

/// Takes nothing until it is resumed. It stays so over a restart. Administrator.
#[utoipa::path(
    post, path = "/v1/sources/{source}/pause", tag = "sources",
    params(("source" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The source", body = SourceOut))
)]
async fn pause_source(State(app): State<Arc<App>>, At(desk): At, SourceName(name): SourceName) -> Answer {
    pause(&app, &desk, &name, true).await
}

/// Takes messages in again. Administrator.
#[utoipa::path(
    post, path = "/v1/sources/{source}/resume", tag = "sources",
    params(("source" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The source", body = SourceOut))
)]
async fn resume_source(State(app): State<Arc<App>>, At(desk): At, SourceName(name): SourceName) -> Answer {
    pause(&app, &desk, &name, false).await
}

async fn pause(app: &App, desk: &Desk, name: &str, is_paused: bool) -> Answer {
    json(StatusCode::OK, &SourceOut::of(&app.services.sources.pause(desk, name, is_paused).await?))
}
