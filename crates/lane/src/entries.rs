//! The messages of a queue in memory: one slot each, linked into the list of where it stands.
//!
//! A slot is in exactly one [`List`] or in the returned part of its lane, and in at most one bucket of the alarms.

use crate::ids::{ConsumerId, Place, Seq, Time};
use crate::message::{Message, State};
use crate::priority::{Original, Priority};

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
    /// Who took it, where it is known when.
    taker: ConsumerId,
    /// When it was taken; [`Time::NEVER`]: it is not leased, or was leased before the broker was opened.
    taken: Time,
    /// Its lease ends with whoever took it.
    is_held: bool,
    /// A newer message of a last-value queue has taken its place.
    pub(crate) outdated: bool,
    /// It is being written to a segment, and nothing has happened to it since.
    pub(crate) spilling: bool,
    /// Fetched from a run, with no fact about the message since: until the run is over, a recovery finds the message there.
    pub(crate) is_untold: bool,
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
    pub(crate) fn vacant() -> Self {
        let message = Message {
            seq: Seq(0),
            priority: Priority(0),
            original: Original::Missing,
            since: Time(0),
            expires: Time::NEVER,
            bytes: 0,
            count: 0,
            place: Place(0),
            state: State::Dead,
            extras: None,
        };
        Self {
            message,
            taker: ConsumerId(0),
            taken: Time::NEVER,
            is_held: false,
            outdated: false,
            spilling: false,
            is_untold: false,
            lane: 0,
            bucket: NO_BUCKET,
            alarm_prev: NONE,
            alarm_next: NONE,
            prev: NONE,
            next: NONE,
        }
    }

    /// Who holds it, when it is leased to a consumer that stays; a pull's lease has no holder.
    pub(crate) fn holder(&self) -> Option<ConsumerId> {
        self.is_held.then_some(self.taker)
    }

    /// Who took it, and when, while it is leased. Not durable: nobody is known to have taken what was leased before a restart.
    pub(crate) fn taken(&self) -> Option<(ConsumerId, Time)> {
        self.taken.some().map(|when| (self.taker, when))
    }

    /// It is leased now; with `holds`, until its taker is gone.
    pub(crate) fn take(&mut self, now: Time, taker: ConsumerId, holds: bool) {
        (self.taker, self.taken, self.is_held) = (taker, now, holds);
    }

    /// It is leased no more.
    pub(crate) fn free(&mut self) {
        (self.taken, self.is_held) = (Time::NEVER, false);
    }

    /// The message as a recovery must find it: a lease that ends with its consumer, and the work by it, are not there then.
    pub(crate) fn durable(&self) -> Message {
        let mut message = self.message.clone();
        if self.is_held {
            message.state = State::Ready;
            message.set_work(None);
        }
        message
    }

    /// When something happens to it by itself: it expires, is due, or its lease or the time for its work ends.
    pub(crate) fn alarm(&self) -> Time {
        match self.message.state {
            State::Ready => self.message.expires,
            State::Delayed { due } => due.min(self.message.expires),
            State::Leased { deadline, .. } => {
                self.message.work().map_or(deadline, |work| deadline.min(work.ends))
            }
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
        Self::from(entries, Some(slot)).skip(1)
    }

    pub(crate) fn iter(self, entries: &Entries) -> impl Iterator<Item = Slot> + '_ {
        Self::from(entries, self.head())
    }

    /// A member and what comes after it.
    pub(crate) fn from(entries: &Entries, slot: Option<Slot>) -> impl Iterator<Item = Slot> + '_ {
        std::iter::successors(slot, |slot| Some(entries[*slot].next).filter(|next| *next != NONE))
    }
}

/// Slots that lie together: as many as a mask has bits.
const BLOCK_LEN: Slot = u32::BITS;
/// Slots of a chunk: memory comes, and goes, by so many at most, so a queue that grows moves none of its messages.
const CHUNK_LEN: usize = 1_024;
/// A block with so many messages left, or fewer, is filled again: no more than three of four slots are vacant for long.
const SPARSE: u32 = BLOCK_LEN / 4;

