//! What a confirmed message survives with these settings, event by event.

use std::fmt;

use super::super::nodes::Durability;
use super::{Facts, NodeFacts};

/// Something that may happen to a message that was confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process of a broker ends at once.
    BrokerKilled,
    /// The process of a server ends at once, and comes back before anybody takes over.
    ServerKilled,
    /// A replica takes over from its primary.
    Failover,
    /// All machines lose power at once.
    PowerLost,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::BrokerKilled, Self::ServerKilled, Self::Failover, Self::PowerLost];

    /// A word for it that stays: `broker_killed`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::BrokerKilled => "broker_killed",
            Self::ServerKilled => "server_killed",
            Self::Failover => "failover",
            Self::PowerLost => "power_lost",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BrokerKilled => "the kill of a broker",
            Self::ServerKilled => "the kill of a server",
            Self::Failover => "a failover",
            Self::PowerLost => "a loss of power",
        })
    }
}

/// Whether it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    Yes,
    /// Not with these settings.
    No,
    /// The servers do not say.
    Unknown,
}

/// That a confirmed message survives an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The event.
    pub event: Event,
    /// Whether it does.
    pub holds: Holds,
    /// Why, and what to change where it does not.
    pub why: String,
}

type Said = (Holds, String);

pub(super) fn promises(facts: &Facts, durability: Durability) -> [Promise; 4] {
    let nothing = unconfirmed(facts, durability).or_else(|| evicting(facts));
    Event::ALL.map(|event| {
        let (holds, why) = nothing.clone().unwrap_or_else(|| match event {
            Event::BrokerKilled => {
                (Holds::Yes, "nothing that was confirmed is in its memory alone.".to_owned())
            }
            Event::ServerKilled => server_killed(facts),
            Event::Failover => failover(facts, durability),
            Event::PowerLost => power_lost(facts, durability),
        });
        Promise { event, holds, why }
    })
}

/// Without as many replicas as a confirm waits for there is none.
fn unconfirmed(facts: &Facts, durability: Durability) -> Option<Said> {
    if let Some(silent) = facts.primaries().find_map(|node| node.trouble.as_deref()) {
        return Some((Holds::Unknown, format!("{silent}.")));
    }
    let wanted = durability.replicas_acked;
    let short = facts.primaries().find(|node| node.replicas.len() < wanted as usize)?;
    let (place, has) = (&short.place, short.replicas.len());
    let why = format!(
        "nothing is confirmed at {place}: a confirm waits for {wanted} replicas, and it has {has}. Add replicas, or lower `replicas_acked`."
    );
    Some((Holds::No, why))
}

fn evicting(facts: &Facts) -> Option<Said> {
    let is_fine = |node: &&NodeFacts| {
        node.maxmemory == Some(0)
            || node.maxmemory_policy.as_deref().is_none_or(|policy| policy == "noeviction")
    };
    let node = facts.primaries().find(|node| !is_fine(node))?;
    let why = format!(
        "{} throws messages away when its memory is full: say `maxmemory-policy noeviction`.",
        node.place
    );
    Some((Holds::No, why))
}

/// The first node of which something else than the best is to be said decides: what is not so before what is not known.
fn worst(nodes: impl Iterator<Item = Said>) -> Option<Said> {
    let all: Vec<_> = nodes.collect();
    let first = |holds| all.iter().find(|(said, _)| *said == holds).cloned();
    first(Holds::No).or_else(|| first(Holds::Unknown))
}

fn server_killed(facts: &Facts) -> Said {
    let of = |node: &NodeFacts| match node.appendonly {
        Some(true) => None,
        Some(false) => Some((
            Holds::No,
            format!("{} keeps no log, and comes back empty: say `appendonly yes`.", node.place),
        )),
        None => Some((
            Holds::Unknown,
            format!("{} does not say whether it keeps a log (`appendonly`).", node.place),
        )),
    };
    let fine = "what was confirmed was written to the log (`appendonly yes`).";
    worst(facts.primaries().filter_map(of)).unwrap_or_else(|| (Holds::Yes, fine.to_owned()))
}

fn failover(facts: &Facts, durability: Durability) -> Said {
    let wanted = durability.replicas_acked;
    let most = facts.primaries().map(|node| node.replicas.len()).max().unwrap_or(0);
    if most == 0 {
        return (
            Holds::Yes,
            "there is no replica to take over: while a server is away, its queues wait.".to_owned(),
        );
    }
    if (wanted as usize) < most {
        let why = format!(
            "a confirm waits for {wanted} of {most} replicas, and another may take over: say `replicas_acked = {most}`, as many as can be promoted."
        );
        return (Holds::No, why);
    }
    (Holds::Yes, "a confirm waits for every replica that can take over (`WAIT`).".to_owned())
}

