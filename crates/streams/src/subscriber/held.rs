//! What a consumer holds: pending under its name, and known here.
//!
//! ```text
//!            ┌───────▶ ready ───▶ out ───▶ acknowledged
//!  fetched ──┤           ▲         │
//!            │           │ due     │ failed
//!            └─ nobody   └──── later ◀─┘
//!               can read it ──────▲
//! ```
//!
//! Invariant: an entry is in one of the three at most.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::entry::Entry;
use crate::lanes::Lane;
use crate::writer::Fields;

/// Where a lane has so many entries that failed and wait, nothing new is fetched of it.
const LATER_MAX: usize = 1_000;

/// An entry that waits.
#[derive(Clone, Debug)]
pub(super) struct Later {
    pub(super) id: String,
    /// How often it was handed over.
    pub(super) attempts: u64,
    /// It is to go to the dead letters, for this reason, with these fields; else it is tried again.
    pub(super) doom: Option<Doom>,
}

/// What becomes of an entry that nobody will handle.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Doom {
    pub(super) why: String,
    pub(super) fields: Fields,
}

/// When, and in which order among those of one instant.
type Due = (Instant, u64);

#[derive(Default)]
struct Lot {
    ready: VecDeque<Entry>,
    out: HashMap<String, u64>,
    later: BTreeMap<Due, Later>,
    when: HashMap<String, Due>,
}

#[derive(Default)]
pub(super) struct Held {
    lots: [Lot; 2],
    count: u64,
}

impl Held {
    fn lot(&self, lane: Lane) -> &Lot {
        &self.lots[lane as usize]
    }

    fn lot_mut(&mut self, lane: Lane) -> &mut Lot {
        &mut self.lots[lane as usize]
    }

    pub(super) fn has(&self, lane: Lane, id: &str) -> bool {
        let lot = self.lot(lane);
        lot.out.contains_key(id)
            || lot.when.contains_key(id)
            || lot.ready.iter().any(|entry| entry.id() == id)
    }

    /// Takes in what was fetched, unless it is here already.
    pub(super) fn fetch(&mut self, entry: Entry) {
        if !self.has(entry.lane(), entry.id()) {
            self.lot_mut(entry.lane()).ready.push_back(entry);
        }
    }

    /// The next of a lane, to be handed over.
    pub(super) fn take(&mut self, lane: Lane) -> Option<Entry> {
        let lot = self.lot_mut(lane);
        let entry = lot.ready.pop_front()?;
        lot.out.insert(entry.id().to_owned(), entry.attempt());
        Some(entry)
    }

    /// Nobody took it after all.
    pub(super) fn put_back(&mut self, entry: Entry) {
        let lot = self.lot_mut(entry.lane());
        if lot.out.remove(entry.id()).is_some() {
            lot.ready.push_front(entry);
        }
    }

    /// It is settled, or somebody else's.
    pub(super) fn forget(&mut self, lane: Lane, id: &str) {
        let lot = self.lot_mut(lane);
        lot.out.remove(id);
        if let Some(due) = lot.when.remove(id) {
            lot.later.remove(&due);
        }
        lot.ready.retain(|entry| entry.id() != id);
    }

    /// Whether it is handed over and not settled.
    pub(super) fn is_out(&self, lane: Lane, id: &str) -> bool {
        self.lot(lane).out.contains_key(id)
    }

    /// It waits.
    pub(super) fn postpone(&mut self, lane: Lane, due: Instant, later: Later) {
        self.forget(lane, &later.id);
        self.count += 1;
        let due = (due, self.count);
        let lot = self.lot_mut(lane);
        lot.when.insert(later.id.clone(), due);
        lot.later.insert(due, later);
    }

    /// One that is due, which is not held any more.
    pub(super) fn due(&mut self, lane: Lane, now: Instant) -> Option<Later> {
        let lot = self.lot_mut(lane);
        let (&due, _) = lot.later.first_key_value().filter(|((at, _), _)| *at <= now)?;
        let later = lot.later.remove(&due)?;
        lot.when.remove(&later.id);
        Some(later)
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.lots.iter().filter_map(|lot| lot.later.first_key_value().map(|((at, _), _)| *at)).min()
    }

