//! How each node stands, as this process sees it: kept in memory, so that nobody waits for a server to hear of it.
//!
//! A node is known from its first mention in the map. One that has left the map and does not answer is kept for an hour: a dead replica is not
//! in the map any more once the others have given it up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overtake_engine::{Clock, Full, NodeHealth, ReplicaHealth, SystemClock, Watermarks};
use overtake_lane::Time;
use overtake_store::Space;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::facts::ReplicaFacts;
use super::map::{Map, Place};

/// For how long a node that does not answer is kept once it has left the map.
const KEPT: Duration = Duration::from_secs(3_600);
/// A replica that its primary has not heard for so long acknowledges nothing, seconds.
const SILENT_S: u64 = 3;

/// What a node said of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) product: String,
    pub(super) is_primary: bool,
    pub(super) memory_used: u64,
    pub(super) memory_max: u64,
    /// A primary's, as it knows them.
    pub(super) replicas: Vec<ReplicaFacts>,
}

/// What is known of a node.
#[derive(Default)]
struct Known {
    health: NodeHealth,
    /// Why the last wait for replicas came short.
    unacked: Option<Arc<str>>,
    /// When it left the map.
    left_at: Option<Instant>,
    /// Has it looked at sooner.
    sooner: Arc<Notify>,
}

/// How all nodes stand.
pub(super) struct Standing {
    nodes: Mutex<BTreeMap<Place, Known>>,
    full: watch::Sender<Option<Full>>,
    /// Those that do not answer.
    down: watch::Sender<BTreeSet<Place>>,
    /// Replicas that must acknowledge a write.
    replicas_acked: u32,
}

impl Standing {
    pub(super) fn new(replicas_acked: u32) -> Self {
        let (full, down) = (watch::Sender::new(None), watch::Sender::new(BTreeSet::new()));
        Self { nodes: Mutex::default(), full, down, replicas_acked }
    }

    /// As they are now, by their places.
    pub(super) fn all(&self) -> Vec<NodeHealth> {
        self.nodes().values().map(|known| known.health.clone()).collect()
    }

    /// Why publishes are refused, now and whenever that begins or ends.
    pub(super) fn full(&self) -> watch::Receiver<Option<Full>> {
        self.full.subscribe()
    }

    /// Whether some node has no memory for messages.
    pub(super) fn is_any_full(&self) -> bool {
        self.full.borrow().is_some()
    }

    /// Whether this one has none.
    pub(super) fn is_full(&self, place: &Place) -> bool {
        self.nodes().get(place).is_some_and(|known| full(&known.health).is_some())
    }

    /// Takes the map over. Answers the nodes that are new, each with what has it looked at sooner.
    pub(super) fn follow(&self, map: &Map) -> Vec<(Place, Arc<Notify>)> {
        let (mut nodes, now) = (self.nodes(), Instant::now());
        for (place, known) in nodes.iter_mut() {
            let slots = map.slots_of(place).map(|slots| slots.len() as u32).sum();
            known.health.slots = slots;
            known.health.is_primary |= slots > 0;
            let is_there = map.nodes().contains(&place);
            known.left_at = if is_there { None } else { known.left_at.or(Some(now)) };
        }
        let mut new = Vec::new();
        for place in map.nodes() {
            if !nodes.contains_key(place) {
                let known = Known::new(place, map, self.replicas_acked);
                new.push((place.clone(), Arc::clone(&known.sooner)));
                nodes.insert(place.clone(), known);
            }
        }
        self.say_full(&nodes);
        new
    }

    /// A node said how it is, or why it says nothing. False: the node is no longer of the cluster, and nobody needs to ask it again.
    pub(super) fn tell(&self, place: &Place, said: Result<Said, String>) -> bool {
        let mut nodes = self.nodes();
        let Some(known) = nodes.get_mut(place) else { return false };
        let is_up = said.is_ok();
        let before = (known.health.down.clone(), known.health.short.clone());
        match said {
            Ok(said) => known.is_up(said, self.replicas_acked),
            Err(why) => known.is_down(&why),
        }
        log(before, &known.health);
        let is_over = known.left_at.is_some_and(|left| is_up || left.elapsed() > KEPT);
        if is_over {
            nodes.remove(place);
        }
        self.say_full(&nodes);
        self.down.send_if_modified(|down| match is_up {
            true => down.remove(place),
            false => down.insert(place.clone()),
        });
        !is_over
    }

