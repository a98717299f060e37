//! From the bytes of a request to its meaning, or to a problem that names the place.
//!
//! A body is decoded plainly first; only one that fails is decoded again with its path kept, so good requests pay nothing
//! for good errors.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;

use crate::app::App;
use crate::problem::{At, Problem};

/// A request with a body in JSON. An empty body is `{}`.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        refuse_query(request.uri().query())?;
        let is_json = is_json(request.headers());
        let bytes = read(request, app.options.max_request_bytes).await?;
        if bytes.is_empty() {
            return decode(b"{}").map(Self);
        }
        if !is_json {
            return Err(not_json());
        }
        decode(&bytes).map(Self)
    }
}

/// A parameter where none is understood would be ignored, and `purge?status=dead` would purge what is ready.
pub(crate) fn refuse_query(query: Option<&str>) -> Result<(), Problem> {
    match query {
        None | Some("") => Ok(()),
        Some(_) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "parameter-unknown",
            "the request has a query parameter it does not know",
            "put everything into the body: this request takes no query parameters",
        )),
    }
}

/// Whether the body says it is JSON.
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

/// The whole body, if it is not larger than the limit. One that says so beforehand is not read at all.
pub(crate) async fn read(request: Request, limit: u64) -> Result<Bytes, Problem> {
    let too_large = || {
        Problem::too_large(
            "request-too-large",
            "the body of the request is too large",
            limit,
            "send fewer messages at once, or raise max_request_bytes",
        )
    };
    let said = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if said.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let body: Body = request.into_body();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    match Limited::new(body, limit).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "body-incomplete",
            "the body of the request ended early",
            "send as many bytes as Content-Length says",
        )
        .detail(error.to_string())),
    }
}

/// What the JSON means.
///
/// # Errors
/// 400 with line and column when it is no JSON, 422 with the field when it is, but not what is understood here.
pub(crate) fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    let read = serde_json::from_slice(json).map(|Object(meaning)| meaning);
    read.map_err(|first| why_not::<T>(json).unwrap_or_else(|| problem(&first, "")))
}

/// An object, and not the list of its fields' values, which serde would take as well.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

fn why_not<T: DeserializeOwned>(json: &[u8]) -> Option<Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let error = serde_path_to_error::deserialize::<_, Object<T>>(&mut deserializer).err()?;
    let path = match error.path().to_string() {
        root if root == "." => String::new(),
        path => path,
    };
    Some(problem(error.inner(), &path))
}

fn problem(error: &serde_json::Error, path: &str) -> Problem {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    let at = At { line: error.line(), column: error.column() };
    // A number like 1e999 is well-formed; it is only more than any field takes.
    let is_absurd = text.starts_with("number out of range");
    match error.classify() {
        Category::Syntax if is_absurd => Problem::bad_value(path, text.to_owned()).at(at),
        Category::Data => wrong_field(text, path).at(at),
        Category::Syntax | Category::Eof | Category::Io => malformed(text).at(at),
    }
}

fn malformed(text: &str) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "json-malformed",
        "the body is not JSON",
        "correct the JSON at the place `at` says; nothing was done",
    )
    .detail(text.to_owned())
}

fn wrong_field(text: &str, path: &str) -> Problem {
    let named = |what| text.strip_prefix(what).and_then(|rest| rest.split('`').next());
    let (code, title, field) = if let Some(field) = named("unknown field `") {
        ("field-unknown", "the body has a field that is not known here", field)
    } else if let Some(field) = named("missing field `") {
        ("field-missing", "a field is missing", field)
    } else if let Some(field) = named("duplicate field `") {
        ("field-duplicate", "a field is there twice", field)
    } else {
        return Problem::bad_value(path, text.to_owned());
    };
    let hint = match text.split_once("expected ") {
        Some((_, known)) => format!("check the spelling: {known} {} taken here", verb(known)),
        None if code == "field-missing" => format!("add `{field}`; the OpenAPI document says what it holds"),
        None => format!("leave one `{field}`"),
    };
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, title, "")
        .detail(text.to_owned())
        .hint(hint)
        .key(join(path, field))
}

fn verb(known: &str) -> &'static str {
    if known.contains(", ") { "are" } else { "is" }
}

/// `field` in `path`, once: the path of an unknown field ends with it already, that of a missing one does not.
fn join(path: &str, field: &str) -> String {
    if path.is_empty() || path == field || path.ends_with(&format!(".{field}")) {
        if path.is_empty() { field.to_owned() } else { path.to_owned() }
    } else {
        format!("{path}.{field}")
    }
}
