//! How many messages ended how.

use serde_json::{Value, json};

use super::verdict::Outcome;
use crate::table::number;

/// Counts by outcome.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    counts: [u64; OUTCOMES.len()],
}

/// In the order in which they are told.
const OUTCOMES: [Outcome; 9] = [
    Outcome::Done,
    Outcome::Failed,
    Outcome::Rejected,
    Outcome::Cancelled,
    Outcome::TimedOut,
    Outcome::PutBack,
    Outcome::Removed,
    Outcome::Lost,
    Outcome::Left,
];

impl Tally {
    /// One more.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        let places = OUTCOMES.iter().zip(&mut self.counts);
        places.filter(|(this, _)| **this == outcome).for_each(|(_, count)| *count += 1);
    }

    /// So many ended so.
    pub(crate) fn of(&self, outcome: Outcome) -> u64 {
        let places = OUTCOMES.iter().zip(&self.counts);
        places.filter(|(this, _)| **this == outcome).map(|(_, count)| count).sum()
    }

    /// For people: what was done and failed, and else what there was.
    pub(crate) fn text(&self) -> String {
        let always = [Outcome::Done, Outcome::Failed];
        let told = OUTCOMES.into_iter().filter(|outcome| always.contains(outcome) || self.of(*outcome) > 0);
        let texts: Vec<_> =
            told.map(|outcome| format!("{} {}", number(self.of(outcome)), outcome.word())).collect();
        texts.join(", ")
    }

    /// For programs: all of them.
    pub(crate) fn json(&self) -> Value {
        let counts = OUTCOMES.iter().zip(&self.counts);
        let mut told = json!({ "event": "stopped" });
        counts.for_each(|(outcome, count)| told[outcome.name()] = (*count).into());
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_happened_is_not_told_but_for_the_usual() {
        let mut tally = Tally::default();
        assert_eq!(tally.text(), "0 done, 0 failed");
        [Outcome::Done, Outcome::PutBack, Outcome::Done].into_iter().for_each(|outcome| tally.add(outcome));
        assert_eq!(tally.text(), "2 done, 0 failed, 1 put back");
        assert_eq!(tally.json()["put_back"], 1);
    }
}
