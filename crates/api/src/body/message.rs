//! Bodies that publish messages.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use overtake_engine::{Content, NewMessage, Sender, Target};
use overtake_lane::{
    HeaderValue, Headers, KEY_WEIGHT_MAX, NAME_LEN_MAX, Origin, PRODUCER_NAME_LEN_MAX, Weight,
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Bounded, DurationMs, GivenIn, HEADERS_MAX, HeadersIn};
use crate::name::checked_queue;
use crate::problem::Problem;
use crate::schema::PrioritySchema;

/// Most messages of one publish, and most publishes and most settlements of one transaction.
pub(crate) const MESSAGES_MAX: usize = 10_000;
/// Longest text in a header, bytes.
const HEADER_TEXT_LEN_MAX: usize = 8_192;
/// Longest media type, routing key and user, bytes: the length of a short string of AMQP.
const SHORT_TEXT_LEN_MAX: usize = 255;

/// Base64 of the standard alphabet, with padding or without.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Additional routing keys of one message.
pub type MoreKeys = Bounded<String, 100>;

/// Defines a body that publishes: first the fields that only this body has, then the fields of every message.
macro_rules! message {
    ($(#[$about:meta])* $vis:vis $name:ident as $schema:ident { $($(#[$on_field:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        #[schema(as = $schema)]
        $vis struct $name {
            $($(#[$on_field])* $field: $type,)*
            /// How urgent, in the words of the queue's scheme; without it the queue's or the scheme's default.
            #[serde(default)]
            #[schema(value_type = Option<PrioritySchema>)]
            priority: GivenIn,
            /// The body as text. One of `body` and `body_base64` must be there; it may be empty.
            pub body: Option<String>,
            /// The body as bytes, in base64 of the standard alphabet.
            pub body_base64: Option<String>,
            /// Makes the publish idempotent: while a message of this id is pending, another is not made. 1 to 200 bytes.
            pub id: Option<String>,
            /// Time to live, ms; 0 or missing: as the queue says. At most ten years.
            #[schema(value_type = Option<u64>, maximum = 315_360_000_000_u64)]
            ttl_ms: Option<DurationMs>,
            /// Not to be leased before so many ms from now. At most ten years.
            #[schema(value_type = Option<u64>, maximum = 315_360_000_000_u64)]
            pub delay_ms: Option<DurationMs>,
            /// The key, for last-value queues and filters. At most 200 bytes.
            key: Option<String>,
            /// The turns of its key beside those of others, where keys take turns (`fair_keys`) and the settings of the queue give this key
            /// no weight.
            #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000)]
            key_weight: Option<Weight<KEY_WEIGHT_MAX>>,
            /// The media type of the body. At most 255 bytes.
            content_type: Option<String>,
            /// Whose it is: the user who publishes, or for administrators any. It stands in the property `user_id` of AMQP.
            pub user_id: Option<String>,
            /// Up to 100 texts, whole numbers and booleans by name.
            #[serde(default)]
            #[schema(value_type = Object)]
            headers: HeadersIn,
            /// In place of `content_type`, `user_id` and `headers`, all that AMQP can say of a message: the property list of a content header
            /// of AMQP 0-9-1 (2.3.5.2, flags and values), in base64. Messages are shown with it where it is asked for.
            properties_base64: Option<String>,
            /// Makes the publish happen once, however often it is tried: by which number its producer knows it.
            producer: Option<ProducerIn>,
        }

        impl $name {
            /// Converts the body to a message for the target `to`.
            ///
            /// # Errors
            /// 422 for the first value that is not valid, 413 for a message that exceeds the limits.
            $vis fn into_message(self, to: Target, limits: Limits) -> Result<NewMessage, Problem> {
                let body = body(self.body, self.body_base64)?;
                let said = Said { content_type: self.content_type, user_id: self.user_id, headers: self.headers.0 };
                let content = said.or_listed(self.properties_base64, body)?;
                let message = NewMessage {
                    to,
                    sender: Sender::default(),
                    priority: self.priority.0,
                    id: self.id,
                    key: self.key,
                    key_weight: self.key_weight.map(|weight| weight.0),
                    ttl_ms: self.ttl_ms.map(|ms| ms.0).filter(|ms| *ms > 0),
                    delay_ms: self.delay_ms.map_or(0, |ms| ms.0),
                    origin: self.producer.map(ProducerIn::into_origin).transpose()?,
                    content,
                };
                limits.check(&message)?;
                Ok(message)
            }
        }
    };
}

/// By which number its producer knows a message: one that was taken before is not published again, however long ago it came and whatever became of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Producer)]
pub(crate) struct ProducerIn {
    /// A name that no other producer in the virtual host has: 1 to 64 letters, digits, `-`, `_` and `.`.
    name: String,
    /// The number, which no other message of the producer has, in any order.
    sequence: u64,
    /// The producer publishes nothing below this number any more, and nothing of it need be remembered.
    #[serde(default)]
    floor: u64,
}

impl ProducerIn {
    fn into_origin(self) -> Result<Origin, Problem> {
        Origin::new(&self.name, self.sequence, self.floor).ok_or_else(|| {
            let what = format!("must be 1 to {PRODUCER_NAME_LEN_MAX} letters, digits, `-`, `_` and `.`");
            Problem::bad_value("producer.name", what)
        })
    }
}

/// The fields that describe the body of a message.
struct Said {
    content_type: Option<String>,
    user_id: Option<String>,
    headers: Headers,
}

impl Said {
    /// Builds the content from the fields, or from `list`, a property list in base64 that replaces them.
    fn or_listed(self, list: Option<String>, body: Bytes) -> Result<Content, Problem> {
        let Some(list) = list else {
            check_content(self.content_type.as_deref(), &self.headers)?;
            let content = Content::new(self.content_type.as_deref(), &self.headers, body);
            return of_user(content, self.user_id.as_deref());
        };
        let bad = |why: String| Problem::bad_value("properties_base64", why);
        if self.content_type.is_some() || self.user_id.is_some() || !self.headers.is_empty() {
            return Err(bad(
                "stands in place of `content_type`, `user_id` and `headers`: leave those out".to_owned()
            ));
        }
        let list =
            BASE64.decode(list).map_err(|why| bad(format!("no base64 of the standard alphabet: {why}")))?;
        Content::with_properties(list.into(), body)
            .map_err(|why| bad(format!("no property list of a content header of AMQP 0-9-1: {why}")))
    }
}

message! {
    /// A message.
    pub MessageIn as NewMessage {}
}

message! {
    /// A message, or many under `messages` and nothing else: all are published or none.
    pub PublishIn as Publish {
        /// 1 to 10,000 messages. Then nothing else may be there.
        #[schema(value_type = Option<Vec<MessageIn>>)]
        messages: Option<Bounded<MessageIn, MESSAGES_MAX>>,
    }
}

message! {
    /// A message for an exchange.
    pub(crate) ExchangeMessageIn as NewExchangeMessage {
        /// By which the exchange chooses queues. At most 255 bytes.
        #[serde(default)]
        routing_key: String,
        /// Up to 100 further routing keys: it goes wherever one of all leads, once to each queue.
        #[schema(value_type = Option<Vec<String>>)]
        more_keys: Option<MoreKeys>,
        /// Refuse it when no queue gets it, instead of dropping it.
        #[serde(default)]
        mandatory: bool,
    }
}

message! {
    /// A message for an exchange, or many under `messages` and nothing else: all are published or none.
    pub ExchangePublishIn as ExchangePublish {
        /// 1 to 10,000 messages. Then nothing else may be there.
        #[schema(value_type = Option<Vec<ExchangeMessageIn>>)]
        messages: Option<Bounded<ExchangeMessageIn, MESSAGES_MAX>>,
        /// By which the exchange chooses queues. At most 255 bytes.
        #[serde(default)]
        routing_key: String,
        /// Up to 100 further routing keys: it goes wherever one of all leads, once to each queue.
        #[schema(value_type = Option<Vec<String>>)]
        more_keys: Option<MoreKeys>,
        /// Refuse it when no queue gets it, instead of dropping it.
        #[serde(default)]
        mandatory: bool,
    }
}

message! {
    /// A message of a transaction: to a `queue`, or to an `exchange` with a `routing_key`.
    pub(crate) TransactionMessageIn as NewTransactionMessage {
        /// The queue it goes to.
        queue: Option<String>,
        /// The exchange it goes to.
        exchange: Option<String>,
        /// By which the exchange chooses queues. At most 255 bytes.
        routing_key: Option<String>,
        /// Up to 100 further routing keys: it goes wherever one of all leads, once to each queue.
        #[schema(value_type = Option<Vec<String>>)]
        more_keys: Option<MoreKeys>,
        /// Refuse the transaction when no queue gets the message.
        #[serde(default)]
        mandatory: bool,
    }
}

impl PublishIn {
    /// Converts the body to messages for the queue.
    ///
    /// # Errors
    /// 422 for the first value that is not valid, 413 for a message that exceeds the limits.
    pub fn into_messages(self, queue: &Arc<str>, limits: Limits) -> Result<Vec<NewMessage>, Problem> {
        self.into_messages_to(&Target::Queue(Arc::clone(queue)), limits)
    }

    /// Converts the body to messages for the target `to`.
    ///
    /// # Errors
    /// 422 for the first value that is not valid, 413 for a message that exceeds the limits.
    pub fn into_messages_to(mut self, to: &Target, limits: Limits) -> Result<Vec<NewMessage>, Problem> {
        let Some(Bounded(many)) = self.messages.take() else {
            return Ok(vec![self.into_message(to.clone(), limits)?]);
        };
        alone(self == Self::default())?;
        each(many, "messages", |message| message.into_message(to.clone(), limits))
    }
}

impl ExchangePublishIn {
    /// Converts the body to messages for the exchange.
    ///
    /// # Errors
    /// 422 for the first value that is not valid, 413 for a message that exceeds the limits.
    pub fn into_messages(mut self, exchange: &Arc<str>, limits: Limits) -> Result<Vec<NewMessage>, Problem> {
        let Some(Bounded(many)) = self.messages.take() else {
            let more = self.more_keys.take();
            let to = to_exchange(Arc::clone(exchange), &self.routing_key, more, self.mandatory)?;
            return Ok(vec![self.into_message(to, limits)?]);
        };
        alone(self == Self::default())?;
        each(many, "messages", |mut message| {
            let more = message.more_keys.take();
            let to = to_exchange(Arc::clone(exchange), &message.routing_key, more, message.mandatory)?;
            message.into_message(to, limits)
        })
    }
}

impl TransactionMessageIn {
    /// Converts the body to a message for the queue or exchange that the body names.
    ///
    /// # Errors
    /// 422 for the first value that is not valid, 413 for a message that exceeds the limits.
    pub(crate) fn into_new(mut self, limits: Limits) -> Result<NewMessage, Problem> {
        let more = self.more_keys.take();
        let is_plain = self.routing_key.is_none() && more.is_none() && !self.mandatory;
        let to = match (&self.queue, &self.exchange) {
            (Some(queue), None) if is_plain => Target::Queue(Arc::from(checked_queue(queue, "queue")?)),
            (None, Some(exchange)) => {
                let exchange = Arc::from(checked_queue(exchange, "exchange")?);
                to_exchange(exchange, self.routing_key.as_deref().unwrap_or_default(), more, self.mandatory)?
            }
            (Some(_), None) => {
                return Err(Problem::bad_value(
                    "routing_key",
                    "`routing_key`, `more_keys` and `mandatory` go with an exchange",
                ));
            }
            _ => return Err(Problem::bad_value("queue", "give one of `queue` and `exchange`")),
        };
        self.into_message(to, limits)
    }
}

/// Returns the target of a message for the exchange `name`.
///
/// # Errors
/// 422 for a routing key that is too long or has control characters.
pub fn to_exchange(
    name: Arc<str>,
    routing_key: &str,
    more: Option<MoreKeys>,
    mandatory: bool,
) -> Result<Target, Problem> {
    check_short("routing_key", routing_key)?;
    let more = more.map_or_else(Vec::new, |more| more.0);
    more.iter().try_for_each(|key| check_short("more_keys", key))?;
    let more_keys = more.into_iter().map(Arc::from).collect();
    Ok(Target::Exchange { name, routing_key: Arc::from(routing_key), more_keys, mandatory })
}

/// Converts each item. The key of a problem names the item: `messages[3].priority`.
pub(super) fn each<T, U>(
    many: Vec<T>,
    list: &str,
    mut one: impl FnMut(T) -> Result<U, Problem>,
) -> Result<Vec<U>, Problem> {
    let numbered = many.into_iter().enumerate();
    numbered.map(|(at, item)| one(item).map_err(|problem| problem.inside(&format!("{list}[{at}]")))).collect()
}

fn alone(is_alone: bool) -> Result<(), Problem> {
    is_alone.then_some(()).ok_or_else(|| {
        Problem::bad_value("messages", "a request is one message, or `messages` and nothing beside it")
    })
}

fn body(text: Option<String>, base64: Option<String>) -> Result<Bytes, Problem> {
    match (text, base64) {
        (Some(text), None) => Ok(Bytes::from(text)),
        (None, Some(text)) => BASE64.decode(text).map(Bytes::from).map_err(|why| {
            Problem::bad_value("body_base64", format!("no base64 of the standard alphabet: {why}"))
        }),
        (Some(_), Some(_)) => Err(Problem::bad_value("body_base64", "give one of `body` and `body_base64`")),
        (None, None) => Err(Problem::bad_value("body", "give `body` or `body_base64`; it may be empty")),
    }
}

/// Limits of a message.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest body, bytes.
    pub max_message_bytes: u64,
}

impl Limits {
    /// Checks a message.
    ///
    /// # Errors
    /// 413 for a body that is too large.
    pub(crate) fn check(self, message: &NewMessage) -> Result<(), Problem> {
        if message.content.body.len() as u64 > self.max_message_bytes {
            return Err(Problem::too_large(
                "message-too-large",
                "the body of the message is too large",
                self.max_message_bytes,
                "store the body elsewhere and publish a reference, or raise limits.max_message_bytes, and store.segment_bytes where a start says that it allows less",
            )
            .key("body"));
        }
        Ok(())
    }
}

/// Checks the media type and the headers of a message.
///
/// # Errors
/// 422 for a media type that is too long or has control characters; for headers as in [`check_headers`].
pub(crate) fn check_content(content_type: Option<&str>, headers: &Headers) -> Result<(), Problem> {
    if let Some(media_type) = content_type {
        check_short("content_type", media_type)?;
    }
    check_headers(headers)
}

/// Checks a text that AMQP carries as a short string.
///
/// # Errors
/// 422 with `key` for a text that is too long or has control characters.
pub(super) fn check_short(key: &str, text: &str) -> Result<(), Problem> {
    let fits = text.len() <= SHORT_TEXT_LEN_MAX && !text.chars().any(char::is_control);
    fits.then_some(()).ok_or_else(|| {
        Problem::bad_value(
            key,
            format!("must be at most {SHORT_TEXT_LEN_MAX} bytes without control characters"),
        )
    })
}

/// Returns the content with the property `user_id`, if there is a user.
///
/// # Errors
/// 422 for a user that is empty, too long, or has control characters.
pub(crate) fn of_user(content: Content, user: Option<&str>) -> Result<Content, Problem> {
    let Some(user) = user else { return Ok(content) };
    check_short("user_id", user)?;
    let is_there = !user.is_empty();
    is_there
        .then(|| content.with_user_id(user))
        .ok_or_else(|| Problem::bad_value("user_id", "must be the name of a user, or be left out"))
}

/// Checks the headers of a message, or of a filter on messages.
///
/// # Errors
/// 422 for too many headers, a name that is empty, too long or has control characters, and a text that is too long.
pub(crate) fn check_headers(headers: &Headers) -> Result<(), Problem> {
    if headers.len() > HEADERS_MAX {
        return Err(Problem::bad_value("headers", format!("there may be at most {HEADERS_MAX}")));
    }
    for (name, value) in headers {
        if overtake_lane::check_name(name).is_err() {
            return Err(Problem::bad_value(
                "headers",
                format!("a name must be 1 to {NAME_LEN_MAX} bytes without control characters"),
            ));
        }
        if matches!(value, HeaderValue::Text(text) if text.len() > HEADER_TEXT_LEN_MAX) {
            return Err(Problem::bad_value(
                format!("headers.{name}"),
                format!("a text must be at most {HEADER_TEXT_LEN_MAX} bytes"),
            ));
        }
    }
    Ok(())
}
