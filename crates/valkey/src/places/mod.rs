//! A queue in several places, merged by their heads.
//!
//! ```text
//!   admit ──▶ a place, which says its head ─▶ heads ─▶ pick ─▶ claim at the place, no further than the next best head ─▶ leases
//!                │ a better head                ▲                         │
//!                └── pushed to every process ───┘◀── what it shows now ───┘
//! ```
//!
//! There is no leader. Every process keeps the heads of all places as hints, and claims at the place, where the truth is: a hint that is not true any more costs an
//! order that is off for as long as a push takes, never a message given twice. What is pushed may be lost: places are looked at again at an interval, and when
//! something happens there by itself.

mod heads;
mod numbers;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use overtake_lane::PlaceNumber;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use self::heads::Heads;
pub use self::heads::Order;
use self::numbers::Numbers;
use crate::cluster::{Call, CallError, Cluster, Heard};
use crate::functions::{self, Asked, Configure, Leasing, Malformed, Said, Shown, Sweep, Terms, Told, Where};

/// Why nothing came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// The servers did not do it, or it is not known.
    Call(CallError),
    /// What they said is none of this version's answers.
    Malformed,
    /// Other settings hold at the place, of this version.
    Version(u64),
    /// There is no such place.
    Gone,
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Malformed => Malformed.fmt(f),
            Self::Version(version) => write!(f, "other settings hold there by now (version {version})"),
            Self::Gone => f.write_str("the queue is not there any more"),
        }
    }
}

impl std::error::Error for NotDone {}

impl From<CallError> for NotDone {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// One place.
#[derive(Debug)]
struct Place {
    base: String,
    numbers: Numbers,
    /// When something happens there by itself.
    wakes: Mutex<Wakes>,
}

/// When something happens in a place by itself, as the last of its calls has said it.
#[derive(Clone, Copy, Debug, Default)]
struct Wakes {
    calls: u64,
    at: Option<Instant>,
}

impl Wakes {
    /// What a call says, unless a later one has spoken already. True: it is sooner than was known.
    fn say(&mut self, calls: u64, at: Option<Instant>) -> bool {
        if calls <= self.calls {
            return false;
        }
        let before = std::mem::replace(self, Self { calls, at }).at;
        at.is_some_and(|at| before.is_none_or(|before| at < before))
    }
}

/// The places of a queue.
pub struct Places {
    cluster: Arc<Cluster>,
    /// Who calls: a name that no other process has.
    caller: String,
    terms: Terms,
    version: AtomicU64,
    places: Vec<Place>,
    heads: Heads,
    /// Something happens in a place earlier than was known.
    sooner: Arc<Notify>,
    /// What listens and looks, as long as this is there.
    keepers: Mutex<Vec<AbortHandle>>,
}

/// A message that was leased.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where it is.
    pub place: PlaceNumber,
    /// The message.
    pub shown: Shown,
}

