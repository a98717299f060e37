//! Two lanes for each category of a stream: what is at or above a threshold goes first, the rest when nothing of that waits.

use crate::priority::Given;
use crate::settings::{Band, Order};

/// What the lane of everyday messages is called.
pub const PRIMARY_LANE: &str = "primary";
/// What the lane of messages below the threshold is called.
pub const BACKFILL_LANE: &str = "backfill";
/// What follows a stream's name in that of its dead letters.
const DEAD_LETTERS: &str = "dlq";
/// Longest suffix, bytes.
const SUFFIX_LEN_MAX: usize = 64;

/// How streams are split in two: the same settings for the broker, a relay and streams of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityLanes {
    /// Whether they are; otherwise each category has one lane, first in, first out.
    pub enabled: bool,
    /// The least urgent priority that is not backfill.
    pub threshold: i32,
    /// What the backfill lane's stream is called behind the category's name and a colon.
    pub backfill_suffix: String,
}

/// One lane, below 0 is backfill once they are enabled, and its stream is `CATEGORY:backfill`.
impl Default for PriorityLanes {
    fn default() -> Self {
        Self { enabled: false, threshold: 0, backfill_suffix: BACKFILL_LANE.to_owned() }
    }
}

impl PriorityLanes {
    /// Whether the suffix can be one.
    ///
    /// # Errors
    /// What it must be, as a phrase that follows its name.
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

    /// Whether a message of this priority is backfill.
    #[must_use]
    pub fn is_backfill(&self, priority: i32) -> bool {
        self.enabled && priority < self.threshold
    }

    /// The lanes of a queue.
    #[must_use]
    pub fn order(&self) -> Order {
        if !self.enabled {
            return Order::Fifo;
        }
        let from = Some(Given::Number(self.threshold.into()));
        let primary = Band { name: PRIMARY_LANE.to_owned(), from };
        Order::Lanes(vec![primary, Band { name: BACKFILL_LANE.to_owned(), from: None }])
    }

    /// The stream into which a message of this priority goes.
    #[must_use]
    pub fn stream_of(&self, category: &str, priority: i32) -> String {
        if self.is_backfill(priority) { self.backfill_stream(category) } else { category.to_owned() }
    }

    /// What a lane of a category is called for people: the primary one as the category.
    #[must_use]
    pub fn stream_of_lane(&self, category: &str, lane: &str) -> String {
        if lane == BACKFILL_LANE { self.backfill_stream(category) } else { category.to_owned() }
    }

    /// The streams of a category, the most urgent first.
    #[must_use]
    pub fn streams(&self, category: &str) -> Vec<String> {
        let backfill = self.enabled.then(|| self.backfill_stream(category));
        std::iter::once(category.to_owned()).chain(backfill).collect()
    }

    /// The stream of the dead letters of a stream.
    #[must_use]
    pub fn dead_letters_of(stream: &str) -> String {
        format!("{stream}:{DEAD_LETTERS}")
    }

    fn backfill_stream(&self, category: &str) -> String {
        format!("{category}:{}", self.backfill_suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(threshold: i32) -> PriorityLanes {
        PriorityLanes { enabled: true, threshold, ..PriorityLanes::default() }
    }

    #[test]
    fn what_is_below_the_threshold_is_backfill_and_nothing_else() {
        let stream = |threshold, priority| lanes(threshold).stream_of("customer", priority);
        for priority in [-100, -50, -1, i32::MIN] {
            assert_eq!(stream(0, priority), "customer:backfill");
        }
        for priority in [0, 50, 100, i32::MAX] {
            assert_eq!(stream(0, priority), "customer");
        }
        assert_eq!((stream(-25, -10), stream(-25, -26)), ("customer".into(), "customer:backfill".into()));
        assert_eq!(PriorityLanes::default().stream_of("customer", -100), "customer");
    }

    #[test]
    fn each_lane_has_its_stream_and_each_stream_its_dead_letters() {
        let migration = PriorityLanes { backfill_suffix: "migration".to_owned(), ..lanes(0) };
        assert_eq!(migration.streams("customer"), ["customer", "customer:migration"]);
        assert_eq!(migration.stream_of_lane("customer", BACKFILL_LANE), "customer:migration");
        assert_eq!(migration.stream_of_lane("customer", PRIMARY_LANE), "customer");
        assert_eq!(PriorityLanes::default().streams("customer"), ["customer"]);
        assert_eq!(PriorityLanes::dead_letters_of("customer:migration"), "customer:migration:dlq");
    }

    #[test]
    fn a_suffix_that_would_mix_names_up_is_none() {
        for suffix in ["", " ", "dlq", "a:b", "a b", "\u{7}", &"x".repeat(65)] {
            PriorityLanes::check_suffix(suffix).expect_err(suffix);
        }
        PriorityLanes::check_suffix("backfill").expect("fine");
        assert!(PriorityLanes::is_category("customer") && !PriorityLanes::is_category("customer:dlq"));
    }
}
