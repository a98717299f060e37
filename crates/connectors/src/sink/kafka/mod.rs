//! A topic of Kafka: one record for each message, in order.
//!
//! | delivery report | means |
//! |---|---|
//! | delivered | accepted |
//! | message size too large, invalid record | refused for good: dead-lettered; where others were in the request, failed, and then it goes alone |
//! | timed out, and a broker was out of reach since the last that went well | the connection is lost |
//! | fatal, or the producer is closed | the connection is lost |
//! | anything else: timed out, unknown topic, not authorized, … | failed: tried again |
//!
//! A record says its message in headers: `id`, `priority`, `attempt`, `published`, `expires`, `content-type` and `content-encoding`, then the
//! message's own headers by their names, where none of these says more. Records arrive at least once; who wants them once goes by `id`.
//!
//! What goes next is decided here, and a record that librdkafka holds can neither be overtaken nor expire. So it holds few (32, or 256 KiB),
//! waits a millisecond for more of them and no longer, and gives a record up after ten seconds, well within the time of a batch
//! (`send.batch_ms`): then it is the endpoint that tries again. Within that time it repeats what failed by itself, and an idempotent producer
//! does so without doubling or reordering anything.

#[cfg(feature = "kafka")]
mod flight;
#[cfg(feature = "kafka")]
mod link;
#[cfg(feature = "kafka")]
mod record;
mod topic;

use std::sync::Arc;

use overtake_peer::Vault;
use serde::{Deserialize, Serialize};

use self::topic::Topic;
use super::Sink;
use crate::kafka::KafkaCluster;

/// So long librdkafka gathers records for one request, ms.
#[cfg(feature = "kafka")]
const LINGER_MS: &str = "1";
/// After so long librdkafka gives a record up, ms.
#[cfg(feature = "kafka")]
const DELIVERY_MS: &str = "10000";

/// A topic of Kafka.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kafka {
    /// Where it is.
    #[serde(flatten, deserialize_with = "crate::kafka::named_keys")]
    pub cluster: KafkaCluster,
    /// The topic, in which `{priority}`, `{lane}`, `{queue}`, `{routing_key}` and `{key}` stand for what the message says.
    pub topic: String,
    /// What the key of a record is.
    #[serde(default)]
    pub key: KafkaKey,
    /// Who must have a record before it counts as sent.
    #[serde(default)]
    pub acks: KafkaAcks,
    /// What librdkafka repeats is neither doubled nor reordered. Needs `acks = "all"`.
    #[serde(default = "yes")]
    pub idempotence: bool,
    /// How records are compressed.
    #[serde(default)]
    pub compression: KafkaCompression,
}

fn yes() -> bool {
    true
}

/// What the key of a record is, which chooses its partition: what has one key stays in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KafkaKey {
    /// That of the message; without one, none.
    #[default]
    Key,
    /// The message's id.
    Id,
    /// None: records are spread.
    None,
}

/// Who must have a record before it counts as sent, in Kafka's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KafkaAcks {
    /// All replicas that are in sync.
    #[default]
    #[serde(rename = "all")]
    All,
    /// The leader.
    #[serde(rename = "1")]
    Leader,
    /// Nobody: what is lost on the way is lost.
    #[serde(rename = "0")]
    Nobody,
}

/// How records are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is an algorithm of that name")]
pub enum KafkaCompression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Kafka {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn sink(&self, vault: Vault) -> Result<Arc<dyn Sink>, String> {
        self.cluster.check(vault)?;
        let topic = Topic::parse(&self.topic)?;
        if self.idempotence && self.acks != KafkaAcks::All {
            return Err("`acks` other than \"all\" needs `idempotence = false`".to_owned());
        }
        self.work(topic)
    }

    #[cfg(not(feature = "kafka"))]
    fn work(&self, _topic: Topic) -> Result<Arc<dyn Sink>, String> {
        Err(crate::kafka::NOT_BUILT.to_owned())
    }

    #[cfg(feature = "kafka")]
    fn work(&self, topic: Topic) -> Result<Arc<dyn Sink>, String> {
        let mut config = self.cluster.config();
        config.set("acks", self.acks.word());
        config.set("enable.idempotence", self.idempotence.to_string());
        config.set("compression.type", self.compression.word());
        config.set("linger.ms", LINGER_MS);
        config.set("message.timeout.ms", DELIVERY_MS);
        let config = self.cluster.with_properties(config)?;
        Ok(Arc::new(link::KafkaSink { cluster: self.cluster.clone(), config, topic, key: self.key }))
    }
}

#[cfg(feature = "kafka")]
impl KafkaAcks {
    fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Leader => "1",
            Self::Nobody => "0",
        }
    }
}

#[cfg(feature = "kafka")]
impl KafkaCompression {
    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink(json: &str) -> Result<(), String> {
        let kafka: Kafka = serde_json::from_str(json).map_err(|error| error.to_string())?;
        kafka.sink(Vault::ANY).map(drop)
    }

    #[test]
    fn a_key_that_there_is_not_is_refused_beside_those_of_the_cluster() {
        let said = sink(r#"{"brokers": ["a:1"], "topic": "t", "tpoic": "t"}"#);
        assert!(said.as_ref().is_err_and(|said| said.contains("tpoic")), "{said:?}");
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        let json = r#"{"brokers":["a:1"],"security_protocol":"sasl_ssl","sasl_mechanism":"SCRAM-SHA-512","username":"u","password":{"env":"P"},"properties":{"linger.ms":"5"},"topic":"t.{lane}","key":"id","acks":"1","idempotence":false,"compression":"zstd"}"#;
        let kafka: Kafka = serde_json::from_str(json).expect("it reads");
        assert_eq!(serde_json::to_string(&kafka).expect("it is written"), json);
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn what_librdkafka_cannot_do_is_known_before_it_connects() {
        let with = |more: &str| sink(&format!(r#"{{"brokers": ["a:1"], "topic": "t", {more}}}"#));
        assert_eq!(with(r#""compression": "zstd""#), Ok(()));
        assert_eq!(
            with(
                r#""security_protocol": "sasl_ssl", "sasl_mechanism": "SCRAM-SHA-512", "username": "u", "password": {"env": "P"}"#
            ),
            Ok(())
        );
        for (more, why) in [
            (r#""properties": {"linger": "5"}"#, "linger"),
            (r#""properties": {"linger.ms": "soon"}"#, "linger.ms"),
            (r#""acks": "1""#, "idempotence"),
        ] {
            let said = with(more);
            assert!(said.as_ref().is_err_and(|said| said.contains(why)), "{more}: {said:?}");
        }
    }

    #[cfg(not(feature = "kafka"))]
    #[test]
    fn a_build_without_kafka_says_how_to_build_it_with() {
        let said = sink(r#"{"brokers": ["a:1"], "topic": "t"}"#);
        assert_eq!(said, Err("this build has no Kafka: build it with --features kafka".to_owned()));
    }
}
