//! Random histories of one queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    Backoff, Band, DeadLetterTo, Definition, Given, KEY_WEIGHT_MAX, LaneChoice, LaneSettings, LastValue,
    Order, Origin, Outcome, Overflow, PickerKind, Priority, Publish, RateLimit, RejectBelow, Report, Scheme,
    Seq, Settings, Status, Which,
};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

use crate::beside::{DEAD, PAST};
use crate::server::Server;
use crate::twin::{Lease, QUEUE, Together, Twin, publish};

/// Priorities are what three schemes have in common.
const PRIORITIES: std::ops::Range<i64> = 0..10;

#[derive(Clone, Debug)]
enum Op {
    Publish(Vec<Publish>),
    Transact(Vec<Publish>, Vec<Index>, Outcome, Together),
    Lease {
        max: u32,
        max_bytes: u64,
        term_ms: Option<u64>,
        at_least: Option<i32>,
        except: Vec<i64>,
        one: bool,
    },
    Settle(Vec<Index>, Outcome),
    Finish(Index, Outcome, Report),
    PurgeBeside(&'static str, Option<Status>),
    EndSession,
    Extend(Index, u64, Option<String>),
    Reprioritise(Chosen, i64),
    Remove(Chosen),
    Cancel(Chosen),
    FinishLate(Chosen, u32, Outcome, Report),
    Replay(Chosen, Option<i64>),
    Purge(Option<Status>),
    Configure(Box<Settings>),
    Rule(Definition),
    Wait(u64),
}

/// Messages that are there, of those that are likely meant.
#[derive(Clone, Debug)]
enum Chosen {
    Id(String),
    One(Index),
    Seqs(Vec<Index>),
}

fn ms() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 3 => 1..8_u64, 1 => 8..30_u64, 2 => Just(60_000)]
}

fn ttl() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![6 => Just(None), 1 => Just(Some(0)), 3 => ms().prop_map(|ms| Some(ms).filter(|ms| *ms > 0))]
}

fn given() -> impl Strategy<Value = Given> {
    prop_oneof![8 => PRIORITIES.prop_map(Given::Number), 1 => Just(Given::Missing)]
}

fn message() -> impl Strategy<Value = Publish> {
    let id = prop::option::weighted(0.4, 0..6_u8);
    let key = prop::option::weighted(0.6, (0..4_u8, prop::option::weighted(0.4, 1..=KEY_WEIGHT_MAX)));
    let times = (ttl(), prop::option::weighted(0.2, 1..20_u64), prop_oneof![4 => Just(0), 1 => ms()]);
    (given(), id, key, times, origin(), 0..40_u32).prop_map(
        |(given, id, key, (ttl_ms, base_ttl_ms, delay_ms), origin, bytes)| Publish {
            origin: origin.map(Box::new),
            id: id.map(|id| format!("id{id}").into()),
            key_weight: key.and_then(|(key, weight)| weight.filter(|_| key > 0)),
            key: key.map(|(key, _)| if key == 0 { "".into() } else { format!("k{key}").into() }),
            ttl_ms,
            base_ttl_ms,
            delay_ms,
            ..publish(given, bytes)
        },
    )
}

/// Numbers of two producers, about where blocks of them meet.
fn origin() -> impl Strategy<Value = Option<Origin>> {
    let number = || prop_oneof![3 => 4_090..4_102_u64, 1 => 0..3_u64, 1 => 12_286..12_290_u64];
    let floor = prop_oneof![3 => Just(0), 1 => number()];
    let origin = (prop::sample::select(vec!["p", "other.1"]), number(), floor)
        .prop_map(|(producer, number, floor)| Origin::new(producer, number, floor).expect("a name"));
    prop::option::weighted(0.25, origin)
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Ack),
        3 => Just(Outcome::Nack { delay_ms: None }),
        1 => ms().prop_map(|ms| Outcome::Nack { delay_ms: Some(ms) }),
        1 => Just(Outcome::Release),
        2 => Just(Outcome::Reject),
        1 => Just(Outcome::Timeout),
    ]
}

fn report() -> impl Strategy<Value = Report> {
    let said = || prop::option::of(prop::sample::select(vec!["", "it broke", "größer"]));
    (prop::option::of(-1..3), said(), said()).prop_map(|(exit_code, error, output)| Report {
        exit_code,
        error: error.map(Into::into),
        output: output.map(Into::into),
    })
}

