//! Endpoints: queues whose messages are sent to other systems.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_access::Desk;
use overtake_connectors::{ConnectorView, Endpoint};
use overtake_forward::{BreakerView, BudgetView, LaneCounts, State as Doing};
use overtake_lane::LaneView;
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
use crate::path::EndpointName;
use crate::problem::Problem;

/// The paths of endpoints.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_endpoints))
        .routes(routes!(put_endpoint, show_endpoint, delete_endpoint))
        .routes(routes!(test_endpoint))
        .routes(routes!(pause_endpoint))
        .routes(routes!(resume_endpoint))
}

/// An endpoint as it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = Endpoint)]
struct EndpointOut {
    /// Its name.
    name: String,
    /// The queue whose messages it sends.
    queue: String,
    /// The kind of receiver: `queue`, `webhook`, `amqp`, `redis`, `mqtt`, `kafka`.
    kind: &'static str,
    /// `file`: it stands in the server's configuration, and is changed there; `api`.
    provenance: &'static str,
    /// `connecting`, `idle`, `sending`, `waiting` for its rate or the next day, `down` until the next attempt, `paused`; `elsewhere`: another broker runs it, and knows the
    /// rest; `unknown`: it is not known which broker runs it.
    state: &'static str,
    /// The broker that runs it, where several brokers are on the same servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<String>,
    /// Connections there are.
    connections: usize,
    /// When it does something again by itself, if it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    next_attempt: Option<String>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<LastErrorOut>,
    /// What of the day is used, where there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetOut>,
    /// Its lanes, the most urgent first.
    lanes: Vec<EndpointLaneOut>,
    /// What it is, as it was given.
    #[schema(value_type = Object)]
    definition: Value,
}

/// What of a day is used, bytes.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointBudget)]
struct BudgetOut {
    /// Went already.
    used_bytes: u64,
    /// May go in a day.
    daily_bytes: u64,
    /// Of those the last so many are for urgent messages.
    reserve_bytes: u64,
}

/// A lane of an endpoint. Counts are since the endpoint was started.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = EndpointLane)]
struct EndpointLaneOut {
    /// Its name.
    lane: String,
    /// Messages that wait to be sent.
    ready: u64,
    /// Messages that failed and wait aside.
    delayed: u64,
    /// Dead letters.
    dead: u64,
    /// Age of the oldest that waits, ms.
    oldest_age_ms: u64,
    /// On their way.
    in_flight: u64,
    /// The receiver has them.
    sent: u64,
    /// Bytes of those over the line.
    sent_bytes: u64,
    /// Messages that the receiver accepted per second, over the last ten.
    sent_per_second: f64,
    /// Bytes of those over the line, per second.
    sent_bytes_per_second: u64,
    /// Failed, and tried again later.
    failed: u64,
    /// Refused for good.
    refused: u64,
    /// Over before they were sent.
    expired: u64,
    /// Put back unsent, or in doubt.
    put_back: u64,
    /// When the last one was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    last_sent: Option<String>,
    /// Failures in a row.
    failures: u32,
    /// Nothing of it is sent until then: it failed too often, or the receiver is busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    open_until: Option<String>,
}

/// Endpoints, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = Endpoints)]
struct EndpointList {
    /// Those whose queue one may see.
    endpoints: Vec<EndpointOut>,
}

impl EndpointOut {
    fn of(view: &ConnectorView<Endpoint>, lanes: &[LaneView]) -> Self {
        let work = &view.work;
        let budget = work.budget.map(|BudgetView { used_bytes, daily_bytes, reserve_bytes }| BudgetOut {
            used_bytes,
            daily_bytes,
            reserve_bytes,
        });
        let mut counted: BTreeMap<&str, &LaneCounts> =
            work.lanes.iter().map(|(lane, counts)| (&**lane, counts)).collect();
        let breaker = |lane: &str| work.breakers.get(lane);
        let mut all: Vec<EndpointLaneOut> = lanes
            .iter()
            .map(|lane| EndpointLaneOut {
                ready: lane.ready,
                delayed: lane.delayed,
                dead: lane.dead,
                oldest_age_ms: lane.oldest_age_ms,
                ..EndpointLaneOut::of(&lane.lane, counted.remove(&*lane.lane), breaker(&lane.lane))
            })
            .collect();
        // Lanes that are empty may be gone.
        all.extend(
            counted.into_iter().map(|(lane, counts)| EndpointLaneOut::of(lane, Some(counts), breaker(lane))),
        );
        Self {
            name: view.name.to_string(),
            queue: view.definition.queue_of(&view.name).to_string(),
            kind: view.definition.to.kind(),
            provenance: provenance(view.provenance),
            state: state_of(view, told(Doing::Paused), told(work.state)),
            broker: view.leader.broker().map(ToString::to_string),
            connections: work.connections,
            next_attempt: work.next_attempt.map(rfc3339),
            last_error: LastErrorOut::of(work.last_error.as_ref()),
            budget,
            lanes: all,
            definition: as_value(view),
        }
    }

    async fn read(desk: &Desk, view: &ConnectorView<Endpoint>) -> Self {
        // Its queue may not be there yet.
        let queue = desk.queue(&view.definition.queue_of(&view.name)).await;
        Self::of(view, &queue.map(|queue| queue.lanes).unwrap_or_default())
    }
}

