//! *Routed*: every queue that an exchange leads to has one copy, and no other queue has one. Found by looking at every binding,
//! until nothing more is reached.

use std::collections::BTreeSet;
use std::sync::Arc;

use overtake_engine::{NewMessage, PublishedCopy, Target};
use overtake_lane::{
    Binding, Broker, Destination, Exchange, ExchangeKind, HeaderValue, HeadersMatch, Topology, VhostId,
    topic_matches,
};

use crate::failure::{Checked, Promise, hold};

/// Of one message the copies that were answered. Publishing changes no exchange, so the broker may be asked afterwards.
pub(crate) fn check(
    broker: &Broker,
    vhost: VhostId,
    message: &NewMessage,
    copies: &[PublishedCopy],
) -> Checked {
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
            queues.iter().filter(|queue| known(queue)).map(|queue| &**queue).eq(seen.iter().copied())
        }
        Queues::Among(queues) => seen.iter().all(|queue| queues.contains(*queue)) && is_ascending(&seen),
    };
    hold(is_right, Promise::Routed, told)
}

/// As [`check`], where only the number of copies was told.
pub(crate) fn check_count(broker: &Broker, vhost: VhostId, message: &NewMessage, copies: u64) -> Checked {
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
    let known = queues.iter().filter(|queue| broker.id_of(vhost, queue).is_ok()).count() as u64;
    hold(if is_all { copies == known } else { copies <= known }, Promise::Routed, || {
        format!(
            "through {name} by {keys:?} a message went to {copies} queues, and {queues:?} are bound for it"
        )
    })
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
            let Some(exchange) = topology.exchange(&name) else { continue };
            is_chosen |= exchange.settings.kind == ExchangeKind::ConsistentHash;
            for to in leads(exchange, keys, message) {
                match to {
                    Destination::Queue(queue) => queues.insert(queue),
                    Destination::Exchange(next) => exchanges.insert(next),
                };
            }
        }
    }
    if is_chosen { Queues::Among(queues) } else { Queues::All(queues) }
}

fn leads(exchange: &Exchange, keys: &[&str], message: &NewMessage) -> Vec<Destination> {
    let takes = |binding: &&Binding| match exchange.settings.kind {
        ExchangeKind::Direct => keys.contains(&&*binding.routing_key),
        ExchangeKind::Topic => keys.iter().any(|key| topic_matches(&binding.routing_key, key)),
        ExchangeKind::Headers => has(binding, message),
        ExchangeKind::Fanout | ExchangeKind::ConsistentHash => true,
    };
    let to: Vec<Destination> = exchange.bindings().filter(takes).map(|binding| binding.to.clone()).collect();
    match exchange.alternate() {
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
