//! What a relay counts, as plain data.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::database::Lag;

/// Upper bounds of the histogram of claims, seconds.
pub const CLAIM_BOUNDS_S: [f64; 12] = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// What was counted since the relay began, and what holds now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Rows that were published and marked so.
    pub published: u64,
    /// Attempts in vain, after which there is another.
    pub failed: u64,
    /// Rows that were given up.
    pub abandoned: u64,
    /// Rows that were claimed and given back, untried or not known.
    pub released: u64,
    /// Rows that were tried, and were somebody else's when that was to be written down.
    pub overtaken: u64,
    /// Rows put back because their lock was over.
    pub expired: u64,
    /// Rows that were cleaned.
    pub cleaned: u64,
    /// Claims that were answered, those that found nothing, too.
    pub claims: Claims,
    /// Whether the sink was there when it was last asked.
    pub has_sink: bool,
    /// Whether the database was.
    pub has_database: bool,
    /// What waits by priority, when it was last counted.
    pub lag: Vec<Lag>,
}

/// How long claims took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// By [`CLAIM_BOUNDS_S`], each without those before it; the last are those that took longer.
    pub counts: [u64; CLAIM_BOUNDS_S.len() + 1],
    /// Of all of them.
    pub seconds: f64,
}

impl Claims {
    pub(crate) fn took(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let at = CLAIM_BOUNDS_S.iter().position(|bound| seconds <= *bound).unwrap_or(CLAIM_BOUNDS_S.len());
        self.counts[at] += 1;
        self.seconds += seconds;
    }
}

/// Looks at a relay while it runs. Clones look at the same.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    /// How it stands.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_counted_under_the_first_bound_that_holds_it() {
        let mut claims = Claims::default();
        for millis in [0, 1, 3, 9_000] {
            claims.took(Duration::from_millis(millis));
        }
        assert_eq!((claims.counts[0], claims.counts[2], claims.counts[12]), (2, 1, 1));
        assert!((claims.seconds - 9.004).abs() < 1e-9);
    }
}
