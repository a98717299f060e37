//! Keeping web pages of others out, as long as nobody has to log in.
//!
//! A page anywhere can make a browser send requests to a broker on the same machine. Two things give it away: the browser
//! names the page's origin, which is not the broker's; or, where a name was bent to lead here (DNS rebinding), the `Host` is
//! a name that is not this machine's. Programs that are no browser send neither.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::problem::Problem;

/// Refuses what a page of somebody else sends.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match check(request.headers(), request.uri(), app.options.loopback_only) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(headers: &HeaderMap, uri: &Uri, loopback_only: bool) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(header::HOST).or_else(|| uri.authority().map(|authority| authority.as_str()));
    if loopback_only && host.is_some_and(|host| !is_loopback(host)) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host-foreign",
            "the request is for another host",
            "use localhost, 127.0.0.1 or [::1] as the host; this broker listens on loopback only",
        ));
    }
    let own = |origin: &str| origin.split_once("://").map(|(_, authority)| Some(authority) == host);
    if text(header::ORIGIN).is_some_and(|origin| own(origin) != Some(true)) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "origin-foreign",
            "the request comes from a web page of another origin",
            "call the broker from a program; web pages of others are not answered",
        ));
    }
    Ok(())
}

/// Refuses what a page of somebody else sends without its origin, as it may for what it is not to read: browsers say so otherwise.
///
/// # Errors
/// 403.
pub(crate) fn refuse_pages_of_others(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "origin-foreign",
            "the request comes from a web page of another origin",
            "call the broker from a program; web pages of others are not answered",
        )),
    }
}

/// Whether a `Host`, with or without a port, names this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(host: &str, origin: Option<&str>) -> &'static str {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("a header"));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().expect("a header"));
        }
        match check(&headers, &Uri::from_static("/"), true) {
            Ok(()) => "taken",
            Err(problem) => problem.0.body().code(),
        }
    }

    #[test]
    fn programs_on_this_machine_are_answered() {
        for host in ["localhost", "LOCALHOST:15672", "127.0.0.1:15672", "127.8.9.1", "[::1]:15672", "[::1]"] {
            assert_eq!(seen(host, None), "taken", "{host}");
        }
        assert_eq!(seen("localhost:15672", Some("http://localhost:15672")), "taken");
    }

    #[test]
    fn pages_of_others_are_not() {
        assert_eq!(seen("localhost:15672", Some("https://example.com")), "origin-foreign");
        assert_eq!(seen("localhost:15672", Some("http://localhost:8080")), "origin-foreign");
        assert_eq!(seen("localhost:15672", Some("null")), "origin-foreign");
        for host in
            ["example.com:15672", "localhost.example.com", "10.0.0.1", "", "[::2]:1", "127.0.0.1.example.com"]
        {
            assert_eq!(seen(host, None), "host-foreign", "{host}");
        }
    }
}