fn together() -> impl Strategy<Value = Together> {
    prop::sample::select(vec![Together::AtOnce, Together::Prepared, Together::Aborted])
}

fn chosen() -> impl Strategy<Value = Chosen> {
    prop_oneof![
        2 => (0..6_u8).prop_map(|id| Chosen::Id(format!("id{id}"))),
        3 => any::<Index>().prop_map(Chosen::One),
        2 => prop::collection::vec(any::<Index>(), 0..4).prop_map(Chosen::Seqs),
    ]
}

fn status() -> impl Strategy<Value = Option<Status>> {
    prop::option::of(prop::sample::select(vec![Status::Ready, Status::Delayed, Status::Dead]))
}

fn op(scheme: Scheme, last_value: Option<LastValue>, rates: Rates) -> impl Strategy<Value = Op> {
    let term = prop_oneof![3 => ms().prop_map(Some), 1 => Just(None)];
    let lanes =
        (prop::option::weighted(0.2, 0..11_i32), prop::collection::vec(PRIORITIES, 0..2), any::<bool>());
    prop_oneof![
        16 => prop::collection::vec(message(), 1..5).prop_map(Op::Publish),
        6 => (prop::collection::vec(message(), 0..4), prop::collection::vec(any::<Index>(), 0..3), outcome(), together())
            .prop_map(|(messages, which, outcome, how)| Op::Transact(messages, which, outcome, how)),
        10 => (1..6_u32, prop_oneof![Just(1_u64 << 40), 0..60_u64], term, lanes).prop_map(
            |(max, max_bytes, term_ms, (at_least, except, one))| Op::Lease {
                max, max_bytes: max_bytes.max(1), term_ms, at_least, except, one,
            },
        ),
        10 => (prop::collection::vec(any::<Index>(), 1..4), outcome()).prop_map(|(which, how)| Op::Settle(which, how)),
        3 => (any::<Index>(), outcome(), report()).prop_map(|(which, how, report)| Op::Finish(which, how, report)),
        1 => (prop::sample::select(vec![DEAD, PAST]), status()).prop_map(|(queue, status)| Op::PurgeBeside(queue, status)),
        1 => Just(Op::EndSession),
        2 => (any::<Index>(), ms(), prop::option::of("[aé]{0,4}"))
            .prop_map(|(which, ms, output)| Op::Extend(which, ms, output)),
        3 => (chosen(), PRIORITIES).prop_map(|(which, priority)| Op::Reprioritise(which, priority)),
        2 => chosen().prop_map(Op::Remove),
        2 => chosen().prop_map(Op::Cancel),
        2 => (chosen(), 0..4_u32, outcome(), report())
            .prop_map(|(which, attempt, how, report)| Op::FinishLate(which, attempt, how, report)),
        4 => (chosen(), prop::option::of(PRIORITIES)).prop_map(|(which, promote)| Op::Replay(which, promote)),
        1 => status().prop_map(Op::Purge),
        2 => settings_of(scheme, last_value, rates).prop_map(|settings| Op::Configure(Box::new(settings))),
        1 => (schemes(), last_values()).prop_flat_map(move |(scheme, last_value)| settings_of(scheme, last_value, rates))
            .prop_map(|settings| Op::Configure(Box::new(settings))),
        2 => definition().prop_map(Op::Rule),
        4 => (1..12_u64).prop_map(Op::Wait),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    let band = |name: &str, from: Option<i64>| Band { name: name.into(), from: from.map(Given::Number) };
    prop_oneof![
        3 => Just(Order::Priority),
        1 => Just(Order::Fifo),
        2 => Just(Order::Lanes(vec![band("hot", Some(7)), band("warm", Some(4)), band("cold", None)])),
    ]
}

/// A lane that may be there, by name.
fn lane() -> impl Strategy<Value = String> {
    prop_oneof![3 => PRIORITIES.prop_map(|level| level.to_string()), 1 => Just("hot".to_owned()), 1 => Just("fifo".to_owned())]
}

fn picker() -> impl Strategy<Value = PickerKind> {
    prop_oneof![
        3 => Just(PickerKind::Strict),
        1 => (1..10_u64).prop_map(PickerKind::AgingMs),
        2 => prop::collection::btree_map(lane(), 1..4_u32, 0..4).prop_map(PickerKind::Weighted),
    ]
}

/// Weights of two keys, another one by the limit.
fn weights_of(fair_keys: bool, group_limit: u32) -> BTreeMap<String, u32> {
    let weights = [("k1".to_owned(), 2 + group_limit), ("k2".to_owned(), 7)];
    weights.into_iter().filter(|_| fair_keys && group_limit != 1).collect()
}

/// Rates, of the queue and of each key: how much time counts at which of two is for neither side to say, so they change to none and back only.
type Rates = (Option<RateLimit>, Option<RateLimit>);

fn rate() -> impl Strategy<Value = Option<RateLimit>> {
    let rate = (1..4_u32, 1..30_u64).prop_map(|(messages, per_ms)| RateLimit { messages, per_ms });
    prop::option::weighted(0.25, rate)
}

fn schemes() -> impl Strategy<Value = Scheme> {
    prop::sample::select(vec![Scheme::TenLevel, Scheme::Max(9)])
}

fn last_values() -> impl Strategy<Value = Option<LastValue>> {
    prop_oneof![4 => Just(None), 1 => Just(Some(LastValue::Key)), 1 => Just(Some(LastValue::One))]
}

/// What a policy says.
fn definition() -> impl Strategy<Value = Definition> {
    let overflow = prop::sample::select(vec![Overflow::Evict, Overflow::Reject]);
    let parts = (
        prop::option::weighted(0.6, 1..6_u64),
        prop::option::weighted(0.3, 20..100_u64),
        prop::option::weighted(0.2, overflow),
        prop::option::weighted(0.1, 1..20_u64),
        prop::option::weighted(0.2, 0..3_i64),
        prop::option::weighted(0.2, 3..12_u8),
    );
    parts.prop_map(|(max_length, max_length_bytes, overflow, message_ttl, delivery_limit, max_priority)| {
        Definition {
            max_length,
            max_length_bytes,
            overflow,
            message_ttl,
            delivery_limit,
            max_priority,
            ..Definition::default()
        }
    })
}

/// Where dead letters go, and what ends.
fn ends() -> impl Strategy<Value = (DeadLetterTo, Option<String>)> {
    let queue = |name: &str| DeadLetterTo::Queue(name.to_owned());
    let exchange = DeadLetterTo::Exchange { name: String::new(), routing_key: Some(DEAD.to_owned()) };
    let to = prop_oneof![
        3 => Just(DeadLetterTo::Keep),
        2 => Just(DeadLetterTo::Drop),
        3 => prop::sample::select(vec![queue(DEAD), queue(DEAD), queue(PAST), queue(QUEUE), queue("nowhere"), exchange]),
    ];
    let history = prop::sample::select(vec![PAST, PAST, PAST, DEAD, "nowhere"]);
    (to, prop::option::weighted(0.25, history.prop_map(str::to_owned)))
}

/// A queue beside: nothing happens there by itself.
fn beside(scheme: Scheme) -> impl Strategy<Value = Settings> {
    let limits = (
        prop_oneof![2 => Just(0_u64), 1 => 1..5_u64],
        prop_oneof![3 => Just(0_u64), 1 => 20..100_u64],
        prop_oneof![3 => Just(0_u64), 1 => 10..40_u64],
    );
    let overflow = prop::sample::select(vec![Overflow::Evict, Overflow::Reject, Overflow::RejectDeadLetter]);
    (limits, overflow, last_values(), any::<bool>(), any::<bool>()).prop_map(
        move |(
            (max_length, max_bytes, max_message_bytes),
            overflow,
            last_value,
            drops,
            dead_letter_evicted,
        )| Settings {
            scheme,
            max_length,
            max_bytes,
            max_message_bytes,
            overflow,
            last_value,
            dead_letter: if drops { DeadLetterTo::Drop } else { DeadLetterTo::Keep },
            dead_letter_evicted,
            ..Settings::default()
        },
    )
}

fn settings_of(
    scheme: Scheme,
    last_value: Option<LastValue>,
    rates: Rates,
) -> impl Strategy<Value = Settings> {
    let lanes = (order(), picker(), prop::collection::btree_map(lane(), 1..4_u32, 0..3));
    let limits = (
        prop_oneof![2 => Just(0_u32), 1 => 1..6_u32],
        prop_oneof![2 => Just(0_u64), 1 => 1..12_u64],
        prop_oneof![3 => Just(0_u64), 1 => 20..200_u64],
        prop::bool::weighted(0.5),
    );
    let overflow = prop::sample::select(vec![Overflow::Evict, Overflow::Reject, Overflow::RejectDeadLetter]);
    let reject = prop::option::weighted(0.2, (1..6_u64, PRIORITIES)).prop_map(|reject| {
        reject.map(|(depth, priority)| RejectBelow { depth, priority: Given::Number(priority) })
    });
    let times = (
        prop_oneof![2 => Just(0), 1 => ms()],
        prop_oneof![3 => Just(0), 1 => ms()],
        (prop::bool::weighted(0.05), prop::bool::weighted(0.05)),
    );
    let deaths = (0..4_u32, ms(), ends(), any::<bool>(), any::<bool>());
    let keys =
        (prop_oneof![3 => Just(0_u32), 1 => 1..3_u32], prop::bool::weighted(0.5), prop::bool::weighted(0.15));
    let work = (
        prop_oneof![2 => Just(0), 1 => 1..20_u64],
        prop_oneof![3 => Just(0), 1 => 5..20_u64],
        prop::bool::weighted(0.05),
    );
    (lanes, limits, overflow, reject, times, deaths, work, keys).prop_map(
        move |(
            (order, picker, caps),
            (max_active, max_length, max_bytes, is_rated),
            overflow,
            reject_below,
            (ttl_ms, max_ttl_ms, (expire_at_once, evict_at_once)),
            (delivery_limit, wait, (dead_letter, history), dead_letter_expired, dead_letter_evicted),
            (run_timeout_ms, consumer_timeout_ms, paused),
            (group_limit, is_key_rated, fair_keys),
        )| {
            let mut settings = Settings {
                scheme,
                order,
                picker,
                paused,
                max_active,
                rate_limit: rates.0.filter(|_| is_rated),
                group_limit,
                key_rate_limit: rates.1.filter(|_| is_key_rated),
                fair_keys,
                key_weights: weights_of(fair_keys, group_limit),
                max_length,
                max_bytes,
                overflow,
                reject_below,
                ttl_ms,
                max_ttl_ms,
                expire_at_once,
                evict_at_once,
                delivery_limit,
                backoff: Backoff { initial_ms: wait.min(10), multiplier: 3, max_ms: 50 },
                dead_letter,
                history,
                run_timeout_ms,
                consumer_timeout_ms,
                dead_letter_expired,
                dead_letter_evicted,
                last_value,
                ..Settings::default()
            };
            settings.lanes =
                caps.into_iter().map(|(lane, max_active)| (lane, LaneSettings { max_active })).collect();
            // What names no lane of this order is left out.
            let names = |settings: &Settings, lane: &str| match &settings.order {
                Order::Fifo => lane == "fifo",
                Order::Lanes(bands) => bands.iter().any(|band| band.name == lane),
                Order::Priority => lane.parse::<i64>().is_ok(),
            };
            let kept: Vec<String> =
                settings.lanes.keys().filter(|lane| names(&settings, lane)).cloned().collect();
            settings.lanes.retain(|lane, _| kept.contains(lane));
            if let PickerKind::Weighted(weights) = settings.picker.clone() {
                let weights = weights.into_iter().filter(|(lane, _)| names(&settings, lane)).collect();
                settings.picker = PickerKind::Weighted(weights);
            }
            settings
        },
    )
}

fn history() -> impl Strategy<Value = (Settings, [Settings; 2], Vec<Op>)> {
    (schemes(), last_values(), (rate(), rate())).prop_flat_map(|(scheme, last_value, rates)| {
        let settings = settings_of(scheme, last_value, rates);
        (
            settings,
            [beside(scheme), beside(scheme)],
            prop::collection::vec(op(scheme, last_value, rates), 1..50),
        )
    })
}

fn meant(twin: &Twin, which: &Chosen, likely: impl Fn(Status) -> bool) -> Option<Which> {
    let (all, likely) = (twin.seqs(|_| true), twin.seqs(likely));
    let pick = |index: &Index| {
        let from = if likely.is_empty() || index.index(4) == 0 { &all } else { &likely };
        (!from.is_empty()).then(|| from[index.index(from.len())])
    };
    match which {
        Chosen::Id(id) => Some(Which::Id(id.as_str().into())),
        Chosen::One(index) => pick(index).map(|seq| Which::Id(format!("seq-{}", seq.0).into())),
        Chosen::Seqs(indices) => {
            Some(Which::Seqs(indices.iter().filter_map(pick).chain([Seq(9_999)]).collect()))
        }
    }
}

/// Mostly those that were given last.
fn some_leases(twin: &Twin, which: &[Index]) -> Vec<Lease> {
    let len = twin.leases.len();
    let one = |index: &Index| (len > 0).then(|| twin.leases[len - 1 - index.index(len.min(6))]);
    which.iter().filter_map(one).collect()
}

fn act(twin: &mut Twin, op: &Op) {
    match op {
        Op::Publish(messages) => twin.publish(messages.clone()),
        Op::Transact(messages, which, outcome, how) => {
            let leases = some_leases(twin, which);
            twin.transact(messages.clone(), &leases, *outcome, *how);
        }
        Op::Lease { max, max_bytes, term_ms, at_least, except, one } => {
            let lanes = LaneChoice {
                at_least: at_least.map_or(LaneChoice::default().at_least, Priority),
                except: except.iter().map(|level| level.to_string().into()).collect(),
                one: *one,
            };
            twin.lease(*max, *max_bytes, *term_ms, lanes);
        }
        Op::Settle(which, outcome) => {
            let leases = some_leases(twin, which);
            twin.settle(&leases, *outcome);
        }
        Op::Finish(which, outcome, report) => {
            if let Some(lease) = some_leases(twin, std::slice::from_ref(which)).first() {
                twin.finish(*lease, *outcome, report.clone());
            }
        }
        Op::PurgeBeside(queue, status) => twin.purge_beside(queue, *status),
        Op::EndSession => twin.end_session(),
        Op::Extend(index, ms, output) => {
            if !twin.leases.is_empty() {
                let len = twin.leases.len();
                let output = output.as_deref().map(Arc::from);
                twin.extend(twin.leases[len - 1 - index.index(len.min(6))], *ms, output);
            }
        }
        Op::Reprioritise(which, priority) => {
            let waits = |status| matches!(status, Status::Ready | Status::Delayed);
            if let Some(which) = meant(twin, which, waits) {
                twin.reprioritise(&which, &Given::Number(*priority));
            }
        }
        Op::Remove(which) => {
            if let Some(which) = meant(twin, which, |_| true) {
                twin.remove(&which);
            }
        }
        Op::Cancel(which) => {
            if let Some(which) = meant(twin, which, |status| status == Status::Leased) {
                twin.cancel(&which);
            }
        }
        Op::FinishLate(which, attempt, outcome, report) => {
            let waits = |status| matches!(status, Status::Ready | Status::Delayed);
            if let Some(Which::Id(id)) = meant(twin, which, waits) {
                twin.finish_late(&id, *attempt, *outcome, report);
            }
        }
        Op::Replay(which, promote) => {
            if let Some(which) = meant(twin, which, |status| status == Status::Dead) {
                twin.replay(&which, promote.map(Given::Number).as_ref());
            }
        }
        Op::Purge(status) => twin.purge(*status),
        Op::Configure(settings) => {
            let _ = twin.configure((**settings).clone());
        }
        Op::Rule(definition) => twin.rule(definition.clone()),
        Op::Wait(ms) => twin.wait(*ms),
    }
}

#[test]
fn a_place_does_what_a_queue_of_the_broker_does() {
    let Some(server) = Server::start() else { return };
    let connection = std::cell::RefCell::new(Some(server.connect()));
    let config =
        ProptestConfig { max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&history(), |(settings, beside, ops)| {
        let there = connection.borrow_mut().take().unwrap_or_else(|| server.connect());
        let mut twin = Twin::new(there, settings, beside);
        for op in &ops {
            act(&mut twin, op);
            if twin.is_over {
                break;
            }
            twin.compare();
        }
        *connection.borrow_mut() = Some(twin.into_connection());
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert_eq!(QUEUE, "q");
}
