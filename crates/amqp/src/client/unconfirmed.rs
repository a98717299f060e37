//! Publishes of a channel that are not confirmed, and which of them may come back.
//!
//! A server confirms one, or all up to one, and in any order (RabbitMQ). So what is open is kept as ranges. Invariant: they are
//! not empty, apart from each other, and end before the next number; a confirm of one makes at most one more of them, so
//! telling costs no more than was heard.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;

use overtake_properties::PropertiesRef;

/// What is open.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    published: u64,
    /// First number to last, of each range.
    ranges: BTreeMap<u64, u64>,
    /// Mandatory ones that did not come back, ascending.
    mandatory: VecDeque<(u64, Likeness)>,
}

/// What a message looks like when it comes back. The rest of its properties may have been changed by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Likeness(u64);

impl Likeness {
    pub(super) fn of(
        exchange: &[u8],
        routing_key: &[u8],
        properties: PropertiesRef<'_>,
        body: &[u8],
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        (exchange, routing_key, properties.message_id(), body).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Unconfirmed {
    /// One more publish. Answers its number.
    pub(super) fn publish(&mut self, mandatory: Option<Likeness>) -> u64 {
        self.published += 1;
        let tag = self.published;
        match self.ranges.last_entry() {
            Some(mut range) if *range.get() + 1 == tag => *range.get_mut() = tag,
            _ => drop(self.ranges.insert(tag, tag)),
        }
        self.mandatory.extend(mandatory.map(|likeness| (tag, likeness)));
        tag
    }

    /// One comes back. Answers its number.
    pub(super) fn give_back(&mut self, likeness: Likeness) -> Option<u64> {
        let at = self.mandatory.iter().position(|(_, open)| *open == likeness)?;
        self.mandatory.remove(at).map(|(tag, _)| tag)
    }

    /// Tells each range that is confirmed by a tag, or by all up to it; tag 0 with `multiple` is all. What is confirmed already
    /// is not told again. False: nothing like that was ever published.
    pub(super) fn confirm(
        &mut self,
        tag: u64,
        multiple: bool,
        mut tell: impl FnMut(RangeInclusive<u64>),
    ) -> bool {
        match (tag, multiple) {
            (0, false) => return false,
            (0, true) => self.confirm_up_to(self.published, &mut tell),
            _ if tag > self.published => return false,
            (_, true) => self.confirm_up_to(tag, &mut tell),
            (_, false) => self.confirm_one(tag, &mut tell),
        }
        true
    }

    fn confirm_up_to(&mut self, tag: u64, tell: &mut impl FnMut(RangeInclusive<u64>)) {
        while let Some(range) = self.ranges.first_entry().filter(|range| *range.key() <= tag) {
            let (first, last) = range.remove_entry();
            if last > tag {
                self.ranges.insert(tag + 1, last);
            }
            tell(first..=last.min(tag));
        }
        let still_open = self.mandatory.partition_point(|(open, _)| *open <= tag);
        self.mandatory.drain(..still_open);
    }

    fn confirm_one(&mut self, tag: u64, tell: &mut impl FnMut(RangeInclusive<u64>)) {
        let Some((&first, &last)) = self.ranges.range(..=tag).next_back().filter(|(_, last)| **last >= tag)
        else {
            return;
        };
        self.ranges.remove(&first);
        if first < tag {
            self.ranges.insert(first, tag - 1);
        }
        if tag < last {
            self.ranges.insert(tag + 1, last);
        }
        if let Ok(at) = self.mandatory.binary_search_by_key(&tag, |(open, _)| *open) {
            self.mandatory.remove(at);
        }
        tell(tag..=tag);
    }

    /// How many are open.
    pub(super) fn len(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| last - first + 1).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn published(count: u64) -> Unconfirmed {
        let mut unconfirmed = Unconfirmed::default();
        for tag in 1..=count {
            assert_eq!(unconfirmed.publish(None), tag);
        }
        unconfirmed
    }

    fn confirm(unconfirmed: &mut Unconfirmed, tag: u64, multiple: bool) -> Vec<RangeInclusive<u64>> {
        let mut told = Vec::new();
        assert!(unconfirmed.confirm(tag, multiple, |tags| told.push(tags)));
        told
    }

    #[test]
    fn what_was_confirmed_alone_is_left_out_when_all_up_to_one_are() {
        let mut unconfirmed = published(9);
        assert_eq!(confirm(&mut unconfirmed, 3, false), [3..=3]);
        assert_eq!(confirm(&mut unconfirmed, 3, false), [], "it was told");
        assert_eq!(confirm(&mut unconfirmed, 5, true), [1..=2, 4..=5]);
        assert_eq!(confirm(&mut unconfirmed, 4, true), []);
        assert_eq!(unconfirmed.len(), 4);
        assert_eq!(confirm(&mut unconfirmed, 0, true), [6..=9], "0 is all");
        assert_eq!(unconfirmed.publish(None), 10);
        assert_eq!(confirm(&mut unconfirmed, 10, true), [10..=10]);
    }

    #[test]
    fn what_was_never_published_cannot_be_confirmed() {
        let mut unconfirmed = published(2);
        for (tag, multiple) in [(3, false), (3, true), (0, false)] {
            assert!(!unconfirmed.confirm(tag, multiple, |_| ()), "{tag} {multiple}");
        }
    }

    #[test]
    fn what_comes_back_is_the_oldest_that_looks_like_it() {
        let like = |body: &[u8]| Likeness::of(b"", b"q", PropertiesRef::EMPTY, body);
        let mut unconfirmed = Unconfirmed::default();
        for body in [b"a", b"b", b"a", b"a"] {
            unconfirmed.publish(Some(like(body)));
        }
        confirm(&mut unconfirmed, 1, false);
        assert_eq!(unconfirmed.give_back(like(b"a")), Some(3));
        assert_eq!(unconfirmed.give_back(like(b"c")), None);
        confirm(&mut unconfirmed, 3, true);
        assert_eq!(unconfirmed.give_back(like(b"b")), None, "it is confirmed");
        assert_eq!(unconfirmed.give_back(like(b"a")), Some(4));
    }

    proptest! {
        #[test]
        fn every_publish_is_told_once(count in 0..40_u64, confirms in vec((0..45_u64, any::<bool>()), 0..40)) {
            let mut unconfirmed = published(count);
            let mut told = Vec::new();
            for (tag, multiple) in confirms {
                unconfirmed.confirm(tag, multiple, |tags| told.extend(tags));
                prop_assert_eq!(told.len() as u64 + unconfirmed.len(), count);
            }
            unconfirmed.confirm(0, true, |tags| told.extend(tags));
            told.sort_unstable();
            prop_assert_eq!(told, (1..=count).collect::<Vec<u64>>());
        }
    }
}
