//! When rows that failed here are due, so that they need not wait for the next round.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Most moments that are remembered; rows beyond that are found by the rounds.
const MOMENTS_MAX: usize = 10_000;
/// The database's clock says whether something is due; ours only when to ask.
const MARGIN: Duration = Duration::from_millis(5);

#[derive(Default)]
pub(super) struct Due {
    moments: Mutex<BinaryHeap<Reverse<Instant>>>,
    pub(super) changed: Notify,
}

impl Due {
    pub(super) fn expect(&self, waits: impl Iterator<Item = Duration>) {
        let now = Instant::now();
        let mut moments = self.lock();
        let (first, room) = (moments.peek().copied(), MOMENTS_MAX.saturating_sub(moments.len()));
        moments.extend(waits.take(room).filter_map(|wait| now.checked_add(wait + MARGIN)).map(Reverse));
        // The larger of two that are reversed is the earlier.
        if moments.peek().copied() > first {
            self.changed.notify_one();
        }
    }

    /// The first, which may be over.
    pub(super) fn next(&self) -> Option<Instant> {
        self.lock().peek().map(|Reverse(moment)| *moment)
    }

    /// Forgets those that are over: whether there were any.
    pub(super) fn take(&self, now: Instant) -> bool {
        let mut moments = self.lock();
        let before = moments.len();
        while moments.peek().is_some_and(|Reverse(moment)| *moment <= now) {
            moments.pop();
        }
        moments.len() < before
    }

    fn lock(&self) -> MutexGuard<'_, BinaryHeap<Reverse<Instant>>> {
        self.moments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_what_is_over_is_forgotten() {
        let due = Due::default();
        let now = Instant::now();
        due.expect([3_600, 60, 0].map(Duration::from_secs).into_iter());
        assert!(due.next().is_some_and(|first| first < now + Duration::from_secs(30)));
        assert!(due.take(now + Duration::from_secs(120)));
        assert!(due.next().is_some_and(|first| first > now + Duration::from_secs(120)));
        assert!(!due.take(now + Duration::from_secs(120)));
    }
}
