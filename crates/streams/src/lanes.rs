//! The lanes of a category, and which of them a priority takes.

use std::fmt;

/// The suffix that streams of dead letters have.
pub(crate) const DEAD: &str = "dlq";

/// One of the two streams of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// What people wait for; read first.
    Primary,
    /// What has time; read while there is nothing in the primary lane.
    Backfill,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Primary => "primary",
            Self::Backfill => "backfill",
        })
    }
}

/// How categories are parted into lanes. By default they are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    is_enabled: bool,
    threshold: i32,
    suffix: String,
}

/// Not enabled; a threshold of 0, the suffix `backfill`.
impl Default for Lanes {
    fn default() -> Self {
        Self { is_enabled: false, threshold: 0, suffix: "backfill".to_owned() }
    }
}

impl Lanes {
    /// What is less urgent than `threshold` takes the lane `CATEGORY:SUFFIX`; where lanes are not enabled, everything is in one.
    ///
    /// # Errors
    /// The suffix is blank, `dlq`, or has a colon in it, as a phrase.
    pub fn new(is_enabled: bool, threshold: i32, suffix: impl Into<String>) -> Result<Self, String> {
        let suffix = suffix.into();
        if suffix.trim().is_empty() || suffix.trim() != suffix {
            return Err("the suffix of the backfill lane must be a word, such as `backfill`".to_owned());
        }
        if suffix == DEAD {
            return Err("the suffix of the backfill lane must not be `dlq`: there the dead letters of the primary lane are".to_owned());
        }
        if suffix.contains(':') {
            return Err(format!(
                "the suffix of the backfill lane must have no colon: say `{}`",
                suffix.replace(':', "-")
            ));
        }
        Ok(Self { is_enabled, threshold, suffix })
    }

    /// Enabled, with the threshold 0 and the suffix `backfill`.
    #[must_use]
    pub fn enabled() -> Self {
        Self { is_enabled: true, ..Self::default() }
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

    /// The lane that something so urgent takes.
    #[must_use]
    pub fn lane_of(&self, priority: i32) -> Lane {
        if self.is_enabled && priority < self.threshold { Lane::Backfill } else { Lane::Primary }
    }

    /// The stream that something so urgent goes to.
    #[must_use]
    pub fn stream_of(&self, category: &str, priority: i32) -> String {
        self.stream(category, self.lane_of(priority))
    }

    /// The stream that a lane is.
    #[must_use]
    pub fn stream(&self, category: &str, lane: Lane) -> String {
        match lane {
            Lane::Primary => category.to_owned(),
            Lane::Backfill => format!("{category}:{}", self.suffix),
        }
    }

    /// Those there are, the more urgent first.
    #[must_use]
    pub fn all(&self) -> &'static [Lane] {
        if self.is_enabled { &[Lane::Primary, Lane::Backfill] } else { &[Lane::Primary] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_threshold_takes_the_backfill_lane() {
        let lanes = Lanes::enabled();
        let streams = [-100, -50, -1, 0, 50, 100].map(|priority| lanes.stream_of("customer", priority));
        let bulk = "customer:backfill";
        assert_eq!(streams, [bulk, bulk, bulk, "customer", "customer", "customer"]);
        let finer = Lanes::new(true, -25, "migration").expect("fine");
        assert_eq!([-50, -10].map(|priority| finer.lane_of(priority)), [Lane::Backfill, Lane::Primary]);
        assert_eq!(finer.stream_of("customer", -50), "customer:migration");
    }

    #[test]
    fn where_lanes_are_not_enabled_there_is_one_stream() {
        let lanes = Lanes::default();
        assert_eq!([-100, 0].map(|priority| lanes.stream_of("customer", priority)), ["customer"; 2]);
        assert_eq!(lanes.all(), [Lane::Primary]);
    }

    #[test]
    fn a_suffix_that_would_hide_a_lane_is_refused() {
        for (suffix, said) in [("", "a word"), (" ", "a word"), ("dlq", "dead letters"), ("a:b", "`a-b`")] {
            let why = Lanes::new(true, 0, suffix).expect_err(suffix);
            assert!(why.contains(said), "{why}");
        }
    }
}
