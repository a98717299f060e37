//! Inversions: a message was delivered while a more urgent one waited that was confirmed before.

use super::LEVELS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unconfirmed,
    Waiting { since: u64 },
    Delivered,
}

/// Which messages wait, and what went ahead of them.
#[derive(Default)]
pub(crate) struct Overtaking {
    /// By number.
    states: Vec<State>,
    /// How many of a level wait.
    waiting: [u64; LEVELS as usize],
    /// When less urgent ones were delivered, for each level.
    passed: [Vec<u64>; LEVELS as usize],
    inversions: u64,
    lost_ns: u64,
    lost_most_ns: u64,
}

impl Overtaking {
    pub(crate) fn confirmed(&mut self, number: u64, level: u8, now: u64) {
        let state = self.state(number);
        if *state == State::Unconfirmed {
            *state = State::Waiting { since: now };
            self.waiting[usize::from(level)] += 1;
        }
    }

    pub(crate) fn delivered(&mut self, number: u64, level: u8, now: u64) {
        let at = usize::from(level);
        if let State::Waiting { since } = std::mem::replace(self.state(number), State::Delivered) {
            self.waiting[at] -= 1;
            self.settle(at, since, now);
        }
        let Some(highest) = (at + 1..self.waiting.len()).rfind(|above| self.waiting[*above] > 0) else {
            return;
        };
        self.inversions += 1;
        for passed in &mut self.passed[at + 1..=highest] {
            passed.push(now);
        }
    }

    /// A message was overtaken from the first one that passed it until it was delivered itself.
    fn settle(&mut self, at: usize, since: u64, now: u64) {
        let passed = &self.passed[at];
        if let Some(first) = passed.get(passed.partition_point(|passed| *passed < since)) {
            self.lost_ns += now - first;
            self.lost_most_ns = self.lost_most_ns.max(now - first);
        }
    }

    /// How many were delivered while a confirmed, more urgent one waited.
    pub(crate) fn inversions(&self) -> u64 {
        self.inversions
    }

    /// For how long messages were overtaken, all together, ms.
    pub(crate) fn lost_ms(&self) -> f64 {
        self.lost_ns as f64 / 1e6
    }

    /// For how long one was at most, ms.
    pub(crate) fn lost_most_ms(&self) -> f64 {
        self.lost_most_ns as f64 / 1e6
    }

    fn state(&mut self, number: u64) -> &mut State {
        let at = number as usize;
        if self.states.len() <= at {
            self.states.resize(at + 1, State::Unconfirmed);
        }
        &mut self.states[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `c` confirms and `d` delivers a message, its number and level after it, one a nanosecond.
    fn check(story: &[(char, u64, u8)], inversions: u64, lost_ns: u64) {
        let mut overtaking = Overtaking::default();
        for (now, (what, number, level)) in story.iter().enumerate() {
            match what {
                'c' => overtaking.confirmed(*number, *level, now as u64),
                _ => overtaking.delivered(*number, *level, now as u64),
            }
        }
        assert_eq!((overtaking.inversions, overtaking.lost_ns), (inversions, lost_ns), "{story:?}");
    }

    #[test]
    fn a_lower_one_ahead_of_a_confirmed_higher_one_counts() {
        check(&[('c', 0, 9), ('c', 1, 1), ('d', 1, 1), ('d', 0, 9)], 1, 1);
        check(&[('c', 0, 9), ('d', 1, 1), ('d', 2, 8), ('d', 0, 9)], 2, 2);
    }

    #[test]
    fn the_higher_one_first_the_same_level_and_what_is_not_confirmed_do_not() {
        check(&[('c', 0, 9), ('c', 1, 1), ('d', 0, 9), ('d', 1, 1)], 0, 0);
        check(&[('c', 0, 5), ('d', 1, 5), ('d', 0, 5)], 0, 0);
        check(&[('d', 1, 1), ('c', 0, 9), ('d', 0, 9)], 0, 0);
    }

    #[test]
    fn what_is_confirmed_after_it_was_delivered_does_not_wait() {
        check(&[('d', 0, 9), ('c', 0, 9), ('d', 1, 1)], 0, 0);
    }

    #[test]
    fn time_counts_for_those_that_were_passed_only() {
        // 1 of level 9 is confirmed after the inversion at 1; 2 of level 3 is below what passed.
        check(
            &[('c', 0, 9), ('d', 3, 5), ('c', 1, 9), ('c', 2, 3), ('d', 0, 9), ('d', 1, 9), ('d', 2, 3)],
            1,
            3,
        );
    }
}
