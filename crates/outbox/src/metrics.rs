//! What a relay counts, as plain data.

use std::collections::{BTreeMap, BTreeSet};
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
    /// How far groups of consumers are, when that was last counted: by category, lane and group. Of a category at most [`Settings::lag_groups_max`](crate::Settings) groups are
    /// named, the first by name; the others are one that has no name.
    pub groups: Vec<GroupLag>,
}

/// The name that metrics give to the groups of a category that are told together. A group of that name is one of them.
pub const OTHER_GROUPS: &str = "(others)";

/// How far a group of consumers is in one lane of a category of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLag {
    /// The category.
    pub category: String,
    /// The group; nothing: several, together.
    pub group: Option<String>,
    /// The lane: `primary` or `backfill`.
    pub lane: &'static str,
    /// The stream of that lane, without those of partitions.
    pub stream: String,
    /// Entries that were handed to nobody yet.
    pub waiting: u64,
    /// Entries that were handed over and are not settled.
    pub pending: u64,
    /// How long the oldest of both has been in its stream, seconds; 0 where there is none.
    pub oldest_s: u64,
    /// The group is in the primary lane and in no stream of this one, where entries wait: nobody reads them for it.
    pub is_unread: bool,
}

/// With no more than so many named groups of each category; the others are summed under no name, in each lane.
pub(crate) fn bounded(all: Vec<GroupLag>, named_max: usize) -> Vec<GroupLag> {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for lag in &all {
        names
            .entry(&lag.category)
            .or_default()
            .extend(lag.group.as_deref().filter(|name| *name != OTHER_GROUPS));
    }
    let named = |lag: &GroupLag| {
        let mut first = names[&*lag.category].iter().take(named_max);
        lag.group.as_deref().is_some_and(|group| first.any(|name| *name == group))
    };
    let is_named: Vec<bool> = all.iter().map(named).collect();
    let mut bounded: Vec<GroupLag> = Vec::new();
    for (lag, is_named) in all.into_iter().zip(is_named) {
        let lag = GroupLag { group: lag.group.filter(|_| is_named), ..lag };
        let is_same = |other: &&mut GroupLag| {
            !is_named && other.group.is_none() && other.category == lag.category && other.lane == lag.lane
        };
        match bounded.iter_mut().find(is_same) {
            Some(sum) => {
                sum.waiting += lag.waiting;
                sum.pending += lag.pending;
                sum.oldest_s = sum.oldest_s.max(lag.oldest_s);
                sum.is_unread |= lag.is_unread;
            }
            None => bounded.push(lag),
        }
    }
    bounded
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
    fn beyond_the_bound_groups_are_summed_in_each_lane_of_their_category() {
        let lag = |category: &str, group: &str, lane, waiting| GroupLag {
            category: category.to_owned(),
            group: Some(group.to_owned()),
            lane,
            stream: category.to_owned(),
            waiting,
            pending: 1,
            oldest_s: waiting,
            is_unread: false,
        };
        let all = ["c", "a", "b", "d"].iter().zip(1..).flat_map(|(group, waiting)| {
            [lag("order", group, "primary", waiting), lag("order", group, "backfill", 10 * waiting)]
        });
        let all: Vec<_> = all.chain([lag("customer", "z", "primary", 7)]).collect();
        let told = bounded(all, 2);
        let told: Vec<_> = told
            .iter()
            .map(|lag| {
                format!("{}/{:?} {} {} {}", lag.category, lag.group, lag.lane, lag.waiting, lag.pending)
            })
            .collect();
        let expect = [
            "order/None primary 5 2",
            "order/None backfill 50 2",
            "order/Some(\"a\") primary 2 1",
            "order/Some(\"a\") backfill 20 1",
            "order/Some(\"b\") primary 3 1",
            "order/Some(\"b\") backfill 30 1",
            "customer/Some(\"z\") primary 7 1",
        ];
        assert_eq!(told, expect);
    }

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
