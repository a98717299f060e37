//! Who takes messages from a queue, how many each may hold, and whose turn it is.
//!
//! Two kinds: consumers that stay, with a window, and pulls, which take once. Among those that have room, a consumer of a
//! higher priority goes first; among equals, whoever has waited longest since its last message.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::command::{Consume, Pull, UrgentCredit};
use crate::entries::List;
use crate::ids::{ConsumerId, Time};

/// Everybody who takes from one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roster {
    takers: BTreeMap<ConsumerId, Taker>,
    /// Those with room for any message, in the order in which they are served.
    open: Order,
    /// Those with room for urgent messages only.
    urgent: Order,
    /// When pulls give up.
    waits: BTreeSet<(Time, ConsumerId)>,
    turn: u64,
}

/// A place in the order of service: the consumer priority, larger first, then the turn, which nobody shares.
type Place = (Reverse<i32>, u64);

/// Places in order. Mostly the first one leaves and comes back last, which moves nothing and allocates nothing.
#[derive(Clone, Debug, Default)]
struct Order(VecDeque<(Place, ConsumerId)>);

impl Order {
    fn insert(&mut self, place: Place, consumer: ConsumerId) {
        if self.0.back().is_none_or(|(last, _)| *last < place) {
            return self.0.push_back((place, consumer));
        }
        let at = self.0.partition_point(|(other, _)| *other < place);
        self.0.insert(at, (place, consumer));
    }

    fn remove(&mut self, place: Place) {
        if self.0.pop_front_if(|(first, _)| *first == place).is_some() {
            return;
        }
        let at =
            self.0.binary_search_by(|(other, _)| other.cmp(&place)).expect("who has room stands in order");
        self.0.remove(at);
    }
}

/// One who takes messages.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    priority: i32,
    turn: u64,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Stays { window: u32, urgent: Option<UrgentCredit>, held: List },
    Pulls { left: u32, left_bytes: u64, taken: u32, visibility_ms: Option<u64>, until: Time },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Any,
    Urgent,
    None,
}

impl Taker {
    fn room(&self) -> Room {
        match &self.kind {
            Kind::Stays { window, held, .. } if held.len() < *window => Room::Any,
            Kind::Stays { window, urgent: Some(urgent), held, .. }
                if held.len() < window.saturating_add(urgent.extra) =>
            {
                Room::Urgent
            }
            Kind::Pulls { left, .. } if *left > 0 => Room::Any,
            Kind::Stays { .. } | Kind::Pulls { .. } => Room::None,
        }
    }

    fn place(&self) -> Place {
        (Reverse(self.priority), self.turn)
    }

    fn urgent_floor(&self) -> i32 {
        match &self.kind {
            Kind::Stays { urgent: Some(urgent), .. } => urgent.at.0,
            _ => i32::MAX,
        }
    }
}

impl Roster {
    pub(crate) fn get(&self, consumer: ConsumerId) -> Option<&Taker> {
        self.takers.get(&consumer)
    }

    /// Consumers that stay, and pulls that wait.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let pulls = self.waits.len() as u64;
        (self.takers.len() as u64 - pulls, pulls)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ConsumerId> + '_ {
        self.takers.keys().copied()
    }

    pub(crate) fn consume(&mut self, consume: &Consume, window: u32) {
        let kind = Kind::Stays { window, urgent: consume.urgent, held: List::default() };
        self.insert(consume.consumer, consume.priority, kind);
    }

    pub(crate) fn pull(&mut self, pull: &Pull) {
        let Pull { max, max_bytes, visibility_ms, until, .. } = *pull;
        let left_bytes = if max_bytes == 0 { u64::MAX } else { max_bytes };
        let kind = Kind::Pulls { left: max, left_bytes, taken: 0, visibility_ms, until };
        self.waits.insert((pull.until, pull.consumer));
        self.insert(pull.consumer, 0, kind);
    }

    fn insert(&mut self, consumer: ConsumerId, priority: i32, kind: Kind) {
        self.turn += 1;
        let taker = Taker { priority, turn: self.turn, kind };
        self.enlist(taker.room(), taker.place(), consumer);
        self.takers.insert(consumer, taker);
    }

    pub(crate) fn remove(&mut self, consumer: ConsumerId) -> Option<Taker> {
        let taker = self.takers.remove(&consumer)?;
        self.delist(taker.room(), taker.place());
        if let Kind::Pulls { until, .. } = taker.kind {
            self.waits.remove(&(until, consumer));
        }
        Some(taker)
    }

    fn enlist(&mut self, room: Room, place: Place, consumer: ConsumerId) {
        match room {
            Room::Any => self.open.insert(place, consumer),
            Room::Urgent => self.urgent.insert(place, consumer),
            Room::None => {}
        }
    }

    fn delist(&mut self, room: Room, place: Place) {
        match room {
            Room::Any => self.open.remove(place),
            Room::Urgent => self.urgent.remove(place),
            Room::None => {}
        }
    }

    /// The least urgent priority anybody has room for: `None` if nobody has any, `i32::MIN` if somebody takes all.
    pub(crate) fn floor(&self) -> Option<i32> {
        if !self.open.0.is_empty() {
            return Some(i32::MIN);
        }
        self.urgent.0.iter().map(|(_, consumer)| self.takers[consumer].urgent_floor()).min()
    }

    /// Who takes the next message of a lane that takes no priority below `floor`.
    pub(crate) fn next(&self, floor: i32) -> Option<ConsumerId> {
        let urgent = || self.urgent.0.iter().find(|(_, id)| self.takers[id].urgent_floor() <= floor);
        self.open.0.front().or_else(urgent).map(|(_, consumer)| *consumer)
    }

    /// Whether a message of so many bytes is too much for a taker that has some already. Then it takes no more.
    pub(crate) fn has_enough(&mut self, consumer: ConsumerId, bytes: u32) -> bool {
        let has_enough = matches!(
            self.takers[&consumer].kind,
            Kind::Pulls { left_bytes, taken, .. } if taken > 0 && u64::from(bytes) > left_bytes
        );
        if has_enough {
            self.change(consumer, false, |kind| {
                if let Kind::Pulls { left, .. } = kind {
                    *left = 0;
                }
            });
        }
        has_enough
    }

    /// Changes a taker and puts it where its room says; `served` gives up its turn.
    pub(crate) fn change<T>(
        &mut self,
        consumer: ConsumerId,
        served: bool,
        change: impl FnOnce(&mut Kind) -> T,
    ) -> Option<T> {
        let taker = self.takers.get_mut(&consumer)?;
        let (room, place) = (taker.room(), taker.place());
        let answer = change(&mut taker.kind);
        if served && matches!(taker.kind, Kind::Stays { .. }) {
            self.turn += 1;
            taker.turn = self.turn;
        }
        let (room_now, place_now) = (taker.room(), taker.place());
        if (room_now, place_now) != (room, place) {
            self.delist(room, place);
            self.enlist(room_now, place_now, consumer);
        }
        Some(answer)
    }

    /// When the first pull gives up.
    pub(crate) fn next_give_up(&self) -> Option<Time> {
        self.waits.first().map(|(until, _)| *until)
    }

    /// Pulls that end now: they have something, or have waited long enough. In the order of their waits.
    pub(crate) fn ended(&self, now: Time, served: &[ConsumerId]) -> Vec<ConsumerId> {
        let late = self.waits.iter().take_while(|(until, _)| *until <= now).map(|(_, consumer)| *consumer);
        let mut ended: Vec<_> = served.to_vec();
        ended.extend(late.filter(|consumer| !served.contains(consumer)));
        ended
    }
}
