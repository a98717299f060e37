//! Where the calls of each track go, so that they are done in the order in which they were asked for: of a slot those that wait for replicas or logs, or the others.
//!
//! ```text
//!            nothing is wrong            ┌───────┐
//!  send ────────────────────────────────▶│ lane  │──▶ answers
//!    │                                   └───────┘
//!    │ others of this slot are held      MOVED, ASK, LOADING, lost │  ▲ one group at a time, once nothing of the slot is out
//!    ▼                                                             ▼  │
//!  [new] ──────────────── behind ──────────────────────────▶ [returned · held]   a detour: one task, while there is anything in it
//! ```
//!
//! A call is never overtaken by a later one of its slot, but by one that the server did where it could not do the first: while a slot is moved key by key.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::Notify;

use super::asked::Errand;
use super::map::{Map, Place};
use super::slot::Slot;

/// Why a call was not done where it was asked for, as far as it matters for where and when it is asked for next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is elsewhere, as the map says by now.
    Moved,
    /// This once it is to be asked for there.
    Ask(Place),
    /// Not yet.
    Later,
}

/// Calls that are done in the order in which they were asked for: of a slot those that wait for replicas or logs, or the others, which are not to wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Track {
    pub(super) slot: Slot,
    pub(super) waits: bool,
}

pub(super) struct Held {
    pub(super) errand: Errand,
    pub(super) trouble: Trouble,
}

/// Calls of one track, for one node.
pub(super) struct Group {
    pub(super) place: Place,
    pub(super) is_asking: bool,
    pub(super) errands: Vec<Errand>,
}

#[derive(Default)]
pub(super) struct Ways {
    by_track: HashMap<Track, Way>,
}

#[derive(Default)]
struct Way {
    /// Calls that a lane has.
    out: usize,
    /// Which.
    place: Option<Place>,
    detour: Option<Detour>,
}

#[derive(Default)]
struct Detour {
    returned: Vec<Held>,
    held: VecDeque<Held>,
    new: VecDeque<Errand>,
    /// Nothing is out any more.
    settled: Arc<Notify>,
}

/// What to do with calls that are asked for.
pub(super) enum Sent {
    /// Give them to a lane.
    Straight(Group),
    /// They wait behind others.
    Behind,
    /// They wait, and nobody sees to it yet.
    Apart(Arc<Notify>),
}

/// What a detour does next.
pub(super) enum Step {
    /// Wait for what is out.
    Wait,
    /// There is something to ask for; the trouble of what is first, and how many came back of the last group.
    Ready { trouble: Trouble, returned: usize },
    /// All is done; perhaps what came meanwhile goes on as if nothing had been.
    Over(Option<Group>),
}

impl Ways {
    pub(super) fn send(&mut self, map: &Map, track: Track, errands: Vec<Errand>) -> Sent {
        let way = self.by_track.entry(track).or_default();
        if let Some(detour) = &mut way.detour {
            detour.new.extend(errands);
            return Sent::Behind;
        }
        match map.primary(track.slot) {
            Some(place) if way.out == 0 || way.place.as_ref() == Some(place) => {
                way.out += errands.len();
                way.place = Some(place.clone());
                Sent::Straight(Group { place: place.clone(), is_asking: false, errands })
            }
            // What is out goes elsewhere: the next must not be quicker.
            _ => {
                let detour = way.detour.insert(Detour { new: errands.into(), ..Detour::default() });
                Sent::Apart(Arc::clone(&detour.settled))
            }
        }
    }

    /// A lane is done with a call, one way or the other. Whether a detour begins.
    pub(super) fn returned(&mut self, track: Track, held: Option<Held>) -> Option<Arc<Notify>> {
        let way = self.by_track.get_mut(&track).expect("what is out has a way");
        way.out -= 1;
        let mut begun = None;
        if let Some(held) = held {
            let is_new = way.detour.is_none();
            let detour = way.detour.get_or_insert_default();
            detour.returned.push(held);
            begun = is_new.then(|| Arc::clone(&detour.settled));
        }
        match &way.detour {
            Some(detour) if way.out == 0 => detour.settled.notify_one(),
            None if way.out == 0 => {
                self.by_track.remove(&track);
            }
            _ => {}
        }
        begun
    }

    pub(super) fn step(&mut self, map: &Map, track: Track) -> Step {
        let way = self.by_track.get_mut(&track).expect("a detour has a way");
        if way.out > 0 {
            return Step::Wait;
        }
        let detour = way.detour.as_mut().expect("its own task asks");
        let returned = detour.returned.len();
        for held in detour.returned.drain(..).rev() {
            detour.held.push_front(held);
        }
        detour.held.retain(|held| !held.errand.is_over());
        detour.new.retain(|errand| !errand.is_over());
        if let Some(first) = detour.held.front() {
            return Step::Ready { trouble: first.trouble.clone(), returned };
        }
        if detour.new.is_empty() {
            self.by_track.remove(&track);
            return Step::Over(None);
        }
        let Some(place) = map.primary(track.slot).cloned() else {
            let new = detour.new.drain(..);
            detour.held.extend(new.map(|errand| {
                errand.not_done("nobody holds its slot");
                Held { errand, trouble: Trouble::Later }
            }));
            return Step::Ready { trouble: Trouble::Later, returned };
        };
        let errands: Vec<_> = detour.new.drain(..).collect();
        *way = Way { out: errands.len(), place: Some(place.clone()), detour: None };
        Step::Over(Some(Group { place, is_asking: false, errands }))
    }

