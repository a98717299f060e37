//! What places are known to show, and which of them is asked next.
//!
//! Heads are hints: the place itself says what it gives. A place that is being asked shows nothing to others meanwhile, so that nobody else is sent after the same
//! message; what it answers is shown again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use overtake_engine::{Clock, SystemClock};
use overtake_lane::{Head, Merger, PlaceNumber, Seq};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::tally::Tally;
use crate::functions::{Choice, Terms, Where};

#[derive(Debug)]
pub(super) struct Heads {
    state: Mutex<State>,
    /// Something is better than it was.
    better: Notify,
    tally: Arc<Tally>,
}

#[derive(Debug)]
struct State {
    merger: Merger,
    is_strict: bool,
    places: Vec<Shown>,
}

/// What is known of a place.
#[derive(Clone, Debug, Default)]
struct Shown {
    /// The call that said so.
    calls: u64,
    /// Of each lane.
    heads: Vec<Head>,
    /// Levels of lanes that showed something and did not give it.
    held_back: BTreeSet<i32>,
    /// Somebody is asking it.
    is_claimed: bool,
    /// It is not served: nobody is to ask it.
    is_away: bool,
}

/// A place to ask.
pub(super) struct Claim<'h> {
    heads: &'h Heads,
    pub(super) place: PlaceNumber,
    /// The lane whose turn it is.
    pub(super) level: i32,
    /// The last that may go before another place has something better; `None`: none has anything.
    pub(super) last: Option<Where>,
    /// The one lane that may go, and how many of it: where turns depend on what is taken.
    pub(super) only: Option<(i32, u32)>,
}

/// What came of a claim.
pub(super) struct Came {
    /// The number of the call at its place.
    pub(super) calls: u64,
    /// What was given.
    pub(super) given: Vec<(i32, Seq)>,
    /// What the place shows now.
    pub(super) heads: Vec<Head>,
}

fn place_of(head: &Head) -> Where {
    Where::new(head.level, head.seq)
}

/// Which lanes a choice is of. A place that is alone shows one head for all its lanes: behind one that is not wanted others may be.
fn wanted(choice: &Choice, is_whole: bool) -> impl Fn(i32) -> bool {
    move |level| if is_whole { choice.reaches(level) } else { choice.takes(level) }
}

/// By the clock by which messages get their sequences, so that nothing seems to have waited because the wall clock was set.
fn now_us() -> u64 {
    SystemClock.nanos() / 1_000
}

impl Shown {
    fn free(&self) -> impl Iterator<Item = &Head> {
        let is_asked = !self.is_claimed && !self.is_away;
        self.heads.iter().filter(move |head| is_asked && !self.held_back.contains(&head.level))
    }
}

impl State {
    /// What a call to a place says of it, unless a later one has spoken already. True: in some lane something goes sooner than was known.
    fn say(&mut self, place: PlaceNumber, calls: u64, heads: Vec<Head>) -> bool {
        let there = &mut self.places[place as usize];
        if calls <= there.calls {
            return false;
        }
        let is_better = heads.iter().any(|head| {
            there
                .heads
                .iter()
                .find(|known| known.level == head.level)
                .is_none_or(|known| head.seq <= known.seq)
        });
        (there.calls, there.heads) = (calls, heads);
        there.held_back.clear();
        self.show(place);
        is_better
    }

    /// What a claim came to. A lane that shows something which might have gone and did not is held back, and is asked again when it is heard of.
    fn came(&mut self, claim: &Claim<'_>, came: &Came) {
        self.say(claim.place, came.calls, came.heads.clone());
        let there = &mut self.places[claim.place as usize];
        if there.calls == came.calls && came.given.is_empty() {
            let might = |head: &&Head| claim.last.is_none_or(|last| place_of(head) <= last);
            match claim.only {
                Some((level, _)) => drop(there.held_back.insert(level)),
                None => there.held_back = there.heads.iter().filter(might).map(|head| head.level).collect(),
            }
        }
        there.is_claimed = false;
        self.show(claim.place);
        for (level, _) in &came.given {
            self.merger.charge(*level);
        }
    }

    fn show(&mut self, place: PlaceNumber) {
        let heads: Vec<Head> = self.places[place as usize].free().copied().collect();
        self.merger.show_all(place, &heads);
    }
}

