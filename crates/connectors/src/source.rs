//! What a source is: another system, where its messages go, and how urgent they are.

use std::sync::Arc;

use bytes::Bytes;
use overtake_access::Desk;
use overtake_engine::{Content, NewMessage, ROUTES_EXCHANGE, Target};
use overtake_lane::{Given, HeaderValue};
use overtake_properties::{Properties, PropertiesRef};
use serde::{Deserialize, Serialize};

use crate::connector::{
    Connector, Flaw, NotConfigured, Pending, Place, Running, Site, WORDS_MAX, Words, must_name_a_queue,
};
use crate::inlet::amqp::AmqpUpstream;
use crate::inlet::kafka::KafkaTopics;
#[cfg(feature = "mqtt")]
use crate::inlet::mqtt::MqttSource;
#[cfg(feature = "redis")]
use crate::inlet::redis::RedisSource;
use crate::inlet::{Incoming, Origin};
use crate::intake::{CONNECT, Intake, IntakeView};
use crate::texts::given;

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
    /// How urgent they are; by default as each says itself: over AMQP in its property, else in its header, user property or field `priority`.
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
    /// A queue of another broker over AMQP 0-9-1.
    Amqp(AmqpUpstream),
    /// Topics of Kafka.
    Kafka(KafkaTopics),
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

impl Upstream {
    /// What kind it is: the key under `from`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Amqp(_) => "amqp",
            Self::Kafka(_) => "kafka",
            #[cfg(feature = "mqtt")]
            Self::Mqtt(_) => "mqtt",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
        }
    }

    fn origin(&self, place: &Place) -> Result<Arc<dyn Origin>, String> {
        Ok(match self {
            Self::Amqp(upstream) => Arc::new(upstream.origin(place)?),
            Self::Kafka(topics) => topics.origin(place.vault, &place.known_as())?,
            #[cfg(feature = "mqtt")]
            Self::Mqtt(source) => Arc::new(source.origin(place.vault, &*place.clock)?),
            #[cfg(feature = "redis")]
            Self::Redis(source) => Arc::new(source.origin(place.vault, &place.known_as(), &place.clock)?),
        })
    }
}

impl Source {
    /// What it takes from, as far as that can be known without a connection.
    ///
    /// # Errors
    /// The first flaw.
    fn origin(&self, place: &Place) -> Result<Arc<dyn Origin>, Flaw> {
        if !(1..=BATCH_MAX).contains(&self.batch) {
            return Err(Flaw::of("", format_args!("`batch` must be 1 to {BATCH_MAX}")));
        }
        if let Destination::Queue(name) = &self.to {
            must_name_a_queue("to.queue", name)?;
        }
        self.refused_to.iter().try_for_each(|name| must_name_a_queue("refused_to", name))?;
        self.from.origin(place).map_err(|why| Flaw::of(format!("from.{}", self.from.kind()), why))
    }

    /// The queue or exchange that messages go to.
    pub(crate) fn destination(&self) -> &str {
        match &self.to {
            Destination::Queue(name) | Destination::Exchange { name, .. } => name,
            Destination::Routes(_) => ROUTES_EXCHANGE,
        }
    }

    /// What came in, as it is published here.
    pub(crate) fn message(&self, incoming: Incoming) -> NewMessage {
        let Incoming { id, key, path, priority, properties, ttl_ms, body } = incoming;
        let priority = self.priority_of(priority, properties.view(), &body);
        let to = self.target(&path);
        let content = Content { properties, body, ..Content::default() };
        let id = (!id.is_empty()).then_some(id);
        NewMessage { to, priority, id, key, ttl_ms, content, ..NewMessage::default() }
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

    fn priority_of(&self, own: Given, properties: PropertiesRef<'_>, body: &Bytes) -> Given {
        let said = match &self.priority {
            None => Some(own),
            Some(PriorityFrom::Value(given)) => Some(given.clone()),
            Some(PriorityFrom::Header(name)) => {
                let value = properties.headers().and_then(|table| table.get(name));
                value.and_then(|value| match overtake_engine::header_of(value) {
                    HeaderValue::Int(number) => Some(Given::Number(number)),
                    HeaderValue::Text(text) => Some(given(&text)),
                    _ => None,
                })
            }
            Some(PriorityFrom::Body(pointer)) => {
                let json = serde_json::from_slice::<serde_json::Value>(body).ok();
                json.as_ref()
                    .and_then(|json| json.pointer(pointer))
                    .and_then(|value| value.as_i64().map(Given::Number).or_else(|| value.as_str().map(given)))
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

impl Connector for Source {
    type View = IntakeView;
    const WORDS: Words = Words {
        noun: "source",
        room: "sources",
        deeds: ["source.put", "source.delete", "source.pause", "source.resume"],
    };

    fn check(&self, place: &Place) -> Result<(), Flaw> {
        self.origin(place).map(drop)
    }

    fn start(self: Arc<Self>, site: Site) -> Pending<'static, Result<Running<IntakeView>, NotConfigured>> {
        Box::pin(async move {
            let origin = self.origin(&site.place)?;
            let (control, controlled) = tokio::sync::mpsc::channel(WORDS_MAX);
            let task = tokio::spawn(Intake::new(site, self, origin).run(controlled));
            Ok(Running { control, task })
        })
    }

    fn try_out(self: Arc<Self>, site: Site) -> Pending<'static, Result<Result<(), String>, NotConfigured>> {
        Box::pin(async move {
            let origin = self.origin(&site.place)?;
            let there = match &self.to {
                Destination::Queue(name) => site.engine.check_queue(name).await.map(drop),
                Destination::Exchange { name, .. } => site.engine.exchange(name).await.map(drop),
                Destination::Routes(_) => Ok(()),
            };
            if let Err(failure) = there {
                return Ok(Err(format!("{}: {failure}", self.destination())));
            }
            Ok(match tokio::time::timeout(CONNECT, origin.connect()).await {
                Ok(connected) => connected.map(drop).map_err(|error| error.to_string()),
                Err(_) => Err(format!("no connection within {CONNECT:?}")),
            })
        })
    }

    fn is_seen_by(&self, by: &Desk, _name: &str) -> bool {
        by.who().sees(by.vhost(), self.destination())
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::Headers;
    use serde_json::json;

    use super::*;

    /// What a source says of a message with the property 3 and the header `urgency`, which says itself that it is `high`.
    fn priority(said: serde_json::Value) -> Given {
        let mut source = json!({"from": {"amqp": {"url": "amqp://h", "queue": "q"}}, "to": {"queue": "in"}});
        if !said.is_null() {
            source["priority"] = said;
        }
        let source: Source = serde_json::from_value(source).expect("a source");
        let headers: Headers = [("urgency".to_owned(), HeaderValue::Text("low".to_owned()))].into();
        let body = Bytes::from(r#"{"level": "-7"}"#);
        let content = Content::new(None, &headers, body.clone());
        let properties = content.properties.view().with_priority(Some(3));
        let own = Given::Name("high".to_owned());
        source.message(Incoming { priority: own, properties, body, ..Incoming::default() }).priority
    }

    #[test]
    fn a_message_is_as_urgent_as_it_says_itself_unless_the_source_says_otherwise() {
        let name = |name: &str| Given::Name(name.to_owned());
        assert_eq!(priority(serde_json::Value::Null), name("high"));
        assert_eq!(priority(json!({"header": "urgency"})), name("low"));
        assert_eq!(priority(json!({"header": "none"})), Given::Missing);
        assert_eq!(priority(json!({"body": "/level"})), Given::Number(-7));
        assert_eq!(priority(json!({"value": "mid"})), name("mid"));
    }
}
