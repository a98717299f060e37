//! The messages of a queue in memory: one slot each, linked into the list of where it stands.
//!
//! A slot is in exactly one [`List`] or in the returned part of its lane, and in at most one bucket of the alarms.

use crate::ids::{ConsumerId, Time};
use crate::message::{Message, State};

/// Names a slot.
pub(crate) type Slot = u32;
/// No slot.
pub(crate) const NONE: Slot = u32::MAX;
/// No bucket.
pub(crate) const NO_BUCKET: u16 = u16::MAX;

/// A message and its links: two cache lines that lie together, because a lease finds them cold.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub(crate) struct Entry {
    pub(crate) message: Message,
    /// Who holds it, when it is leased to a consumer that stays; a pull's lease has no holder.
    pub(crate) holder: Option<ConsumerId>,
    /// A newer message of a last-value queue has taken its place.
    pub(crate) outdated: bool,
    /// The stable index of its lane.
    pub(crate) lane: u16,
    /// Where its alarm is.
    pub(crate) bucket: u16,
    pub(crate) alarm_prev: Slot,
    pub(crate) alarm_next: Slot,
    prev: Slot,
    next: Slot,
}

impl Entry {
    /// When something happens to it by itself: it expires, is due, or its lease ends.
    pub(crate) fn alarm(&self) -> Time {
        match self.message.state {
            State::Ready => self.message.expires,
            State::Delayed { due } => due.min(self.message.expires),
            State::Leased { deadline, .. } => deadline,
            State::Dead => Time::NEVER,
        }
    }
}

/// A doubly linked list through the slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: Slot,
    tail: Slot,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, len: 0 }
    }
}

impl List {
    pub(crate) fn head(&self) -> Option<Slot> {
        (self.head != NONE).then_some(self.head)
    }

    pub(crate) fn tail(&self) -> Option<Slot> {
        (self.tail != NONE).then_some(self.tail)
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn push_back(&mut self, entries: &mut Entries, slot: Slot) {
        let entry = &mut entries[slot];
        (entry.prev, entry.next) = (self.tail, NONE);
        match self.tail {
            NONE => self.head = slot,
            tail => entries[tail].next = slot,
        }
        self.tail = slot;
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, entries: &mut Entries, slot: Slot) {
        let (prev, next) = (entries[slot].prev, entries[slot].next);
        match prev {
            NONE => self.head = next,
            prev => entries[prev].next = next,
        }
        match next {
            NONE => self.tail = prev,
            next => entries[next].prev = prev,
        }
        self.len -= 1;
    }

    /// What comes after a member.
    pub(crate) fn after(self, entries: &Entries, slot: Slot) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(Some(slot), |slot| Some(entries[*slot].next).filter(|next| *next != NONE))
            .skip(1)
    }

    pub(crate) fn iter(self, entries: &Entries) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(self.head(), |slot| Some(entries[*slot].next).filter(|next| *next != NONE))
    }
}

/// All slots of a queue. A vacant one is on the free list and used again first.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    slots: Vec<Entry>,
    free: Slot,
    len: usize,
}

impl Default for Entries {
    fn default() -> Self {
        Self { slots: Vec::new(), free: NONE, len: 0 }
    }
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, message: Message) -> Slot {
        let entry = Entry {
            message,
            holder: None,
            outdated: false,
            lane: 0,
            bucket: NO_BUCKET,
            alarm_prev: NONE,
            alarm_next: NONE,
            prev: NONE,
            next: NONE,
        };
        self.len += 1;
        if self.free == NONE {
            self.slots.push(entry);
            let slot = Slot::try_from(self.slots.len() - 1).expect("a queue holds fewer than 2^32 messages");
            assert!(slot != NONE, "a queue holds fewer than 2^32 messages");
            return slot;
        }
        let slot = self.free;
        self.free = self[slot].next;
        self[slot] = entry;
        slot
    }

    /// Vacates a slot that is in no list any more.
    pub(crate) fn remove(&mut self, slot: Slot) -> Message {
        let free = self.free;
        let entry = &mut self[slot];
        entry.next = free;
        let extras = entry.message.extras.take();
        let message = Message { extras, ..entry.message };
        self.free = slot;
        self.len -= 1;
        message
    }
}

impl std::ops::Index<Slot> for Entries {
    type Output = Entry;

    fn index(&self, slot: Slot) -> &Entry {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<Slot> for Entries {
    fn index_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.slots[slot as usize]
    }
}

/// An entry that grows by a byte costs every waiting message a third and a fourth cache line.
const _: () = assert!(size_of::<Entry>() == 128, "an entry is two cache lines");
