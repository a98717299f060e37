//! How handlers answer.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::problem::Problem;

/// What a handler answers.
pub(crate) type Answer = Result<Response, Problem>;

/// JSON with this status.
pub(crate) fn json(status: StatusCode, value: &Value) -> Response {
    let mut response = (status, value.to_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// What was asked for.
pub(crate) fn seen(value: &Value) -> Answer {
    Ok(json(StatusCode::OK, value))
}

/// It is there now: for the first time, or as before.
pub(crate) fn put(is_new: bool) -> Answer {
    let status = if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    Ok(status.into_response())
}

/// Done, and nothing to say.
pub(crate) fn done() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}
