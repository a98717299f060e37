//! What a process has to do with its places, of all queues together.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use overtake_engine::Buckets;

/// Upper bounds of how long inversions are, µs: 100 µs to 30 s.
const INVERSION_BOUNDS_US: [u64; 17] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// Counters of all places of a process.
#[derive(Debug)]
pub struct Tally {
    /// Places that something has left, which is to be carried elsewhere.
    pub(crate) left: AtomicUsize,
    leased: AtomicU64,
    missed: AtomicU64,
    /// For how long the most urgent message that another place was known to have had waited when one that is less urgent was leased, µs: how well the order over places is kept.
    pub inversions_us: Buckets,
}

impl Default for Tally {
    fn default() -> Self {
        let [leased, missed] = [0, 0].map(AtomicU64::new);
        Self { left: AtomicUsize::new(0), leased, missed, inversions_us: Buckets::new(&INVERSION_BOUNDS_US) }
    }
}

impl Tally {
    pub(super) fn claimed(&self, given: u64) {
        match given {
            0 => self.missed.fetch_add(1, Relaxed),
            given => self.leased.fetch_add(given, Relaxed),
        };
    }

    /// Messages that were leased.
    #[must_use]
    pub fn leased(&self) -> u64 {
        self.leased.load(Relaxed)
    }

    /// Places that were asked for what somebody else had taken by then.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }
}
