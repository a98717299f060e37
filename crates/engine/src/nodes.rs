//! The servers of an engine that keeps its messages on them, as one process sees them.

use std::sync::Arc;

use overtake_lane::Time;

use crate::watermarks::DiskHealth;

/// A server, as this process sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeHealth {
    /// `HOST:PORT`.
    pub address: Arc<str>,
    /// Takes writes; else a replica.
    pub is_primary: bool,
    /// Hash slots written there; 0 at a replica.
    pub slots: u32,
    /// Why the node does not answer this process; `None`: the node answers.
    pub down: Option<Arc<str>>,
    /// When the node was found as it is, answering or not.
    pub since: Time,
    /// Product and version, such as `Valkey 8.0.1`; empty until the node has said so.
    pub product: Arc<str>,
    /// Bytes of memory in use, as the server counts them for `maxmemory`.
    pub memory_used: u64,
    /// The server's `maxmemory`, bytes; 0: no limit.
    pub memory_max: u64,
    /// How the memory of a primary stands to the watermarks; `None` where there is no limit.
    pub memory: Option<DiskHealth>,
    /// Replicas that follow this primary, as the primary knows them.
    pub replicas: Vec<ReplicaHealth>,
    /// Replicas that must acknowledge a write before it is confirmed.
    pub replicas_expected: u32,
    /// Why writes to this primary are not confirmed, although it answers; `None`: they are.
    pub short: Option<Arc<str>>,
}

/// A replica, as its primary knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaHealth {
    /// `HOST:PORT`.
    pub address: Arc<str>,
    /// Receives each write as it is made, and was heard within the last 3 seconds.
    pub is_online: bool,
    /// Bytes of writes the replica has not acknowledged.
    pub lag_bytes: u64,
    /// Seconds since the primary heard the replica.
    pub lag_s: u64,
}

impl NodeHealth {
    /// `primary` or `replica`.
    #[must_use]
    pub fn role(&self) -> &'static str {
        if self.is_primary { "primary" } else { "replica" }
    }

    /// Replicas that follow.
    #[must_use]
    pub fn replicas_online(&self) -> u32 {
        self.replicas.iter().filter(|replica| replica.is_online).count() as u32
    }

    /// What is wrong with the node, in one sentence; `None`: nothing is.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let Self { address, slots, .. } = self;
        let role = self.role();
        if let Some(why) = &self.down {
            let lost = if *slots > 0 { "; partitions there are not served" } else { "" };
            return Some(format!("{role} {address} is down: {why}{lost}"));
        }
        self.short.as_ref().map(|why| format!("{role} {address} confirms no writes: {why}"))
    }
}

/// Brokers that share servers, the servers, and what is where; as one process knows it without asking anybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// The process that says this, by its name among the brokers.
    pub process: Arc<str>,
    /// All brokers that the servers know, this one too, the oldest first.
    pub brokers: Vec<BrokerView>,
    /// All servers, by their addresses.
    pub nodes: Vec<NodeHealth>,
    /// Where the partitions of each queue are, by virtual host and name.
    pub queues: Vec<QueuePlacement>,
}

/// A broker on servers that it shares with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerView {
    /// The name of the process: random, new with each start.
    pub process: Arc<str>,
    /// Its version; empty where the broker has not said it.
    pub version: Arc<str>,
    /// When the broker started; 0 where it has not said so.
    pub since: Time,
    /// Whether its last heartbeat was over by then: the broker may be gone.
    pub is_overdue: bool,
}

/// How many partitions of a queue each server has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePlacement {
    /// The virtual host.
    pub vhost: Arc<str>,
    /// The queue.
    pub queue: Arc<str>,
    /// By the address of the primary; those that no primary holds have an empty one.
    pub partitions: Vec<(Arc<str>, u32)>,
}

/// Why none of the servers can be used, if none can: the reason of each primary.
#[must_use]
pub fn none_serves(nodes: &[NodeHealth]) -> Option<Arc<str>> {
    let mut primaries = nodes.iter().filter(|node| node.slots > 0).peekable();
    primaries.peek()?;
    let each: Option<Vec<String>> =
        primaries.map(|node| node.down.as_ref().map(|why| format!("{}: {why}", node.address))).collect();
    each.map(|each| format!("no server answers ({})", each.join("; ")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(address: &str, slots: u32, down: Option<&str>) -> NodeHealth {
        let is_primary = slots > 0;
        NodeHealth {
            address: address.into(),
            slots,
            is_primary,
            down: down.map(Into::into),
            ..NodeHealth::default()
        }
    }

    #[test]
    fn a_broker_serves_as_long_as_one_primary_answers() {
        let (well, dead) = (node("a:1", 8_192, None), node("b:1", 8_192, Some("Connection refused")));
        assert_eq!(none_serves(&[]), None, "nothing is known yet");
        assert_eq!(none_serves(&[well.clone(), dead.clone()]), None);
        let replica = node("c:1", 0, None);
        let why = none_serves(&[dead.clone(), replica]).expect("no primary answers");
        assert_eq!(&*why, "no server answers (b:1: Connection refused)");
        assert_eq!(well.trouble(), None);
        let trouble = dead.trouble().expect("it is down");
        assert_eq!(trouble, "primary b:1 is down: Connection refused; partitions there are not served");
    }

    #[test]
    fn a_primary_without_its_replicas_says_so() {
        let short = NodeHealth { short: Some("0 of 1 replicas follow".into()), ..node("a:1", 1, None) };
        assert_eq!(
            short.trouble().as_deref(),
            Some("primary a:1 confirms no writes: 0 of 1 replicas follow")
        );
    }
}
