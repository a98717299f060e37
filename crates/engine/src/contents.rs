//! What messages say, in memory, and which part of the journal is still needed for it.
//!
//! A place names a slot here and the *chunk* of the journal at or before the one that holds the message's record. A chunk that
//! no place names and none before it does is needed by no message here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use overtake_lane::Place;

use crate::api::Content;
use crate::place::Where;

/// The content of every message that is in memory. Behind a lock, since the broker reads how a message was published when it
/// dies; both are on one thread, so nobody ever waits.
#[derive(Debug, Default)]
pub(crate) struct Contents(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Messages by chunk.
    live: BTreeMap<u32, u64>,
    messages: u64,
    bytes: u64,
    route_bytes: u64,
}

#[derive(Debug)]
struct Slot {
    content: Option<Arc<Content>>,
    /// Messages that say this.
    messages: u32,
    size: u32,
    route_size: u32,
}

impl Contents {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().expect("nobody panics while holding it")
    }

    /// Keeps content for one message, recorded in this chunk or a later one.
    pub(crate) fn insert(&self, content: Arc<Content>, chunk: u32) -> Place {
        self.kept().insert(content, chunk)
    }

    /// One message more says this.
    pub(crate) fn share(&self, chunk: u32, slot: u32) {
        self.kept().share(chunk, slot);
    }

    /// Counts one message fewer for this content. Returns the content once no message has it, for the caller to free: freeing takes longer than all the rest.
    pub(crate) fn release(&self, chunk: u32, at: u32) -> Option<Arc<Content>> {
        self.kept().release(chunk, at)
    }

    /// Appends what the message says, in the bytes in which it is stored.
    pub(crate) fn encode(&self, slot: u32, out: &mut Vec<u8>) {
        let kept = self.kept();
        kept.slots[slot as usize].content.as_ref().expect("a message's content is kept").encode(out);
    }

    /// What the message says.
    pub(crate) fn get(&self, slot: u32) -> Arc<Content> {
        let kept = self.kept();
        Arc::clone(kept.slots[slot as usize].content.as_ref().expect("a message's content is kept"))
    }

    /// The first chunk that a message needs.
    pub(crate) fn oldest_chunk(&self) -> Option<u32> {
        self.kept().live.first_key_value().map(|(chunk, _)| *chunk)
    }

    /// Messages kept.
    pub(crate) fn messages(&self) -> u64 {
        self.kept().messages
    }

    /// Bytes of content kept, each copy counted, as limits count them.
    pub(crate) fn bytes(&self) -> u64 {
        self.kept().bytes
    }

    /// Bytes that they and the routes by which they were published take, each copy counted.
    pub(crate) fn cost(&self) -> u64 {
        let kept = self.kept();
        kept.bytes + kept.route_bytes
    }
}

impl Kept {
    fn insert(&mut self, content: Arc<Content>, chunk: u32) -> Place {
        let fitting = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        let (size, route_size) = (fitting(content.size()), fitting(content.route.size()));
        let slot = Slot { content: Some(content), messages: 0, size, route_size };
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
        self.share(chunk, at);
        Where::Here { chunk, slot: at }.place()
    }

    fn share(&mut self, chunk: u32, slot: u32) {
        let slot = &mut self.slots[slot as usize];
        slot.messages += 1;
        self.messages += 1;
        self.bytes += u64::from(slot.size);
        self.route_bytes += u64::from(slot.route_size);
        *self.live.entry(chunk).or_default() += 1;
    }

    fn release(&mut self, chunk: u32, at: u32) -> Option<Arc<Content>> {
        let slot = &mut self.slots[at as usize];
        assert!(slot.messages > 0, "only what is kept is released");
        slot.messages -= 1;
        self.messages -= 1;
        self.bytes -= u64::from(slot.size);
        self.route_bytes -= u64::from(slot.route_size);
        let content = slot.content.take_if(|_| slot.messages == 0);
        if content.is_some() {
            self.free.push(at);
        }
        let live = self.live.get_mut(&chunk).expect("a kept message is counted in its chunk");
        *live -= 1;
        if *live == 0 {
            self.live.remove(&chunk);
        }
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_chunk_is_needed_as_long_as_one_message_of_it_is_left() {
        let contents = Contents::default();
        let content = || Arc::new(Content { body: "12345".into(), ..Content::default() });
        let insert = |chunk| match Where::of(contents.insert(content(), chunk)) {
            Where::Here { chunk, slot } => (chunk, slot),
            Where::Shelf { .. } => unreachable!("it is in memory"),
        };
        let (first, second) = (insert(3), insert(5));
        contents.share(first.0, first.1);
        assert_eq!((contents.messages(), contents.bytes(), contents.oldest_chunk()), (3, 15, Some(3)));
        contents.release(first.0, first.1);
        assert_eq!(contents.oldest_chunk(), Some(3));
        contents.release(first.0, first.1);
        assert_eq!(contents.oldest_chunk(), Some(5));
        assert_eq!(contents.get(second.1).body, "12345");
        contents.release(second.0, second.1);
        assert_eq!((contents.messages(), contents.bytes(), contents.oldest_chunk()), (0, 0, None));
    }
}
