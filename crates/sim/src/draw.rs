//! Settings and messages drawn at random, all valid for the broker but for what a client gets wrong on purpose.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    ApplyTo, Backoff, Band, Command, DeadLetterTo, Definition, Given, LaneChoice, LaneSettings, LastValue,
    METADATA_VALUE_LEN_MAX, MetadataEntry, Order, Overflow, Pattern, PickerKind, Policy, PolicyKind,
    PolicyValue, Priority, RateLimit, RejectBelow, Report, Scheme, Settings,
};

use crate::book::{lane_name, lane_of};
use crate::rng::Rng;

/// Durations in ms, short enough to matter within a run.
fn short_ms(rng: &mut Rng) -> u64 {
    rng.one_of(&[1, 7, 20, 50, 120, 300, 1_000, 4_000])
}

/// A priority that the scheme takes, as a client would say it.
pub(crate) fn priority(rng: &mut Rng, scheme: Scheme) -> Given {
    let number = |rng: &mut Rng, most: u64| Given::Number(rng.below(most) as i64);
    if rng.once_in(8) {
        return Given::Missing;
    }
    match scheme {
        Scheme::TenLevel => number(rng, 12),
        Scheme::Route => number(rng, 10),
        Scheme::Max(most) => number(rng, u64::from(most) + 2),
        Scheme::Named => Given::from(rng.one_of(&["critical", "high", "normal", "low", "background"])),
        Scheme::Signed => match rng.below(3) {
            0 => Given::from(rng.one_of(&["BULK", "low", "HIGH", "CRITICAL"])),
            1 => Given::Number(rng.one_of(&[i64::from(i32::MIN), i64::from(i32::MAX), -1, 1])),
            _ => Given::Number(rng.below(11) as i64 - 5),
        },
    }
}

/// A priority that no scheme takes, or any other.
pub(crate) fn wrong_priority(rng: &mut Rng) -> Given {
    rng.one_of(&[Given::Number(-1), Given::Number(i64::MAX), Given::from("soonish"), Given::Number(5)])
}

/// The settings of a queue; `others` are queues it may send its dead letters to.
pub(crate) fn settings(rng: &mut Rng, others: &[Arc<str>], exchanges: &[Arc<str>]) -> Settings {
    let scheme = rng.one_of(&[
        Scheme::TenLevel,
        Scheme::TenLevel,
        Scheme::Signed,
        Scheme::Named,
        Scheme::Route,
        Scheme::Max(3),
    ]);
    let mut settings = Settings { scheme, ..Settings::default() };
    vary(rng, &mut settings, others, exchanges);
    if rng.once_in(8) {
        settings.last_value = Some(rng.one_of(&[LastValue::Key, LastValue::One]));
    }
    settings
}

/// Changes what may be changed while messages wait.
pub(crate) fn vary(rng: &mut Rng, settings: &mut Settings, others: &[Arc<str>], exchanges: &[Arc<str>]) {
    let scheme = settings.scheme;
    settings.order = order(rng, scheme);
    settings.default_priority =
        Some(priority(rng, scheme)).filter(|given| *given != Given::Missing && rng.once_in(6));
    settings.max_active = if rng.once_in(3) { rng.within(1, 6) as u32 } else { 0 };
    settings.max_length = if rng.once_in(4) { rng.within(1, 30) } else { 0 };
    settings.max_bytes = if rng.once_in(8) { rng.within(500, 20_000) } else { 0 };
    settings.overflow = rng.one_of(&[Overflow::Evict, Overflow::Reject]);
    settings.reject_below =
        rng.once_in(8).then(|| RejectBelow { depth: rng.below(20), priority: priority(rng, scheme) });
    settings.max_message_bytes = if rng.once_in(10) { rng.within(1, 2_000) } else { 0 };
    settings.ttl_ms = if rng.once_in(5) { short_ms(rng) } else { 0 };
    settings.max_ttl_ms = if rng.once_in(8) { short_ms(rng) } else { 0 };
    settings.visibility_timeout_ms = if rng.once_in(20) { 0 } else { short_ms(rng) };
    settings.delivery_limit = if rng.once_in(3) { rng.within(1, 4) as u32 } else { 0 };
    settings.backoff = match rng.below(3) {
        0 => Backoff { initial_ms: short_ms(rng), multiplier: rng.within(1, 4) as u32, max_ms: 2_000 },
        _ => Backoff::default(),
    };
    settings.dead_letter = dead_letter(rng, others, exchanges);
    settings.dead_letter_expired = rng.once_in(4);
    settings.max_unacked = rng.one_of(&[1, 2, 10, 1_000_000]);
    settings.picker = PickerKind::Strict;
    let lanes = lane_names(settings);
    settings.picker = match rng.below(6) {
        0 => PickerKind::AgingMs(rng.one_of(&[1, 10, 100, 1_000])),
        1 => PickerKind::Weighted(some(rng, &lanes, |rng| rng.within(1, 5) as u32)),
        _ => PickerKind::Strict,
    };
    settings.lanes = if rng.once_in(4) {
        some(rng, &lanes, |rng| LaneSettings { max_active: rng.below(4) as u32 })
    } else {
        BTreeMap::new()
    };
    assert!(settings.validate().is_ok(), "drawn settings are valid: {settings:?}");
}

