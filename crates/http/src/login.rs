//! Who sends a request, and where it is to be done.
//!
//! Every path asks for a login but those below, so a new route cannot be forgotten; handlers get a [`Desk`] and no engine, so none
//! can forget to ask for rights. Until a client is known, no more than [`OPEN_BODY_MAX`] of what it sends is read.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::Limited;
use overtake_access::{Credentials, DEFAULT_VHOST, Desk, Identity, LoginRefused, Peer, is_of_the_page};
use overtake_api::params::twice;
use percent_encoding::percent_decode_str;

use crate::app::App;
use crate::decode::{self, BodyMax};
use crate::problem::Problem;

/// What machines ask before they know anybody, what says how to ask, and where one logs in.
const OPEN: [&str; 5] = ["/livez", "/healthz", "/readyz", "/openapi.json", "/v1/session"];
/// Longest body of a request to one of these, bytes.
const OPEN_BODY_MAX: u64 = 8 << 10;
/// Where requests are for a virtual host.
const PLACED: [&str; 10] = [
    "/v1/queues",
    "/v1/exchanges",
    "/v1/categories",
    "/v1/routes",
    "/v1/topics",
    "/v1/transactions",
    "/v1/schedules",
    "/v1/endpoints",
    "/v1/sources",
    "/api/v1/admin/executions",
];

/// Whoever sends the request.
pub(crate) struct Who(pub(crate) Identity);

/// The desk of whoever sends the request, in the virtual host that it names.
pub(crate) struct At(pub(crate) Desk);

/// The virtual host that a request names.
#[derive(Clone)]
pub(crate) struct Vhost(pub(crate) Arc<str>);

/// Whether nobody has to log in for this path.
pub(crate) fn is_open(path: &str) -> bool {
    OPEN.contains(&path)
}

/// Whether what is done under this path is done in a virtual host: it may say in which, as `vhost=NAME`.
#[must_use]
pub fn is_placed(path: &str) -> bool {
    PLACED.iter().any(|placed| path.starts_with(placed))
}

/// Lets nobody pass who has not logged in.
pub(crate) async fn login(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let of_the_page = is_of_the_page(request.headers());
    if is_open(request.uri().path()) {
        let answer = match limit(request) {
            Ok(request) => next.run(request).await,
            Err(problem) => problem.into_response(),
        };
        return challenge(answer, of_the_page);
    }
    let peer = request.extensions().get().cloned().unwrap_or_else(Peer::default);
    let shown = shown(&peer, request.method(), request.headers());
    let who = match who(&app, &peer, shown).await {
        Ok(who) => who,
        Err(problem) => return challenge(problem.into_response(), of_the_page),
    };
    match if is_placed(request.uri().path()) { take_vhost(request.uri()) } else { Ok(None) } {
        Ok(None) => {}
        Ok(Some((vhost, uri))) => {
            *request.uri_mut() = uri;
            request.extensions_mut().insert(Vhost(vhost));
        }
        Err(problem) => return problem.into_response(),
    }
    request.extensions_mut().insert(who);
    next.run(request).await
}

/// Lets only a short body through: anybody may send this request.
fn limit(mut request: Request) -> Result<Request, Problem> {
    if request.body().size_hint().lower() > OPEN_BODY_MAX {
        return Err(decode::too_large(OPEN_BODY_MAX));
    }
    request.extensions_mut().insert(BodyMax(OPEN_BODY_MAX));
    let most = usize::try_from(OPEN_BODY_MAX).unwrap_or(usize::MAX);
    Ok(request.map(|body| Body::new(Limited::new(body, most))))
}

/// Who has to log in is told how, but for the broker's own page: a browser would ask people by itself.
fn challenge(mut response: Response, of_the_page: bool) -> Response {
    if of_the_page {
        response.headers_mut().remove(header::WWW_AUTHENTICATE);
    }
    response
}

/// What says who sends a request.
fn shown(peer: &Peer, method: &Method, headers: &HeaderMap) -> Result<Credentials, Problem> {
    peer.shows(method, headers).ok_or_else(|| {
        let nothing = Problem::new(
            StatusCode::UNAUTHORIZED,
            "login-required",
            "the request does not say who sends it",
            "send `Authorization: Basic` with name and password (curl -u NAME:PASSWORD), or `Authorization: Bearer` with a token",
        );
        match headers.get(header::AUTHORIZATION) {
            None => nothing,
            Some(_) => nothing.detail("the header `Authorization` is neither Basic nor Bearer"),
        }
    })
}