/// All slots of a queue, a block at a time.
///
/// A lane fills its own block, so what is leased one after the other lies one after the other in memory, where the
/// processor finds it before it is asked for. That makes a lease nearly twice as fast as slots taken from anywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    /// Every chunk but the last is full of slots.
    chunks: Vec<Vec<Entry>>,
    blocks: Vec<Block>,
    /// Blocks with room that no lane fills, the last one found first.
    sparse: Vec<u32>,
    /// By lane, the block it fills, else [`NONE`].
    filling: Vec<u32>,
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// Slots in use, a bit each.
    used: u32,
    /// A lane fills it, or it is among the sparse ones.
    claimed: bool,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, message: Message, lane: u16) -> Slot {
        self.len += 1;
        let slot = self.next_slot(usize::from(lane));
        self[slot] = Entry { message, lane, ..Entry::vacant() };
        slot
    }

    /// Puts in one that was taken out of other slots, as it is; it is in no list, and has no alarm.
    pub(crate) fn put(&mut self, entry: Entry) -> Slot {
        self.len += 1;
        let slot = self.next_slot(usize::from(entry.lane));
        self[slot] =
            Entry { bucket: NO_BUCKET, alarm_prev: NONE, alarm_next: NONE, prev: NONE, next: NONE, ..entry };
        slot
    }

    fn next_slot(&mut self, lane: usize) -> Slot {
        if lane >= self.filling.len() {
            self.filling.resize(lane + 1, NONE);
        }
        let number = match self.filling[lane] {
            NONE => self.claim_block(),
            number => number,
        };
        let block = &mut self.blocks[number as usize];
        let at = block.used.trailing_ones();
        block.used |= 1 << at;
        block.claimed = block.used != u32::MAX;
        self.filling[lane] = if block.claimed { number } else { NONE };
        number * BLOCK_LEN + at
    }

    fn claim_block(&mut self) -> u32 {
        self.sparse.pop().unwrap_or_else(|| {
            let number = self.blocks.len() as u32;
            assert!(number < NONE / BLOCK_LEN, "a queue holds fewer than 2^32 messages");
            self.blocks.push(Block::default());
            self.add_slots();
            number
        })
    }

    /// Adds the slots of a block.
    fn add_slots(&mut self) {
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK_LEN => {
                chunk.resize_with(chunk.len() + BLOCK_LEN as usize, Entry::vacant);
            }
            last => {
                // Most queues are small: only the first chunk grows.
                let room = if last.is_some() { CHUNK_LEN } else { 0 };
                let mut chunk = Vec::with_capacity(room);
                chunk.resize_with(BLOCK_LEN as usize, Entry::vacant);
                self.chunks.push(chunk);
            }
        }
    }

    /// Whether there are no slots, not even vacant ones.
    pub(crate) fn is_clear(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The messages, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Message> {
        let slots = self.chunks.iter().flatten().zip(0..);
        slots.filter(|(_, slot)| self.is_used(*slot)).map(|(entry, _)| &entry.message)
    }

    fn is_used(&self, slot: Slot) -> bool {
        self.blocks[(slot / BLOCK_LEN) as usize].used & 1 << (slot % BLOCK_LEN) != 0
    }

    /// Takes the last message away with its slot, for ever, or slots that are vacant: the index of its lane, and the message. No message is put in from
    /// then on.
    pub(crate) fn pop(&mut self) -> Option<Option<(u16, Message)>> {
        let block = self.blocks.last_mut()?;
        let last = block.used.checked_ilog2();
        if let Some(last) = last {
            block.used &= !(1 << last);
        }
        let is_over = block.used == 0;
        let first = (self.blocks.len() - 1) * BLOCK_LEN as usize % CHUNK_LEN;
        let chunk = self.chunks.last_mut().expect("a block lies in a chunk");
        let popped = last.and_then(|last| {
            chunk.truncate(first + last as usize + 1);
            chunk.pop()
        });
        if is_over {
            chunk.truncate(first);
            self.blocks.pop();
            if first == 0 {
                self.chunks.pop();
            }
        }
        self.len -= usize::from(popped.is_some());
        Some(popped.map(|entry| (entry.lane, entry.message)))
    }

    /// Vacates a slot that is in no list any more.
    pub(crate) fn remove(&mut self, slot: Slot) -> Message {
        let entry = &mut self[slot];
        let extras = entry.message.extras.take();
        let message = Message { extras, ..entry.message };
        self.vacate(slot);
        message
    }

    /// Vacates a slot, whatever lists it is in. Answers what was there.
    pub(crate) fn take(&mut self, slot: Slot) -> Entry {
        let entry = std::mem::replace(&mut self[slot], Entry::vacant());
        self.vacate(slot);
        entry
    }

    fn vacate(&mut self, slot: Slot) {
        let number = slot / BLOCK_LEN;
        let block = &mut self.blocks[number as usize];
        block.used &= !(1 << (slot % BLOCK_LEN));
        if !block.claimed && block.used.count_ones() <= SPARSE {
            block.claimed = true;
            self.sparse.push(number);
        }
        self.len -= 1;
    }
}

