//! Bodies of requests, read up to the limit. `overtake_api` decodes them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
pub(crate) use overtake_api::json::decode;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::named::SentBody;
use crate::problem::Problem;

/// The JSON body of a request. An empty body decodes as `{}`.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        Ok(Self(decode(&json_body(request, app).await?)?))
    }
}

/// Reads the JSON body of a request. An empty body is `{}`.
pub(crate) async fn json_body(request: Request, app: &App) -> Result<Bytes, Problem> {
    let is_json = is_json(request.headers());
    let bytes = read(request, app.options.max_request_bytes).await?;
    if bytes.is_empty() {
        return Ok(Bytes::from_static(b"{}"));
    }
    if is_json { Ok(bytes) } else { Err(not_json()) }
}

/// Whether `Content-Type` says that the body is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(media_type)) = headers.get(header::CONTENT_TYPE).map(|value| value.to_str()) else {
        return false;
    };
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn not_json() -> Problem {
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media-type-unsupported",
        "the body must be JSON",
        "send `Content-Type: application/json` (with curl: --json)",
    )
}

/// The longest body of a request where that is less than for other requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyMax(pub(crate) u64);

/// A body that is larger than the limit.
pub(crate) fn too_large(limit: u64) -> Problem {
    Problem::too_large(
        "request-too-large",
        "the body of the request is too large",
        limit,
        "send fewer messages at once, or raise max_request_bytes; a request that needs no login takes no large body",
    )
}

/// Reads a body that is not larger than the limit. With a larger `Content-Length` it reads nothing.
pub(crate) async fn read(request: Request, limit: u64) -> Result<Bytes, Problem> {
    let limit = request.extensions().get::<BodyMax>().map_or(limit, |most| most.0.min(limit));
    let said = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if said.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    let is_json = is_json(request.headers());
    let (parts, body): (Parts, Body) = request.into_parts();
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    match Limited::new(body, most).collect().await {
        Ok(whole) => {
            let body = whole.to_bytes();
            if is_json {
                SentBody::remember(&parts.extensions, &body);
            }
            Ok(body)
        }
        Err(error) if is_limit(&*error) => Err(too_large(limit)),
        Err(error) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "body-incomplete",
            "the body of the request ended early",
            "send as many bytes as Content-Length says",
        )
        .detail(error.to_string())),
    }
}

/// Whether a body ended at its limit, perhaps one further out.
fn is_limit(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<LengthLimitError>() || error.source().is_some_and(is_limit)
}