    /// The first calls that go to one node, if there is one to go to.
    pub(super) fn group(&mut self, map: &Map, track: Track) -> Option<Group> {
        let way = self.by_track.get_mut(&track)?;
        let held = &mut way.detour.as_mut()?.held;
        let asks = |held: &Held| match &held.trouble {
            Trouble::Ask(place) => Some(place.clone()),
            Trouble::Moved | Trouble::Later => None,
        };
        let asked = asks(held.front()?);
        let is_asking = asked.is_some();
        let place = asked.clone().or_else(|| map.primary(track.slot).cloned())?;
        let count = held.iter().take_while(|held| asks(held) == asked).count();
        let errands: Vec<_> = held.drain(..count).map(|held| held.errand).collect();
        way.out += errands.len();
        way.place = Some(place.clone());
        Some(Group { place, is_asking, errands })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::asked::Asked;
    use crate::cluster::call::Call;

    const TRACK: fn() -> Track = || Track { slot: Slot::of(b"k"), waits: true };

    fn errands(count: usize) -> Vec<Errand> {
        let call = Call::write("f", vec!["k".into()], vec![]);
        Asked::new(vec![call; count]).errands().collect()
    }

    fn map(host: &str) -> Map {
        Map::of_one(Place::new(host, 1))
    }

    fn host(group: &Group) -> String {
        group.place.host.to_string()
    }

    fn came_back(ways: &mut Ways, errand: Errand, trouble: Trouble) -> bool {
        ways.returned(TRACK(), Some(Held { errand, trouble })).is_some()
    }

    #[test]
    fn what_comes_while_others_are_held_waits_behind_them() {
        let (mut ways, a) = (Ways::default(), map("a"));
        let Sent::Straight(group) = ways.send(&a, TRACK(), errands(1)) else { panic!("straight") };
        assert!(came_back(&mut ways, group.errands[0].clone(), Trouble::Later));
        assert!(matches!(ways.send(&a, TRACK(), errands(2)), Sent::Behind));
        assert!(matches!(ways.step(&a, TRACK()), Step::Ready { trouble: Trouble::Later, returned: 1 }));
        assert_eq!(ways.group(&a, TRACK()).expect("a group").errands.len(), 1, "the first alone");
        assert!(matches!(ways.step(&a, TRACK()), Step::Wait));
        assert!(ways.returned(TRACK(), None).is_none());
        let Step::Over(Some(group)) = ways.step(&a, TRACK()) else { panic!("over") };
        assert_eq!(group.errands.len(), 2, "the rest goes on as if nothing had been");
        assert!(matches!(ways.send(&a, TRACK(), errands(1)), Sent::Straight(_)));
    }

    #[test]
    fn a_slot_that_moves_waits_for_what_is_out_at_its_old_place() {
        let mut ways = Ways::default();
        let Sent::Straight(first) = ways.send(&map("a"), TRACK(), errands(1)) else { panic!("straight") };
        assert!(matches!(ways.send(&map("b"), TRACK(), errands(1)), Sent::Apart(_)));
        assert!(matches!(ways.step(&map("b"), TRACK()), Step::Wait));
        assert!(!came_back(&mut ways, first.errands[0].clone(), Trouble::Moved), "there is a detour already");
        assert!(matches!(ways.step(&map("b"), TRACK()), Step::Ready { trouble: Trouble::Moved, .. }));
        assert_eq!(host(&ways.group(&map("b"), TRACK()).expect("a group")), "b");
    }

    #[test]
    fn those_to_be_asked_for_elsewhere_go_there_and_what_is_behind_them_waits() {
        let (mut ways, a) = (Ways::default(), map("a"));
        let Sent::Straight(group) = ways.send(&a, TRACK(), errands(3)) else { panic!("straight") };
        for (errand, trouble) in group.errands.into_iter().zip([
            Trouble::Ask(Place::new("b", 1)),
            Trouble::Ask(Place::new("b", 1)),
            Trouble::Later,
        ]) {
            came_back(&mut ways, errand, trouble);
        }
        assert!(matches!(ways.step(&a, TRACK()), Step::Ready { returned: 3, .. }));
        let group = ways.group(&a, TRACK()).expect("a group");
        assert_eq!((host(&group).as_str(), group.is_asking, group.errands.len()), ("b", true, 2));
        for _ in 0..2 {
            ways.returned(TRACK(), None);
        }
        assert!(matches!(ways.step(&a, TRACK()), Step::Ready { trouble: Trouble::Later, returned: 0 }));
        let group = ways.group(&a, TRACK()).expect("a group");
        assert_eq!((host(&group).as_str(), group.is_asking), ("a", false));
        ways.returned(TRACK(), None);
        assert!(matches!(ways.step(&a, TRACK()), Step::Over(None)));
        assert_eq!(ways.by_track.len(), 0, "nothing is remembered of it");
    }
}
