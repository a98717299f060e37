//! What is durable about one message, but for its content.

use std::sync::Arc;

use crate::deaths::{Death, Deaths};
use crate::ids::{LeaseId, Place, QueueId, Seq, Time};
use crate::priority::{Original, Priority};
use crate::progress::WorkNotes;
use crate::record::{Attempt, Attempts, Ending, Record, Report, Work};

/// A message as the store keeps it and a recovery finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its place in the order of publishing.
    pub seq: Seq,
    /// How urgent it is.
    pub priority: Priority,
    /// The priority as it came.
    pub original: Original,
    /// When it was published.
    pub since: Time,
    /// From when it is never delivered any more; [`Time::NEVER`] if it does not expire.
    pub expires: Time,
    /// Bytes of content, for limits and gauges.
    pub bytes: u32,
    /// How often the message was leased, releases not counted.
    pub count: u32,
    /// Where its content is. Not durable: a recovery gives it anew.
    pub place: Place,
    /// Where in its life it stands.
    pub state: State,
    /// What few messages have.
    pub extras: Option<Box<Extras>>,
}

/// What few messages have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The id its publisher gave it, unique among the pending messages of the queue.
    pub id: Option<Box<str>>,
    /// The key: of last-value queues, filters and turns.
    pub key: Option<Box<str>>,
    /// The weight that its publisher gave its key.
    pub key_weight: Option<u32>,
    /// Where it died, if it ever did.
    pub deaths: Option<Arc<Deaths>>,
    /// The work that goes on, while it is leased.
    pub work: Option<Box<Work>>,
    /// How the work on it went, once that is over.
    pub record: Option<Arc<Record>>,
    /// The attempts at the work on it that did not end it.
    pub attempts: Option<Arc<Attempts>>,
}

/// Where in its life a message stands. Settled ones are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In its lane.
    Ready,
    /// Out of the lanes until due.
    Delayed {
        /// When it is ready.
        due: Time,
    },
    /// Lent to a consumer by a pull; survives a restart.
    Leased {
        /// The lease.
        lease: LeaseId,
        /// When it ends; [`Time::NEVER`]: not by itself.
        deadline: Time,
    },
    /// A dead letter.
    Dead,
}

impl State {
    /// The word for it on every wire.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Ready => Status::Ready,
            Self::Delayed { .. } => Status::Delayed,
            Self::Leased { .. } => Status::Leased,
            Self::Dead => Status::Dead,
        }
    }
}

/// [`State`] without its particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// In its lane.
    Ready,
    /// Out of the lanes until due.
    Delayed,
    /// Lent to a consumer.
    Leased,
    /// A dead letter.
    Dead,
}

/// How a message left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// Acknowledged.
    Acked,
    /// Rejected or out of attempts, where dead letters are dropped.
    Dropped,
    /// Its time to live was over.
    Expired,
    /// The queue was full and it was the least urgent.
    Evicted,
    /// Removed by id or filter, or purged.
    Removed,
    /// A newer message of a last-value queue took its place.
    Replaced,
}

/// Why a lease ended without settling its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// The consumer failed: nack.
    Failed,
    /// The lease ran out.
    Expired,
    /// The consumer went away with it.
    Lost,
    /// The consumer, or the broker for its own reasons, gave it back untouched.
    Released,
}

impl PutBack {
    /// Whether the lease counts as a delivery: towards `delivery_limit`, and for the backoff that the message then waits.
    #[must_use]
    pub fn is_attempt(self) -> bool {
        self != Self::Released
    }

    /// How the attempt ended.
    pub(crate) fn ending(self) -> Ending {
        match self {
            Self::Failed | Self::Lost | Self::Released => Ending::Failed,
            Self::Expired => Ending::LeaseExpired,
        }
    }

    /// The error of the attempt, unless its consumer reported one.
    pub(crate) fn error(self) -> &'static str {
        match self {
            Self::Failed => "negatively acknowledged",
            Self::Expired => "the lease ran out",
            Self::Lost => "the consumer went away",
            Self::Released => "released",
        }
    }
}

