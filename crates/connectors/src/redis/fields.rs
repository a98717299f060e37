//! The fields of an entry of a stream, as they are written and read.
//!
//! | field | says |
//! |---|---|
//! | `id` | who the message is, the same at every attempt |
//! | `priority`, `priority-scheme` | how urgent it is, a number or a name, and the scheme that is of |
//! | `priority-none` | `route`: the message has no priority in a queue of routes, which comes after 9 there |
//! | `queue`, `attempt` | whence, and how often it was on its way |
//! | `published`, `expires` | when, RFC 3339 |
//! | `key` | its key |
//! | `content-type`, `content-encoding`, `correlation-id`, `reply-to`, `type` | its properties of these names |
//! | `header:NAME` | a header, as text |
//! | `body` | its body |
//!
//! Fields that there is nothing to say in are left out. What was written so comes back so, `queue` and `attempt` apart. An entry without `body`,
//! `payload` or `data` is somebody else's: all its fields are its body, as a JSON object of texts, and of them only `priority` is understood; what
//! others call `id` may well be the same in every entry.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use overtake_engine::Content;
use overtake_lane::{HeaderValue, Headers, Time};
use overtake_properties::{Fields, Short};

use crate::inlet::Incoming;
use crate::outgoing::Outgoing;
use crate::texts::{self, KEY_WEIGHT, NONE_OF_ROUTES, PRIORITY_NONE, PRIORITY_SCHEME, rfc3339};

/// Before the name of a header.
const HEADER: &str = "header:";
/// What others call a body, in the order in which it is looked for.
const BODIES: [&str; 3] = ["body", "payload", "data"];

/// A name and a value.
pub(crate) type Field = (Vec<u8>, Vec<u8>);

/// The fields that say what a message is.
pub(crate) fn of(message: &Outgoing) -> Vec<(Cow<'static, str>, Cow<'_, [u8]>)> {
    let view = message.properties().view();
    let mut all = vec![
        text("id", message.id().into_owned()),
        text("queue", message.queue().to_owned()),
        text("attempt", message.attempt().to_string()),
        text("published", rfc3339(message.published())),
    ];
    if let Some((priority, scheme)) = message.priority_text() {
        all.push(text("priority", priority));
        all.extend(scheme.map(|scheme| text(PRIORITY_SCHEME, scheme.to_string())));
    }
    if message.is_last_of_routes() {
        all.push(text(PRIORITY_NONE, NONE_OF_ROUTES.to_owned()));
    }
    all.extend(message.expires().some().map(|at| text("expires", rfc3339(at))));
    all.extend(message.key().map(|key| text("key", key.to_owned())));
    all.extend(message.key_weight().map(|weight| text(KEY_WEIGHT, weight.to_string())));
    let properties = [
        property("content-type", view.content_type()),
        property("content-encoding", view.content_encoding()),
        property("correlation-id", view.correlation_id()),
        property("reply-to", view.reply_to()),
        property("type", view.kind()),
    ];
    all.extend(properties.into_iter().flatten());
    for (name, value) in texts::headers(message) {
        all.push((Cow::Owned(format!("{HEADER}{name}")), Cow::Owned(value.into_bytes())));
    }
    all.push((Cow::Borrowed("body"), Cow::Borrowed(&message.body()[..])));
    all
}

fn text<'a>(name: &'static str, value: String) -> (Cow<'static, str>, Cow<'a, [u8]>) {
    (Cow::Borrowed(name), Cow::Owned(value.into_bytes()))
}

fn property<'a>(name: &'static str, value: Option<Short<'a>>) -> Option<(Cow<'static, str>, Cow<'a, [u8]>)> {
    value.map(|value| (Cow::Borrowed(name), Cow::Borrowed(value.as_bytes())))
}

/// The message that an entry of a stream is.
pub(crate) fn read(stream: &str, entry: &str, fields: Vec<Field>, now: Time) -> Incoming {
    let own = format!("{stream}-{entry}");
    let body = BODIES.iter().find_map(|name| fields.iter().position(|(field, _)| field == name.as_bytes()));
    let incoming = match body {
        Some(at) => ours(stream, own, fields, at, now),
        None => foreign(stream, own, &fields),
    };
    Incoming { place: format!("entry {entry}"), ..incoming }
}

fn ours(stream: &str, own: String, mut fields: Vec<Field>, at: usize, now: Time) -> Incoming {
    let (_, body) = fields.swap_remove(at);
    let mut said: BTreeMap<String, String> = fields.into_iter().map(as_text).collect();
    let mut take = |name: &str| said.remove(name).filter(|text| !text.is_empty());
    let (id, key, priority) = (take("id"), take("key"), take("priority"));
    let (scheme, none) = (take(PRIORITY_SCHEME), take(PRIORITY_NONE));
    let key_weight = take(KEY_WEIGHT).as_deref().map(texts::weight);
    let (published, expires) = (take("published").and_then(ms_of), take("expires").and_then(ms_of));
    let short_texts =
        ["content-type", "content-encoding", "correlation-id", "reply-to", "type"].map(&mut take);
    let of_the_way = [take("queue"), take("attempt")];
    drop(of_the_way);
    let mut headers: Headers = said.into_iter().map(as_header).collect();
    let given = priority.as_deref().map(texts::given).unwrap_or_default();
    let priority = level(priority, &mut headers);
    // Names and texts that AMQP has no room for are cut there.
    let described = Content::new(None, &headers, Bytes::new());
    let [content_type, content_encoding, correlation_id, reply_to, kind] = short_texts.each_ref().map(short);
    let timestamp = published.map(|ms| ms / 1_000);
    let headers = described.properties.view().headers();
    let properties = Fields {
        content_type,
        content_encoding,
        correlation_id,
        reply_to,
        kind,
        priority,
        timestamp,
        headers,
        ..Fields::default()
    };
    Incoming {
        id: id.unwrap_or(own),
        key,
        key_weight,
        path: stream.to_owned(),
        priority: given,
        scheme,
        is_last_of_routes: none.as_deref() == Some(NONE_OF_ROUTES),
        properties: properties.encode(),
        // One that is over is taken in and expires: it is not known here what is to become of such.
        ttl_ms: expires.map(|at| at.saturating_sub(now.0).max(1)),
        body: body.into(),
        ..Incoming::default()
    }
}