    /// Whether more may be fetched of a lane.
    pub(super) fn has_room(&self, lane: Lane) -> bool {
        self.lot(lane).later.len() < LATER_MAX
    }

    /// All of a lane.
    pub(super) fn ids(&self, lane: Lane) -> Vec<String> {
        let lot = self.lot(lane);
        let ready = lot.ready.iter().map(|entry| entry.id().to_owned());
        ready.chain(lot.out.keys().cloned()).chain(lot.when.keys().cloned()).collect()
    }

    /// Gives up what is not handed over: the ids, how often each was tried, and how long until it is due.
    pub(super) fn give_up(&mut self, lane: Lane, now: Instant) -> Vec<(String, u64, Duration)> {
        let lot = self.lot_mut(lane);
        lot.when.clear();
        // What was fetched and not handed over was not tried.
        let ready = lot
            .ready
            .drain(..)
            .map(|entry| (entry.id().to_owned(), entry.attempt().saturating_sub(1), Duration::ZERO));
        let later = std::mem::take(&mut lot.later)
            .into_iter()
            .map(|((at, _), later)| (later.id, later.attempts, at.saturating_duration_since(now)));
        ready.chain(later).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lane: Lane, id: &str) -> Entry {
        let fields = vec![(b"data".to_vec(), br#"{"data":1}"#.to_vec())];
        Entry::read(lane, "s".to_owned(), id.to_owned(), &fields, 1).expect("an entry")
    }

    fn later(id: &str) -> Later {
        Later { id: id.to_owned(), attempts: 1, doom: None }
    }

    #[test]
    fn what_failed_waits_and_the_first_due_comes_first() {
        let (mut held, now) = (Held::default(), Instant::now());
        for id in ["1-0", "2-0"] {
            held.fetch(entry(Lane::Primary, id));
            held.take(Lane::Primary).expect("ready");
        }
        held.postpone(Lane::Primary, now + Duration::from_secs(2), later("1-0"));
        held.postpone(Lane::Primary, now + Duration::from_secs(1), later("2-0"));
        assert!(!held.is_out(Lane::Primary, "1-0"));
        assert_eq!(held.next_due(), Some(now + Duration::from_secs(1)));
        assert!(held.due(Lane::Primary, now).is_none());
        let both = now + Duration::from_secs(3);
        let due = [held.due(Lane::Primary, both), held.due(Lane::Primary, both)];
        assert_eq!(due.map(|later| later.expect("due").id), ["2-0", "1-0"]);
    }

    #[test]
    fn what_is_held_is_not_taken_in_twice() {
        let mut held = Held::default();
        for _ in 0..2 {
            held.fetch(entry(Lane::Backfill, "1-0"));
        }
        let taken = held.take(Lane::Backfill).expect("ready");
        held.fetch(taken.clone());
        assert!(held.take(Lane::Backfill).is_none());
        held.put_back(taken);
        assert_eq!(held.ids(Lane::Backfill), ["1-0"]);
        // The other lane may have one of the same name.
        held.fetch(entry(Lane::Primary, "1-0"));
        assert_eq!(held.ids(Lane::Primary), ["1-0"]);
        held.forget(Lane::Backfill, "1-0");
        assert!(held.ids(Lane::Backfill).is_empty());
    }

    #[test]
    fn what_is_given_up_untried_does_not_count() {
        let (mut held, now) = (Held::default(), Instant::now());
        held.fetch(entry(Lane::Primary, "1-0"));
        held.postpone(Lane::Primary, now + Duration::from_secs(5), later("2-0"));
        held.fetch(entry(Lane::Primary, "3-0"));
        let out = held.take(Lane::Primary).expect("ready");
        let given = held.give_up(Lane::Primary, now);
        let five = Duration::from_secs(5);
        assert_eq!(given, [("3-0".to_owned(), 0, Duration::ZERO), ("2-0".to_owned(), 1, five)]);
        assert_eq!(held.ids(Lane::Primary), [out.id()]);
    }
}
