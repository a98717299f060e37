//! What settings promise, in plain words.

use std::fmt;

use super::super::nodes::{Durability, Kind};
use super::{Facts, NodeFacts};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// As it should be.
    Fine,
    /// It works, and promises less than it could, or than one might think.
    Weak,
    /// It loses messages, or does not work.
    Wrong,
}

/// Something that settings bring about, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub weight: Weight,
    /// A sentence or two.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn finding(weight: Weight, text: impl Into<String>) -> Finding {
    Finding { weight, text: text.into() }
}

pub(super) fn judge(facts: &Facts, durability: Durability) -> Vec<Finding> {
    let mut all = vec![promise(facts, durability)];
    if !facts.is_whole {
        let text =
            "Some slots are nowhere, so queues in them cannot be used: see `CLUSTER SLOTS`, and assign them.";
        all.push(finding(Weight::Wrong, text));
    }
    for node in &facts.nodes {
        if let Some(why) = &node.trouble {
            all.push(finding(Weight::Wrong, format!("{why}.")));
            continue;
        }
        all.extend(of_memory(node));
        all.extend(of_log(node, durability));
        all.extend(of_replication(node));
        all.extend(of_functions(node, facts.library_version));
        all.extend(of_rights(node));
        if node.is_cluster_well == Some(false) {
            let text = format!("{} says that its cluster is down: see `CLUSTER INFO` there.", node.place);
            all.push(finding(Weight::Wrong, text));
        }
    }
    all.extend(of_failover(facts, durability));
    all
}

/// The weakest of what the primaries promise.
fn promise(facts: &Facts, durability: Durability) -> Finding {
    let wanted = durability.replicas_acked;
    let counts = || facts.primaries().map(|node| node.replicas.len());
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    if (wanted as usize) > least {
        return finding(
            Weight::Wrong,
            format!(
                "A confirm waits for {wanted} replicas, and a primary has {least}: nothing is confirmed there. Add replicas, or lower `replicas_acked`."
            ),
        );
    }
    let alone = alone(facts, durability);
    if most == 0 {
        let text =
            format!("A confirmed message is on one server: {}. It is lost with that server's disk.", alone.1);
        return finding(alone.0, text);
    }
    if wanted == 0 {
        return finding(
            Weight::Weak,
            format!(
                "A confirmed message is on its primary: {}. Where a replica takes over it loses what the primary confirmed and the replica had not yet, \
                 and a primary that was replaced without knowing it confirms on for a while. For a confirm that waits, say `replicas_acked = {most}`.",
                alone.1
            ),
        );
    }
    if (wanted as usize) < most {
        return finding(
            Weight::Weak,
            format!(
                "A confirmed message is on its primary and {wanted} of {most} replicas: it is lost where a replica takes over that is none of these. \
                 Say `replicas_acked = {most}`, as many as can be promoted."
            ),
        );
    }
    let logged = if durability.is_fsync_acked { ", in the log of each" } else { "" };
    finding(
        Weight::Fine,
        format!(
            "A confirmed message is on its primary and on every replica{logged}: it survives the loss of any {wanted} of these {} servers, and a replica that takes \
             over has it. If all of them stop at once: {}.",
            wanted + 1,
            alone.1
        ),
    )
}

/// What one server's word is worth, if all there is, is its log.
fn alone(facts: &Facts, durability: Durability) -> (Weight, &'static str) {
    let of = |node: &NodeFacts| match (node.appendonly, node.appendfsync.as_deref()) {
        _ if durability.is_fsync_acked => {
            (Weight::Fine, "it is in the log on the disk, and survives a crash and a loss of power")
        }
        (Some(false), _) => (
            Weight::Wrong,
            "it is only in memory, and is lost when the server ends (`appendonly yes` keeps a log)",
        ),
        (_, Some("always")) => {
            (Weight::Fine, "it is in the log on the disk, and survives a crash and a loss of power")
        }
        (_, Some("everysec")) => (
            Weight::Weak,
            "it is in the log, which goes to the disk once a second: a loss of power takes the last second or two (`appendfsync always` loses nothing)",
        ),
        (_, Some(_)) => (
            Weight::Weak,
            "it is in the log, which goes to the disk when the system likes: a loss of power takes half a minute (`appendfsync always` loses nothing)",
        ),
        (_, None) => (Weight::Weak, "whether it is in a log on the disk the server does not say"),
    };
    facts
        .primaries()
        .map(of)
        .max_by_key(|(weight, _)| *weight)
        .unwrap_or((Weight::Wrong, "there is no primary"))
}

