//! A forwarder as it stands, for people and for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::Time;

use crate::throughput::{Recent, Throughput};

/// Most lanes that are counted; beyond that the one that was quiet longest is forgotten.
const LANES_MAX: usize = 256;

/// What an endpoint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It tries to connect.
    Connecting,
    /// It is connected, and there is nothing to send.
    Idle,
    /// It sends.
    Sending,
    /// It is connected, and waits for its rate or for the next day.
    Waiting,
    /// It is not connected, and waits for the next attempt.
    Down,
    /// It sends nothing until it is resumed.
    Paused,
}

/// A forwarder as it stands.
#[derive(Clone, Debug)]
pub struct ForwarderView {
    /// What it does.
    pub state: State,
    /// Connections there are.
    pub connections: usize,
    /// When it does something again by itself, if it waits.
    pub next_attempt: Option<Time>,
    /// What went wrong last, and when.
    pub last_error: Option<(Time, Arc<str>)>,
    /// What was done, by lane.
    pub lanes: BTreeMap<Arc<str>, LaneCounts>,
    /// Lanes that failed lately.
    pub breakers: BTreeMap<Arc<str>, BreakerView>,
    /// What of a day is used, if there is a limit.
    pub budget: Option<BudgetView>,
}

/// A lane that failed lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerView {
    /// Failures in a row.
    pub failures: u32,
    /// Nothing of it is sent until then. `None`: it is closed.
    pub open_until: Option<Time>,
}

/// What of a day is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetView {
    /// Bytes of the day that went.
    pub used_bytes: u64,
    /// Bytes there are in a day.
    pub daily_bytes: u64,
    /// Of those the last so many are for urgent messages.
    pub reserve_bytes: u64,
}

/// What became of the messages of a lane, since the endpoint is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// The receiver has them.
    pub sent: u64,
    /// Bytes of those over the line.
    pub sent_bytes: u64,
    /// Failed, and tried again later.
    pub failed: u64,
    /// Refused for good.
    pub refused: u64,
    /// Over before they were sent.
    pub expired: u64,
    /// Put back: the connection was lost, something more urgent came, or the receiver was busy.
    pub put_back: u64,
    /// On their way.
    pub in_flight: u64,
    /// When the last one was accepted.
    pub last_sent: Option<Time>,
    /// How many go lately.
    pub throughput: Throughput,
}

/// The counts of all lanes, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    all: BTreeMap<Arc<str>, Counted>,
}

#[derive(Clone, Debug, Default)]
struct Counted {
    /// When it was touched.
    at: Time,
    counts: LaneCounts,
    recent: Recent,
}

impl Counts {
    pub(crate) fn of(&mut self, now: Time, lane: &Arc<str>) -> &mut LaneCounts {
        if self.all.len() >= LANES_MAX && !self.all.contains_key(lane) {
            let idle = self.all.iter().filter(|(_, lane)| lane.counts.in_flight == 0);
            if let Some(oldest) = idle.min_by_key(|(_, lane)| lane.at).map(|(lane, _)| Arc::clone(lane)) {
                self.all.remove(&oldest);
            }
        }
        let counted = self.all.entry(Arc::clone(lane)).or_default();
        counted.at = now;
        &mut counted.counts
    }

    /// A message was accepted, for so many bytes over the line.
    pub(crate) fn sent(&mut self, now: Time, lane: &Arc<str>, bytes: u64) {
        let counts = self.of(now, lane);
        (counts.sent, counts.sent_bytes) = (counts.sent + 1, counts.sent_bytes + bytes);
        counts.last_sent = Some(now);
        if let Some(counted) = self.all.get_mut(lane) {
            counted.recent.accepted(now, bytes);
        }
    }

    pub(crate) fn view(&self, now: Time) -> BTreeMap<Arc<str>, LaneCounts> {
        let of =
            |counted: &Counted| LaneCounts { throughput: counted.recent.throughput(now), ..counted.counts };
        self.all.iter().map(|(lane, counted)| (Arc::clone(lane), of(counted))).collect()
    }

    /// Lanes that are counted.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.all.keys()
    }
}
