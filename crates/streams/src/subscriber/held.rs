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

/// Where a stream has so many entries that failed and wait, nothing new is fetched of it.
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

/// The entries that are held of one stream.
struct Lot {
    lane: Lane,
    ready: VecDeque<Entry>,
    out: HashMap<String, u64>,
    later: BTreeMap<Due, Later>,
    when: HashMap<String, Due>,
}

impl Lot {
    fn new(lane: Lane) -> Self {
        Self {
            lane,
            ready: VecDeque::new(),
            out: HashMap::new(),
            later: BTreeMap::new(),
            when: HashMap::new(),
        }
    }

    fn has(&self, id: &str) -> bool {
        self.out.contains_key(id)
            || self.when.contains_key(id)
            || self.ready.iter().any(|entry| entry.id() == id)
    }

    fn next_due(&self) -> Option<Due> {
        self.later.first_key_value().map(|(due, _)| *due)
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.out.is_empty() && self.later.is_empty()
    }
}

/// The entries that are held, by streams. A stream of which none is held has no lot.
#[derive(Default)]
pub(super) struct Held {
    lots: HashMap<String, Lot>,
    count: u64,
    /// The most entries of the backfill lane that are worked on at once; no limit where nobody has said how many slots there are.
    backfill_max: Option<usize>,
    /// Entries of the backfill lane (stream, id) that were handed over and whose work has not ended, also those that another consumer has taken over. Empty without a limit.
    backfill_at_work: Vec<(String, String)>,
}

impl Held {
    fn lot_mut(&mut self, lane: Lane, stream: &str) -> &mut Lot {
        self.lots.entry(stream.to_owned()).or_insert_with(|| Lot::new(lane))
    }

    fn of_lane(&mut self, lane: Lane) -> impl Iterator<Item = (&String, &mut Lot)> {
        self.lots.iter_mut().filter(move |(_, lot)| lot.lane == lane)
    }

    pub(super) fn has(&self, stream: &str, id: &str) -> bool {
        self.lots.get(stream).is_some_and(|lot| lot.has(id))
    }

    /// Whether anything of a stream is held.
    pub(super) fn has_any(&self, stream: &str) -> bool {
        self.lots.contains_key(stream)
    }

    /// Takes in what was fetched, unless it is here already.
    pub(super) fn fetch(&mut self, entry: Entry) {
        if !self.has(entry.stream(), entry.id()) {
            self.lot_mut(entry.lane(), entry.stream()).ready.push_back(entry);
        }
    }

    /// Limits how many entries of the backfill lane are worked on at once.
    pub(super) fn limit_backfill(&mut self, most: usize) {
        self.backfill_max = Some(most);
    }

    /// Whether an entry of a lane may be handed over now.
    pub(super) fn has_slot(&self, lane: Lane) -> bool {
        lane == Lane::Primary || self.backfill_max.is_none_or(|most| self.backfill_at_work.len() < most)
    }

    /// The work on an entry has ended. Whether a slot of the backfill lane is free by that.
    pub(super) fn end_work(&mut self, entry: &Entry) -> bool {
        let is_it = |(stream, id): &(String, String)| stream == entry.stream() && id == entry.id();
        let at = self.backfill_at_work.iter().position(is_it);
        at.map(|at| self.backfill_at_work.swap_remove(at)).is_some()
    }

    /// The next of a lane, to be handed over. Only where the lane [has a slot](Held::has_slot).
    pub(super) fn take(&mut self, lane: Lane) -> Option<Entry> {
        let (_, lot) = self.of_lane(lane).find(|(_, lot)| !lot.ready.is_empty())?;
        let entry = lot.ready.pop_front()?;
        lot.out.insert(entry.id().to_owned(), entry.attempt());
        if lane == Lane::Backfill && self.backfill_max.is_some() {
            self.backfill_at_work.push((entry.stream().to_owned(), entry.id().to_owned()));
        }
        Some(entry)
    }

    /// Whether something of a lane is to be handed over, or is due.
    pub(super) fn has_next(&mut self, lane: Lane, now: Instant) -> bool {
        self.of_lane(lane)
            .any(|(_, lot)| !lot.ready.is_empty() || lot.next_due().is_some_and(|(at, _)| at <= now))
    }

    /// Nobody took it after all.
    pub(super) fn put_back(&mut self, entry: Entry) {
        self.end_work(&entry);
        if let Some(lot) = self.lots.get_mut(entry.stream())
            && lot.out.remove(entry.id()).is_some()
        {
            lot.ready.push_front(entry);
        }
    }

    /// It is settled, or somebody else's.
    pub(super) fn forget(&mut self, stream: &str, id: &str) {
        let Some(lot) = self.lots.get_mut(stream) else { return };
        lot.out.remove(id);
        if let Some(due) = lot.when.remove(id) {
            lot.later.remove(&due);
        }
        lot.ready.retain(|entry| entry.id() != id);
        if lot.is_empty() {
            self.lots.remove(stream);
        }
    }

    /// Whether it is handed over and not settled.
    pub(super) fn is_out(&self, entry: &Entry) -> bool {
        self.lots.get(entry.stream()).is_some_and(|lot| lot.out.contains_key(entry.id()))
    }

