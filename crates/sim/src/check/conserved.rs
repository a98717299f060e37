//! *Conserved*: in each lane, what came in is there or has left by a door that counts; and gauges are what stands there.

use std::collections::{BTreeMap, BTreeSet};

use overtake_lane::{DEATHS_MAX, LaneView, LastValue, Message, QueueView, State, Time};

use crate::audit::Audit;
use crate::book::{Book, lane_of};
use crate::failure::{Checked, Promise, hold};

/// Ready, delayed, leased, dead, bytes, ready bytes, leased bytes.
type Gauges = [u64; 7];

/// One queue as it shows itself. One that is not ruled yet has the lanes of before.
pub(crate) fn check(book: &Book, audit: &Audit, view: &QueueView, is_ruled: bool) -> Checked {
    let mut standing = standing(book, audit, view);
    if !is_ruled || view.lanes.iter().any(|lane| lane.moving > 0) {
        // What has not moved is told in the lanes of before.
        view.lanes.iter().try_for_each(|lane| check_lane(view, lane))?;
        let sum = |all: &mut dyn Iterator<Item = Gauges>| {
            all.fold(Gauges::default(), |sum, one| std::array::from_fn(|at| sum[at] + one[at]))
        };
        let (shown, counted) = (sum(&mut view.lanes.iter().map(gauges)), sum(&mut standing.into_values()));
        return hold(shown == counted, Promise::Conserved, || {
            format!("{} shows {shown:?} in all, while messages move; there are {counted:?}", view.name)
        });
    }
    for lane in &view.lanes {
        check_lane(view, lane)?;
        let shown = gauges(lane);
        let counted = standing.remove(&i64::from(lane.level)).unwrap_or_default();
        hold(shown == counted, Promise::Conserved, || {
            format!(
                "lane {} of {} shows {shown:?} ready, delayed, leased, dead, bytes, ready bytes, leased bytes; there are {counted:?}",
                lane.lane, view.name
            )
        })?;
    }
    hold(standing.is_empty(), Promise::Conserved, || {
        format!("{} does not show lanes {standing:?}", view.name)
    })
}

fn gauges(lane: &LaneView) -> Gauges {
    let LaneView { ready, delayed, leased, dead, bytes, ready_bytes, leased_bytes, .. } = *lane;
    [ready, delayed, leased, dead, bytes, ready_bytes, leased_bytes]
}

/// Of an id only one message is pending, and of a key only one waits where the newest value is kept: what is over by now, and late, is none.
pub(crate) fn check_once(book: &Book, now: Time, audit: &Audit) -> Checked {
    for (queue, seen) in &audit.queues {
        let last_value = book.settings.get(queue).and_then(|settings| settings.last_value);
        let (mut ids, mut keys) = (BTreeSet::new(), BTreeSet::new());
        let is_pending = |message: &Message| match message.state {
            State::Dead => false,
            State::Leased { .. } => true,
            State::Ready | State::Delayed { .. } => message.expires > now,
        };
        for message in seen.messages.iter().filter(|message| is_pending(message)) {
            let is_new = message.id().is_none_or(|id| ids.insert(id));
            hold(is_new, Promise::Conserved, || {
                format!("{:?} is pending twice in {}", message.id(), seen.name)
            })?;
            let is_leased = book.holds.contains_key(&(*queue, message.seq));
            let key = match last_value {
                Some(LastValue::Key) => message.key().unwrap_or(""),
                _ => "",
            };
            let is_newest = last_value.is_none() || is_leased || keys.insert(key);
            hold(is_newest, Promise::Conserved, || {
                format!("two messages of key {key:?} wait in {}", seen.name)
            })?;
        }
    }
    Ok(())
}

/// Of each message the deaths are told apart, and a dead one has died.
pub(crate) fn check_deaths(audit: &Audit) -> Checked {
    for (queue, message) in audit.messages() {
        let Some(deaths) = message.deaths() else {
            hold(message.state != State::Dead, Promise::Conserved, || {
                format!("message {} of queue {} is dead and never died", message.seq.0, queue.0)
            })?;
            continue;
        };
        let told: BTreeSet<_> = deaths.iter().map(|death| (&death.queue, death.reason as u8)).collect();
        hold(told.len() == deaths.iter().len() && told.len() <= DEATHS_MAX, Promise::Conserved, || {
            format!("message {} of queue {} remembers {deaths:?}", message.seq.0, queue.0)
        })?;
    }
    Ok(())
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
        let gauges = lanes.entry(lane_of(view.effective_settings(), message.priority)).or_default();
        let at = match message.state {
            State::Ready if book.holds.contains_key(&(view.queue, message.seq)) => 2,
            State::Ready => 0,
            State::Delayed { .. } => 1,
            State::Leased { .. } => 2,
            State::Dead => 3,
        };
        gauges[at] += 1;
        let bytes = u64::from(message.bytes);
        gauges[4] += if at == 3 { 0 } else { bytes };
        gauges[5] += if at == 0 { bytes } else { 0 };
        gauges[6] += if at == 2 { bytes } else { 0 };
    }
    lanes
}
