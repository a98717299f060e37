//! Who is served of the consumers that stay, where only one is: the oldest of the highest priority.
//!
//! The active consumer keeps its place until it is gone. When a more urgent one has come, or the session of the active one is over, it gets nothing more, and gives
//! up its place as soon as it holds nothing: so what it held goes before what comes later. As RabbitMQ's quorum queues since 4.0; its classic queues know no such
//! change.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::ids::ConsumerId;

/// A consumer that may become the active one: the consumer priority, larger first, then the turn it came with.
pub(super) type Candidate = (Reverse<i32>, u64, ConsumerId);

/// The active consumer as it stands now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incumbent {
    pub(super) priority: i32,
    /// Its session is over.
    pub(super) is_retired: bool,
    pub(super) holds_something: bool,
}

/// The election of the single active consumer of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Election {
    /// Consumers that may be elected, the first choice first.
    candidates: BTreeSet<Candidate>,
    /// Only one consumer is served.
    is_single: bool,
    /// The consumer that has the place.
    active: Option<ConsumerId>,
    /// The consumer that was served after the last election: the active one, unless it is leaving.
    served: Option<ConsumerId>,
    /// The active consumer gets nothing more, and gives up its place once it holds nothing.
    is_leaving: bool,
    /// The active consumer is connected to another broker.
    is_elsewhere: bool,
}

impl Election {
    pub(super) fn is_single(&self) -> bool {
        self.is_single
    }

    pub(super) fn active(&self) -> Option<ConsumerId> {
        self.active
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    pub(super) fn stand(&mut self, candidate: Candidate) {
        self.candidates.insert(candidate);
    }

    pub(super) fn withdraw(&mut self, candidate: &Candidate) {
        self.candidates.remove(candidate);
    }

    /// Says whether only one consumer is served. False: that is what was said before.
    pub(super) fn set_single(&mut self, is_single: bool) -> bool {
        let is_new = std::mem::replace(&mut self.is_single, is_single) != is_single;
        if is_new {
            (self.active, self.served, self.is_leaving) = (None, None, false);
        }
        is_new
    }

    /// Says whether the active consumer is connected to another broker. False: that is what was said before.
    pub(super) fn set_elsewhere(&mut self, is_elsewhere: bool) -> bool {
        std::mem::replace(&mut self.is_elsewhere, is_elsewhere) != is_elsewhere
    }

    /// Elects. `incumbent` is the active consumer, if it still takes messages or is retired. Returns who was served before, and who is served now.
    pub(super) fn hold(&mut self, incumbent: Option<Incumbent>) -> (Option<ConsumerId>, Option<ConsumerId>) {
        let best = self.candidates.first().map(|(Reverse(priority), _, id)| (*id, *priority));
        let gives_way = incumbent.is_none_or(|incumbent| {
            incumbent.is_retired || best.is_some_and(|(_, most)| incumbent.priority < most)
        });
        self.is_leaving = gives_way && incumbent.is_some_and(|incumbent| incumbent.holds_something);
        if gives_way && !self.is_leaving {
            self.active = best.map(|(id, _)| id);
        }
        let served = self.active.filter(|_| !self.is_leaving && !self.is_elsewhere);
        (std::mem::replace(&mut self.served, served), served)
    }
}
