//! The servers of an engine on Redis or Valkey, as it sees them.

use overtake_engine::NodeHealth;

use crate::family::Kind::Gauge;
use crate::family::{Family, Value, labels};

/// A series for each node, or for each primary.
pub(crate) fn families(nodes: &[NodeHealth]) -> Vec<Family> {
    let each = |name, unit, help, number: fn(&NodeHealth) -> u64| {
        let one = |family: Family, node: &NodeHealth| {
            family.with(labels([("node", &node.address), ("role", node.role())]), Value::Whole(number(node)))
        };
        nodes.iter().fold(Family::new(name, Gauge, unit, help), one)
    };
    let primaries = |name, unit, help, number: fn(&NodeHealth) -> u64| {
        let one = |family: Family, node: &NodeHealth| {
            family.with(labels([("node", &node.address)]), Value::Whole(number(node)))
        };
        let primaries = nodes.iter().filter(|node| node.slots > 0);
        primaries.fold(Family::new(name, Gauge, unit, help), one)
    };
    let lag = |node: &NodeHealth| node.replicas.iter().map(|replica| replica.lag_bytes).max().unwrap_or(0);
    vec![
        each("overtake.cluster.node.up", "", "Whether the server answers this broker.", |node| {
            u64::from(node.down.is_none())
        }),
        each(
            "overtake.cluster.node.memory.used",
            "By",
            "Memory in use, as the server counts it for maxmemory.",
            |node| node.memory_used,
        ),
        each("overtake.cluster.node.memory.limit", "By", "maxmemory of the server; 0: no limit.", |node| {
            node.memory_max
        }),
        primaries("overtake.cluster.node.slots", "{slot}", "Hash slots written at the primary.", |node| {
            node.slots.into()
        }),
        primaries(
            "overtake.cluster.node.full",
            "",
            "Whether publishes to the primary are refused for lack of memory.",
            |node| u64::from(node.memory.is_some_and(|memory| memory.is_low)),
        ),
        primaries(
            "overtake.cluster.node.unconfirmed",
            "",
            "Whether writes to the primary are not confirmed for lack of replicas.",
            |node| u64::from(node.short.is_some()),
        ),
        primaries(
            "overtake.cluster.node.replicas",
            "{replica}",
            "Replicas that follow the primary.",
            |node| node.replicas_online().into(),
        ),
        primaries(
            "overtake.cluster.node.replicas_expected",
            "{replica}",
            "Replicas that must acknowledge a write.",
            |node| node.replicas_expected.into(),
        ),
        primaries(
            "overtake.cluster.node.replica_lag",
            "By",
            "Writes that the replica furthest behind has not acknowledged.",
            lag,
        ),
    ]
}