impl Heads {
    pub(super) fn new(places: usize, terms: &Terms, tally: Arc<Tally>) -> Self {
        let state = State {
            merger: terms.merger(),
            is_strict: terms.is_strict(),
            places: vec![Shown::default(); places],
        };
        Self { state: Mutex::new(state), better: Notify::new(), tally }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().expect("nobody panics with it"))
    }

    /// Other terms hold: turns begin anew.
    pub(super) fn configure(&self, terms: &Terms) {
        self.with(|state| {
            (state.merger, state.is_strict) = (terms.merger(), terms.is_strict());
            (0..state.places.len()).for_each(|at| state.show(at as PlaceNumber));
        });
    }

    /// A place has said what goes next there.
    pub(super) fn tell(&self, place: PlaceNumber, calls: u64, heads: Vec<Head>) {
        if self.with(|state| state.say(place, calls, heads)) {
            self.better.notify_waiters();
        }
    }

    /// The place with what goes next, of the lanes that are wanted.
    pub(super) fn claim(&self, choice: &Choice) -> Option<Claim<'_>> {
        self.with(|state| {
            let is_whole = state.places.len() == 1;
            let wanted = wanted(choice, is_whole);
            let (place, Head { level, .. }) = state.merger.pick(&wanted)?;
            let only = (!is_whole && !state.is_strict).then(|| (level, state.merger.turns(level)));
            let last = match only {
                // The oldest of that lane elsewhere goes before what is younger here.
                Some(_) => state.merger.runner_up(place, |other| other == level),
                None => state.merger.runner_up(place, &wanted),
            };
            let last = last.as_ref().map(place_of);
            state.places[place as usize].is_claimed = true;
            state.show(place);
            Some(Claim { heads: self, place, level, last, only })
        })
    }

    /// What goes next, of the lanes that are wanted, at a place that nobody is asking.
    pub(super) fn next(&self, choice: &Choice) -> Option<Where> {
        self.with(|state| {
            let is_whole = state.places.len() == 1;
            state.merger.pick(wanted(choice, is_whole)).map(|(_, head)| place_of(&head))
        })
    }

    /// What claims came to that were made at once: what they gave is compared with what is known when all of them are answered.
    pub(super) fn told(&self, all: Vec<(Claim<'_>, Came)>) {
        self.with(|state| {
            all.iter().for_each(|(claim, came)| state.came(claim, came));
            for (claim, came) in &all {
                self.tally.claimed(came.given.len() as u64);
                let Some(best) = state.merger.runner_up(claim.place, |_| true) else { continue };
                // Of several places sequences are the clock, µs.
                let waited = || now_us().saturating_sub(best.seq.0);
                let inverted = came.given.iter().filter(|(level, _)| best.level > *level);
                inverted.for_each(|_| self.tally.inversions_us.count(waited()));
            }
        });
    }

    /// A place is not served from now on, or is again.
    pub(super) fn set_away(&self, place: PlaceNumber, is_away: bool) {
        self.with(|state| {
            state.places[place as usize].is_away = is_away;
            state.show(place);
        });
        if !is_away {
            self.better.notify_waiters();
        }
    }

    /// Ends once something is better than it was when this was called.
    pub(super) fn better(&self) -> Notified<'_> {
        self.better.notified()
    }

    /// What was shown and not given is shown again.
    pub(super) fn show_again(&self) {
        self.with(|state| {
            for at in 0..state.places.len() {
                if !state.places[at].held_back.is_empty() {
                    state.places[at].held_back.clear();
                    state.show(at as PlaceNumber);
                }
            }
        });
        self.better.notify_waiters();
    }
}

