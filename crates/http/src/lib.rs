//! Overtake over HTTP: routes, problems, OpenAPI, metrics. No sockets: `server` owns them.
//!
//! ```text
//! request ─▶ path, decode, overtake_api ─▶ handler ─▶ Desk, Arc<dyn Engine> ─▶ answer ─▶ JSON
//!                    ╰────────────────────────┴─▶ Problem ─▶ application/problem+json
//! ```
//!
//! A handler translates and decides nothing: [`overtake_api`] checks what a request says, without the engine, and the engine decides
//! whether the request succeeds. No request can make a handler panic.

mod admin;
mod answer;
mod app;
mod batch;
mod bulk;
mod categories;
mod cluster;
mod connectors;
mod decode;
mod drain;
mod endpoints;
mod exchange_answer;
mod exchanges;
mod executions;
mod held;
mod jobs;
mod leases;
mod login;
mod messages;
mod metrics;
mod named;
mod openapi;
mod options;
mod orphans;
mod overview;
mod path;
mod problem;
mod query;
mod queues;
mod routes;
mod schedules;
mod schema;
mod services;
mod settings;
mod snapshot;
mod sources;
mod tokens;
mod trace;
mod users;
mod vhosts;
mod web_session;

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use overtake_access::Desks;
use utoipa_axum::router::OpenApiRouter;

pub use drain::{Drain, Drained};
pub use login::is_placed;
pub use options::{HttpOptions, Readiness};
pub use services::Services;

use app::App;
use problem::Problem;

/// Every path, for those who log in. The server says with each request where it comes from ([`Peer`](overtake_access::Peer)).
///
/// TLS, time limits and the guard against web pages of other origins are the listener's; no time limit may cut a lease request shorter
/// than its `wait_ms`.
pub fn router(desks: Desks, services: Services, options: HttpOptions) -> Router {
    let app = Arc::new(App::new(desks, services, options));
    let (routes, _) = api().split_for_parts();
    routes
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn(query::known))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), named::name))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), login::login))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), counted))
        .with_state(app)
}

/// The OpenAPI document in JSON, as it is served and committed.
#[must_use]
pub fn openapi_json() -> String {
    serde_json::to_string_pretty(openapi::document()).unwrap_or_default() + "\n"
}

fn api() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(openapi::base())
        .merge(queues::routes())
        .merge(messages::routes())
        .merge(bulk::routes())
        .merge(jobs::routes())
        .merge(leases::routes())
        .merge(exchanges::routes())
        .merge(categories::routes())
        .merge(routes::routes())
        .merge(executions::routes())
        .merge(schedules::routes())
        .merge(endpoints::routes())
        .merge(sources::routes())
        .merge(overview::routes())
        .merge(snapshot::routes())
        .merge(users::routes())
        .merge(web_session::routes())
        .merge(tokens::routes())
        .merge(vhosts::routes())
        .merge(orphans::routes())
        .merge(admin::routes())
        .merge(drain::routes())
        .merge(cluster::routes())
}

async fn counted(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    app.requests.count(route, &method, response.status().as_u16());
    response
}

async fn no_such_path(request: Request) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no-such-path",
        "nothing is served under this path",
        "see /openapi.json for all paths; percent-encode names, also their slashes (%2F)",
    )
    .detail(format!("nothing is served under `{}`", request.uri().path()))
}

async fn no_such_method(request: Request) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        "the path does not take this method",
        "use one of the methods in the `Allow` header",
    )
    .detail(format!("`{}` does not take {}", request.uri().path(), request.method()))
}
