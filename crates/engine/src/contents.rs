//! What messages say, in memory, and which part of the journal is still needed for it.
//!
//! A [`Place`] names a slot here and, in its upper half, the *chunk* of the journal, `LSN / chunk length`, at or before the
//! one that holds the message's record. A chunk that no place names and none before it does is needed by no message.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::Place;

use crate::api::Content;

/// The content of every message that is not settled.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Messages by chunk.
    live: BTreeMap<u32, u64>,
    messages: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Slot {
    content: Option<Arc<Content>>,
    /// Messages that say this.
    messages: u32,
    size: u32,
}

/// The chunk in a place.
pub(crate) fn chunk_of(place: Place) -> u32 {
    (place.0 >> 32) as u32
}

fn slot_of(place: Place) -> usize {
    (place.0 & u64::from(u32::MAX)) as usize
}

impl Contents {
    /// Keeps content for one message, recorded in this chunk or a later one.
    pub(crate) fn insert(&mut self, content: Arc<Content>, chunk: u32) -> Place {
        let size = u32::try_from(content.size()).unwrap_or(u32::MAX);
        let slot = Slot { content: Some(content), messages: 0, size };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 contents are kept")
            }
        };
        let place = Place(u64::from(chunk) << 32 | u64::from(at));
        self.share(place);
        place
    }

    /// One message more says this.
    pub(crate) fn share(&mut self, place: Place) {
        let slot = &mut self.slots[slot_of(place)];
        slot.messages += 1;
        self.messages += 1;
        self.bytes += u64::from(slot.size);
        *self.live.entry(chunk_of(place)).or_default() += 1;
    }

    /// One message fewer says this.
    pub(crate) fn release(&mut self, place: Place) {
        let slot = &mut self.slots[slot_of(place)];
        assert!(slot.messages > 0, "only what is kept is released");
        slot.messages -= 1;
        self.messages -= 1;
        self.bytes -= u64::from(slot.size);
        if slot.messages == 0 {
            slot.content = None;
            self.free.push(slot_of(place) as u32);
        }
        let live = self.live.get_mut(&chunk_of(place)).expect("a kept message is counted in its chunk");
        *live -= 1;
        if *live == 0 {
            self.live.remove(&chunk_of(place));
        }
    }

    /// What the message says.
    pub(crate) fn get(&self, place: Place) -> &Arc<Content> {
        self.slots[slot_of(place)].content.as_ref().expect("a message's content is kept")
    }

    /// The first chunk that a message needs.
    pub(crate) fn oldest_chunk(&self) -> Option<u32> {
        self.live.first_key_value().map(|(chunk, _)| *chunk)
    }

    /// Messages kept.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Bytes of content kept, each copy counted.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_chunk_is_needed_as_long_as_one_message_of_it_is_left() {
        let mut contents = Contents::default();
        let content = || Arc::new(Content { body: "12345".into(), ..Content::default() });
        let (first, second) = (contents.insert(content(), 3), contents.insert(content(), 5));
        contents.share(first);
        assert_eq!((contents.messages(), contents.bytes(), contents.oldest_chunk()), (3, 15, Some(3)));
        contents.release(first);
        assert_eq!(contents.oldest_chunk(), Some(3));
        contents.release(first);
        assert_eq!(contents.oldest_chunk(), Some(5));
        assert_eq!(contents.get(second).body, "12345");
        contents.release(second);
        assert_eq!((contents.messages(), contents.bytes(), contents.oldest_chunk()), (0, 0, None));
    }
}
