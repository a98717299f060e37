//! A queue in several places, merged by their heads.
//!
//! ```text
//!   admit ──▶ a place, which says its head ─▶ heads ─▶ pick ─▶ claim at the place, no further than the next best head ─▶ leases
//!                │ a better head                ▲                         │
//!                └── pushed to every process ───┘◀── what it shows now ───┘
//! ```
//!
//! Who wants several messages claims at several places at once (`wave`).
//!
//! There is no leader. Every process keeps the heads of all places as hints, and claims at the place, where the truth is: a hint that is not true any more costs an
//! order that is off for as long as a push takes, never a message given twice. What is pushed may be lost: places are looked at again at an interval, and when
//! something happens there by itself.

mod away;
mod heads;
mod hearing;
mod lease;
mod numbers;
mod slots;
mod tally;
mod wave;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use overtake_lane::{Head, PlaceNumber};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use self::away::Away;
use self::heads::Heads;
use self::hearing::Hearing;
pub use self::lease::Given;
use self::numbers::Numbers;
use self::slots::Slots;
pub use self::tally::Tally;
use crate::cluster::{Call, CallError, Cluster, Heard, Slot};
use crate::functions::{
    self, Asked, Configure, Configured, Declined, Forget, GiveBackSlots, Leasing, Malformed, Of, Peek, Ready,
    Said, Sweep, Terms, Told,
};

/// Why nothing came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// The servers did not do it, or it is not known.
    Call(CallError),
    /// What they said is none of this version's answers.
    Malformed,
    /// There is no such place.
    Gone,
    /// It is of another queue, which is this.
    Another(String),
    /// These places are not served, and what is wrong with a server; the others were asked.
    Unserved(Vec<PlaceNumber>, Option<String>),
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Malformed => Malformed.fmt(f),
            Self::Gone => f.write_str("the queue is not there any more"),
            Self::Unserved(places, why) => {
                let places: Vec<_> = places.iter().map(ToString::to_string).collect();
                let (s, are) = if places.len() == 1 { ("", "is") } else { ("s", "are") };
                write!(f, "partition{s} {} {are} not served", places.join(", "))?;
                why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
            }
            Self::Another(of) => write!(
                f,
                "a partition holds messages of another queue ({of}), whose definition was lost: see `overtake cluster orphans`"
            ),
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
    /// Something has left it, and is to be carried elsewhere.
    is_left: AtomicBool,
}

/// What holds at the places, as it was said last.
#[derive(Debug)]
struct Rule {
    version: u64,
    said: Said,
    queue: Vec<u8>,
    /// Of each place, as [`Terms::json`] says them.
    terms: Vec<Arc<str>>,
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
    /// Whose places they are.
    of: Of,
    terms: Mutex<Arc<Terms>>,
    places: Vec<Place>,
    heads: Heads,
    hearing: Hearing,
    slots: Slots,
    /// Something happens in a place earlier than was known.
    sooner: Arc<Notify>,
    /// Something has left a place.
    left: Notify,
    tally: Arc<Tally>,
    /// In how many places the last wave found what it gave.
    breadth: AtomicUsize,
    /// A process consumes no more, or it was not heard whether one does.
    attendance: Notify,
    rule: Mutex<Option<Arc<Rule>>>,
    /// Places that are not served.
    away: watch::Sender<Away>,
    me: Weak<Self>,
    /// What listens and looks, as long as this is there.
    keepers: Mutex<Vec<AbortHandle>>,
}

impl Places {
    /// So many places of a queue that is known by this number and is this, asked by somebody whom nobody else is called. They are listened to, and looked at: at least every `sweep`.
    /// What holds there is said by [`Places::configure`]. `tally` is that of the process.
    #[must_use]
    pub fn new(
        cluster: Arc<Cluster>,
        (queue, of): (u32, Of),
        count: PlaceNumber,
        terms: Terms,
        (caller, tally): (String, Arc<Tally>),
        sweep: Duration,
    ) -> Arc<Self> {
        let place = |number| Place {
            base: base_of(queue, number),
            numbers: Numbers::new(),
            wakes: Mutex::default(),
            is_left: AtomicBool::new(false),
        };
        let places: Vec<Place> = (0..count).map(place).collect();
        let heads = Heads::new(places.len(), &terms, Arc::clone(&tally));
        let hearing = Hearing::new(places.len());
        let (sooner, keepers, left) = (Arc::default(), Mutex::default(), Notify::new());
        let terms = Mutex::new(Arc::new(terms));
        let slots = Slots::default();
        let all = Arc::new_cyclic(|me| Self {
            me: me.clone(),
            away: watch::Sender::default(),
            rule: Mutex::default(),
            cluster,
            caller,
            of,
            terms,
            places,
            heads,
            hearing,
            slots,
            sooner,
            left,
            tally,
            breadth: AtomicUsize::new(1),
            keepers,
            attendance: Notify::new(),
        });
        all.keep(sweep);
        all
    }

