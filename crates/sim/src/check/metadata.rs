//! *Kept*, of metadata: what was set together is there together, what was confirmed is there after every crash, and nothing
//! else is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use overtake_engine::core::{Answer, Request};
use overtake_engine::{Refused, is_of_broker};
use overtake_lane::{Broker, Command, MetadataEntry};

use crate::check::routes::is_of_routes;
use crate::failure::{Checked, Promise, hold};

type Values = BTreeMap<Arc<str>, Arc<[u8]>>;

/// What was set.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// As of the last change that was confirmed.
    confirmed: Values,
    /// Changes that were done since, in order, each under its ticket.
    done: VecDeque<(u64, Vec<MetadataEntry>)>,
}

impl Remembered {
    /// After a step: what was asked for is there, all of it or nothing.
    pub(crate) fn answered(
        &mut self,
        broker: &Broker,
        ticket: u64,
        request: &Request,
        result: &Result<Answer, Refused>,
    ) -> Checked {
        let Request::Do(Command::SetMetadata { entries }) = request else { return Ok(()) };
        if result.is_ok() {
            self.done.push_back((ticket, entries.clone()));
        }
        let mut now = self.confirmed.clone();
        self.done.iter().for_each(|(_, entries)| apply(&mut now, entries));
        hold(there(broker) == now, Promise::Kept, || {
            format!("metadata was asked for and is not so: {}", difference(&now, broker))
        })
    }

    /// A change is confirmed, and with it those before it.
    pub(crate) fn told(&mut self, ticket: u64) {
        if let Some(at) = self.done.iter().position(|(done, _)| *done == ticket) {
            for (_, entries) in self.done.drain(..=at) {
                apply(&mut self.confirmed, &entries);
            }
        }
    }

    /// What is there after a crash is what was confirmed, and some that was done then, in order and each whole.
    pub(crate) fn recovered(&mut self, broker: &Broker) -> Checked {
        let confirmed = self.confirmed.clone();
        let there = there(broker);
        let is_there = |values: &Values| there == *values;
        let mut done = self.done.drain(..);
        while !is_there(&self.confirmed)
            && let Some((_, entries)) = done.next()
        {
            apply(&mut self.confirmed, &entries);
        }
        hold(is_there(&self.confirmed), Promise::Kept, || {
            format!("the metadata after a crash is of no moment: {}", difference(&confirmed, broker))
        })
    }
}

fn apply(values: &mut Values, entries: &[MetadataEntry]) {
    for MetadataEntry { key, value } in entries {
        match value {
            Some(value) => drop(values.insert(Arc::clone(key), Arc::clone(value))),
            None => drop(values.remove(key)),
        }
    }
}

/// What clients set. What lasts of routes is among the metadata, too, and the checker of routes sees to it; and what the broker notes
/// of its clock and its jobs.
fn there(broker: &Broker) -> Values {
    let of_clients = broker.metadata().filter(|(key, _)| !is_of_routes(key) && !is_of_broker(key));
    of_clients.map(|(key, value)| (Arc::clone(key), Arc::clone(value))).collect()
}

/// The keys with other values than expected, for a reader.
fn difference(expected: &Values, broker: &Broker) -> String {
    let found = there(broker);
    let keys = expected.keys().chain(found.keys());
    let mut other: Vec<&Arc<str>> = keys.filter(|key| expected.get(*key) != found.get(*key)).collect();
    other.sort();
    other.dedup();
    let len = |values: &Values, key: &str| values.get(key).map(|value| value.len());
    let told = other.iter().map(|key| {
        let name: String = key.chars().take(8).collect();
        format!("{name} has {:?} bytes, not {:?}", len(&found, key), len(expected, key))
    });
    told.collect::<Vec<_>>().join(", ")
}
