//! The bytes of messages that were pushed to consumers, and which their connections have not taken yet.
//!
//! A window counts messages, whatever their size. So each connection has a window of bytes too, its *feed*, which all its consumers share
//! over all queues: a consumer whose feed has no room is leased nothing more until the connection has taken some bytes. Messages that wait
//! for it stay ready, where a more urgent one may still go ahead of them.
//!
//! A message is leased while its feed has any room, so that one that is larger than the window goes through. Invariant: a consumer is in
//! `held_back` only while its feed has no room, or until the step ends that made room.

use std::collections::{BTreeMap, VecDeque};

use crate::ids::{ConsumerId, FeedId, QueueId};

/// Bytes that a pushed message takes beside its content, about.
const PUSH_BYTES: u64 = 128;
/// The consumers that get their turn together when a feed has room again.
const RESUMED_AT_ONCE: usize = 16;

/// The most bytes that may be pushed and not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushLimits {
    /// To one connection; 0: no limit.
    pub feed: u64,
    /// To all connections; 0: no limit. Beyond it a quarter of `feed` is left to each connection, so that those who read go on.
    pub all: u64,
}

/// Every feed of which something is not taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pushes {
    limits: PushLimits,
    feeds: BTreeMap<FeedId, Feed>,
    bytes: u64,
    /// How often a consumer was held back.
    waits: u64,
}

#[derive(Clone, Debug, Default)]
struct Feed {
    bytes: u64,
    /// The consumers that were due and had to wait, the first one first.
    held_back: VecDeque<(QueueId, ConsumerId)>,
}

/// Bytes that are pushed and not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushedView {
    /// The bytes.
    pub bytes: u64,
    /// The most there may be, about; 0: no limit.
    pub limit: u64,
    /// How often a consumer had to wait for its connection to take some.
    pub waits: u64,
}

/// Bytes that a message of this size counts for while it is pushed and not taken.
#[must_use]
pub fn pushed_bytes(size: u64) -> u64 {
    size + PUSH_BYTES
}

impl Pushes {
    pub(crate) fn new(limits: PushLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    pub(crate) fn view(&self) -> PushedView {
        PushedView { bytes: self.bytes, limit: self.limits.all, waits: self.waits }
    }

    /// Counts a message of this size that a consumer is about to get. False: the consumer has to wait instead.
    pub(crate) fn push(&mut self, feed: FeedId, to: (QueueId, ConsumerId), size: u32) -> bool {
        if self.limits.feed == 0 {
            return true;
        }
        let bytes = pushed_bytes(u64::from(size));
        let has_room = self.has_room(feed);
        let feed = self.feeds.entry(feed).or_default();
        if has_room {
            feed.bytes += bytes;
            self.bytes += bytes;
        } else {
            feed.held_back.push_back(to);
            self.waits += 1;
        }
        has_room
    }

    fn has_room(&self, feed: FeedId) -> bool {
        let bytes = self.feeds.get(&feed).map_or(0, |feed| feed.bytes);
        let is_within = self.limits.all == 0 || self.bytes < self.limits.all;
        bytes < if is_within { self.limits.feed } else { self.limits.feed / 4 }
    }

    /// A connection has taken so many bytes.
    pub(crate) fn taken(&mut self, id: FeedId, bytes: u64) {
        let Some(feed) = self.feeds.get_mut(&id) else { return };
        let bytes = bytes.min(feed.bytes);
        feed.bytes -= bytes;
        self.bytes -= bytes;
        self.forget_idle(id);
    }

    /// A connection is gone. The consumers that it still has are leased to without a window of bytes.
    pub(crate) fn end(&mut self, id: FeedId) -> Vec<(QueueId, ConsumerId)> {
        let Some(feed) = self.feeds.remove(&id) else { return Vec::new() };
        self.bytes -= feed.bytes;
        feed.held_back.into()
    }

    /// Some consumers that were held back and whose feed has room now; none if there are none.
    pub(crate) fn resume_some(&mut self, hint: FeedId) -> Vec<(QueueId, ConsumerId)> {
        let waits =
            |(id, feed): (&FeedId, &Feed)| (!feed.held_back.is_empty() && self.has_room(*id)).then_some(*id);
        let own = self.feeds.get_key_value(&hint).and_then(waits);
        // Those of other connections wait on only where there is too much of all.
        let Some(id) = own.or_else(|| self.feeds.iter().find_map(waits)) else { return Vec::new() };
        let held_back = &mut self.feeds.get_mut(&id).expect("it was just found").held_back;
        let resumed = held_back.drain(..held_back.len().min(RESUMED_AT_ONCE)).collect();
        self.forget_idle(id);
        resumed
    }

    fn forget_idle(&mut self, id: FeedId) {
        if self.feeds.get(&id).is_some_and(|feed| feed.bytes == 0 && feed.held_back.is_empty()) {
            self.feeds.remove(&id);
        }
    }
}
