//! What a channel has been sent and not settled, by delivery tag.

use std::collections::VecDeque;

use overtake_lane::{ConsumerId, Receipt};

use super::outgoing::give_back;

/// A message that is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) tag: u64,
    pub(super) receipt: Receipt,
    /// The consumer it was for; none where the client got it by itself.
    pub(super) consumer: Option<ConsumerId>,
}

/// Ascending by tag.
#[derive(Debug, Default)]
pub(super) struct Unacked {
    held: VecDeque<Held>,
}

impl Unacked {
    /// One more, of a greater tag than all before.
    pub(super) fn push(&mut self, held: Held) {
        self.held.push_back(held);
    }

    /// Takes the one of a tag, or all up to it; tag 0 with `multiple` is all. `None`: it is not out.
    pub(super) fn take(&mut self, tag: u64, multiple: bool) -> Option<Vec<Held>> {
        if multiple && tag == 0 {
            return Some(self.take_all());
        }
        let at = self.held.binary_search_by_key(&tag, |held| held.tag).ok()?;
        let last = if multiple { 0 } else { at };
        let taken = self.held.drain(last..=at).collect();
        give_back(&mut self.held);
        Some(taken)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.held.iter()
    }

    pub(super) fn take_all(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.held).into()
    }

    /// Puts some back that were taken.
    pub(super) fn restore(&mut self, taken: impl IntoIterator<Item = Held>) {
        let mut all: Vec<Held> = taken.into_iter().chain(std::mem::take(&mut self.held)).collect();
        all.sort_unstable_by_key(|held| held.tag);
        self.held = all.into();
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::{LeaseId, QueueId, Seq};

    use super::*;

    fn out(tags: std::ops::RangeInclusive<u64>) -> Unacked {
        let mut unacked = Unacked::default();
        for tag in tags {
            let receipt = Receipt { queue: QueueId(0), seq: Seq(tag), lease: LeaseId(tag) };
            unacked.push(Held { tag, receipt, consumer: None });
        }
        unacked
    }

    fn tags(held: Option<Vec<Held>>) -> Option<Vec<u64>> {
        held.map(|held| held.iter().map(|held| held.tag).collect())
    }

    #[test]
    fn one_or_all_up_to_it_are_taken_once() {
        let mut unacked = out(1..=6);
        assert_eq!(tags(unacked.take(3, false)), Some(vec![3]));
        assert_eq!(tags(unacked.take(3, false)), None, "it is settled");
        assert_eq!(tags(unacked.take(3, true)), None);
        assert_eq!(tags(unacked.take(4, true)), Some(vec![1, 2, 4]));
        assert_eq!(tags(unacked.take(7, true)), None, "it was never sent");
        assert_eq!(tags(unacked.take(0, false)), None);
        assert_eq!(tags(unacked.take(0, true)), Some(vec![5, 6]));
        assert_eq!(tags(unacked.take(0, true)), Some(vec![]), "nothing is out");
    }

    #[test]
    fn once_nothing_is_out_no_room_is_held_for_it() {
        let mut unacked = out(1..=1_000);
        for tag in 1..=1_000 {
            unacked.take(tag, false);
        }
        assert!(unacked.held.capacity() < 10, "{}", unacked.held.capacity());
    }

    #[test]
    fn what_is_put_back_stands_where_it_stood() {
        let mut unacked = out(1..=4);
        let taken = [unacked.take(3, false), unacked.take(1, true)];
        unacked.restore(taken.into_iter().flatten().flatten());
        assert_eq!(tags(unacked.take(0, true)), Some(vec![1, 2, 3, 4]));
    }
}
