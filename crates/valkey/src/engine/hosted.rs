//! A queue as this process serves it: its places, and what is under way there that others must wait for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use overtake_engine::Failure;
use overtake_lane::{
    Broker, Fact, LeaseId, PLACES_MAX, PlaceNumber, QueueId, Refusal, Seq, Settings, Time, Traits, VhostId,
};
use overtake_store::record::{Content, encode};
use tokio::sync::{Mutex as Turn, Notify, watch};
use tokio::time::Instant;

use super::attend::Attendance;
use super::definitions::Definitions;
use super::signs::{Overlooked, UnderWay};
use crate::cluster::{CallError, Cluster};
use crate::functions::{Admission, Asked, How, Leasing, Of, Said, Settle, Terms, Use};
use crate::places::{Given, NotDone, Places, Tally, together};

/// Longest that a request waits for the servers.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bits of a sequence that name the place, where there are several: enough for [`PLACES_MAX`].
const PLACE_BITS: u32 = 12;
const _: () = assert!(PLACES_MAX as u32 <= 1 << PLACE_BITS, "every place has a number");

/// A queue, what is said of it, and its places.
pub(super) struct Hosted {
    pub(super) queue: QueueId,
    pub(super) vhost: VhostId,
    pub(super) name: Arc<str>,
    places: Arc<Places>,
    definitions: Arc<Definitions>,
    /// What holds at the places, as far as this process has seen to it.
    ruled: Mutex<Option<Ruled>>,
    /// Turns of what may go to any place. Processes begin anywhere.
    turns: AtomicU64,
    /// Somebody of this process may hold something there that ends with the process.
    holds: AtomicBool,
    /// What is for all queues.
    common: Common,
    /// Somebody has come or has room.
    pub(super) stirred: Notify,
    /// Leases that are on their way from places to who takes them, or back.
    pub(super) under_way: Arc<UnderWay>,
    /// What was out to this process by places, and nobody here knew of.
    pub(super) unknown: Mutex<BTreeMap<PlaceNumber, Overlooked>>,
    /// Whoever serves its takers does so alone.
    pub(super) turn: Turn<()>,
    /// What this process said of its consumers.
    pub(super) attendance: Attendance,
    /// Whoever carries what has left it does so alone.
    pub(super) carrying: Turn<()>,
    is_served: AtomicBool,
    is_watched: AtomicBool,
    is_gone: watch::Sender<bool>,
    /// Leases that are being ended; whoever asks for what is there waits for them.
    returning: watch::Sender<u64>,
    /// Those of them whose messages are put back: with several places whoever leases waits for them, too, so that what is older goes first.
    putting_back: watch::Sender<u64>,
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
pub(super) struct Returning {
    hosted: Arc<Hosted>,
    puts_back: bool,
}

impl Drop for Returning {
    fn drop(&mut self) {
        self.hosted.returning.send_modify(|open| *open -= 1);
        self.hosted.putting_back.send_modify(|open| *open -= u64::from(self.puts_back));
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
        of: Of,
        settings: &Settings,
        caller: (String, Arc<Tally>),
        (common, first_turn): (Common, u64),
    ) -> Arc<Self> {
        let terms = terms(&name, settings, common);
        let count = PlaceNumber::from(settings.partitions.places());
        let places = Places::new(cluster, (queue.0, of), count, terms, caller, common.sweep);
        let ((returning, _), (is_gone, _)) = (watch::channel(0), watch::channel(false));
        let (ruled, holds, stirred) = (Mutex::default(), AtomicBool::new(false), Notify::new());
        let turns = AtomicU64::new(first_turn);
        let (turn, carrying, is_served) = (Turn::new(()), Turn::new(()), AtomicBool::new(false));
        Arc::new(Self {
            queue,
            vhost,
            name,
            places,
            definitions,
            ruled,
            turns,
            holds,
            common,
            stirred,
            under_way: Arc::default(),
            unknown: Mutex::default(),
            turn,
            attendance: Attendance::default(),
            carrying,
            is_served,
            is_watched: AtomicBool::new(false),
            is_gone,
            returning,
            putting_back: watch::channel(0).0,
        })
    }

    /// Sees to it that these settings, which hold since this version of the definitions, hold at every place.
    pub(super) async fn configure(
        &self,
        settings: &Settings,
        own: &Settings,
        version: u64,
    ) -> Result<(), Failure> {
        if self.is_ruled_by(settings) {
            return Ok(());
        }
        let (settings, own) = (Arc::new(settings.clone()), Arc::new(own.clone()));
        self.say(Ruled { settings, own, version }).await
    }

    /// Whether these settings hold at every place.
    pub(super) fn is_ruled_by(&self, settings: &Settings) -> bool {
        self.ruled().is_some_and(|ruled| *ruled.settings == *settings)
    }

    fn ruled(&self) -> Option<Ruled> {
        self.ruled.lock().expect("nobody panics with it").clone()
    }

