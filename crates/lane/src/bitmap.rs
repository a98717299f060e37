//! A set of lanes by rank, the most urgent first: the first one is found in at most eight words.

use crate::LANES_MAX;

/// Ranks are less: a queue has no more lanes, and no more former ones.
pub(crate) const RANKS_MAX: usize = 2 * LANES_MAX;

const WORDS: usize = RANKS_MAX / 64;

/// A set of numbers below [`RANKS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bitmap([u64; WORDS]);

impl Bitmap {
    pub(crate) fn set(&mut self, at: usize, on: bool) {
        let bit = 1 << (at % 64);
        if on {
            self.0[at / 64] |= bit;
        } else {
            self.0[at / 64] &= !bit;
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// The least member.
    pub(crate) fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }

    /// The greatest member.
    pub(crate) fn last(&self) -> Option<usize> {
        let word = self.0.iter().rposition(|word| *word != 0)?;
        Some(word * 64 + 63 - self.0[word].leading_zeros() as usize)
    }

    /// The least member above `at`, else the least of all: a ring.
    pub(crate) fn next_in_ring(&self, at: usize) -> Option<usize> {
        self.without(&self.below(at + 1)).first().or_else(|| self.first())
    }

    /// The members of both, together.
    pub(crate) fn with(mut self, other: Self) -> Self {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
        self
    }

    /// The members that `other` has too.
    pub(crate) fn within(mut self, other: &Self) -> Self {
        for (word, out) in self.0.iter_mut().zip(&other.0) {
            *word &= out;
        }
        self
    }

    /// The members that are not in `other`.
    pub(crate) fn without(mut self, other: &Self) -> Self {
        for (word, out) in self.0.iter_mut().zip(&other.0) {
            *word &= !out;
        }
        self
    }

    /// The members below `end`.
    pub(crate) fn below(mut self, end: usize) -> Self {
        for (at, word) in self.0.iter_mut().enumerate() {
            *word &= match end.saturating_sub(at * 64) {
                0 => 0,
                bits @ 1..64 => (1 << bits) - 1,
                _ => u64::MAX,
            };
        }
        self
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(at, word)| {
            std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
                .take_while(|rest| *rest != 0)
                .map(move |rest| at * 64 + rest.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bitmap_is_a_set_of_small_numbers(ops in prop::collection::vec((0..RANKS_MAX, any::<bool>()), 0..60), cut in 0..=RANKS_MAX) {
            let (mut bitmap, mut set) = (Bitmap::default(), BTreeSet::new());
            for (at, on) in ops {
                bitmap.set(at, on);
                if on { set.insert(at); } else { set.remove(&at); }
            }
            prop_assert!(bitmap.iter().eq(set.iter().copied()));
            prop_assert_eq!(bitmap.first(), set.first().copied());
            prop_assert_eq!(bitmap.last(), set.last().copied());
            prop_assert_eq!(bitmap.is_empty(), set.is_empty());
            prop_assert!(bitmap.below(cut).iter().eq(set.range(..cut).copied()));
            prop_assert_eq!(bitmap.next_in_ring(cut), set.range(cut + 1..).next().or(set.first()).copied());
        }
    }
}
