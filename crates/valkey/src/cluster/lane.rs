//! A connection to a node, made when something is to be asked there and again when it is lost, and the one task that gathers what waits for it.
//!
//! What waits while bytes are on their way goes next, all together: no timer says when. Slots share the lanes of a node by their numbers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use overtake_peer::redis::Line;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::asked::Errand;
use super::batch::Entry;
use super::counts::add;
use super::library::Found;
use super::map::{Map, Place};
use super::roads::Roads;
use super::trip::Trip;
use super::ways::{Group, Held, Track, Trouble};

/// What waits for one connection to a node.
pub(super) struct Lane {
    pub(super) place: Place,
    /// Its answers wait for replicas or logs.
    pub(super) waits: bool,
    queue: Mutex<Queue>,
    /// Something was put there.
    pub(super) filled: Notify,
}

#[derive(Default)]
struct Queue {
    entries: VecDeque<Entry>,
    /// The task has some of it.
    is_busy: bool,
}

impl Lane {
    pub(super) fn new(place: Place, waits: bool) -> Arc<Self> {
        Arc::new(Self { place, waits, queue: Mutex::default(), filled: Notify::new() })
    }

    pub(super) fn push(&self, group: Group) {
        let is_asking = group.is_asking;
        let entries = group.errands.into_iter().map(|errand| Entry { errand, is_asking });
        self.queue().entries.extend(entries);
        self.filled.notify_one();
    }

    /// Takes from the queue what the closure takes.
    pub(super) fn take<T>(&self, take: impl FnOnce(&mut VecDeque<Entry>) -> T) -> T {
        let mut queue = self.queue();
        queue.is_busy = true;
        take(&mut queue.entries)
    }

    fn take_all(&self) -> Vec<Entry> {
        self.take(|entries| entries.drain(..).collect())
    }

    fn is_empty(&self) -> bool {
        self.queue().entries.is_empty()
    }

    /// Nothing is taken any more.
    pub(super) fn rest(&self) {
        self.queue().is_busy = false;
    }

    /// Nothing waits, and nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        let queue = self.queue();
        queue.entries.is_empty() && !queue.is_busy
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For as long as there is a cluster.
pub(super) async fn run(roads: Arc<Roads>, lane: Arc<Lane>) {
    let mut maps = roads.maps.subscribe();
    let mut failed = 0;
    loop {
        while lane.is_empty() {
            lane.filled.notified().await;
        }
        let why = match connect(&roads, &lane, &mut maps).await {
            Ok((line, has_ours)) => {
                failed = 0;
                add(&roads.counters.connections, 1);
                Trip::new(&roads, &lane, line, has_ours).run(&mut maps).await
            }
            Err(why) => {
                failed += 1;
                why
            }
        };
        lane.rest();
        let Some(why) = why else { continue };
        tracing::debug!(node = %lane.place, why, "no connection");
        roads.standing.lost(&lane.place);
        roads.look.notify_one();
        turn_away(&roads, &lane, &why);
        // Whoever comes meanwhile is told at once, and goes where the map says by then.
        let until = Instant::now() + roads.nodes.patience.backoff(failed);
        while timeout_at(until, lane.filled.notified()).await.is_ok() {
            turn_away(&roads, &lane, &why);
        }
        lane.rest();
    }
}

fn turn_away(roads: &Arc<Roads>, lane: &Lane, why: &str) {
    let back = lane.take_all().into_iter().map(|entry| not_done(entry.errand, Trouble::Later, why));
    roads.returned(back);
    lane.rest();
}

pub(super) fn not_done(errand: Errand, trouble: Trouble, why: &str) -> (Errand, Option<Trouble>) {
    errand.not_done(why);
    (errand, Some(trouble))
}

pub(super) fn held(track: Track, (errand, trouble): (Errand, Option<Trouble>)) -> (Track, Option<Held>) {
    (track, trouble.map(|trouble| Held { errand, trouble }))
}

/// Logged in, with the functions there. Given up where the node turns out to be none any more; whether the functions are ours, and no newer ones.
async fn connect(
    roads: &Roads,
    lane: &Lane,
    maps: &mut watch::Receiver<Arc<Map>>,
) -> Result<(Line, bool), Option<String>> {
    let patience = roads.nodes.patience.connect();
    let connecting = timeout(patience, open(roads, &lane.place));
    let was_there = holds_slots(&maps.borrow_and_update(), &lane.place);
    let gone = async {
        while maps.changed().await.is_ok() {
            if was_there && !holds_slots(&maps.borrow_and_update(), &lane.place) {
                return;
            }
        }
    };
    tokio::select! {
        connected = connecting => match connected {
            Ok(connected) => connected.map_err(Some),
            Err(_) => Err(Some(format!("{} does not answer within {} ms", lane.place, patience.as_millis()))),
        },
        () = gone => Err(Some(format!("{} holds no slots any more", lane.place))),
    }
}

async fn open(roads: &Roads, place: &Place) -> Result<(Line, bool), String> {
    let server = roads.server(place)?;
    let mut line = server.line().await?;
    match roads.library.ensure(&mut line).await? {
        Ok(found) => Ok((line, !matches!(found, Found::Newer(_)))),
        Err(why) => Err(format!("{place}: {why}")),
    }
}

pub(super) fn holds_slots(map: &Map, place: &Place) -> bool {
    map.shards.iter().any(|shard| shard.primary == *place)
}
