//! What machines ask about the server: whether it lives, whether it is ready, its gauges, its interface.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use overtake_access::Tag;
use overtake_api::problem::ProblemBody;
use overtake_engine::{Health, NodeHealth, ServerWork};
use overtake_telemetry::text;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App, json};
use crate::login::Who;
use crate::options::HttpOptions;
use crate::problem::Problem;

/// The paths for machines.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(livez))
        .routes(routes!(healthz))
        .routes(routes!(readyz))
        .routes(routes!(metrics))
        .routes(routes!(openapi))
}

/// That the server lives.
#[derive(Serialize, ToSchema)]
struct Alive<'a> {
    /// `ok`, or `ready`.
    status: &'a str,
    /// Version of the server.
    version: &'a str,
    /// What it cannot do, though it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// Whether the process answers. Touches neither broker nor disk.
#[utoipa::path(get, path = "/livez", tag = "admin", responses((status = 200, description = "It does", body = Alive)))]
async fn livez(State(app): State<Arc<App>>) -> Answer {
    json(StatusCode::OK, &Alive { status: "ok", version: &app.options.version, warning: None })
}

/// The same as `/livez`.
#[utoipa::path(get, path = "/healthz", tag = "admin", responses((status = 200, description = "It does", body = Alive)))]
async fn healthz(app: State<Arc<App>>) -> Answer {
    livez(app).await
}

/// Whether requests should be sent here: recovered, not draining, and the store well.
///
/// A broker on Redis or Valkey is ready while one primary answers it, with a `warning` that names each server that does not, or whose writes are not confirmed.
/// No server is asked for this: a loss is known within 2 seconds.
/// A server whose store is full, or whose disk is low, is ready, with a `warning`: its consumers are what makes room.
#[utoipa::path(
    get, path = "/readyz", tag = "admin",
    responses(
        (status = 200, description = "Yes", body = Alive),
        (status = 503, description = "No, and why", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn readyz(State(app): State<Arc<App>>) -> Answer {
    let health = app.desks.health();
    let warning = warning(&health);
    match why_not_ready(&app.options, health) {
        None => json(StatusCode::OK, &Alive { status: "ready", version: &app.options.version, warning }),
        Some(why) => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not-ready",
            "the server is not ready",
            "send requests elsewhere, or try again later; `detail` says what is missing",
        )
        .detail(why)),
    }
}

/// What somebody should look at though the server is ready.
fn warning(health: &Health) -> Option<String> {
    let full = health.full.as_ref().map(|why| format!("publishes are refused: {why}"));
    let damage = health.damage.sentence().map(|places| format!("damage in the store: {places}"));
    let nodes = health.nodes.iter().filter_map(NodeHealth::trouble);
    let orphans = health.servers.as_ref().and_then(ServerWork::trouble);
    let all: Vec<String> = full.into_iter().chain(damage).chain(nodes).chain(orphans).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn why_not_ready(options: &HttpOptions, health: Health) -> Option<String> {
    if options.drain.begun().is_cancelled() {
        return Some("the server is draining".to_owned());
    }
    if let Some(why) = options.readiness.why_not() {
        return Some(why.to_string());
    }
    health.down.map(|why| format!("the engine is down: {why}"))
}

/// Gauges, counters and histograms in the text format of Prometheus.
///
/// For users with the tag `monitoring`. Without an engine that answers, those of the server alone, and `overtake_engine_up 0`.
/// `docs/metrics.md` says what each means.
#[utoipa::path(
    get, path = "/metrics", tag = "admin",
    responses((status = 200, description = "Text format 0.0.4", body = String, content_type = "text/plain"))
)]
async fn metrics(State(app): State<Arc<App>>, Who(who): Who) -> Answer {
    who.must_have(Tag::Monitoring)?;
    let families = app.options.telemetry.collect().await;
    // With thousands of queues there are megabytes of it, and whoever else is served by this thread would wait.
    let text = tokio::task::spawn_blocking(move || text::render(&families)).await;
    let mut response = text.expect("rendering does not panic").into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(text::CONTENT_TYPE));
    Ok(response)
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "admin",
    responses((status = 200, description = "OpenAPI 3.1", body = Object))
)]
async fn openapi() -> Answer {
    json(StatusCode::OK, crate::openapi::document())
}

#[cfg(test)]
mod tests {
    use overtake_engine::Full;

    use super::*;

    #[test]
    fn whoever_asks_is_warned_of_damage_and_of_a_full_store() {
        let mut health = Health::default();
        assert_eq!(warning(&health), None);
        let (place, queue) = ("segment-1 at byte 2: its checksum is wrong".into(), "q".into());
        let (run, ordinals) = (overtake_lane::RunId(1), 0..9);
        let place = overtake_engine::DamagedPlace { place, queue, messages: 3, run, ordinals };
        (health.damage.blocks, health.damage.places) = (1, [place].into());
        let damage = "damage in the store: segment-1 at byte 2: its checksum is wrong; 3 messages of queue `q` cannot be read";
        assert_eq!(warning(&health).as_deref(), Some(damage));
        health.full = Some(Full::NoRoom);
        assert_eq!(
            warning(&health),
            Some(format!("publishes are refused: the disk has no room for more messages; {damage}"))
        );
        let servers = Some(ServerWork { orphans: 1, ..ServerWork::default() });
        assert_eq!(
            warning(&Health { servers, ..Health::default() }).as_deref(),
            Some("the servers have 1 queue that is not defined: see `overtake cluster orphans`")
        );
    }

    #[test]
    fn a_server_is_ready_when_nothing_speaks_against_it() {
        let options = HttpOptions::default();
        let check = |health: &Health, expect: Option<&str>| {
            assert_eq!(why_not_ready(&options, health.clone()).as_deref(), expect);
        };
        let well = Health::default();
        check(&well, None);
        let full = Health { full: Some(Full::NoRoom), ..well.clone() };
        check(&full, None);
        let down = Health { down: Some("a sync failed".into()), ..full };
        check(&down, Some("the engine is down: a sync failed"));
        options.readiness.not_ready("loading");
        check(&down, Some("loading"));
        options.drain.begin(std::time::Duration::ZERO);
        check(&well, Some("the server is draining"));
    }
}
