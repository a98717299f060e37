//! A message as a publish of MQTT 5, and back.
//!
//! | of the message | in the publish |
//! |---|---|
//! | time left | message expiry interval, seconds, rounded up at the moment of sending |
//! | content type | content type |
//! | correlation id | correlation data |
//! | reply-to | response topic |
//! | id, priority and its scheme, attempt, key | user properties `id`, `priority`, `priority-scheme`, `attempt`, `key` |
//! | headers, but those of these names | user properties |
//!
//! What MQTT has no room for (65,535 bytes, no control characters: 1.5.4) is left out, since a server closes the connection over it, every time
//! the message comes. What was written so comes back so, `attempt` apart.

use bytes::Bytes;
use overtake_engine::Content;
use overtake_lane::{HeaderValue, Headers, Time};
use overtake_properties::{Fields, Short};
use rumqttc::v5::mqttbytes::v5::{Publish, PublishProperties};

use crate::inlet::Incoming;
use crate::outgoing::Outgoing;
use crate::texts::{self, KEY_WEIGHT, NONE_OF_ROUTES, PRIORITY_NONE, PRIORITY_SCHEME};

/// User properties that are ours.
const OURS: [&str; 7] = ["id", "priority", PRIORITY_SCHEME, PRIORITY_NONE, "attempt", "key", KEY_WEIGHT];
/// Longest text, bytes.
const TEXT_LEN_MAX: usize = u16::MAX as usize;

/// Whether text can be said in MQTT: control characters and what are no characters end a connection at many a server (1.5.4).
pub(crate) fn fits(text: &str) -> bool {
    let is_character = |char: char| {
        let code = u32::from(char);
        !char.is_control() && !(0xFDD0..=0xFDEF).contains(&code) && code & 0xFFFE != 0xFFFE
    };
    text.len() <= TEXT_LEN_MAX && text.chars().all(is_character)
}

/// Whether a message can be published under this name.
pub(crate) fn is_topic(text: &str) -> bool {
    !text.is_empty() && fits(text) && !text.contains(['+', '#'])
}

/// What a message says besides its body.
pub(crate) fn properties(message: &Outgoing, now: Time) -> PublishProperties {
    let view = message.properties().view();
    let text = |short: Option<Short<'_>>| short.and_then(Short::text).map(ToOwned::to_owned);
    let seconds_left = |at: Time| u32::try_from(at.since(now).div_ceil(1_000)).unwrap_or(u32::MAX);
    PublishProperties {
        message_expiry_interval: message.expires().some().map(seconds_left),
        content_type: text(view.content_type()).filter(|text| fits(text)),
        correlation_data: view.correlation_id().map(|short| Bytes::copy_from_slice(short.as_bytes())),
        response_topic: text(view.reply_to()).filter(|text| is_topic(text)),
        user_properties: user_properties(message),
        ..PublishProperties::default()
    }
}

/// The headers and properties that a publish leaves out, by their names in the message.
pub(crate) fn left_out(message: &Outgoing) -> Vec<String> {
    let fits_not = |(name, value): &(String, String)| !(fits(name) && fits(value));
    let kind = message.content_type().map(|kind| ("content-type".to_owned(), kind.to_owned()));
    let controls = said(message).chain(kind).filter(fits_not).map(|(name, _)| name);
    controls.chain(texts::no_texts(message)).collect()
}

fn user_properties(message: &Outgoing) -> Vec<(String, String)> {
    said(message).filter(|(name, value)| fits(name) && fits(value)).collect()
}

/// Names and values, whether they fit or not.
fn said(message: &Outgoing) -> impl Iterator<Item = (String, String)> {
    let mut all = vec![
        ("id".to_owned(), message.id().into_owned()),
        ("attempt".to_owned(), message.attempt().to_string()),
    ];
    if let Some((priority, scheme)) = message.priority_text() {
        all.push(("priority".to_owned(), priority));
        all.extend(scheme.map(|scheme| (PRIORITY_SCHEME.to_owned(), scheme.to_string())));
    }
    if message.is_last_of_routes() {
        all.push((PRIORITY_NONE.to_owned(), NONE_OF_ROUTES.to_owned()));
    }
    all.extend(message.key().map(|key| ("key".to_owned(), key.to_owned())));
    all.extend(message.key_weight().map(|weight| (KEY_WEIGHT.to_owned(), weight.to_string())));
    all.into_iter().chain(texts::headers(message).filter(|(name, _)| !OURS.contains(&name.as_str())))
}

