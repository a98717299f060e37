//! A place and a broker with one queue: each is asked the same, and both must do the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    Address, Asker, Broker, BrowseOrder, Command, ConsumerId, Death, Deaths, Effect, Given, LaneChoice,
    LaneView, LeaseId, LeaseTerm, Message, Options, Order, Outcome, Place, Priority, Publish, Pull, Query,
    Receipt, Refusal, Reply, Route, Seq, SessionId, Settings, State, Status, Step, Time, VhostId,
    Which as Chosen,
};
use overtake_valkey::functions::{
    Abort, Admission, Admit, Alive, Asked, AtFault, Call, Cancel, Choice, Commit, Configure, Declined,
    Extend, Extended, How, Leasing, Parts, Prepare, Purge, Remove, Replay, Reprioritise, Settle, Standing,
    Sweep, Terms, Told, Transact, View, Where, Which,
};
use redis::{Connection, Value, cmd};

pub(crate) const QUEUE: &str = "q";
const BASE: &str = "{1:0}";
/// Whoever holds what is not leased for a time.
const SESSION: SessionId = SessionId(1);

/// A lease as both know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    receipt: Receipt,
    number: LeaseId,
}

/// How the parts of a transaction are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Together {
    AtOnce,
    Prepared,
    Aborted,
}

pub(crate) struct Twin {
    connection: Connection,
    broker: Broker,
    settings: Settings,
    version: u64,
    calls: u64,
    consumers: u64,
    now: Time,
    later: Time,
    head: Option<Where>,
    /// Those given, the last of each message last.
    pub(crate) leases: Vec<Lease>,
}

fn done<T>(told: Told<T>) -> (Time, Option<Where>, T) {
    let Told::Done { now, head, what, .. } = told else { panic!("the place is there") };
    (now, head, what)
}

impl Twin {
    pub(crate) fn new(mut connection: Connection, settings: Settings) -> Self {
        let () = cmd("FLUSHALL").query(&mut connection).expect("emptied");
        let broker = Broker::new(Options::default());
        let (now, version, calls) = (Time(0), 0, 0);
        let mut twin = Self {
            connection,
            broker,
            settings: settings.clone(),
            version,
            calls,
            now,
            later: Time(0),
            consumers: 0,
            head: None,
            leases: Vec::new(),
        };
        assert!(twin.configure(settings).is_ok());
        twin
    }

    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    // ---- asking ----

    fn call<A: Asked>(&mut self, ask: &A, number: Option<u64>) -> A::Answer {
        let version = (self.version > 0 && A::FUNCTION != "ot_configure").then_some(self.version);
        let call = Call { version, caller: "test", number };
        let mut command = cmd("FCALL");
        command.arg(A::FUNCTION).arg(1).arg(BASE);
        for argument in ask.all_arguments(call) {
            command.arg(argument);
        }
        let value: Value = command.query(&mut self.connection).expect("it is answered");
        let told =
            Told::read(&value, |what| ask.read(what)).unwrap_or_else(|_| panic!("malformed: {value:?}"));
        let (now, head, what) = done(told);
        assert!(now >= self.now, "time never goes back");
        (self.now, self.head) = (now, head);
        what
    }

    /// Asks the place, and once more as if the first answer had been lost.
    fn ask<A: Asked<Answer: PartialEq + std::fmt::Debug>>(&mut self, ask: &A) -> A::Answer {
        let (first, again) = self.ask_twice(ask);
        assert_eq!(first, again, "what is asked again is answered as it was");
        first
    }

    fn ask_twice<A: Asked>(&mut self, ask: &A) -> (A::Answer, A::Answer) {
        self.calls += 1;
        let first = self.call(ask, Some(self.calls));
        let now = self.now;
        let again = self.call(ask, Some(self.calls));
        // The broker is asked as of the first time; what has passed since it learns afterwards.
        self.later = std::mem::replace(&mut self.now, now);
        (first, again)
    }

    fn catch_up(&mut self) {
        self.now = self.now.max(self.later);
        self.broker.tick(self.now, &mut Step::default());
    }

    fn broker(&mut self, command: Command) -> (Result<Reply, Refusal>, Step) {
        self.broker_by(Asker::default(), command)
    }

    fn broker_by(&mut self, asker: Asker, command: Command) -> (Result<Reply, Refusal>, Step) {
        let mut step = Step::default();
        let reply = self.broker.apply_by(self.now, asker, command, &mut step);
        (reply, step)
    }

    // ---- what happens ----

