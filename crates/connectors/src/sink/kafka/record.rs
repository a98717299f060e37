//! A message as a record.

use overtake_lane::HeaderValue;
use overtake_properties::Short;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::BaseRecord;

use super::KafkaKey;
use super::topic::{Field, Topic};
use crate::outgoing::Outgoing;
use crate::texts::{KEY_WEIGHT, NONE_OF_ROUTES, PRIORITY_NONE, PRIORITY_SCHEME, rfc3339, text_of};

/// A message as a record.
pub(super) struct Record {
    topic: String,
    key: Option<String>,
    headers: Vec<(String, Vec<u8>)>,
}

impl Record {
    pub(super) fn new(topic: &Topic, key: KafkaKey, message: &Outgoing) -> Self {
        let topic = topic.fill(|field| match field {
            Field::Priority => message.priority_text().map(|(text, _)| text),
            Field::Lane => Some(message.item().lane.to_string()),
            Field::Queue => Some(message.queue().to_owned()),
            Field::RoutingKey => Some(message.route().1.to_owned()),
            Field::Key => message.key().map(ToOwned::to_owned),
        });
        // A weight is nothing without its key.
        let (key, weight) = match key {
            KafkaKey::Key => (message.key().map(ToOwned::to_owned), message.key_weight()),
            KafkaKey::Id => (Some(message.id().into_owned()), None),
            KafkaKey::None => (None, None),
        };
        Self { topic, key, headers: headers(message, weight) }
    }

    /// Bytes over the line, about.
    pub(super) fn bytes(&self, message: &Outgoing) -> u64 {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        (self.key.as_ref().map_or(0, String::len) + headers + message.body().len()) as u64
    }

    /// As librdkafka takes it; its report names the message by this number.
    pub(super) fn produce<'a>(
        &'a self,
        message: &'a Outgoing,
        at: usize,
    ) -> BaseRecord<'a, str, [u8], usize> {
        let mut headers = OwnedHeaders::new_with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            headers = headers.insert(Header { key: name, value: Some(value) });
        }
        let record = BaseRecord::with_opaque_to(&self.topic, at).payload(&**message.body()).headers(headers);
        match &self.key {
            Some(key) => record.key(key),
            None => record,
        }
    }
}

/// What is said of the message, then its own headers. Of one name the first.
fn headers(message: &Outgoing, weight: Option<u32>) -> Vec<(String, Vec<u8>)> {
    let encoding = message.properties().view().content_encoding().and_then(Short::text);
    let (priority, scheme) = message.priority_text().unzip();
    let said = [
        ("id", Some(message.id().into_owned())),
        ("priority", priority),
        (PRIORITY_SCHEME, scheme.flatten().map(|scheme| scheme.to_string())),
        (PRIORITY_NONE, message.is_last_of_routes().then(|| NONE_OF_ROUTES.to_owned())),
        (KEY_WEIGHT, weight.map(|weight| weight.to_string())),
        ("attempt", Some(message.attempt().to_string())),
        ("published", Some(rfc3339(message.published()))),
        ("expires", message.expires().some().map(rfc3339)),
        ("content-type", message.content_type().map(ToOwned::to_owned)),
        ("content-encoding", encoding.map(ToOwned::to_owned)),
    ];
    let mut all: Vec<(String, Vec<u8>)> = said
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| (name.to_owned(), value.into_bytes())))
        .collect();
    for (name, value) in message.headers() {
        if let Some(value) = bytes_of(value)
            // librdkafka takes names as C does.
            && !name.contains('\0')
            && !all.iter().any(|(other, _)| *other == name)
        {
            all.push((name, value));
        }
    }
    all
}

/// The names of the headers that a record leaves out: of lists or tables, without a value, or with a name that librdkafka would cut.
pub(super) fn left_out(message: &Outgoing) -> Vec<String> {
    let fits_not =
        |(name, value): &(String, HeaderValue)| bytes_of(value.clone()).is_none() || name.contains('\0');
    message.headers().into_iter().filter(fits_not).map(|(name, _)| name).collect()
}

fn bytes_of(value: HeaderValue) -> Option<Vec<u8>> {
    match value {
        HeaderValue::Bytes(bytes) => Some(bytes),
        value => text_of(&value).map(String::into_bytes),
    }
}
