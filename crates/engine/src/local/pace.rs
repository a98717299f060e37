//! How fast scans go, so that whoever asks for something else hardly notices them.

use std::time::{Duration, Instant};

/// About how long a step takes. A request that comes then waits for its end.
const STEP_TIME: Duration = Duration::from_millis(1);
/// Messages that a step looks at in that time: at least so many,
const LOOKS_MIN: usize = 256;
/// and at most.
const LOOKS_MAX: usize = 2_048;
/// While something is asked scans rest after a step for so many times as long as it took: a sixth of the time is theirs. Shorter steps would
/// not do: each begins anew with the heads of all lanes, which takes 0.4 ms with 64 of them.
const BUSY_REST: u32 = 5;
/// A step that was held up itself is no reason to rest longer.
const REST_MAX: Duration = Duration::from_millis(50);
/// Something is asked while the last request is no longer ago than this.
const BUSY_FOR: Duration = Duration::from_millis(2);

/// How many messages a step of a scan looks at, and when the next step begins.
#[derive(Debug)]
pub(super) struct Pace {
    /// Messages that are looked at in a [`STEP_TIME`].
    looks: usize,
    /// When the last request came.
    asked: Option<Instant>,
    /// When the rest after the last step ends.
    rests_until: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { looks: LOOKS_MAX, asked: None, rests_until: None }
    }
}

impl Pace {
    /// Something was asked.
    pub(super) fn asked(&mut self, now: Instant) {
        self.asked = Some(now);
    }

    fn is_busy(&self, now: Instant) -> bool {
        self.asked.is_some_and(|asked| now.saturating_duration_since(asked) < BUSY_FOR)
    }

    /// How long scans still rest; `None` when the next step may begin.
    pub(super) fn rest(&self, now: Instant) -> Option<Duration> {
        let left = self.rests_until?.saturating_duration_since(now);
        Some(left).filter(|left| !left.is_zero() && self.is_busy(now))
    }

    /// Messages that the next step looks at, at most.
    pub(super) fn looks(&self) -> usize {
        self.looks
    }

    /// A step was done, in which so many were looked at.
    pub(super) fn stepped(&mut self, begun: Instant, now: Instant, looked: usize) {
        let took = now.saturating_duration_since(begun);
        // A step that ended early says little.
        if looked >= LOOKS_MIN / 2 {
            let in_time = looked as u128 * STEP_TIME.as_nanos() / took.as_nanos().max(1);
            self.looks = (in_time as usize).clamp(LOOKS_MIN, LOOKS_MAX);
        }
        self.rests_until = Some(now + (took * BUSY_REST).min(REST_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_step_takes_about_a_ms_and_the_next_begins_at_once_while_nothing_is_asked() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert_eq!((pace.looks(), pace.rest(now)), (LOOKS_MAX, None));
        pace.stepped(now, now + 4 * MS, LOOKS_MAX);
        assert_eq!((pace.looks(), pace.rest(now + 4 * MS)), (LOOKS_MAX / 4, None));
        pace.stepped(now, now + MS, 3);
        assert_eq!(pace.looks(), LOOKS_MAX / 4, "a step that ended early says nothing");
        pace.stepped(now, now + 40 * MS, LOOKS_MAX);
        assert_eq!(pace.looks(), LOOKS_MIN);
    }

    #[test]
    fn a_scan_rests_while_something_is_asked() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.asked(now);
        assert_eq!(pace.rest(now), None);
        let end = now + MS;
        pace.stepped(now, end, LOOKS_MAX);
        assert_eq!(pace.rest(end), Some(5 * MS));
        pace.asked(end + 4 * MS);
        assert_eq!(pace.rest(end + 4 * MS), Some(MS));
        assert_eq!(pace.rest(end + 5 * MS), None);
        assert_eq!(pace.rest(end + 4 * MS + BUSY_FOR), None, "nobody asks any more");
        pace.stepped(now, end + 100 * MS, 0);
        pace.asked(end + 100 * MS);
        assert_eq!(pace.rest(end + 100 * MS), Some(REST_MAX), "it was not the scan that took so long");
    }
}
