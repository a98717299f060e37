//! Several queues, exchanges, dead letters that travel, last values, transactions, restarts, changed settings: after every
//! step all that a [`Watch`] watches holds, every message moved only as its life allows, and nothing that could have been
//! leased was left lying or passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{
    Address, Backoff, Band, Binding, BrowseOrder, Command, Consume, ConsumerId, DeadLetterTo, Delivery,
    Destination, Effect, Existing, Fact, Get, Headers, Identity, LaneSettings, LastValue, MessageView,
    Options, Order, Outcome, Overflow, PickerKind, Place, Priority, Publish, Pull, QueueId, QueueView,
    Receipt, Refusal, RejectBelow, Reply, Seq, SessionId, Settings, Status, Step, Time, UrgentCredit, Which,
    WindowId,
};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::watch::{Watch, browse};

const QUEUES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
enum Op {
    Declare {
        queue: usize,
        settings: Box<Settings>,
    },
    Make {
        queue: usize,
        settings: Option<Box<Settings>>,
        identity: (bool, bool, bool),
        existing: Existing,
        session: u64,
    },
    Get {
        queue: usize,
        no_ack: bool,
        session: u64,
    },
    Leave {
        id: u64,
    },
    Took {
        id: u64,
        messages: u32,
    },
    SetWindow {
        window: u32,
        size: u32,
    },
    EndSession {
        session: u64,
    },
    Delete {
        queue: usize,
        if_empty: bool,
        if_unused: bool,
    },
    Publish(Message),
    Transact {
        publishes: Vec<Message>,
        settles: Vec<(Index, Outcome)>,
    },
    Consume {
        id: u64,
        queue: usize,
        window: u32,
        urgent: Option<UrgentCredit>,
        priority: i32,
        terms: Terms,
    },
    Cancel {
        id: u64,
    },
    Pull {
        queue: usize,
        max: u32,
        visibility_ms: Option<u64>,
        wait_ms: u64,
    },
    Settle {
        which: Vec<Index>,
        outcome: Outcome,
    },
    Extend {
        which: Index,
        ms: u64,
    },
    Reprioritise {
        queue: usize,
        which: Chosen,
        priority: i64,
    },
    Remove {
        queue: usize,
        which: Chosen,
    },
    Purge {
        queue: usize,
        status: Option<Status>,
    },
    Replay {
        queue: usize,
        which: Chosen,
        promote: Option<i64>,
    },
    Bind {
        queue: usize,
        key: &'static str,
    },
    Unbind {
        queue: usize,
        key: &'static str,
    },
    Wait {
        ms: u64,
    },
    Hold(bool),
    PlanRewrite {
        at: Index,
        many: usize,
    },
    EndRewrite {
        nth: Index,
        is_written: bool,
    },
    Restart,
}

/// What few consumers ask for. Session 0 is none.
#[derive(Clone, Copy, Debug, Default)]
struct Terms {
    session: u64,
    shared: Option<u32>,
    exclusive: bool,
    no_ack: bool,
}

#[derive(Clone, Debug)]
struct Message {
    queue: Option<usize>,
    key_route: &'static str,
    priority: i64,
    id: Option<u8>,
    key: Option<u8>,
    ttl_ms: Option<u64>,
    delay_ms: u64,
    bytes: u32,
}

#[derive(Clone, Debug)]
enum Chosen {
    One(Index),
    Some(Vec<Index>),
    All,
}

// ---- drawing ----

fn ms() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0), 3 => 1..50_u64, 2 => 50..2_000_u64, 1 => 2_000..500_000_u64]
}

fn ttl() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(0)), 6 => ms().prop_map(|ms| Some(ms).filter(|ms| *ms > 0))]
}

fn queue() -> impl Strategy<Value = usize> {
    0..QUEUES.len()
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        3 => Just(Outcome::Ack),
        2 => Just(Outcome::Nack { delay_ms: None }),
        1 => ms().prop_map(|ms| Outcome::Nack { delay_ms: Some(ms) }),
        1 => Just(Outcome::Release),
        2 => Just(Outcome::Reject),
    ]
}

fn priority() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 0..10_i64, 1 => -2..0_i64, 1 => 10..300_i64]
}

fn message() -> impl Strategy<Value = Message> {
    let what = (priority(), prop::option::weighted(0.3, 0..4_u8), prop::option::weighted(0.6, 0..3_u8));
    (prop::option::weighted(0.8, queue()), route(), what, ttl(), ms(), 0..40_u32).prop_map(
        |(queue, key_route, (priority, id, key), ttl_ms, delay_ms, bytes)| Message {
            queue,
            key_route,
            priority,
            id,
            key,
            ttl_ms,
            delay_ms,
            bytes,
        },
    )
}

fn route() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("k"), Just("k.l"), Just("#"), Just("m.*")]
}

fn chosen() -> impl Strategy<Value = Chosen> {
    prop_oneof![
        4 => any::<Index>().prop_map(Chosen::One),
        1 => prop::collection::vec(any::<Index>(), 0..4).prop_map(Chosen::Some),
        1 => Just(Chosen::All),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    let bands = |at: i64| {
        let band = |name: &str, from: Option<i64>| Band { name: name.into(), from: from.map(Into::into) };
        Order::Lanes(vec![band("hot", Some(at + 2)), band("warm", Some(at)), band("cold", None)])
    };
    prop_oneof![4 => Just(Order::Priority), 1 => Just(Order::Fifo), 2 => (1..7_i64).prop_map(bands)]
}

fn lane_names(order: &Order) -> &'static [&'static str] {
    match order {
        Order::Priority => &["9", "4", "0"],
        Order::Fifo => &["fifo"],
        Order::Lanes(_) => &["hot", "warm", "cold"],
    }
}

fn dead_letter() -> impl Strategy<Value = DeadLetterTo> {
    prop_oneof![
        Just(DeadLetterTo::Keep),
        Just(DeadLetterTo::Drop),
        queue().prop_map(|queue| DeadLetterTo::Queue(QUEUES[queue].into())),
        Just(DeadLetterTo::Exchange { name: "amq.fanout".into(), routing_key: None }),
        Just(DeadLetterTo::Exchange { name: "amq.topic".into(), routing_key: None }),
        queue().prop_map(|queue| DeadLetterTo::Exchange {
            name: String::new(),
            routing_key: Some(QUEUES[queue].into())
        }),
    ]
}