    async fn say(&self, mut ruled: Ruled) -> Result<(), Failure> {
        loop {
            let Ruled { settings, own, version } = &ruled;
            let terms = terms(&self.name, settings, self.common).of_declared(own);
            let said = if **settings == **own { Said::Declared } else { Said::ByPolicy };
            let share = |place: PlaceNumber| match settings.partitions.places() {
                1 => None,
                _ => Some(settings.sharing(place as u16)),
            };
            let queue = self.definitions.with(|broker| definition_of(broker, self.queue));
            let said = (*version, said, &queue[..]);
            let configured = self.places.configure(terms, &share, said, deadline()).await;
            let configured = configured.map_err(failure)?;
            let holds = configured.map_err(|declined| Failure::from(declined.0))?;
            if holds > *version {
                self.definitions.go_past(holds).await?;
                // A later version of another process is told soon; only where versions went back is this one said again.
                let since = self.definitions.since(self.queue, |_, since| since);
                if since > holds {
                    ruled.version = since;
                    continue;
                }
            }
            *self.ruled.lock().expect("nobody panics with it") = Some(ruled);
            return Ok(());
        }
    }

    /// The settings that hold.
    pub(super) fn settings(&self) -> Arc<Settings> {
        self.ruled().map(|ruled| ruled.settings).unwrap_or_default()
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// Whether it is in one place, which alone says how its messages follow each other.
    pub(super) fn is_whole(&self) -> bool {
        self.places.count() == 1
    }

    /// Where a message goes. Of those that may go anywhere all of one turn go to one place, and those of the next to the next.
    pub(super) fn place_of(&self, message: &Admission, turn: u64) -> PlaceNumber {
        if self.is_whole() {
            return 0;
        }
        let origin = message.origin.as_ref().map(|origin| (origin.producer(), origin.sequence()));
        let traits = Traits { key: message.key.as_deref(), id: message.id.as_deref(), origin };
        let settings = self.settings();
        let mut turns = (turn..turn + u64::from(self.places.count()))
            .map(|turn| PlaceNumber::from(settings.place_of(message.priority, traits, turn)));
        let first = turns.next().unwrap_or_default();
        // A message that may go to any place does not wait for one that is not served.
        if self.places.is_served(first) {
            first
        } else {
            turns.find(|place| self.places.is_served(*place)).unwrap_or(first)
        }
    }

    /// The next turn.
    pub(super) fn next_turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// Where a message is, and the sequence that it has there.
    pub(super) fn find(&self, seq: Seq) -> Option<(PlaceNumber, Seq)> {
        if self.is_whole() {
            return Some((0, seq));
        }
        let place = (seq.0 & ((1 << PLACE_BITS) - 1)) as PlaceNumber;
        (place < self.places.count()).then_some((place, Seq(seq.0 >> PLACE_BITS)))
    }

    /// The sequence that a message of a place is known by: with several places the place is in it, behind the clock by which they count.
    pub(super) fn known_as(&self, place: PlaceNumber, seq: Seq) -> Seq {
        if self.is_whole() { seq } else { Seq(seq.0 << PLACE_BITS | u64::from(place)) }
    }

    /// Where a look by sequence may begin at every partition to see whatever comes after a message that is known by this sequence; `newest`: whatever comes before it.
    pub(super) fn before_or_at(&self, seq: Seq, newest: bool) -> Option<Seq> {
        if self.is_whole() {
            return Some(seq);
        }
        let there = seq.0 >> PLACE_BITS;
        if newest { Some(Seq(there + 1)) } else { there.checked_sub(1).map(Seq) }
    }

    /// Where a look by sequence may begin at a partition to see exactly what comes after a message that is known by this sequence.
    pub(super) fn after_there(&self, place: PlaceNumber, seq: Seq) -> Option<Seq> {
        // What a cursor says may have been changed by anybody: a server reads no greater sequences.
        const MOST: Seq = Seq(1 << 53);
        if self.is_whole() {
            return Some(seq.min(MOST));
        }
        let (there, of) = (Seq(seq.0 >> PLACE_BITS), seq.0 & ((1 << PLACE_BITS) - 1));
        // Of two messages with the same clock that of the lesser partition goes first.
        let after = if u64::from(place) > of { there.0.checked_sub(1).map(Seq)? } else { there };
        Some(after.min(MOST))
    }

    pub(super) async fn ask<A: Asked>(&self, place: PlaceNumber, ask: &A) -> Result<A::Answer, Failure> {
        self.healed(|| self.places.ask(place, ask, deadline())).await
    }

    /// Asks every place the same.
    pub(super) async fn ask_all<A: Asked>(&self, ask: &A) -> Result<Vec<A::Answer>, Failure> {
        self.healed(|| self.places.ask_all(ask, deadline())).await
    }

    /// Asks every place that is served the same.
    ///
    /// # Errors
    /// Also where some are not served.
    pub(super) async fn ask_served<A: Asked>(&self, ask: &A) -> Result<(), Failure> {
        self.healed(|| self.places.ask_served(ask, deadline())).await
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
            Err(NotDone::Another(_)) if self.is_no_more().await? => Err(Refusal::NoSuchQueue.into()),
            answer => answer.map_err(failure),
        }
    }