impl Claim<'_> {
    /// The lane is not asked for, and left alone until something is shown again.
    pub(super) fn hold_back(self) {
        self.heads.with(|state| state.places[self.place as usize].held_back.insert(self.level));
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let is_shown = self.heads.with(|state| {
            state.places[self.place as usize].is_claimed = false;
            state.show(self.place);
            state.places[self.place as usize].free().next().is_some()
        });
        if is_shown {
            self.heads.better.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::{PickerKind, Settings, Time};

    use super::*;

    fn heads_of(places: usize, picker: PickerKind) -> Heads {
        let settings = Settings { picker, ..Settings::default() };
        Heads::new(places, &Terms::new("q".into(), &settings, 0, 0), Arc::default())
    }

    fn strict(places: usize) -> Heads {
        heads_of(places, PickerKind::Strict)
    }

    fn head(level: i32, seq: u64) -> Head {
        Head { level, seq: Seq(seq), since: Time(0) }
    }

    fn told(heads: &Heads, claim: Claim<'_>, calls: u64, given: &[(i32, Seq)], shown: Vec<Head>) {
        heads.told(vec![(claim, Came { calls, given: given.to_vec(), heads: shown })]);
    }

    fn above(floor: i32) -> Choice {
        Choice { floor: Some(floor), ..Choice::default() }
    }

    fn anything() -> Choice {
        Choice::default()
    }

    #[test]
    fn who_is_being_asked_is_asked_by_nobody_else() {
        let heads = strict(3);
        heads.tell(0, 1, vec![head(5, 1)]);
        heads.tell(2, 1, vec![head(9, 2)]);
        let urgent = heads.claim(&anything()).expect("there is one");
        assert_eq!((urgent.place, urgent.last), (2, Some(Where::new(5, Seq(1)))));
        let other = heads.claim(&anything()).expect("another");
        assert_eq!((other.place, other.last), (0, None));
        assert!(heads.claim(&anything()).is_none());
        told(&heads, urgent, 2, &[(9, Seq(2))], vec![head(1, 7)]);
        assert_eq!(heads.claim(&anything()).expect("what it shows now").place, 2);
        drop(other);
        assert_eq!(heads.claim(&above(5)).expect("given up, it is as it was").place, 0);
    }

    #[test]
    fn a_place_that_gives_nothing_is_left_alone_until_it_is_heard_of() {
        let heads = strict(1);
        heads.tell(0, 1, vec![head(5, 1)]);
        let claim = heads.claim(&anything()).expect("it shows something");
        told(&heads, claim, 3, &[], vec![head(5, 1)]);
        assert!(heads.claim(&anything()).is_none());
        heads.tell(0, 2, vec![head(5, 1)]);
        assert!(heads.claim(&anything()).is_none(), "what was said before");
        heads.tell(0, 4, vec![head(5, 1)]);
        assert!(heads.claim(&anything()).is_some());
        assert_eq!((heads.tally.leased(), heads.tally.missed()), (0, 1));
    }

    #[test]
    fn of_a_place_that_is_held_back_other_lanes_go() {
        let heads = strict(2);
        heads.tell(0, 1, vec![head(9, 1), head(5, 2)]);
        heads.tell(1, 1, vec![head(7, 3)]);
        heads.claim(&anything()).expect("the most urgent").hold_back();
        let next = heads.claim(&anything()).expect("another place");
        assert_eq!((next.place, next.level, next.last), (1, 7, Some(Where::new(5, Seq(2)))));
        heads.show_again();
        assert_eq!(heads.claim(&anything()).expect("as it was").level, 9);
    }

    #[test]
    fn lanes_that_are_not_wanted_are_not_asked_for() {
        let heads = strict(2);
        heads.tell(0, 1, vec![head(9, 1), head(5, 2)]);
        heads.tell(1, 1, vec![head(7, 3)]);
        let but = Choice { except: vec![9, 7], ..Choice::default() };
        assert_eq!(heads.claim(&but).map(|claim| (claim.place, claim.level)), Some((0, 5)));
        let alone = strict(1);
        alone.tell(0, 1, vec![head(9, 1)]);
        assert_eq!(alone.claim(&but).map(|claim| claim.level), Some(9), "behind it there may be others");
        let only = Choice { only: Some(7), ..Choice::default() };
        assert_eq!(heads.claim(&only).map(|claim| (claim.place, claim.level)), Some((1, 7)));
    }

    #[test]
    fn lanes_of_all_places_take_turns_by_their_weights() {
        let weights = [("9".to_owned(), 2), ("5".to_owned(), 1)].into();
        let heads = heads_of(2, PickerKind::Weighted(weights));
        let mut calls = 0;
        let mut turns = Vec::new();
        for _ in 0..6 {
            calls += 1;
            heads.tell(0, calls, vec![head(9, calls), head(5, 100 + calls)]);
            heads.tell(1, calls, vec![head(9, 50 + calls), head(5, calls)]);
            let claim = heads.claim(&anything()).expect("there is one");
            turns.push((claim.level, claim.place, claim.only.map(|(_, most)| most)));
            let (level, place) = (claim.level, claim.place);
            let shown = heads.with(|state| state.places[place as usize].heads.clone());
            told(&heads, claim, calls + 1, &[(level, Seq(calls))], shown);
            calls += 1;
        }
        let (nine, five) = (|left| (9, 0, Some(left)), (5, 1, Some(1)));
        assert_eq!(turns, [nine(2), nine(1), five, nine(2), nine(1), five]);
    }
}