fn settings() -> impl Strategy<Value = Box<Settings>> {
    let lanes = (order(), 0..4_u32, prop::option::of((0..3_usize, 1..4_u32)), 1..4_u32);
    let picker = prop_oneof![3 => Just(0_u8), 1 => Just(1), 1 => Just(2)];
    let overflow = prop_oneof![
        3 => Just(Overflow::Evict),
        2 => Just(Overflow::Reject),
        1 => Just(Overflow::RejectDeadLetter)
    ];
    let limits = (prop_oneof![Just(0_u64), 1..12_u64], prop_oneof![Just(0_u64), 20..200_u64], overflow);
    let refusals =
        (prop::option::weighted(0.2, (1..8_u64, 0..10_i64)), prop_oneof![3 => Just(0_u64), 1 => 5..40_u64]);
    let times = (ms(), ms(), prop_oneof![Just(0_u64), 1..40_000_u64], ms());
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1));
    let deaths = (0..4_u32, dead_letter(), flags);
    let life = (
        prop_oneof![9 => Just(0_u64), 1 => 500..20_000_u64],
        prop_oneof![5 => Just(0_u64), 1 => 1..3_000_u64],
        prop::bool::weighted(0.15),
    );
    let last_value =
        prop_oneof![4 => Just(None), 1 => Just(Some(LastValue::Key)), 1 => Just(Some(LastValue::One))];
    (lanes, picker, limits, refusals, times, deaths, (last_value, life)).prop_map(
        |(
            (order, max_active, lane, weight),
            picker,
            (max_length, max_bytes, overflow),
            (reject_below, max_message_bytes),
            (ttl_ms, max_ttl_ms, visibility_timeout_ms, initial_ms),
            (delivery_limit, dead_letter, (dead_letter_expired, dead_letter_evicted, expire_at_once)),
            (last_value, (expires_ms, consumer_timeout_ms, single_active_consumer)),
        )| {
            let name = |at: usize| lane_names(&order)[at % lane_names(&order).len()].to_owned();
            let settings = Settings {
                picker: match picker {
                    0 => PickerKind::Strict,
                    1 => PickerKind::AgingMs(u64::from(weight) * 100),
                    _ => PickerKind::Weighted(BTreeMap::from([(name(0), weight), (name(2), 2)])),
                },
                lanes: lane
                    .map(|(at, max_active)| (name(at), LaneSettings { max_active }))
                    .into_iter()
                    .collect(),
                order,
                max_active,
                max_length,
                max_bytes,
                overflow,
                reject_below: reject_below
                    .map(|(depth, priority)| RejectBelow { depth, priority: priority.into() }),
                max_message_bytes,
                ttl_ms,
                max_ttl_ms,
                visibility_timeout_ms,
                delivery_limit,
                backoff: Backoff { initial_ms: initial_ms.min(10_000), ..Backoff::default() },
                dead_letter,
                dead_letter_expired,
                dead_letter_evicted,
                expire_at_once,
                last_value,
                max_unacked: 3,
                expires_ms,
                consumer_timeout_ms,
                single_active_consumer,
                ..Settings::default()
            };
            settings.validate().expect("drawn to be sound");
            Box::new(settings)
        },
    )
}

fn terms() -> impl Strategy<Value = Terms> {
    let shared = prop::option::weighted(0.5, 0..2_u32);
    (0..3_u64, shared, prop::bool::weighted(0.1), prop::bool::weighted(0.2)).prop_map(
        |(session, shared, exclusive, no_ack)| {
            let shared = shared.filter(|_| session > 0);
            Terms { session, shared, exclusive, no_ack }
        },
    )
}

