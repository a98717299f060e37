//! Raw messages: the body of the request is the body of the message, its `Content-Type` is that of the message, and `Overtake-*`
//! headers are the fields of the message.
//!
//! | header | field |
//! |---|---|
//! | `Overtake-Priority`, `-Id`, `-Key`, `-Key-Weight` | `priority`, `id`, `key`, `key_weight` |
//! | `Overtake-Ttl-Ms`, `-Delay-Ms` | `ttl_ms`, `delay_ms` |
//! | `Overtake-User-Id` | `user_id` |
//! | `Overtake-Header-NAME` | `headers`, as text; NAME in lower case, since HTTP ignores case |
//! | `Overtake-Routing-Key`, `-Mandatory` | `routing_key`, `mandatory`; only for an exchange |

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use overtake_engine::{Content, NewMessage, Target};
use overtake_lane::{Headers, KEY_WEIGHT_MAX};

use crate::body::{DurationMs, Limits, check_content, of_user};
use crate::params::{digits, priority};
use crate::problem::Problem;

const PREFIX: &str = "overtake-";
const HEADER_PREFIX: &str = "header-";

/// Headers that only a message for an exchange has.
#[derive(Debug, Default)]
pub struct Routing {
    /// The key by which the exchange chooses queues.
    pub routing_key: String,
    /// Whether to refuse the message when no queue gets a copy.
    pub mandatory: bool,
}

/// Reads a message for the target `to`.
///
/// # Errors
/// 415 for a form's type or none, 422 for the first header that is not valid, 413 for a body that is too large.
pub fn for_queue(
    headers: &HeaderMap,
    body: Bytes,
    to: Target,
    limits: Limits,
) -> Result<NewMessage, Problem> {
    let mut message = read(headers, body, None)?;
    message.to = to;
    limits.check(&message)?;
    Ok(message)
}

/// Reads a message for an exchange. The message has no target yet: the caller builds it from the [`Routing`].
///
/// # Errors
/// 415 for a form's type or none, 422 for the first header that is not valid, 413 for a body that is too large.
pub fn for_exchange(
    headers: &HeaderMap,
    body: Bytes,
    limits: Limits,
) -> Result<(NewMessage, Routing), Problem> {
    let mut routing = Routing::default();
    let message = read(headers, body, Some(&mut routing))?;
    limits.check(&message)?;
    Ok((message, routing))
}

/// Reads a message. Headers for an exchange are accepted only with a `routing` to store them in.
fn read(headers: &HeaderMap, body: Bytes, mut routing: Option<&mut Routing>) -> Result<NewMessage, Problem> {
    let content_type = media_type(headers, &body)?;
    let (mut message, mut own, mut user_id) = (NewMessage::default(), Headers::new(), None);
    for name in headers.keys() {
        let Some(property) = name.as_str().strip_prefix(PREFIX) else { continue };
        let value = once(headers, name)?;
        match (property, routing.as_deref_mut()) {
            ("routing-key", Some(routing)) => routing.routing_key = value,
            ("user-id", _) => user_id = Some(value),
            ("mandatory", Some(routing)) => routing.mandatory = boolean(name, &value)?,
            _ => set(&mut message, &mut own, name, property, value)?,
        }
    }
    check_content(Some(&content_type), &own)?;
    let content = Content::new(Some(&content_type), &own, body);
    message.content = of_user(content, user_id.as_deref()).map_err(|bad| bad.key("overtake-user-id"))?;
    Ok(message)
}

