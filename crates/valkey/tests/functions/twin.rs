//! A place and a broker with one queue: each is asked the same, and both must do the same.

use std::sync::Arc;

use overtake_lane::{
    Address, ApplyTo, Asker, Broker, Command, ConsumerId, Definition, Effect, Given, LaneChoice, LeaseId,
    LeaseTerm, Message, Options, Order, Outcome, Pattern, Place, Policy, PolicyKind, Priority, Publish,
    Published, Pull, Receipt, Refusal, Reply, Report, SessionId, Settings, State, Status, Step, Time,
    VhostId, Which as Chosen,
};
use overtake_valkey::functions::{
    Abort, Admission, Admit, Alive, Asked, AtFault, Call, Cancel, Choice, Commit, Configure, Configured,
    Declined, Extend, Extended, Find, Finish, FinishLate, How, Leasing, Outlook, Parts, Peek, Prepare, Purge,
    Remove, Replay, Reprioritise, Said, Settle, Sweep, Terms, Told, Transact, Where, Which,
};
use redis::{Connection, Value, cmd};

pub(crate) const QUEUE: &str = "q";
pub(crate) const BASE: &str = "{1:0}";
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
    pub(crate) connection: Connection,
    pub(crate) broker: Broker,
    /// What holds for the queue: its own settings, and what a policy says.
    pub(crate) settings: Settings,
    own: Settings,
    policy: Option<Definition>,
    pub(crate) version: u64,
    calls: u64,
    consumers: u64,
    pub(crate) now: Time,
    later: Time,
    pub(crate) head: Option<Where>,
    /// When something happens by itself next.
    pub(crate) wakes_at: Option<Time>,
    /// Something is to go elsewhere.
    pub(crate) leaving: bool,
    quiet_until: Time,
    /// Nothing more can be said of this history.
    pub(crate) is_over: bool,
    /// Those given, the last of each message last.
    pub(crate) leases: Vec<Lease>,
}

impl Twin {
    /// With queues beside it, for its dead letters and for its history.
    pub(crate) fn new(mut connection: Connection, settings: Settings, beside: [Settings; 2]) -> Self {
        let () = cmd("FLUSHALL").query(&mut connection).expect("emptied");
        let broker = Broker::new(Options::default());
        let (now, version, calls) = (Time(0), 0, 0);
        let mut twin = Self {
            connection,
            broker,
            settings: settings.clone(),
            own: settings.clone(),
            policy: None,
            version,
            calls,
            now,
            later: Time(0),
            consumers: 0,
            head: None,
            wakes_at: None,
            leaving: false,
            quiet_until: Time::NEVER,
            is_over: false,
            leases: Vec::new(),
        };
        assert!(twin.configure(settings).is_ok());
        twin.add_beside(beside);
        twin
    }

    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    // ---- asking ----

    /// What is seen of the place without anything that changes there.
    pub(crate) fn peek(&mut self, peek: Peek) -> Outlook {
        let call = peek.call(BASE, "");
        let mut command = cmd("FCALL_RO");
        command.arg(call.function).arg(1).arg(BASE);
        for argument in &call.args {
            command.arg(&argument[..]);
        }
        let value: Value = command.query(&mut self.connection).expect("it is only read");
        Peek::read(&value).expect("an answer").expect("it is there")
    }

    pub(crate) fn told<A: Asked>(&mut self, base: &str, ask: &A, call: Call<'_>) -> Told<A::Answer> {
        let mut command = cmd("FCALL");
        command.arg(ask.function()).arg(1).arg(base);
        for argument in ask.all_arguments(call) {
            command.arg(argument);
        }
        let value: Value = command.query(&mut self.connection).expect("it is answered");
        Told::read(&value, |what| ask.read(what)).unwrap_or_else(|_| panic!("malformed: {value:?}"))
    }