/// What is asked by those who are connected.
fn connected_op() -> impl Strategy<Value = Op> {
    let identity = (prop::bool::weighted(0.6), prop::bool::weighted(0.3), prop::bool::weighted(0.4));
    let existing = prop_oneof![Just(Existing::Same), Just(Existing::Update)];
    let settings = prop::option::weighted(0.5, settings());
    prop_oneof![
        3 => (queue(), settings, identity, existing, 0..3_u64).prop_map(|(queue, settings, identity, existing, session)| Op::Make { queue, settings, identity, existing, session }),
        6 => (queue(), prop::bool::weighted(0.3), 0..3_u64).prop_map(|(queue, no_ack, session)| Op::Get { queue, no_ack, session }),
        2 => (0..5_u64).prop_map(|id| Op::Leave { id }),
        3 => (0..5_u64, 0..3_u32).prop_map(|(id, messages)| Op::Took { id, messages }),
        3 => (0..2_u32, 0..5_u32).prop_map(|(window, size)| Op::SetWindow { window, size }),
        1 => (1..3_u64).prop_map(|session| Op::EndSession { session }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let urgent =
        prop::option::of((0..10, 0..3_u32).prop_map(|(at, extra)| UrgentCredit { at: Priority(at), extra }));
    let status = prop_oneof![
        Just(None),
        Just(Some(Status::Ready)),
        Just(Some(Status::Delayed)),
        Just(Some(Status::Dead))
    ];
    let settles = prop::collection::vec((any::<Index>(), outcome()), 0..3);
    prop_oneof![
        3 => (queue(), settings()).prop_map(|(queue, settings)| Op::Declare { queue, settings }),
        1 => (queue(), any::<bool>(), any::<bool>()).prop_map(|(queue, if_empty, if_unused)| Op::Delete { queue, if_empty, if_unused }),
        30 => message().prop_map(Op::Publish),
        3 => (prop::collection::vec(message(), 0..4), settles).prop_map(|(publishes, settles)| Op::Transact { publishes, settles }),
        5 => (0..5_u64, queue(), 1..4_u32, urgent, 0..2, terms()).prop_map(|(id, queue, window, urgent, priority, terms)| Op::Consume { id, queue, window, urgent, priority, terms }),
        14 => connected_op(),
        2 => (0..5_u64).prop_map(|id| Op::Cancel { id }),
        10 => (queue(), 1..4_u32, prop::option::of(ms()), ms()).prop_map(|(queue, max, visibility_ms, wait_ms)| Op::Pull { queue, max, visibility_ms, wait_ms }),
        16 => (prop::collection::vec(any::<Index>(), 1..4), outcome()).prop_map(|(which, outcome)| Op::Settle { which, outcome }),
        2 => (any::<Index>(), ms()).prop_map(|(which, ms)| Op::Extend { which, ms }),
        4 => (queue(), chosen(), priority()).prop_map(|(queue, which, priority)| Op::Reprioritise { queue, which, priority }),
        2 => (queue(), chosen()).prop_map(|(queue, which)| Op::Remove { queue, which }),
        1 => (queue(), status).prop_map(|(queue, status)| Op::Purge { queue, status }),
        4 => (queue(), chosen(), prop::option::of(priority())).prop_map(|(queue, which, promote)| Op::Replay { queue, which, promote }),
        2 => (queue(), route()).prop_map(|(queue, key)| Op::Bind { queue, key }),
        1 => (queue(), route()).prop_map(|(queue, key)| Op::Unbind { queue, key }),
        10 => ms().prop_map(|ms| Op::Wait { ms }),
        1 => any::<bool>().prop_map(Op::Hold),
        3 => (any::<Index>(), 1..6_usize).prop_map(|(at, many)| Op::PlanRewrite { at, many }),
        2 => (any::<Index>(), any::<bool>()).prop_map(|(nth, is_written)| Op::EndRewrite { nth, is_written }),
        1 => Just(Op::Restart),
    ]
}

/// A message that can be spilled.
fn plain() -> impl Strategy<Value = Message> {
    let ttl_ms = prop_oneof![5 => Just(0), 1 => ms()];
    let ttl_ms = ttl_ms.prop_map(|ms| Some(ms).filter(|ms| *ms > 0));
    (0..2_usize, 0..2_i64, ttl_ms, 0..30_u32).prop_map(|(queue, priority, ttl_ms, bytes)| Message {
        queue: Some(queue),
        key_route: "k",
        priority,
        id: None,
        key: None,
        ttl_ms,
        delay_ms: 0,
        bytes,
    })
}

/// Settings of a queue in which many messages wait.
fn deep_settings() -> impl Strategy<Value = Box<Settings>> {
    settings().prop_map(|settings| {
        let (last_value, reject_below) = (None, None);
        Box::new(Settings {
            last_value,
            reject_below,
            max_length: 0,
            max_bytes: 0,
            ttl_ms: 0,
            expire_at_once: false,
            ..*settings
        })
    })
}

/// What is asked of queues in which many messages wait: mostly more of them, some in the midst of them, and rewrites.
fn deep_op() -> impl Strategy<Value = Op> {
    let which = || prop::collection::vec(any::<Index>(), 1..6).prop_map(Chosen::Some);
    prop_oneof![
        12 => prop::collection::vec(plain(), 1..9).prop_map(|publishes| Op::Transact { publishes, settles: Vec::new() }),
        6 => (0..2_usize, 1..6_u32, ms()).prop_map(|(queue, max, ms)| Op::Pull { queue, max, visibility_ms: Some(ms), wait_ms: 0 }),
        2 => (0..3_u64, 0..2_usize).prop_map(|(id, queue)| Op::Consume { id, queue, window: 2, urgent: None, priority: 0, terms: Terms::default() }),
        1 => (0..3_u64).prop_map(|id| Op::Cancel { id }),
        6 => (prop::collection::vec(any::<Index>(), 1..4), outcome()).prop_map(|(which, outcome)| Op::Settle { which, outcome }),
        2 => (0..2_usize, which(), 0..2_i64).prop_map(|(queue, which, priority)| Op::Reprioritise { queue, which, priority }),
        6 => (0..2_usize, which()).prop_map(|(queue, which)| Op::Remove { queue, which }),
        3 => ms().prop_map(|ms| Op::Wait { ms }),
        12 => (any::<Index>(), 1..6_usize).prop_map(|(at, many)| Op::PlanRewrite { at, many }),
        4 => (any::<Index>(), prop::bool::weighted(0.8)).prop_map(|(nth, is_written)| Op::EndRewrite { nth, is_written }),
        2 => op(),
    ]
}

// ---- doing ----

/// Who takes, as the test knows it from what it asked and what it was told.
#[derive(Clone, Debug)]
struct Taker {
    queue: Arc<str>,
    window: u32,
    urgent: Option<UrgentCredit>,
    priority: i32,
    stays: bool,
    terms: Terms,
    /// The step it came with.
    joined: u64,
    /// Of one without acknowledgements, what it has not read.
    unread: u32,
    /// It held something too long.
    is_stopped: bool,
}

type Snapshot = BTreeMap<(QueueId, Seq), MessageView>;

struct World {
    watch: Watch,
    takers: BTreeMap<ConsumerId, Taker>,
    /// Those who left and may hold something still.
    left: BTreeMap<ConsumerId, Terms>,
    /// Shared windows that have a size.
    windows: BTreeMap<WindowId, u32>,
    /// Queues that may end by themselves, or with a restart or a session.
    passing: BTreeSet<QueueId>,
    /// Given out and not seen to end.
    deliveries: Vec<Delivery>,
    next: u64,
    held: bool,
    /// What it was told, when it asked last.
    told: String,
}

/// What may have happened to messages in a step.
#[derive(Default)]
struct Licence {
    settled: Vec<Receipt>,
    removes: bool,
    publishes: bool,
    reprioritises: bool,
    replays: bool,
    cancels: bool,
    extends: bool,
    restarts: bool,
}

impl World {
    fn new(keep: Option<usize>) -> Self {
        let options =
            Options { life: 1, seed: 7, max_message_bytes: 35, default_ttl_ms: 90_000, ..Options::default() };
        let mut watch = Watch::new(options, Time(1_000_000));
        if let Some(keep) = keep {
            watch.spill(keep);
        }
        Self {
            watch,
            takers: BTreeMap::new(),
            left: BTreeMap::new(),
            windows: BTreeMap::new(),
            passing: BTreeSet::new(),
            deliveries: Vec::new(),
            next: 100,
            held: false,
            told: String::new(),
        }
    }

    fn snapshot(&self) -> Snapshot {
        let names: Vec<(QueueId, Arc<str>)> =
            self.watch.broker.views(self.watch.now, None).map(|view| (view.queue, view.name)).collect();
        let all = names.into_iter().flat_map(|(id, name)| {
            let views = browse(&self.watch.broker, &name, BrowseOrder::Published);
            views.into_iter().map(move |view| ((id, view.seq), view))
        });
        all.collect()
    }

    /// All that can be seen, but for where contents are now.
    fn picture(&self) -> Vec<String> {
        let mut picture = vec![self.told.clone()];
        for mut view in self.snapshot().into_values() {
            view.place = self.watch.first_place(view.place);
            picture.push(format!("{view:?}"));
        }
        let lanes = self.watch.broker.views(self.watch.now, None).map(|view| format!("{:?}", view.lanes));
        picture.extend(lanes);
        let leases = self.deliveries.iter().map(|given| (given.consumer, given.receipt, given.count));
        picture.extend(leases.map(|lease| format!("{lease:?}")));
        picture
    }

    fn ask(&mut self, command: Command, licence: &Licence) -> Result<Reply, Refusal> {
        let before = self.snapshot();
        let is_publish = matches!(command, Command::Publish(_));
        let (reply, step) = self.watch.apply(command);
        self.told = format!("{reply:?}");
        let may_die = is_publish && reply == Err(Refusal::QueueFull);
        if reply.is_err() && !(may_die && self.dead_letters_what_it_refuses()) {
            assert!(
                step.facts.is_empty() && step.effects.is_empty(),
                "refused, but something happened: {step:?}"
            );
        }
        self.judge(&before, &step, licence);
        reply
    }

    fn dead_letters_what_it_refuses(&self) -> bool {
        let mut views = self.watch.broker.views(self.watch.now, None);
        views.any(|view| view.settings.overflow == Overflow::RejectDeadLetter)
    }

    fn ask_by(&mut self, session: u64, command: Command, licence: &Licence) -> Result<Reply, Refusal> {
        if session == 0 {
            return self.ask(command, licence);
        }
        let (session, command) = (SessionId(session), Box::new(command));
        self.ask(Command::By { session, command }, licence)
    }

    /// A new number.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn take(&mut self, consumer: ConsumerId, taker: Taker, command: Command) {
        let session = taker.terms.session;
        let (queue, is_exclusive) = (Arc::clone(&taker.queue), taker.terms.exclusive);
        let others = self.takers.values().filter(|other| other.stays && other.queue == queue);
        let is_alone = taker.stays && others.clone().any(|other| is_exclusive || other.terms.exclusive);
        let view = self.watch.broker.view(self.watch.now, &queue);
        let is_locked =
            view.as_ref().is_ok_and(|view| view.owner.is_some_and(|owner| owner != SessionId(session)));
        let expected = match view {
            Err(refusal) => Err(refusal),
            Ok(_) if is_locked => Err(Refusal::QueueLocked),
            Ok(_) if is_alone => Err(Refusal::ConsumerExclusive),
            Ok(_) => Ok(()),
        };
        if expected.is_ok() {
            self.takers.insert(consumer, taker);
        }
        let answer = self.ask_by(session, command, &Licence::default());
        assert_eq!(answer.map(drop), expected);
    }

    fn act(&mut self, op: &Op) {
        // Time that has passed is a step of its own, so that a refusal can be seen to change nothing.
        match op {
            Op::Declare { queue, settings } => {
                let (name, settings) = (QUEUES[*queue].into(), settings.clone());
                let _ = self.ask(Command::declare(name, settings), &Licence::default());
            }
            Op::Delete { queue, if_empty, if_unused } => {
                let (name, if_empty, if_unused) = (QUEUES[*queue].into(), *if_empty, *if_unused);
                let licence = Licence { removes: true, ..Licence::default() };
                let _ = self.ask(Command::DeleteQueue { name, if_empty, if_unused }, &licence);
            }
            Op::Publish(message) => {
                let publish = self.publish(message);
                let licence = Licence { publishes: true, ..Licence::default() };
                let _ = self.ask(Command::Publish(publish), &licence);
            }
            Op::Transact { publishes, settles } => self.transact(publishes, settles),
            Op::Consume { id, queue, window, urgent, priority, terms } => {
                let consumer = ConsumerId(*id);
                let (queue, terms) = (Arc::<str>::from(QUEUES[*queue]), *terms);
                let consume = Consume {
                    window: Some(*window),
                    shared: terms.shared.map(|number| window_of(terms.session, number)),
                    urgent: *urgent,
                    priority: *priority,
                    exclusive: terms.exclusive,
                    no_ack: terms.no_ack,
                    ..Consume::new(consumer, Arc::clone(&queue))
                };
                if self.takers.contains_key(&consumer) || self.left.contains_key(&consumer) {
                    return;
                }
                let joined = self.number();
                let taker = Taker {
                    queue,
                    window: *window,
                    urgent: *urgent,
                    priority: *priority,
                    stays: true,
                    terms,
                    joined,
                    unread: 0,
                    is_stopped: false,
                };
                self.take(consumer, taker, Command::Consume(consume));
            }
            Op::Cancel { id } => {
                let consumer = ConsumerId(*id);
                let licence = Licence { cancels: true, ..Licence::default() };
                self.takers.remove(&consumer);
                self.left.remove(&consumer);
                self.watch.forget(consumer);
                let _ = self.ask(Command::Cancel { consumer }, &licence);
            }
            Op::Make { queue, settings, identity, existing, session } => {
                let (durable, exclusive, auto_delete) = *identity;
                let identity = Identity { durable, exclusive, auto_delete, arguments: [7].into() };
                let there = self.watch.broker.view(self.watch.now, QUEUES[*queue]).ok();
                let same = there.as_ref().map(|view| Box::new(view.settings.clone()));
                let settings = settings.clone().or(same).unwrap_or_default();
                let differs = there.as_ref().is_some_and(|view| {
                    *existing == Existing::Same && (view.identity != identity || view.settings != *settings)
                });
                let existing = *existing;
                let name = QUEUES[*queue].into();
                let declare = Command::DeclareQueue { name, settings, identity, existing };
                let answer = self.ask_by(*session, declare, &Licence::default());
                assert!(!differs || answer.is_err(), "one that differs is refused");
            }
            Op::Get { queue, no_ack, session } => {
                let (consumer, queue) = (ConsumerId(self.number()), QUEUES[*queue].into());
                let get = Get { consumer, queue, no_ack: *no_ack };
                let _ = self.ask_by(*session, Command::Get(get), &Licence::default());
            }
            Op::Leave { id } => {
                let consumer = ConsumerId(*id);
                if let Some(taker) = self.takers.remove(&consumer) {
                    self.left.insert(consumer, taker.terms);
                    let cancels = taker.terms.session == 0;
                    let _ = self.ask(Command::Leave { consumer }, &Licence { cancels, ..Licence::default() });
                }
            }
            Op::Took { id, messages } => {
                if let Some(taker) = self.takers.get_mut(&ConsumerId(*id)) {
                    taker.unread = taker.unread.saturating_sub(*messages);
                    let took = Command::Took { consumer: ConsumerId(*id), messages: *messages };
                    let _ = self.ask(took, &Licence::default());
                }
            }
            Op::SetWindow { window, size } => {
                let window = window_of(1, *window);
                self.windows.insert(window, *size);
                let _ = self.ask(Command::SetWindow { window, size: *size }, &Licence::default());
            }
            Op::EndSession { session } => {
                let session = SessionId(*session);
                self.left.retain(|_, terms| terms.session != session.0);
                self.windows.retain(|window, _| window.session != session);
                let licence = Licence { cancels: true, ..Licence::default() };
                let _ = self.ask(Command::EndSession { session }, &licence);
                let mut all = self.takers.values();
                assert!(all.all(|taker| taker.terms.session != session.0), "all of it has ended");
            }
            Op::Pull { queue, max, visibility_ms, wait_ms } => {
                let consumer = ConsumerId(self.number());
                let queue: Arc<str> = QUEUES[*queue].into();
                let taker = Taker {
                    queue: Arc::clone(&queue),
                    window: *max,
                    urgent: None,
                    priority: 0,
                    stays: false,
                    terms: Terms::default(),
                    joined: consumer.0,
                    unread: 0,
                    is_stopped: false,
                };
                let pull = Pull {
                    consumer,
                    queue,
                    max: *max,
                    max_bytes: u64::from(*max & 1) * 9,
                    visibility_ms: *visibility_ms,
                    until: self.watch.now.after(*wait_ms),
                };
                self.take(consumer, taker, Command::Pull(pull));
            }
            Op::Settle { which, outcome } => {
                let receipts: Vec<Receipt> = which.iter().filter_map(|index| self.receipt(index)).collect();
                let licence = Licence { settled: receipts.clone(), ..Licence::default() };
                let before = self.snapshot();
                let held: Vec<bool> =
                    receipts.iter().map(|receipt| self.held_before(&before, receipt)).collect();
                let reply =
                    self.ask(Command::Settle { receipts: receipts.clone(), outcome: *outcome }, &licence);
                let Ok(Reply::Each(results)) = reply else { panic!("{reply:?}") };
                for (at, (receipt, result)) in receipts.iter().zip(results).enumerate() {
                    let first = !receipts[..at].contains(receipt);
                    assert_eq!(
                        result.is_ok(),
                        first && held[at],
                        "a receipt holds while its lease does: {receipt:?}"
                    );
                }
            }
            Op::Extend { which, ms } => {
                if let Some(receipt) = self.receipt(which) {
                    let licence = Licence { extends: true, ..Licence::default() };
                    let _ =
                        self.ask(Command::Extend { receipts: vec![receipt], visibility_ms: *ms }, &licence);
                }
            }
            Op::Reprioritise { queue, which, priority } => {
                let licence = Licence { reprioritises: true, ..Licence::default() };
                let (queue, which) = (QUEUES[*queue].into(), self.which(*queue, which));
                let priority = (*priority).into();
                let _ = self.ask(Command::Reprioritise { queue, which, priority }, &licence);
            }
            Op::Remove { queue, which } => {
                let licence = Licence { removes: true, ..Licence::default() };
                let (queue, which) = (QUEUES[*queue].into(), self.which(*queue, which));
                let _ = self.ask(Command::Remove { queue, which }, &licence);
            }
            Op::Purge { queue, status } => {
                let licence = Licence { removes: true, ..Licence::default() };
                let _ = self.ask(Command::Purge { queue: QUEUES[*queue].into(), status: *status }, &licence);
            }
            Op::Replay { queue, which, promote } => {
                let licence = Licence { replays: true, ..Licence::default() };
                let (queue, which) = (QUEUES[*queue].into(), self.which(*queue, which));
                let promote = promote.map(Into::into);
                let _ = self.ask(Command::Replay { queue, which, promote }, &licence);
            }
            Op::Bind { queue, key } => {
                let _ = self.ask(Command::Bind(binding(*queue, key)), &Licence::default());
                let _ = self.ask(Command::Bind(fanout(*queue)), &Licence::default());
            }
            Op::Unbind { queue, key } => {
                let _ = self.ask(Command::Unbind(binding(*queue, key)), &Licence::default());
            }
            Op::Wait { ms } => {
                let before = self.snapshot();
                let step = self.watch.wait(*ms);
                self.judge(&before, &step, &Licence::default());
            }
            Op::Hold(held) => {
                let before = self.snapshot();
                self.held = *held;
                let step = self.watch.hold(*held);
                self.judge(&before, &step, &Licence::default());
            }
            Op::PlanRewrite { at, many } => self.watch.plan_rewrite(at.index(1 << 16), *many),
            Op::EndRewrite { nth, is_written } => self.watch.end_rewrite(nth.index(1 << 16), *is_written),
            Op::Restart => {
                let before = self.snapshot();
                self.takers.clear();
                self.left.clear();
                self.windows.clear();
                self.held = false;
                let step = self.watch.restart();
                self.judge(&before, &step, &Licence { restarts: true, ..Licence::default() });
            }
        }
    }

    fn transact(&mut self, publishes: &[Message], settles: &[(Index, Outcome)]) {
        let publishes: Vec<Publish> = publishes.iter().map(|message| self.publish(message)).collect();
        let settlements: Vec<(Receipt, Outcome)> =
            settles.iter().filter_map(|(index, outcome)| Some((self.receipt(index)?, *outcome))).collect();
        let settled = settlements.iter().map(|(receipt, _)| *receipt).collect();
        let licence = Licence { settled, publishes: true, ..Licence::default() };
        let _ = self.ask(Command::Transact { publishes, settlements }, &licence);
    }

    fn publish(&mut self, message: &Message) -> Publish {
        self.next += 1;
        let to = match message.queue {
            Some(queue) => Address::Queue(QUEUES[queue].into()),
            None => Address::Exchange {
                name: if message.key_route == "#" { "amq.fanout".into() } else { "amq.topic".into() },
                routing_key: message.key_route.into(),
                more_keys: Vec::new(),
                marks: Arc::new(Headers::new()),
                mandatory: message.bytes.is_multiple_of(2),
            },
        };
        Publish {
            to,
            priority: message.priority.into(),
            id: message.id.map(|id| format!("id{id}").into()),
            key: message.key.map(|key| format!("key{key}").into()),
            ttl_ms: message.ttl_ms,
            delay_ms: message.delay_ms,
            bytes: message.bytes,
            place: Place(self.next),
        }
    }

    fn receipt(&self, index: &Index) -> Option<Receipt> {
        // The latest ones, so that most of them hold.
        let recent = &self.deliveries[self.deliveries.len().saturating_sub(8)..];
        (!recent.is_empty()).then(|| index.get(recent).receipt)
    }

    fn held_before(&self, before: &Snapshot, receipt: &Receipt) -> bool {
        let last = self.deliveries.iter().rev().find(|delivery| {
            (delivery.receipt.queue, delivery.receipt.seq) == (receipt.queue, receipt.seq)
                && delivery.receipt.lease <= receipt.lease
        });
        let leased =
            before.get(&(receipt.queue, receipt.seq)).is_some_and(|view| view.status == Status::Leased);
        let newest = self.deliveries.iter().all(|delivery| {
            (delivery.receipt.queue, delivery.receipt.seq) != (receipt.queue, receipt.seq)
                || delivery.receipt.lease <= receipt.lease
        });
        leased && last.is_some() && newest
    }

    fn which(&self, queue: usize, chosen: &Chosen) -> Which {
        let Ok(id) = self.watch.broker.id_of(QUEUES[queue]) else { return Which::All };
        let all: Vec<MessageView> =
            self.snapshot().into_iter().filter(|((at, _), _)| *at == id).map(|(_, view)| view).collect();
        match chosen {
            Chosen::One(_) if all.is_empty() => Which::Id("nobody".into()),
            Chosen::One(index) => Which::Id(index.get(&all).id.clone().into()),
            Chosen::Some(indices) if all.is_empty() => Which::Seqs(indices.iter().map(|_| Seq(9)).collect()),
            Chosen::Some(indices) => Which::Seqs(indices.iter().map(|index| index.get(&all).seq).collect()),
            Chosen::All => Which::All,
        }
    }

    // ---- judging ----

    fn judge(&mut self, before: &Snapshot, step: &Step, licence: &Licence) {
        for effect in &step.effects {
            match effect {
                Effect::Served { consumer } | Effect::Cancelled { consumer } => {
                    assert!(self.takers.remove(consumer).is_some(), "{consumer:?} ended and was not there");
                }
                Effect::TimedOut { consumer, .. } => {
                    if let Some(taker) = self.takers.get_mut(consumer) {
                        taker.is_stopped = true;
                    }
                }
                Effect::Deliver(delivery) if delivery.settled.is_some() => {
                    if let Some(taker) = self.takers.get_mut(&delivery.consumer) {
                        taker.unread += 1;
                        assert!(taker.unread <= taker.window, "{taker:?} has more to read than it may");
                    }
                }
                _ => {}
            }
        }
        for fact in &step.facts {
            if let Fact::QueueDeleted { queue } = fact {
                assert!(licence.removes || self.passing.contains(queue), "{queue:?} went without a reason");
            }
        }
        let passing = self.watch.broker.views(self.watch.now, None).filter(|view| {
            !view.identity.is_lasting() || view.identity.auto_delete || view.settings.expires_ms > 0
        });
        self.passing = passing.map(|view| view.queue).collect();
        let after = self.snapshot();
        for (at, view) in before {
            self.judge_move(view, after.get(at), *at, step, licence);
        }
        let new = after.iter().filter(|(at, _)| !before.contains_key(at));
        for (at, view) in new {
            let told = step.facts.iter().any(|fact| match fact {
                Fact::Stored { queue, message } => licence.publishes && (*queue, message.seq) == *at,
                Fact::Moved { to, .. } => to.iter().any(|to| (to.queue, to.message.seq) == *at),
                _ => false,
            });
            assert!(told, "{view:?} came from nowhere");
        }
        let deliveries = step.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver(delivery) if delivery.settled.is_none() => Some(delivery.clone()),
            _ => None,
        });
        self.deliveries.extend(deliveries);
        let held: Vec<ConsumerId> = self.left.keys().copied().collect();
        for consumer in held {
            if self.held_by(consumer, &after) == 0 {
                self.left.remove(&consumer);
            }
        }
        self.judge_leases(&after, step, &late_letters(before, step));
    }

    /// The picture of a message's life: which arrows are there, and what must have happened for each.
    fn judge_move(
        &self,
        view: &MessageView,
        after: Option<&MessageView>,
        at: (QueueId, Seq),
        step: &Step,
        licence: &Licence,
    ) {
        let now = self.watch.now;
        let expired = view.expires.is_some_and(|expires| expires <= now);
        let settled = licence.settled.iter().any(|receipt| (receipt.queue, receipt.seq) == at);
        let over = view.deadline.is_some_and(|deadline| deadline <= now);
        let lost = licence.cancels || licence.restarts;
        let deleted = |fact: &Fact| matches!(fact, Fact::QueueDeleted { queue } if *queue == at.0);
        let is_given_away = |effect: &Effect| matches!(effect, Effect::Deliver(given) if (given.receipt.queue, given.receipt.seq) == at && given.settled.is_some());
        if after.is_none() && (step.facts.iter().any(deleted) || step.effects.iter().any(is_given_away)) {
            return;
        }
        let ended = settled || over || lost;
        let delivered = step.effects.iter().any(|effect| {
            matches!(effect, Effect::Deliver(delivery) if (delivery.receipt.queue, delivery.receipt.seq) == at)
        });
        let moves_in = step.facts.iter().any(|fact| matches!(fact, Fact::Moved { .. }));
        let crowded = licence.publishes || licence.replays || moves_in;
        let Some(after) = after else {
            let may = match view.status {
                Status::Ready | Status::Delayed => expired || crowded || licence.removes || licence.restarts,
                Status::Leased => ended || licence.removes,
                Status::Dead => licence.removes || licence.replays,
            };
            assert!(may, "{view:?} vanished");
            return;
        };
        let due = view.due.is_some_and(|due| due <= now);
        let may = match (view.status, after.status) {
            (Status::Ready | Status::Leased | Status::Dead, same) if same == view.status && !delivered => {
                true
            }
            (Status::Delayed, Status::Delayed) => true,
            (Status::Ready, Status::Leased) => delivered,
            (Status::Ready, Status::Dead) => expired || crowded,
            (Status::Delayed, Status::Ready) => due,
            (Status::Delayed, Status::Leased) => due && delivered,
            (Status::Delayed, Status::Dead) => expired || (due && crowded),
            (Status::Leased, Status::Ready | Status::Delayed | Status::Dead) => ended,
            (Status::Leased, Status::Leased) => ended && delivered,
            (Status::Dead, Status::Ready) => licence.replays,
            (Status::Dead, Status::Leased) => licence.replays && delivered,
            _ => false,
        };
        assert!(may, "{:?} became {:?}: {view:?}", view.status, after.status);
        let first = |view: &MessageView| self.watch.first_place(view.place);
        assert_eq!(
            (after.since, after.bytes, &after.key, &after.id, first(after)),
            (view.since, view.bytes, &view.key, &view.id, first(view)),
            "what no step may change"
        );
        if !licence.reprioritises && !licence.replays {
            assert_eq!((after.level, &after.priority), (view.level, &view.priority));
        }
        if !licence.replays {
            assert_eq!(after.expires, view.expires, "the expiry is stamped at publish");
            assert!(after.count >= view.count || licence.restarts, "the count goes up only");
        }
        if view.status == Status::Leased && after.status == Status::Leased && !licence.extends && !delivered {
            assert_eq!(after.deadline, view.deadline);
        }
    }

    fn judge_leases(&self, after: &Snapshot, step: &Step, late: &BTreeSet<(QueueId, Seq)>) {
        for queue in self.watch.broker.views(self.watch.now, None) {
            let here = || after.iter().filter(|((id, _), _)| *id == queue.queue).map(|(_, view)| view);
            let leased = here().filter(|view| view.status == Status::Leased).count() as u64;
            let lane = |view: &MessageView| {
                queue.lanes.iter().find(|lane| lane.lane == view.lane).expect("every message has a lane")
            };
            let capped = |view: &MessageView| {
                let lane = lane(view);
                lane.max_active > 0 && lane.leased >= u64::from(lane.max_active)
            };
            let full = queue.settings.max_active > 0 && leased >= u64::from(queue.settings.max_active);
            let given: Vec<&Delivery> = step
                .effects
                .iter()
                .filter_map(|effect| match effect {
                    Effect::Deliver(delivery) if delivery.receipt.queue == queue.queue => Some(delivery),
                    _ => None,
                })
                .collect();
            assert!(!self.held || given.is_empty(), "leases were held");
            for delivery in &given {
                let Some(view) = after.get(&(queue.queue, delivery.receipt.seq)) else { continue };
                let cap = u64::from(queue.settings.max_active);
                assert!(cap == 0 || leased <= cap, "over the cap of {cap}");
                assert!(
                    lane(view).max_active == 0 || lane(view).leased <= u64::from(lane(view).max_active),
                    "over a lane's cap"
                );
                let came_before = |other: &&MessageView| !late.contains(&(queue.queue, other.seq));
                for other in here().filter(|other| other.status == Status::Ready).filter(came_before) {
                    assert!(
                        other.lane != view.lane || other.seq > view.seq,
                        "{view:?} went before {other:?} of its lane"
                    );
                    let outranks = lane(other).level > lane(view).level;
                    let strict = queue.settings.picker == PickerKind::Strict;
                    assert!(
                        !strict || !outranks || capped(other),
                        "{view:?} went before {other:?}, which outranks it"
                    );
                }
            }
            if queue.settings.picker == PickerKind::Strict {
                let seqs = || given.iter().map(|delivery| (queue.queue, delivery.receipt.seq));
                let has_gone = seqs().any(|at| !after.contains_key(&at));
                let views: Vec<&MessageView> =
                    seqs().filter(|at| !late.contains(at)).filter_map(|at| after.get(&at)).collect();
                let sorted = views.is_sorted_by_key(|view| (-lane(view).level, view.seq));
                assert!(sorted || has_gone, "leased out of order: {views:?}");
            }
            for delivery in &given {
                let Some(got) = self.takers.get(&delivery.consumer) else { continue };
                let better = self.takers.iter().find(|(id, taker)| {
                    taker.priority > got.priority
                        && taker.queue == got.queue
                        && !queue.settings.single_active_consumer
                        && self.has_window(**id, taker, after, 0)
                });
                assert!(better.is_none(), "{got:?} was served and {better:?} had room");
            }
            self.judge_single(&queue, &given);
            // Nothing that somebody has room for is left lying.
            for view in
                here().filter(|view| view.status == Status::Ready && !full && !capped(view) && !self.held)
            {
                let wanted = self
                    .takers
                    .iter()
                    .find(|(id, taker)| self.has_room(**id, taker, &queue.name, view, after));
                assert!(wanted.is_none(), "{view:?} lies there and {wanted:?} waits");
            }
        }
    }

    fn has_room(
        &self,
        id: ConsumerId,
        taker: &Taker,
        queue: &str,
        view: &MessageView,
        after: &Snapshot,
    ) -> bool {
        if *taker.queue != *queue || !self.may_be_served(id, taker, after) {
            return false;
        }
        self.has_window(id, taker, after, 0)
            || taker.urgent.filter(|_| !taker.terms.no_ack).is_some_and(|urgent| {
                let level = match self.watch.broker.settings(queue).expect("there").order {
                    Order::Priority => view.level,
                    _ => Priority(i32::MIN),
                };
                level >= urgent.at && self.has_window(id, taker, after, urgent.extra)
            })
    }

    /// Whether its windows have room, its own and the one it shares, with so much extra.
    fn has_window(&self, id: ConsumerId, taker: &Taker, after: &Snapshot, extra: u32) -> bool {
        if !taker.stays || taker.is_stopped || taker.terms.no_ack {
            return !taker.stays || (!taker.is_stopped && taker.unread < taker.window);
        }
        self.held_by(id, after) < taker.window + extra && self.has_shared(taker.terms, after, extra)
    }

    fn has_shared(&self, terms: Terms, after: &Snapshot, extra: u32) -> bool {
        let Some(number) = terms.shared else { return true };
        let Some(size) = self.windows.get(&window_of(terms.session, number)).filter(|size| **size > 0) else {
            return true;
        };
        let shares =
            |other: Terms| (other.session, other.shared) == (terms.session, terms.shared) && !other.no_ack;
        let stay = self.takers.iter().map(|(id, taker)| (*id, taker.terms));
        let all = stay.chain(self.left.iter().map(|(id, terms)| (*id, *terms)));
        let held: u32 = all.filter(|(_, other)| shares(*other)).map(|(id, _)| self.held_by(id, after)).sum();
        held < size + extra
    }

    /// Where one is served alone: whether this is surely the one, the first in rank while no other holds anything.
    fn may_be_served(&self, id: ConsumerId, taker: &Taker, after: &Snapshot) -> bool {
        let is_single = self.watch.broker.settings(&taker.queue).is_ok_and(|is| is.single_active_consumer);
        if !is_single || !taker.stays {
            return true;
        }
        let others = || {
            self.takers.iter().filter(|(other, there)| {
                **other != id && there.stays && !there.is_stopped && there.queue == taker.queue
            })
        };
        let rank = |taker: &Taker| (-taker.priority, taker.joined);
        others().all(|(other, there)| rank(there) > rank(taker) && self.held_by(*other, after) == 0)
    }

    /// Where one is served alone, one was.
    fn judge_single(&self, queue: &QueueView, given: &[&Delivery]) {
        if queue.settings.single_active_consumer {
            let stays =
                |delivery: &&&Delivery| self.takers.get(&delivery.consumer).is_some_and(|taker| taker.stays);
            let served: BTreeSet<ConsumerId> =
                given.iter().filter(stays).map(|delivery| delivery.consumer).collect();
            assert!(served.len() <= 1, "{served:?} were served in one step");
        }
    }

    /// How many messages a consumer holds.
    fn held_by(&self, id: ConsumerId, after: &Snapshot) -> u32 {
        let held = self.deliveries.iter().filter(|delivery| {
            delivery.consumer == id && {
                let at = (delivery.receipt.queue, delivery.receipt.seq);
                let newest = self.deliveries.iter().rev().find(|d| (d.receipt.queue, d.receipt.seq) == at);
                newest.is_some_and(|newest| newest.receipt == delivery.receipt)
                    && after.get(&at).is_some_and(|view| view.status == Status::Leased)
            }
        });
        held.count() as u32
    }
}

