//! Endpoints: forwarders at work on queues of the world, over links that fail, to receivers that keep what they got.
//!
//! ```text
//!   Forwarder ─ actions ─▶ runner ─ as a session ─▶ inbox          receiver: outlives every crash
//!       ▲                    │ ▲                                       ▲
//!       └──── what came ─────┘ └── answers, a little later             │
//!                            └── line ─ one message at a time ─────────┘    Ledger: what the receiver may have, and when
//! ```
//!
//! When the engine dies its forwarders die with it; the next life makes new ones, as a process does that is started again.

mod calm;
mod habits;
mod ledger;
mod line;
mod runner;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_engine::core::{Answer, Request};
use overtake_engine::{LeasedMessage, Refused};
use overtake_forward::{Forwarder, Terms};
use overtake_lane::{Command, ConsumerId, Outcome, Receipt, SessionId, VhostId};

use crate::failure::{Checked, Promise, hold};
use crate::plan::Plan;
use crate::rng::Rng;
use crate::world::{Event, World};
pub(crate) use habits::queue_settings;
use habits::{Habits, Mood};
use ledger::Ledger;
use line::{Line, Link};

/// All endpoints of a world.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    /// `None` while one is looked after.
    all: Vec<Option<Box<Endpoint>>>,
}

/// One endpoint, and the receiver behind it.
#[derive(Debug)]
struct Endpoint {
    queue: Arc<str>,
    terms: Terms,
    habits: Habits,
    mood: Mood,
    /// When the receiver is in another mood, µs.
    mood_ends: u64,
    /// Somebody has paused it, or the receiver said that it is gone; resumed then, µs.
    paused_until: Option<u64>,
    ledger: Ledger,
    running: Option<Running>,
    wakes_at: Option<u64>,
    /// It has sent all there was, and stops.
    is_retired: bool,
}

/// What dies with the engine.
#[derive(Debug)]
struct Running {
    session: SessionId,
    forwarder: Forwarder,
    lines: Vec<Line>,
    /// What is leased and not settled.
    held: BTreeMap<Receipt, Held>,
    /// What it asked and has no answer to.
    open: BTreeMap<u64, Open>,
    /// Answers that have not been looked at.
    heard: Vec<(u64, Result<Answer, Refused>)>,
    next_token: u64,
    /// The use of the day as it was written down last.
    remembered: (u64, u64),
}

/// A message in hand.
#[derive(Clone, Debug)]
struct Held {
    message: LeasedMessage,
    line: usize,
    /// In the order in which the forwarder was told.
    nth: u64,
    /// It was sent, or was over when it was to be.
    is_begun: bool,
}

/// A request that is not answered.
#[derive(Clone, Debug)]
enum Open {
    Lease {
        line: usize,
        consumer: ConsumerId,
        /// Nobody waits for it any more.
        is_given_up: bool,
    },
    GiveUp,
    Settle {
        receipt: Receipt,
        outcome: Outcome,
    },
    Other,
}

impl Endpoints {
    pub(crate) fn draw(plan: &Plan, rng: &mut Rng) -> Self {
        let endpoint = |n| {
            let (terms, habits) = (habits::terms(rng), Habits::draw(rng));
            terms.check().expect("drawn terms hold");
            Some(Box::new(Endpoint {
                queue: format!("e{n}").into(),
                terms,
                habits,
                mood: Mood::Fair,
                mood_ends: 0,
                paused_until: None,
                ledger: Ledger::default(),
                running: None,
                wakes_at: None,
                is_retired: false,
            }))
        };
        Self { all: (0..plan.endpoints).map(endpoint).collect() }
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = &Arc<str>> {
        self.all.iter().flatten().map(|one| &one.queue)
    }

    fn running(&self) -> impl Iterator<Item = (usize, &Running)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(at, one)| Some((at, one.as_ref()?.running.as_ref()?)))
    }

    /// Whose session it is.
    pub(crate) fn of(&self, session: SessionId) -> Option<usize> {
        self.running().find(|(_, running)| running.session == session).map(|(at, _)| at)
    }

    /// Somebody has a message now, and with it its place.
    pub(crate) fn lent(&mut self, receipt: &Receipt) {
        for one in self.all.iter_mut().flatten() {
            one.ledger.lent(receipt);
        }
    }

    /// The engine is gone, and with it every forwarder.
    pub(crate) fn die(&mut self) {
        for one in self.all.iter_mut().flatten() {
            one.running = None;
            one.paused_until = None;
            one.ledger.crashed();
        }
    }
}