    pub(crate) fn call<A: Asked>(&mut self, ask: &A, number: Option<u64>) -> A::Answer {
        let told = self.told(BASE, ask, Call { of: "", caller: "test", number });
        let Told::Done { now, heads, what, wakes_at, leaving, .. } = told else { panic!("it is there") };
        assert!(now >= self.now, "time never goes back");
        let head = heads.first().map(|head| Where::new(head.level, head.seq));
        (self.now, self.head, self.wakes_at, self.leaving) = (now, head, wakes_at, leaving);
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

    pub(crate) fn catch_up(&mut self) {
        self.now = self.now.max(self.later);
        self.broker.tick(self.now, &mut Step::default());
    }

    pub(crate) fn broker(&mut self, command: Command) -> (Result<Reply, Refusal>, Step) {
        self.broker_by(Asker::default(), command)
    }

    fn broker_by(&mut self, asker: Asker, command: Command) -> (Result<Reply, Refusal>, Step) {
        let mut step = Step::default();
        let reply = self.broker.apply_by(self.now, asker, command, &mut step);
        (reply, step)
    }

    /// Nothing happens by itself so soon that it might happen while the place is asked, and leave it: a broker knows at once what comes of it.
    fn quieten(&mut self) {
        const SOON_MS: u64 = 8;
        self.catch_up();
        self.move_all();
        while self.leaves()
            && let Some(wakes_at) = self.wakes_at
            && wakes_at <= self.now.after(SOON_MS)
        {
            self.wait(wakes_at.since(self.now) + 1);
            self.move_all();
        }
        self.quiet_until = self.wakes_at.filter(|_| self.leaves()).unwrap_or(Time::NEVER);
    }

    /// Whether it has happened all the same, on a machine that was busy: then nothing can be said of this history from here on.
    fn was_late(&mut self) -> bool {
        self.is_over = self.is_over || self.now >= self.quiet_until;
        self.is_over
    }

    // ---- what happens ----

    /// What holds for a queue of these settings by the policy, where there is one.
    fn ruled(&self, own: &Settings) -> Settings {
        let mut other = Broker::new(Options::default());
        let mut apply = |command| other.apply(Time(0), command, &mut Step::default()).expect("done");
        apply(Command::declare(QUEUE.into(), Box::new(own.clone())));
        if let Some(policy) = &self.policy {
            apply(set_policy(policy.clone()));
        }
        other.settings(VhostId::DEFAULT, QUEUE).expect("it is there").clone()
    }

    /// The place has what holds now for a queue of these settings. Answers that, and whether it may.
    fn configure_place(&mut self, own: &Settings, said: Said) -> (Settings, Result<(), Refusal>) {
        let ruled = self.ruled(own);
        let terms = Terms::new(QUEUE.into(), &ruled, 0, 0).of_declared(own);
        let told =
            self.call(&Configure { version: self.version + 1, terms: &terms.json(), said, queue: &[] }, None);
        (ruled, told.map(drop).map_err(|Declined(why)| why))
    }

    /// Says to the place what holds there already, as whoever begins to serve a queue does.
    pub(crate) fn say_again(&mut self) -> Result<Configured, Declined> {
        let terms = Terms::new(QUEUE.into(), &self.settings, 0, 0).of_declared(&self.own);
        let said = if self.policy.is_some() { Said::ByPolicy } else { Said::Declared };
        self.call(&Configure { version: self.version, terms: &terms.json(), said, queue: &[] }, None)
    }

    pub(crate) fn configure(&mut self, own: Settings) -> Result<(), Refusal> {
        self.quieten();
        let (ruled, told) = self.configure_place(&own, Said::Declared);
        let (reply, _) = self.broker(Command::declare(QUEUE.into(), Box::new(own.clone())));
        if self.was_late() {
            return told;
        }
        assert_eq!(told, reply.map(drop));
        if told.is_ok() {
            (self.version, self.own, self.settings) = (self.version + 1, own, ruled);
            self.move_on();
        }
        told
    }

    /// All messages go to the lanes that take them now, as a broker's do at once.
    fn move_on(&mut self) {
        while self.is_moving() {
            self.call(&Sweep, None);
            self.broker.tick(self.now, &mut Step::default());
        }
    }

    /// Whether lanes are being left, or keys are gone through.
    pub(crate) fn is_moving(&mut self) -> bool {
        let there =
            cmd("HMGET").arg(format!("{BASE}:c")).arg("left").arg("rules").query(&mut self.connection);
        let there: [Option<Vec<u8>>; 2] = there.expect("what goes on");
        there.iter().any(Option::is_some)
    }

    /// Another policy is for the queue.
    pub(crate) fn rule(&mut self, policy: Definition) {
        self.quieten();
        // Something that changes: of a policy by which nothing else holds no place is told.
        let policy = Definition { expires: Some(3_600_000 + self.version), ..policy };
        self.policy = Some(policy.clone());
        let (ruled, told) = self.configure_place(&self.own.clone(), Said::ByPolicy);
        assert_eq!(told, Ok(()), "a policy is never refused");
        self.broker(set_policy(policy)).0.expect("it is set");
        (self.version, self.settings) = (self.version + 1, ruled);
        self.move_on();
    }

    pub(crate) fn admissions(&self, publishes: &[Publish]) -> Vec<Admission> {
        let admission = |publish: &Publish| Admission {
            priority: self.settings.scheme.map(&publish.priority).expect("a priority of the scheme"),
            original: publish.priority.original(),
            id: publish.id.clone(),
            key: publish.key.clone(),
            key_weight: publish.key_weight,
            ttl_ms: publish.ttl_ms,
            base_ttl_ms: publish.base_ttl_ms,
            delay_ms: publish.delay_ms,
            bytes: publish.bytes,
            content: b"content".to_vec().into(),
            origin: publish.origin.clone(),
            at: None,
            arrival: None,
        };
        publishes.iter().map(admission).collect()
    }

    pub(crate) fn publish(&mut self, publishes: Vec<Publish>) {
        let told = self.ask(&Admit { messages: self.admissions(&publishes), tells: true });
        for (publish, told) in publishes.into_iter().zip(told) {
            let (reply, _) = self.broker(Command::Publish(publish));
            let published = reply.map(|reply| {
                let Reply::Published(published) = reply else { panic!("published: {reply:?}") };
                let seen =
                    |one: &Published| (one.seq, one.duplicate, (one.position, one.position_in_priority));
                published.first().map(seen)
            });
            let told = told.map(|one| one.map(|one| (one.seq, one.duplicate, one.position)));
            let told = told.map_err(|Declined(why)| why);
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
                let told: Vec<_> = told.into_iter().flatten().map(|one| (one.seq, one.duplicate)).collect();
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
            only: None,
            except: except.map(|lane| lane.level).collect(),
            one: lanes.one,
            last: None,
        };
        let holder = term_ms.is_none().then(|| ("session".to_owned(), 3_600_000));
        let timeout = self.settings.consumer_timeout_ms;
        let (shown, again) = self.ask_twice(&Leasing {
            max,
            max_bytes,
            term_ms: term_ms.unwrap_or(timeout),
            holder,
            choice,
            granted: Vec::new(),
        });
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

    /// Settles one, and says how it went.
    pub(crate) fn finish(&mut self, lease: Lease, outcome: Outcome, report: Report) {
        let asked = (lease.receipt.seq, lease.number);
        let told = self.ask(&Finish { outcome, lease: asked, report: report.clone() });
        let finish = Command::Finish { receipt: lease.receipt, outcome, report: Box::new(report) };
        let (Ok(Reply::Each(results)), _) = self.broker(finish) else { panic!("it is finished") };
        assert_eq!(told, results[0].is_ok());
    }

    /// Whoever was connected is gone.
    pub(crate) fn end_session(&mut self) {
        let held = self.stored(Status::Leased).into_iter().filter(|(_, holder)| holder.is_some()).count();
        let lost = self.call(&Alive::gone("session".into()), None).lost;
        assert!(lost as usize <= held, "{lost} of {held}");
        self.broker(Command::EndSession { session: SESSION }).0.expect("ended");
    }

    pub(crate) fn extend(&mut self, lease: Lease, term_ms: u64, output: Option<Arc<str>>) {
        let leases = vec![(lease.receipt.seq, lease.number)];
        let told = self.call(&Extend { term_ms, output: output.clone(), leases }, None);
        let (reply, _) =
            self.broker(Command::Extend { receipts: vec![lease.receipt], visibility_ms: term_ms });
        let Ok(Reply::Each(results)) = reply else { panic!("extended: {reply:?}") };
        let expected = match results[0] {
            Ok(()) => Extended::Longer,
            Err(Refusal::CancelAsked) => Extended::WantedBack,
            Err(_) => Extended::Over,
        };
        assert_eq!(told, [expected]);
        if let Some(output) = output.filter(|_| results[0].is_ok()) {
            self.broker.note_progress(lease.receipt, output);
        }
    }

    fn count(&mut self, told: Result<u64, Declined>, command: Command) {
        if self.was_late() {
            return;
        }
        let (reply, _) = self.broker(command);
        let counted = reply.map(|reply| {
            let Reply::Count(count) = reply else { panic!("counted: {reply:?}") };
            count
        });
        assert_eq!(told.map_err(|Declined(why)| why), counted);
    }

    /// Whether a message of this id is found at once. Time passes.
    fn has(&mut self, id: &str) -> bool {
        let found = self.call(&Find { id: id.into() }, None);
        self.broker.tick(self.now, &mut Step::default());
        found.is_some()
    }

    /// The messages that are meant. A dead letter that gave up its id is found by its sequence.
    fn asked(&mut self, which: &Chosen) -> Which {
        match which {
            Chosen::Id(id) if !self.has(id) => {
                let dead = self.stored(Status::Dead);
                let dead = dead.iter().find(|(message, _)| message.id() == Some(id));
                Which::Id(dead.map_or(id.clone(), |(message, _)| format!("seq-{}", message.seq.0).into()))
            }
            Chosen::Id(id) => Which::Id(id.clone()),
            Chosen::Seqs(seqs) => Which::Seqs(seqs.clone()),
            Chosen::All => panic!("all are asked for by page"),
        }
    }

    pub(crate) fn reprioritise(&mut self, which: &Chosen, given: &Given) {
        self.quieten();
        let priority = self.settings.scheme.map(given).expect("a priority of the scheme");
        let meant = self.asked(which);
        let told = self.ask(&Reprioritise { priority, original: given.original(), which: meant });
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
        self.quieten();
        let meant = self.asked(which);
        let told = self.ask(&Remove(meant));
        self.count(told, Command::Remove { queue: QUEUE.into(), which: which.clone() });
    }

    pub(crate) fn cancel(&mut self, which: &Chosen) {
        self.quieten();
        let meant = self.asked(which);
        let told = self.ask(&Cancel(meant));
        self.count(told, Command::CancelMessages { queue: QUEUE.into(), which: which.clone() });
    }

    /// Ends a message that waits, as its last attempt says late.
    pub(crate) fn finish_late(&mut self, id: &str, attempt: u32, outcome: Outcome, report: &Report) {
        self.quieten();
        let which = self.asked(&Chosen::Id(id.into()));
        let told = self.ask(&FinishLate { attempt, outcome, report: report.clone(), which });
        if self.was_late() {
            return;
        }
        let (queue, id, report) = (QUEUE.into(), id.into(), Box::new(report.clone()));
        let (reply, _) = self.broker(Command::FinishLate { queue, id, attempt, outcome, report });
        assert_eq!(told.map_err(|Declined(why)| why), reply.map(|_| 1));
    }

    pub(crate) fn replay(&mut self, which: &Chosen, promote: Option<&Given>) {
        self.quieten();
        let promoted =
            promote.map(|given| (self.settings.scheme.map(given).expect("a priority"), given.original()));
        let meant = self.asked(which);
        let told = self.ask(&Replay { promote: promoted, which: meant });
        let (which, promote) = (which.clone(), promote.cloned());
        self.count(told, Command::Replay { queue: QUEUE.into(), which, promote });
    }

    pub(crate) fn purge(&mut self, status: Option<Status>) {
        self.quieten();
        let (touched, more) = self.ask(&Purge { status, limit: 10_000 });
        assert!(!more);
        self.count(Ok(touched), Command::Purge { queue: QUEUE.into(), status, expect: None });
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
}

fn set_policy(definition: Definition) -> Command {
    let pattern = Pattern::new("^q$").expect("a pattern");
    let policy = Policy { pattern, definition, priority: 0, apply_to: ApplyTo::default() };
    Command::SetPolicy { kind: PolicyKind::User, name: "policy".into(), policy: Box::new(policy) }
}

/// A message to publish.
pub(crate) fn publish(priority: Given, bytes: u32) -> Publish {
    Publish {
        to: Address::Queue(QUEUE.into()),
        priority,
        id: None,
        origin: None,
        key: None,
        key_weight: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes,
        place: Place::default(),
    }
}