    /// Has these terms hold at every place from now on, which is made where it is not there; unless a later version holds. `sharing` says of a place that is one of several how many
    /// share what the queue may hold with it; `queue` is for [`Configure::queue`]. Places that are not served are told once they are. Answers the latest version that holds at one of them.
    ///
    /// # Errors
    /// [`NotDone`], of the first place where that cannot be done; else why a place declines.
    pub async fn configure(
        &self,
        terms: Terms,
        sharing: &(dyn Fn(PlaceNumber) -> Option<u16> + Sync),
        (version, said, queue): (u64, Said, &[u8]),
        deadline: Instant,
    ) -> Result<Result<u64, Declined>, NotDone> {
        let mut shares: BTreeMap<Option<u16>, Arc<str>> = BTreeMap::new();
        let mut share = |place| {
            let json = |others| terms.clone().of_several(others).json();
            let (sharing, whole) = (sharing(place), || terms.json());
            Arc::clone(shares.entry(sharing).or_insert_with(|| sharing.map_or_else(whole, json).into()))
        };
        let terms_of = (0..self.count()).map(&mut share).collect();
        let rule = Arc::new(Rule { version, said, queue: queue.to_vec(), terms: terms_of });
        self.hearing.until_all(HEARING_PATIENCE).await;
        *self.rule.lock().expect("nobody panics with it") = Some(Arc::clone(&rule));
        let told = together((0..self.count()).map(|place| self.tell_rule(place, &rule, deadline))).await;
        let told: Vec<_> = told.into_iter().collect::<Result<_, _>>()?;
        let told: Vec<_> = told.into_iter().flatten().collect();
        if told.is_empty() {
            return Err(self.unserved().unwrap_or(NotDone::Gone));
        }
        let holds: Result<Vec<u64>, Declined> =
            told.into_iter().map(|told| told.map(|configured| configured.version)).collect();
        Ok(holds.map(|versions| {
            self.heads.configure(&terms);
            self.slots.freed();
            *self.terms.lock().expect("nobody panics with it") = Arc::new(terms);
            versions.into_iter().max().unwrap_or(version)
        }))
    }

    /// Says to a place what holds. `None`: it is not served, and told once it is.
    async fn tell_rule(
        &self,
        place: PlaceNumber,
        rule: &Rule,
        deadline: Instant,
    ) -> Result<Option<Result<Configured, Declined>>, NotDone> {
        let Rule { version, said, queue, terms } = rule;
        let queue = if place == 0 { &queue[..] } else { &[] };
        let configure = Configure { version: *version, terms: &terms[place as usize], said: *said, queue };
        tokio::select! {
            told = self.ask(place, &configure, deadline) => told.map(Some),
            () = self.until_away(place) => Ok(None),
        }
    }

    /// Leaves nothing of so many places of a queue, as far as they are its own, which is not there from this version of the definitions on.
    ///
    /// # Errors
    /// [`NotDone`], of the first place where that cannot be done.
    pub async fn forget(
        cluster: &Cluster,
        (queue, of): (u32, &Of),
        count: PlaceNumber,
        version: u64,
        deadline: Instant,
    ) -> Result<(), NotDone> {
        let calls = (0..count).map(|place| Forget { version }.call_of(&base_of(queue, place), of.as_str()));
        for done in cluster.calls(deadline, calls.collect()).await {
            done?;
        }
        Ok(())
    }

