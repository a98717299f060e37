//! What places are known to show, and which of them is asked next.
//!
//! Heads are hints: the place itself says what it gives. A place that is being asked shows nothing to others meanwhile, so that nobody else is sent after the same
//! message; what it answers is shown again.

use std::collections::BTreeMap;
use std::sync::Mutex;

use overtake_lane::{Head, Merger, PickerKind, PlaceNumber, Time};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::functions::Where;

#[derive(Debug)]
pub(super) struct Heads {
    state: Mutex<State>,
    /// Something is better than it was.
    better: Notify,
}

#[derive(Debug)]
struct State {
    merger: Merger,
    /// By place.
    known: Vec<Option<Where>>,
    /// What a place showed and did not give.
    held_back: Vec<Option<Where>>,
    /// Of each place the call that said so.
    calls: Vec<u64>,
    claimed: Vec<bool>,
    counts: Order,
}

/// How well the order over places was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Messages leased.
    pub leased: u64,
    /// Leases of a message while another place was known to have a more urgent one by the time it came.
    pub inversions: u64,
    /// Places asked for a head that somebody else had taken by then.
    pub missed: u64,
}

/// A place to ask.
pub(super) struct Claim<'h> {
    heads: &'h Heads,
    pub(super) place: PlaceNumber,
    /// The last that may go before another place has something better.
    pub(super) last: Option<Where>,
}

impl State {
    /// What a call to a place says of it, unless a later one has spoken already.
    fn say(&mut self, place: PlaceNumber, calls: u64, head: Option<Where>) {
        let at = place as usize;
        if calls > self.calls[at] {
            (self.calls[at], self.known[at], self.held_back[at]) = (calls, head, None);
            self.show(place);
        }
    }

    fn show(&mut self, place: PlaceNumber) {
        let at = place as usize;
        let shown = self.known[at].filter(|_| !self.claimed[at]);
        // The strict picker: of a place only the first head is asked for.
        let head = shown.map(|head| Head { level: head.level(), since: Time(0), seq: head.seq() });
        self.merger.show_all(place, head.as_slice());
    }
}

impl Heads {
    pub(super) fn new(places: usize) -> Self {
        let merger = Merger::new(&PickerKind::Strict, BTreeMap::new());
        let (known, claimed, calls) = (vec![None; places], vec![false; places], vec![0; places]);
        let held_back = known.clone();
        let state = State { merger, known, held_back, calls, claimed, counts: Order::default() };
        Self { state: Mutex::new(state), better: Notify::new() }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().expect("nobody panics with it"))
    }

    /// A place has said what goes next there.
    pub(super) fn tell(&self, place: PlaceNumber, calls: u64, head: Option<Where>) {
        let is_better = self.with(|state| {
            let before = state.known[place as usize];
            state.say(place, calls, head);
            head.is_some_and(|head| before.is_none_or(|before| head <= before))
        });
        if is_better {
            self.better.notify_waiters();
        }
    }

    /// The place with what goes next, of lanes at this level or above.
    pub(super) fn claim(&self, floor: Option<i32>) -> Option<Claim<'_>> {
        let wanted = |level: i32| floor.is_none_or(|floor| level >= floor);
        self.with(|state| {
            let (place, _) = state.merger.pick(wanted)?;
            let last = state.merger.runner_up(place, |_| true).map(|head| Where::new(head.level, head.seq));
            state.claimed[place as usize] = true;
            state.show(place);
            Some(Claim { heads: self, place, last })
        })
    }

    /// Ends once something is better than it was when this was called.
    pub(super) fn better(&self) -> Notified<'_> {
        self.better.notified()
    }

    /// What was shown and not given is shown again.
    pub(super) fn show_again(&self) {
        self.with(|state| {
            for at in 0..state.known.len() {
                if let Some(head) = state.held_back[at].take() {
                    state.known[at] = Some(head);
                    state.show(at as PlaceNumber);
                }
            }
        });
        self.better.notify_waiters();
    }

    pub(super) fn counts(&self) -> Order {
        self.with(|state| state.counts)
    }
}

impl Claim<'_> {
    /// What the place gave, and shows now. One that shows something and gives nothing is held back, and is asked again when it is heard of.
    pub(super) fn told(self, calls: u64, given: &[Where], head: Option<Where>) {
        let at = self.place as usize;
        self.heads.with(|state| {
            let is_newest = calls > state.calls[at];
            state.say(self.place, calls, head.filter(|_| !given.is_empty()));
            if is_newest && given.is_empty() {
                state.held_back[at] = head;
            }
            let rivals: Vec<Where> = (0..state.known.len())
                .filter(|other| *other != at)
                .filter_map(|other| state.known[other])
                .collect();
            let best = rivals.into_iter().min();
            state.counts.leased += given.len() as u64;
            state.counts.missed += u64::from(given.is_empty());
            let passed_over = |given: &&Where| best.is_some_and(|best| best.level() > given.level());
            state.counts.inversions += given.iter().filter(passed_over).count() as u64;
        });
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let is_shown = self.heads.with(|state| {
            state.claimed[self.place as usize] = false;
            state.show(self.place);
            state.known[self.place as usize].is_some()
        });
        if is_shown {
            self.heads.better.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::Seq;

    use super::*;

    fn head(level: i32, seq: u64) -> Where {
        Where::new(level, Seq(seq))
    }

    #[test]
    fn who_is_being_asked_is_asked_by_nobody_else() {
        let heads = Heads::new(3);
        heads.tell(0, 1, Some(head(5, 1)));
        heads.tell(2, 1, Some(head(9, 2)));
        let urgent = heads.claim(None).expect("there is one");
        assert_eq!((urgent.place, urgent.last), (2, Some(head(5, 1))));
        let other = heads.claim(None).expect("another");
        assert_eq!((other.place, other.last), (0, None));
        assert!(heads.claim(None).is_none());
        urgent.told(2, &[head(9, 2)], Some(head(1, 7)));
        assert_eq!(heads.claim(None).expect("what it shows now").place, 2);
        drop(other);
        assert_eq!(heads.claim(Some(5)).expect("given up, it is as it was").place, 0);
    }

    #[test]
    fn a_place_that_gives_nothing_is_left_alone_until_it_is_heard_of() {
        let heads = Heads::new(1);
        heads.tell(0, 1, Some(head(5, 1)));
        heads.claim(None).expect("it shows something").told(3, &[], Some(head(5, 1)));
        assert!(heads.claim(None).is_none());
        heads.tell(0, 2, Some(head(5, 1)));
        assert!(heads.claim(None).is_none(), "what was said before");
        heads.tell(0, 4, Some(head(5, 1)));
        assert!(heads.claim(None).is_some());
        assert_eq!(heads.counts(), Order { leased: 0, inversions: 0, missed: 1 });
    }
}
