//! Finding a message: by sequence through pages, by id and by key through hash tables that hold only slots.

use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use hashbrown::HashTable;

use crate::entries::{Entries, NONE, Slot};
use crate::ids::Seq;

/// Pages of half a KiB: for more, a general allocator may first gather what small ones left behind, each time.
const PAGE_LEN: usize = 128;

/// So many pages without a message may lie between two that have some.
const GAP_MAX: usize = 1_024;

/// Sequence to slot, a page at a time: the newest pages in a ring, where they are found by counting; the few old
/// ones that are left over when most of their time is gone in a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeqIndex {
    ring: VecDeque<Option<Box<Page>>>,
    /// The number of the first page of the ring; every page in `old` comes before it.
    first: u64,
    /// Pages in the ring.
    pages: usize,
    old: BTreeMap<u64, Box<Page>>,
}

#[derive(Clone, Debug)]
struct Page {
    used: u16,
    slots: [Slot; PAGE_LEN],
}

fn split(seq: Seq) -> (u64, usize) {
    (seq.0 / PAGE_LEN as u64, seq.0 as usize % PAGE_LEN)
}

impl SeqIndex {
    pub(crate) fn insert(&mut self, seq: Seq, slot: Slot) {
        let (number, at) = split(seq);
        let page = self.page_or_new(number);
        assert!(page.slots[at] == NONE, "a sequence is used once");
        page.slots[at] = slot;
        page.used += 1;
    }

    pub(crate) fn get(&self, seq: Seq) -> Option<Slot> {
        let (number, at) = split(seq);
        let page = match number.checked_sub(self.first) {
            Some(nth) => self.ring.get(nth as usize)?.as_ref()?,
            None => self.old.get(&number)?,
        };
        Some(page.slots[at]).filter(|slot| *slot != NONE)
    }

    pub(crate) fn remove(&mut self, seq: Seq) {
        let (number, at) = split(seq);
        let page = match number.checked_sub(self.first) {
            Some(nth) => self.ring[nth as usize].as_mut(),
            None => self.old.get_mut(&number),
        };
        let page = page.expect("what is removed was inserted");
        page.slots[at] = NONE;
        page.used -= 1;
        if page.used == 0 {
            self.forget_page(number);
        }
    }

    /// Every slot from this sequence on, in order.
    pub(crate) fn from(&self, seq: Seq) -> impl Iterator<Item = Slot> + '_ {
        let (number, at) = split(seq);
        let old = self.old.range(number..).map(|(number, page)| (*number, page));
        let skip =
            usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.ring.len());
        let ring = (self.first + skip as u64..).zip(self.ring.range(skip..));
        let ring = ring.filter_map(|(number, page)| Some((number, page.as_ref()?)));
        old.chain(ring).flat_map(move |(page, slots)| {
            let skip = if page == number { at } else { 0 };
            slots.slots[skip..].iter().copied().filter(|slot| *slot != NONE)
        })
    }

    /// Every slot before this sequence, the last first.
    pub(crate) fn before(&self, seq: Seq) -> impl Iterator<Item = Slot> + '_ {
        let (number, at) = split(seq);
        let end = number.checked_sub(self.first).map_or(0, |nth| nth.saturating_add(1));
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(self.ring.len());
        let ring = (0..end).rev().filter_map(|nth| Some((self.first + nth as u64, self.ring[nth].as_ref()?)));
        let old = self.old.range(..=number).rev().map(|(number, page)| (*number, page));
        ring.chain(old).flat_map(move |(page, slots)| {
            let end = if page == number { at } else { PAGE_LEN };
            slots.slots[..end].iter().rev().copied().filter(|slot| *slot != NONE)
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.old.is_empty()
    }

    /// Frees a page, whatever it has. False: there is none.
    pub(crate) fn pop_page(&mut self) -> bool {
        self.ring.pop_back().is_some() || self.old.pop_first().is_some()
    }

    fn page_or_new(&mut self, number: u64) -> &mut Page {
        let new = || Box::new(Page { used: 0, slots: [NONE; PAGE_LEN] });
        let Some(nth) = number.checked_sub(self.first) else {
            return self.old.entry(number).or_insert_with(new);
        };
        if nth >= (self.ring.len() + GAP_MAX) as u64 {
            self.retire(0);
            self.first = number;
        }
        while self.first + self.ring.len() as u64 <= number {
            self.ring.push_back(None);
            self.retire(4 * self.pages + 2 * GAP_MAX);
        }
        let nth = (number - self.first) as usize;
        self.pages += usize::from(self.ring[nth].is_none());
        self.ring[nth].get_or_insert_with(new)
    }

    /// Moves the oldest pages out of the ring until it is this long.
    fn retire(&mut self, len: usize) {
        while self.ring.len() > len {
            if let Some(page) = self.ring.pop_front().expect("it is longer") {
                self.old.insert(self.first, page);
                self.pages -= 1;
            }
            self.first += 1;
        }
    }

    fn forget_page(&mut self, number: u64) {
        let Some(nth) = number.checked_sub(self.first) else {
            self.old.remove(&number);
            return;
        };
        self.ring[nth as usize] = None;
        self.pages -= 1;
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.first += 1;
        }
    }
}

