//! What policies make of a queue's settings, worked out once more from what is said in `docs/policies.md`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    ApplyTo, Command, DeadLetterTo, Definition, Order, Overflow, Policy, PolicyKind, Scheme, Settings,
};

/// All policies by kind and name.
pub(crate) type Policies = BTreeMap<(PolicyKind, Arc<str>), Policy>;

/// What a command makes of them.
pub(crate) fn change(policies: &mut Policies, command: &Command) {
    match command {
        Command::SetPolicy { kind, name, policy } => {
            policies.insert((*kind, Arc::clone(name)), (**policy).clone());
        }
        Command::RemovePolicy { kind, name } => drop(policies.remove(&(*kind, Arc::clone(name)))),
        _ => {}
    }
}

/// What holds for a queue.
pub(crate) fn holds(queue: &str, own: &Settings, policies: &Policies) -> Settings {
    let nothing = Definition::default();
    let of = |kind| {
        let of_kind = policies.iter().filter(|((other, _), policy)| {
            *other == kind && policy.apply_to != ApplyTo::Exchanges && policy.pattern.matches(queue)
        });
        let first = of_kind.min_by_key(|((_, name), policy)| (Reverse(policy.priority), Arc::clone(name)));
        first.map_or(&nothing, |(_, policy)| &policy.definition)
    };
    let (user, operator) = (of(PolicyKind::User), of(PolicyKind::Operator));
    let limited = limited(own, user, operator);
    let limited = Settings { overflow: overflow(own, user, operator), ..limited };
    let routed = dead_letters(limited, user);
    let spread = user.max_priority.map(|most| Settings {
        scheme: Scheme::Max(most),
        order: Order::Priority,
        ..routed.clone()
    });
    let may = matches!(own.scheme, Scheme::Max(_)) && !matches!(own.order, Order::Lanes(_));
    spread.filter(|spread| may && spread.validate().is_ok()).unwrap_or(routed)
}

fn limited(own: &Settings, user: &Definition, operator: &Definition) -> Settings {
    let least = |own: u64, of: fn(&Definition) -> Option<u64>| {
        let all = [Some(own), of(user), of(operator)].into_iter().flatten();
        all.filter(|limit| *limit > 0).min().unwrap_or(0)
    };
    let deliveries = |definition: &Definition| {
        definition.delivery_limit.filter(|limit| *limit >= 0).map(|limit| limit as u64 + 1)
    };
    Settings {
        max_length: least(own.max_length, |definition| definition.max_length),
        max_bytes: least(own.max_bytes, |definition| definition.max_length_bytes),
        ttl_ms: least(own.ttl_ms, |definition| definition.message_ttl),
        expire_at_once: own.expire_at_once || [user, operator].iter().any(|is| is.message_ttl == Some(0)),
        expires_ms: least(own.expires_ms, |definition| definition.expires),
        consumer_timeout_ms: least(own.consumer_timeout_ms, |definition| definition.consumer_timeout),
        delivery_limit: [Some(u64::from(own.delivery_limit)), deliveries(user), deliveries(operator)]
            .into_iter()
            .flatten()
            .filter(|limit| *limit > 0)
            .min()
            .unwrap_or(0) as u32,
        ..own.clone()
    }
}

fn overflow(own: &Settings, user: &Definition, operator: &Definition) -> Overflow {
    let chosen = Some(own.overflow).filter(|own| *own != Overflow::Evict);
    operator.overflow.or(chosen).or(user.overflow).unwrap_or(Overflow::Evict)
}

fn dead_letters(settings: Settings, user: &Definition) -> Settings {
    let key = user.dead_letter_routing_key.clone();
    match (settings.dead_letter.clone(), user.dead_letter_exchange.clone()) {
        (DeadLetterTo::Keep | DeadLetterTo::Drop, Some(name)) => Settings {
            dead_letter: DeadLetterTo::Exchange { name, routing_key: key },
            dead_letter_expired: true,
            dead_letter_evicted: true,
            ..settings
        },
        (DeadLetterTo::Exchange { name, routing_key }, _) => Settings {
            dead_letter: DeadLetterTo::Exchange { name, routing_key: routing_key.or(key) },
            ..settings
        },
        _ => settings,
    }
}
