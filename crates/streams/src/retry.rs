//! How often, and when, what failed is tried again.

use std::time::Duration;

/// When what failed is tried again, and how often it is tried in all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// So many times an entry is handed over before it is a dead letter; at least 1.
    pub attempts: u32,
    /// Until the second attempt.
    pub initial: Duration,
    /// So many times longer is each wait than the one before; at least 1.
    pub multiplier: f64,
    /// The longest wait.
    pub max: Duration,
}

/// Three attempts, after 1 s and 2 s.
impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, initial: Duration::from_secs(1), multiplier: 2.0, max: Duration::from_secs(60) }
    }
}

impl Retry {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub fn check(&self) -> Result<(), String> {
        if self.attempts == 0 {
            return Err("an entry must be tried at least once: set `attempts` to 1 or more".to_owned());
        }
        if !self.multiplier.is_finite() || self.multiplier < 1.0 {
            return Err("`multiplier` must be a number from 1 on: waits do not become shorter".to_owned());
        }
        Ok(())
    }

    /// The wait after so many attempts; none where there was none.
    #[must_use]
    pub fn wait_after(&self, attempts: u64) -> Duration {
        let Some(steps) = attempts.checked_sub(1) else { return Duration::ZERO };
        let steps = i32::try_from(steps).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.multiplier.powi(steps);
        // Also where it is larger than any duration.
        if seconds < self.max.as_secs_f64() { Duration::from_secs_f64(seconds) } else { self.max }
    }

    /// Whether so many attempts were the last.
    #[must_use]
    pub fn is_over(&self, attempts: u64) -> bool {
        attempts >= self.attempts.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_longest() {
        let retry = Retry { max: Duration::from_secs(3), ..Retry::default() };
        let waits = [0, 1, 2, 3, 4, u64::MAX].map(|attempts| retry.wait_after(attempts).as_millis());
        assert_eq!(waits, [0, 1_000, 2_000, 3_000, 3_000, 3_000]);
        assert_eq!([2, 3, 4].map(|attempts| retry.is_over(attempts)), [false, true, true]);
    }

    #[test]
    fn settings_that_mean_nothing_are_refused() {
        assert!(Retry { attempts: 0, ..Retry::default() }.check().is_err());
        for multiplier in [0.5, f64::NAN, f64::INFINITY] {
            assert!(Retry { multiplier, ..Retry::default() }.check().is_err(), "{multiplier}");
        }
        assert_eq!(Retry::default().check(), Ok(()));
    }
}
