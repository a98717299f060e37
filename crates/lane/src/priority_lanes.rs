//! Two lanes for each category of a stream: what is at or above a threshold goes first, the rest when nothing of that waits.

use std::fmt;

use crate::priority::Given;
use crate::settings::{Band, Order};

/// What the lane of everyday messages is called.
pub const PRIMARY_LANE: &str = "primary";
/// What the lane of messages below the threshold is called.
pub const BACKFILL_LANE: &str = "backfill";
/// What follows a stream's name in that of its dead letters.
pub const DEAD_LETTERS: &str = "dlq";
/// Longest suffix, bytes.
const SUFFIX_LEN_MAX: usize = 64;

/// One of the two lanes of a category, each a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamLane {
    /// What people wait for; served first.
    Primary,
    /// What has time; served while there is nothing in the primary lane.
    Backfill,
}

impl StreamLane {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => PRIMARY_LANE,
            Self::Backfill => BACKFILL_LANE,
        }
    }
}

impl fmt::Display for StreamLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How categories are parted into lanes: the same settings for the broker, a relay and streams of Redis. By default they are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityLanes {
    is_enabled: bool,
    threshold: i32,
    suffix: String,
}

/// Not enabled; a threshold of 0, the suffix `backfill`.
impl Default for PriorityLanes {
    fn default() -> Self {
        Self { is_enabled: false, threshold: 0, suffix: BACKFILL_LANE.to_owned() }
    }
}

impl PriorityLanes {
    /// What is less urgent than `threshold` takes the lane whose stream is `CATEGORY:SUFFIX`; where lanes are not enabled, everything is in one.
    ///
    /// # Errors
    /// What the suffix must be, as a phrase.
    pub fn new(is_enabled: bool, threshold: i32, suffix: impl Into<String>) -> Result<Self, String> {
        let suffix = suffix.into();
        Self::check_suffix(&suffix)?;
        Ok(Self { is_enabled, threshold, suffix })
    }

    /// Enabled, with the threshold 0 and the suffix `backfill`.
    #[must_use]
    pub fn enabled() -> Self {
        Self { is_enabled: true, ..Self::default() }
    }

    /// Whether the suffix can be one.
    ///
    /// # Errors
    /// What it must be, as a phrase.
    pub fn check_suffix(suffix: &str) -> Result<(), String> {
        let wrong = |why: &str| Err(format!("`{suffix}` {why}"));
        if suffix.trim().is_empty() {
            return wrong("is blank: the streams of both lanes would have one name");
        }
        if suffix == DEAD_LETTERS {
            return wrong("is what dead letters are called: name another");
        }
        if suffix.contains(':') {
            return wrong("has a colon, which stands between the parts of a stream's name");
        }
        if suffix.len() > SUFFIX_LEN_MAX || suffix.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return wrong("must be at most 64 bytes without white space and control characters");
        }
        Ok(())
    }

    /// Whether a category can be called so: its streams' names must be told from those of other categories.
    #[must_use]
    pub fn is_category(name: &str) -> bool {
        crate::check_name(name).is_ok() && !name.contains([':', '@'])
    }

    /// Whether there are two.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// What is less urgent takes the backfill lane.
    #[must_use]
    pub fn threshold(&self) -> i32 {
        self.threshold
    }

    /// Of the backfill lane, without the colon.
    #[must_use]
    pub fn suffix(&self) -> &str {
        &self.suffix
    }

    /// Those there are, the more urgent first.
    #[must_use]
    pub fn all(&self) -> &'static [StreamLane] {
        if self.is_enabled { &[StreamLane::Primary, StreamLane::Backfill] } else { &[StreamLane::Primary] }
    }

    /// The lane that something so urgent takes.
    #[must_use]
    pub fn lane_of(&self, priority: i32) -> StreamLane {
        if self.is_enabled && priority < self.threshold { StreamLane::Backfill } else { StreamLane::Primary }
    }

    /// The stream that something so urgent goes to.
    #[must_use]
    pub fn stream_of(&self, category: &str, priority: i32) -> String {
        self.stream(category, self.lane_of(priority))
    }

    /// The stream that a lane is.
    #[must_use]
    pub fn stream(&self, category: &str, lane: StreamLane) -> String {
        match lane {
            StreamLane::Primary => category.to_owned(),
            StreamLane::Backfill => format!("{category}:{}", self.suffix),
        }
    }

    /// The stream of the dead letters of a stream.
    #[must_use]
    pub fn dead_letters_of(stream: &str) -> String {
        format!("{stream}:{DEAD_LETTERS}")
    }

    /// The lanes of a queue.
    #[must_use]
    pub fn order(&self) -> Order {
        if !self.is_enabled {
            return Order::Fifo;
        }
        let from = Some(Given::Number(self.threshold.into()));
        let primary = Band { name: PRIMARY_LANE.to_owned(), from };
        Order::Lanes(vec![primary, Band { name: BACKFILL_LANE.to_owned(), from: None }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_threshold_is_backfill_and_nothing_else() {
        let lanes = PriorityLanes::enabled();
        for priority in [-100, -50, -1, i32::MIN] {
            assert_eq!(lanes.stream_of("customer", priority), "customer:backfill");
        }
        for priority in [0, 50, 100, i32::MAX] {
            assert_eq!(lanes.stream_of("customer", priority), "customer");
        }
        let finer = PriorityLanes::new(true, -25, "migration").expect("fine");
        let taken = [-26, -25, -10].map(|priority| finer.lane_of(priority));
        assert_eq!(taken, [StreamLane::Backfill, StreamLane::Primary, StreamLane::Primary]);
        assert_eq!(finer.stream("customer", StreamLane::Backfill), "customer:migration");
        assert_eq!(PriorityLanes::dead_letters_of("customer:migration"), "customer:migration:dlq");
    }

    #[test]
    fn where_lanes_are_not_enabled_there_is_one() {
        let lanes = PriorityLanes::default();
        assert_eq!([-100, 0].map(|priority| lanes.stream_of("customer", priority)), ["customer"; 2]);
        assert_eq!((lanes.all(), lanes.order()), (&[StreamLane::Primary][..], Order::Fifo));
    }

    #[test]
    fn names_that_would_be_mixed_up_are_none() {
        for suffix in ["", " ", "dlq", "a:b", "a b", "\u{7}", &"x".repeat(65)] {
            PriorityLanes::new(true, 0, suffix).expect_err(suffix);
        }
        assert!(PriorityLanes::is_category("customer") && !PriorityLanes::is_category("customer:dlq"));
    }
}
