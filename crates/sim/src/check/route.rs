//! *Routed*: every queue that an exchange leads to has one copy, and no other queue has one. Found by looking at every binding,
//! until nothing more is reached. A queue that is full and evicts may evict its copy as it comes, unless nobody else keeps one.

use std::collections::BTreeSet;
use std::sync::Arc;

use overtake_engine::{NewMessage, PublishedCopy, Target};
use overtake_lane::{
    Binding, Broker, Destination, ExchangeKind, HeaderValue, HeadersMatch, Overflow, State, Topology,
    topic_matches,
};

use super::Step;
use crate::failure::{Checked, Promise, hold};

/// Of one message the copies that were answered. Publishing changes no exchange, so the broker may be asked afterwards.
pub(crate) fn check(
    broker: &Broker,
    step: &Step<'_>,
    message: &NewMessage,
    copies: &[PublishedCopy],
) -> Checked {
    let vhost = step.vhost;
    let Target::Exchange { name, routing_key, more_keys, .. } = &message.to else { return Ok(()) };
    let Ok(topology) = broker.topology(vhost) else { return Ok(()) };
    if topology.exchange(name).is_none() {
        return Ok(());
    }
    let keys: Vec<&str> = std::iter::once(routing_key).chain(more_keys).map(|key| &**key).collect();
    let reached = reached(topology, name, &keys, message);
    let known = |queue: &Arc<str>| broker.id_of(vhost, queue).is_ok();
    let seen: Vec<&str> = copies.iter().map(|copy| &*copy.queue).collect();
    let told =
        || format!("through {name} by {keys:?} a message went to {seen:?}, and {reached:?} are bound for it");
    let is_right = match &reached {
        Queues::All(queues) => {
            let known: Vec<&str> = queues.iter().filter(|queue| known(queue)).map(|queue| &**queue).collect();
            is_ascending(&seen) && are_all(broker, step, message, &known, &seen)
        }
        Queues::Among(queues) => seen.iter().all(|queue| queues.contains(*queue)) && is_ascending(&seen),
    };
    hold(is_right, Promise::Routed, told)
}

/// As [`check`], where only the number of copies was told.
pub(crate) fn check_count(broker: &Broker, step: &Step<'_>, message: &NewMessage, copies: u64) -> Checked {
    let vhost = step.vhost;
    let Target::Exchange { name, routing_key, more_keys, .. } = &message.to else { return Ok(()) };
    let keys: Vec<&str> = std::iter::once(routing_key).chain(more_keys).map(|key| &**key).collect();
    if name.is_empty() {
        let known = keys.iter().filter(|queue| broker.id_of(vhost, queue).is_ok()).count() as u64;
        return hold(copies == known, Promise::Routed, || {
            format!("{copies} copies of a message to {keys:?}")
        });
    }
    let topology = broker.topology(vhost).expect("it was published to");
    let (is_all, queues) = match reached(topology, name, &keys, message) {
        Queues::All(queues) => (true, queues),
        Queues::Among(queues) => (false, queues),
    };
    let known: Vec<&str> = queues.iter().map(|queue| &**queue).collect();
    let known: Vec<&str> = known.into_iter().filter(|queue| broker.id_of(vhost, queue).is_ok()).collect();
    let is_right =
        if is_all { is_count(broker, step, message, &known, copies) } else { copies <= known.len() as u64 };
    hold(is_right, Promise::Routed, || {
        format!(
            "through {name} by {keys:?} a message went to {copies} queues, and {queues:?} are bound for it"
        )
    })
}

/// Whether these queues, of those that a message goes to, are all that may keep a copy.
pub(crate) fn are_all(
    broker: &Broker,
    step: &Step<'_>,
    message: &NewMessage,
    bound: &[&str],
    kept: &[&str],
) -> bool {
    let mut missing = bound.iter().filter(|queue| !kept.contains(queue));
    kept.iter().all(|queue| bound.contains(queue))
        && kept.is_empty() == bound.is_empty()
        && missing.all(|queue| may_evict(broker, step, message, queue))
}