/// The message that a publish is; without an id of its own it gets this one.
pub(crate) fn incoming(publish: Publish, id: impl FnOnce() -> String) -> Incoming {
    let Publish { topic, payload, properties, .. } = publish;
    let said = properties.unwrap_or_default();
    let ours = |name: &str| {
        let found = said.user_properties.iter().find(|(of, _)| of == name);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    let others = said.user_properties.iter().filter(|(name, _)| !OURS.contains(&name.as_str()));
    let mut headers: Headers =
        others.map(|(name, value)| (name.clone(), HeaderValue::Text(value.clone()))).collect();
    let priority = ours("priority");
    let given = priority.as_deref().map(texts::given).unwrap_or_default();
    let priority = priority.and_then(|text| {
        let level = text.parse().ok();
        if level.is_none() {
            headers.insert("priority".to_owned(), HeaderValue::Text(text));
        }
        level
    });
    let described = Content::new(said.content_type.as_deref(), &headers, Bytes::new());
    let fields = Fields {
        priority,
        correlation_id: said.correlation_data.as_deref().and_then(Short::new),
        reply_to: said.response_topic.as_ref().and_then(|topic| Short::new(topic.as_bytes())),
        ..Fields::of(described.properties.view())
    };
    Incoming {
        id: ours("id").unwrap_or_else(id),
        key: ours("key"),
        key_weight: ours(KEY_WEIGHT).as_deref().map(texts::weight),
        path: String::from_utf8_lossy(&topic).into_owned(),
        priority: given,
        scheme: ours(PRIORITY_SCHEME),
        is_last_of_routes: ours(PRIORITY_NONE).as_deref() == Some(NONE_OF_ROUTES),
        properties: fields.encode(),
        ttl_ms: said.message_expiry_interval.map(|seconds| u64::from(seconds).max(1) * 1_000),
        body: payload,
        ..Incoming::default()
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::Given;
    use rumqttc::v5::mqttbytes::QoS;

    use super::*;

    fn publish(user_properties: &[(&str, &str)]) -> Publish {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let properties = PublishProperties {
            message_expiry_interval: Some(3),
            content_type: Some("text/plain".to_owned()),
            correlation_data: Some(Bytes::from_static(b"\xffc")),
            response_topic: Some("back".to_owned()),
            user_properties: user_properties.iter().map(owned).collect(),
            ..PublishProperties::default()
        };
        Publish::new("a/b", QoS::AtLeastOnce, "x", Some(properties))
    }

    #[test]
    fn what_a_publish_says_is_read_with_all_it_says() {
        let said = [("id", "m1"), ("priority", "7"), ("attempt", "2"), ("key", "k"), ("tenant", "a")];
        let incoming = incoming(publish(&said), || panic!("it has one"));
        assert_eq!((incoming.id.as_str(), incoming.key.as_deref()), ("m1", Some("k")));
        assert_eq!((incoming.path.as_str(), &incoming.body[..]), ("a/b", &b"x"[..]));
        assert_eq!(incoming.ttl_ms, Some(3_000));
        let view = incoming.properties.view();
        assert_eq!(view.priority(), Some(7));
        assert_eq!(view.content_type().and_then(Short::text), Some("text/plain"));
        assert_eq!(view.correlation_id().map(Short::as_bytes), Some(&b"\xffc"[..]));
        assert_eq!(view.reply_to().and_then(Short::text), Some("back"));
        let headers = Content { properties: incoming.properties.clone(), ..Content::default() }.headers();
        assert_eq!(headers, [("tenant".to_owned(), HeaderValue::Text("a".to_owned()))].into());
    }

    #[test]
    fn what_says_no_id_gets_one_and_a_named_priority_is_a_header() {
        let incoming = incoming(publish(&[("priority", "high")]), || "given".to_owned());
        assert_eq!((incoming.id.as_str(), incoming.properties.view().priority()), ("given", None));
        assert_eq!(incoming.priority, Given::Name("high".to_owned()));
        let headers = Content { properties: incoming.properties, ..Content::default() }.headers();
        assert_eq!(headers["priority"], HeaderValue::Text("high".to_owned()));
    }

    #[test]
    fn what_would_end_a_connection_does_not_fit() {
        for wrong in ["a\nb", "\0", "\u{7f}", "\u{fffe}", "\u{1ffff}", "\u{fdd0}"] {
            assert!(!fits(wrong), "{wrong:?}");
        }
        assert!(fits("ä/𝄞 b") && fits(&"x".repeat(65_535)) && !fits(&"x".repeat(65_536)));
        assert!(is_topic("a/b") && !is_topic("") && !is_topic("a/+") && !is_topic("#"));
    }
}
