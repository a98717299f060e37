//! Who would take what, told beforehand: for a queue whose messages are kept elsewhere, where they must be leased before they can be handed to
//! anybody.
//!
//! Told in the order of service, as long as there is something for everybody: consumers of a priority take turns, one message at a time, and a pull
//! takes all it wants when it is its turn; those with room for urgent messages only come after all others.

use std::collections::BTreeMap;

use super::{Kind, Place, Room, Roster};
use crate::command::Few;
use crate::ids::{ConsumerId, WindowId};
use crate::priority::Priority;
use crate::pulling::{LaneChoice, LeaseTerm};
use crate::settings::Settings;

/// So many turns are told and no more, once everybody who has room has had one.
const WANTS_MAX: usize = 64;

/// How somebody has what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// Until it is settled or its holder is gone, or has held it for longer than `consumer_timeout_ms`.
    Held,
    /// Leased so long, ms, whether its taker is there or not, restart or not; 0: no end by itself.
    Ms(u64),
    /// For good: it is settled as it is given.
    Settled,
}

/// What takers of a queue whose turns follow each other would take now, who all have it on the same terms and from the same lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// Most messages, over all of them.
    pub max: u32,
    /// Most bytes of content, but one message at least; 0: no limit.
    pub max_bytes: u64,
    /// How they have what they are given.
    pub terms: Terms,
    /// Which lanes they take from.
    pub choice: LaneChoice,
}

impl Want {
    fn is_like(&self, other: &Self) -> bool {
        (self.terms, &self.choice) == (other.terms, &other.choice)
    }

    /// Whether what this one takes and what that one takes can be asked for together. Where it matters which message comes after which it is one
    /// taker's own.
    fn is_one_with(&self, other: &Self) -> bool {
        self.is_like(other) && !self.choice.one && self.max_bytes == 0 && other.max_bytes == 0
    }
}

impl Kind {
    /// How it has what it is given.
    pub(crate) fn terms(&self, settings: &Settings) -> Terms {
        match self {
            Self::Stays { .. } | Self::Holds { .. } => Terms::Held,
            Self::Keeps { .. } => Terms::Settled,
            Self::Pulls(pull) => match pull.term {
                LeaseTerm::OfQueue => Terms::Ms(settings.visibility_timeout_ms),
                LeaseTerm::Ms(ms) => Terms::Ms(ms),
                LeaseTerm::Session => Terms::Held,
            },
        }
    }
}

/// One who has room.
struct Applicant {
    /// What it takes by itself.
    want: Want,
    /// It takes one message, and stands last again.
    returns: bool,
    /// The window that it shares, and what it may hold beyond that.
    shared: Option<(WindowId, u32)>,
}

impl Roster {
    /// What would be taken now, in the order of service: everybody's first turn at least. Those who have urgent credit are there with their
    /// window until that is full, and then with their credit.
    pub(crate) fn wants(&self, settings: &Settings) -> Few<Want> {
        let mut turns = Turns { roster: self, taken: BTreeMap::new(), wants: Few::new() };
        let mut any: Vec<(Place, ConsumerId)> = self.open.iter().chain(self.choosy.iter()).collect();
        any.sort_unstable();
        let urgent: Vec<(Place, ConsumerId)> = self.urgent.iter().collect();
        for line in [any, urgent] {
            for equals in line.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
                turns.tell(equals.iter().map(|(_, consumer)| self.applicant(*consumer, settings)).collect());
            }
        }
        turns.wants
    }

    fn applicant(&self, consumer: ConsumerId, settings: &Settings) -> Applicant {
        let taker = &self.takers[&consumer];
        let terms = taker.kind.terms(settings);
        let stays = |max: u32, choice: LaneChoice| Want { max, max_bytes: 0, terms, choice };
        let (want, extra) = match &taker.kind {
            Kind::Stays { window, urgent, .. } => {
                let urgent = urgent.filter(|_| taker.stands.0 == Room::Urgent);
                let extra = urgent.map_or(0, |urgent| urgent.extra);
                let at_least =
                    urgent.map(|urgent| LaneChoice { at_least: urgent.at, ..LaneChoice::default() });
                let room =
                    self.most_held().min(*window).saturating_add(extra).saturating_sub(taker.kind.occupies());
                (stays(room, at_least.unwrap_or_default()), extra)
            }
            Kind::Keeps { window, unread } => (stays(window - unread, LaneChoice::default()), 0),
            Kind::Pulls(pull) => (pull.want(terms), 0),
            Kind::Holds { .. } => unreachable!("whoever takes nothing stands in no order"),
        };
        // A consumer without acknowledgements takes nothing of a shared window.
        let shared = taker.shared.filter(|_| !matches!(taker.kind, Kind::Keeps { .. }));
        Applicant { want, returns: taker.kind.stays(), shared: shared.map(|window| (window, extra)) }
    }
}

/// Turns as they are told.
struct Turns<'r> {
    roster: &'r Roster,
    /// What is taken of shared windows in the turns told so far, by the least urgent priority that it may be of.
    taken: BTreeMap<(WindowId, Priority), u32>,
    wants: Few<Want>,
}

impl Turns<'_> {
    /// The turns of takers who are equals, in the order of their places, until nobody of them has room.
    fn tell(&mut self, mut line: Vec<Applicant>) {
        loop {
            // Then it does not matter whose turn it is.
            let are_alike = line.iter().all(|one| one.returns && one.want.is_like(&line[0].want));
            line.retain_mut(|one| {
                let most = if one.returns && !are_alike { 1 } else { one.want.max };
                let takes = most.min(self.room(one));
                if takes > 0 {
                    self.take(takes, one);
                }
                one.want.max -= takes;
                takes > 0 && one.want.max > 0
            });
            if line.is_empty() || self.wants.len() >= WANTS_MAX {
                return;
            }
        }
    }

    /// What still fits into the window that it shares. Turns of those who take less than this one do not count: there may be nothing for them.
    fn room(&self, one: &Applicant) -> u32 {
        let Some((window, extra)) = one.shared else { return u32::MAX };
        let share = &self.roster.shares[&window];
        if share.size == 0 {
            return u32::MAX;
        }
        let before = self.taken.range((window, Priority(i32::MIN))..=(window, one.want.choice.at_least));
        let taken: u32 = before.map(|(_, taken)| taken).sum();
        share.size.saturating_add(extra).saturating_sub(share.here + share.elsewhere + taken)
    }

    fn take(&mut self, takes: u32, one: &Applicant) {
        if let Some((window, _)) = one.shared {
            *self.taken.entry((window, one.want.choice.at_least)).or_default() += takes;
        }
        let want = Want { max: takes, ..one.want.clone() };
        match self.wants.last_mut() {
            Some(last) if last.is_one_with(&want) => last.max = last.max.saturating_add(takes),
            _ => self.wants.push(want),
        }
    }
}