impl Places {
    /// So many places of a queue that is known by this number, with these terms and their version, asked by somebody whom nobody else is called. They are made where
    /// they are not there, looked at, and kept an eye on: at least every `sweep`.
    ///
    /// # Errors
    /// [`NotDone`], of the first place that cannot be had.
    pub async fn open(
        cluster: Arc<Cluster>,
        queue: u32,
        count: PlaceNumber,
        (terms, version): (&Terms, u64),
        caller: String,
        sweep: Duration,
        deadline: Instant,
    ) -> Result<Arc<Self>, NotDone> {
        let place = |number| Place {
            base: format!("{{{queue}:{number}}}"),
            numbers: Numbers::new(),
            wakes: Mutex::default(),
        };
        let places: Vec<Place> = (0..count).map(place).collect();
        let heads = Heads::new(places.len());
        let keepers = Mutex::default();
        let terms = terms.clone();
        let all = Arc::new(Self {
            cluster,
            caller,
            terms,
            version: AtomicU64::new(0),
            places,
            heads,
            sooner: Arc::default(),
            keepers,
        });
        let configure = Configure { version, terms: &all.terms, said: Said::Declared };
        all.ask_all(&configure, deadline).await?;
        all.version.store(version, Ordering::Release);
        all.keep(sweep);
        Ok(all)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> PlaceNumber {
        self.places.len() as PlaceNumber
    }

    /// How well the order over them was kept, by what this process knew.
    #[must_use]
    pub fn order(&self) -> Order {
        self.heads.counts()
    }

    /// Asks one place.
    ///
    /// # Errors
    /// [`NotDone`].
    pub async fn ask<A: Asked>(
        &self,
        place: PlaceNumber,
        ask: &A,
        deadline: Instant,
    ) -> Result<A::Answer, NotDone> {
        let (calls, head, what) = self.call(place, ask, deadline).await?;
        self.heads.tell(place, calls, head);
        Ok(what)
    }

    async fn call<A: Asked>(
        &self,
        place: PlaceNumber,
        ask: &A,
        deadline: Instant,
    ) -> Result<(u64, Option<Where>, A::Answer), NotDone> {
        let there = &self.places[place as usize];
        let number = there.numbers.take().await;
        let version = Some(self.version.load(Ordering::Acquire)).filter(|version| *version > 0);
        let call = functions::Call { version, caller: &self.caller, number: Some(number.value) };
        let args = ask.all_arguments(call).into_iter().map(Bytes::from).collect();
        let call = Call::write(A::FUNCTION, vec![there.base.clone().into()], args);
        let value = self.cluster.call(deadline, call).await?;
        match Told::read(&value, |what| ask.read(what)).map_err(|Malformed| NotDone::Malformed)? {
            Told::Done { now, wakes_at, head, what, calls, .. } => {
                let at = wakes_at.map(|at| Instant::now() + Duration::from_millis(at.since(now)));
                if there.wakes.lock().expect("nobody panics with it").say(calls, at) {
                    self.sooner.notify_one();
                }
                Ok((calls, head, what))
            }
            Told::Version(version) => Err(NotDone::Version(version)),
            Told::Gone => Err(NotDone::Gone),
        }
    }

    /// Asks every place the same, at once.
    async fn ask_all<A: Asked>(&self, ask: &A, deadline: Instant) -> Result<(), NotDone> {
        let mut asked: Vec<_> =
            (0..self.count()).map(|place| Box::pin(self.ask(place, ask, deadline))).collect();
        let mut done = Vec::with_capacity(asked.len());
        std::future::poll_fn(|context| {
            asked.retain_mut(|one| match one.as_mut().poll(context) {
                std::task::Poll::Ready(answer) => {
                    done.push(answer.map(drop));
                    false
                }
                std::task::Poll::Pending => true,
            });
            if asked.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        done.into_iter().collect()
    }

    /// Leases what goes next over all places, or waits for the first until then. Of one place no more is taken at once than goes before what the others show.
    ///
    /// # Errors
    /// [`NotDone`]; what was leased and not answered is ready again once its time is over, or its holder is gone.
    pub async fn lease(&self, want: &Leasing, until: Instant) -> Result<Vec<Given>, NotDone> {
        loop {
            let better = self.heads.better();
            tokio::pin!(better);
            // From here on nothing better is missed.
            better.as_mut().enable();
            while let Some(claim) = self.heads.claim(want.choice.floor) {
                let place = claim.place;
                let choice = functions::Choice { last: claim.last, ..want.choice.clone() };
                let want = Leasing { choice, ..want.clone() };
                let (calls, head, shown) =
                    self.call(place, &want, until.max(Instant::now() + PATIENCE)).await?;
                let given: Vec<Where> = shown
                    .iter()
                    .map(|one| &one.stored.message)
                    .map(|message| Where::new(self.terms.level(message.priority), message.seq))
                    .collect();
                claim.told(calls, &given, head);
                if !shown.is_empty() {
                    return Ok(shown.into_iter().map(|shown| Given { place, shown }).collect());
                }
            }
            tokio::select! {
                () = &mut better => {}
                () = sleep_until(until) => return Ok(Vec::new()),
            }
        }
    }

    /// Listens to every place, and looks at it again and again.
    fn keep(self: &Arc<Self>, sweep: Duration) {
        let mut keepers = self.keepers.lock().expect("nobody panics with it");
        for place in 0..self.count() {
            keepers.push(tokio::spawn(listen(Arc::downgrade(self), place)).abort_handle());
        }
        keepers.push(tokio::spawn(look(Arc::downgrade(self), sweep)).abort_handle());
    }

    /// When something happens by itself in one of them.
    fn wakes(&self) -> Option<Instant> {
        self.places.iter().filter_map(|place| place.wakes.lock().expect("nobody panics with it").at).min()
    }

    /// Places in which something was to happen by itself by now.
    fn due(&self, now: Instant) -> Vec<PlaceNumber> {
        let is_due = |place: &Place| {
            place.wakes.lock().expect("nobody panics with it").at.is_some_and(|wakes| wakes <= now)
        };
        (0..self.count()).filter(|at| is_due(&self.places[*at as usize])).collect()
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for keeper in self.keepers.get_mut().expect("nobody panics with it") {
            keeper.abort();
        }
    }
}

/// Longest that a claim waits for its place once nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(5);

/// Hears of better heads of a place, as they are pushed.
async fn listen(places: std::sync::Weak<Places>, place: PlaceNumber) {
    let Some(channel) = places.upgrade().map(|all| format!("{}:heads", all.places[place as usize].base))
    else {
        return;
    };
    let Some(cluster) = places.upgrade().map(|all| Arc::clone(&all.cluster)) else { return };
    let mut heard = cluster.subscribe(channel.into()).await;
    drop(cluster);
    while let Some(what) = heard.next().await {
        let Some(all) = places.upgrade() else { return };
        match what {
            Heard::Message(head) => {
                if let Some((head, calls)) = head.split_first_chunk()
                    && let Ok(calls) = <[u8; 8]>::try_from(calls)
                {
                    all.heads.tell(place, u64::from_be_bytes(calls), Some(Where(*head)));
                }
            }
            // What was missed is asked for; if not now, then at the next look.
            Heard::Gap => drop(all.ask(place, &Sweep, Instant::now() + PATIENCE).await),
        }
    }
}

/// Looks at places in which something happens by itself, and at all of them every so often.
async fn look(places: std::sync::Weak<Places>, sweep: Duration) {
    let mut next = Instant::now() + sweep;
    let Some(sooner) = places.upgrade().map(|all| Arc::clone(&all.sooner)) else { return };
    loop {
        let Some(wakes) = places.upgrade().map(|all| all.wakes()) else { return };
        tokio::select! {
            () = sleep_until(wakes.map_or(next, |wakes| wakes.min(next))) => {}
            () = sooner.notified() => continue,
        }
        let Some(all) = places.upgrade() else { return };
        let now = Instant::now();
        if now >= next {
            next = now + sweep;
            let _ = all.ask_all(&Sweep, now + PATIENCE).await;
            continue;
        }
        for place in all.due(now) {
            if all.ask(place, &Sweep, now + PATIENCE).await.is_err() {
                // Else it would be due for ever.
                all.places[place as usize].wakes.lock().expect("nobody panics with it").at = None;
            }
        }
    }
}
