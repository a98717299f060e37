//! One world: a broker on a faulty disk, its clients, and the heap of what happens when.
//!
//! ```text
//!   clients ─▶ inbox ─▶ Core::handle ─▶ outs ──────────────▶ leases, told at once
//!      ▲                     └▶ batches ─▶ Committer ─▶ durable ─▶ confirms
//!      └───────────────────────────────────────────────────────────┘
//! ```
//!
//! Time is the world's, in µs; the engine sees a clock that jumps. Invariant: chance comes from the streams of the seed and
//! from nowhere else, so a seed is a story.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use overtake_engine::core::{Answer, Request};
use overtake_engine::{Clock, Options, Refused, SteadyClock, TimeSource, Watermarks};
use overtake_lane::{SessionId, Time, VhostId};
use overtake_store::{MemoryDisk, OnDamage};

use crate::amqp::Peers;
use crate::audit::Audit;
use crate::book::Book;
use crate::check::Checks;
use crate::client::Client;
use crate::endpoint::Endpoints;
use crate::failure::{Checked, Failure, Promise};
use crate::life::Life;
use crate::plan::{Fault, Plan};
use crate::rng::Rng;
use crate::sabotage::Sabotage;
use crate::tally::Tally;
use crate::trace::Trace;

/// When the world begins, ms since 1970.
const EPOCH_MS: u64 = 1_750_000_000_000;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A client does something.
    Act(usize),
    /// The engine's loop goes round.
    Turn,
    /// The oldest batch in flight is written and synced; of the life of this number.
    Commit(u64),
    /// The committer prepares a file.
    Prepare(u64),
    /// The next job beside the journal is done.
    Job(u64),
    /// The engine tries again to write segments.
    TryAgain(u64),
    /// The engine's alarm rings.
    Alarm,
    /// Something breaks.
    Break,
    /// The engine is started again.
    Start,
    /// The disk has room again.
    Relief,
    /// A client that speaks AMQP does something.
    Speak(usize),
    /// Bytes move on the wire of this session.
    Wire(SessionId),
    /// Something comes of what an endpoint does.
    Endpoint(usize),
}

/// How one run is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Acts of clients before the calm, instead of what the seed draws.
    pub steps: Option<u64>,
    /// Tell the story.
    pub told: bool,
    /// A bug to plant.
    pub sabotage: Option<Sabotage>,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// A hash of everything that happened.
    pub hash: u64,
    /// How much happened.
    pub tally: Tally,
    /// The promise that was broken, if one was.
    pub failure: Option<Failure>,
}

impl Outcome {
    /// A run that ended in a panic.
    #[must_use]
    pub fn panicked(what: String) -> Self {
        let failure = Failure { promise: Promise::Alive, what: format!("panic: {what}") };
        Self { hash: 0, tally: Tally::default(), failure: Some(failure) }
    }
}

/// A request on its way.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) who: Who,
    pub(crate) request: Request,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A client, by itself.
    Client(usize),
    /// A session, which calls the answer so, if it wants one.
    Session(SessionId, Option<u64>),
}

/// The clocks of a world's machine.
#[derive(Debug, Default)]
pub(crate) struct WorldTime {
    running_us: AtomicU64,
    wall_ms: AtomicU64,
}

impl WorldTime {
    fn set(&self, running_us: u64, wall_ms: u64) {
        self.running_us.store(running_us, Ordering::Relaxed);
        self.wall_ms.store(wall_ms, Ordering::Relaxed);
    }
}

impl TimeSource for WorldTime {
    fn running(&self) -> Duration {
        Duration::from_micros(self.running_us.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_ms.load(Ordering::Relaxed))
    }
}

