//! A walk over all keys of a map, a few keys a step, while keys come and go.
//!
//! A walk that begins anew goes on from where the one before stopped, and ends when it comes round to there again. So it reaches every key even
//! where it begins anew all the time.

use std::collections::BTreeMap;
use std::ops::Bound;

/// How far the walk is.
#[derive(Clone, Debug)]
pub(crate) struct Round<K> {
    /// The last key looked at; `None`: the next one is the first of all.
    at: Option<K>,
    lap: Lap<K>,
}

/// What is left of a walk.
#[derive(Clone, Debug)]
enum Lap<K> {
    /// All keys after `at`, and from the first one to this one.
    ToEnd(Option<K>),
    /// The keys after `at` up to this one.
    UpTo(K),
    Over,
}

impl<K> Default for Round<K> {
    fn default() -> Self {
        Self { at: None, lap: Lap::Over }
    }
}

impl<K: Ord + Clone> Round<K> {
    /// All keys are to be looked at, from now on.
    pub(crate) fn begin(&mut self) {
        self.lap = Lap::ToEnd(self.at.clone());
    }

    /// Whether [`Round::next`] may still find something.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.lap, Lap::Over)
    }

    /// The next one to look at. `None`: every key was looked at that was there all the time.
    pub(crate) fn next<'m, V>(&mut self, map: &'m BTreeMap<K, V>) -> Option<(&'m K, &'m V)> {
        loop {
            let from = self.at.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let next = map.range((from, Bound::Unbounded)).next();
            match (next, &self.lap) {
                (Some((key, _)), Lap::UpTo(last)) if key > last => self.lap = Lap::Over,
                (_, Lap::Over) | (None, Lap::UpTo(_)) => self.lap = Lap::Over,
                (Some((key, value)), _) => {
                    self.at = Some(key.clone());
                    return Some((key, value));
                }
                (None, Lap::ToEnd(last)) => {
                    self.lap = last.clone().map_or(Lap::Over, Lap::UpTo);
                    self.at = None;
                }
            }
            if !self.is_open() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(keys: &[u32]) -> BTreeMap<u32, u32> {
        keys.iter().map(|key| (*key, *key)).collect()
    }

    fn take(round: &mut Round<u32>, map: &BTreeMap<u32, u32>, most: usize) -> Vec<u32> {
        std::iter::from_fn(|| round.next(map)).take(most).map(|(key, _)| *key).collect()
    }

    #[test]
    fn a_round_looks_at_every_key_once() {
        let (mut round, map) = (Round::default(), map(&[1, 3, 5]));
        assert!(take(&mut round, &map, 9).is_empty(), "none has begun");
        round.begin();
        assert_eq!(take(&mut round, &map, 9), [1, 3, 5]);
        assert!(!round.is_open() && take(&mut round, &map, 9).is_empty());
        round.begin();
        assert_eq!(take(&mut round, &map, 9), [1, 3, 5], "and again");
    }

    #[test]
    fn one_that_begins_anew_goes_on_from_where_it_was_and_comes_round() {
        let (mut round, map) = (Round::default(), map(&[1, 2, 3, 4, 5]));
        round.begin();
        assert_eq!(take(&mut round, &map, 2), [1, 2]);
        round.begin();
        assert_eq!(take(&mut round, &map, 2), [3, 4]);
        round.begin();
        assert_eq!(take(&mut round, &map, 9), [5, 1, 2, 3, 4]);
        assert!(!round.is_open());
    }

    #[test]
    fn keys_come_and_go_meanwhile() {
        let (mut round, mut map) = (Round::default(), map(&[1, 2, 3, 4, 5]));
        round.begin();
        assert_eq!(take(&mut round, &map, 3), [1, 2, 3]);
        round.begin();
        for gone in [3, 4] {
            map.remove(&gone);
        }
        map.extend([(0, 0), (9, 9)]);
        assert_eq!(take(&mut round, &map, 9), [5, 9, 0, 1, 2]);
        map.clear();
        round.begin();
        assert!(take(&mut round, &map, 9).is_empty() && !round.is_open());
    }
}
