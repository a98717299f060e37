//! How often somebody was wrong in a row, and what that costs the next attempt.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Most names (or names and addresses) whose failures are remembered.
const REMEMBERED_MAX: usize = 10_000;
/// Entries forgotten at once when there is no room: the least recently used, but none whose attempt is under way.
const FORGOTTEN_AT_ONCE: usize = REMEMBERED_MAX / 10;
/// After so long without one, failures are forgotten.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);

/// How long failed logins delay the next attempt.
pub(crate) struct Slowing {
    /// Failures in a row that cause no delay.
    pub(crate) free: u32,
    /// Delay after the first failure beyond those; each further failure doubles it.
    pub(crate) first: Duration,
    /// The longest delay.
    pub(crate) longest: Duration,
}

/// Failures by key. Attempts with the same key run one after the other, so trying many at once is no faster.
pub(crate) struct Attempts<K>(Mutex<Remembered<K>>);

struct Remembered<K> {
    /// Counts the attempts, as a clock by which the oldest are found.
    attempts: u64,
    turns: HashMap<K, (u64, Turn)>,
}

/// Held by the attempt that is under way.
pub(crate) type Turn = Arc<tokio::sync::Mutex<Failures>>;

/// How often somebody was wrong in a row.
pub(crate) struct Failures {
    count: u32,
    last: Instant,
    /// The earliest time at which the next attempt that takes a slot may go on.
    next: Instant,
}

impl Failures {
    fn none() -> Self {
        let now = Instant::now();
        Self { count: 0, last: now, next: now }
    }

    /// How long an attempt waits where several are under way at once: each gets a time of its own. `None`: longer than this.
    pub(crate) fn slot(&mut self, slowing: &Slowing, patience: Duration) -> Option<Duration> {
        let (wait, now) = (self.wait(slowing), Instant::now());
        if wait.is_zero() {
            return Some(wait);
        }
        let slot = self.next.max(now) + wait;
        if slot - now > patience {
            return None;
        }
        self.next = slot;
        Some(slot - now)
    }

    /// How long the next attempt waits.
    pub(crate) fn wait(&self, slowing: &Slowing) -> Duration {
        if self.count < slowing.free || self.is_forgiven() {
            return Duration::ZERO;
        }
        let times = 1_u32.checked_shl(self.count - slowing.free).unwrap_or(u32::MAX);
        slowing.first.saturating_mul(times).min(slowing.longest)
    }

    /// It was right.
    pub(crate) fn right(&mut self) {
        self.count = 0;
    }

    /// It was wrong once more. Answers how often by now.
    pub(crate) fn wrong(&mut self) -> u32 {
        self.count = if self.is_forgiven() { 1 } else { self.count.saturating_add(1) };
        self.last = Instant::now();
        self.count
    }

    fn is_forgiven(&self) -> bool {
        self.last.elapsed() > FORGIVEN_AFTER
    }
}

impl<K> Default for Attempts<K> {
    fn default() -> Self {
        Self(Mutex::new(Remembered { attempts: 0, turns: HashMap::new() }))
    }
}

impl<K: Clone + Eq + Hash> Attempts<K> {
    /// The failures of this key, to be locked while an attempt is under way.
    pub(crate) fn of(&self, who: &K) -> Turn {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.turns.len() >= REMEMBERED_MAX && !all.turns.contains_key(who) {
            all.forget_the_oldest();
        }
        all.attempts += 1;
        let now = all.attempts;
        let none = || (now, Turn::new(Failures::none().into()));
        let (at, turn) = all.turns.entry(who.clone()).or_insert_with(none);
        *at = now;
        Arc::clone(turn)
    }
}

impl<K: Eq + Hash> Remembered<K> {
    /// Whoever is at it stays.
    fn forget_the_oldest(&mut self) {
        let is_at_it = |turn: &Turn| Arc::strong_count(turn) > 1;
        let idle = self.turns.values().filter(|(_, turn)| !is_at_it(turn));
        let mut ages: Vec<u64> = idle.map(|(at, _)| *at).collect();
        ages.sort_unstable();
        let Some(last) = ages.get(FORGOTTEN_AT_ONCE.min(ages.len().saturating_sub(1))) else { return };
        self.turns.retain(|_, (at, turn)| *at > *last || is_at_it(turn));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_are_remembered_than_there_is_room_for() {
        let attempts = Attempts::default();
        for at in 0..REMEMBERED_MAX {
            attempts.of(&at).lock().await.wrong();
        }
        let turn = attempts.of(&0);
        attempts.of(&REMEMBERED_MAX);
        let left = attempts.0.lock().expect("not poisoned").turns.len();
        assert_eq!(left, REMEMBERED_MAX - FORGOTTEN_AT_ONCE);
        assert!(Arc::ptr_eq(&turn, &attempts.of(&0)), "whoever is at it stays");
        let last = attempts.of(&(REMEMBERED_MAX - 1));
        assert_eq!(last.lock().await.wrong(), 2, "whoever was at it of late stays");
        assert_eq!(attempts.of(&1).lock().await.wrong(), 1, "the oldest is forgotten");
    }
}
