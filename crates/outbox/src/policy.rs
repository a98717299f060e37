//! What the relay decides, without a database, a sink, a clock or chance: those are handed in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::row::{Marks, Outcome, Row};

/// How often, and when, a row is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// So many times a row is tried before it is given up, where it does not say so itself; at least 1.
    pub attempts: u32,
    /// Until the second attempt.
    pub initial: Duration,
    /// So many times longer is each wait than the one before; at least 1.
    pub multiplier: f64,
    /// The longest wait.
    pub max: Duration,
    /// Which part of a wait is drawn, 0 to 1: rows that failed together do not come again together.
    pub jitter: f64,
}

impl Default for Retry {
    /// Ten attempts, over about half an hour: after 1 s, 2 s, 4 s … up to 10 min, each up to a fifth shorter.
    fn default() -> Self {
        Self {
            attempts: 10,
            initial: Duration::from_secs(1),
            multiplier: 2.0,
            max: Duration::from_secs(600),
            jitter: 0.2,
        }
    }
}

impl Retry {
    /// The wait after so many attempts, from 1; `chance` is drawn from 0 to 1.
    #[must_use]
    pub fn wait(&self, attempts: u32, chance: f64) -> Duration {
        let steps = i32::try_from(attempts.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.multiplier.powi(steps);
        // Also where it is larger than any duration.
        let capped = seconds.min(self.max.as_secs_f64());
        Duration::from_secs_f64(capped * (1.0 - self.jitter * chance))
    }

    fn is_last(&self, row: &Row) -> bool {
        row.attempts.saturating_add(1) >= row.max_attempts.unwrap_or(self.attempts).max(1)
    }
}

/// How long to wait before looking again, where nothing tells that something came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Pace {
    /// From this to that.
    #[must_use]
    pub fn new(min: Duration, max: Duration) -> Self {
        Self { min, max: max.max(min), next: min }
    }

    /// A claim found so many of so many rows: how long to wait before the next.
    pub fn found(&mut self, rows: usize, limit: usize) -> Duration {
        if rows > 0 {
            self.next = self.min;
            return if rows >= limit { Duration::ZERO } else { self.min };
        }
        let wait = self.next;
        self.next = (self.next * 2).min(self.max);
        wait
    }

    /// Something told that it came: whoever told may tell more.
    pub fn told(&mut self) {
        self.next = self.min;
    }
}

/// What is written down of rows that were tried.
pub(crate) fn judge(
    rows: &[Row],
    outcomes: Vec<Outcome>,
    retry: &Retry,
    mut chance: impl FnMut() -> f64,
) -> Marks {
    let mut marks = Marks::default();
    for (row, outcome) in rows.iter().zip(outcomes) {
        let key = row.key.clone();
        match outcome {
            Outcome::Published => marks.published.push(key),
            Outcome::Failed(why) if retry.is_last(row) => {
                let attempts = row.attempts.saturating_add(1);
                marks.abandoned.push((key, format!("{why} (attempt {attempts}, the last)")));
            }
            Outcome::Failed(why) => {
                let wait = retry.wait(row.attempts.saturating_add(1), chance());
                marks.failed.push((key, why, wait));
            }
            Outcome::Refused(why) => marks.abandoned.push((key, why)),
            Outcome::Lost(_) | Outcome::Untried => marks.released.push(key),
        }
    }
    marks
}

/// In which order the rows of a claim are published where the order of keys is kept: in waves, each after the one before is confirmed, so that of one key and
/// priority at most one is on its way.
pub(crate) fn waves(rows: &[Row]) -> Vec<Vec<usize>> {
    let mut waves: Vec<Vec<usize>> = Vec::new();
    let mut next: BTreeMap<(&str, i32), usize> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let wave = row.partition_key.as_deref().map_or(0, |key| {
            let next = next.entry((key, row.priority)).or_default();
            *next += 1;
            *next - 1
        });
        if wave == waves.len() {
            waves.push(Vec::new());
        }
        waves[wave].push(at);
    }
    waves
}

/// Keys whose next rows must wait, since one before them did not go.
#[derive(Default)]
pub(crate) struct Held<'r>(BTreeSet<(&'r str, i32)>);

impl<'r> Held<'r> {
    pub(crate) fn is_free(&self, row: &'r Row) -> bool {
        row.partition_key.as_deref().is_none_or(|key| !self.0.contains(&(key, row.priority)))
    }

