//! Nobody gets further without a login.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
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
    let peer = request.extensions().get().cloned().unwrap_or_else(Peer::default);
    let header = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    match who(&app, &peer, peer.shows(header)).await {
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

async fn who(app: &App, peer: &Peer, shown: Option<Credentials>) -> Result<Identity, Problem> {
    let shown = shown.ok_or_else(Problem::unknown_user)?;
    Ok(app.desks.who(&shown, peer).await?)
}