fn power_lost(facts: &Facts, durability: Durability) -> Said {
    let of = |node: &NodeFacts| {
        let place = &node.place;
        let log = (node.appendonly, node.appendfsync.as_deref());
        match log {
            _ if node.trouble.is_some() => {
                Some((Holds::Unknown, format!("{place} does not say what it writes when.")))
            }
            (Some(false), _) => Some((Holds::No, format!("{place} keeps no log: say `appendonly yes`."))),
            _ if durability.is_fsync_acked => None,
            (_, Some("always")) => None,
            (_, Some(when)) => Some((
                Holds::No,
                format!(
                    "the log of {place} goes to the disk {}: say `appendfsync always`, or `fsync_acked = true`.",
                    if when == "everysec" { "once a second" } else { "when the system likes" }
                ),
            )),
            (_, None) => Some((
                Holds::Unknown,
                format!("{place} does not say when its log goes to the disk (`appendfsync`)."),
            )),
        }
    };
    // A replica, too: after the power is back it may be the first.
    let fine = if durability.is_fsync_acked {
        "a confirm waits for the disk of the primary and of as many replicas (`WAITAOF`)."
    } else {
        "every log is on the disk before anything is answered (`appendfsync always`)."
    };
    worst(facts.nodes.iter().filter_map(of)).unwrap_or_else(|| (Holds::Yes, fine.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::super::nodes::Kind;
    use super::super::ReplicaFacts;
    use super::*;

    fn node(place: &str, replicas: usize) -> NodeFacts {
        let replica =
            |number| ReplicaFacts { place: format!("r{number}:1"), is_online: true, behind: 0, lag_s: 0 };
        NodeFacts {
            place: place.into(),
            is_primary: place.starts_with('p'),
            replicas: (0..replicas).map(replica).collect(),
            appendonly: Some(true),
            appendfsync: Some("always".into()),
            maxmemory: Some(0),
            maxmemory_policy: Some("noeviction".into()),
            ..NodeFacts::default()
        }
    }

    /// In the order of the events: `y` it survives, `n` it does not, `?` nobody says.
    fn check(nodes: &[NodeFacts], replicas_acked: u32, is_fsync_acked: bool, expect: &str) {
        let nodes = nodes.to_vec();
        let facts = Facts { kind: Kind::Cluster, is_whole: true, library_version: 1, nodes };
        let promises = facts.promises(Durability { replicas_acked, is_fsync_acked });
        let picture = promises.iter().map(|promise| match promise.holds {
            Holds::Yes => 'y',
            Holds::No => 'n',
            Holds::Unknown => '?',
        });
        assert_eq!(picture.collect::<String>(), expect, "{promises:#?}");
    }

    #[test]
    fn each_event_is_survived_by_what_stands_against_it() {
        let pair = [node("p:1", 1), node("r0:1", 0)];
        check(&pair, 1, false, "yyyy");
        check(&pair, 0, false, "yyny");
        check(&[node("p:1", 2)], 1, false, "yyny");
        check(&[node("p:1", 0)], 0, false, "yyyy");
        let with = |part: &dyn Fn(&mut NodeFacts)| {
            let mut changed = pair.clone();
            part(&mut changed[0]);
            changed
        };
        check(&with(&|node| node.appendfsync = Some("everysec".into())), 1, false, "yyyn");
        check(&with(&|node| node.appendfsync = Some("everysec".into())), 1, true, "yyyy");
        check(&with(&|node| node.appendonly = Some(false)), 1, true, "ynyn");
        check(&with(&|node| (node.appendonly, node.appendfsync) = (None, None)), 1, false, "y?y?");
    }

    #[test]
    fn the_log_of_a_replica_counts_when_the_power_is_back() {
        let slow = NodeFacts { appendfsync: Some("everysec".into()), ..node("r0:1", 0) };
        check(&[node("p:1", 1), slow], 1, false, "yyyn");
    }

    #[test]
    fn where_nothing_is_confirmed_or_messages_are_thrown_away_nothing_is_survived() {
        check(&[node("p:1", 1)], 2, false, "nnnn");
        let evicting =
            NodeFacts { maxmemory: Some(1), maxmemory_policy: Some("allkeys-lru".into()), ..node("p:1", 0) };
        check(std::slice::from_ref(&evicting), 0, false, "nnnn");
        check(&[NodeFacts { maxmemory: Some(0), ..evicting }], 0, false, "yyyy");
        let silent = NodeFacts { trouble: Some("p:1 does not answer".into()), ..node("p:1", 0) };
        check(&[silent, node("p:2", 0)], 0, false, "????");
    }
}
