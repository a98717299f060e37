//! Topics of Kafka, read as a member of a consumer group.
//!
//! Offsets are committed when what stood before them is durable here, and only then: nothing is lost, and what was received and not
//! settled comes again, here or at another member, with the same id. A partition that is taken away between receiving and settling
//! takes its messages along: they come again at whoever has it then. librdkafka gives signs of life by itself; a member that takes
//! nothing for `max.poll.interval.ms` all the same, since there is no room here, leaves its partitions to others, who may have some.
//!
//! | record | here |
//! |---|---|
//! | header `id`, else topic, partition and offset | the id |
//! | key | the key; what is not UTF-8 in it is replaced |
//! | topic | the path |
//! | header `content-type`, `content-encoding` | the properties of these names |
//! | header `priority` | the priority, a number or a name; stays a header, and where it is 0 to 255, the property, too |
//! | header `priority-scheme` | the scheme that the priority is of |
//! | other headers | headers: text where they are UTF-8, else bytes; of one name the first |
//! | no payload (a tombstone) | an empty body |

#[cfg(feature = "kafka")]
mod incoming;
#[cfg(feature = "kafka")]
mod member;
#[cfg(all(test, feature = "kafka"))]
mod tests;

use std::sync::Arc;

use overtake_peer::Vault;
use serde::{Deserialize, Serialize};

use super::Origin;
use crate::kafka::KafkaCluster;

/// Most that librdkafka fetches ahead, KiB; left alone it would be 64 MiB.
#[cfg(feature = "kafka")]
const AHEAD_KBYTES: &str = "8192";

/// librdkafka looks so often whether a topic that was missing is there, ms; left alone it would be 5 min.
#[cfg(feature = "kafka")]
const LOOK_MS: &str = "10000";

/// Topics of Kafka.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaTopics {
    /// Where they are.
    #[serde(flatten, deserialize_with = "crate::kafka::named_keys")]
    pub cluster: KafkaCluster,
    /// The topics.
    pub topics: Vec<String>,
    /// The consumer group, whose members share the partitions; by default one of the source's own (`overtake-NAME`),
    /// so that each of several sources has all messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Where a group begins that has read nothing yet.
    #[serde(default)]
    pub start: KafkaStart,
}

/// Where a group begins that has read nothing yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KafkaStart {
    /// At the oldest message that is there.
    #[default]
    Earliest,
    /// With what comes from now on.
    Latest,
}

impl KafkaTopics {
    /// `known_as` is the group where none is named.
    ///
    /// # Errors
    /// What is wrong with them, as a phrase.
    pub(crate) fn origin(&self, vault: Vault, known_as: &str) -> Result<Arc<dyn Origin>, String> {
        self.cluster.check(vault)?;
        if self.topics.is_empty()
            || self.topics.iter().any(|topic| topic.is_empty() || topic.starts_with('^'))
        {
            return Err("`topics` must name one topic at least; patterns are not read".to_owned());
        }
        let group = self.group.as_deref().unwrap_or(known_as);
        if group.is_empty() {
            return Err("`group` must be a name".to_owned());
        }
        self.work(group)
    }

    #[cfg(not(feature = "kafka"))]
    fn work(&self, _group: &str) -> Result<Arc<dyn Origin>, String> {
        Err(crate::kafka::NOT_BUILT.to_owned())
    }

    #[cfg(feature = "kafka")]
    fn work(&self, group: &str) -> Result<Arc<dyn Origin>, String> {
        let mut config = self.cluster.config();
        config.set("group.id", group);
        config.set("enable.auto.commit", "false");
        config.set("enable.auto.offset.store", "false");
        config.set("queued.max.messages.kbytes", AHEAD_KBYTES);
        config.set("topic.metadata.refresh.interval.ms", LOOK_MS);
        let start = match self.start {
            KafkaStart::Earliest => "earliest",
            KafkaStart::Latest => "latest",
        };
        config.set("auto.offset.reset", start);
        let config = self.cluster.with_properties(config)?;
        let topics = self.topics.clone();
        Ok(Arc::new(member::KafkaOrigin { cluster: self.cluster.clone(), config, topics }))
    }
}

#[cfg(test)]
mod definitions {
    use super::*;

    fn origin(json: &str) -> Result<(), String> {
        let topics: KafkaTopics = serde_json::from_str(json).map_err(|error| error.to_string())?;
        topics.origin(Vault::OF_API, "overtake-s").map(drop)
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (json, why) in [
            (r#"{"brokers": ["a:1"], "topics": []}"#, "`topics`"),
            (r#"{"brokers": ["a:1"], "topics": ["^a.*"]}"#, "patterns"),
            (r#"{"brokers": ["a:1"], "topics": ["a"], "group": ""}"#, "`group`"),
            (r#"{"brokers": ["a:1"], "topics": ["a"], "from": "b"}"#, "from"),
            (r#"{"brokers": ["a:1"], "topics": ["a"], "properties": {"group.id": "b"}}"#, "`group`"),
        ] {
            let said = origin(json);
            assert!(said.as_ref().is_err_and(|said| said.contains(why)), "{json}: {said:?}");
        }
    }

    #[test]
    fn what_can_be_is_taken_by_a_build_with_kafka_and_only_by_one() {
        let said = origin(r#"{"brokers": ["a:1"], "topics": ["a"], "start": "latest"}"#);
        #[cfg(feature = "kafka")]
        assert_eq!(said, Ok(()));
        #[cfg(not(feature = "kafka"))]
        assert_eq!(said, Err(crate::kafka::NOT_BUILT.to_owned()));
    }
}