impl World {
    // ---- its life ----

    /// The engine runs: so do its endpoints.
    pub(crate) fn start_endpoints(&mut self) {
        for at in 0..self.endpoints.all.len() {
            let Some(mut one) = self.endpoints.all[at].take() else { continue };
            if !one.is_retired {
                one.running = Some(self.new_running(&one));
            }
            self.endpoints.all[at] = Some(one);
            self.wake_endpoint(at, 1);
        }
    }

    fn new_running(&mut self, one: &Endpoint) -> Running {
        self.next_session += 1;
        let mut forwarder = Forwarder::new(one.terms.clone(), self.chance.endpoints.next());
        let remembered = self.remembered_budget(one).unwrap_or_default();
        if remembered != (0, 0) {
            forwarder.restore_budget(remembered.0, remembered.1);
        }
        Running {
            session: SessionId(self.next_session),
            forwarder,
            lines: (0..one.terms.fan_out).map(|_| Line::default()).collect(),
            held: BTreeMap::new(),
            open: BTreeMap::new(),
            heard: Vec::new(),
            next_token: 0,
            remembered,
        }
    }

    /// An answer for an endpoint reaches it soon.
    pub(crate) fn tell_endpoint(&mut self, at: usize, token: Option<u64>, result: Result<Answer, Refused>) {
        let running = self.endpoints.all[at].as_mut().and_then(|one| one.running.as_mut());
        if let Some((running, token)) = running.zip(token) {
            running.heard.push((token, result));
            let after = self.chance.endpoints.heavy(8);
            self.wake_endpoint(at, after);
        }
    }

    /// It is looked after so many µs from now, or before.
    fn wake_endpoint(&mut self, at: usize, after_us: u64) {
        let when = self.now_us + after_us;
        let Some(one) = self.endpoints.all[at].as_mut() else { return };
        if one.wakes_at.is_none_or(|planned| planned > when) {
            one.wakes_at = Some(when);
            self.at(after_us, Event::Endpoint(at));
        }
    }

    /// Whatever there is to do now for an endpoint is done.
    pub(crate) fn look_after(&mut self, at: usize) -> Checked {
        let Some(mut one) = self.endpoints.all[at].take() else { return Ok(()) };
        // One that was planned sooner has taken its place.
        let is_due = one.wakes_at.take_if(|planned| *planned <= self.now_us).is_some();
        let done = if is_due { self.goes_on(&mut one) } else { Ok(()) };
        let next = if is_due { self.next_look(&mut one) } else { None };
        self.endpoints.all[at] = Some(one);
        if let Some(when) = next {
            self.wake_endpoint(at, when.saturating_sub(self.now_us).max(1));
        }
        done
    }

    fn goes_on(&mut self, one: &mut Endpoint) -> Checked {
        self.weather(one)?;
        let Some(running) = &mut one.running else { return Ok(()) };
        for (token, result) in std::mem::take(&mut running.heard) {
            self.hear_endpoint(one, token, result)?;
            self.carry_out(one)?;
        }
        self.carry_out(one)?;
        while let Some(line) = one.due_line(self.now_us) {
            self.line_moves(one, line)?;
            self.carry_out(one)?;
        }
        self.check_hand(one)?;
        let now = self.clock();
        let Some(running) = &mut one.running else { return Ok(()) };
        hold(running.forwarder.wakes_at(now) > now, Promise::Awake, || {
            format!("the forwarder of {} wants to be asked again at once, for nothing", one.queue)
        })
    }

    /// When it must be looked after next, µs.
    fn next_look(&self, one: &mut Endpoint) -> Option<u64> {
        let mood_ends = (!self.is_calm).then_some(one.mood_ends);
        let lines = one.running.iter().flat_map(|running| running.lines.iter()).filter_map(Line::due);
        let first = lines.chain(mood_ends).chain(one.paused_until).min();
        let now = self.clock();
        let wakes = one.running.as_mut().and_then(|running| running.forwarder.wakes_at(now).some());
        let wakes = wakes.map(|at| {
            let after_us = at.since(now).saturating_mul(1_000).saturating_sub(self.now_us % 1_000);
            self.now_us.saturating_add(after_us.min(1 << 50))
        });
        first.into_iter().chain(wakes).min()
    }