fn window_of(session: u64, number: u32) -> WindowId {
    WindowId { session: SessionId(session), number }
}

fn binding(queue: usize, key: &str) -> Box<Binding> {
    Box::new(Binding::new("amq.topic", Destination::Queue(QUEUES[queue].into()), key))
}

fn fanout(queue: usize) -> Box<Binding> {
    Box::new(Binding { exchange: "amq.fanout".into(), ..*binding(queue, "") })
}

/// Where the dead letters are of what was to be taken at once: it dies when everything that could be leased is.
fn late_letters(before: &Snapshot, step: &Step) -> BTreeSet<(QueueId, Seq)> {
    let letters = step.facts.iter().filter_map(|fact| match fact {
        Fact::Moved { from, seq, to } => {
            let waited = before.get(&(*from, *seq)).is_some_and(|view| view.status != Status::Leased);
            (!waited).then_some(to)
        }
        _ => None,
    });
    letters.flatten().map(|to| (to.queue, to.message.seq)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_broker_is_asked_its_invariants_hold(
        declared in prop::collection::vec(settings(), QUEUES.len()),
        ops in prop::collection::vec(op(), 1..200),
        keep in prop::option::of(0..3_usize),
    ) {
        compare(keep, declared, ops);
    }

    #[test]
    fn whatever_is_asked_of_deep_queues_nobody_sees_what_is_not_in_memory(
        declared in prop::collection::vec(deep_settings(), QUEUES.len()),
        ops in prop::collection::vec(deep_op(), 1..120),
        keep in 0..3_usize,
    ) {
        compare(Some(keep), declared, ops);
    }
}

/// Asks a broker that spills and one that never does the same.
fn compare(keep: Option<usize>, declared: impl IntoIterator<Item = Box<Settings>>, ops: Vec<Op>) {
    let mut worlds = vec![World::new(keep)];
    worlds.extend(keep.map(|_| World::new(None)));
    let declared = declared.into_iter().enumerate();
    let first = declared
        .flat_map(|(queue, settings)| [Op::Declare { queue, settings }, Op::Bind { queue, key: "#" }]);
    for op in first.chain(ops) {
        for world in &mut worlds {
            world.act(&op);
        }
        if let [spilling, other] = &worlds[..] {
            assert_eq!(spilling.picture(), other.picture(), "one that spills and one that never does");
        }
    }
}