impl std::ops::Index<Slot> for Entries {
    type Output = Entry;

    fn index(&self, slot: Slot) -> &Entry {
        &self.chunks[slot as usize / CHUNK_LEN][slot as usize % CHUNK_LEN]
    }
}

impl std::ops::IndexMut<Slot> for Entries {
    fn index_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.chunks[slot as usize / CHUNK_LEN][slot as usize % CHUNK_LEN]
    }
}

/// An entry that grows by a byte costs every waiting message a third and a fourth cache line.
const _: () = assert!(size_of::<Entry>() == 128, "an entry is two cache lines");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_slot_is_given_once_and_few_are_vacant(
            ops in prop::collection::vec((0..5_u16, any::<prop::sample::Index>(), 0..3_u8), 1..4_000),
        ) {
            let (mut entries, mut there) = (Entries::default(), Vec::new());
            let mut most = 0;
            for (nth, (lane, at, what)) in ops.into_iter().enumerate() {
                if what < 2 || there.is_empty() {
                    let slot = entries.insert(Message { seq: Seq(nth as u64), ..Entry::vacant().message }, lane);
                    there.push((slot, Seq(nth as u64)));
                } else {
                    let (slot, seq) = there.swap_remove(at.index(there.len()));
                    prop_assert_eq!(entries.remove(slot).seq, seq);
                }
                most = most.max(there.len());
                prop_assert_eq!(entries.len(), there.len());
                prop_assert!(there.iter().all(|(slot, seq)| entries[*slot].message.seq == *seq));
                // Each of the five lanes may have a block that it has only begun.
                prop_assert!(entries.blocks.len() * BLOCK_LEN as usize <= 4 * most + 5 * BLOCK_LEN as usize);
            }
            let mut left: Vec<Seq> = there.into_iter().map(|(_, seq)| seq).collect();
            let mut here: Vec<Seq> = entries.iter().map(|message| message.seq).collect();
            let (mut popped, blocks) = (Vec::new(), entries.blocks.len());
            for _ in 0..left.len() + blocks {
                popped.extend(entries.pop().into_iter().flatten().map(|(_, message)| message.seq));
                prop_assert_eq!(entries.len(), left.len() - popped.len());
                prop_assert_eq!(entries.iter().count(), entries.len());
            }
            prop_assert!(entries.is_clear() && entries.pop().is_none());
            left.sort_unstable();
            here.sort_unstable();
            popped.sort_unstable();
            prop_assert_eq!((&here, &popped), (&left, &left));
        }
    }
}
