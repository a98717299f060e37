//! What the servers are like, and what an answer of theirs is worth with these settings: for whoever sees to them.

mod judgement;
mod node;
mod promise;
mod rights;

use overtake_peer::Vault;
use overtake_peer::redis::RedisServer;
use tokio::task::JoinSet;

pub use self::judgement::{Finding, Weight};
pub(super) use self::node::replicas;
pub use self::promise::{Event, Holds, Promise};
use super::library::Library;
use super::map::{Map, Place};
use super::nodes::{Durability, Kind, Nodes};

/// What the servers are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// One server or a cluster.
    pub kind: Kind,
    /// Whether every slot is somewhere.
    pub is_whole: bool,
    /// The version of the functions that this program brings.
    pub library_version: u32,
    /// Primaries and replicas, by their places.
    pub nodes: Vec<NodeFacts>,
}

/// What one of them is like; `None` where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Where it is.
    pub place: String,
    /// Why nothing is known of it.
    pub trouble: Option<String>,
    /// Such as `Valkey 8.0.1`.
    pub product: String,
    /// It takes writes.
    pub is_primary: bool,
    /// How many of its slots there are.
    pub slots: usize,
    /// A replica: whether it follows its primary.
    pub is_following: Option<bool>,
    /// A primary's, as it knows them.
    pub replicas: Vec<ReplicaFacts>,
    /// It keeps a log.
    pub appendonly: Option<bool>,
    /// When that goes to the disk: `always`, `everysec`, `no`.
    pub appendfsync: Option<String>,
    /// Bytes it may use; 0 is all there are.
    pub maxmemory: Option<u64>,
    /// What it throws away then.
    pub maxmemory_policy: Option<String>,
    /// Replicas without which it takes no writes.
    pub min_replicas_to_write: Option<u32>,
    /// How long one may be silent before it counts as gone, milliseconds.
    pub cluster_node_timeout_ms: Option<u64>,
    /// Nothing is done anywhere while somebody's slots are nowhere.
    pub cluster_require_full_coverage: Option<bool>,
    /// It says that all is well in its cluster.
    pub is_cluster_well: Option<bool>,
    /// The version of the functions it has.
    pub library_version: Option<u32>,
    /// What `ACL SETUSER` must be told of the user besides, such as `+fcall`. What the functions themselves use is not looked at.
    pub rights_missing: Vec<String>,
}

/// A replica, as its primary knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaFacts {
    /// Where it is.
    pub place: String,
    /// It gets what is written as it is written.
    pub is_online: bool,
    /// Bytes of writes it has not acknowledged.
    pub behind: u64,
    /// Since it was heard, seconds.
    pub lag_s: u64,
}

/// Asks all nodes that the settings lead to; nothing is changed there.
///
/// # Errors
/// Why there is nobody to ask, as a phrase that tells what to do.
pub async fn facts(nodes: &Nodes, vault: Vault, library: Library) -> Result<Facts, String> {
    let seeds = nodes.servers(vault)?;
    let map = super::first_map(nodes, &seeds).await?;
    Ok(of_map(&map, nodes, &seeds[0], library).await)
}

pub(super) async fn of_map(map: &Map, nodes: &Nodes, known: &RedisServer, library: Library) -> Facts {
    let mut asked = JoinSet::new();
    for place in map.nodes() {
        let slots = map.slots_of(place).map(|slots| slots.len()).sum();
        let (place, server) = (place.clone(), known.at(&place.host, place.port));
        let (patience, kind, durability) = (nodes.patience.connect(), nodes.kind, nodes.durability);
        asked.spawn(async move {
            let found = async { node::ask(&server?, kind, durability, library).await };
            let found = tokio::time::timeout(patience, found).await;
            let trouble = match found {
                Ok(Ok(facts)) => return NodeFacts { slots, ..named(&place, facts) },
                Ok(Err(why)) => why,
                Err(_) => format!("{place} does not answer within {} ms", patience.as_millis()),
            };
            NodeFacts {
                slots,
                trouble: Some(trouble),
                is_primary: slots > 0,
                ..named(&place, NodeFacts::default())
            }
        });
    }
    let mut nodes_found = asked.join_all().await;
    nodes_found.sort_by(|one, other| one.place.cmp(&other.place));
    Facts { kind: nodes.kind, is_whole: map.is_whole(), library_version: library.version, nodes: nodes_found }
}

fn named(place: &Place, facts: NodeFacts) -> NodeFacts {
    NodeFacts { place: place.to_string(), ..facts }
}

impl Facts {
    /// What an answer promises with these settings, and what is wrong with them, in plain words; the promise first.
    #[must_use]
    pub fn judge(&self, durability: Durability) -> Vec<Finding> {
        judgement::judge(self, durability)
    }

    /// What a confirmed message survives with these settings, in the order of [`Event::ALL`].
    #[must_use]
    pub fn promises(&self, durability: Durability) -> [Promise; 4] {
        promise::promises(self, durability)
    }

    fn primaries(&self) -> impl Iterator<Item = &NodeFacts> {
        self.nodes.iter().filter(|node| node.is_primary)
    }
}
