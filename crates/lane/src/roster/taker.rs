//! One who takes messages from a queue: what it may hold, and what it holds.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::election::{Candidate, Incumbent};
use super::order::Place;
use crate::bitmap::Bitmap;
use crate::command::UrgentCredit;
use crate::entries::List;
use crate::ids::{ConsumerId, FeedId, WindowId};
use crate::lane::{Lane, Lanes};
use crate::pulling::Pulling;
use crate::windows::Share;

/// One who takes messages.
#[derive(Clone, Debug)]
pub(crate) struct Taker {
    pub(super) priority: i32,
    pub(super) turn: u64,
    /// The turn it came with: larger is younger.
    pub(super) joined: u64,
    /// It wants to be the only consumer that stays.
    pub(super) is_exclusive: bool,
    pub(super) shared: Option<WindowId>,
    /// It waits until it is the single active consumer.
    pub(super) is_benched: bool,
    /// It held something for too long, and takes nothing more.
    pub(super) is_stopped: bool,
    /// What bounds the bytes that are pushed to it.
    pub(super) feed: Option<FeedId>,
    /// It waits until its connection has taken some of them.
    pub(super) is_held_back: bool,
    /// Its session is over: it holds what is still to be put back.
    pub(super) is_retired: bool,
    /// Where it stands in order, and in which.
    pub(super) stands: (Room, Place),
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A consumer that acknowledges. So many messages were taken from it while it held them: until it answers for one, that takes its
    /// place in the window.
    Stays { window: u32, urgent: Option<UrgentCredit>, held: List, withdrawn: u32 },
    /// A consumer whose messages are settled as they are given; so many it has not read.
    Keeps { window: u32, unread: u32 },
    /// A pull.
    Pulls(Pulling),
    /// A get, a pull that is over, or a consumer that left, with what it holds.
    Holds { held: List },
}

impl Kind {
    /// Messages that are leased to it, in the order of their leases.
    pub(crate) fn held(&self) -> List {
        match self {
            Self::Stays { held, .. } | Self::Holds { held } | Self::Pulls(Pulling { held, .. }) => *held,
            Self::Keeps { .. } => List::default(),
        }
    }

    /// How much of a window it takes.
    pub(super) fn occupies(&self) -> u32 {
        let withdrawn = if let Self::Stays { withdrawn, .. } = self { *withdrawn } else { 0 };
        self.held().len() + withdrawn
    }

    /// Where messages stand that are leased to it until it is gone.
    pub(crate) fn held_mut(&mut self) -> &mut List {
        match self {
            Self::Stays { held, .. } | Self::Holds { held } | Self::Pulls(Pulling { held, .. }) => held,
            Self::Keeps { .. } => unreachable!("what these are given has no holder"),
        }
    }

    /// Whether it is a consumer that stays.
    pub(crate) fn stays(&self) -> bool {
        matches!(self, Self::Stays { .. } | Self::Keeps { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Any,
    Urgent,
    Choosy,
    None,
}

impl Taker {
    /// What it has room for, where nobody may hold more than `most`.
    pub(super) fn room(&self, most: u32, shares: &BTreeMap<WindowId, Share>) -> Room {
        match &self.kind {
            _ if self.is_benched || self.is_stopped || self.is_held_back => Room::None,
            Kind::Stays { window, urgent, .. } => {
                let has_room = |extra: u32| {
                    self.kind.occupies() < most.min(*window).saturating_add(extra)
                        && self.shared.is_none_or(|id| shares[&id].has_room(extra))
                };
                match urgent {
                    _ if has_room(0) => Room::Any,
                    Some(urgent) if has_room(urgent.extra) => Room::Urgent,
                    _ => Room::None,
                }
            }
            // A consumer without acknowledgements takes nothing of a shared window, and waits while the window is full, as in RabbitMQ.
            Kind::Keeps { window, unread }
                if unread < window && self.shared.is_none_or(|id| shares[&id].has_room(0)) =>
            {
                Room::Any
            }
            Kind::Pulls(pull) if pull.is_done() => Room::None,
            Kind::Pulls(pull) if pull.is_choosy() => Room::Choosy,
            Kind::Pulls(_) => Room::Any,
            Kind::Keeps { .. } | Kind::Holds { .. } => Room::None,
        }
    }

    pub(super) fn place(&self) -> Place {
        (Reverse(self.priority), self.turn)
    }

    /// How it stands if it has the place of the single active consumer; `None`: it has lost it.
    pub(super) fn incumbent(&self) -> Option<Incumbent> {
        let Self { priority, is_retired, .. } = *self;
        let keeps = is_retired || (self.kind.stays() && !self.is_stopped);
        keeps.then(|| Incumbent { priority, is_retired, holds_something: self.kind.held().len() > 0 })
    }

    pub(super) fn candidate(&self, id: ConsumerId) -> Candidate {
        (Reverse(self.priority), self.joined, id)
    }

    pub(super) fn urgent_floor(&self) -> i32 {
        match &self.kind {
            Kind::Stays { urgent: Some(urgent), .. } => urgent.at.0,
            _ => i32::MAX,
        }
    }

    /// Whether it takes from a lane, if it takes from some only.
    pub(super) fn takes(&self, lane: &Lane) -> bool {
        if let Kind::Pulls(pull) = &self.kind { pull.takes(lane) } else { false }
    }

    /// The lanes with ready messages that it takes from, by rank, if it takes from some only.
    pub(super) fn choice(&self, lanes: &Lanes) -> Bitmap {
        if let Kind::Pulls(pull) = &self.kind { pull.choice(lanes) } else { Bitmap::default() }
    }
}
