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
use crate::queue::Queue;
use crate::vhosts::Vhost;

/// To free an empty queue takes as long as so many messages.
const QUEUE_PIECES: usize = 8;

/// What is left of queues and virtual hosts, the first to be cleared first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remains {
    heaps: VecDeque<Heap>,
    /// Queues of deleted virtual hosts. Each is a heap in its turn.
    queues: VecDeque<Box<Queue>>,
    /// Names, exchanges and bindings of virtual hosts that were deleted.
    vhosts: VecDeque<Vhost>,
}

/// What is left of one queue: messages, and what found them that is too large to be freed at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap {
    pub(crate) entries: Entries,
    pub(crate) by_seq: SeqIndex,
    /// Of each lane the messages that came back to it.
    pub(crate) returned: Vec<BTreeMap<Seq, Slot>>,
    pub(crate) groups: Option<Box<Groups>>,
    /// Groups of before the settings said something else of keys.
    pub(crate) spent: Vec<Groups>,
}

impl Remains {
    pub(crate) fn add(&mut self, heap: Heap) {
        if !heap.is_clear() {
            self.heaps.push_back(heap);
        }
    }

    /// As [`Remains::add`], of a whole queue: what is left of it is looked for when its turn comes. But what is in segments is given up at once,
    /// since it counts no more.
    pub(crate) fn add_queue(&mut self, queue: Box<Queue>, step: &mut Step) {
        if queue.has_runs() {
            self.add(queue.into_heap(step));
        } else {
            self.queues.push_back(queue);
        }
    }

    pub(crate) fn add_vhost(&mut self, vhost: Vhost) {
        self.vhosts.push_back(vhost);
    }

    fn is_empty(&self) -> bool {
        self.heaps.is_empty() && self.queues.is_empty() && self.vhosts.is_empty()
    }

    fn messages(&self) -> impl Iterator<Item = &Message> {
        let of_heaps = self.heaps.iter().flat_map(|heap| heap.entries.iter());
        // There are no contents here of what is kept elsewhere.
        let whole = self.queues.iter().filter(|queue| !queue.is_remote());
        of_heaps.chain(whole.flat_map(|queue| queue.entries.iter()))
    }

    /// Frees some of it, one piece for each unit of `left`.
    fn clear(&mut self, left: &mut usize, step: &mut Step) {
        while *left > 0 {
            if let Some(heap) = self.heaps.front_mut() {
                heap.clear(left, step);
                if heap.is_clear() {
                    self.heaps.pop_front();
                }
            } else if let Some(queue) = self.queues.pop_front() {
                *left = left.saturating_sub(QUEUE_PIECES);
                self.add(queue.into_heap(step));
            } else if let Some(vhost) = self.vhosts.front_mut() {
                if vhost.pop() {
                    *left -= 1;
                } else {
                    self.vhosts.pop_front();
                }
            } else {
                return;
            }
        }
    }
}

impl Heap {
    fn is_clear(&self) -> bool {
        let Self { entries, by_seq, returned, groups, spent } = self;
        let is_grouped = groups.iter().map(|groups| &**groups).chain(spent).any(|groups| !groups.is_clear());
        entries.is_clear() && by_seq.is_empty() && returned.is_empty() && !is_grouped
    }

    /// Frees some of it, one piece for each unit of `left`. The content of a message is released with it.
    fn clear(&mut self, left: &mut usize, step: &mut Step) {
        while *left > 0
            && let Some(gone) = self.entries.pop()
        {
            *left -= 1;
            let Some((_, message)) = gone else { continue };
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
        for groups in self.groups.iter_mut().map(|groups| &mut **groups).chain(&mut self.spent) {
            groups.clear(left);
        }
    }
}

impl Broker {
    /// Whether something is left in memory of messages that are gone: then [`Broker::clear_remains`] has more to do.
    #[must_use]
    pub fn has_remains(&self) -> bool {
        !self.remains.is_empty()
    }

    /// Frees what is left in memory of messages that are gone all at once: up to so many messages, or as much besides. Their
    /// contents are released.
    pub fn clear_remains(&mut self, most: usize, step: &mut Step) {
        self.remains.clear(&mut { most }, step);
    }

    /// The messages that are gone and of which the content is not released yet.
    pub fn remains(&self) -> impl Iterator<Item = &Message> {
        self.remains.messages()
    }
}
