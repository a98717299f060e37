//! How a subscriber reads.

use std::time::Duration;

use crate::lanes::Lanes;
use crate::retry::Retry;

/// Longest wait for new entries.
const BLOCK_MAX: Duration = Duration::from_secs(3_600);

/// Where a group begins that is made here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the oldest entry.
    #[default]
    Beginning,
    /// With what is added from now on.
    New,
}

impl Start {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Beginning => "0",
            Self::New => "$",
        }
    }
}

/// What a subscriber reads, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscribeOptions {
    /// The category, such as `customer`.
    pub category: String,
    /// The group of consumers that shares it; each group has every entry. Made where it is not there.
    pub group: String,
    /// Our name in it. Two that are there at once must have different ones; who comes back under its name goes on with what it left at once.
    pub consumer: String,
    /// The lanes of the category; as whoever writes into them has them.
    pub lanes: Lanes,
    /// The category is parted by keys: also the lanes of each partition are read, `CATEGORY:KEY` and `CATEGORY:KEY:SUFFIX`, of the keys in the set `CATEGORY:__partitions__`. The
    /// whole group has one entry of each of those streams at a time, so `batch` and `batch_backfill` do not matter.
    pub partitions: bool,
    /// At most so many entries of the primary lane are fetched together; 10.
    pub batch: u16,
    /// At most so many of the backfill lane are; 1. What is fetched is held by this consumer, while others might do it.
    pub batch_backfill: u16,
    /// How many of the slots in which entries are handled the backfill lane never uses; 0. An urgent entry finds one free while bulk work is slow. Needs two lanes, and must be less
    /// than the number of slots, which [`Subscriber::set_slots`](super::Subscriber::set_slots) says.
    pub primary_slots: u16,
    /// The longest wait for new entries; 1 s. An arrival ends it.
    pub block: Duration,
    /// When what failed is tried again.
    pub retry: Retry,
    /// What another consumer took, and has not settled for so long, is taken over; 60 s. What we hold we say so of three times as often.
    pub claim_idle: Duration,
    /// Where the group begins if it is made here.
    pub start: Start,
}

impl SubscribeOptions {
    /// One lane, and a name of its own for the consumer.
    #[must_use]
    pub fn new(category: impl Into<String>, group: impl Into<String>) -> Self {
        Self {
            category: category.into(),
            group: group.into(),
            consumer: some_name(),
            lanes: Lanes::default(),
            partitions: false,
            batch: 10,
            batch_backfill: 1,
            primary_slots: 0,
            block: Duration::from_secs(1),
            retry: Retry::default(),
            claim_idle: Duration::from_secs(60),
            start: Start::default(),
        }
    }

    /// # Errors
    /// What is wrong with them, as a phrase.
    pub fn check(&self) -> Result<(), String> {
        let names = [("category", &self.category), ("group", &self.group), ("consumer", &self.consumer)];
        if let Some((what, _)) = names.iter().find(|(_, name)| name.trim().is_empty()) {
            return Err(format!("`{what}` must be a name"));
        }
        if self.batch == 0 || self.batch_backfill == 0 {
            return Err("`batch` and `batch_backfill` must be at least 1".to_owned());
        }
        if self.primary_slots > 0 && self.lanes.all().len() < 2 {
            return Err(
                "`primary_slots` needs two lanes: set `lanes` as the writer has them, or leave it at 0"
                    .to_owned(),
            );
        }
        if self.block < Duration::from_millis(1) || self.block > BLOCK_MAX {
            return Err("`block` must be between 1 ms and an hour".to_owned());
        }
        if self.claim_idle < Duration::from_millis(10) {
            return Err(
                "`claim_idle` must be at least 10 ms: else consumers take from each other what they work on"
                    .to_owned(),
            );
        }
        self.retry.check()
    }
}

fn some_name() -> String {
    let mut bytes = [0; 4];
    // Without chance the number of the process must do.
    let _ = getrandom::fill(&mut bytes);
    format!("overtake-{}-{:08x}", std::process::id(), u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_mean_nothing_are_refused() {
        let fine = SubscribeOptions::new("customer", "mails");
        assert_eq!(fine.check(), Ok(()));
        for (options, said) in [
            (SubscribeOptions { group: " ".into(), ..fine.clone() }, "`group`"),
            (SubscribeOptions { batch_backfill: 0, ..fine.clone() }, "`batch_backfill`"),
            (SubscribeOptions { primary_slots: 1, ..fine.clone() }, "`primary_slots` needs two lanes"),
            (SubscribeOptions { block: Duration::ZERO, ..fine.clone() }, "`block`"),
            (SubscribeOptions { claim_idle: Duration::ZERO, ..fine.clone() }, "`claim_idle`"),
            (SubscribeOptions { retry: Retry { attempts: 0, ..Retry::default() }, ..fine.clone() }, "once"),
        ] {
            let why = options.check().expect_err(said);
            assert!(why.contains(said), "{why}");
        }
        assert_ne!(fine.consumer, SubscribeOptions::new("customer", "mails").consumer);
    }
}
