//! What all tasks of a cluster share: who holds what, the ways of the slots, and the lanes to the nodes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overtake_peer::redis::RedisServer;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::asked::Errand;
use super::counts::{Counters, add};
use super::lane::{self, Lane};
use super::library::Library;
use super::map::{Map, Place};
use super::nodes::Nodes;
use super::slot::Slot;
use super::standing::Standing;
use super::ways::{Group, Sent, Step, Track, Trouble, Ways};

/// After so many attempts in vain even what is said to be elsewhere waits.
const AT_ONCE_MAX: u32 = 3;

/// By their nodes and numbers, those whose answers wait apart; each with its task.
type Lanes = HashMap<(Place, u8, bool), (Arc<Lane>, AbortHandle)>;

pub(super) struct Roads {
    pub(super) nodes: Nodes,
    pub(super) library: Library,
    /// The nodes that the settings name.
    pub(super) seeds: Vec<RedisServer>,
    pub(super) maps: watch::Sender<Arc<Map>>,
    /// Somebody was told something that the map does not say.
    pub(super) look: Notify,
    pub(super) counters: Counters,
    pub(super) standing: Standing,
    ways: Mutex<Ways>,
    lanes: Mutex<Lanes>,
    tasks: Mutex<JoinSet<()>>,
}

impl Roads {
    pub(super) fn new(nodes: Nodes, library: Library, seeds: Vec<RedisServer>, map: Map) -> Arc<Self> {
        let standing = Standing::new(nodes.durability.replicas_acked);
        Arc::new(Self {
            nodes,
            library,
            seeds,
            maps: watch::Sender::new(Arc::new(map)),
            look: Notify::new(),
            counters: Counters::default(),
            standing,
            ways: Mutex::default(),
            lanes: Mutex::default(),
            tasks: Mutex::default(),
        })
    }

    pub(super) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.maps.borrow())
    }

    /// A node, with the user, password and trust of the settings.
    pub(super) fn server(&self, place: &Place) -> Result<RedisServer, String> {
        self.seeds[0].at(&place.host, place.port)
    }

    /// A task that ends with the cluster, if not before.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = lock(&self.tasks);
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                tracing::error!(%error, "a task of the cluster's client broke; calls it had run into their deadlines");
            }
        }
        tasks.spawn(task)
    }

    /// Everything ends.
    pub(super) fn close(&self) {
        lock(&self.tasks).abort_all();
    }

    /// Where a call goes.
    pub(super) fn track(&self, errand: &Errand) -> Track {
        let waits = self.nodes.durability.is_waited_for() && errand.call().waits();
        Track { slot: errand.slot(), waits }
    }

    /// Calls that are all of one track.
    pub(super) fn send(self: &Arc<Self>, track: Track, errands: Vec<Errand>) {
        let map = self.map();
        let mut ways = lock(&self.ways);
        let count = errands.len();
        match ways.send(&map, track, errands) {
            // Under the lock: what comes after must not be quicker.
            Sent::Straight(group) => self.push(track, group),
            Sent::Behind => add(&self.counters.retries, count),
            Sent::Apart(settled) => self.begin_detour(track, settled),
        }
    }

    /// What a lane is done with, and what is to be tried again.
    pub(super) fn returned(self: &Arc<Self>, all: impl IntoIterator<Item = (Errand, Option<Trouble>)>) {
        let held =
            |(errand, trouble): (Errand, Option<Trouble>)| lane::held(self.track(&errand), (errand, trouble));
        let mut all = all.into_iter().map(held).peekable();
        if all.peek().is_none() {
            return;
        }
        let mut ways = lock(&self.ways);
        for (track, held) in all {
            add(&self.counters.retries, usize::from(held.is_some()));
            if let Some(settled) = ways.returned(track, held) {
                self.begin_detour(track, settled);
            }
        }
    }

    /// Somebody said that a slot is elsewhere.
    pub(super) fn moved(&self, slot: Slot, place: &Place) {
        let is_new = self.maps.send_if_modified(|map| {
            let is_new = map.primary(slot) != Some(place);
            if is_new {
                *map = Arc::new(map.moved(slot, place));
            }
            is_new
        });
        if is_new {
            self.look.notify_one();
        }
    }

    /// Lanes to nodes that are none any more go, once nothing is in them.
    pub(super) fn forget_lanes(&self) {
        let map = self.map();
        lock(&self.lanes).retain(|(place, ..), (lane, task)| {
            let is_kept = lane::holds_slots(&map, place) || !lane.is_idle();
            if !is_kept {
                task.abort();
            }
            is_kept
        });
    }

    fn push(self: &Arc<Self>, track: Track, group: Group) {
        let number = (track.slot.number() % u16::from(self.nodes.connections)) as u8;
        let mut lanes = lock(&self.lanes);
        let key = (group.place.clone(), number, track.waits);
        let (lane, _) = lanes.entry(key).or_insert_with_key(|(place, ..)| {
            let lane = Lane::new(place.clone(), track.waits);
            let task = self.spawn(lane::run(Arc::clone(self), Arc::clone(&lane)));
            (lane, task)
        });
        lane.push(group);
    }

    fn begin_detour(self: &Arc<Self>, track: Track, settled: Arc<Notify>) {
        self.spawn(Arc::clone(self).detour(track, settled));
    }

    /// What is held of one track is asked for again, group by group, until nothing is held.
    async fn detour(self: Arc<Self>, track: Track, settled: Arc<Notify>) {
        let mut maps = self.maps.subscribe();
        let (mut failed, mut sent) = (0_u32, 0);
        loop {
            let step = {
                let map = self.map();
                let mut ways = lock(&self.ways);
                let step = ways.step(&map, track);
                if let Step::Over(group) = step {
                    if let Some(group) = group {
                        self.push(track, group);
                    }
                    return;
                }
                step
            };
            let Step::Ready { trouble, returned } = step else {
                settled.notified().await;
                continue;
            };
            failed = if returned < sent { 0 } else { failed + 1 };
            let is_elsewhere = !matches!(trouble, Trouble::Later);
            let wait = if is_elsewhere && failed <= AT_ONCE_MAX {
                Duration::ZERO
            } else {
                self.nodes.patience.backoff(failed)
            };
            maps.borrow_and_update();
            // Who holds what may change before the time is up.
            let _ = timeout(wait, maps.changed()).await;
            let map = self.map();
            let mut ways = lock(&self.ways);
            sent = 0;
            if let Some(group) = ways.group(&map, track) {
                sent = group.errands.len();
                self.push(track, group);
            } else {
                self.look.notify_one();
            }
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