/// Text to slot. The text itself stays in the entry.
#[derive(Clone, Debug)]
pub(crate) struct TextIndex {
    slots: HashTable<Slot>,
    hasher: FixedState,
    text_of: fn(&Entries, Slot) -> &str,
}

impl TextIndex {
    /// `seed` keeps others from choosing texts that collide; `text_of` finds the text of a slot.
    pub(crate) fn new(seed: u64, text_of: fn(&Entries, Slot) -> &str) -> Self {
        Self { slots: HashTable::new(), hasher: FixedState::with_seed(seed), text_of }
    }

    /// The same without a text in it.
    pub(crate) fn emptied(&self) -> Self {
        Self { slots: HashTable::new(), hasher: self.hasher.clone(), text_of: self.text_of }
    }

    pub(crate) fn get(&self, entries: &Entries, text: &str) -> Option<Slot> {
        self.slots.find(self.hasher.hash_one(text), |slot| (self.text_of)(entries, *slot) == text).copied()
    }

    /// What the text of this slot points to.
    pub(crate) fn twin(&self, entries: &Entries, slot: Slot) -> Option<Slot> {
        self.get(entries, (self.text_of)(entries, slot))
    }

    /// Points the text of this slot to it, and no longer to another.
    pub(crate) fn point(&mut self, entries: &Entries, slot: Slot) {
        let text = (self.text_of)(entries, slot);
        let (hasher, text_of) = (&self.hasher, self.text_of);
        let hash = hasher.hash_one(text);
        match self.slots.find_mut(hash, |other| text_of(entries, *other) == text) {
            Some(other) => *other = slot,
            None => {
                self.slots.insert_unique(hash, slot, |other| hasher.hash_one(text_of(entries, *other)));
            }
        }
    }

    /// Forgets this slot, if its text points to it.
    pub(crate) fn forget(&mut self, entries: &Entries, slot: Slot) {
        let hash = self.hasher.hash_one((self.text_of)(entries, slot));
        if let Ok(found) = self.slots.find_entry(hash, |other| *other == slot) {
            found.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_sequence_is_found_wherever_it_lies(
            ops in prop::collection::vec((0_u32..44, any::<prop::sample::Index>(), 0..4_u8), 1..300),
        ) {
            let (mut index, mut model) = (SeqIndex::default(), BTreeMap::new());
            let mut seq = 1;
            for (slot, (bits, at, what)) in ops.into_iter().enumerate() {
                match what {
                    // Further on, by a little or by far.
                    0 | 1 => seq += 1 + (at.index(1 << 20) as u64 * (1 << bits >> 20)),
                    // One before, as a compacted log brings it.
                    2 => {
                        let before = at.index(seq as usize) as u64;
                        if model.insert(before, slot as Slot).is_some() {
                            index.remove(Seq(before));
                        }
                        index.insert(Seq(before), slot as Slot);
                        continue;
                    }
                    _ => {
                        let there: Vec<u64> = model.keys().copied().collect();
                        if !there.is_empty() {
                            let gone = *at.get(&there);
                            model.remove(&gone);
                            index.remove(Seq(gone));
                        }
                        continue;
                    }
                }
                model.insert(seq, slot as Slot);
                index.insert(Seq(seq), slot as Slot);
                let from = at.index(seq as usize + 2) as u64;
                prop_assert!(index.from(Seq(from)).eq(model.range(from..).map(|(_, slot)| *slot)));
                prop_assert!(index.before(Seq(from)).eq(model.range(..from).rev().map(|(_, slot)| *slot)));
                prop_assert_eq!(index.get(Seq(from)), model.get(&from).copied());
                prop_assert!(model.iter().all(|(seq, slot)| index.get(Seq(*seq)) == Some(*slot)));
                prop_assert!(index.ring.len() <= 4 * index.pages + 3 * GAP_MAX);
            }
        }
    }

    /// The head of a lane stays in memory, and all that comes after it leaves.
    #[test]
    fn one_that_stays_does_not_hold_up_those_that_go() {
        let mut index = SeqIndex::default();
        index.insert(Seq(0), 7);
        for seq in 1..=(4 * GAP_MAX * PAGE_LEN) as u64 {
            index.insert(Seq(seq), 8);
            index.remove(Seq(seq));
        }
        assert_eq!(index.get(Seq(0)), Some(7));
        assert!(index.from(Seq(0)).eq([7]));
    }
}
