//! Calls of server-side functions, done where their slots are.
//!
//! ```text
//!  Cluster::calls ─▶ ways: by slot ─▶ lanes: by node ─▶ one write, one WAIT ─▶ answers
//!                      ▲                                        │ MOVED, ASK, LOADING, lost
//!                      └──────────── detour of a slot ◀─────────┘
//!  look: who holds what ─▶ map                pushes: sharded channels, told as they come
//! ```
//!
//! - Calls to one node that are asked for meanwhile go out together; each has its own answer.
//! - Calls of one slot are done in the order in which they were asked for: those that wait for replicas or logs ([`Call::is_promise`]), and the others, which do not wait for them.
//! - An answer to a write says what [`Durability`] says; where that is not known within the caller's time, the answer is [`CallError::InDoubt`].
//! - Nothing is lost and nothing done twice while slots move and primaries fall, if what is asked for twice is done once.
//!
//! What functions answer as errors is the caller's, but for the words by which servers say that they cannot now: `MOVED`, `ASK`, `TRYAGAIN`, `CLUSTERDOWN`, `LOADING`, `READONLY`,
//! `MASTERDOWN`, `NOREPLICAS` and `BUSY` are followed or tried again until the deadline.
//!
//! # Rights
//! A user needs these, the commands that the functions themselves use, and their keys and channels; `set` and the keys `LIBRARY_mark:*` only where a write waits for replicas
//! or logs, `waitaof` (which Redis 7.0 does not know) only for logs, `config|get` only for [`Facts`] to say more, and `scan` only for queues whose definition was lost:
//!
//! ```text
//! ACL SETUSER broker on >PASSWORD ~{* ~LIBRARY_mark:* &{* +ping +info +cluster|slots +cluster|info +function|list +function|load
//!     +fcall +fcall_ro +asking +ssubscribe +sunsubscribe +wait +waitaof +set +config|get +scan
//! ```
//!
//! The map is kept here, and not by a client library's cluster connection, because the calls of a batch and the `WAIT` behind them must go over one connection to one node.

mod asked;
mod batch;
mod call;
mod counts;
mod facts;
mod lane;
mod library;
mod look;
mod map;
mod nodes;
mod probes;
mod pushes;
mod roads;
mod scan;
mod slot;
mod standing;
mod trip;
mod verdict;
mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use overtake_engine::{Full, NodeHealth};
use overtake_peer::Vault;
pub use overtake_peer::redis::Fault;
use redis::Value;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, timeout_at};

use self::asked::Asked;
pub use self::call::{Call, CallError};
pub use self::counts::{BUCKETS, Counts, RoundTrips};
pub use self::facts::{Event, Facts, Finding, Holds, NodeFacts, Promise, ReplicaFacts, Weight, facts};
pub use self::library::Library;
pub use self::map::{Map, Place, Shard};
pub use self::nodes::{Durability, Kind, Nodes, Patience};
pub use self::pushes::{Heard, Subscription};
use self::pushes::{Hub, Want};
use self::roads::Roads;
pub use self::slot::{SLOTS, Slot};
use self::ways::Track;

/// Most calls under way or waiting; whoever asks for more waits with them.
const CALLS_MAX: u32 = 16_384;
/// Most channels that are asked for and not looked at.
const WANTS_MAX: usize = 64;

/// One server, or a cluster of them. Dropping it closes its connections.
pub struct Cluster {
    roads: Arc<Roads>,
    room: Semaphore,
    /// Where channels are asked for; there is nobody before the first.
    wants: OnceLock<mpsc::Sender<Want>>,
}

/// Slots that are not served, as they become so.
pub struct Unserved {
    maps: watch::Receiver<Arc<Map>>,
    down: watch::Receiver<BTreeSet<Place>>,
}

impl Unserved {
    /// Whether this slot is one.
    pub fn has(&self, slot: Slot) -> bool {
        let (map, down) = (self.maps.borrow(), self.down.borrow());
        map.primary(slot).is_none_or(|place| down.contains(place))
    }

    /// Ends when others may be. False: the cluster is closed.
    pub async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.maps.changed() => changed.is_ok(),
            changed = self.down.changed() => changed.is_ok(),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.roads.close();
    }
}

impl Cluster {
    /// Learns who holds what from the first node that says it, and sees to it that every primary that answers has the functions.
    ///
    /// # Errors
    /// Why nothing can be asked for there, as a phrase that tells what to do.
    pub async fn connect(nodes: Nodes, vault: Vault, library: Library) -> Result<Arc<Self>, String> {
        let seeds = nodes.servers(vault)?;
        let map = first_map(&nodes, &seeds).await?;
        let roads = Roads::new(nodes, library, seeds, map);
        for place in roads.map().primaries() {
            has_functions(&roads, place).await?;
        }
        roads.spawn(look::keep_looking(Arc::clone(&roads)));
        roads.spawn(probes::probe_all(Arc::clone(&roads)));
        let room = Semaphore::new(CALLS_MAX as usize);
        Ok(Arc::new(Self { roads, room, wants: OnceLock::new() }))
    }

