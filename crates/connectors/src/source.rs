//! What a source is: another system, where its messages go, and how urgent they are.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use overtake_engine::{Content, NewMessage, ROUTES_EXCHANGE, Target};
use overtake_lane::{Given, HeaderValue};
use overtake_properties::{Properties, PropertiesRef};
use serde::{Deserialize, Serialize};

#[cfg(feature = "mqtt")]
use crate::inlet::mqtt::MqttSource;
#[cfg(feature = "redis")]
use crate::inlet::redis::RedisSource;
use crate::inlet::{Incoming, Origin};
use crate::secret::Vault;

/// Most messages that are taken in at once, where nothing is said.
const BATCH: u32 = 500;
/// Most there may be.
const BATCH_MAX: u32 = 10_000;

/// Another system whose messages are taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Where they come from.
    pub from: Upstream,
    /// Where they go.
    pub to: Destination,
    /// How urgent they are; by default as their property `priority` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityFrom>,
    /// Into this queue goes what can never be taken, with the reason in the header `x-refused`. Without it, it is left to the other system where
    /// that has a place for it (AMQP: dead-lettered), else it is dropped and counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_to: Option<String>,
    /// Most messages that are taken in at once, 1 to 10,000.
    #[serde(default = "batch")]
    pub batch: u32,
}

fn batch() -> u32 {
    BATCH
}

/// Where messages come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upstream {
    /// Topics of an MQTT 5 server.
    #[cfg(feature = "mqtt")]
    Mqtt(MqttSource),
    /// Streams of Redis or Valkey.
    #[cfg(feature = "redis")]
    Redis(RedisSource),
}

/// Where messages go, in the virtual host of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Destination {
    /// A queue.
    Queue(String),
    /// An exchange, by this routing key, or by where each message came from.
    Exchange {
        /// Its name.
        name: String,
        /// The routing key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        routing_key: Option<String>,
    },
    /// The routes, which also say how urgent each copy is: the path they see.
    Routes(String),
}

/// What says how urgent a message is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityFrom {
    /// A header: a number, or a name, in the words of the queue's scheme.
    Header(String),
    /// A value in a JSON body, by its JSON pointer (RFC 6901), as `/priority`.
    Body(String),
    /// It is the same for all.
    Value(Given),
}

/// Why a source cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSource(pub String);

impl fmt::Display for BadSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadSource {}

impl Upstream {
    /// What kind it is: the key under `from`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match *self {
            #[cfg(feature = "mqtt")]
            Self::Mqtt(_) => "mqtt",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
        }
    }
}

impl Source {
    /// Whether it can be: everything but what only a connection shows.
    ///
    /// # Errors
    /// [`BadSource`].
    pub(crate) fn origin(&self, vault: Vault, name: &str) -> Result<Arc<dyn Origin>, BadSource> {
        if !(1..=BATCH_MAX).contains(&self.batch) {
            return Err(BadSource(format!("`batch` must be 1 to {BATCH_MAX}")));
        }
        let within = |why: String| BadSource(format!("from.{}: {why}", self.from.kind()));
        Ok(match self.from {
            #[cfg(feature = "mqtt")]
            Upstream::Mqtt(ref source) => Arc::new(source.origin(vault).map_err(within)?),
            #[cfg(feature = "redis")]
            Upstream::Redis(ref source) => Arc::new(source.origin(vault, name).map_err(within)?),
        })
    }

    /// What came in, as it is published here.
    pub(crate) fn message(&self, incoming: Incoming) -> NewMessage {
        let Incoming { id, key, path, properties, ttl_ms, body } = incoming;
        let priority = self.priority_of(properties.view(), &body);
        let to = self.target(&path);
        let content = Content { properties, body, ..Content::default() };
        NewMessage { to, priority, id: Some(id), key, ttl_ms, delay_ms: 0, content }
    }

    fn target(&self, path: &str) -> Target {
        let exchange = |name: &str, routing_key: &str| Target::Exchange {
            name: name.into(),
            routing_key: routing_key.into(),
            more_keys: Vec::new(),
            mandatory: true,
        };
        match &self.to {
            Destination::Queue(name) => Target::Queue(name.as_str().into()),
            Destination::Exchange { name, routing_key } => {
                exchange(name, routing_key.as_deref().unwrap_or(path))
            }
            Destination::Routes(path) => exchange(ROUTES_EXCHANGE, path),
        }
    }

    fn priority_of(&self, properties: PropertiesRef<'_>, body: &Bytes) -> Given {
        let said = match &self.priority {
            None => properties.priority().map(|priority| Given::Number(priority.into())),
            Some(PriorityFrom::Value(given)) => Some(given.clone()),
            Some(PriorityFrom::Header(name)) => {
                let value = properties.headers().and_then(|table| table.get(name));
                value.and_then(|value| match overtake_engine::header_of(value) {
                    HeaderValue::Int(number) => Some(Given::Number(number)),
                    HeaderValue::Text(text) => Some(named(&text)),
                    _ => None,
                })
            }
            Some(PriorityFrom::Body(pointer)) => {
                let json = serde_json::from_slice::<serde_json::Value>(body).ok();
                json.as_ref()
                    .and_then(|json| json.pointer(pointer))
                    .and_then(|value| value.as_i64().map(Given::Number).or_else(|| value.as_str().map(named)))
            }
        };
        said.unwrap_or_default()
    }

    /// What could not be taken, for the queue that is named for it.
    pub(crate) fn set_aside(queue: &str, refused: &NewMessage, why: &str) -> NewMessage {
        let mut headers = refused.content.headers();
        headers.insert("x-refused".to_owned(), HeaderValue::Text(why.to_owned()));
        let described = Content::new(refused.content.content_type(), &headers, refused.content.body.clone());
        let properties: Properties = described.properties;
        NewMessage {
            to: Target::Queue(queue.into()),
            id: refused.id.clone(),
            content: Content { properties, body: refused.content.body.clone(), ..Content::default() },
            ..NewMessage::default()
        }
    }
}

fn named(text: &str) -> Given {
    text.parse().map_or_else(|_| Given::Name(text.to_owned()), Given::Number)
}
