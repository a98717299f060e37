//! What policies make of a queue's settings, worked out once more from what is said in `docs/policies.md`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_engine::core::Request;
use overtake_lane::{
    ApplyTo, Backoff, Command, DeadLetterTo, Definition, Order, Overflow, Policy, PolicyKind, Scheme,
    Settings, VhostId,
};

use crate::check::Step;

/// Where a policy is, whose it is, and its name.
type Key = (VhostId, PolicyKind, Arc<str>);

/// All policies of all virtual hosts.
pub(crate) type Policies = BTreeMap<Key, Policy>;

/// What a request does to them.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Sets(Key, Box<Policy>),
    Removes(Key),
    /// A virtual host goes, and those in it.
    Drops(VhostId),
}

impl Change {
    /// By a request that was done; `None`: it does nothing to them.
    pub(crate) fn of(step: &Step<'_>) -> Option<Self> {
        let (Some(Request::Do(command)), Some(Ok(_))) = (step.request, step.result) else { return None };
        Some(match command {
            Command::SetPolicy { kind, name, policy } => {
                Self::Sets((step.vhost, *kind, Arc::clone(name)), policy.clone())
            }
            Command::RemovePolicy { kind, name } => Self::Removes((step.vhost, *kind, Arc::clone(name))),
            Command::DeleteVhost { name } => {
                let (vhost, _) = step.before.vhosts.iter().find(|(_, there)| *there == name)?;
                Self::Drops(*vhost)
            }
            _ => return None,
        })
    }

    pub(crate) fn apply(&self, policies: &mut Policies) {
        match self {
            Self::Sets(key, policy) => drop(policies.insert(key.clone(), (**policy).clone())),
            Self::Removes(key) => drop(policies.remove(key)),
            Self::Drops(gone) => policies.retain(|(vhost, ..), _| vhost != gone),
        }
    }
}

/// What a queue was declared with, and where.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) vhost: VhostId,
    pub(crate) name: Arc<str>,
    pub(crate) settings: Settings,
}

/// What holds for a queue.
pub(crate) fn holds(queue: &Own, policies: &Policies) -> Settings {
    let own = &queue.settings;
    let nothing = Definition::default();
    let of = |kind| {
        let of_kind = policies.iter().filter(|((vhost, other, _), policy)| {
            (*vhost, *other) == (queue.vhost, kind)
                && policy.apply_to != ApplyTo::Exchanges
                && policy.pattern.matches(&queue.name)
        });
        let first = of_kind.min_by_key(|((.., name), policy)| (Reverse(policy.priority), Arc::clone(name)));
        first.map_or(&nothing, |(_, policy)| &policy.definition)
    };
    let (user, operator) = (of(PolicyKind::User), of(PolicyKind::Operator));
    let limited = limited(own, user, operator);
    let backoff = if own.backoff == Backoff::default() { user.backoff } else { None };
    let backoff = backoff.unwrap_or(own.backoff);
    let limited = Settings { overflow: overflow(own, user, operator), backoff, ..limited };
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
