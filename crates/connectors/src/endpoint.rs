//! What an endpoint is: a queue, a receiver, and how to send.

use std::fmt;
use std::sync::Arc;

use overtake_engine::Connection;
use overtake_forward::Terms;
use overtake_lane::Given;
use serde::{Deserialize, Serialize};

use crate::secret::Vault;
use crate::sink::Sink;
#[cfg(feature = "mqtt")]
use crate::sink::mqtt::MqttReceiver;
use crate::sink::queue::{QueueReceiver, QueueSink};
#[cfg(feature = "redis")]
use crate::sink::redis::RedisReceiver;
use crate::sink::webhook::{SharedSink, Webhook};

/// A queue whose messages are sent to another system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The queue; by default the one of its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The receiver.
    pub to: Receiver,
    /// How to send.
    #[serde(default)]
    pub send: Terms,
    /// The least urgent priority, in the words of the queue's scheme, that may use the reserve of a day (`send.reserve_bytes`).
    #[serde(default, skip_serializing_if = "is_missing")]
    pub reserve_from: Given,
}

fn is_missing(given: &Given) -> bool {
    *given == Given::Missing
}

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receiver {
    /// Topics of an MQTT 5 server.
    #[cfg(feature = "mqtt")]
    Mqtt(MqttReceiver),
    /// A queue or an exchange of this broker.
    Queue(QueueReceiver),
    /// A stream of Redis or Valkey.
    #[cfg(feature = "redis")]
    Redis(RedisReceiver),
    /// An HTTP webhook.
    Webhook(Webhook),
}

/// Why an endpoint cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadEndpoint(pub String);

impl fmt::Display for BadEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadEndpoint {}

impl Receiver {
    /// What kind it is: the key under `to`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            #[cfg(feature = "mqtt")]
            Self::Mqtt(_) => "mqtt",
            Self::Queue(_) => "queue",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
            Self::Webhook(_) => "webhook",
        }
    }
}

impl Endpoint {
    /// The queue of the endpoint of this name.
    #[must_use]
    pub fn queue_of(&self, name: &str) -> Arc<str> {
        self.queue.as_deref().unwrap_or(name).into()
    }

    /// Whether it can be: everything but what only a connection shows.
    ///
    /// # Errors
    /// [`BadEndpoint`].
    pub(crate) fn sink(
        &self,
        vault: Vault,
        vhost: &str,
        name: &str,
        engine: &Connection,
    ) -> Result<Arc<dyn Sink>, BadEndpoint> {
        self.send.check().map_err(|bad| BadEndpoint(format!("send: {bad}")))?;
        let queue = self.queue_of(name);
        let within = |why: String| BadEndpoint(format!("to.{}: {why}", self.to.kind()));
        Ok(match &self.to {
            Receiver::Queue(receiver) if receiver.exchange.is_none() && *receiver.name == *queue => {
                return Err(within(format!("{queue} would be sent to itself")));
            }
            Receiver::Queue(receiver) if receiver.name.is_empty() && receiver.exchange.is_none() => {
                return Err(within("`name` must be a queue, or `exchange` an exchange".to_owned()));
            }
            Receiver::Queue(receiver) => {
                Arc::new(QueueSink { engine: engine.clone(), receiver: receiver.clone() })
            }
            #[cfg(feature = "mqtt")]
            Receiver::Mqtt(receiver) => Arc::new(receiver.sink(vault, self.send.fan_out).map_err(within)?),
            #[cfg(feature = "redis")]
            Receiver::Redis(receiver) => Arc::new(receiver.sink(vault).map_err(within)?),
            Receiver::Webhook(webhook) => {
                Arc::new(SharedSink(webhook.sink(vault, vhost, &queue).map_err(within)?))
            }
        })
    }
}
