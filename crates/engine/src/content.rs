//! What a message says, as bytes in the journal: properties, how it was published, then the body to the end.
//!
//! | field | bytes |
//! |---|---|
//! | properties | their length, then flags and values as in a content header of AMQP 0-9-1 (2.3.5.2) |
//! | exchange | text |
//! | how many routing keys | a number |
//! | each routing key | text |
//! | its own time to live | 0 for none; else one more than its milliseconds |
//! | body | the rest |

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use overtake_lane::{Deaths, HeaderValue, Headers, Marks, MessageView, Property, Route};
use overtake_properties::{Fault, Fields, Limits, Properties, Short, ShortText};
use overtake_store::codec::{self, Reader};

use crate::api::Content;
use crate::headers::{header_of, headers_of, table_of};

impl Content {
    /// A body, with a media type, cut at 255 bytes, and headers, whose names are cut there, too.
    #[must_use]
    pub fn new(content_type: Option<&str>, headers: &Headers, body: Bytes) -> Self {
        let table = table_of(headers);
        let fields = Fields {
            content_type: content_type.map(|text| Short::from(ShortText::cut(text))),
            headers: (!headers.is_empty()).then(|| table.view()),
            ..Fields::default()
        };
        Self { properties: fields.encode(), body, ..Self::default() }
    }

    /// A body, with all that a publisher can say of it: the property list of a content header of AMQP 0-9-1 (2.3.5.2, flags and values).
    ///
    /// # Errors
    /// Where the list cannot be read, or is larger than a connection of AMQP lets it be.
    pub fn with_properties(list: Bytes, body: Bytes) -> Result<Self, Fault> {
        let properties = Properties::check(list, &Limits::default())?;
        Ok(Self { properties, body, ..Self::default() })
    }

    /// What [`Content::with_properties`] takes: all that its publisher said of it.
    #[must_use]
    pub fn property_list(&self) -> &[u8] {
        self.properties.as_bytes()
    }

    /// Its headers.
    #[must_use]
    pub fn headers(&self) -> Headers {
        self.properties.view().headers().map(headers_of).unwrap_or_default()
    }

    /// Its media type, where that is text.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.properties.view().content_type().and_then(Short::text)
    }

    /// The same, said to be of this user, whose name is cut at 255 bytes. Who may say so is decided in `access`.
    #[must_use]
    pub fn with_user_id(self, user: &str) -> Self {
        let user_id = Some(Short::from(ShortText::cut(user)));
        let properties = Fields { user_id, ..Fields::of(self.properties.view()) }.encode();
        Self { properties, ..self }
    }

    /// The user that it says it is of (the property `user_id`), where that is text.
    #[must_use]
    pub fn user_id(&self) -> Option<&str> {
        self.properties.view().user_id().and_then(Short::text)
    }

    /// The other properties of AMQP (1.8.1) that it has, by their names, as text: what no text is, with what cannot be read replaced.
    #[must_use]
    pub fn properties(&self) -> Vec<(&'static str, String)> {
        let of = self.properties.view();
        let text = |name, short: Option<Short<'_>>| {
            short.map(|short| (name, String::from_utf8_lossy(short.as_bytes()).into_owned()))
        };
        let delivery_mode = of.delivery_mode().map(|mode| match mode {
            2 => "persistent".to_owned(),
            1 => "transient".to_owned(),
            other => other.to_string(),
        });
        let all = [
            text("content_encoding", of.content_encoding()),
            delivery_mode.map(|mode| ("delivery_mode", mode)),
            text("correlation_id", of.correlation_id()),
            text("reply_to", of.reply_to()),
            text("message_id", of.message_id()),
            of.timestamp().map(|seconds| ("timestamp", seconds.to_string())),
            text("type", of.kind()),
            text("app_id", of.app_id()),
            text("cluster_id", of.cluster_id()),
        ];
        all.into_iter().flatten().collect()
    }

    /// Bytes that count against limits: properties and the body.
    #[must_use]
    pub fn size(&self) -> usize {
        // Two of them say which there are.
        self.body.len() + self.properties.as_bytes().len().saturating_sub(2)
    }

    /// Appends it as the bytes in which messages are stored.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let properties = self.properties.as_bytes();
        codec::number(out, properties.len() as u64);
        out.extend_from_slice(properties);
        codec::text(out, &self.route.exchange);
        codec::number(out, self.route.keys.len() as u64);
        for key in &self.route.keys {
            codec::text(out, key);
        }
        codec::number(out, self.ttl_ms.map_or(0, |ms| ms.saturating_add(1)));
        out.extend_from_slice(&self.body);
    }

    /// By which exchange and routing keys this message, which says so, came into its queue: as published, else as its last
    /// death sent it on.
    #[must_use]
    pub fn route_of<'a>(&'a self, message: &'a MessageView) -> &'a Route {
        message.deaths.as_deref().map_or(&self.route, Deaths::route)
    }

    /// What bytes of [`Content::encode`] say; `None` where they make no sense.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let len = usize::try_from(reader.number()?).ok()?;
        let properties = Bytes::copy_from_slice(reader.take(len)?);
        let properties = Properties::check(properties, &STORED).ok()?;
        let exchange = reader.text()?.into();
        let keys = (0..reader.number()?).map(|_| reader.text().map(Arc::from)).collect::<Option<_>>()?;
        let (route, ttl_ms) = (Route { exchange, keys }, reader.number()?.checked_sub(1));
        Some(Self { properties, route, ttl_ms, body: Bytes::copy_from_slice(reader.rest()) })
    }
}