fn of_memory(node: &NodeFacts) -> Option<Finding> {
    let policy = node.maxmemory_policy.as_deref().filter(|policy| *policy != "noeviction")?;
    let weight = if node.maxmemory.is_some_and(|bytes| bytes > 0) { Weight::Wrong } else { Weight::Weak };
    Some(finding(
        weight,
        format!(
            "{} throws keys away when its memory is full (`maxmemory-policy {policy}`), and with them messages: say `maxmemory-policy noeviction`.",
            node.place
        ),
    ))
}

fn of_log(node: &NodeFacts, durability: Durability) -> Option<Finding> {
    if node.appendonly == Some(false) {
        let text = if node.is_primary {
            "has no log: if it ends and comes back before a replica takes over, it is empty, and its replicas become so, too. Say `appendonly yes`."
        } else if durability.is_fsync_acked {
            "has no log, and `fsync_acked` waits for one: nothing is confirmed. Say `appendonly yes`."
        } else {
            "has no log: what it took over is lost when it ends. Say `appendonly yes`."
        };
        return Some(finding(Weight::Wrong, format!("{} {text}", node.place)));
    }
    let is_slow =
        durability.is_fsync_acked && node.appendfsync.as_deref().is_some_and(|when| when != "always");
    is_slow.then(|| {
        finding(
            Weight::Weak,
            format!("{} writes its log to the disk once a second, and a confirm waits for it: for quicker ones say `appendfsync always`.", node.place),
        )
    })
}

fn of_replication(node: &NodeFacts) -> Vec<Finding> {
    let mut all = Vec::new();
    if node.is_following == Some(false) {
        all.push(finding(
            Weight::Wrong,
            format!("{} has lost its primary, and follows nobody: see its log.", node.place),
        ));
    }
    let behind = node.replicas.iter().filter(|replica| !replica.is_online || replica.lag_s > 2);
    all.extend(behind.map(|replica| {
        finding(
            Weight::Weak,
            format!(
                "{} is {} bytes behind its primary {}, and was last heard {} s ago: confirms that wait for it wait that long.",
                replica.place, replica.behind, node.place, replica.lag_s
            ),
        )
    }));
    all
}

fn of_functions(node: &NodeFacts, ours: u32) -> Option<Finding> {
    match node.library_version {
        Some(theirs) if theirs > ours => Some(finding(
            Weight::Wrong,
            format!(
                "{} has version {theirs} of the functions, and this program knows {ours}: run the newer program.",
                node.place
            ),
        )),
        Some(theirs) if theirs < ours => Some(finding(
            Weight::Weak,
            format!(
                "{} has version {theirs} of the functions; the broker replaces it by {ours} when it starts.",
                node.place
            ),
        )),
        _ => None,
    }
}

fn of_rights(node: &NodeFacts) -> Option<Finding> {
    let missing = node.rights_missing.join(" ");
    let text = format!("The user lacks rights at {}: `ACL SETUSER USER {missing}` gives them.", node.place);
    (!missing.is_empty()).then(|| finding(Weight::Wrong, text))
}