    // ---- what happens to it ----

    /// The receiver is in another mood; somebody pauses the endpoint, or resumes it.
    fn weather(&mut self, one: &mut Endpoint) -> Checked {
        if one.paused_until.is_some_and(|until| until <= self.now_us || self.is_calm) {
            one.paused_until = None;
            self.count_endpoint("resumed");
            self.tell(|| format!("{} is resumed", one.queue));
            let now = self.clock();
            if let Some(running) = &mut one.running {
                running.forwarder.resume(now);
            }
        }
        if self.is_calm {
            one.mood = Mood::Fair;
            return Ok(());
        }
        if self.now_us < one.mood_ends {
            return Ok(());
        }
        let rng = &mut self.chance.endpoints;
        one.mood = Mood::draw(rng);
        let (lasts, pauses) = (self.plan.pace_us * rng.within(2, 60), rng.once_in(10));
        one.mood_ends = self.now_us + lasts;
        self.tell(|| format!("the receiver of {} is {:?} from now on", one.queue, one.mood));
        if pauses && one.paused_until.is_none() && one.running.is_some() {
            self.pause(one);
        }
        if one.mood == Mood::Down {
            self.cut_lines(one)?;
        }
        self.remember_budget(one);
        Ok(())
    }

    fn pause(&mut self, one: &mut Endpoint) {
        self.count_endpoint("paused");
        self.tell(|| format!("{} is paused", one.queue));
        one.paused_until = Some(self.now_us + self.chance.endpoints.within(1, self.plan.pace_us * 60));
        if let Some(running) = &mut one.running {
            running.forwarder.pause();
        }
    }

    // ---- its day ----

    fn budget_key(one: &Endpoint) -> String {
        format!("endpoint/{}/budget", one.queue)
    }

    /// What the day had used when that was written down last.
    fn remembered_budget(&self, one: &Endpoint) -> Option<(u64, u64)> {
        let life = self.life.as_ref().filter(|_| one.terms.daily_bytes > 0)?;
        let key = Self::budget_key(one);
        let (_, value) = life.core.broker().metadata().find(|(name, _)| ***name == *key)?;
        let (day, used) = std::str::from_utf8(value).ok()?.split_once(' ')?;
        Some((day.parse().ok()?, used.parse().ok()?))
    }

    fn remember_budget(&mut self, one: &mut Endpoint) {
        let Some(running) = &mut one.running else { return };
        let (day, used) = running.forwarder.budget();
        if one.terms.daily_bytes == 0 || running.remembered == (day, used) {
            return;
        }
        running.remembered = (day, used);
        let value = format!("{day} {used}");
        let entry = overtake_lane::MetadataEntry::set(&Self::budget_key(one), value.as_bytes());
        self.ask_for(one, Open::Other, Request::Do(Command::SetMetadata { entries: vec![entry] }));
    }

    // ---- what others know of it ----

    /// Sessions of endpoints.
    pub(crate) fn endpoint_sessions(&self) -> BTreeSet<SessionId> {
        self.endpoints.running().map(|(_, running)| running.session).collect()
    }

    /// The queue of an endpoint, where there are some, now and then.
    pub(crate) fn some_forwarded(&mut self, once_in: u64) -> Option<Arc<str>> {
        if self.plan.endpoints == 0 || self.here != VhostId::DEFAULT {
            return None;
        }
        let rng = &mut self.chance.endpoints;
        let at = rng.once_in(once_in).then(|| rng.below(self.plan.endpoints) as usize)?;
        self.endpoints.queues().nth(at).cloned()
    }

    fn count_endpoint(&mut self, what: &'static str) {
        *self.tally.endpoints.entry(what).or_default() += 1;
    }
}

impl Endpoint {
    /// A line on which something has come to its end.
    fn due_line(&self, now_us: u64) -> Option<usize> {
        let lines = &self.running.as_ref()?.lines;
        lines.iter().position(|line| line.due().is_some_and(|due| due <= now_us))
    }
}

impl Running {
    fn is_up(&self) -> bool {
        self.lines.iter().any(|line| matches!(line.link, Link::Up(_)))
    }
}