    /// The nodes that do not answer, now and whenever they are others.
    pub(super) fn down(&self) -> watch::Receiver<BTreeSet<Place>> {
        self.down.subscribe()
    }

    /// A node refused a write for want of memory.
    pub(super) fn refused_for_memory(&self, place: &Place) {
        self.with(place, |known| {
            let (used, max) = (known.health.memory_used, known.health.memory_max);
            known.health.memory = judge(used.max(max), max, true);
        });
        self.say_full(&self.nodes());
    }

    /// Whether enough replicas acknowledged what was written at a node last; else why not.
    pub(super) fn acknowledged(&self, place: &Place, short: Option<&str>) {
        self.with(place, |known| {
            if known.unacked.is_none() && short.is_none() {
                return;
            }
            let before = (known.health.down.clone(), known.health.short.clone());
            known.unacked = short.map(Into::into);
            known.look_at_replicas(self.replicas_acked);
            log(before, &known.health);
        });
    }

    /// A connection to a node is lost: it is asked at once.
    pub(super) fn lost(&self, place: &Place) {
        self.with(place, |known| known.sooner.notify_one());
    }

    fn with(&self, place: &Place, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.nodes().get_mut(place) {
            change(known);
        }
    }

    /// Told when it begins and when it ends, not with every byte.
    fn say_full(&self, nodes: &BTreeMap<Place, Known>) {
        let now = nodes.values().find_map(|known| full(&known.health));
        self.full.send_if_modified(|told| {
            let is_new = told.is_some() != now.is_some();
            *told = now;
            is_new
        });
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<Place, Known>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn new(place: &Place, map: &Map, replicas_expected: u32) -> Self {
        let slots: u32 = map.slots_of(place).map(|slots| slots.len() as u32).sum();
        let health = NodeHealth {
            address: place.to_string().into(),
            is_primary: slots > 0,
            slots,
            since: now(),
            replicas_expected: if slots > 0 { replicas_expected } else { 0 },
            ..NodeHealth::default()
        };
        Self { health, ..Self::default() }
    }

    fn is_up(&mut self, said: Said, replicas_acked: u32) {
        let health = &mut self.health;
        let was_low = health.memory.is_some_and(|memory| memory.is_low);
        if health.down.take().is_some() {
            health.since = now();
        }
        let Said { product, is_primary, memory_used, memory_max, replicas } = said;
        health.is_primary = is_primary;
        if *health.product != *product {
            health.product = product.into();
        }
        health.memory = is_primary.then(|| judge(memory_used, memory_max, was_low)).flatten();
        (health.memory_used, health.memory_max) = (memory_used, memory_max);
        health.replicas_expected = if is_primary { replicas_acked } else { 0 };
        health.replicas = replicas.into_iter().map(replica).collect();
        self.look_at_replicas(replicas_acked);
    }

    fn is_down(&mut self, why: &str) {
        let health = &mut self.health;
        if health.down.is_none() {
            health.since = now();
        }
        // The address stands beside it.
        let why = why.strip_prefix(&format!("{}: ", health.address)).unwrap_or(why);
        let why = why.strip_prefix(&format!("{} ", health.address)).unwrap_or(why);
        health.down = Some(why.into());
        (health.memory, health.short) = (None, None);
        (self.unacked, health.replicas) = (None, Vec::new());
    }

    fn look_at_replicas(&mut self, replicas_acked: u32) {
        let health = &mut self.health;
        let online = health.replicas_online();
        let follow = || format!("{online} of {replicas_acked} replicas follow").into();
        let too_few = (health.slots > 0 && online < replicas_acked).then(follow);
        health.short = too_few.or_else(|| self.unacked.clone());
    }
}

fn replica(facts: ReplicaFacts) -> ReplicaHealth {
    let ReplicaFacts { place, is_online, behind, lag_s } = facts;
    ReplicaHealth {
        address: place.into(),
        is_online: is_online && lag_s < SILENT_S,
        lag_bytes: behind,
        lag_s,
    }
}

/// As the disk of an embedded store is judged: below a twentieth, at most 256 MiB, publishes are refused.
fn judge(used: u64, max: u64, was_low: bool) -> Option<overtake_engine::DiskHealth> {
    let space = Space { free: max.saturating_sub(used), total: max };
    (max > 0).then(|| Watermarks::default().judge(space, was_low))
}

fn full(health: &NodeHealth) -> Option<Full> {
    let memory = health.memory.filter(|memory| memory.is_low && health.slots > 0)?;
    Some(Full::Memory { node: Arc::clone(&health.address), memory, max: health.memory_max })
}

fn now() -> Time {
    SystemClock.now()
}

type State = (Option<Arc<str>>, Option<Arc<str>>);

/// One line when something becomes wrong, and one when it is over; whatever the words of the reason become meanwhile.
fn log((down, short): State, health: &NodeHealth) {
    let (node, role) = (&health.address, health.role());
    match (&down, &health.down) {
        (None, Some(why)) => tracing::warn!(%node, role, %why, "a server of the cluster is down"),
        (Some(_), None) => tracing::info!(%node, role, "a server of the cluster is up again"),
        _ => {}
    }
    match (&short, &health.short) {
        (None, Some(why)) => tracing::warn!(%node, %why, "writes there are not confirmed"),
        (Some(_), None) if health.down.is_none() => tracing::info!(%node, "writes there are confirmed again"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        Place::parse(text, "").expect("a place")
    }

    fn standing(replicas_acked: u32) -> (Standing, Place) {
        let (standing, one) = (Standing::new(replicas_acked), place("a:1"));
        assert_eq!(standing.follow(&Map::of_one(one.clone())).len(), 1);
        assert!(standing.follow(&Map::of_one(one.clone())).is_empty(), "it is known");
        (standing, one)
    }

    fn primary(used: u64, max: u64) -> Said {
        Said { is_primary: true, memory_used: used, memory_max: max, ..Said::default() }
    }

    #[test]
    fn a_primary_is_full_below_a_twentieth_until_there_is_half_as_much_again() {
        let (standing, one) = standing(0);
        let mut full = standing.full();
        for (used, is_full) in [(900, false), (949, false), (951, true), (940, true), (924, false)] {
            standing.tell(&one, Ok(primary(used, 1_000)));
            assert_eq!(
                (full.borrow_and_update().is_some(), standing.is_full(&one)),
                (is_full, is_full),
                "{used}"
            );
        }
        standing.refused_for_memory(&one);
        assert!(
            full.has_changed().expect("it is there") && standing.is_full(&one),
            "whatever the last look said"
        );
        standing.tell(&one, Err("connection refused".to_owned()));
        assert!(!standing.is_full(&one), "one that is down is not full");
    }

    #[test]
    fn a_write_that_replicas_do_not_acknowledge_is_told_until_they_do() {
        let (standing, one) = standing(1);
        let short = || standing.all()[0].short.clone();
        let follows = |lag_s| ReplicaFacts { place: "b:1".into(), is_online: true, behind: 0, lag_s };
        let with = |lag_s| Ok(Said { replicas: vec![follows(lag_s)], ..primary(1, 0) });
        standing.tell(&one, with(0));
        assert_eq!(short(), None);
        standing.acknowledged(&one, Some("0 of 1 replicas have acknowledged it"));
        standing.tell(&one, with(1));
        assert!(short().expect("told").contains("acknowledged"), "a look does not know better");
        standing.acknowledged(&one, None);
        assert_eq!(short(), None);
        standing.tell(&one, with(SILENT_S));
        assert_eq!(short().as_deref(), Some("0 of 1 replicas follow"));
    }

    #[test]
    fn a_node_that_has_left_the_map_is_kept_while_it_is_down() {
        let (standing, one) = standing(0);
        assert!(standing.tell(&one, Err("a:1: connection refused".to_owned())));
        assert_eq!(standing.follow(&Map::of_one(place("b:1"))).len(), 1);
        assert!(standing.tell(&one, Err("connection refused".to_owned())));
        let all = standing.all();
        assert_eq!(all[0].down.as_deref(), Some("connection refused"));
        assert_eq!((all.len(), all[0].slots, all[1].slots), (2, 0, 16_384));
        assert!(!standing.tell(&one, Ok(primary(0, 0))), "one that answers is just somewhere else");
        assert_eq!(standing.all().len(), 1);
    }
}