/// The type of a raw body. Form types are refused, and so is a body without a type: HTTP clients send these when their user
/// meant JSON, and its priority would become a part of the body.
fn media_type(headers: &HeaderMap, body: &Bytes) -> Result<String, Problem> {
    let said = headers.get(header::CONTENT_TYPE).map(|value| text("Content-Type", value)).transpose()?;
    let said = said.filter(|said| !said.trim().is_empty());
    let essence = said.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    match (essence, &said) {
        ("", None) if body.is_empty() => {
            Err(Problem::bad_value("body", "the request has neither a body nor a Content-Type")
                .hint("send `Content-Type: application/octet-stream` to publish an empty message"))
        }
        ("", _) => Err(no_raw_type("the request does not say of which Content-Type its body is".to_owned())),
        (essence, Some(said)) if !is_form(essence) => Ok(said.clone()),
        (essence, _) => Err(no_raw_type(format!(
            "a message cannot have the Content-Type `{essence}`, which HTTP clients send when they are told none"
        ))),
    }
}

fn is_form(essence: &str) -> bool {
    ["application/x-www-form-urlencoded", "multipart/form-data"]
        .iter()
        .any(|form| essence.eq_ignore_ascii_case(form))
}

fn no_raw_type(detail: String) -> Problem {
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media-type-unsupported",
        "the body is neither JSON nor of a type that a message can have",
        "send `Content-Type: application/json` for a message as JSON (with curl: --json), or the type of the body, such as `application/octet-stream`, for a raw message",
    )
    .key("content-type")
    .detail(detail)
}

/// Stores the value of the header `name`, whose rest behind the prefix is `property`.
fn set(
    message: &mut NewMessage,
    own: &mut Headers,
    name: &HeaderName,
    property: &str,
    value: String,
) -> Result<(), Problem> {
    match property {
        "priority" => message.priority = priority(name.as_str(), &value)?,
        "id" => message.id = Some(value),
        "key" => message.key = Some(value),
        "key-weight" => message.key_weight = Some(weight(name, &value)?),
        "ttl-ms" => message.ttl_ms = Some(duration(name, &value)?).filter(|ms| *ms > 0),
        "delay-ms" => message.delay_ms = duration(name, &value)?,
        _ => match property.strip_prefix(HEADER_PREFIX) {
            Some(header) if !header.is_empty() => {
                own.insert(header.to_owned(), overtake_lane::HeaderValue::Text(value));
            }
            _ => return Err(unknown(name)),
        },
    }
    Ok(())
}

fn unknown(name: &HeaderName) -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "header-unknown",
        "the request has an Overtake-* header it does not know",
        "use Overtake-Priority, -Id, -Key, -Key-Weight, -Ttl-Ms, -Delay-Ms, -User-Id and -Header-NAME; for an exchange also -Routing-Key and -Mandatory",
    )
    .key(name.as_str())
}

/// The value of a header that the request has once.
fn once(headers: &HeaderMap, name: &HeaderName) -> Result<String, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => text(name.as_str(), value),
        _ => Err(Problem::bad_value(name.as_str(), "the header is there more than once")),
    }
}

fn text(name: &str, value: &HeaderValue) -> Result<String, Problem> {
    std::str::from_utf8(value.as_bytes())
        .map(ToOwned::to_owned)
        .map_err(|_| Problem::bad_value(name, "the header is not UTF-8"))
}

fn duration(name: &HeaderName, value: &str) -> Result<u64, Problem> {
    digits(value).and_then(DurationMs::new).map(|ms| ms.0).ok_or_else(|| {
        Problem::bad_value(name.as_str(), format!("must be {} (ten years)", DurationMs::bounds()))
    })
}

fn weight(name: &HeaderName, value: &str) -> Result<u32, Problem> {
    let weight = digits(value).and_then(|weight| u32::try_from(weight).ok());
    weight
        .filter(|weight| (1..=KEY_WEIGHT_MAX).contains(weight))
        .ok_or_else(|| Problem::bad_value(name.as_str(), format!("must be 1 to {KEY_WEIGHT_MAX}")))
}