    /// What holds, as this process last said it.
    #[must_use]
    pub fn terms(&self) -> Arc<Terms> {
        Arc::clone(&self.terms.lock().expect("nobody panics with it"))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> PlaceNumber {
        self.places.len() as PlaceNumber
    }

    /// Whether the server of a place has no memory for messages.
    #[must_use]
    pub fn is_full(&self, place: PlaceNumber) -> bool {
        self.cluster.is_full(Slot::of(self.places[place as usize].base.as_bytes()))
    }

    /// What was done with places, by all who count there.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
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
        let (calls, heads, what) = self.call(place, ask, deadline).await?;
        self.heads.tell(place, calls, heads);
        Ok(what)
    }

    async fn call<A: Asked>(
        &self,
        place: PlaceNumber,
        ask: &A,
        deadline: Instant,
    ) -> Result<(u64, Vec<Head>, A::Answer), NotDone> {
        let there = &self.places[place as usize];
        let number = there.numbers.take().await;
        let call = functions::Call { of: self.of.as_str(), caller: &self.caller, number: Some(number.value) };
        let args = ask.all_arguments(call).into_iter().map(Bytes::from).collect();
        let call = Call { is_promise: A::IS_PROMISE, ..Call::write_below(ask.function(), &there.base, args) };
        let value = self.cluster.call(deadline, call).await?;
        match Told::read(&value, |what| ask.read(what)).map_err(|Malformed| NotDone::Malformed)? {
            Told::Done { now, wakes_at, heads, what, calls, leaving, slots } => {
                // Whoever leases or asks for slots has what becomes free.
                let is_freed = self.slots.say(place, calls, &slots);
                if is_freed && ![Leasing::FUNCTION, GiveBackSlots::FUNCTION].contains(&A::FUNCTION) {
                    self.slots.freed();
                    self.heads.show_again();
                }
                match (there.is_left.swap(leaving, Ordering::Relaxed), leaving) {
                    (false, true) => drop(self.tally.left.fetch_add(1, Ordering::Relaxed)),
                    (true, false) => drop(self.tally.left.fetch_sub(1, Ordering::Relaxed)),
                    _ => {}
                }
                if leaving {
                    self.left.notify_one();
                }
                let at = wakes_at.map(|at| Instant::now() + Duration::from_millis(at.since(now)));
                if there.wakes.lock().expect("nobody panics with it").say(calls, at) {
                    self.sooner.notify_one();
                }
                Ok((calls, heads, what))
            }
            Told::Another(of) => Err(NotDone::Another(of)),
            Told::Gone => Err(NotDone::Gone),
        }
    }

    /// Asks every place the same, at once. Answers what each says, in their order.
    ///
    /// # Errors
    /// [`NotDone`], of the first place of which there is no answer.
    pub async fn ask_all<A: Asked>(&self, ask: &A, deadline: Instant) -> Result<Vec<A::Answer>, NotDone> {
        together((0..self.count()).map(|place| self.ask(place, ask, deadline))).await.into_iter().collect()
    }

    /// The places that something has left which is to be carried elsewhere.
    #[must_use]
    pub fn left(&self) -> Vec<PlaceNumber> {
        let all = (0..self.count()).zip(&self.places);
        all.filter(|(_, place)| place.is_left.load(Ordering::Relaxed)).map(|(place, _)| place).collect()
    }

    /// Ends when something has left a place.
    pub async fn until_left(&self) {
        self.left.notified().await;
    }