fn foreign(stream: &str, own: String, fields: &[Field]) -> Incoming {
    let said: BTreeMap<String, String> = fields.iter().cloned().map(as_text).collect();
    let body = serde_json::to_vec(&said).expect("texts can be written");
    let mut headers = Headers::new();
    let priority = said.get("priority").filter(|text| !text.is_empty()).cloned();
    let given = priority.as_deref().map(texts::given).unwrap_or_default();
    let priority = level(priority, &mut headers);
    let described = Content::new(Some("application/json"), &headers, Bytes::new());
    let properties = Fields { priority, ..Fields::of(described.properties.view()) };
    Incoming {
        id: own,
        path: stream.to_owned(),
        priority: given,
        properties: properties.encode(),
        body: body.into(),
        ..Incoming::default()
    }
}

/// A priority that the property has no room for is left to the header of that name.
fn level(priority: Option<String>, headers: &mut Headers) -> Option<u8> {
    let text = priority?;
    let level = text.parse().ok();
    if level.is_none() {
        headers.insert("priority".to_owned(), HeaderValue::Text(text));
    }
    level
}

fn ms_of(text: String) -> Option<u64> {
    let at = text.parse::<Timestamp>().ok()?;
    u64::try_from(at.as_millisecond()).ok()
}

fn short(text: &Option<String>) -> Option<Short<'_>> {
    text.as_ref().and_then(|text| Short::new(text.as_bytes()))
}

fn as_header((name, text): (String, String)) -> (String, HeaderValue) {
    let name = name.strip_prefix(HEADER).map(ToOwned::to_owned).unwrap_or(name);
    (name, HeaderValue::Text(text))
}

fn as_text((name, value): Field) -> (String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(name), text(value))
}

#[cfg(test)]
mod tests {
    use overtake_lane::Given;

    use super::*;

    const NOW: Time = Time(1_795_339_200_000);

    fn entry(fields: &[(&str, &str)]) -> Incoming {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into()));
        read("jobs", "5-1", fields.collect(), NOW)
    }

    #[test]
    fn what_we_write_is_read_with_all_it_says() {
        let incoming = entry(&[
            ("id", "m1"),
            ("priority", "7"),
            ("queue", "q"),
            ("attempt", "2"),
            ("published", "2026-11-22T09:19:00.000Z"),
            ("expires", "2026-11-22T09:20:02.500Z"),
            ("key", "k"),
            ("content-type", "text/plain"),
            ("header:tenant", "a"),
            ("body", "x"),
        ]);
        let view = incoming.properties.view();
        assert_eq!((incoming.id.as_str(), incoming.key.as_deref()), ("m1", Some("k")));
        assert_eq!((incoming.path.as_str(), &incoming.body[..]), ("jobs", &b"x"[..]));
        assert_eq!((view.priority(), incoming.ttl_ms), (Some(7), Some(2_500)));
        assert_eq!(incoming.priority, Given::Number(7));
        assert_eq!(view.timestamp(), Some(1_795_339_140));
        assert_eq!(view.content_type().and_then(Short::text), Some("text/plain"));
        let headers = Content { properties: incoming.properties.clone(), ..Content::default() }.headers();
        assert_eq!(headers, [("tenant".to_owned(), HeaderValue::Text("a".to_owned()))].into());
    }

    #[test]
    fn a_priority_that_is_no_small_number_is_a_header_and_counts_all_the_same() {
        assert_eq!(entry(&[("priority", "-5"), ("body", "x")]).priority, Given::Number(-5));
        assert_eq!(entry(&[("priority", "high")]).priority, Given::Name("high".to_owned()));
        let incoming = entry(&[("priority", "high"), ("payload", "x")]);
        assert_eq!(incoming.priority, Given::Name("high".to_owned()));
        assert_eq!((incoming.id.as_str(), incoming.properties.view().priority()), ("jobs-5-1", None));
        let headers = Content { properties: incoming.properties, ..Content::default() }.headers();
        assert_eq!(headers["priority"], HeaderValue::Text("high".to_owned()));
    }

    #[test]
    fn an_entry_without_a_body_is_a_json_object_under_its_own_id() {
        let incoming = entry(&[("id", "7"), ("name", "Ada"), ("priority", "3")]);
        assert_eq!(incoming.id, "jobs-5-1");
        assert_eq!(incoming.body, r#"{"id":"7","name":"Ada","priority":"3"}"#);
        assert_eq!(incoming.properties.view().priority(), Some(3));
    }

    #[test]
    fn what_is_over_is_over_at_once() {
        assert_eq!(entry(&[("expires", "2026-11-22T09:00:00Z"), ("body", "")]).ttl_ms, Some(1));
    }
}
