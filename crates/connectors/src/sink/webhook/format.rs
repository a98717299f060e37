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
use crate::texts::{headers as texts, rfc3339};

/// What a value of a CloudEvents attribute in a header must encode: spaces, quotes, percent signs and all that is not printable ASCII (3.1.3.2).
const IN_HEADERS: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// Puts what is said of a message into the headers, and answers the body.
pub(super) fn write(sink: &WebhookSink, message: &Outgoing, headers: &mut HeaderMap) -> Bytes {
    match sink.format {
        WebhookFormat::Raw => raw(message, headers),
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

fn raw(message: &Outgoing, headers: &mut HeaderMap) -> Bytes {
    put(headers, "overtake-id", &message.id());
    put(headers, "overtake-queue", message.queue());
    put(headers, "overtake-attempt", &message.attempt().to_string());
    put(headers, "overtake-published", &rfc3339(message.published()));
    if let Some((priority, scheme)) = message.priority_text() {
        put(headers, "overtake-priority", &priority);
        scheme.into_iter().for_each(|scheme| put(headers, "overtake-priority-scheme", &scheme.to_string()));
    }
    if let Some(at) = message.expires().some() {
        put(headers, "overtake-expires", &rfc3339(at));
    }
    if let Some(key) = message.key() {
        put(headers, "overtake-key", key);
    }
    for (name, value) in texts(message) {
        put(headers, &format!("overtake-header-{name}"), &value);
    }
    content_type(message, headers);
    message.body().clone()
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
        let fits =
            name.len() <= 20 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if fits && name != "data" && !all.iter().any(|(other, _)| *other == name) {
            all.push((name, value));
        }
    }
    all
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

/// What no header may say is left out.
fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}
