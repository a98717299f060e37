//! Endpoints send what waits in a queue to other systems; sources bring in what waits there.
//!
//! ```text
//!   Endpoints ── one Runner each ── Forwarder: what goes next
//!                     │  leases, settles           │ Send
//!                     ▼                            ▼
//!                  Engine                  a task for each line ── Sink::connect ──▶ Link::send(Outbox)
//! ```
//!
//! What is sent next, and what is tried again when, is decided in `overtake-forward`; here it is carried out. A `Sink` knows one
//! protocol: it connects, and its `Link` sends what its `Outbox` hands it, one message after the other, and says how each fared. The
//! outbox is where times to live end and batches stop, so no protocol can forget to look.

mod amqp;
mod connector;
mod elsewhere;
mod endpoint;
mod epochs;
mod inlet;
mod inline;
mod intake;
mod kafka;
mod metrics;
#[cfg(feature = "mqtt")]
mod mqtt;
mod outbox;
mod outgoing;
mod priority;
#[cfg(feature = "redis")]
mod redis;
mod registry;
mod runner;
#[cfg(all(test, any(feature = "mqtt", feature = "redis")))]
#[path = "../tests/connectors/servers.rs"]
mod servers;
mod settling;
mod shown;
mod sink;
mod source;
mod template;
mod texts;
mod timer;

pub use connector::{
    Connector, ConnectorView, Flaw, NotConfigured, Pending, Place, Provenance, Running, Site, Words,
};
pub use endpoint::{Endpoint, Receiver, Starts};
pub use inlet::amqp::AmqpUpstream;
pub use inlet::kafka::{KafkaStart, KafkaTopics};
#[cfg(feature = "mqtt")]
pub use inlet::mqtt::MqttSource;
#[cfg(feature = "redis")]
pub use inlet::redis::{RedisSource, StreamStart};
pub use intake::{IntakeState, IntakeView};
pub use kafka::{KafkaCluster, KafkaMechanism, KafkaSecurity};
pub use overtake_peer::{Secret, Text, Tls, Vault};
pub use priority::{PriorityFrom, PriorityTo};
pub use registry::{Registry, check_configured};
pub use settling::{Settles, Verdict};
pub use shown::shown;
pub use sink::amqp::AmqpReceiver;
pub use sink::kafka::{Kafka, KafkaAcks, KafkaCompression, KafkaKey};
#[cfg(feature = "mqtt")]
pub use sink::mqtt::MqttReceiver;
pub use sink::queue::QueueReceiver;
#[cfg(feature = "redis")]
pub use sink::redis::RedisReceiver;
pub use sink::webhook::{Webhook, WebhookFormat};
pub use source::{Destination, Source, TextFrom, Upstream};

/// All endpoints of a broker.
pub type Endpoints = Registry<Endpoint>;
/// All sources of a broker.
pub type Sources = Registry<Source>;
