//! Sets of ordinals of one segment: a list while they are few, a bit each when they are many.

/// Ordinals, ascending. No more bytes than a bit for each up to the greatest one would need, and a few.
#[derive(Clone, Debug)]
pub struct Ordinals(Form);

#[derive(Clone, Debug)]
enum Form {
    /// Ascending.
    List(Vec<u32>),
    /// How many, and a bit each from ordinal 0 on.
    Bits(u32, Vec<u64>),
}

impl Default for Ordinals {
    fn default() -> Self {
        Self(Form::List(Vec::new()))
    }
}

impl Ordinals {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::List(list) => list.len(),
            Form::Bits(len, _) => *len as usize,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn contains(&self, ordinal: u32) -> bool {
        match &self.0 {
            Form::List(list) => list.binary_search(&ordinal).is_ok(),
            Form::Bits(_, words) => {
                words.get(word_of(ordinal)).is_some_and(|word| word & bit_of(ordinal) != 0)
            }
        }
    }

    /// How many are less than this one.
    #[must_use]
    pub fn before(&self, ordinal: u32) -> usize {
        match &self.0 {
            Form::List(list) => list.partition_point(|member| *member < ordinal),
            Form::Bits(len, words) => {
                let Some(word) = words.get(word_of(ordinal)) else { return *len as usize };
                let whole: u32 = words[..word_of(ordinal)].iter().map(|word| word.count_ones()).sum();
                (whole + (word & (bit_of(ordinal) - 1)).count_ones()) as usize
            }
        }
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (list, words): (&[u32], &[u64]) = match &self.0 {
            Form::List(list) => (list, &[]),
            Form::Bits(_, words) => (&[], words),
        };
        let bits = (0_u32..).zip(words).flat_map(|(at, word)| {
            std::iter::successors(Some(*word), |rest| Some(rest & rest.wrapping_sub(1)))
                .take_while(|rest| *rest != 0)
                .map(move |rest| at * u64::BITS + rest.trailing_zeros())
        });
        list.iter().copied().chain(bits)
    }

    /// The least one.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The greatest one.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        match &self.0 {
            Form::List(list) => list.last().copied(),
            Form::Bits(_, words) => {
                let at = words.iter().rposition(|word| *word != 0)?;
                Some(at as u32 * u64::BITS + 63 - words[at].leading_zeros())
            }
        }
    }

    /// Puts one in. False if it was there.
    pub fn insert(&mut self, ordinal: u32) -> bool {
        match &mut self.0 {
            Form::List(list) => {
                // Nearly always one is greater than all that are there.
                let at = match list.last() {
                    Some(last) if *last >= ordinal => match list.binary_search(&ordinal) {
                        Ok(_) => return false,
                        Err(at) => at,
                    },
                    _ => list.len(),
                };
                list.insert(at, ordinal);
                self.pack();
                true
            }
            // Far behind the others, as no run has them.
            Form::Bits(len, words) if word_of(ordinal) > words.len() + *len as usize => {
                self.0 = Form::List(self.iter().chain([ordinal]).collect());
                true
            }
            Form::Bits(len, words) => {
                if word_of(ordinal) >= words.len() {
                    words.resize(word_of(ordinal) + 1, 0);
                }
                let word = &mut words[word_of(ordinal)];
                let is_new = *word & bit_of(ordinal) == 0;
                *word |= bit_of(ordinal);
                *len += u32::from(is_new);
                is_new
            }
        }
    }

    /// Takes out those that follow each other without a gap from this one on, and answers the first that is not there.
    pub(crate) fn take_row(&mut self, from: u32) -> u32 {
        match &mut self.0 {
            Form::List(list) => {
                let start = list.partition_point(|member| *member < from);
                let row = (from..).zip(&list[start..]).take_while(|(at, member)| at == *member).count();
                list.drain(start..start + row);
                from + row as u32
            }
            Form::Bits(len, words) => {
                let mut at = from;
                while let Some(word) = words.get_mut(word_of(at)).filter(|word| **word & bit_of(at) != 0) {
                    *word &= !bit_of(at);
                    *len -= 1;
                    at += 1;
                }
                at
            }
        }
    }

    /// Makes a list that has become longer than bits would be into bits.
    fn pack(&mut self) {
        let Form::List(list) = &self.0 else { return };
        let words = list.last().map_or(0, |last| word_of(*last) + 1);
        if list.len() * size_of::<u32>() <= words * size_of::<u64>() {
            return;
        }
        let mut bits = vec![0; words];
        for ordinal in list {
            bits[word_of(*ordinal)] |= bit_of(*ordinal);
        }
        self.0 = Form::Bits(list.len() as u32, bits);
    }
}

fn word_of(ordinal: u32) -> usize {
    (ordinal / u64::BITS) as usize
}

fn bit_of(ordinal: u32) -> u64 {
    1 << (ordinal % u64::BITS)
}

impl FromIterator<u32> for Ordinals {
    fn from_iter<I: IntoIterator<Item = u32>>(ordinals: I) -> Self {
        let mut all = Self::default();
        for ordinal in ordinals {
            all.insert(ordinal);
        }
        all
    }
}

impl PartialEq for Ordinals {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Ordinals {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Bytes that it takes up, but for what a vector keeps to grow.
    fn size(ordinals: &Ordinals) -> usize {
        match &ordinals.0 {
            Form::List(list) => size_of_val(&list[..]),
            Form::Bits(_, words) => size_of_val(&words[..]),
        }
    }

    #[test]
    fn few_are_a_list_and_many_are_bits() {
        assert_eq!(size(&[7, 4_000_000_000].into_iter().collect()), 8);
        let half: Ordinals = (0..65_536).filter(|ordinal| ordinal % 2 == 1).collect();
        assert_eq!((half.len(), size(&half)), (32_768, 8_192));
    }

    proptest! {
        #[test]
        fn ordinals_are_a_set_of_numbers(
            ops in prop::collection::vec((0..400_u32, 0..4_u8), 0..300),
            far in prop::option::of(any::<u32>()),
            cut in 0..500_u32,
        ) {
            let (mut ordinals, mut set) = (Ordinals::default(), BTreeSet::new());
            for (ordinal, what) in ops {
                if what > 0 {
                    prop_assert_eq!(ordinals.insert(ordinal), set.insert(ordinal));
                } else {
                    let end = (ordinal..).find(|at| !set.remove(at));
                    prop_assert_eq!(Some(ordinals.take_row(ordinal)), end);
                }
            }
            prop_assert!(size(&ordinals) <= 400_usize.div_ceil(64) * 8);
            if let Some(far) = far {
                prop_assert_eq!(ordinals.insert(far), set.insert(far));
                prop_assert!(size(&ordinals) <= 4_000, "a great one costs as much as any other");
            }
            prop_assert!(ordinals.iter().eq(set.iter().copied()));
            prop_assert_eq!((ordinals.len(), ordinals.is_empty()), (set.len(), set.is_empty()));
            prop_assert_eq!((ordinals.first(), ordinals.last()), (set.first().copied(), set.last().copied()));
            prop_assert_eq!(ordinals.before(cut), set.range(..cut).count());
            prop_assert!((0..500).all(|at| ordinals.contains(at) == set.contains(&at)));
            prop_assert_eq!(&ordinals, &set.into_iter().rev().collect());
        }
    }
}
