//! The management API that RabbitMQ's tools speak, `/api/…`: what is there, who is there, who is connected, and how it goes.
//! No sockets: `server` owns them.
//!
//! ```text
//!   request ─▶ login ─▶ routes (a tag each) ─▶ Ask ─▶ handler ─▶ Desk ─▶ engine
//!                                                  ├─▶ Connections (asked, not told)
//!                                                  └─▶ Rates (sampled while somebody asks)
//! ```
//!
//! Shapes and words are RabbitMQ's, as far as tools read them; what is ours besides is said in `docs/management.md`.

mod answer;
mod app;
mod ask;
mod bindings;
mod broker;
mod connections;
mod consumers;
pub mod definitions;
mod exchanges;
mod health;
mod idle;
mod lenient;
mod login;
mod messages;
mod metrics;
mod options;
mod paging;
mod parameters;
mod policies;
mod problem;
mod properties;
mod queues;
mod rates;
mod routes;
mod sockets;
mod tables;
mod telemetry;
mod users;
mod vhosts;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use overtake_access::Desks;

pub use connections::{Caller, Connected, Connections, Looks, Question, Seat};
pub use options::{Listener, ManagementOptions, RABBITMQ_VERSION};
pub use routes::Route;

use app::App;
use problem::Problem;
use rates::Rates;
use routes::Routes;

/// Every path under `/api`, for those who log in at these desks. The server says with each request where it comes from
/// ([`Peer`](overtake_access::Peer)), and gives each connection over AMQP a seat among these.
///
/// It may be merged with other routers that serve none of these paths.
pub fn router(desks: Desks, connections: Connections, options: ManagementOptions) -> Router {
    let app = Arc::new(App { desks, options, connections, rates: Rates::default() });
    let (routes, _) = all().split();
    let api = routes
        .method_not_allowed_fallback(no_such_method)
        .route("/api/{*rest}", axum::routing::any(no_such_path));
    api.layer(middleware::from_fn_with_state(Arc::clone(&app), login::log_in)).with_state(app)
}

/// Every route, with the tag that it takes.
#[must_use]
pub fn routes() -> Vec<Route> {
    all().split().1
}

fn all() -> Routes {
    let parts = [
        broker::routes,
        users::routes,
        vhosts::routes,
        queues::routes,
        exchanges::routes,
        bindings::routes,
        sockets::routes,
        consumers::routes,
        parameters::routes,
        policies::routes,
        definitions::routes,
        health::routes,
        metrics::routes,
    ];
    parts.into_iter().fold(Routes::default(), |routes, part| part(routes))
}

async fn no_such_path() -> Response {
    Problem::not_found().into_response()
}

async fn no_such_method() -> Response {
    let status = axum::http::StatusCode::METHOD_NOT_ALLOWED;
    Problem::new(status, "Method Not Allowed", "the path does not take this method").into_response()
}