async fn who(app: &App, peer: &Peer, shown: Result<Credentials, Problem>) -> Result<Identity, Problem> {
    app.desks.who(&shown?, peer).await.map_err(|refused| login_refused(&refused))
}

/// Nobody comes in so.
pub(crate) fn login_refused(refused: &LoginRefused) -> Problem {
    if *refused == LoginRefused::Crowded {
        return Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "logins-crowded",
            "too many logins wait for their passwords to be checked",
            "try again after the seconds that `Retry-After` says, or send a token, which waits for nobody",
        );
    }
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "login-refused",
        "nobody could be logged in with what the request shows",
        "check name and password, the token, or the common name of the certificate; the user guest comes from the broker's own \
         machine only",
    )
    .detail(refused.to_string())
}

/// The virtual host of a query, and the address without it.
fn take_vhost(uri: &Uri) -> Result<Option<(Arc<str>, Uri)>, Problem> {
    let Some(query) = uri.query() else { return Ok(None) };
    let is_vhost = |pair: &&str| pair.split('=').next() == Some("vhost");
    let mut named = query.split('&').filter(is_vhost);
    let Some(pair) = named.next() else { return Ok(None) };
    let value = |pair: &str| pair.split_once('=').map_or("", |(_, value)| value).replace('+', " ");
    let text = value(pair);
    if let Some(other) = named.next() {
        let shown = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        return Err(twice("vhost", &shown(&text), &shown(&value(other))).into());
    }
    let name = percent_decode_str(&text).decode_utf8();
    let name = name.map_err(|_| Problem::bad_value("vhost", "the parameter is not UTF-8"))?;
    let name = if name.is_empty() { DEFAULT_VHOST } else { &name };
    let rest: Vec<&str> = query.split('&').filter(|pair| !is_vhost(pair)).collect();
    let rest = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    let uri = format!("{}{rest}", uri.path()).parse();
    let uri = uri.map_err(|_| Problem::bad_value("vhost", "the address cannot be read"))?;
    Ok(Some((name.into(), uri)))
}

/// Where a request comes from.
pub(crate) struct Sender(pub(crate) Peer);

impl FromRequestParts<Arc<App>> for Sender {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Self::Rejection> {
        Ok(Self(parts.extensions.get::<Peer>().cloned().unwrap_or_default()))
    }
}

impl FromRequestParts<Arc<App>> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Problem> {
        let who = parts.extensions.get::<Identity>();
        Ok(Self(who.expect("nobody passes who has not logged in").clone()))
    }
}

impl FromRequestParts<Arc<App>> for At {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let Who(who) = Who::from_request_parts(parts, app).await?;
        let vhost = parts.extensions.get::<Vhost>().map_or(DEFAULT_VHOST, |vhost| &vhost.0);
        Ok(Self(app.desks.desk(who, vhost).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_virtual_host_is_taken_out_of_the_query() {
        let taken = |uri: &str| match take_vhost(&uri.parse().expect("an address")) {
            Ok(None) => "none".to_owned(),
            Ok(Some((vhost, uri))) => format!("{vhost} {uri}"),
            Err(problem) => problem.0.body().code().to_owned(),
        };
        assert_eq!(taken("/v1/queues"), "none");
        assert_eq!(taken("/v1/queues?limit=3"), "none");
        assert_eq!(taken("/v1/queues?vhost=a%2Fb"), "a/b /v1/queues");
        assert_eq!(taken("/v1/queues/a%2Fb?limit=3&vhost=x&cursor=y"), "x /v1/queues/a%2Fb?limit=3&cursor=y");
        assert_eq!(taken("/v1/queues?vhost="), "/ /v1/queues");
        assert_eq!(taken("/v1/queues?vhost=a+b"), "a b /v1/queues");
        assert_eq!(taken("/v1/queues?vhost=a&vhost=b"), "value-invalid");
        assert_eq!(taken("/v1/queues?vhost=%FF"), "value-invalid");
    }

    #[test]
    fn what_a_request_shows_is_named_or_asked_for() {
        let shown = |text: Option<&'static str>| {
            let value = text.map(|text| (header::AUTHORIZATION, HeaderValue::from_static(text)));
            let headers = value.into_iter().collect();
            super::shown(&Peer::default(), &Method::GET, &headers)
                .err()
                .map(|problem| problem.0.body().code())
        };
        assert_eq!(shown(None), Some("login-required"));
        assert_eq!(shown(Some("Digest x")), Some("login-required"));
        assert_eq!(shown(Some("Bearer ovt_x")), None);
    }
}