/// What was taken once is taken again.
const STORED: Limits = Limits { bytes: u32::MAX, entries: u32::MAX, depth: overtake_properties::DEPTH_MAX };

impl Marks for Content {
    fn header(&self, name: &str) -> Option<Cow<'_, HeaderValue>> {
        let value = self.properties.view().headers()?.get(name)?;
        Some(Cow::Owned(header_of(value)))
    }

    fn property(&self, property: Property) -> Option<Cow<'_, str>> {
        let properties = self.properties.view();
        let text =
            |short: Option<Short<'_>>| short.and_then(Short::text).map(|text| Cow::Owned(text.to_owned()));
        match property {
            Property::MessageId => text(properties.message_id()),
            Property::CorrelationId => text(properties.correlation_id()),
            Property::Timestamp => properties.timestamp().map(|seconds| Cow::Owned(seconds.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_properties_are_told_as_text() {
        let short = |text: &'static str| Some(Short::from(ShortText::cut(text)));
        let fields = Fields {
            content_type: short("text/plain"),
            correlation_id: short("c-7"),
            kind: short("order"),
            delivery_mode: Some(2),
            timestamp: Some(1_700_000_000),
            ..Fields::default()
        };
        let content = Content { properties: fields.encode(), ..Content::default() };
        let told: Vec<_> = content.properties().iter().map(|(name, text)| format!("{name}={text}")).collect();
        assert_eq!(
            told,
            ["delivery_mode=persistent", "correlation_id=c-7", "timestamp=1700000000", "type=order"]
        );
        assert_eq!(Content::default().properties(), []);
    }

    #[test]
    fn content_reads_back_as_it_was_written() {
        let headers = [
            ("a".to_owned(), HeaderValue::Bool(true)),
            ("b".to_owned(), HeaderValue::Int(-7)),
            ("c".to_owned(), HeaderValue::Text("é".into())),
        ];
        for content_type in [None, Some(String::new()), Some("text/plain".to_owned())] {
            let content =
                Content::new(content_type.as_deref(), &headers.clone().into(), Bytes::from_static(b"\0body"));
            assert_eq!(
                (content.headers(), content.content_type()),
                (headers.clone().into(), content_type.as_deref())
            );
            let content = Content {
                route: Route { exchange: "x".into(), keys: ["a.b", ""].map(Arc::from).into_iter().collect() },
                ttl_ms: Some(0),
                ..content
            };
            let mut bytes = Vec::new();
            content.encode(&mut bytes);
            assert_eq!(Content::decode(&bytes), Some(content));
            for cut in 0..bytes.len() - 5 {
                assert!(Content::decode(&bytes[..cut]).is_none(), "cut at {cut}");
            }
        }
    }
}
