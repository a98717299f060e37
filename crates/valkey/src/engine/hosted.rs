//! A queue as this process serves it: its places, and what is under way there that others must wait for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use overtake_engine::Failure;
use overtake_lane::{LeaseId, PlaceNumber, QueueId, Refusal, Seq, Settings, VhostId};
use tokio::sync::{Mutex as Turn, Notify, watch};
use tokio::time::Instant;

use super::definitions::Definitions;
use crate::cluster::{CallError, Cluster};
use crate::functions::{Asked, How, Leasing, Provenance, Said, Settle, Terms, Use};
use crate::places::{Given, NotDone, Places};

/// Longest that a request waits for the servers.
const PATIENCE: Duration = Duration::from_secs(10);

/// A queue, what is said of it, and its places.
pub(super) struct Hosted {
    pub(super) queue: QueueId,
    pub(super) vhost: VhostId,
    pub(super) name: Arc<str>,
    places: Arc<Places>,
    definitions: Arc<Definitions>,
    /// What holds at the places, as far as this process has seen to it.
    ruled: Mutex<Option<Ruled>>,
    /// Somebody of this process may hold something there that ends with the process.
    holds: AtomicBool,
    /// What is for all queues.
    common: Common,
    /// Somebody has come or has room.
    pub(super) stirred: Notify,
    /// Whoever serves its takers does so alone.
    pub(super) turn: Turn<()>,
    /// Whoever carries what has left it does so alone.
    pub(super) carrying: Turn<()>,
    is_served: AtomicBool,
    is_watched: AtomicBool,
    is_gone: watch::Sender<bool>,
    /// Leases that are on their way back; whoever asks for what is there waits for them.
    returning: watch::Sender<u64>,
}

/// What holds for a queue: its settings with those of policies, its own, and the version of the definitions that says so.
#[derive(Clone, Debug)]
struct Ruled {
    settings: Arc<Settings>,
    own: Arc<Settings>,
    version: u64,
}

/// What settings of queues leave open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    pub(super) default_ttl_ms: u64,
    pub(super) max_message_bytes: u64,
    pub(super) sweep: Duration,
}

/// Leases that are being given back.
pub(super) struct Returning(Arc<Hosted>);

impl Drop for Returning {
    fn drop(&mut self) {
        self.0.returning.send_modify(|open| *open -= 1);
    }
}

/// The end of a queue, to be waited for.
pub(super) struct Ended(watch::Receiver<bool>);

impl Ended {
    pub(super) async fn wait(&mut self) {
        // What is forgotten is gone, too.
        let _ = self.0.wait_for(|is_gone| *is_gone).await;
    }
}

/// What servers say, as a failure of the engine. What could not be done for want of memory is refused, as by a full store.
pub(super) fn failure(why: NotDone) -> Failure {
    match why {
        NotDone::Gone => Refusal::NoSuchQueue.into(),
        NotDone::Call(CallError::Refused(fault)) if fault.code() == "OOM" => Refusal::StoreFull.into(),
        other => Failure::Unavailable(other.to_string().into()),
    }
}

impl Hosted {
    pub(super) fn new(
        (cluster, definitions): (Arc<Cluster>, Arc<Definitions>),
        (queue, vhost, name): (QueueId, VhostId, Arc<str>),
        settings: &Settings,
        caller: (String, Arc<AtomicUsize>),
        common: Common,
    ) -> Arc<Self> {
        let terms = terms(&name, settings, common);
        let places = Places::new(cluster, queue.0, 1, terms, caller, common.sweep);
        let ((returning, _), (is_gone, _)) = (watch::channel(0), watch::channel(false));
        let (ruled, holds, stirred) = (Mutex::default(), AtomicBool::new(false), Notify::new());
        let (turn, carrying, is_served) = (Turn::new(()), Turn::new(()), AtomicBool::new(false));
        Arc::new(Self {
            queue,
            vhost,
            name,
            places,
            definitions,
            ruled,
            holds,
            common,
            stirred,
            turn,
            carrying,
            is_served,
            is_watched: AtomicBool::new(false),
            is_gone,
            returning,
        })
    }

    /// Sees to it that these settings, which hold since this version of the definitions, hold at every place.
    pub(super) async fn configure(
        &self,
        settings: &Settings,
        own: &Settings,
        version: u64,
    ) -> Result<(), Failure> {
        if self.ruled().is_some_and(|ruled| *ruled.settings == *settings) {
            return Ok(());
        }
        let (settings, own) = (Arc::new(settings.clone()), Arc::new(own.clone()));
        self.say(Ruled { settings, own, version }).await
    }

    fn ruled(&self) -> Option<Ruled> {
        self.ruled.lock().expect("nobody panics with it").clone()
    }

    async fn say(&self, ruled: Ruled) -> Result<(), Failure> {
        let Ruled { settings, own, version } = &ruled;
        let terms = terms(&self.name, settings, self.common).of_declared(own);
        let said = if **settings == **own { Said::Declared } else { Said::ByPolicy };
        let configured = self.places.configure(terms, (*version, said), deadline()).await.map_err(failure)?;
        configured.map_err(|declined| Failure::from(declined.0))?;
        *self.ruled.lock().expect("nobody panics with it") = Some(ruled);
        Ok(())
    }