    pub(crate) fn tell(&mut self, row: &'r Row, outcome: &Outcome) {
        let goes_on = matches!(outcome, Outcome::Published | Outcome::Refused(_));
        if let (Some(key), false) = (row.partition_key.as_deref(), goes_on) {
            self.0.insert((key, row.priority));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Key;

    fn row(number: i64, key: Option<&str>, priority: i32, attempts: u32) -> Row {
        Row {
            key: Key::Number(number),
            message_id: number.to_string(),
            stream: Ok("s".into()),
            kind: "T".into(),
            data: b"{}".into(),
            metadata: None,
            priority,
            is_prioritized: true,
            partition_key: key.map(Into::into),
            attempts,
            max_attempts: None,
        }
    }

    #[test]
    fn waits_begin_at_their_base_grow_and_are_capped_and_a_part_is_drawn() {
        let retry = Retry { max: Duration::from_secs(10), ..Retry::default() };
        let waits = [1, 2, 3, 4, 5, 1_000, u32::MAX].map(|attempts| retry.wait(attempts, 0.0).as_secs());
        assert_eq!(waits, [1, 2, 4, 8, 10, 10, 10]);
        assert_eq!(retry.wait(4, 1.0), Duration::from_millis(6_400));
        assert_eq!(Retry { jitter: 0.0, ..retry }.wait(4, 1.0), Duration::from_secs(8));
    }

    #[test]
    fn looking_again_takes_longer_and_longer_until_something_comes() {
        let mut pace = Pace::new(Duration::from_millis(10), Duration::from_millis(100));
        let mut waits = |found: &[usize]| -> Vec<u128> {
            found.iter().map(|rows| pace.found(*rows, 500).as_millis()).collect()
        };
        assert_eq!(waits(&[0, 0, 0, 0, 0, 0]), [10, 20, 40, 80, 100, 100]);
        assert_eq!(waits(&[1, 500, 0, 0]), [10, 0, 10, 20]);
        pace.told();
        assert_eq!(pace.found(0, 500).as_millis(), 10);
    }

    #[test]
    fn attempts_are_obeyed_also_those_of_the_row_and_what_was_lost_costs_none() {
        let retry = Retry { attempts: 3, ..Retry::default() };
        let own = Row { max_attempts: Some(1), ..row(4, None, 0, 0) };
        let rows = [
            row(1, None, 0, 0),
            row(2, None, 0, 1),
            row(3, None, 0, 2),
            own,
            row(5, None, 0, 2),
            row(6, None, 0, 2),
        ];
        let failed = || Outcome::Failed("full".into());
        let outcomes =
            vec![failed(), failed(), failed(), failed(), Outcome::Lost("gone".into()), Outcome::Untried];
        let marks = judge(&rows, outcomes, &retry, || 0.0);
        let waits: Vec<_> = marks.failed.iter().map(|(key, _, wait)| (key.clone(), wait.as_secs())).collect();
        assert_eq!(waits, [(Key::Number(1), 1), (Key::Number(2), 2)]);
        let abandoned: Vec<_> = marks.abandoned.iter().map(|(key, why)| format!("{key}: {why}")).collect();
        assert_eq!(abandoned, ["3: full (attempt 3, the last)", "4: full (attempt 1, the last)"]);
        assert_eq!(marks.released, [Key::Number(5), Key::Number(6)]);
    }

    #[test]
    fn of_one_key_and_priority_one_row_goes_at_a_time_and_priorities_are_lanes_of_their_own() {
        let rows = [
            row(0, Some("a"), 50, 0),
            row(1, Some("a"), 0, 0),
            row(2, Some("a"), 0, 0),
            row(3, None, 0, 0),
            row(4, Some("b"), 0, 0),
            row(5, Some("a"), 0, 0),
        ];
        assert_eq!(waves(&rows), [vec![0, 1, 3, 4], vec![2], vec![5]]);
        let mut held = Held::default();
        held.tell(&rows[1], &Outcome::Failed("no".into()));
        held.tell(&rows[4], &Outcome::Refused("never".into()));
        assert!(
            !held.is_free(&rows[2])
                && held.is_free(&rows[0])
                && held.is_free(&rows[3])
                && held.is_free(&rows[4])
        );
    }
}
