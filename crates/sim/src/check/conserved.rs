//! *Conserved*: in each lane, what came in is there or has left by a door that counts; and gauges are what stands there.

use std::collections::BTreeMap;

use overtake_lane::{LaneView, QueueView, State};

use crate::audit::Audit;
use crate::book::{Book, lane_of};
use crate::failure::{Checked, Promise, hold};

/// Ready, delayed, leased, dead, bytes.
type Gauges = [u64; 5];

/// One queue as it shows itself.
pub(crate) fn check(book: &Book, audit: &Audit, view: &QueueView) -> Checked {
    let mut standing = standing(book, audit, view);
    for lane in &view.lanes {
        check_lane(view, lane)?;
        let shown = [lane.ready, lane.delayed, lane.leased, lane.dead, lane.bytes];
        let counted = standing.remove(&i64::from(lane.level)).unwrap_or_default();
        hold(shown == counted, Promise::Conserved, || {
            format!("lane {} of {} shows {shown:?} ready, delayed, leased, dead, bytes; there are {counted:?}", lane.lane, view.name)
        })?;
    }
    hold(standing.is_empty(), Promise::Conserved, || format!("{} does not show lanes {standing:?}", view.name))
}

fn check_lane(view: &QueueView, lane: &LaneView) -> Checked {
    let there = lane.ready + lane.delayed + lane.leased + lane.dead;
    let left = lane.settled + lane.expired + lane.evicted + lane.removed + lane.moved;
    hold(lane.published == there + left, Promise::Conserved, || {
        let LaneView { lane, published, settled, expired, evicted, removed, moved, .. } = lane;
        format!(
            "lane {lane} of {}: published {published}, there {there}, settled {settled}, expired {expired}, \
             evicted {evicted}, removed {removed}, moved {moved}",
            view.name
        )
    })
}

fn standing(book: &Book, audit: &Audit, view: &QueueView) -> BTreeMap<i64, Gauges> {
    let mut lanes: BTreeMap<i64, Gauges> = BTreeMap::new();
    let messages = audit.queues.get(&view.queue).map_or(&[][..], |seen| &seen.messages);
    for message in messages {
        let gauges = lanes.entry(lane_of(&view.settings, message.priority)).or_default();
        let at = match message.state {
            State::Ready if book.holds.contains_key(&(view.queue, message.seq)) => 2,
            State::Ready => 0,
            State::Delayed { .. } => 1,
            State::Leased { .. } => 2,
            State::Dead => 3,
        };
        gauges[at] += 1;
        gauges[4] += if at == 3 { 0 } else { u64::from(message.bytes) };
    }
    lanes
}
