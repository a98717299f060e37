//! What a lane has seen since the broker started.

use crate::message::Settled;
use crate::view::WaitView;

/// Upper bounds of the waiting-time buckets, ms: 1 ms to a day.
pub const WAIT_BOUNDS_MS: [u64; 20] = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000,
    7_200_000, 28_800_000, 86_400_000,
];

/// Counters of one lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneStats {
    pub(crate) published: u64,
    pub(crate) delivered: u64,
    pub(crate) redelivered: u64,
    pub(crate) inversions: u64,
    pub(crate) acked: u64,
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
    pub(crate) removed: u64,
    pub(crate) moved: u64,
    pub(crate) dead_lettered: u64,
    waits: [u64; WAIT_BOUNDS_MS.len()],
    wait_count: u64,
    wait_sum_ms: u64,
}

impl LaneStats {
    /// A lease was given, the `count`-th of its message, after this wait since its publish; perhaps while something more urgent
    /// waited.
    pub(crate) fn delivered(&mut self, wait_ms: u64, count: u32, is_inversion: bool) {
        self.delivered += 1;
        self.inversions += u64::from(is_inversion);
        if count > 1 {
            self.redelivered += 1;
            return;
        }
        if let Some(bucket) = self.waits.get_mut(WAIT_BOUNDS_MS.partition_point(|bound| *bound < wait_ms)) {
            *bucket += 1;
        }
        self.wait_count += 1;
        self.wait_sum_ms += wait_ms;
    }

    /// Takes over what another lane counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.published += other.published;
        self.delivered += other.delivered;
        self.redelivered += other.redelivered;
        self.inversions += other.inversions;
        self.acked += other.acked;
        self.expired += other.expired;
        self.evicted += other.evicted;
        self.removed += other.removed;
        self.moved += other.moved;
        self.dead_lettered += other.dead_lettered;
        self.waits.iter_mut().zip(other.waits).for_each(|(sum, more)| *sum += more);
        self.wait_count += other.wait_count;
        self.wait_sum_ms += other.wait_sum_ms;
    }

    pub(crate) fn settled(&mut self, how: Settled) {
        self.settled_many(how, 1);
    }

    pub(crate) fn settled_many(&mut self, how: Settled, messages: u64) {
        *match how {
            Settled::Acked => &mut self.acked,
            Settled::Expired => &mut self.expired,
            Settled::Evicted => &mut self.evicted,
            Settled::Removed | Settled::Replaced | Settled::Dropped => &mut self.removed,
        } += messages;
    }

    pub(crate) fn wait(&self) -> WaitView {
        let mut below = 0;
        let buckets = WAIT_BOUNDS_MS.iter().zip(&self.waits).map(|(bound, count)| {
            below += count;
            (*bound, below)
        });
        WaitView { buckets: buckets.collect(), count: self.wait_count, sum_ms: self.wait_sum_ms }
    }
}