    /// Ends once a place shows something better than it did when this was called and first polled, or enabled.
    pub fn better(&self) -> Notified<'_> {
        self.heads.better()
    }

    /// Ends once a process consumes no more, or might not, since this was called and first polled, or enabled.
    pub fn attendance(&self) -> Notified<'_> {
        self.attendance.notified()
    }

    /// What places showed and did not give is asked for again: somebody has come who may take what others may not.
    pub fn show_again(&self) {
        self.heads.show_again();
    }

    /// Hears of a place what it may have pushed unheard. Of several it is only looked at, which costs servers half as much and replicas nothing: a connection that is lost leaves all of them unheard. But
    /// where slots are free calls alone say.
    async fn look_again(&self, place: PlaceNumber) -> Result<(), NotDone> {
        let deadline = Instant::now() + PATIENCE;
        if self.count() == 1 || self.terms().is_limited() {
            return self.ask(place, &Sweep, deadline).await;
        }
        self.peek(place, Peek { most: 1, from: None }, deadline).await.map(drop)
    }

    /// What goes next at a place, seen and not taken. What it shows is known from then on.
    async fn peek(&self, place: PlaceNumber, peek: Peek, deadline: Instant) -> Result<Vec<Ready>, NotDone> {
        let value = self
            .cluster
            .call(deadline, peek.call(&self.places[place as usize].base, self.of.as_str()))
            .await?;
        let seen = Peek::read(&value).map_err(|Malformed| NotDone::Malformed)?.ok_or(NotDone::Gone)?;
        self.heads.tell(place, seen.calls, seen.heads);
        Ok(seen.ready)
    }

    /// Listens to every place, and looks at it again and again.
    fn keep(self: &Arc<Self>, sweep: Duration) {
        let mut keepers = self.keepers.lock().expect("nobody panics with it");
        for place in 0..self.count() {
            keepers.push(tokio::spawn(listen(Arc::downgrade(self), place)).abort_handle());
        }
        keepers.push(tokio::spawn(look(Arc::downgrade(self), sweep)).abort_handle());
        keepers.push(tokio::spawn(away::follow(Arc::downgrade(self))).abort_handle());
    }

    /// Has happen what was to happen by itself. Where the place is not served, that is when it is again.
    async fn wake(&self, place: PlaceNumber) {
        let asked = tokio::select! {
            asked = self.ask(place, &Sweep, Instant::now() + PATIENCE) => asked.is_ok(),
            () = self.until_away(place) => false,
        };
        if !asked {
            // Else it would be due for ever.
            self.places[place as usize].wakes.lock().expect("nobody panics with it").at = None;
        }
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
        self.tally.left.fetch_sub(self.left().len(), Ordering::Relaxed);
    }
}

/// With what all keys of a place begin.
pub(crate) fn base_of(queue: u32, place: PlaceNumber) -> String {
    format!("{{{queue}:{place}}}")
}

/// Each of these, at once; in their order.
pub(crate) async fn together<F: Future>(all: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut open: Vec<_> = all.into_iter().map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_over = true;
        for (one, done) in &mut open {
            if done.is_none() {
                match one.as_mut().poll(context) {
                    Poll::Ready(output) => *done = Some(output),
                    Poll::Pending => is_over = false,
                }
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    open.into_iter().filter_map(|(_, done)| done).collect()
}

/// Longest that a claim waits for its place once nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest that whoever is to ask all places waits until they are heard.
const HEARING_PATIENCE: Duration = Duration::from_millis(500);

/// Hears of better heads of a place, as they are pushed.
async fn listen(places: Weak<Places>, place: PlaceNumber) {
    let Some(channel) = places.upgrade().map(|all| format!("{}:heads", all.places[place as usize].base))
    else {
        return;
    };
    let Some(cluster) = places.upgrade().map(|all| Arc::clone(&all.cluster)) else { return };
    let mut heard = cluster.subscribe(channel.into()).await;
    drop(cluster);
    let mut is_first = true;
    while let Some(what) = heard.next().await {
        let Some(all) = places.upgrade() else { return };
        match what {
            Heard::Message(pushed) if *pushed == *b"a" => all.attendance.notify_waiters(),
            Heard::Message(pushed) => {
                let (heads, is_freed) = match pushed.split_last() {
                    Some((b'f', heads)) if heads.len() % 8 == 0 => (heads, true),
                    _ => (&pushed[..], false),
                };
                if let Some((heads, calls)) = heads.split_last_chunk()
                    && let Ok(heads) = functions::read_heads(heads)
                {
                    all.heads.tell(place, u64::from_be_bytes(*calls), heads);
                }
                if is_freed {
                    all.slots.freed();
                    all.heads.show_again();
                }
            }
            // What was missed is asked for; if not now, then at the next look.
            Heard::Gap => {
                all.attendance.notify_waiters();
                if !std::mem::take(&mut is_first) || all.hearing.begins() {
                    drop(all.look_again(place).await);
                }
            }
        }
    }
}

/// Looks at places in which something happens by itself, and at all of them every so often.
async fn look(places: Weak<Places>, sweep: Duration) {
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
            let _ = all.ask_served(&Sweep, now + PATIENCE).await;
            continue;
        }
        together(all.due(now).into_iter().map(|place| all.wake(place))).await;
    }
}