    pub(crate) fn configure(&mut self, settings: Settings) -> Result<(), Refusal> {
        let terms = Terms::new(QUEUE.into(), &settings, 0, 0);
        let version = self.version + 1;
        let told = self.call(&Configure { version, terms: &terms }, None);
        let (reply, _) = self.broker(Command::declare(QUEUE.into(), Box::new(settings.clone())));
        assert_eq!(told.map(drop).map_err(|Declined(why)| why), reply.clone().map(drop));
        if reply.is_ok() {
            (self.version, self.settings) = (version, settings);
        }
        reply.map(drop)
    }

    fn admissions(&self, publishes: &[Publish]) -> Vec<Admission> {
        let admission = |publish: &Publish| Admission {
            priority: self.settings.scheme.map(&publish.priority).expect("a priority of the scheme"),
            original: publish.priority.original(),
            id: publish.id.clone(),
            key: publish.key.clone(),
            ttl_ms: publish.ttl_ms,
            base_ttl_ms: publish.base_ttl_ms,
            delay_ms: publish.delay_ms,
            bytes: publish.bytes,
            content: b"content".to_vec(),
        };
        publishes.iter().map(admission).collect()
    }

    pub(crate) fn publish(&mut self, publishes: Vec<Publish>) {
        let told = self.ask(&Admit { messages: self.admissions(&publishes), tells: true });
        for (publish, told) in publishes.into_iter().zip(told) {
            let (reply, _) = self.broker(Command::Publish(publish));
            let published = reply.map(|reply| {
                let Reply::Published(published) = reply else { panic!("published: {reply:?}") };
                let one = &published[0];
                (one.seq, one.duplicate, (one.position, one.position_in_priority))
            });
            let told = told.map(|one| (one.seq, one.duplicate, one.position)).map_err(|Declined(why)| why);
            assert_eq!(told, published);
        }
    }

    /// In one step, or prepared first and then done; or prepared, and let be.
    pub(crate) fn transact(
        &mut self,
        publishes: Vec<Publish>,
        leases: &[Lease],
        outcome: Outcome,
        how: Together,
    ) {
        // What is prepared keeps its leases, where those of the broker would end.
        let how = if leases.iter().any(|lease| self.ends_soon(lease)) { Together::AtOnce } else { how };
        let settlements = leases.iter().map(|lease| (outcome, lease.receipt.seq, lease.number)).collect();
        let parts = Parts { messages: self.admissions(&publishes), settlements };
        let told = match how {
            Together::AtOnce => self.ask(&Transact { parts, tells: false }),
            Together::Prepared | Together::Aborted => {
                let prepare = Prepare { name: "t".into(), within_ms: 60_000, parts };
                let prepared = self.call(&prepare, None);
                self.broker.tick(self.now, &mut Step::default());
                match prepared {
                    Ok(()) if how == Together::Aborted => {
                        self.call(&Abort { name: "t".into() }, None);
                        self.broker.tick(self.now, &mut Step::default());
                        return;
                    }
                    Ok(()) => {
                        self.broker.tick(self.now, &mut Step::default());
                        Ok(self.ask(&Commit { name: "t".into(), tells: false }))
                    }
                    Err(fault) => Err(fault),
                }
            }
        };
        if how == Together::Aborted {
            // What is refused is not done either.
            assert!(told.is_err());
        }
        let settlements = leases.iter().map(|lease| (lease.receipt, outcome)).collect();
        let (reply, step) = self.broker(Command::Transact { publishes, settlements });
        match (told, reply) {
            (Ok(told), Ok(Reply::Published(published))) => {
                let told: Vec<_> = told.into_iter().map(|one| (one.seq, one.duplicate)).collect();
                let published: Vec<_> = published.iter().map(|one| (one.seq, one.duplicate)).collect();
                assert_eq!(told, published);
            }
            (Err(AtFault { part, why: Declined(why) }), Err(refusal)) => {
                assert_eq!((Some(part), why), (step.at_fault, refusal));
            }
            (told, reply) => panic!("the place says {told:?}, the broker {reply:?}"),
        }
    }

    fn ends_soon(&self, lease: &Lease) -> bool {
        let Some(message) = self.broker.leased(&lease.receipt) else { return false };
        let State::Leased { deadline, .. } = message.state else { return false };
        deadline.min(message.work().map_or(Time::NEVER, |work| work.ends)) < self.now.after(10_000)
    }

