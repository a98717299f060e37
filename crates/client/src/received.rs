//! A message that came.

use std::time::Duration;

use bytes::Bytes;
use overtake_amqp::client;
use overtake_properties::{Properties, Short, Value};

use crate::message::PRIORITY;
use crate::priority::Priority;

/// A message that came. Its priority, headers and the rest are as it was published; the priority as it was reprioritised to since.
#[derive(Clone, Debug)]
pub struct Received {
    exchange: Bytes,
    routing_key: Bytes,
    properties: Properties,
    body: Bytes,
    is_redelivered: bool,
}

/// A priority in a header: a number, or one of the names, as others may write it.
fn said(value: Value<'_>) -> Option<Priority> {
    let number = value.int().and_then(|number| i32::try_from(number).ok()).map(Priority);
    number.or_else(|| value.text().and_then(Priority::named))
}

impl Received {
    pub(crate) fn new(message: client::Message, is_redelivered: bool) -> Self {
        let client::Message { exchange, routing_key, properties, body } = message;
        Self { exchange, routing_key, properties, body, is_redelivered }
    }

    /// What it says.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The body as text, if it is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok()
    }

    /// The body from JSON.
    ///
    /// # Errors
    /// It is none, or of another form.
    #[cfg(feature = "serde")]
    pub fn json<'de, T: serde::Deserialize<'de>>(&'de self) -> Result<T, crate::Error> {
        serde_json::from_slice(&self.body).map_err(|error| crate::Error::Invalid(error.to_string()))
    }

    /// How urgent it is; `None`: it says nothing, so its queue knows what is normal.
    #[must_use]
    pub fn priority(&self) -> Option<Priority> {
        let property = || self.properties.view().priority().map(|number| Priority(number.into()));
        self.header(PRIORITY).and_then(said).or_else(property)
    }

    /// A header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<Value<'_>> {
        self.properties.view().headers()?.get(name)
    }

    /// All headers, in the order in which they were written.
    pub fn headers(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        let entries = self.properties.view().headers().into_iter().flat_map(|headers| headers.iter());
        entries.filter_map(|(name, value)| Some((name.text()?, value)))
    }

    /// Its id, if it has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.properties.view().message_id().and_then(Short::text)
    }

    /// What its body is.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.properties.view().content_type().and_then(Short::text)
    }

    /// What kind of message it is.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.properties.view().kind().and_then(Short::text)
    }

    /// By which a reply knows what it answers.
    #[must_use]
    pub fn correlation_id(&self) -> Option<&str> {
        self.properties.view().correlation_id().and_then(Short::text)
    }

    /// The queue for replies.
    #[must_use]
    pub fn reply_to(&self) -> Option<&str> {
        self.properties.view().reply_to().and_then(Short::text)
    }

    /// How long it was allowed to wait.
    #[must_use]
    pub fn ttl(&self) -> Option<Duration> {
        let text = self.properties.view().expiration().and_then(Short::text)?;
        text.parse().ok().map(Duration::from_millis)
    }

    /// Whether it was out before.
    #[must_use]
    pub fn is_redelivered(&self) -> bool {
        self.is_redelivered
    }

    /// How often it was out, this time included.
    #[must_use]
    pub fn count(&self) -> u64 {
        let before = self.header("x-delivery-count").and_then(Value::int);
        1 + before.and_then(|before| u64::try_from(before).ok()).unwrap_or(u64::from(self.is_redelivered))
    }

    /// The exchange it was published to; empty: to a queue.
    #[must_use]
    pub fn exchange(&self) -> &str {
        std::str::from_utf8(&self.exchange).unwrap_or_default()
    }

    /// The routing key it was published with: the name of the queue, if to one.
    #[must_use]
    pub fn routing_key(&self) -> &str {
        std::str::from_utf8(&self.routing_key).unwrap_or_default()
    }

    /// The rest of what it says about itself, as AMQP has it.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.properties
    }
}