impl Message {
    /// The id its publisher gave it.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.extras.as_deref().and_then(|extras| extras.id.as_deref())
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.extras.as_deref().and_then(|extras| extras.key.as_deref())
    }

    /// The weight that its publisher gave its key.
    #[must_use]
    pub fn key_weight(&self) -> Option<u32> {
        self.extras.as_deref().and_then(|extras| extras.key_weight)
    }

    /// Every death of it that is remembered, if it ever died.
    #[must_use]
    pub fn deaths(&self) -> Option<&Deaths> {
        self.extras.as_deref().and_then(|extras| extras.deaths.as_deref())
    }

    /// Where it died last, if it ever did.
    #[must_use]
    pub fn death(&self) -> Option<&Death> {
        self.deaths().map(Deaths::last)
    }

    /// The work on it that goes on.
    #[must_use]
    pub fn work(&self) -> Option<&Work> {
        self.extras.as_deref().and_then(|extras| extras.work.as_deref())
    }

    /// How the work on it went.
    #[must_use]
    pub fn record(&self) -> Option<&Arc<Record>> {
        self.extras.as_deref().and_then(|extras| extras.record.as_ref())
    }

    /// The attempts at the work on it that did not end it, as far as they are remembered.
    #[must_use]
    pub fn attempts(&self) -> Option<&Arc<Attempts>> {
        self.extras.as_deref().and_then(|extras| extras.attempts.as_ref())
    }

    /// Its attempts with the one that ends now, with `error` where the report says none and the output reported so far where it has none,
    /// if the store has room for them, of which they then take their part. `None`: it has not; or nobody reported anything and the queue
    /// does not note when work is begun, so that attempts are only counted.
    pub(crate) fn attempts_after(
        &self,
        ending: Ending,
        finished: Time,
        report: &Report,
        error: &str,
        notes: &mut WorkNotes,
    ) -> Option<Arc<Attempts>> {
        let started = self.work().map(|work| work.started);
        let report = notes.complete(self, report);
        if started.is_none() && report.is_empty() {
            return None;
        }
        let last = Attempt { ending, started, finished, report: report.or_error(error) };
        let attempts = Arc::new(Attempts::another(self.attempts().map(|before| &**before), last));
        notes.room = notes.room.checked_sub(attempts.size())?;
        Some(attempts)
    }

    /// The work on it, of which this is the record, is to be done again: the record becomes an attempt.
    pub fn try_again(&mut self, record: &Record) {
        if let Some(last) = record.attempt() {
            let extras = self.extras.get_or_insert_default();
            extras.attempts = Some(Arc::new(Attempts::another(extras.attempts.as_deref(), last)));
        }
    }

    /// Where it would go back to: where the work on it ended or it died, whichever was later.
    #[must_use]
    pub fn home(&self) -> Option<&Arc<str>> {
        match (self.record(), self.death()) {
            (Some(record), Some(death)) if death.at > record.finished => Some(&death.queue),
            (Some(record), _) => Some(&record.queue),
            (None, death) => death.map(|death| &death.queue),
        }
    }

    /// The lane in which it was in its [`home`](Self::home).
    pub(crate) fn home_lane(&self) -> Option<&Arc<str>> {
        match (self.record(), self.death()) {
            (Some(record), Some(death)) if death.at <= record.finished => Some(&record.lane),
            (Some(record), None) => Some(&record.lane),
            (_, death) => death.map(|death| &death.lane),
        }
    }

    pub(crate) fn set_work(&mut self, work: Option<Work>) {
        if work.is_some() || self.extras.is_some() {
            let extras = self.extras.get_or_insert_default();
            extras.work = work.map(Box::new);
            if **extras == Extras::default() {
                self.extras = None;
            }
        }
    }

    /// Bytes of all that it remembers.
    pub(crate) fn history_size(&self) -> u64 {
        self.deaths().map_or(0, Deaths::size)
            + self.record().map_or(0, |record| record.size())
            + self.attempts().map_or(0, |attempts| attempts.size())
    }

    /// Whether it is over unless a consumer takes it in the step in which it comes. It never waits, and takes no room.
    #[must_use]
    pub fn is_at_once(&self) -> bool {
        self.expires <= self.since
    }

    /// Whether its time to live was over before it could be noticed: one that is to be taken at once is not over while it is new. A lease that
    /// is out outlives it.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.expires <= now && self.since < now && !matches!(self.state, State::Leased { .. } | State::Dead)
    }
}

/// What a message is called on the wire: the id its publisher gave it, else `seq-` and its sequence.
#[must_use]
pub fn public_id(id: Option<&str>, seq: Seq) -> String {
    id.map_or_else(|| format!("seq-{}", seq.0), ToOwned::to_owned)
}

/// The sequence in an id made by [`public_id`] for a message without one.
#[must_use]
pub fn seq_of_public_id(id: &str) -> Option<Seq> {
    let digits = id.strip_prefix("seq-")?;
    (!digits.starts_with('+')).then(|| digits.parse().ok().map(Seq))?
}

/// A message whose queue is known: what moves between queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The queue.
    pub queue: QueueId,
    /// The message.
    pub message: Message,
}
