//! Nobody gets further without a login.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use overtake_access::{Credentials, Identity, Peer};

use crate::app::App;
use crate::problem::Problem;

/// Lets in who can say who it is.
pub(crate) async fn log_in(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if is_of_another_page(request.headers()) {
        return Problem::denied("web pages of another origin are not answered").into_response();
    }
    match who(&app, shown(&request)).await {
        Ok(who) => {
            request.extensions_mut().insert(who);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Whether a page of somebody else sends this, for which a browser would show a password that it remembers.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let own = |origin: &str| origin.split_once("://").map(|(_, authority)| authority) == text("host");
    let is_foreign = text("origin").is_some_and(|origin| !own(origin));
    is_foreign || text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"))
}

/// What a request shows, and where it comes from. Who is not said to come from this machine does not.
fn shown(request: &Request) -> (Option<Credentials>, IpAddr) {
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let elsewhere = Peer(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let Peer(from) = request.extensions().get().copied().unwrap_or(elsewhere);
    (header.and_then(Credentials::read), from)
}

async fn who(app: &App, (shown, from): (Option<Credentials>, IpAddr)) -> Result<Identity, Problem> {
    let shown = shown.ok_or_else(Problem::unknown_user)?;
    Ok(app.desks.who(&shown, from).await?)
}