/// One world.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) config: Config,
    pub(crate) options: Options,
    pub(crate) chance: Chance,
    pub(crate) now_us: u64,
    /// What the wall clock shows beside the world's time, ms.
    pub(crate) offset_ms: i64,
    /// What passed at once, while nothing happened, µs.
    pub(crate) skipped_us: u64,
    /// The time of this life of the engine.
    pub(crate) steady: SteadyClock<WorldTime>,
    pub(crate) paused_until: u64,
    /// The engine cannot be on time before this.
    pub(crate) excused_until: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    serial: u64,
    pub(crate) turn_at: Option<u64>,
    pub(crate) alarm_at: Option<u64>,
    pub(crate) disk: MemoryDisk,
    /// The disk's hook has struck.
    pub(crate) struck: Arc<AtomicBool>,
    pub(crate) life: Option<Life>,
    pub(crate) inbox: VecDeque<(u64, Asked)>,
    pub(crate) asked: BTreeMap<u64, Asked>,
    pub(crate) next_ticket: u64,
    pub(crate) next_consumer: u64,
    pub(crate) next_session: u64,
    pub(crate) clients: Vec<Client>,
    /// Those who speak AMQP, and their connections.
    pub(crate) peers: Peers,
    pub(crate) endpoints: Endpoints,
    pub(crate) names: Names,
    /// Where whoever acts asks.
    pub(crate) here: VhostId,
    pub(crate) acts: u64,
    pub(crate) is_calm: bool,
    pub(crate) failed_in_calm: bool,
    pub(crate) book: Book,
    pub(crate) audit: Audit,
    /// The most bytes of content that there were at once.
    pub(crate) live_most: u64,
    pub(crate) checks: Checks,
    pub(crate) trace: Trace,
    pub(crate) tally: Tally,
    /// What was asked before a crash and never answered; only a planted bug looks at it again.
    pub(crate) unanswered: Vec<Request>,
}

/// The streams of chance.
pub(crate) struct Chance {
    pub(crate) workload: Rng,
    pub(crate) schedule: Rng,
    pub(crate) disk: Rng,
    pub(crate) faults: Rng,
    pub(crate) clock: Rng,
    /// How far the wall clock is set where it is set far.
    pub(crate) steps: Rng,
    pub(crate) spill: Rng,
    pub(crate) wiring: Rng,
    pub(crate) deaths: Rng,
    pub(crate) sessions: Rng,
    pub(crate) amqp: Rng,
    pub(crate) metadata: Rng,
    pub(crate) vhosts: Rng,
    pub(crate) policies: Rng,
    pub(crate) routes: Rng,
    pub(crate) work: Rng,
    pub(crate) late: Rng,
    pub(crate) keys: Rng,
    pub(crate) lanes: Rng,
    pub(crate) batches: Rng,
    pub(crate) endpoints: Rng,
}

/// What things are called in this world.
pub(crate) struct Names {
    pub(crate) queues: Vec<Arc<str>>,
    pub(crate) exchanges: Vec<Arc<str>>,
}

/// Runs one seed.
#[must_use]
pub fn run(seed: u64, config: Config) -> Outcome {
    let mut world = World::new(seed, config);
    let result = world.live().and_then(|()| world.calm());
    let failure = result.err();
    if let Some(failure) = &failure {
        let is_flood = world.tally.floods > 0;
        world.tell(|| format!("{} {failure}", if is_flood { "ENDED" } else { "BROKEN" }));
    }
    let mut tally = world.tally;
    tally.seeds = 1;
    tally.routes = world.checks.routes.counts;
    let (hash, events) = world.trace.close();
    tally.events = events;
    let failure = failure.filter(|_| tally.floods == 0);
    Outcome { hash, tally, failure }
}

