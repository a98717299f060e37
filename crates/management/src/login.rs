//! Nobody gets further without a login.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use overtake_access::{Credentials, Identity, Peer, is_of_the_page};

use crate::app::App;
use crate::problem::Problem;

/// Lets in who can say who it is.
pub(crate) async fn log_in(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if is_linked_by_another_page(request.headers()) {
        return Problem::denied("web pages of another origin are not answered").into_response();
    }
    let peer = request.extensions().get().cloned().unwrap_or_else(Peer::default);
    let of_the_page = is_of_the_page(request.headers());
    let shown = peer.shows(request.method(), request.headers());
    match who(&app, &peer, shown).await {
        Ok(who) => {
            request.extensions_mut().insert(who);
            next.run(request).await
        }
        Err(problem) => {
            let mut response = problem.into_response();
            // A browser would ask people by itself.
            if of_the_page {
                response.headers_mut().remove(header::WWW_AUTHENTICATE);
            }
            response
        }
    }
}

/// Whether a page of another site made a browser ask this, also by a link: the browser would show a password that it remembers, and nobody
/// looks at an API so. The listener refuses all else that such a page sends.
fn is_linked_by_another_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.to_str().unwrap_or_default());
    site.is_some_and(|site| !matches!(site, "same-origin" | "none"))
}

async fn who(app: &App, peer: &Peer, shown: Option<Credentials>) -> Result<Identity, Problem> {
    let shown = shown.ok_or_else(Problem::unknown_user)?;
    Ok(app.desks.who(&shown, peer).await?)
}
