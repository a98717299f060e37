//! A category as it is now: its groups, and of each how far it is in each lane.

use std::sync::Arc;

use overtake_lane::{LaneView, PriorityLanes, QueueView, StreamLane};

/// A category.
#[derive(Clone, Debug)]
pub struct CategoryView {
    /// Its name, that of its exchange.
    pub name: Arc<str>,
    /// Its groups, by name.
    pub groups: Vec<GroupView>,
}

/// A group of consumers.
#[derive(Clone, Debug)]
pub struct GroupView {
    /// Its name.
    pub name: String,
    /// Its queue.
    pub queue: QueueView,
    /// Its streams, the most urgent first.
    pub streams: Vec<StreamView>,
}

/// What a group has yet to do of one lane of a category: its lag.
#[derive(Clone, Debug)]
pub struct StreamView {
    /// What the lane is called: `customer`, `customer:backfill`.
    pub stream: String,
    /// What its dead letters are called: `customer:dlq`, `customer:backfill:dlq`.
    pub dead_letters: String,
    /// The lane of the queue.
    pub lane: LaneView,
}

impl GroupView {
    pub(crate) fn of(lanes: &PriorityLanes, category: &str, group: &str, queue: QueueView) -> Self {
        let mut all = queue.lanes.clone();
        let usual: &[StreamLane] = if lanes.is_enabled() { lanes.all() } else { &[] };
        for name in usual.iter().map(|lane| lane.name()) {
            // Of lanes that hold nothing a queue says nothing.
            if !all.iter().any(|lane| &*lane.lane == name) {
                all.push(LaneView { lane: Arc::from(name), ..LaneView::default() });
            }
        }
        all.sort_by_key(|lane| usual.iter().position(|one| one.name() == &*lane.lane).unwrap_or(usual.len()));
        let streams = all.into_iter().map(|lane| {
            let is_backfill = *lane.lane == *StreamLane::Backfill.name();
            let of = if is_backfill { StreamLane::Backfill } else { StreamLane::Primary };
            let stream = lanes.stream(category, of);
            StreamView { dead_letters: PriorityLanes::dead_letters_of(&stream), stream, lane }
        });
        Self { name: group.to_owned(), streams: streams.collect(), queue }
    }
}