/// Changes what becomes of messages that a queue does not keep.
pub(crate) fn dying(rng: &mut Rng, settings: &mut Settings, exchanges: &[Arc<str>]) {
    if rng.once_in(4) {
        settings.overflow = Overflow::RejectDeadLetter;
    }
    settings.dead_letter_evicted = rng.once_in(2);
    settings.expire_at_once = rng.once_in(10);
    // By what is drawn already, so that the kept seeds stay what they were.
    settings.check_entire_queue_on_cleanup = !settings.dead_letter_evicted;
    settings.evict_at_once = settings.expire_at_once && settings.dead_letter_evicted;
    if !exchanges.is_empty() && rng.once_in(3) {
        settings.dead_letter =
            DeadLetterTo::Exchange { name: rng.one_of(exchanges).to_string(), routing_key: None };
    }
}

/// What a queue says of keys and of rates, and whether it is paused.
pub(crate) fn keyed(rng: &mut Rng, settings: &mut Settings) {
    let rate = |rng: &mut Rng, once_in| {
        let messages = rng.within(1, 4) as u32;
        rng.once_in(once_in).then(|| RateLimit { messages, per_ms: rng.one_of(&[1, 20, 150, 1_000]) })
    };
    settings.paused = rng.once_in(12);
    settings.rate_limit = rate(rng, 6);
    settings.group_limit = if rng.once_in(2) { rng.within(1, 3) as u32 } else { 0 };
    settings.key_rate_limit = rate(rng, 5);
    settings.fair_keys = rng.once_in(4);
}

/// How long work may take, and a history: a later queue than this one, so that no message goes round for ever.
pub(crate) fn working(
    rng: &mut Rng,
    settings: &mut Settings,
    name: &str,
    queues: &[Arc<str>],
    is_deep: bool,
) {
    // Longer than a settlement takes where nothing fails.
    settings.run_timeout_ms = if rng.once_in(3) { rng.one_of(&[150, 300, 1_000, 4_000]) } else { 0 };
    let later: Vec<Arc<str>> = queues.iter().skip_while(|queue| &***queue != name).skip(1).cloned().collect();
    let has_history = !is_deep && !later.is_empty() && rng.once_in(2);
    settings.history = has_history.then(|| rng.one_of(&later).to_string());
}

/// What somebody says of work.
pub(crate) fn report(rng: &mut Rng) -> Report {
    Report {
        exit_code: rng.once_in(2).then(|| rng.below(256) as i32 - 128),
        error: rng.once_in(3).then(|| "exit".into()),
        output: rng.once_in(2).then(|| "o".repeat(rng.one_of(&[0, 9, 200, 3_000])).into()),
    }
}

/// So that as many messages wait as are published.
pub(crate) fn without_limits(settings: &mut Settings) {
    (settings.max_length, settings.max_bytes, settings.max_message_bytes) = (0, 0, 0);
    (settings.reject_below, settings.last_value) = (None, None);
    settings.expire_at_once = false;
    settings.evict_at_once = false;
}

