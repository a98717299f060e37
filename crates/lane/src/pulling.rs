//! A pull, and one that goes on: how much it still takes, and from which lanes.

use std::sync::Arc;

use crate::bitmap::Bitmap;
use crate::entries::List;
use crate::ids::{ConsumerId, Time};
use crate::lane::{Lane, Lanes};
use crate::priority::Priority;
use crate::roster::{Terms, Want};

/// One request for messages.
#[derive(Clone, Debug)]
pub struct Pull {
    /// Its name for deliveries and [`Effect::Served`](crate::Effect::Served).
    pub consumer: ConsumerId,
    /// The queue.
    pub queue: Arc<str>,
    /// Most messages.
    pub max: u32,
    /// Most bytes of content, but one message at least; 0: no limit.
    pub max_bytes: u64,
    /// How long the leases last.
    pub term: LeaseTerm,
    /// Which lanes it takes from.
    pub lanes: LaneChoice,
    /// Wait until then if there is nothing.
    pub until: Time,
}

/// How long the leases of a pull last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseTerm {
    /// As its queue says (`visibility_timeout_ms`).
    #[default]
    OfQueue,
    /// So long, ms; 0: no end by itself.
    Ms(u64),
    /// As long as the session of whoever pulls, and no longer than this life of the broker: what a crash interrupts is ready at once after
    /// it, at its place. Until `consumer_timeout_ms` of the queue, as what a consumer holds.
    Session,
}

/// Which lanes a pull takes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneChoice {
    /// No lane that takes a less urgent priority than this.
    pub at_least: Priority,
    /// No lane of these names.
    pub except: Arc<[Arc<str>]>,
    /// Only one: it has enough where another lane goes next.
    pub one: bool,
}

impl Default for LaneChoice {
    fn default() -> Self {
        Self { at_least: Priority(i32::MIN), except: Arc::default(), one: false }
    }
}

/// What a pull has still to take.
#[derive(Clone, Debug)]
pub(crate) struct Pulling {
    left: u32,
    left_bytes: u64,
    /// The lane it took from last.
    taken: Option<u16>,
    lanes: LaneChoice,
    pub(crate) term: LeaseTerm,
    pub(crate) until: Time,
    /// What it holds, if its leases end with its session.
    pub(crate) held: List,
}

impl Pulling {
    pub(crate) fn new(pull: &Pull) -> Self {
        let Pull { max, max_bytes, term, until, ref lanes, .. } = *pull;
        let left_bytes = if max_bytes == 0 { u64::MAX } else { max_bytes };
        Self { left: max, left_bytes, taken: None, lanes: lanes.clone(), term, until, held: List::default() }
    }

    /// It got a message of so many bytes from this lane.
    pub(crate) fn take(&mut self, lane: u16, bytes: u32) {
        self.left -= 1;
        self.left_bytes = self.left_bytes.saturating_sub(u64::from(bytes));
        self.taken = Some(lane);
    }

    /// Whether a message of so many bytes from this lane is too much, since it has something already.
    pub(crate) fn has_enough(&self, lane: u16, bytes: u32) -> bool {
        self.taken.is_some_and(|last| u64::from(bytes) > self.left_bytes || (self.lanes.one && last != lane))
    }

    /// It takes nothing more.
    pub(crate) fn stop(&mut self) {
        self.left = 0;
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Whether there are lanes it takes nothing from, however it goes on.
    pub(crate) fn is_choosy(&self) -> bool {
        self.lanes.at_least != LaneChoice::default().at_least || !self.lanes.except.is_empty()
    }

    /// Whether it takes from a lane.
    pub(crate) fn takes(&self, lane: &Lane) -> bool {
        lane.floor >= self.lanes.at_least.0 && !self.lanes.except.contains(&lane.name)
    }

    /// What it takes, on these terms. Of one message neither how large it is matters nor what it comes after: so it can be asked for together with those of others.
    pub(crate) fn want(&self, terms: Terms) -> Want {
        let is_first = self.left == 1 && self.taken.is_none();
        let max_bytes = if is_first || self.left_bytes == u64::MAX { 0 } else { self.left_bytes };
        let choice = LaneChoice { one: self.lanes.one && !is_first, ..self.lanes.clone() };
        Want { max: self.left, max_bytes, terms, choice }
    }

    /// The lanes with ready messages that it takes from, by rank.
    pub(crate) fn choice(&self, lanes: &Lanes) -> Bitmap {
        let mut choice = lanes.ready().below(lanes.rank_below(self.lanes.at_least));
        for rank in choice.iter() {
            choice.set(rank, self.takes(lanes.at_rank(rank)));
        }
        choice
    }
}
