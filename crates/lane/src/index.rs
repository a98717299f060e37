//! Finding a message: by sequence through pages, by id and by key through hash tables that hold only slots.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use hashbrown::HashTable;

use crate::entries::{Entries, NONE, Slot};
use crate::ids::Seq;

const PAGE_LEN: usize = 256;

/// Sequence to slot. Dense where messages are, a page of 256 at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeqIndex {
    pages: BTreeMap<u64, Box<Page>>,
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
        let page = match self.pages.last_entry() {
            Some(last) if *last.key() == number => last.into_mut(),
            _ => self.pages.entry(number).or_insert_with(|| Box::new(Page { used: 0, slots: [NONE; PAGE_LEN] })),
        };
        assert!(page.slots[at] == NONE, "a sequence is used once");
        page.slots[at] = slot;
        page.used += 1;
    }

    pub(crate) fn get(&self, seq: Seq) -> Option<Slot> {
        let (number, at) = split(seq);
        self.pages.get(&number).map(|page| page.slots[at]).filter(|slot| *slot != NONE)
    }

    pub(crate) fn remove(&mut self, seq: Seq) {
        let (number, at) = split(seq);
        let page = self.pages.get_mut(&number).expect("what is removed was inserted");
        page.slots[at] = NONE;
        page.used -= 1;
        if page.used == 0 {
            self.pages.remove(&number);
        }
    }

    /// Every slot from this sequence on, in order.
    pub(crate) fn from(&self, seq: Seq) -> impl Iterator<Item = Slot> + '_ {
        let (number, at) = split(seq);
        self.pages.range(number..).flat_map(move |(page, slots)| {
            let skip = if *page == number { at } else { 0 };
            slots.slots[skip..].iter().copied().filter(|slot| *slot != NONE)
        })
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
