//! Samples of one thing, and what is shown of them: numbers that only grow, and numbers that come and go.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// Samples kept of one thing at most.
pub(super) const SAMPLES_MAX: usize = 61;
/// Samples kept of all things of a kind together, but two of each.
pub(super) const ALL_SAMPLES_MAX: usize = 100_000;

/// A number as RabbitMQ calls it, and where it is.
pub(crate) type Key<C> = (&'static str, fn(&C) -> u64);

/// Samples of one thing, the oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Samples<C>(pub(super) VecDeque<(Instant, C)>);

impl<C> Default for Samples<C> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<C> Samples<C> {
    pub(super) fn take(&mut self, now: Instant, counts: C, most: usize) {
        while self.0.len() >= most {
            self.0.pop_front();
        }
        self.0.push_back((now, counts));
    }

    /// So many samples of the end, the oldest first.
    pub(super) fn last(&self, most: usize) -> impl Iterator<Item = (Instant, &C)> {
        let skip = self.0.len().saturating_sub(most);
        self.0.iter().skip(skip).map(|(at, counts)| (*at, counts))
    }

    /// Change per second between the last two samples.
    fn rate(&self, number: fn(&C) -> u64) -> f64 {
        let mut last = self.0.iter().rev();
        let (Some((now, here)), Some((before, there))) = (last.next(), last.next()) else { return 0.0 };
        let change = number(here) as f64 - number(there) as f64;
        change / now.duration_since(*before).as_secs_f64().max(f64::EPSILON)
    }

    /// Numbers that only grow, as `publish` and `publish_details`. One that has begun anew has no rate.
    pub(crate) fn counters(&self, keys: &[Key<C>], now: &C) -> Map<String, Value> {
        self.shown(keys, now, |rate| rate.max(0.0))
    }

    /// Numbers that come and go, as `messages` and `messages_details`.
    pub(crate) fn gauges(&self, keys: &[Key<C>], now: &C) -> Map<String, Value> {
        self.shown(keys, now, |rate| rate)
    }

    fn shown(&self, keys: &[Key<C>], now: &C, rate: fn(f64) -> f64) -> Map<String, Value> {
        let of = |(name, number): &Key<C>| {
            let rate = json!({ "rate": rate(self.rate(*number)) });
            [((*name).to_owned(), number(now).into()), (format!("{name}_details"), rate)]
        };
        keys.iter().flat_map(of).collect()
    }
}

/// Samples of all things of a kind.
#[derive(Debug)]
pub(super) struct Series<K, C>(HashMap<K, Samples<C>>);

impl<K, C> Default for Series<K, C> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, C: Clone> Series<K, C> {
    /// A sample of everything there is. What is gone is forgotten.
    pub(super) fn take(&mut self, now: Instant, all: Vec<(K, C)>) {
        let most = (ALL_SAMPLES_MAX / all.len().max(1)).clamp(2, SAMPLES_MAX);
        let mut before = std::mem::take(&mut self.0);
        self.0 = (all.into_iter())
            .map(|(key, counts)| {
                let mut samples = before.remove(&key).unwrap_or_default();
                samples.take(now, counts, most);
                (key, samples)
            })
            .collect();
    }

    /// The samples of one thing.
    pub(super) fn of(&self, key: &K) -> Samples<C> {
        self.0.get(key).cloned().unwrap_or_default()
    }

    /// The last sample of one thing.
    pub(super) fn last(&self, key: &K) -> Option<&C> {
        self.0.get(key)?.0.back().map(|(_, counts)| counts)
    }

    /// What these things were at this moment.
    pub(super) fn at(&self, moment: Instant, keys: impl Iterator<Item = K>) -> impl Iterator<Item = &C> {
        let sampled = keys.filter_map(|key| self.0.get(&key));
        sampled.filter_map(move |samples| {
            samples.0.iter().rev().find(|(at, _)| *at == moment).map(|(_, counts)| counts)
        })
    }
}