impl World {
    fn new(seed: u64, config: Config) -> Self {
        let mut workload = Rng::new(seed, "workload");
        let plan = Plan::draw(seed, config.steps);
        let named = |prefix: &str, count: u64| -> Vec<Arc<str>> {
            (0..count).map(|n| format!("{prefix}{n}").into()).collect()
        };
        let names = Names { queues: named("q", plan.queues), exchanges: named("x", plan.exchanges) };
        let options = Options {
            segment_bytes: plan.segment_bytes,
            on_damage: OnDamage::Refuse,
            watermarks: Watermarks { low: Some(plan.low_files * plan.segment_bytes), high: None },
            max_message_bytes: 0,
            default_ttl_ms: plan.default_ttl_ms,
            inbox: 1_000,
            step_max: if config.sabotage == Some(Sabotage::DoesAllAtOnce) { 0 } else { plan.step_max },
            memory_bytes: plan.memory_bytes,
            // No client of this world is pushed to over a connection of its own.
            inbox_bytes: 0,
            pushed_bytes: 0,
            seed,
            numbers: overtake_lane::Numbers::default(),
            traces: None,
        };
        let clients = Client::all(&plan, &mut workload);
        let mut amqp = Rng::new(seed, "amqp");
        let peers = Peers::draw(&plan, &mut amqp);
        let mut forwards = Rng::new(seed, "endpoints");
        let endpoints = Endpoints::draw(&plan, &mut forwards);
        let mut checks = Checks::default();
        if config.told {
            checks.refold.tell();
        }
        Self {
            options,
            chance: Chance {
                workload,
                schedule: Rng::new(seed, "schedule"),
                disk: Rng::new(seed, "disk"),
                faults: Rng::new(seed, "faults"),
                clock: Rng::new(seed, "clock"),
                steps: Rng::new(seed, "clock steps"),
                spill: Rng::new(seed, "spill"),
                wiring: Rng::new(seed, "wiring"),
                deaths: Rng::new(seed, "deaths"),
                sessions: Rng::new(seed, "sessions"),
                amqp,
                metadata: Rng::new(seed, "metadata"),
                vhosts: Rng::new(seed, "vhosts"),
                policies: Rng::new(seed, "policies"),
                routes: Rng::new(seed, "routes"),
                work: Rng::new(seed, "work"),
                late: Rng::new(seed, "late"),
                keys: Rng::new(seed, "keys"),
                lanes: Rng::new(seed, "lanes"),
                batches: Rng::new(seed, "large batches"),
                endpoints: forwards,
            },
            now_us: 0,
            offset_ms: 0,
            skipped_us: 0,
            steady: SteadyClock::new(WorldTime::default()),
            paused_until: 0,
            excused_until: 0,
            events: BinaryHeap::new(),
            serial: 0,
            turn_at: None,
            alarm_at: None,
            disk: MemoryDisk::new(seed ^ 0xd15c),
            struck: Arc::new(AtomicBool::new(false)),
            life: None,
            inbox: VecDeque::new(),
            asked: BTreeMap::new(),
            next_ticket: 0,
            next_consumer: 0,
            next_session: 0,
            clients,
            peers,
            endpoints,
            names,
            here: VhostId::DEFAULT,
            acts: 0,
            is_calm: false,
            failed_in_calm: false,
            book: Book::default(),
            audit: Audit::default(),
            live_most: 0,
            checks,
            trace: Trace::new(config.told),
            tally: Tally::default(),
            unanswered: Vec::new(),
            plan,
            config,
        }
    }

    /// The stormy part.
    fn live(&mut self) -> Checked {
        let plan = self.plan.clone();
        self.tell(|| format!("{plan:?}"));
        self.at(0, Event::Start);
        for client in 0..self.clients.len() {
            let after = self.chance.schedule.below(self.plan.pace_us) + 1;
            self.at(after, Event::Act(client));
        }
        for peer in 0..self.peers.len() {
            let after = self.chance.amqp.below(self.plan.pace_us) + 1;
            self.at(after, Event::Speak(peer));
        }
        if !self.plan.faults.is_empty() {
            let after = self.chance.faults.within(1, self.plan.fault_us);
            self.at(after, Event::Break);
        }
        while self.acts < self.plan.steps {
            self.next_event()?;
        }
        Ok(())
    }

    /// Lets the next thing happen.
    pub(crate) fn next_event(&mut self) -> Checked {
        let Reverse((at, _, event)) = self.events.pop().expect("clients always act again");
        if at < self.paused_until
            && matches!(
                event,
                Event::Turn
                    | Event::Commit(_)
                    | Event::Prepare(_)
                    | Event::Job(_)
                    | Event::Alarm
                    | Event::Start
                    | Event::Endpoint(_)
            )
        {
            self.serial += 1;
            self.events.push(Reverse((self.paused_until, self.serial, event)));
            return Ok(());
        }
        self.now_us = at;
        self.trace.event(&[at, code(event)]);
        self.check_awake()?;
        match event {
            Event::Act(client) => self.act(client),
            Event::Turn => {
                // One that was planned sooner has taken its place.
                if self.turn_at.take_if(|planned| *planned <= at).is_some() {
                    self.turn()?;
                }
            }
            Event::Commit(life) => self.commit(life)?,
            Event::Prepare(life) => self.prepare(life)?,
            Event::Job(life) => self.job(life)?,
            Event::TryAgain(life) => self.try_again(life),
            Event::Alarm => {
                if self.alarm_at.take_if(|planned| *planned <= at).is_some() {
                    self.turn()?;
                }
            }
            Event::Break => self.strike()?,
            Event::Start => self.start()?,
            Event::Relief => {
                self.disk.set_capacity(None);
                self.tell(|| "the disk has room again".to_owned());
            }
            Event::Speak(peer) => self.speak(peer)?,
            Event::Wire(session) => self.carry(session)?,
            Event::Endpoint(endpoint) => self.look_after(endpoint)?,
        }
        self.notice_death()?;
        self.peers.complain()
    }