/// Half of the queues have priorities from 0 on, and half of those do not go by them.
pub(crate) fn numbered(rng: &mut Rng, settings: &mut Settings) {
    if !rng.once_in(2) {
        return;
    }
    (settings.scheme, settings.order) = match rng.once_in(2) {
        true => (Scheme::Max(255), Order::Fifo),
        false => (Scheme::Max(3), Order::Priority),
    };
    (settings.default_priority, settings.reject_below) = (None, None);
    settings.lanes.clear();
    if matches!(settings.picker, PickerKind::Weighted(_)) {
        settings.picker = PickerKind::Strict;
    }
}

/// A policy to set or to remove; in deep worlds none that limits what waits.
pub(crate) fn policy(rng: &mut Rng, exchanges: &[Arc<str>], is_deep: bool) -> Command {
    let kind = rng.one_of(&[PolicyKind::User, PolicyKind::User, PolicyKind::Operator]);
    let name = rng.one_of(&["p", "o", "r"]).into();
    if rng.once_in(3) {
        return Command::RemovePolicy { kind, name };
    }
    let mut definition = limits(rng, is_deep);
    if kind == PolicyKind::User || rng.once_in(20) {
        definition.max_priority = rng.once_in(2).then(|| rng.one_of(&[1, 2, 7, 255]));
        definition.consumer_timeout = rng.once_in(8).then(|| short_ms(rng));
        // Of what was drawn already, so that seeds that are kept stay the worlds that they were.
        definition.backoff =
            definition.consumer_timeout.map(|initial_ms| Backoff { initial_ms, ..Backoff::default() });
        if !exchanges.is_empty() && rng.once_in(5) {
            definition.dead_letter_exchange = Some(rng.one_of(exchanges).to_string());
        }
        definition.dead_letter_routing_key = rng.once_in(6).then(|| routing_key(rng));
        if !exchanges.is_empty() && rng.once_in(6) {
            definition.alternate_exchange = Some(rng.one_of(exchanges).to_string());
        }
    }
    if definition == Definition::default() && !rng.once_in(10) {
        definition.kept.insert("queue-mode".to_owned(), PolicyValue::Text("lazy".to_owned()));
    }
    // Where all queues pass on to all, and soon, there is no end of copies: by a time to live of the policy, or of their own.
    let pattern = if definition.dead_letter_exchange.is_some() {
        definition.message_ttl = None;
        rng.one_of(&["0$", "^a", "^(?!q)"])
    } else {
        rng.one_of(&["", "", "0$", "[1-9]$", "^a", "^(?!q)", "^q"])
    };
    let policy = Policy {
        pattern: Pattern::new(pattern).expect("drawn patterns are patterns"),
        definition,
        priority: rng.below(3) as i32 - 1,
        apply_to: rng.one_of(&[ApplyTo::All, ApplyTo::Queues, ApplyTo::Queues, ApplyTo::Exchanges]),
    };
    Command::SetPolicy { kind, name, policy: Box::new(policy) }
}

fn limits(rng: &mut Rng, is_deep: bool) -> Definition {
    let delivery_limit = rng.once_in(5).then(|| rng.below(5) as i64 - 1);
    if is_deep {
        return Definition { delivery_limit, ..Definition::default() };
    }
    Definition {
        delivery_limit,
        max_length: rng.once_in(6).then(|| rng.within(1, 30)),
        max_length_bytes: rng.once_in(8).then(|| rng.within(500, 20_000)),
        overflow: rng
            .once_in(6)
            .then(|| rng.one_of(&[Overflow::Evict, Overflow::Reject, Overflow::RejectDeadLetter])),
        message_ttl: rng.once_in(8).then(|| if rng.once_in(6) { 0 } else { short_ms(rng) }),
        expires: rng.once_in(10).then(|| rng.one_of(&[30, 400, 3_000])),
        ..Definition::default()
    }
}

fn order(rng: &mut Rng, scheme: Scheme) -> Order {
    let bands = |froms: &[(&str, Option<Given>)]| {
        Order::Lanes(
            froms.iter().map(|(name, from)| Band { name: (*name).to_owned(), from: from.clone() }).collect(),
        )
    };
    match (rng.below(6), scheme) {
        (0, _) => Order::Fifo,
        (1, Scheme::TenLevel) => {
            bands(&[("hot", Some(Given::Number(7))), ("warm", Some(Given::Number(4))), ("cold", None)])
        }
        (1, Scheme::Signed) => bands(&[("primary", Some(Given::Number(0))), ("backfill", None)]),
        (1, Scheme::Route) => bands(&[("first", Some(Given::Number(2))), ("rest", None)]),
        (1, Scheme::Max(_)) => bands(&[("up", Some(Given::Number(2))), ("down", None)]),
        (1, Scheme::Named) => bands(&[("now", Some(Given::from("high"))), ("later", None)]),
        _ => Order::Priority,
    }
}

