//! What is counted, as plain data.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::map::Place;

/// How many times a round trip took this many microseconds at most, by powers of two: the first bucket is up to 1 µs, the last has no limit.
pub const BUCKETS: usize = 28;

/// What was done since the connection to the cluster was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that were written, each time anew.
    pub calls: u64,
    /// Pipelines they went in.
    pub batches: u64,
    /// Calls that were held back to be written again, or that came while those before them were.
    pub retries: u64,
    /// Answers that named another node.
    pub moves: u64,
    /// Calls of which it was not known whether they were done, each time.
    pub in_doubt: u64,
    /// Pipelines whose writes too few replicas acknowledged in time.
    pub wait_shortfalls: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Round trips, by node.
    pub nodes: BTreeMap<String, RoundTrips>,
}

/// Round trips of pipelines to one node, from the write to the last answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// How many.
    pub count: u64,
    /// All together, microseconds.
    pub sum_us: u64,
    /// See [`BUCKETS`].
    pub buckets: [u64; BUCKETS],
}

/// Where it is counted.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) calls: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) moves: AtomicU64,
    pub(super) in_doubt: AtomicU64,
    pub(super) wait_shortfalls: AtomicU64,
    pub(super) connections: AtomicU64,
    nodes: Mutex<BTreeMap<Place, Arc<Trips>>>,
}

/// Round trips to one node.
#[derive(Default)]
pub(super) struct Trips {
    sum_us: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

pub(super) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}

impl Trips {
    pub(super) fn took(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bits = (u64::BITS - us.saturating_sub(1).leading_zeros()) as usize;
        self.buckets[bits.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    fn read(&self) -> RoundTrips {
        let buckets = std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed));
        RoundTrips { count: buckets.iter().sum(), sum_us: self.sum_us.load(Ordering::Relaxed), buckets }
    }
}

impl Counters {
    /// Kept for as long as this is, so that a node that goes and comes counts on.
    pub(super) fn trips(&self, place: &Place) -> Arc<Trips> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(nodes.entry(place.clone()).or_default())
    }

    pub(super) fn read(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        Counts {
            calls: of(&self.calls),
            batches: of(&self.batches),
            retries: of(&self.retries),
            moves: of(&self.moves),
            in_doubt: of(&self.in_doubt),
            wait_shortfalls: of(&self.wait_shortfalls),
            connections: of(&self.connections),
            nodes: nodes.iter().map(|(place, trips)| (place.to_string(), trips.read())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_counted_where_it_belongs() {
        let trips = Trips::default();
        for us in [0, 1, 2, 3, 4, 5, u64::MAX] {
            trips.took(Duration::from_micros(us));
        }
        let read = trips.read();
        assert_eq!(read.buckets[..4], [2, 1, 2, 1], "up to 1, 2, 4 and 8 µs");
        assert_eq!((read.buckets[BUCKETS - 1], read.count), (1, 7));
    }
}
