//! A message to be published, and where it goes.

use std::time::Duration;

use bytes::Bytes;
use overtake_properties::{Fields, Properties, Short, TableBuilder, Value};

use crate::error::Error;
use crate::priority::Priority;

/// What a message says of its priority where the property has no room for it.
pub(crate) const PRIORITY: &str = "x-processing-priority";
/// While one of that name waits in a queue, another is confirmed and not stored.
const ID: &str = "x-overtake-id";
/// What the settings of a queue mean by key.
const KEY: &str = "x-overtake-key";
const KEY_WEIGHT: &str = "x-overtake-key-weight";
/// Persistent (AMQP 0-9-1, 1.8): whoever it is handed on to keeps it.
const PERSISTENT: u8 = 2;

/// A message to be published. What is not said is not sent.
///
/// ```
/// use std::time::Duration;
///
/// use overtake_client::{Message, Priority};
///
/// let mail = Message::new("Welcome!").priority(Priority::HIGH).ttl(Duration::from_secs(60)).header("customer", 7);
/// assert_eq!(mail.body(), "Welcome!");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Message {
    pub(crate) body: Bytes,
    priority: Option<Priority>,
    ttl: Option<Duration>,
    content_type: Option<String>,
    pub(crate) correlation_id: Option<String>,
    pub(crate) reply_to: Option<String>,
    message_id: Option<String>,
    kind: Option<String>,
    headers: TableBuilder,
    wrong: Option<String>,
}

impl Message {
    /// One with this body, bytes or text.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// One whose body is JSON, with that content type.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it cannot be said in JSON.
    #[cfg(feature = "serde")]
    pub fn json<T: serde::Serialize + ?Sized>(body: &T) -> Result<Self, Error> {
        let body = serde_json::to_vec(body).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Self::new(body).content_type("application/json"))
    }

    /// How urgent it is, whatever scope it is published in.
    #[must_use]
    pub fn priority(mut self, priority: impl Into<Priority>) -> Self {
        self.priority = Some(priority.into());
        self
    }

    /// How long it may wait; at least a millisecond.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Its name: while a message of that name waits in the queue, another is confirmed and not stored. By it, too, it can be found, reprioritised and removed.
    #[must_use]
    pub fn id(self, id: &str) -> Self {
        Self { message_id: Some(id.to_owned()), ..self }.header(ID, id)
    }

    /// Its key, where the settings of its queue speak of keys.
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.header(KEY, key)
    }

    /// The weight of its key: how many turns the key has beside others, 1 to 1,000, where keys take turns and the settings of the queue give
    /// this key no weight. The broker refuses one beside no key.
    #[must_use]
    pub fn key_weight(self, weight: u32) -> Self {
        self.header(KEY_WEIGHT, i64::from(weight))
    }

    /// A header, of any type that AMQP has. Names have at most 255 bytes.
    #[must_use]
    pub fn header<'v>(mut self, name: &str, value: impl Into<Value<'v>>) -> Self {
        match Short::new(name.as_bytes()) {
            Some(name) => {
                self.headers = std::mem::take(&mut self.headers).entry(name, value.into());
            }
            None => self.wrong = Some(format!("the name of a header is longer than 255 bytes: {name}")),
        }
        self
    }

    /// What its body is, such as `application/json`.
    #[must_use]
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.content_type = Some(content_type.to_owned());
        self
    }

    /// What kind of message it is, for whoever gets it.
    #[must_use]
    pub fn kind(mut self, kind: &str) -> Self {
        self.kind = Some(kind.to_owned());
        self
    }

    /// By which a reply knows what it answers.
    #[must_use]
    pub fn correlation_id(mut self, correlation_id: &str) -> Self {
        self.correlation_id = Some(correlation_id.to_owned());
        self
    }

    /// The queue for replies.
    #[must_use]
    pub fn reply_to(mut self, queue: &str) -> Self {
        self.reply_to = Some(queue.to_owned());
        self
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// How urgent it is where this scope holds: what it says, else what the scope says, else nothing.
    pub(crate) fn resolved(&self, scope: Option<Priority>) -> Option<Priority> {
        self.priority.or(scope)
    }

    /// What it says about itself, with this priority.
    pub(crate) fn properties(&self, priority: Option<Priority>) -> Result<Properties, Error> {
        if let Some(wrong) = &self.wrong {
            return Err(Error::Invalid(wrong.clone()));
        }
        let byte = priority.and_then(|Priority(number)| u8::try_from(number).ok());
        let without_room = priority.filter(|_| byte.is_none());
        let with_priority = without_room
            .map(|Priority(number)| self.headers.clone().entry(Short::literal(PRIORITY), Value::I32(number)));
        let headers = with_priority.as_ref().unwrap_or(&self.headers).view();
        let expiration = self.ttl.map(|ttl| ttl.as_millis().max(1).to_string());
        Ok(Fields {
            content_type: short(self.content_type.as_deref(), "content type")?,
            headers: (!headers.is_empty()).then_some(headers),
            delivery_mode: Some(PERSISTENT),
            priority: byte,
            correlation_id: short(self.correlation_id.as_deref(), "correlation id")?,
            reply_to: short(self.reply_to.as_deref(), "queue for replies")?,
            expiration: short(expiration.as_deref(), "time to live")?,
            message_id: short(self.message_id.as_deref(), "id")?,
            kind: short(self.kind.as_deref(), "kind")?,
            ..Fields::default()
        }
        .encode())
    }
}

/// A short string of AMQP.
pub(crate) fn short<'t>(text: Option<&'t str>, what: &str) -> Result<Option<Short<'t>>, Error> {
    let Some(text) = text else { return Ok(None) };
    let short = Short::new(text.as_bytes());
    short.map(Some).ok_or_else(|| Error::Invalid(format!("the {what} is longer than 255 bytes: {text}")))
}

/// Where a message goes: a queue, by its name alone, or an exchange with a routing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct To<'a> {
    pub(crate) exchange: &'a str,
    pub(crate) routing_key: &'a str,
    pub(crate) mandatory: bool,
}

impl<'a> To<'a> {
    /// A queue. If there is none of that name, the publish is [`Error::Unroutable`].
    #[must_use]
    pub fn queue(name: &'a str) -> Self {
        Self { exchange: "", routing_key: name, mandatory: true }
    }

    /// An exchange, which knows by the routing key and its bindings which queues get a copy; maybe none.
    #[must_use]
    pub fn exchange(name: &'a str, routing_key: &'a str) -> Self {
        Self { exchange: name, routing_key, mandatory: false }
    }

    /// At least one queue must get a copy; otherwise the publish is [`Error::Unroutable`].
    #[must_use]
    pub fn mandatory(self) -> Self {
        Self { mandatory: true, ..self }
    }
}

impl<'a> From<&'a str> for To<'a> {
    fn from(queue: &'a str) -> Self {
        Self::queue(queue)
    }
}

impl<'a> From<&'a String> for To<'a> {
    fn from(queue: &'a String) -> Self {
        Self::queue(queue)
    }
}
