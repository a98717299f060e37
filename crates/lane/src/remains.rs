//! What is left in memory of messages that are gone all at once, with their queue or by a purge: it is given back a few messages at a time.
//!
//! ```text
//!   delete, purge ─▶ one fact, the messages are gone ─▶ Remains ─▶ Broker::clear_remains ─▶ Released, Released, ...
//! ```
//!
//! Nobody sees what is here, and no fact is about it: a broker that stops loses nothing with it. Invariant: of each message
//! that is here the content is still held, once.

use std::collections::{BTreeMap, VecDeque};

use crate::broker::Broker;
use crate::command::{Effect, Step};
use crate::entries::{Entries, Slot};
use crate::groups::Groups;
use crate::ids::Seq;
use crate::index::SeqIndex;
use crate::message::Message;

/// What is left of queues, the first to be cleared first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remains(VecDeque<Heap>);

/// What is left of one queue: messages, and what found them that is too large to be freed at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap {
    pub(crate) entries: Entries,
    pub(crate) by_seq: SeqIndex,
    /// Of each lane the messages that came back to it.
    pub(crate) returned: Vec<BTreeMap<Seq, Slot>>,
    pub(crate) groups: Option<Box<Groups>>,
}

impl Remains {
    pub(crate) fn add(&mut self, heap: Heap) {
        if !heap.is_clear() {
            self.0.push_back(heap);
        }
    }

    fn messages(&self) -> impl Iterator<Item = &Message> {
        self.0.iter().flat_map(|heap| heap.entries.iter())
    }
}

impl Heap {
    fn is_clear(&self) -> bool {
        let Self { entries, by_seq, returned, groups } = self;
        let is_grouped = groups.as_ref().is_some_and(|groups| !groups.is_clear());
        entries.is_clear() && by_seq.is_empty() && returned.is_empty() && !is_grouped
    }

    /// Frees some of it, one piece for each unit of `left`. The content of a message is released with it.
    fn clear(&mut self, left: &mut usize, step: &mut Step) {
        while *left > 0
            && let Some(gone) = self.entries.pop()
        {
            *left -= 1;
            let Some((lane, message)) = gone else { continue };
            if let Some(groups) = &mut self.groups {
                groups.drop_member(message.key(), lane, message.seq);
            }
            step.effects.push(Effect::Released(message.place));
        }
        while *left > 0 && self.by_seq.pop_page() {
            *left -= 1;
        }
        while *left > 0
            && let Some(returned) = self.returned.last_mut()
        {
            *left -= 1;
            if returned.pop_first().is_none() {
                self.returned.pop();
            }
        }
        if let Some(groups) = &mut self.groups {
            while *left > 0 && groups.pop() {
                *left -= 1;
            }
        }
    }
}

impl Broker {
    /// Whether something is left in memory of messages that are gone: then [`Broker::clear_remains`] has more to do.
    #[must_use]
    pub fn has_remains(&self) -> bool {
        !self.remains.0.is_empty()
    }

    /// Frees what is left in memory of messages that are gone all at once: up to so many messages, or as much besides. Their
    /// contents are released.
    pub fn clear_remains(&mut self, most: usize, step: &mut Step) {
        let mut left = most;
        while left > 0
            && let Some(heap) = self.remains.0.front_mut()
        {
            heap.clear(&mut left, step);
            if heap.is_clear() {
                self.remains.0.pop_front();
            }
        }
    }

    /// The messages that are gone and of which the content is not released yet.
    pub fn remains(&self) -> impl Iterator<Item = &Message> {
        self.remains.messages()
    }
}