    /// With a time, by a pull; without, until the session ends.
    pub(crate) fn lease(&mut self, max: u32, max_bytes: u64, term_ms: Option<u64>, lanes: LaneChoice) {
        let consumer = ConsumerId(100 + self.consumers);
        self.consumers += 1;
        let except = self.views().into_iter().filter(|lane| lanes.except.contains(&lane.lane));
        let choice = Choice {
            floor: self.floor(lanes.at_least),
            except: except.map(|lane| lane.level).collect(),
            one: lanes.one,
            last: None,
        };
        let holder = term_ms.is_none().then(|| ("session".to_owned(), 3_600_000));
        let timeout = self.settings.consumer_timeout_ms;
        let (shown, again) =
            self.ask_twice(&Leasing { max, max_bytes, term_ms: term_ms.unwrap_or(timeout), holder, choice });
        assert!(again.iter().all(|one| shown.contains(one)), "but for what was over meanwhile");
        let term = term_ms.map_or(LeaseTerm::Session, LeaseTerm::Ms);
        let pull = Pull { consumer, queue: QUEUE.into(), max, max_bytes, term, lanes, until: self.now };
        let (reply, step) = self.broker_by(Asker::connected(SESSION), Command::Pull(pull));
        reply.expect("pulled");
        let delivered = step.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver(delivery) => Some(delivery),
            _ => None,
        });
        let delivered: Vec<_> = delivered.collect();
        let given: Vec<_> = delivered.iter().map(|one| (one.receipt.seq, one.count, one.deadline)).collect();
        let got: Vec<_> = shown
            .iter()
            .map(|one| {
                let Message { seq, count, state, .. } = one.stored.message;
                let State::Leased { deadline, .. } = state else { panic!("it is leased: {state:?}") };
                assert_eq!(one.content.as_deref(), Some(&b"content"[..]));
                (seq, count, deadline)
            })
            .collect();
        assert_eq!(got, given, "what goes next");
        for (one, delivery) in shown.iter().zip(&delivered) {
            let State::Leased { lease, .. } = one.stored.message.state else { continue };
            self.leases.push(Lease { receipt: delivery.receipt, number: lease });
        }
    }

    /// The level below which no lane takes a priority as urgent as this.
    fn floor(&self, at_least: Priority) -> Option<i32> {
        if at_least == LaneChoice::default().at_least {
            return None;
        }
        match &self.settings.order {
            Order::Priority => Some(at_least.0),
            Order::Fifo => Some(1),
            Order::Lanes(bands) => {
                let floor = |band: &overtake_lane::Band| {
                    band.from
                        .as_ref()
                        .map_or(i32::MIN, |from| self.settings.scheme.map(from).expect("a priority").0)
                };
                let lower = bands.iter().filter(|band| floor(band) < at_least.0).count();
                Some(lower as i32)
            }
        }
    }

    pub(crate) fn settle(&mut self, leases: &[Lease], outcome: Outcome) {
        let pairs = leases.iter().map(|lease| (lease.receipt.seq, lease.number)).collect();
        let told = self.ask(&Settle { how: How::By(outcome), leases: pairs });
        let receipts = leases.iter().map(|lease| lease.receipt).collect();
        let (reply, _) = self.broker(Command::Settle { receipts, outcome });
        let Ok(Reply::Each(results)) = reply else { panic!("settled: {reply:?}") };
        assert_eq!(told, results.iter().map(Result::is_ok).collect::<Vec<_>>());
    }

    /// Whoever was connected is gone.
    pub(crate) fn end_session(&mut self) {
        let held = self.stored(Status::Leased).into_iter().filter(|(_, holder)| holder.is_some()).count();
        let lost = self.call(&Alive { holder: "session".into(), ms: 0 }, None);
        assert!(lost as usize <= held, "{lost} of {held}");
        self.broker(Command::EndSession { session: SESSION }).0.expect("ended");
    }

    pub(crate) fn extend(&mut self, lease: Lease, term_ms: u64) {
        let told = self.call(&Extend { term_ms, leases: vec![(lease.receipt.seq, lease.number)] }, None);
        let (reply, _) =
            self.broker(Command::Extend { receipts: vec![lease.receipt], visibility_ms: term_ms });
        let Ok(Reply::Each(results)) = reply else { panic!("extended: {reply:?}") };
        let expected = match results[0] {
            Ok(()) => Extended::Longer,
            Err(Refusal::CancelAsked) => Extended::WantedBack,
            Err(_) => Extended::Over,
        };
        assert_eq!(told, [expected]);
    }

    fn count(&mut self, told: Result<u64, Declined>, command: Command) {
        let (reply, _) = self.broker(command);
        let counted = reply.map(|reply| {
            let Reply::Count(count) = reply else { panic!("counted: {reply:?}") };
            count
        });
        assert_eq!(told.map_err(|Declined(why)| why), counted);
    }

    pub(crate) fn reprioritise(&mut self, which: &Chosen, given: &Given) {
        let priority = self.settings.scheme.map(given).expect("a priority of the scheme");
        let told = self.ask(&Reprioritise { priority, original: given.original(), which: asked(which) });
        let (which, priority) = (which.clone(), given.clone());
        // That there are too many lanes is said of all of them.
        if told == Ok(0) && matches!(which, Chosen::Seqs(_)) {
            let (reply, _) = self.broker(Command::Reprioritise { queue: QUEUE.into(), which, priority });
            assert!(matches!(reply, Ok(Reply::Count(0)) | Err(Refusal::TooManyLanes)), "{reply:?}");
            return;
        }
        self.count(told, Command::Reprioritise { queue: QUEUE.into(), which, priority });
    }

    pub(crate) fn remove(&mut self, which: &Chosen) {
        let told = self.ask(&Remove(asked(which)));
        self.count(told, Command::Remove { queue: QUEUE.into(), which: which.clone() });
    }

    pub(crate) fn cancel(&mut self, which: &Chosen) {
        let told = self.ask(&Cancel(asked(which)));
        self.count(told, Command::CancelMessages { queue: QUEUE.into(), which: which.clone() });
    }

    pub(crate) fn replay(&mut self, which: &Chosen, promote: Option<&Given>) {
        let promoted =
            promote.map(|given| (self.settings.scheme.map(given).expect("a priority"), given.original()));
        let told = self.ask(&Replay { promote: promoted, which: asked(which) });
        let (which, promote) = (which.clone(), promote.cloned());
        self.count(told, Command::Replay { queue: QUEUE.into(), which, promote });
    }

    pub(crate) fn purge(&mut self, status: Option<Status>) {
        let (touched, more) = self.ask(&Purge { status, limit: 10_000 });
        assert!(!more);
        self.count(Ok(touched), Command::Purge { queue: QUEUE.into(), status });
    }

    /// Lets so much time pass.
    pub(crate) fn wait(&mut self, ms: u64) {
        let until = self.now.after(ms);
        while self.now < until {
            self.call(&Sweep, None);
            let mut step = Step::default();
            self.broker.tick(self.now, &mut step);
        }
    }

    // ---- comparing ----

    /// The messages that stand so, with whoever holds them, by sequence. Time passes.
    fn stored(&mut self, status: Status) -> Vec<(Message, Option<String>)> {
        let standing = Standing {
            newest: false,
            after: None,
            limit: 10_000,
            with_content: false,
            statuses: vec![status],
        };
        let shown = self.call(&standing, None);
        self.broker.tick(self.now, &mut Step::default());
        shown.into_iter().map(|one| (one.stored.message, one.stored.holder)).collect()
    }

    pub(crate) fn seqs(&self, wanted: impl Fn(Status) -> bool) -> Vec<Seq> {
        let query = Query { order: BrowseOrder::Published, limit: 10_000, ..Query::default() };
        let (views, _) =
            self.broker.browse(VhostId::DEFAULT, QUEUE, &query, &mut |_| true).expect("it is there");
        views.into_iter().filter(|view| wanted(view.status)).map(|view| view.seq).collect()
    }

    fn views(&self) -> Vec<LaneView> {
        self.broker.view(self.now, VhostId::DEFAULT, QUEUE).expect("it is there").lanes
    }

    /// Everything that can be seen of both is the same.
    pub(crate) fn compare(&mut self) {
        self.catch_up();
        let statuses = vec![Status::Ready, Status::Delayed, Status::Leased, Status::Dead];
        let shown = self.call(
            &Standing {
                newest: false,
                after: None,
                limit: 10_000,
                with_content: true,
                statuses: statuses.clone(),
            },
            None,
        );
        self.broker.tick(self.now, &mut Step::default());
        self.compare_messages(shown.into_iter().map(|one| one.stored.message).collect());
        let seen = self.call(&View, None);
        self.broker.tick(self.now, &mut Step::default());
        self.compare_lanes(&seen.lanes, &seen.oldest);
        let view = self.broker.view(self.now, VhostId::DEFAULT, QUEUE).expect("it is there");
        assert_eq!((seen.first_seq, Seq(seen.last_seq.0 + 1)), (view.first_seq, view.next_seq));
    }

    fn compare_messages(&mut self, stored: Vec<Message>) {
        let query = Query { order: BrowseOrder::Published, limit: 10_000, ..Query::default() };
        let (views, _) =
            self.broker.browse(VhostId::DEFAULT, QUEUE, &query, &mut |_| true).expect("it is there");
        let scheme = self.settings.scheme;
        let mut head: Option<Where> = None;
        assert_eq!(
            stored.iter().map(|one| one.seq).collect::<Vec<_>>(),
            views.iter().map(|one| one.seq).collect::<Vec<_>>()
        );
        let lanes: BTreeMap<Arc<str>, i32> =
            self.views().into_iter().map(|lane| (lane.lane, lane.level)).collect();
        for (message, view) in stored.iter().zip(&views) {
            let (due, deadline) = match message.state {
                State::Delayed { due } => (Some(due), None),
                State::Leased { deadline, .. } => (None, deadline.some()),
                _ => (None, None),
            };
            let id = overtake_lane::public_id(message.id(), message.seq);
            assert_eq!(
                (&id, message.priority, scheme.show(message.original, message.priority)),
                (&view.id, view.level, view.priority.clone())
            );
            assert_eq!(
                (message.state.status(), message.since, message.expires.some(), due, deadline),
                (view.status, view.since, view.expires, view.due, view.deadline),
                "{id}"
            );
            assert_eq!(
                (message.count, message.bytes, message.key(), message.work()),
                (view.count, view.bytes, view.key.as_deref(), view.work.as_ref()),
                "{id}"
            );
            assert_eq!(message.deaths().map(shape), view.deaths.as_deref().map(shape), "{id}");
            if view.status == Status::Ready {
                let here = Where::new(lanes[&view.lane], view.seq);
                head = Some(head.map_or(here, |head| head.min(here)));
            }
        }
        let Settings { group_limit, key_rate_limit, fair_keys, .. } = self.settings;
        // Of what a key holds back nothing goes next.
        if group_limit == 0 && key_rate_limit.is_none() && !fair_keys {
            assert_eq!(self.head, head, "what goes next");
        }
    }

    fn compare_lanes(&self, told: &BTreeMap<i32, BTreeMap<String, u64>>, oldest: &BTreeMap<i32, Time>) {
        for lane in self.views() {
            let none = BTreeMap::new();
            let told = told.get(&lane.level).unwrap_or(&none);
            let of = |name: &str| told.get(name).copied().unwrap_or(0);
            let gauges = ["ready", "delayed", "leased", "dead", "bytes"].map(of);
            assert_eq!(
                gauges,
                [lane.ready, lane.delayed, lane.leased, lane.dead, lane.bytes],
                "{}",
                lane.lane
            );
            let counters = [
                "published",
                "delivered",
                "settled",
                "redelivered",
                "inversions",
                "expired",
                "evicted",
                "removed",
                "moved",
                "dead_lettered",
            ];
            let expected = [
                lane.published,
                lane.delivered,
                lane.settled,
                lane.redelivered,
                lane.inversions,
                lane.expired,
                lane.evicted,
                lane.removed,
                lane.moved,
                lane.dead_lettered,
            ];
            assert_eq!(counters.map(of), expected, "{}: {counters:?}", lane.lane);
            let mut below = 0;
            let waits: Vec<u64> = (1..=lane.wait.buckets.len())
                .map(|at| {
                    below += of(&format!("wait_{at}"));
                    below
                })
                .collect();
            assert_eq!(waits, lane.wait.buckets.iter().map(|(_, count)| *count).collect::<Vec<_>>());
            assert_eq!([of("waits"), of("waited_ms")], [lane.wait.count, lane.wait.sum_ms]);
            let age = oldest.get(&lane.level).map_or(0, |since| self.now.since(*since));
            assert_eq!(age, lane.oldest_age_ms, "{}", lane.lane);
        }
    }
}

fn asked(which: &Chosen) -> Which {
    match which {
        Chosen::Id(id) => Which::Id(id.clone()),
        Chosen::Seqs(seqs) => Which::Seqs(seqs.clone()),
        Chosen::All => panic!("all are asked for by page"),
    }
}

/// Deaths, and which was the first, but for what the content of the message says.
fn shape(deaths: &Deaths) -> (Vec<Death>, usize) {
    let bare = |death: &Death| Death { route: Route::default(), ttl_ms: None, ..death.clone() };
    (
        deaths.iter().map(bare).collect(),
        deaths.iter().position(|death| std::ptr::eq(death, deaths.first())).expect("it is one"),
    )
}

/// A message to publish.
pub(crate) fn publish(priority: Given, bytes: u32) -> Publish {
    Publish {
        to: Address::Queue(QUEUE.into()),
        priority,
        id: None,
        origin: None,
        key: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes,
        place: Place::default(),
    }
}