    /// It waits.
    pub(super) fn postpone(&mut self, lane: Lane, stream: &str, due: Instant, later: Later) {
        self.forget(stream, &later.id);
        self.count += 1;
        let due = (due, self.count);
        let lot = self.lot_mut(lane, stream);
        lot.when.insert(later.id.clone(), due);
        lot.later.insert(due, later);
    }

    /// Takes out the entry of a lane that was due first, and its stream.
    pub(super) fn due(&mut self, lane: Lane, now: Instant) -> Option<(String, Later)> {
        let due = |lot: &Lot| lot.next_due().filter(|(at, _)| *at <= now);
        let first = self.of_lane(lane).filter_map(|(stream, lot)| Some((due(lot)?, stream.clone()))).min();
        let (due, stream) = first?;
        let later = self.lots.get_mut(&stream)?.later.remove(&due)?;
        self.forget(&stream, &later.id);
        Some((stream, later))
    }

    /// When the next one is due, of the lanes that have a slot.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let lots = self.lots.values().filter(|lot| self.has_slot(lot.lane));
        lots.filter_map(|lot| lot.next_due().map(|(at, _)| at)).min()
    }

    /// Whether more may be fetched of a stream.
    pub(super) fn has_room(&self, stream: &str) -> bool {
        self.lots.get(stream).is_none_or(|lot| lot.later.len() < LATER_MAX)
    }

    /// The streams of which something is held.
    pub(super) fn streams(&self) -> Vec<String> {
        self.lots.keys().cloned().collect()
    }

    /// All of a stream.
    pub(super) fn ids(&self, stream: &str) -> Vec<String> {
        let Some(lot) = self.lots.get(stream) else { return Vec::new() };
        let ready = lot.ready.iter().map(|entry| entry.id().to_owned());
        ready.chain(lot.out.keys().cloned()).chain(lot.when.keys().cloned()).collect()
    }

    /// Gives up what is not handed over: the ids, how often each was tried, and how long until it is due.
    pub(super) fn give_up(&mut self, stream: &str, now: Instant) -> Vec<(String, u64, Duration)> {
        let Some(lot) = self.lots.get_mut(stream) else { return Vec::new() };
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
        Entry::read(lane, lane.to_string(), id.to_owned(), &fields, 1).expect("an entry")
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
        held.postpone(Lane::Primary, "primary", now + Duration::from_secs(2), later("1-0"));
        held.postpone(Lane::Primary, "primary", now + Duration::from_secs(1), later("2-0"));
        assert!(!held.is_out(&entry(Lane::Primary, "1-0")));
        assert_eq!(held.next_due(), Some(now + Duration::from_secs(1)));
        assert!(held.due(Lane::Primary, now).is_none());
        let both = now + Duration::from_secs(3);
        let due = [held.due(Lane::Primary, both), held.due(Lane::Primary, both)];
        assert_eq!(due.map(|due| due.expect("due").1.id), ["2-0", "1-0"]);
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
        assert_eq!(held.ids("backfill"), ["1-0"]);
        // The other lane may have one of the same name.
        held.fetch(entry(Lane::Primary, "1-0"));
        assert_eq!(held.ids("primary"), ["1-0"]);
        held.forget("backfill", "1-0");
        assert!(held.ids("backfill").is_empty());
    }

    #[test]
    fn a_lane_without_a_slot_waits_until_the_work_on_one_of_its_entries_ends() {
        let (mut held, now) = (Held::default(), Instant::now());
        held.limit_backfill(1);
        for id in ["1-0", "2-0"] {
            held.fetch(entry(Lane::Backfill, id));
        }
        let taken = held.take(Lane::Backfill).expect("ready");
        // Another consumer has taken it over, and its handler goes on.
        held.forget("backfill", taken.id());
        assert!(!held.has_slot(Lane::Backfill) && held.has_slot(Lane::Primary));
        held.postpone(Lane::Backfill, "backfill", now, later("3-0"));
        assert_eq!(held.next_due(), None, "nobody may be woken for what cannot be handed over");
        assert!(held.end_work(&taken) && !held.end_work(&taken));
        assert_eq!(held.next_due(), Some(now));
        let second = held.take(Lane::Backfill).expect("ready");
        assert!(!held.has_slot(Lane::Backfill));
        held.put_back(second);
        assert!(held.has_slot(Lane::Backfill));
    }

    #[test]
    fn what_is_given_up_untried_does_not_count() {
        let (mut held, now) = (Held::default(), Instant::now());
        held.fetch(entry(Lane::Primary, "1-0"));
        held.postpone(Lane::Primary, "primary", now + Duration::from_secs(5), later("2-0"));
        held.fetch(entry(Lane::Primary, "3-0"));
        let out = held.take(Lane::Primary).expect("ready");
        let given = held.give_up("primary", now);
        let five = Duration::from_secs(5);
        assert_eq!(given, [("3-0".to_owned(), 0, Duration::ZERO), ("2-0".to_owned(), 1, five)]);
        assert_eq!(held.ids("primary"), [out.id()]);
    }
}