impl EndpointLaneOut {
    fn of(lane: &str, counts: Option<&LaneCounts>, breaker: Option<&BreakerView>) -> Self {
        let counts = counts.copied().unwrap_or_default();
        Self {
            lane: lane.to_owned(),
            in_flight: counts.in_flight,
            sent: counts.sent,
            sent_bytes: counts.sent_bytes,
            sent_per_second: counts.throughput.messages_per_1000_s as f64 / 1_000.0,
            sent_bytes_per_second: counts.throughput.bytes_per_s,
            failed: counts.failed,
            refused: counts.refused,
            expired: counts.expired,
            put_back: counts.put_back,
            last_sent: counts.last_sent.map(rfc3339),
            failures: breaker.map_or(0, |breaker| breaker.failures),
            open_until: breaker.and_then(|breaker| breaker.open_until).map(rfc3339),
            ..Self::default()
        }
    }
}

/// What an endpoint does, in a word.
fn told(state: Doing) -> &'static str {
    match state {
        Doing::Connecting => "connecting",
        Doing::Idle => "idle",
        Doing::Sending => "sending",
        Doing::Waiting => "waiting",
        Doing::Down => "down",
        Doing::Paused => "paused",
    }
}

/// The endpoints of a virtual host whose queues one may see.
#[utoipa::path(get, path = "/v1/endpoints", tag = "endpoints", responses((status = 200, description = "By name", body = EndpointList)))]
async fn list_endpoints(State(app): State<Arc<App>>, At(desk): At) -> Answer {
    let mut endpoints = Vec::new();
    for view in app.services.endpoints.list(&desk).await? {
        endpoints.push(EndpointOut::read(&desk, &view).await);
    }
    json(StatusCode::OK, &EndpointList { endpoints })
}

/// Makes an endpoint, or changes the one of this name: what waits in its queue is sent to another system, the most urgent first. Administrator.
///
/// The body is as in the configuration file, see docs/endpoints.md. Secrets are named, and never said: `{"env": "OVERTAKE_SECRET_…"}`.
#[utoipa::path(
    put, path = "/v1/endpoints/{endpoint}", tag = "endpoints",
    params(("endpoint" = String, Path, description = "Name, percent-encoded; 1 to 200 bytes")),
    request_body(content = Object, description = "The definition", example = json!({"queue": "$upstream", "to": {"webhook": {"url": "https://example.org/hook"}}})),
    responses(
        (status = 201, description = "Made", body = EndpointOut),
        (status = 200, description = "It was there", body = EndpointOut),
    )
)]
async fn put_endpoint(
    State(app): State<Arc<App>>,
    At(desk): At,
    EndpointName(name): EndpointName,
    Json(body): Json<Value>,
) -> Answer {
    let (is_new, view) = app.services.endpoints.put(&desk, &name, definition(body)?).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    json(status, &EndpointOut::read(&desk, &view).await)
}

/// One endpoint. Takes any right to its queue.
#[utoipa::path(
    get, path = "/v1/endpoints/{endpoint}", tag = "endpoints",
    params(("endpoint" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The endpoint", body = EndpointOut))
)]
async fn show_endpoint(
    State(app): State<Arc<App>>,
    At(desk): At,
    EndpointName(name): EndpointName,
) -> Answer {
    let view = app.services.endpoints.show(&desk, &name).await?;
    json(StatusCode::OK, &EndpointOut::read(&desk, &view).await)
}

/// Deletes an endpoint; what waits in its queue stays there. Administrator.
#[utoipa::path(
    delete, path = "/v1/endpoints/{endpoint}", tag = "endpoints",
    params(("endpoint" = String, Path, description = "Name, percent-encoded")),
    responses((status = 204, description = "Gone"))
)]
async fn delete_endpoint(
    State(app): State<Arc<App>>,
    At(desk): At,
    EndpointName(name): EndpointName,
) -> Answer {
    app.services.endpoints.delete(&desk, &name).await?;
    done()
}

/// Connects to the receiver as the endpoint does, and says what is wrong. Nothing is sent. Administrator.
#[utoipa::path(
    post, path = "/v1/endpoints/{endpoint}/test", tag = "endpoints",
    params(("endpoint" = String, Path, description = "Name, percent-encoded")),
    request_body = TestIn,
    responses((status = 200, description = "What came of it", body = TestedOut))
)]
async fn test_endpoint(
    State(app): State<Arc<App>>,
    At(desk): At,
    EndpointName(name): EndpointName,
    Json(TestIn { definition: draft }): Json<TestIn>,
) -> Answer {
    let draft = draft.map(definition).transpose()?;
    tested(app.services.endpoints.test(&desk, &name, draft).await?)
}

/// Sends nothing new until it is resumed; what is under way is finished. It stays so over a restart. Administrator.
#[utoipa::path(
    post, path = "/v1/endpoints/{endpoint}/pause", tag = "endpoints",
    params(("endpoint" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The endpoint", body = EndpointOut))
)]
async fn pause_endpoint(
    State(app): State<Arc<App>>,
    At(desk): At,
    EndpointName(name): EndpointName,
) -> Answer {
    pause(&app, &desk, &name, true).await
}

/// Sends again, at once and as if nothing had failed. Administrator.
#[utoipa::path(
    post, path = "/v1/endpoints/{endpoint}/resume", tag = "endpoints",
    params(("endpoint" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The endpoint", body = EndpointOut))
)]
async fn resume_endpoint(
    State(app): State<Arc<App>>,
    At(desk): At,
    EndpointName(name): EndpointName,
) -> Answer {
    pause(&app, &desk, &name, false).await
}

async fn pause(
    app: &App,
    desk: &Desk,
    name: &str,
    is_paused: bool,
) -> Result<axum::response::Response, Problem> {
    let view = app.services.endpoints.pause(desk, name, is_paused).await?;
    json(StatusCode::OK, &EndpointOut::read(desk, &view).await)
}
