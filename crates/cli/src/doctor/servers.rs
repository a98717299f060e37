//! Servers of Redis or Valkey, as they say what they are like.

use overtake_streams::Vault;
use overtake_valkey::cluster::{Facts, Kind, NodeFacts, Nodes, ReplicaFacts, facts};
use overtake_valkey::functions::LIBRARY;
use serde_json::{Value, json};

use super::Report;
use crate::table::{Side, Table, number};

/// Asks all servers that the settings lead to. Nothing is changed there.
///
/// # Errors
/// Why there is nobody to ask.
pub(crate) async fn look(nodes: &Nodes) -> Result<Report, String> {
    let facts = facts(nodes, Vault::ANY, LIBRARY).await?;
    let engine = match nodes.kind {
        Kind::Redis => "redis",
        Kind::Cluster => "cluster",
    };
    // The first finding is what the promises say one by one.
    let findings = facts.judge(nodes.durability).into_iter().skip(1).collect();
    let promises = facts.promises(nodes.durability).into();
    Ok(Report { engine, there: as_json(&facts, nodes), picture: as_text(&facts, nodes), promises, findings })
}

fn as_json(facts: &Facts, nodes: &Nodes) -> Value {
    json!({
        "replicas_acked": nodes.durability.replicas_acked,
        "fsync_acked": nodes.durability.is_fsync_acked,
        "slots_covered": facts.is_whole,
        "library_version": facts.library_version,
        "nodes": facts.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

fn node(node: &NodeFacts) -> Value {
    let replica = |replica: &ReplicaFacts| json!({ "node": replica.place, "online": replica.is_online, "behind_bytes": replica.behind, "lag_s": replica.lag_s });
    json!({
        "node": node.place,
        "trouble": node.trouble,
        "version": node.product,
        "role": role(node),
        "slots": node.slots,
        "following": node.is_following,
        "replicas": node.replicas.iter().map(replica).collect::<Vec<_>>(),
        "appendonly": node.appendonly,
        "appendfsync": node.appendfsync,
        "maxmemory": node.maxmemory,
        "maxmemory_policy": node.maxmemory_policy,
        "min_replicas_to_write": node.min_replicas_to_write,
        "cluster_well": node.is_cluster_well,
        "cluster_node_timeout_ms": node.cluster_node_timeout_ms,
        "cluster_require_full_coverage": node.cluster_require_full_coverage,
        "library_version": node.library_version,
        "rights_missing": node.rights_missing,
    })
}

fn role(node: &NodeFacts) -> &'static str {
    if node.is_primary { "primary" } else { "replica" }
}

fn as_text(facts: &Facts, nodes: &Nodes) -> String {
    let mut table = Table::new(&[
        ("NODE", Side::Left),
        ("VERSION", Side::Left),
        ("ROLE", Side::Left),
        ("SLOTS", Side::Right),
        ("REPLICAS", Side::Right),
        ("LOG", Side::Left),
        ("WHEN MEMORY IS FULL", Side::Left),
        ("CLUSTER", Side::Left),
        ("FUNCTIONS", Side::Left),
        ("RIGHTS MISSING", Side::Left),
    ]);
    for node in &facts.nodes {
        table.row(row(node));
    }
    let acked = nodes.durability;
    let disk = if acked.is_fsync_acked { ", in their logs on the disk" } else { "" };
    let slots = if facts.is_whole { "every slot is somewhere" } else { "some slots are nowhere" };
    format!(
        "{}\n{slots}; functions of version {}; a confirm waits for {} replicas{disk}\n",
        table.text(),
        facts.library_version,
        acked.replicas_acked
    )
}

fn row(node: &NodeFacts) -> Vec<String> {
    let unknown = || "?".to_owned();
    if node.trouble.is_some() {
        let mut row = vec![node.place.clone(), unknown(), role(node).to_owned(), number(node.slots as u64)];
        row.extend(std::iter::repeat_with(unknown).take(6));
        return row;
    }
    let log = match node.appendonly {
        Some(true) => node.appendfsync.clone().unwrap_or_else(|| "yes".to_owned()),
        Some(false) => "none".to_owned(),
        None => unknown(),
    };
    let well = node.is_cluster_well.map_or("-", |is_well| if is_well { "ok" } else { "down" });
    let missing = if node.rights_missing.is_empty() { "-".to_owned() } else { node.rights_missing.join(" ") };
    vec![
        node.place.clone(),
        node.product.clone(),
        role(node).to_owned(),
        number(node.slots as u64),
        if node.is_primary { number(node.replicas.len() as u64) } else { "-".to_owned() },
        log,
        node.maxmemory_policy.clone().unwrap_or_else(unknown),
        well.to_owned(),
        node.library_version.map_or_else(|| "none".to_owned(), |version| version.to_string()),
        missing,
    ]
}