    /// One call.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn call(&self, deadline: Instant, call: Call) -> Result<Value, CallError> {
        let answers = self.calls(deadline, vec![call]).await;
        answers.into_iter().next().expect("each call has an answer")
    }

    /// Many calls, each with its answer, in their order. What is not written when the deadline comes, or when nobody waits any more, is not written at all.
    pub async fn calls(&self, deadline: Instant, calls: Vec<Call>) -> Vec<Result<Value, CallError>> {
        let count = u32::try_from(calls.len()).unwrap_or(u32::MAX).min(CALLS_MAX);
        let Ok(Ok(_room)) = timeout_at(deadline, self.room.acquire_many(count)).await else {
            let why = "too many calls are under way, and the time is up";
            return calls.iter().map(|_| Err(CallError::NotDone(why.to_owned()))).collect();
        };
        let mut by_track = BTreeMap::<Track, Vec<_>>::new();
        let asked = Asked::new(calls);
        for errand in asked.errands() {
            by_track.entry(self.roads.track(&errand)).or_default().push(errand);
        }
        for (track, errands) in by_track {
            self.roads.send(track, errands);
        }
        asked.answers(deadline).await
    }

    /// A sharded channel (`SPUBLISH`), heard from its first [`Heard::Gap`] on, wherever its slot goes.
    pub async fn subscribe(&self, channel: Bytes) -> Subscription {
        let wants = self.wants.get_or_init(|| {
            let (sender, wants) = mpsc::channel(WANTS_MAX);
            self.roads.spawn(Hub::run(Arc::clone(&self.roads), wants));
            sender
        });
        let (listener, subscription) = pushes::pair();
        // With nobody there the cluster is closed, and so is the subscription.
        let _ = wants.send(Want { channel, listener }).await;
        subscription
    }

    /// Slots whose primary does not answer, or that have none, now and whenever that may be different.
    pub fn unserved(&self) -> Unserved {
        Unserved { maps: self.roads.maps.subscribe(), down: self.roads.standing.down() }
    }

    /// Who holds what, as far as is known.
    #[must_use]
    pub fn map(&self) -> Arc<Map> {
        self.roads.map()
    }

    /// What the servers are like, as they say it now.
    pub async fn facts(&self) -> Facts {
        let Roads { nodes, library, seeds, .. } = &*self.roads;
        let map = look::newest(&self.roads).await.unwrap_or_else(|| (*self.map()).clone());
        facts::of_map(&map, nodes, &seeds[0], *library).await
    }

    /// How each node stands, as it was seen last: within half a second, without asking anybody.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeHealth> {
        self.roads.standing.all()
    }

    /// Why publishes to some node are refused, now and whenever that begins or ends; `None` while all have memory for them.
    #[must_use]
    pub fn full(&self) -> watch::Receiver<Option<Full>> {
        self.roads.standing.full()
    }

    /// Whether the primary of a slot has no memory for messages.
    #[must_use]
    pub fn is_full(&self, slot: Slot) -> bool {
        let standing = &self.roads.standing;
        standing.is_any_full() && self.map().primary(slot).is_some_and(|place| standing.is_full(place))
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.roads.counters.read()
    }
}

/// Of the first node that says it.
pub(super) async fn first_map(
    nodes: &Nodes,
    seeds: &[overtake_peer::redis::RedisServer],
) -> Result<Map, String> {
    let mut all = Vec::new();
    for seed in seeds {
        match look::begin(seed, nodes).await {
            Ok(map) if map.shards.is_empty() => {
                let seed = seed.authority();
                all.push(format!(
                    "{seed}: nobody in its cluster holds slots: create one (redis-cli --cluster create)"
                ));
            }
            Ok(map) => return Ok(map),
            Err(why) => all.push(why),
        }
    }
    Err(all.join("; "))
}

/// A primary that does not answer now gets them when it does.
async fn has_functions(roads: &Roads, place: &Place) -> Result<(), String> {
    let patience = roads.nodes.patience.connect();
    let ensured = tokio::time::timeout(patience, async {
        let mut line = roads.server(place)?.line().await?;
        roads.library.ensure(&mut line).await
    });
    match ensured.await {
        Ok(Ok(Ok(library::Found::Newer(version)))) => Err(format!(
            "{place}: it has version {version} of the functions of {}, and this program knows {}: run the newer program",
            roads.library.name, roads.library.version
        )),
        Ok(Ok(Err(why))) => Err(format!("{place}: {why}")),
        Ok(Ok(Ok(_)) | Err(_)) | Err(_) => Ok(()),
    }
}
