//! The order in which takers are served.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::work::count_work;
use crate::ids::ConsumerId;

/// A place in the order of service: the consumer priority, larger first, then the turn, which nobody shares.
pub(super) type Place = (Reverse<i32>, u64);

/// Places in order. Mostly the first one leaves and comes back last, which moves nothing and allocates nothing.
///
/// Whoever leaves from the middle leaves its place empty, and the empty places go together once they are as many as the others:
/// thousands that leave at once cost no more each than one alone. Invariant: the first place is not empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    places: VecDeque<(Place, Option<ConsumerId>)>,
    empty: usize,
}

impl Order {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Place, ConsumerId)> + '_ {
        self.places.iter().filter_map(|(place, consumer)| Some((*place, (*consumer)?)))
    }

    pub(super) fn insert(&mut self, place: Place, consumer: ConsumerId) {
        if self.places.back().is_none_or(|(last, _)| *last < place) {
            return self.places.push_back((place, Some(consumer)));
        }
        match self.places.binary_search_by(|(other, _)| other.cmp(&place)) {
            Ok(at) => {
                // Nobody shares a place: it is the one that it left.
                self.places[at].1 = Some(consumer);
                self.empty -= 1;
            }
            Err(at) => {
                count_work(at.min(self.places.len() - at));
                self.places.insert(at, (place, Some(consumer)));
            }
        }
    }

    pub(super) fn remove(&mut self, place: Place) {
        if self.places.pop_front_if(|(first, _)| *first == place).is_some() {
            while self.places.pop_front_if(|(_, consumer)| consumer.is_none()).is_some() {
                self.empty -= 1;
            }
            return;
        }
        let at = self.places.binary_search_by(|(other, _)| other.cmp(&place));
        self.places[at.expect("who has room stands in order")].1 = None;
        self.empty += 1;
        if self.empty * 2 > self.places.len() {
            count_work(self.places.len());
            self.places.retain(|(_, consumer)| consumer.is_some());
            self.empty = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_leaves_the_middle_of_an_order_can_come_back_to_its_place() {
        let mut order = Order::default();
        let place = |turn: u64| (Reverse(0), turn);
        let all = |order: &Order| order.iter().map(|(_, consumer)| consumer.0).collect::<Vec<_>>();
        (1..=6).for_each(|turn| order.insert(place(turn), ConsumerId(turn)));
        order.remove(place(3));
        order.remove(place(2));
        assert_eq!(all(&order), [1, 4, 5, 6]);
        order.insert(place(3), ConsumerId(3));
        assert_eq!(all(&order), [1, 3, 4, 5, 6]);
        order.remove(place(1));
        assert_eq!((all(&order), order.places.len()), (vec![3, 4, 5, 6], 4), "no empty place is first");
        for turn in [6, 4, 5, 3] {
            order.remove(place(turn));
        }
        assert!(order.is_empty() && order.empty == 0);
    }
}