    /// Something will happen so many µs from now.
    pub(crate) fn at(&mut self, after_us: u64, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((self.now_us + after_us, self.serial, event)));
    }

    /// The engine's loop goes round soon.
    pub(crate) fn turn_soon(&mut self, after_us: u64) {
        let at = self.now_us + after_us;
        if self.turn_at.is_none_or(|planned| planned > at) {
            self.turn_at = Some(at);
            self.at(after_us, Event::Turn);
        }
    }

    /// What the engine's clock shows.
    pub(crate) fn clock(&self) -> Time {
        match self.config.sabotage {
            Some(Sabotage::ClockBehind) => Time(self.true_clock().0 - 400),
            Some(Sabotage::BelievesWallClock) => Time(self.wall_ms()),
            _ => self.true_clock(),
        }
    }

    /// What the engine's clock should show.
    pub(crate) fn true_clock(&self) -> Time {
        self.steady.source().set(self.running_us(), self.wall_ms());
        self.steady.now()
    }

    /// What has passed, µs.
    pub(crate) fn running_us(&self) -> u64 {
        self.now_us + self.skipped_us
    }

    fn wall_ms(&self) -> u64 {
        (EPOCH_MS + self.running_us() / 1_000).saturating_add_signed(self.offset_ms)
    }

    /// Another life begins, whose time is what the wall clock shows.
    pub(crate) fn set_clock(&mut self) {
        let time = WorldTime::default();
        time.set(self.running_us(), self.wall_ms());
        self.steady = SteadyClock::new(time);
    }

    /// A client asks something.
    pub(crate) fn ask(&mut self, client: usize, request: Request) -> u64 {
        self.ask_as(Who::Client(client), request)
    }

    /// Somebody asks something.
    pub(crate) fn ask_as(&mut self, who: Who, request: Request) -> u64 {
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        self.tell(|| format!("{who:?} asks {ticket}: {}", crate::tell::request(&request)));
        if self.life.is_some() {
            let asked = Asked { who, request };
            self.asked.insert(ticket, asked.clone());
            self.inbox.push_back((ticket, asked));
            let after = self.chance.schedule.heavy(20);
            self.turn_soon(after);
        } else if let Who::Client(client) = who {
            self.clients[client].refused_connection(ticket, &request);
        }
        ticket
    }

    /// An answer reaches its client, or is lost on its way.
    pub(crate) fn told(&mut self, ticket: u64, result: Result<Answer, Refused>) {
        self.tally.answers += 1;
        self.trace.mix(&[ticket, crate::tell::result_code(&result)]);
        self.tell(|| format!("answer to {ticket}: {}", crate::tell::result(&result)));
        let Some(asked) = self.asked.remove(&ticket) else { return };
        let client = match asked.who {
            Who::Client(client) => client,
            Who::Session(session, token) => {
                return self.told_session((session, token), ticket, asked.request, result);
            }
        };
        let loses = self.plan.loses_answers;
        if loses > 0 && !self.is_calm && self.chance.schedule.once_in(loses) {
            self.tally.lost_answers += 1;
            self.clients[client].left_in_doubt(ticket, &asked.request);
            return;
        }
        self.note_told(ticket, &result);
        self.clients[client].answered(ticket, asked.request, result);
    }

    /// What an answer that arrives says counts from now on.
    pub(crate) fn note_told(&mut self, ticket: u64, result: &Result<Answer, Refused>) {
        match result {
            Ok(_) => {
                self.tally.accepted += 1;
                self.checks.kept.told(ticket);
                self.checks.gone.told(ticket);
                self.checks.metadata.told(ticket);
                self.checks.vhosts.told(ticket);
                self.checks.policies.told(ticket);
                self.checks.routes.told(ticket);
            }
            Err(refused) => self.tally.refuse(refused.refusal),
        }
    }

    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        self.trace.tell(self.now_us, line);
    }

    pub(crate) fn has_struck(&self) -> bool {
        self.struck.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&mut self, fault: Fault) {
        *self.tally.faults.entry(fault).or_default() += 1;
    }
}

fn code(event: Event) -> u64 {
    match event {
        Event::Act(client) => 16 + client as u64,
        Event::Turn => 1,
        Event::Commit(_) => 2,
        Event::Prepare(_) => 3,
        Event::Alarm => 4,
        Event::Break => 5,
        Event::Start => 6,
        Event::Relief => 7,
        Event::Job(_) => 8,
        Event::TryAgain(_) => 9,
        Event::Wire(_) => 10,
        Event::Endpoint(endpoint) => 13 << 16 | endpoint as u64,
        Event::Speak(peer) => 12 << 16 | peer as u64,
    }
}