/// As [`are_all`], where only the number of copies is known.
pub(crate) fn is_count(
    broker: &Broker,
    step: &Step<'_>,
    message: &NewMessage,
    bound: &[&str],
    kept: u64,
) -> bool {
    let full = bound.iter().filter(|queue| may_evict(broker, step, message, queue)).count() as u64;
    let all = bound.len() as u64;
    kept <= all && all - kept <= full && (kept == 0) == (all == 0)
}

/// Whether a queue may have evicted its copy as it came: it evicts, and was full before this step or is after it.
fn may_evict(broker: &Broker, step: &Step<'_>, message: &NewMessage, queue: &str) -> bool {
    let (Ok(settings), Ok(id)) = (broker.settings(step.vhost, queue), broker.id_of(step.vhost, queue)) else {
        return false;
    };
    let size = message.content.size() as u64;
    let is_full = |seen: &super::Audit| {
        let there = seen.queues.get(&id).into_iter().flat_map(|queue| &queue.messages);
        let there = there.filter(|message| message.state != State::Dead);
        let (count, bytes) =
            there.fold((0, 0), |(count, bytes), message| (count + 1, bytes + u64::from(message.bytes)));
        (settings.max_length > 0 && count >= settings.max_length)
            || (settings.max_bytes > 0 && bytes + size > settings.max_bytes)
    };
    settings.overflow == Overflow::Evict && (is_full(step.before) || is_full(step.after))
}

fn is_ascending(names: &[&str]) -> bool {
    names.windows(2).all(|pair| pair[0] < pair[1])
}

/// Which queues get a copy.
#[derive(Debug)]
enum Queues {
    /// Each of these.
    All(BTreeSet<Arc<str>>),
    /// Some of these: which is an exchange's to choose.
    Among(BTreeSet<Arc<str>>),
}

fn reached(topology: &Topology, from: &str, keys: &[&str], message: &NewMessage) -> Queues {
    let mut exchanges = BTreeSet::from([Arc::<str>::from(from)]);
    let mut queues = BTreeSet::new();
    let (mut is_chosen, mut before) = (false, 0);
    while before < exchanges.len() {
        before = exchanges.len();
        for name in exchanges.clone() {
            let kind = topology.exchange(&name).map(|exchange| exchange.settings.kind);
            is_chosen |= kind == Some(ExchangeKind::ConsistentHash);
            for to in leads(topology, &name, keys, message) {
                match to {
                    Destination::Queue(queue) => queues.insert(queue),
                    Destination::Exchange(next) => exchanges.insert(next),
                };
            }
        }
    }
    if is_chosen { Queues::Among(queues) } else { Queues::All(queues) }
}

fn leads(topology: &Topology, name: &str, keys: &[&str], message: &NewMessage) -> Vec<Destination> {
    let Some(exchange) = topology.exchange(name) else { return Vec::new() };
    let takes = |binding: &&Binding| match exchange.settings.kind {
        ExchangeKind::Direct => keys.contains(&&*binding.routing_key),
        ExchangeKind::Topic => keys.iter().any(|key| topic_matches(&binding.routing_key, key)),
        ExchangeKind::Headers => has(binding, message),
        ExchangeKind::Fanout | ExchangeKind::ConsistentHash => true,
    };
    let to: Vec<Destination> = exchange.bindings().filter(takes).map(|binding| binding.to.clone()).collect();
    match topology.alternate(name, exchange) {
        Some(alternate) if to.is_empty() => vec![Destination::Exchange(Arc::clone(alternate))],
        _ => to,
    }
}

/// Names in these worlds do not begin with `x-`.
fn has(binding: &Binding, message: &NewMessage) -> bool {
    let meets = |(name, value): &(String, HeaderValue)| match message.content.headers().get(name) {
        Some(there) => *value == HeaderValue::Void || there == value,
        None => false,
    };
    match binding.matching {
        HeadersMatch::All | HeadersMatch::AllWithX => binding.headers.iter().all(meets),
        HeadersMatch::Any | HeadersMatch::AnyWithX => binding.headers.iter().any(meets),
    }
}