    /// Whether the queue is gone, by the latest definitions.
    async fn is_no_more(&self) -> Result<bool, Failure> {
        if !self.is_gone() {
            self.definitions.follow().await?;
        }
        if !self.definitions.has(self.queue) {
            self.end();
        }
        Ok(self.is_gone())
    }

    /// Makes places again that are gone. False: it is the queue that is gone.
    async fn make_anew(&self) -> Result<bool, Failure> {
        self.is_no_more().await?;
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
        let mut by_place: BTreeMap<PlaceNumber, Vec<usize>> = BTreeMap::new();
        for (at, (seq, _)) in leases.iter().enumerate() {
            if let Some((place, _)) = self.find(*seq) {
                by_place.entry(place).or_default().push(at);
            }
        }
        let settled = together(by_place.into_iter().map(|(place, at)| async move {
            let there = |at: &usize| self.find(leases[*at].0).map(|(_, seq)| (seq, leases[*at].1));
            let leases = at.iter().filter_map(there).collect();
            Ok::<_, Failure>((at, self.ask(place, &Settle { how, leases }).await?))
        }));
        for settled in settled.await {
            let (at, each) = settled?;
            for (at, is_held) in at.into_iter().zip(each) {
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

    /// Begins to end leases: until what this answers is dropped, whoever asks for what is there waits.
    pub(super) fn return_some(self: &Arc<Self>, puts_back: bool) -> Returning {
        self.returning.send_modify(|open| *open += 1);
        self.putting_back.send_modify(|open| *open += u64::from(puts_back));
        Returning { hosted: Arc::clone(self), puts_back }
    }

    /// Waits for what is being put back, where a message of another place might go before it.
    pub(super) async fn until_put_back(&self) {
        if !self.is_whole() {
            self.until_none(&self.putting_back).await;
        }
    }

    /// Waits for what is on its way back.
    pub(super) async fn settled_down(&self) {
        self.until_none(&self.returning).await;
    }

    /// Waits until there are none of these; but not for places that are not served.
    async fn until_none(&self, open: &watch::Sender<u64>) {
        let mut open = open.subscribe();
        tokio::select! {
            // It is there as long as this is.
            _ = open.wait_for(|open| *open == 0) => {}
            () = self.places.until_some_unserved() => {}
        }
    }
}

/// How a queue is defined, as facts: for whoever finds its places when definitions are lost.
fn definition_of(broker: &Broker, queue: QueueId) -> Vec<u8> {
    let facts = || {
        let (vhost, name) = (broker.vhost_of(queue)?, Arc::clone(broker.name(queue)?));
        let settings = Box::new(broker.own_settings(vhost, &name).ok()?.clone());
        let identity = broker.view(Time(0), vhost, &name).ok()?.identity;
        let there = Arc::clone(broker.vhost_name(vhost)?);
        let there = Fact::VhostStored { vhost, name: there, settings: Box::default() };
        Some([there, Fact::QueueStored { queue, vhost, name, settings, identity, next_seq: Seq(1) }])
    };
    let mut definition = Vec::new();
    facts().iter().flatten().for_each(|fact| encode(fact, Content::None, &mut definition));
    definition
}

fn terms(name: &Arc<str>, settings: &Settings, common: Common) -> Terms {
    Terms::new(Arc::clone(name), settings, common.default_ttl_ms, common.max_message_bytes)
}

tokio::task_local! {
    /// When the request that is being answered is given up.
    static GIVEN_UP_AT: Instant;
}

/// Until when a call is waited for: as long as the request that it is made for, if that has [one deadline](within_one_deadline).
pub(super) fn deadline() -> Instant {
    GIVEN_UP_AT.try_with(|at| *at).unwrap_or_else(|_| Instant::now() + PATIENCE)
}

/// Does something whose calls all have the same deadline, so that a request waits once for servers that do not answer, and not once for each of its calls. What goes through all
/// messages of a queue, call by call, is not done so.
pub(super) async fn within_one_deadline<T>(work: impl Future<Output = T>) -> T {
    GIVEN_UP_AT.scope(deadline(), work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_calls_of_a_request_have_its_deadline() {
        let second = Duration::from_secs(1);
        let begun = Instant::now();
        let both = within_one_deadline(async {
            let first = deadline();
            tokio::time::advance(second).await;
            (first, within_one_deadline(async { deadline() }).await)
        });
        assert_eq!(both.await, (begun + PATIENCE, begun + PATIENCE));
        assert_eq!(deadline(), begun + second + PATIENCE, "each by itself has its own");
    }
}