fn of_failover(facts: &Facts, durability: Durability) -> Vec<Finding> {
    let mut all = Vec::new();
    if facts.kind == Kind::Redis {
        return all;
    }
    let without = facts.primaries().filter(|node| node.trouble.is_none() && node.replicas.is_empty());
    let without: Vec<_> = without.map(|node| node.place.as_str()).collect();
    if !without.is_empty() && durability.replicas_acked == 0 {
        let text = format!("{} has no replica: while it is away, its queues are.", without.join(", "));
        all.push(finding(Weight::Weak, text));
    }
    if facts.primaries().any(|node| node.cluster_require_full_coverage == Some(true)) {
        let text = "While one primary is away nothing is done on the others either: say `cluster-require-full-coverage no`.";
        all.push(finding(Weight::Weak, text));
    }
    let timeout = facts.primaries().filter_map(|node| node.cluster_node_timeout_ms).max();
    if let Some(ms) = timeout {
        let text = format!(
            "A replica takes over about {} s after its primary fell (`cluster-node-timeout {ms}`, and an election); until then its queues wait.",
            ms.div_ceil(1_000) + 2
        );
        all.push(finding(Weight::Fine, text));
    }
    let most = facts.primaries().filter_map(|node| node.min_replicas_to_write).max();
    if let Some(most) = most.filter(|most| *most > durability.replicas_acked) {
        let text = format!(
            "Nothing is written with fewer than {most} replicas (`min-replicas-to-write`): publishes wait and fail then."
        );
        all.push(finding(Weight::Fine, text));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::ReplicaFacts;
    use super::*;

    fn primary(replicas: usize) -> NodeFacts {
        let replica =
            |number| ReplicaFacts { place: format!("r{number}:1"), is_online: true, behind: 0, lag_s: 0 };
        NodeFacts {
            place: "p:1".into(),
            product: "Valkey 8.0.1".into(),
            is_primary: true,
            slots: 16_384,
            replicas: (0..replicas).map(replica).collect(),
            appendonly: Some(true),
            appendfsync: Some("always".into()),
            maxmemory: Some(0),
            maxmemory_policy: Some("noeviction".into()),
            library_version: Some(1),
            ..NodeFacts::default()
        }
    }

    fn judged(node: NodeFacts, replicas_acked: u32) -> Vec<Finding> {
        let kind = if node.replicas.is_empty() { Kind::Redis } else { Kind::Cluster };
        let facts = Facts { kind, is_whole: true, library_version: 1, nodes: vec![node] };
        facts.judge(Durability { replicas_acked, is_fsync_acked: false })
    }

    fn check(node: NodeFacts, replicas_acked: u32, weight: Weight, part: &str) {
        let found = judged(node, replicas_acked);
        let is_there = found.iter().any(|finding| finding.weight == weight && finding.text.contains(part));
        assert!(is_there, "{weight:?} {part}: {found:#?}");
    }

    #[test]
    fn the_promise_is_that_of_the_table() {
        check(primary(0), 0, Weight::Fine, "lost with that server's disk");
        check(primary(1), 0, Weight::Weak, "say `replicas_acked = 1`");
        check(primary(1), 1, Weight::Fine, "survives the loss of any 1 of these 2 servers");
        check(primary(2), 1, Weight::Weak, "as many as can be promoted");
        check(primary(2), 2, Weight::Fine, "every replica");
        check(primary(1), 2, Weight::Wrong, "nothing is confirmed there");
    }

    #[test]
    fn what_loses_messages_is_wrong() {
        let evicting = NodeFacts {
            maxmemory_policy: Some("allkeys-lru".into()),
            maxmemory: Some(1 << 30),
            ..primary(0)
        };
        check(evicting.clone(), 0, Weight::Wrong, "noeviction");
        check(NodeFacts { maxmemory: Some(0), ..evicting }, 0, Weight::Weak, "noeviction");
        check(
            NodeFacts { appendonly: Some(false), ..primary(1) },
            1,
            Weight::Wrong,
            "its replicas become so, too",
        );
        check(
            NodeFacts { appendfsync: Some("everysec".into()), ..primary(0) },
            0,
            Weight::Weak,
            "last second",
        );
        check(
            NodeFacts { library_version: Some(2), ..primary(0) },
            0,
            Weight::Wrong,
            "run the newer program",
        );
        let away = NodeFacts { trouble: Some("p:1 does not answer".into()), ..primary(0) };
        check(away, 0, Weight::Wrong, "does not answer");
    }

    #[test]
    fn with_nothing_wrong_only_fine_things_are_said() {
        let found = judged(primary(1), 1);
        assert!(found.iter().all(|finding| finding.weight == Weight::Fine), "{found:#?}");
    }
}
