//! How long to wait before asking again: longer each time, up to a bound, and never two workers in step.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first wait, before chance.
const FIRST: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST: Duration = Duration::from_secs(5);

/// Waits that double.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    waits: u32,
}

impl Backoff {
    /// Waits.
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.next(chance())).await;
    }

    /// Between half of the next wait and all of it, as `chance` says: 0 is half, 255 is all.
    fn next(&mut self, chance: u8) -> Duration {
        let full = LONGEST.min(FIRST * 2_u32.pow(self.waits.min(10)));
        self.waits += 1;
        full / 2 + full * u32::from(chance) / 510
    }
}

/// The keys of the standard library's hasher are random.
fn chance() -> u8 {
    RandomState::new().hash_one(()).to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_seconds() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..8).map(|_| backoff.next(255).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    }

    #[test]
    fn chance_shortens_a_wait_by_half_at_most() {
        assert_eq!(Backoff::default().next(0).as_millis(), 50);
        assert_eq!(Backoff { waits: u32::MAX - 1 }.next(0).as_millis(), 2_500);
    }
}
