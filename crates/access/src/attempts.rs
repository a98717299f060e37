//! How often somebody was wrong in a row, and what that costs the next attempt.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use overtake_lane::NAME_LEN_MAX;
use tokio::time::Instant;

/// Names and addresses whose failures are remembered.
const REMEMBERED_MAX: usize = 10_000;
/// Failures that cost nothing yet.
const FREE_FAILURES: u32 = 3;
/// What the next one waits; each further one twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// What none waits longer than.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// After so long without one, failures are forgotten.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);

/// The failures of each name from each address. One attempt comes after the other: many at once are no faster.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<HashMap<(IpAddr, Arc<str>), Turn>>);

/// Held by the attempt that is under way.
pub(crate) type Turn = Arc<tokio::sync::Mutex<Failures>>;

/// How often somebody was wrong in a row.
pub(crate) struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    /// How long the next attempt waits.
    pub(crate) fn wait(&self) -> Duration {
        if self.count < FREE_FAILURES || self.is_forgiven() {
            return Duration::ZERO;
        }
        let times = 1_u32.checked_shl(self.count - FREE_FAILURES).unwrap_or(u32::MAX);
        FIRST_WAIT.saturating_mul(times).min(LONGEST_WAIT)
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

impl Attempts {
    /// Those of this name from this address.
    pub(crate) fn of(&self, from: IpAddr, user: &str) -> Turn {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED_MAX {
            // Who is at it stays, and who was wrong of late as long as there is room.
            let is_at_it = |turn: &Turn| Arc::strong_count(turn) > 1;
            let matters = |one: &Failures| one.count > 0 && !one.is_forgiven();
            all.retain(|_, turn| is_at_it(turn) || turn.try_lock().is_ok_and(|one| matters(&one)));
            if all.len() >= REMEMBERED_MAX {
                all.retain(|_, turn| is_at_it(turn));
            }
        }
        // What is too long to be a name is nobody's.
        let user = if user.len() > NAME_LEN_MAX { "" } else { user };
        let none = || Turn::new(Failures { count: 0, last: Instant::now() }.into());
        Arc::clone(all.entry((from, user.into())).or_insert_with(none))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn no_more_are_remembered_than_there_is_room_for() {
        let attempts = Attempts::default();
        let from = |at: usize| IpAddr::V4(Ipv4Addr::from_bits(at as u32));
        for at in 0..REMEMBERED_MAX {
            attempts.of(from(at), "x").lock().await.wrong();
        }
        let turn = attempts.of(from(0), "x");
        attempts.of(from(REMEMBERED_MAX), "x");
        assert!(attempts.0.lock().expect("not poisoned").len() <= 2, "who is at it, and who came");
        assert!(Arc::ptr_eq(&turn, &attempts.of(from(0), "x")));
    }
}
