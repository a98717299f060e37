//! What a world may be asked, drawn.

use std::collections::BTreeMap;

use overtake_lane::{
    ApplyTo, Backoff, Band, DeadLetterTo, Definition, Existing, LaneSettings, LastValue, Order, Outcome,
    Overflow, Pattern, PickerKind, Policy, PolicyKind, Priority, RateLimit, RejectBelow, Scheme, Settings,
    Status, UrgentCredit,
};
use proptest::prelude::*;
use proptest::sample::Index;

pub(super) const QUEUES: [&str; 3] = ["a", "b", "c"];
/// Some of which are there. Each may have queues of all those names.
pub(super) const VHOSTS: [&str; 3] = ["/", "v", "w"];
pub(super) const POLICIES: [&str; 3] = ["p", "o", "r"];

#[derive(Clone, Debug)]
pub(super) enum Op {
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
        joining: Vec<u64>,
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
    SetPolicy {
        kind: PolicyKind,
        name: usize,
        policy: Box<Policy>,
    },
    RemovePolicy {
        kind: PolicyKind,
        name: usize,
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
    /// All that follows is asked in this virtual host.
    At {
        vhost: usize,
    },
    DeclareVhost {
        vhost: usize,
        max_queues: Option<u64>,
    },
    DeleteVhost {
        vhost: usize,
    },
    Restart,
}

/// What few consumers ask for. Session 0 is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    pub(super) session: u64,
    pub(super) shared: Option<u32>,
    pub(super) exclusive: bool,
    pub(super) no_ack: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) queue: Option<usize>,
    pub(super) key_route: &'static str,
    pub(super) priority: i64,
    pub(super) id: Option<u8>,
    pub(super) key: Option<u8>,
    pub(super) ttl_ms: Option<u64>,
    pub(super) delay_ms: u64,
    pub(super) bytes: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Chosen {
    One(Index),
    Some(Vec<Index>),
    All,
}

pub(super) fn ms() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0), 3 => 1..50_u64, 2 => 50..2_000_u64, 1 => 2_000..500_000_u64]
}

pub(super) fn ttl() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(0)), 6 => ms().prop_map(|ms| Some(ms).filter(|ms| *ms > 0))]
}

pub(super) fn queue() -> impl Strategy<Value = usize> {
    0..QUEUES.len()
}

pub(super) fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        3 => Just(Outcome::Ack),
        2 => Just(Outcome::Nack { delay_ms: None }),
        1 => ms().prop_map(|ms| Outcome::Nack { delay_ms: Some(ms) }),
        1 => Just(Outcome::Release),
        2 => Just(Outcome::Reject),
        1 => Just(Outcome::Timeout),
    ]
}

pub(super) fn priority() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 0..10_i64, 1 => -2..0_i64, 1 => 10..300_i64]
}

pub(super) fn message() -> impl Strategy<Value = Message> {
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

pub(super) fn route() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("k"), Just("k.l"), Just("#"), Just("m.*")]
}

pub(super) fn chosen() -> impl Strategy<Value = Chosen> {
    prop_oneof![
        4 => any::<Index>().prop_map(Chosen::One),
        1 => prop::collection::vec(any::<Index>(), 0..4).prop_map(Chosen::Some),
        1 => Just(Chosen::All),
    ]
}

pub(super) fn order() -> impl Strategy<Value = Order> {
    let bands = |at: i64| {
        let band = |name: &str, from: Option<i64>| Band { name: name.into(), from: from.map(Into::into) };
        Order::Lanes(vec![band("hot", Some(at + 2)), band("warm", Some(at)), band("cold", None)])
    };
    prop_oneof![4 => Just(Order::Priority), 1 => Just(Order::Fifo), 2 => (1..7_i64).prop_map(bands)]
}

pub(super) fn lane_names(order: &Order) -> &'static [&'static str] {
    match order {
        Order::Priority => &["9", "4", "0"],
        Order::Fifo => &["fifo"],
        Order::Lanes(_) => &["hot", "warm", "cold"],
    }
}

