//! When what places push is heard for the first time.
//!
//! ```text
//!  subscribe ─▶ heard, place by place ─▶ all are, or it takes too long ─▶ all are asked
//!                    │
//!                    └ nobody is about to ask: it is looked at
//! ```
//!
//! What a place pushed before it was heard must be looked for. Whoever is to ask all places anyway does that once they are heard, and nobody looks at any of them.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

#[derive(Debug)]
pub(super) struct Hearing {
    state: Mutex<State>,
    /// Nothing is unheard any more.
    all: Notify,
}

#[derive(Debug)]
struct State {
    /// Places that are not heard yet.
    unheard: usize,
    /// So many wait to ask all of them.
    awaited_by: usize,
}

/// Somebody waits.
struct Awaited<'h>(&'h Hearing);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.state().awaited_by -= 1;
    }
}

impl Hearing {
    /// Of so many places none is heard yet.
    pub(super) fn new(places: usize) -> Self {
        Self { state: Mutex::new(State { unheard: places, awaited_by: 0 }), all: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// A place is heard for the first time. Whether it is to be looked at: nobody is about to ask it.
    pub(super) fn begins(&self) -> bool {
        let mut state = self.state();
        state.unheard -= 1;
        if state.unheard == 0 {
            self.all.notify_waiters();
        }
        state.awaited_by == 0
    }

    /// Ends once all places are heard, or so late. Whoever waits for it asks all of them then.
    pub(super) async fn until_all(&self, patience: Duration) {
        self.state().awaited_by += 1;
        let _awaited = Awaited(self);
        let all = async {
            loop {
                let more = self.all.notified();
                if self.state().unheard == 0 {
                    return;
                }
                more.await;
            }
        };
        // Those that are heard later are looked at then.
        let _ = timeout(patience, all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    #[tokio::test]
    async fn whoever_waits_to_ask_spares_the_look() {
        let hearing = Hearing::new(2);
        let heard = async { (hearing.begins(), hearing.begins()) };
        let ((), looks) = tokio::join!(biased; hearing.until_all(LONG), heard);
        assert_eq!(looks, (false, false));
    }

    #[tokio::test]
    async fn with_nobody_about_to_ask_a_place_is_looked_at() {
        let hearing = Hearing::new(1);
        assert!(hearing.begins());
        hearing.until_all(LONG).await;
    }

    #[tokio::test]
    async fn what_is_heard_too_late_is_not_waited_for_and_looked_at() {
        let hearing = Hearing::new(2);
        let waits = async {
            hearing.until_all(Duration::ZERO).await;
            hearing.begins()
        };
        let (is_looked_at_late, is_looked_at) = tokio::join!(biased; waits, async { hearing.begins() });
        assert_eq!((is_looked_at, is_looked_at_late), (false, true));
    }
}