fn boolean(name: &HeaderName, value: &str) -> Result<bool, Problem> {
    value.parse().map_err(|_| Problem::bad_value(name.as_str(), "must be true or false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&str, &str)], expect: &str) {
        let typed = [("Content-Type", "text/plain")];
        let map: HeaderMap = typed
            .iter()
            .chain(headers)
            .map(|(name, value)| {
                (name.parse::<HeaderName>().expect("a name"), value.parse::<HeaderValue>().expect("a value"))
            })
            .collect();
        let body = Bytes::from_static(b"b");
        let limits = Limits { max_message_bytes: 10 };
        let seen = match for_queue(&map, body, Target::default(), limits) {
            Ok(m) => format!(
                "{} {:?} {:?} {} {} {:?}{}",
                m.priority,
                m.id,
                m.key,
                m.ttl_ms.unwrap_or(0),
                m.delay_ms,
                m.content.headers(),
                m.content.user_id().map(|user| format!(" of {user}")).unwrap_or_default(),
            ),
            Err(problem) => format!("{} {:?}", problem.body().code(), problem.body().about()),
        };
        assert_eq!(seen, expect, "{headers:?}");
    }

    #[test]
    fn a_body_that_was_meant_as_json_is_not_stored_as_text() {
        for (said, expect) in [
            (Some("application/x-www-form-urlencoded"), "media-type-unsupported"),
            (Some("Application/X-WWW-Form-URLEncoded; charset=utf-8"), "media-type-unsupported"),
            (Some("multipart/form-data; boundary=x"), "media-type-unsupported"),
            (Some(" "), "media-type-unsupported"),
            (Some(";charset=utf-8"), "media-type-unsupported"),
            (None, "media-type-unsupported"),
            (Some("text/plain;charset=UTF-8"), "text/plain;charset=UTF-8"),
            (Some("application/cloudevents+json"), "application/cloudevents+json"),
        ] {
            let map: HeaderMap = said
                .iter()
                .map(|said| (header::CONTENT_TYPE, said.parse::<HeaderValue>().expect("a value")))
                .collect();
            let body = Bytes::from_static(br#"{"body":"hi","priority":"critical"}"#);
            let limits = Limits { max_message_bytes: 100 };
            let seen = match for_queue(&map, body, Target::default(), limits) {
                Ok(message) => message.content.content_type().unwrap_or_default().to_owned(),
                Err(problem) => problem.body().code().to_owned(),
            };
            assert_eq!(seen, expect, "{said:?}");
        }
    }

    #[test]
    fn headers_say_what_fields_say() {
        check(&[], "default None None 0 0 {}");
        check(
            &[
                ("Overtake-Priority", "7"),
                ("Overtake-Id", "a"),
                ("Overtake-Key", "k"),
                ("Overtake-Ttl-Ms", "5"),
            ],
            r#"7 Some("a") Some("k") 5 0 {}"#,
        );
        check(&[("Overtake-Header-Tenant", "x")], r#"default None None 0 0 {"tenant": Text("x")}"#);
        check(&[("Overtake-User-Id", "ann")], "default None None 0 0 {} of ann");
        check(&[("Overtake-User-Id", "")], r#"value-invalid Some("overtake-user-id")"#);
        check(&[("Overtake-Priority", "HIGH")], "HIGH None None 0 0 {}");
        check(&[("Overtake-Priority", "")], r#"value-invalid Some("overtake-priority")"#);
        check(&[("Overtake-Priority", " ")], r#"value-invalid Some("overtake-priority")"#);
        check(&[("Overtake-Prio", "7")], r#"header-unknown Some("overtake-prio")"#);
        check(&[("Overtake-Header-", "7")], r#"header-unknown Some("overtake-header-")"#);
        check(&[("Overtake-Routing-Key", "a")], r#"header-unknown Some("overtake-routing-key")"#);
        check(&[("Overtake-Delay-Ms", "-1")], r#"value-invalid Some("overtake-delay-ms")"#);
        check(&[("Overtake-Ttl-Ms", "315360000001")], r#"value-invalid Some("overtake-ttl-ms")"#);
        check(&[("Overtake-Id", "a"), ("Overtake-Id", "b")], r#"value-invalid Some("overtake-id")"#);
    }
}