pub(super) fn dead_letter() -> impl Strategy<Value = DeadLetterTo> {
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

pub(super) fn settings() -> impl Strategy<Value = Box<Settings>> {
    let scheme = prop_oneof![2 => Just(Scheme::TenLevel), 1 => Just(Scheme::Max(9))];
    let rate = || {
        let rate = (1..4_u32, 1..3_000_u64).prop_map(|(messages, per_ms)| RateLimit { messages, per_ms });
        prop::option::weighted(0.15, rate)
    };
    let group_limit = prop_oneof![3 => Just(0_u32), 1 => 1..3_u32];
    let keys = (group_limit, rate(), rate(), prop::bool::weighted(0.2));
    let active = (0..4_u32, prop::bool::weighted(0.05), keys);
    let lanes = ((scheme, order()), active, prop::option::weighted(0.4, (0..3_usize, 1..4_u32)), 1..4_u32);
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
    let at_once = (prop::bool::weighted(0.1), prop::bool::weighted(0.07));
    let flags = (any::<bool>(), any::<bool>(), at_once);
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
            ((scheme, order), (max_active, paused, keys), lane, weight),
            picker,
            (max_length, max_bytes, overflow),
            (reject_below, max_message_bytes),
            (ttl_ms, max_ttl_ms, visibility_timeout_ms, initial_ms),
            (
                delivery_limit,
                dead_letter,
                (dead_letter_expired, dead_letter_evicted, (expire_at_once, evict_at_once)),
            ),
            (last_value, (expires_ms, consumer_timeout_ms, single_active_consumer)),
        )| {
            let name = |at: usize| lane_names(&order)[at % lane_names(&order).len()].to_owned();
            let (group_limit, rate_limit, key_rate_limit, fair_keys) = keys;
            let settings = Settings {
                scheme,
                paused,
                group_limit,
                rate_limit,
                key_rate_limit,
                fair_keys,
                key_weights: if fair_keys {
                    BTreeMap::from([("key1".to_owned(), weight)])
                } else {
                    BTreeMap::new()
                },
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
                evict_at_once,
                check_entire_queue_on_cleanup: !dead_letter_expired,
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

/// What a policy says; an operator's has limits only.
pub(super) fn definition(kind: PolicyKind) -> impl Strategy<Value = Definition> {
    let maybe = |range: std::ops::Range<u64>| prop::option::weighted(0.2, range);
    let overflow = prop::option::weighted(
        0.2,
        prop_oneof![Just(Overflow::Evict), Just(Overflow::Reject), Just(Overflow::RejectDeadLetter)],
    );
    let limits = (maybe(1..12), maybe(20..200), overflow, maybe(0..5_000), maybe(500..20_000));
    let dead = prop::option::weighted(0.2, prop_oneof![Just("amq.fanout"), Just("amq.topic"), Just("")]);
    let key = prop::option::weighted(0.2, prop_oneof![Just("a"), Just("k.l")]);
    let others = (dead, key, prop::option::weighted(0.3, -1..3_i64), maybe(0..3_000));
    let alternate = prop::option::weighted(0.1, Just("amq.fanout".to_owned()));
    (limits, others, prop::option::weighted(0.6, 1..12_u8), alternate).prop_map(
        move |(limits, (exchange, key, delivery_limit, consumer_timeout), max_priority, alternate)| {
            let (max_length, max_length_bytes, overflow, message_ttl, expires) = limits;
            let limits = Definition {
                max_length,
                max_length_bytes,
                overflow,
                message_ttl,
                expires,
                delivery_limit,
                ..Definition::default()
            };
            let definition = match kind {
                PolicyKind::Operator => limits,
                PolicyKind::User => Definition {
                    dead_letter_exchange: exchange.map(str::to_owned),
                    dead_letter_routing_key: key.map(str::to_owned),
                    consumer_timeout,
                    alternate_exchange: alternate,
                    max_priority,
                    ..limits
                },
            };
            match definition == Definition::default() {
                true => Definition { message_ttl: Some(90_000), ..definition },
                false => definition,
            }
        },
    )
}

pub(super) fn policy_op() -> impl Strategy<Value = Op> {
    let kind = || prop_oneof![3 => Just(PolicyKind::User), 1 => Just(PolicyKind::Operator)];
    let pattern = prop_oneof![Just("^a$"), Just("a|b"), Just(""), Just("^(?!c)")];
    let apply_to =
        prop_oneof![2 => Just(ApplyTo::Queues), 1 => Just(ApplyTo::All), 1 => Just(ApplyTo::Exchanges)];
    let set = (kind(), 0..3_usize, pattern, -1..2_i32, apply_to).prop_flat_map(
        |(kind, name, pattern, priority, apply_to)| {
            definition(kind).prop_map(move |definition| {
                let pattern = Pattern::new(pattern).expect("drawn to be sound");
                let policy = Box::new(Policy { pattern, definition, priority, apply_to });
                Op::SetPolicy { kind, name, policy }
            })
        },
    );
    let remove = (kind(), 0..3_usize).prop_map(|(kind, name)| Op::RemovePolicy { kind, name });
    prop_oneof![3 => set, 2 => remove]
}

pub(super) fn terms() -> impl Strategy<Value = Terms> {
    let shared = prop::option::weighted(0.5, 0..2_u32);
    (0..3_u64, shared, prop::bool::weighted(0.1), prop::bool::weighted(0.2)).prop_map(
        |(session, shared, exclusive, no_ack)| {
            let shared = shared.filter(|_| session > 0);
            Terms { session, shared, exclusive, no_ack }
        },
    )
}

/// What is asked by those who are connected.
pub(super) fn connected_op() -> impl Strategy<Value = Op> {
    let identity = (prop::bool::weighted(0.6), prop::bool::weighted(0.3), prop::bool::weighted(0.4));
    let from = Just(Existing::From(Box::default()));
    let existing = prop_oneof![Just(Existing::Same), Just(Existing::Update), from];
    let settings = prop::option::weighted(0.5, settings());
    prop_oneof![
        3 => (queue(), settings, identity, existing, 0..3_u64).prop_map(|(queue, settings, identity, existing, session)| Op::Make { queue, settings, identity, existing, session }),
        6 => (queue(), prop::bool::weighted(0.3), 0..3_u64).prop_map(|(queue, no_ack, session)| Op::Get { queue, no_ack, session }),
        2 => (0..5_u64).prop_map(|id| Op::Leave { id }),
        3 => (0..5_u64, 0..3_u32).prop_map(|(id, messages)| Op::Took { id, messages }),
        3 => (0..2_u32, 0..5_u32, prop::collection::vec(0..5_u64, 0..3))
            .prop_map(|(window, size, joining)| Op::SetWindow { window, size, joining }),
        1 => (1..3_u64).prop_map(|session| Op::EndSession { session }),
    ]
}

pub(super) fn op() -> impl Strategy<Value = Op> {
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
        5 => policy_op(),
        1 => any::<bool>().prop_map(Op::Hold),
        3 => (any::<Index>(), 1..6_usize).prop_map(|(at, many)| Op::PlanRewrite { at, many }),
        2 => (any::<Index>(), any::<bool>()).prop_map(|(nth, is_written)| Op::EndRewrite { nth, is_written }),
        5 => vhost_op(),
        1 => Just(Op::Restart),
    ]
}

/// What is done with virtual hosts.
pub(super) fn vhost_op() -> impl Strategy<Value = Op> {
    let vhost = || 0..VHOSTS.len();
    let max_queues = prop::option::weighted(0.3, 0..4_u64);
    prop_oneof![
        8 => vhost().prop_map(|vhost| Op::At { vhost }),
        4 => (vhost(), max_queues).prop_map(|(vhost, max_queues)| Op::DeclareVhost { vhost, max_queues }),
        1 => vhost().prop_map(|vhost| Op::DeleteVhost { vhost }),
    ]
}

/// A message that can be spilled.
pub(super) fn plain() -> impl Strategy<Value = Message> {
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
pub(super) fn deep_settings() -> impl Strategy<Value = Box<Settings>> {
    settings().prop_map(|settings| {
        let (last_value, reject_below) = (None, None);
        Box::new(Settings {
            last_value,
            reject_below,
            max_length: 0,
            max_bytes: 0,
            ttl_ms: 0,
            expire_at_once: false,
            evict_at_once: false,
            ..*settings
        })
    })
}

/// What is asked of queues in which many messages wait: mostly more of them, some in the midst of them, and rewrites.
pub(super) fn deep_op() -> impl Strategy<Value = Op> {
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
        2 => policy_op(),
        2 => op(),
    ]
}
