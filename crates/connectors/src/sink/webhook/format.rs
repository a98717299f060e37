//! A message as the head and the body of a request.
//!
//! CloudEvents 1.0.2: the HTTP protocol binding, 3.1 binary and 3.2 structured content mode, and the JSON event format, 3.1 for data. The
//! extensions `priority`, `priorityscheme`, `expirytime` (the documented extension of that name), `partitionkey` (likewise) and `attempt` are ours to fill.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, json};

use super::{WebhookFormat, WebhookSink};
use crate::outgoing::Outgoing;
use crate::texts::{headers as texts, no_texts, rfc3339};

/// What a value of a CloudEvents attribute in a header must encode: spaces, quotes, percent signs and all that is not printable ASCII (3.1.3.2).
const IN_HEADERS: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// Puts what is said of a message into the headers, and answers the body.
pub(super) fn write(sink: &WebhookSink, message: &Outgoing, headers: &mut HeaderMap) -> Bytes {
    match sink.format {
        WebhookFormat::Raw => {
            raw(message, headers);
            message.body().clone()
        }
        WebhookFormat::Cloudevents => {
            for (name, value) in attributes(sink, message) {
                let value = utf8_percent_encode(&value, IN_HEADERS).to_string();
                put(headers, &format!("ce-{name}"), &value);
            }
            content_type(message, headers);
            message.body().clone()
        }
        WebhookFormat::CloudeventsJson => {
            let json = HeaderValue::from_static("application/cloudevents+json; charset=utf-8");
            headers.insert(header::CONTENT_TYPE, json);
            structured(sink, message)
        }
    }
}

/// The headers and properties that [`write`] leaves out, by their names in the message. Attributes of CloudEvents are encoded, so that all of them fit.
pub(super) fn left_out(sink: &WebhookSink, message: &Outgoing) -> Vec<String> {
    match sink.format {
        WebhookFormat::Raw => {
            raw(message, &mut HeaderMap::new()).into_iter().chain(no_texts(message)).collect()
        }
        WebhookFormat::Cloudevents | WebhookFormat::CloudeventsJson => {
            no_texts(message).filter(|name| is_extension(name)).collect()
        }
    }
}

/// Answers what does not fit.
fn raw(message: &Outgoing, headers: &mut HeaderMap) -> Vec<String> {
    let mut left_out = Vec::new();
    let mut say = |prefix: &str, name: &str, value: &str| {
        if !put(headers, &format!("{prefix}{name}"), value) {
            left_out.push(name.to_owned());
        }
    };
    say("overtake-", "id", &message.id());
    say("overtake-", "queue", message.queue());
    say("overtake-", "attempt", &message.attempt().to_string());
    say("overtake-", "published", &rfc3339(message.published()));
    if let Some((priority, scheme)) = message.priority_text() {
        say("overtake-", "priority", &priority);
        scheme.into_iter().for_each(|scheme| say("overtake-", "priority-scheme", &scheme.to_string()));
    }
    if let Some(at) = message.expires().some() {
        say("overtake-", "expires", &rfc3339(at));
    }
    if let Some(key) = message.key() {
        say("overtake-", "key", key);
    }
    if let Some(weight) = message.key_weight() {
        say("overtake-", "key-weight", &weight.to_string());
    }
    for (name, value) in texts(message) {
        say("overtake-header-", &name, &value);
    }
    content_type(message, headers);
    if message.content_type().is_some_and(|text| HeaderValue::from_str(text).is_err()) {
        left_out.push("content-type".to_owned());
    }
    left_out
}

fn content_type(message: &Outgoing, headers: &mut HeaderMap) {
    let said = message.content_type().and_then(|text| HeaderValue::from_str(text).ok());
    headers
        .insert(header::CONTENT_TYPE, said.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    let encoding = message
        .properties()
        .view()
        .content_encoding()
        .and_then(|short| HeaderValue::from_bytes(short.as_bytes()).ok());
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, encoding);
    }
}

/// The attributes of CloudEvents, without those of its data. Headers whose names an attribute may have are extensions.
fn attributes(sink: &WebhookSink, message: &Outgoing) -> Vec<(String, String)> {
    let view = message.properties().view();
    let kind = view.kind().and_then(overtake_properties::Short::text);
    let (_, subject) = message.route();
    let mut all = vec![
        ("specversion", "1.0".to_owned()),
        ("id", message.id().into_owned()),
        ("source", sink.source.clone()),
        ("type", kind.unwrap_or(&sink.event_type).to_owned()),
        ("time", rfc3339(message.published())),
        ("attempt", message.attempt().to_string()),
    ];
    if !subject.is_empty() {
        all.push(("subject", subject.to_owned()));
    }
    if let Some((priority, scheme)) = message.priority_text() {
        all.push(("priority", priority));
        all.extend(scheme.map(|scheme| ("priorityscheme", scheme.to_string())));
    }
    all.extend(message.expires().some().map(|at| ("expirytime", rfc3339(at))));
    all.extend(message.key().map(|key| ("partitionkey", key.to_owned())));
    let mut all: Vec<(String, String)> =
        all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    for (name, value) in texts(message) {
        if is_extension(&name) && name != "data" && !all.iter().any(|(other, _)| *other == name) {
            all.push((name, value));
        }
    }
    all
}

/// Whether an attribute of CloudEvents may have this name.
fn is_extension(name: &str) -> bool {
    name.len() <= 20 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

fn structured(sink: &WebhookSink, message: &Outgoing) -> Bytes {
    let mut event: Map<String, serde_json::Value> =
        attributes(sink, message).into_iter().map(|(name, value)| (name, value.into())).collect();
    let kind = message.content_type().unwrap_or("application/octet-stream");
    event.insert("datacontenttype".to_owned(), json!(kind));
    let is_json = kind.split(';').next().is_some_and(|kind| {
        let kind = kind.trim().to_ascii_lowercase();
        kind.ends_with("/json") || kind.ends_with("+json")
    });
    let parsed = || serde_json::from_slice::<serde_json::Value>(message.body()).ok();
    match (is_json.then(parsed).flatten(), std::str::from_utf8(message.body())) {
        (Some(data), _) => drop(event.insert("data".to_owned(), data)),
        (None, Ok(text)) if !is_json && kind.starts_with("text/") => {
            drop(event.insert("data".to_owned(), json!(text)))
        }
        _ => drop(event.insert("data_base64".to_owned(), json!(STANDARD.encode(message.body())))),
    }
    serde_json::to_vec(&event).expect("text can be written").into()
}

/// Whether a header may say so.
fn put(headers: &mut HeaderMap, name: &str, value: &str) -> bool {
    match (HeaderName::try_from(name), HeaderValue::from_str(value)) {
        (Ok(name), Ok(value)) => {
            headers.insert(name, value);
            true
        }
        _ => false,
    }
}
