//! Windows that several consumers of one session share, over any queues.
//!
//! Each queue counts what its own consumers hold of a window and is told what those elsewhere hold, so that its roster can say
//! by itself who has room. Whenever one has changed the broker tells the others.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{QueueId, SessionId, WindowId};

/// What one queue knows of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Most messages that all hold together; 0: no limit.
    pub(crate) size: u32,
    /// Held by consumers of this queue.
    pub(crate) here: u32,
    /// Held by consumers of other queues.
    pub(crate) elsewhere: u32,
    /// Who shares it here.
    pub(crate) takers: u32,
}

impl Share {
    /// Whether one more fits, with so much extra.
    pub(crate) fn has_room(&self, extra: u32) -> bool {
        self.size == 0 || self.here + self.elsewhere < self.size.saturating_add(extra)
    }
}

#[derive(Clone, Debug, Default)]
struct Window {
    size: u32,
    /// What is held in each queue where somebody shares it.
    queues: BTreeMap<QueueId, u32>,
    /// The queue that got something last: the others come before it.
    last: Option<QueueId>,
}

impl Window {
    fn held(&self) -> u32 {
        self.queues.values().sum()
    }
}

/// The windows of a queue, by number.
fn of_queue(all: &BTreeSet<(QueueId, WindowId)>, queue: QueueId) -> impl Iterator<Item = WindowId> + '_ {
    let least = WindowId { session: SessionId(0), number: 0 };
    all.range((queue, least)..).take_while(move |(other, _)| *other == queue).map(|(_, id)| *id)
}

/// All windows that are shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows {
    all: BTreeMap<WindowId, Window>,
    /// The windows that are shared in each queue: other connections' windows are never looked through.
    of_queue: BTreeSet<(QueueId, WindowId)>,
    /// The windows among them that are shared in another queue, too. Most windows are not.
    across: BTreeSet<(QueueId, WindowId)>,
}

impl Windows {
    /// Sets a size. Answers the queues where it is shared.
    pub(crate) fn set(&mut self, id: WindowId, size: u32) -> Vec<QueueId> {
        let window = self.all.entry(id).or_default();
        window.size = size;
        let queues = window.queues.keys().copied().collect();
        self.forget_idle(id);
        queues
    }

    /// Somebody shares a window in a queue.
    pub(crate) fn join(&mut self, id: WindowId, queue: QueueId) {
        self.all.entry(id).or_default().queues.entry(queue).or_insert(0);
        self.joined(id, queue);
    }

    /// A queue shares a window.
    fn joined(&mut self, id: WindowId, queue: QueueId) {
        if !self.of_queue.insert((queue, id)) {
            return;
        }
        let queues = &self.all[&id].queues;
        match queues.len() {
            1 => {}
            2 => self.across.extend(queues.keys().map(|queue| (*queue, id))),
            _ => drop(self.across.insert((queue, id))),
        }
    }

    /// A queue shares a window no more.
    fn left(&mut self, id: WindowId, queue: QueueId) {
        self.of_queue.remove(&(queue, id));
        self.across.remove(&(queue, id));
        let queues = self.all.get(&id).map(|window| &window.queues);
        if let Some((last, _)) = queues.filter(|queues| queues.len() == 1).and_then(BTreeMap::first_key_value)
        {
            self.across.remove(&(*last, id));
        }
    }

    /// The size of a window and what is held of it outside a queue.
    pub(crate) fn outside(&self, id: WindowId, queue: QueueId) -> (u32, u32) {
        let Some(window) = self.all.get(&id) else { return (0, 0) };
        (window.size, window.held() - window.queues.get(&queue).copied().unwrap_or(0))
    }

    /// What a queue knows of a window now. Answers the other queues that must be told.
    pub(crate) fn tell(&mut self, id: WindowId, queue: QueueId, share: &Share) -> Vec<QueueId> {
        let Some(window) = self.all.get_mut(&id) else { return Vec::new() };
        let before = window.queues.insert(queue, share.here).unwrap_or(0);
        if share.here > before {
            window.last = Some(queue);
        }
        let others = window.queues.keys().copied().filter(|other| *other != queue && share.here != before);
        let others = others.collect();
        if share.takers == 0 {
            window.queues.remove(&queue);
            self.left(id, queue);
            self.forget_idle(id);
        } else {
            self.joined(id, queue);
        }
        others
    }

    /// A queue is gone. Answers each window that it shared, with the other queues there.
    pub(crate) fn forget_queue(&mut self, queue: QueueId) -> Vec<(WindowId, Vec<QueueId>)> {
        let shared: Vec<WindowId> = of_queue(&self.of_queue, queue).collect();
        let forget = |id: WindowId| {
            let window = self.all.get_mut(&id).expect("a window that is shared in a queue is there");
            window.queues.remove(&queue);
            let others = window.queues.keys().copied().collect();
            self.left(id, queue);
            self.forget_idle(id);
            (id, others)
        };
        shared.into_iter().map(forget).collect()
    }

    /// The session is over: nobody shares its windows any more.
    pub(crate) fn end(&mut self, session: SessionId) {
        let of_it = WindowId { session, number: 0 }..=WindowId { session, number: u32::MAX };
        while let Some(id) = self.all.range(of_it.clone()).next().map(|(id, _)| *id) {
            let window = self.all.remove(&id).expect("it was just found");
            for queue in window.queues.into_keys() {
                self.of_queue.remove(&(queue, id));
                self.across.remove(&(queue, id));
            }
        }
    }

    /// The queues that share windows with this one, and itself, in the order in which room is given to them: whoever got
    /// something last comes last.
    pub(crate) fn turns(&self, queue: QueueId) -> Vec<QueueId> {
        let mut turns: Vec<QueueId> = Vec::new();
        for window in of_queue(&self.across, queue).map(|id| &self.all[&id]) {
            let last = window.last.unwrap_or(QueueId(u32::MAX));
            let queues: BTreeSet<QueueId> = window.queues.keys().copied().collect();
            let after = queues.iter().filter(|other| **other > last);
            let before = queues.iter().filter(|other| **other <= last);
            let new: Vec<QueueId> =
                after.chain(before).copied().filter(|other| !turns.contains(other)).collect();
            turns.extend(new);
        }
        if !turns.contains(&queue) {
            turns.push(queue);
        }
        turns
    }

    /// One of no limit in which nobody has a share is as one that was never set.
    fn forget_idle(&mut self, id: WindowId) {
        if self.all.get(&id).is_some_and(|window| window.size == 0 && window.queues.is_empty()) {
            self.all.remove(&id);
        }
    }
}
