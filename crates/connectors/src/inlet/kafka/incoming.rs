//! A record as a message that came in.

use bytes::Bytes;
use overtake_engine::Content;
use overtake_lane::{HeaderValue, Headers as Table};
use overtake_properties::{Fields, Properties, Short, ShortText};
use rdkafka::Message;
use rdkafka::message::Headers;

use crate::inlet::Incoming;
use crate::texts::{self, KEY_WEIGHT, NONE_OF_ROUTES, PRIORITY_NONE, PRIORITY_SCHEME};

/// What a record says about itself elsewhere than among the headers.
const MOVED: [&str; 6] =
    ["id", "content-type", "content-encoding", KEY_WEIGHT, PRIORITY_SCHEME, PRIORITY_NONE];

/// A record as a message that came in.
pub(super) fn incoming(record: &impl Message) -> Incoming {
    let headers = headers(record);
    let text = |name: &str| match headers.get(name) {
        Some(HeaderValue::Text(text)) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    let stood = || format!("{}-{}-{}", record.topic(), record.partition(), record.offset());
    let key = record.key().filter(|key| !key.is_empty());
    Incoming {
        id: text("id").unwrap_or_else(stood),
        key: key.map(|key| String::from_utf8_lossy(key).into_owned()),
        key_weight: text(KEY_WEIGHT).as_deref().map(texts::weight),
        path: record.topic().to_owned(),
        place: format!("partition {}, offset {}", record.partition(), record.offset()),
        priority: text("priority").as_deref().map(texts::given).unwrap_or_default(),
        scheme: text(PRIORITY_SCHEME),
        is_last_of_routes: text(PRIORITY_NONE).as_deref() == Some(NONE_OF_ROUTES),
        properties: properties(&headers, text("content-type"), text("content-encoding")),
        ttl_ms: None,
        body: record.payload().map(Bytes::copy_from_slice).unwrap_or_default(),
        ..Incoming::default()
    }
}

/// Of one name the first.
fn headers(record: &impl Message) -> Table {
    let mut table = Table::new();
    for header in record.headers().into_iter().flat_map(Headers::iter) {
        let value = || match header.value {
            None => HeaderValue::Void,
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => HeaderValue::Text(text.to_owned()),
                Err(_) => HeaderValue::Bytes(bytes.to_vec()),
            },
        };
        table.entry(header.key.to_owned()).or_insert_with(value);
    }
    table
}

fn properties(headers: &Table, content_type: Option<String>, encoding: Option<String>) -> Properties {
    let priority = match headers.get("priority") {
        Some(HeaderValue::Text(text)) => text.parse::<u8>().ok(),
        _ => None,
    };
    let mut others = headers.clone();
    others.retain(|name, _| !MOVED.contains(&name.as_str()));
    let content = Content::new(content_type.as_deref(), &others, Bytes::new());
    let content_encoding = encoding.as_deref().map(|text| Short::from(ShortText::cut(text)));
    Fields { priority, content_encoding, ..Fields::of(content.properties.view()) }.encode()
}

#[cfg(test)]
mod tests {
    use overtake_lane::Given;
    use rdkafka::Timestamp;
    use rdkafka::message::{Header, OwnedHeaders, OwnedMessage};

    use super::*;

    fn record(headers: &[(&str, Option<&[u8]>)], key: Option<&[u8]>, body: Option<&[u8]>) -> Incoming {
        let mut all = OwnedHeaders::new();
        for (key, value) in headers {
            all = all.insert(Header { key, value: *value });
        }
        let owned = |bytes: &[u8]| bytes.to_vec();
        let at = Timestamp::NotAvailable;
        incoming(&OwnedMessage::new(body.map(owned), key.map(owned), "t".to_owned(), at, 3, 42, Some(all)))
    }

    #[test]
    fn a_record_is_a_message_as_the_table_says() {
        let headers: [(&str, Option<&[u8]>); 8] = [
            ("key-weight", Some(b"3")),
            ("id", Some(b"o-1")),
            ("content-type", Some(b"text/plain")),
            ("priority", Some(b"7")),
            ("tenant", Some(b"blue")),
            ("tenant", Some(b"green")),
            ("trace", Some(b"\xff\x00")),
            ("void", None),
        ];
        let message = record(&headers, Some(b"k"), Some(b"body"));
        assert_eq!((&*message.id, message.key.as_deref(), &*message.path), ("o-1", Some("k"), "t"));
        assert_eq!((&message.body[..], message.key_weight), (&b"body"[..], Some(3)));
        assert_eq!(message.properties.view().priority(), Some(7));
        assert_eq!(message.priority, Given::Number(7));
        let content = Content { properties: message.properties, ..Content::default() };
        assert_eq!(content.content_type(), Some("text/plain"));
        let text = |text: &str| HeaderValue::Text(text.to_owned());
        let expected = [
            ("priority", text("7")),
            ("tenant", text("blue")),
            ("trace", HeaderValue::Bytes(vec![0xff, 0])),
            ("void", HeaderValue::Void),
        ];
        assert_eq!(content.headers(), expected.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn what_says_nothing_is_known_by_where_it_stood_and_a_tombstone_is_empty() {
        let message = record(&[("priority", Some(b"high"))], None, None);
        assert_eq!((&*message.id, message.key), ("t-3-42", None));
        assert_eq!(message.place, "partition 3, offset 42");
        assert!(message.body.is_empty());
        assert_eq!(message.properties.view().priority(), None);
        assert_eq!(message.priority, Given::Name("high".to_owned()));
    }
}