    /// The settings that hold.
    pub(super) fn settings(&self) -> Arc<Settings> {
        self.ruled().map(|ruled| ruled.settings).unwrap_or_default()
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// Where a message goes that is published now.
    pub(super) fn place_for_next(&self) -> PlaceNumber {
        0
    }

    /// Where a message goes that left another place: always the same.
    pub(super) fn place_for(&self, from: &Provenance) -> PlaceNumber {
        (from.number % u64::from(self.places.count())) as PlaceNumber
    }

    /// Where a message is, and the sequence that it has there.
    pub(super) fn find(&self, seq: Seq) -> Option<(PlaceNumber, Seq)> {
        (self.places.count() == 1).then_some((0, seq))
    }

    /// The sequence that a message of a place is known by.
    pub(super) fn known_as(&self, _place: PlaceNumber, seq: Seq) -> Seq {
        seq
    }

    pub(super) async fn ask<A: Asked>(&self, place: PlaceNumber, ask: &A) -> Result<A::Answer, Failure> {
        self.healed(|| self.places.ask(place, ask, deadline())).await
    }

    /// Asks every place the same.
    pub(super) async fn ask_all<A: Asked>(&self, ask: &A) -> Result<Vec<A::Answer>, Failure> {
        self.healed(|| self.places.ask_all(ask, deadline())).await
    }

    /// Leases what goes next, as far as the places are known.
    pub(super) async fn lease_now(&self, want: &Leasing) -> Result<Vec<Given>, Failure> {
        self.healed(|| self.places.lease_now(want, deadline())).await
    }

    /// Does this; and once more where a place is gone though the queue is not: a server came back without what it had.
    async fn healed<T, F>(&self, ask: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, NotDone>>,
    {
        match ask().await {
            Err(NotDone::Gone) if self.make_anew().await? => ask().await.map_err(failure),
            answer => answer.map_err(failure),
        }
    }

    /// Makes places again that are gone. False: it is the queue that is gone.
    async fn make_anew(&self) -> Result<bool, Failure> {
        if !self.is_gone() {
            self.definitions.follow().await?;
        }
        if !self.definitions.has(self.queue) {
            self.end();
        }
        let Some(ruled) = self.ruled().filter(|_| !self.is_gone()) else { return Ok(false) };
        tracing::warn!(queue = %self.name, "a place of it is not there any more, and is made again: a server has lost what it had");
        self.say(ruled).await?;
        Ok(true)
    }

    /// Somebody of this process holds something there from now on, that ends with the process.
    pub(super) fn holds(&self) {
        self.holds.store(true, Ordering::Relaxed);
    }

    /// Whether somebody may; from now on nobody does until it is said again.
    pub(super) fn may_hold(&self) -> bool {
        self.holds.swap(false, Ordering::Relaxed)
    }

    /// Ends leases, by sequences as they are known. Answers of each whether it held.
    pub(super) async fn settle(&self, how: How, leases: &[(Seq, LeaseId)]) -> Result<Vec<bool>, Failure> {
        let mut held = vec![false; leases.len()];
        for place in 0..self.places.count() {
            let here = |(at, (seq, lease)): (usize, &(Seq, LeaseId))| {
                self.find(*seq).filter(|(where_, _)| *where_ == place).map(|(_, seq)| (at, (seq, *lease)))
            };
            let (at, leases): (Vec<usize>, Vec<(Seq, LeaseId)>) =
                leases.iter().enumerate().filter_map(here).unzip();
            if leases.is_empty() {
                continue;
            }
            for (at, is_held) in at.into_iter().zip(self.ask(place, &Settle { how, leases }).await?) {
                held[at] = is_held;
            }
        }
        Ok(held)
    }

    /// Whether somebody serves its takers; from now on somebody does.
    pub(super) fn is_served(&self) -> bool {
        self.is_served.swap(true, Ordering::Relaxed)
    }

    /// Whether nobody watches yet for how long it is unused; from now on somebody does.
    pub(super) fn watch(&self) -> bool {
        !self.is_watched.swap(true, Ordering::Relaxed)
    }

    /// Whether somebody watches for how long it is unused.
    pub(super) fn is_watched(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Ordering::Relaxed);
    }

    /// The queue is gone.
    pub(super) fn end(&self) {
        self.is_gone.send_replace(true);
    }

    pub(super) fn is_gone(&self) -> bool {
        *self.is_gone.borrow()
    }

    /// Ends when the queue is gone.
    pub(super) fn ended(&self) -> Ended {
        Ended(self.is_gone.subscribe())
    }

    /// In how many ms the queue has been unused for too long; `None`: it never is. `is_used`: it is used now.
    pub(super) async fn unused_in(&self, is_used: bool) -> Result<Option<u64>, Failure> {
        let within_ms = self.settings().expires_ms;
        if within_ms == 0 {
            return Ok(None);
        }
        self.ask(0, &Use { is_used, within_ms }).await.map(Some)
    }

    /// Begins to give back: until what this answers is dropped, whoever asks for what is there waits.
    pub(super) fn return_some(self: &Arc<Self>) -> Returning {
        self.returning.send_modify(|open| *open += 1);
        Returning(Arc::clone(self))
    }

    /// Waits for what is on its way back.
    pub(super) async fn settled_down(&self) {
        let mut returning = self.returning.subscribe();
        // It is there as long as this is.
        let _ = returning.wait_for(|open| *open == 0).await;
    }
}

fn terms(name: &Arc<str>, settings: &Settings, common: Common) -> Terms {
    Terms::new(Arc::clone(name), settings, common.default_ttl_ms, common.max_message_bytes)
}

pub(super) fn deadline() -> Instant {
    Instant::now() + PATIENCE
}