fn lane_names(settings: &Settings) -> Vec<String> {
    match &settings.order {
        Order::Fifo => vec![overtake_lane::FIFO_LANE.to_owned()],
        Order::Lanes(bands) => bands.iter().map(|band| band.name.clone()).collect(),
        Order::Priority => {
            let wire: Vec<Given> = match settings.scheme {
                Scheme::Named => ["critical", "normal", "background"].map(Given::from).to_vec(),
                Scheme::Signed => vec![Given::from("CRITICAL"), Given::from("BULK"), Given::Number(-1)],
                Scheme::TenLevel | Scheme::Route => (0..10).step_by(3).map(Given::Number).collect(),
                Scheme::Max(most) => (0..=i64::from(most)).map(Given::Number).collect(),
            };
            let mapped = wire.iter().filter_map(|given| settings.scheme.map(given).ok());
            mapped.map(|priority| settings.scheme.name(priority).into_owned()).collect()
        }
    }
}

fn some<T>(rng: &mut Rng, names: &[String], draw: impl Fn(&mut Rng) -> T) -> BTreeMap<String, T> {
    let chosen: Vec<String> = names.iter().filter(|_| rng.once_in(2)).cloned().collect();
    chosen.into_iter().map(|name| (name, draw(rng))).collect()
}

fn dead_letter(rng: &mut Rng, others: &[Arc<str>], exchanges: &[Arc<str>]) -> DeadLetterTo {
    match rng.below(6) {
        0 => DeadLetterTo::Drop,
        1 | 2 if !others.is_empty() => DeadLetterTo::Queue(rng.one_of(others).to_string()),
        3 if !exchanges.is_empty() => {
            let routing_key = rng.once_in(2).then(|| routing_key(rng));
            DeadLetterTo::Exchange { name: rng.one_of(exchanges).to_string(), routing_key }
        }
        _ => DeadLetterTo::Keep,
    }
}

/// A routing key, or a pattern that takes some of them.
pub(crate) fn routing_key(rng: &mut Rng) -> String {
    rng.one_of(&["a", "b", "a.b", "a.b.c"]).to_owned()
}

/// What a binding says.
pub(crate) fn pattern(rng: &mut Rng) -> String {
    rng.one_of(&["a", "b", "a.*", "#", "a.#", "a.b.c"]).to_owned()
}

/// A few values to set and to remove, most of them small.
pub(crate) fn metadata(rng: &mut Rng) -> Vec<MetadataEntry> {
    let count = rng.one_of(&[1, 1, 2, 3, 6]);
    (0..count).map(|_| MetadataEntry { key: metadata_key(rng).into(), value: metadata_value(rng) }).collect()
}

fn metadata_key(rng: &mut Rng) -> String {
    let key = format!("user/{}", rng.below(8));
    match rng.below(40) {
        0 => format!("{key:-<1024}"),
        1 => rng.one_of(&["", "\n"]).to_owned(),
        _ => key,
    }
}

fn metadata_value(rng: &mut Rng) -> Option<Arc<[u8]>> {
    let len = match rng.below(32) {
        0..=7 => return None,
        8..=9 => 0,
        10..=13 => rng.within(1_000, 9_000),
        14 => METADATA_VALUE_LEN_MAX as u64 + 1,
        _ => rng.within(1, 60),
    };
    let byte = rng.below(256) as u8;
    Some(vec![byte; len as usize].into())
}

/// Which lanes of a queue somebody takes from.
pub(crate) fn lanes(rng: &mut Rng, settings: &Settings) -> LaneChoice {
    let priority = |rng: &mut Rng| rng.below(10) as i32;
    let at_least = if rng.once_in(3) { Priority(priority(rng)) } else { LaneChoice::default().at_least };
    let count = rng.below(3);
    let except = (0..count).map(|_| lane_name(settings, lane_of(settings, Priority(priority(rng)))).0);
    LaneChoice { at_least, except: except.collect(), one: rng.once_in(2) }
}
