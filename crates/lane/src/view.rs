//! What can be seen of a queue: computed from its state when asked, never kept by hand.

use std::sync::Arc;

use serde::Serialize;

use crate::deaths::{Death, Deaths};
use crate::identity::Identity;
use crate::ids::{Place, QueueId, Seq, SessionId, Time, VhostId};
use crate::message::Status;
use crate::priority::{Given, Priority, Scheme};
use crate::record::{Attempts, Ending, Record, Work};
use crate::settings::Settings;

/// A queue as it is now.
#[derive(Clone, Debug)]
pub struct QueueView {
    /// Its number.
    pub queue: QueueId,
    /// The virtual host it is in.
    pub vhost: VhostId,
    /// Its name.
    pub name: Arc<str>,
    /// The settings it was declared with.
    pub settings: Settings,
    /// The settings that hold, where policies make them other ones ([`QueueView::effective_settings`]).
    pub ruled: Option<Box<Settings>>,
    /// The policy that applies to it.
    pub policy: Option<Arc<str>>,
    /// The operator's policy that applies to it.
    pub operator_policy: Option<Arc<str>>,
    /// Keys of the two that cannot have an effect on this queue.
    pub without_effect: Vec<&'static str>,
    /// What it is besides, fixed when it was made.
    pub identity: Identity,
    /// Whose it is, if it is exclusive.
    pub owner: Option<SessionId>,
    /// Consumers that stay.
    pub consumers: u64,
    /// Pulls that wait for a message.
    pub waiting: u64,
    /// When it was declared or its broker started, or since then a message came, was leased, was returned or left. Zero where that is not known.
    pub active_at: Time,
    /// No message of it, however it stands, has a lesser sequence than this; that of its next one if it is empty.
    pub first_seq: Seq,
    /// The sequence its next message gets.
    pub next_seq: Seq,
    /// Messages in quarantine: they cannot be read for now, and no lane counts them. See [`Broker::lose`](crate::Broker::lose).
    pub quarantined: u64,
    /// Its lanes, the most urgent first.
    pub lanes: Vec<LaneView>,
    /// Its keys with the most messages ready and leased, the largest first, where its settings speak of keys: at most [`KEYS_SHOWN`]. Of many whose numbers differ by
    /// less than twice, any are shown. None where the messages are kept elsewhere.
    pub keys: Vec<KeyView>,
}

/// Most keys of a queue that are shown.
pub const KEYS_SHOWN: usize = 10;

impl QueueView {
    /// The settings that hold: its own, and what policies say.
    #[must_use]
    pub fn effective_settings(&self) -> &Settings {
        self.ruled.as_deref().unwrap_or(&self.settings)
    }
}

/// The messages of a key, as they are now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyView {
    /// The key; empty: the messages without one.
    pub key: Arc<str>,
    /// Its turns beside those of others, where keys take turns.
    pub weight: u32,
    /// Messages ready.
    pub ready: u64,
    /// Messages leased.
    pub leased: u64,
    /// Age of the oldest ready message, ms; 0 when none is.
    pub oldest_age_ms: u64,
}

/// A lane as it is now. Counters count since the broker started.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LaneView {
    /// Its name: a priority in the words of the scheme, or as the settings call it.
    pub lane: Arc<str>,
    /// How urgent it is, inside.
    pub level: i32,
    /// Messages ready.
    pub ready: u64,
    /// Messages delayed.
    pub delayed: u64,
    /// Messages leased.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Those of all of these that wait to move to other lanes, since the settings changed what lanes there are.
    pub moving: u64,
    /// Bytes of content of what is ready, delayed and leased.
    pub bytes: u64,
    /// Bytes of content of what is ready.
    pub ready_bytes: u64,
    /// Bytes of content of what is leased.
    pub leased_bytes: u64,
    /// Those of the ready messages that wait in segments and not in memory.
    pub spilled: u64,
    /// Bytes of content of those.
    pub spilled_bytes: u64,
    /// Age of the oldest ready message, ms; 0 when none is.
    pub oldest_age_ms: u64,
    /// The cap of this lane, 0 for none.
    pub max_active: u32,
    /// Messages published here, or moved here from another lane or queue.
    pub published: u64,
    /// Leases given.
    pub delivered: u64,
    /// Messages acknowledged.
    pub settled: u64,
    /// Leases given of messages that had been leased before.
    pub redelivered: u64,
    /// Leases given while a more urgent lane had a message ready, whatever kept that one back: the picker, a cap, its key.
    pub inversions: u64,
    /// Messages whose time to live was over.
    pub expired: u64,
    /// Messages dropped because the queue was full.
    pub evicted: u64,
    /// Messages removed, purged, replaced by a newer one, or dropped after rejection.
    pub removed: u64,
    /// Messages that left for another lane or queue.
    pub moved: u64,
    /// Messages that became dead letters.
    pub dead_lettered: u64,
    /// How long messages waited from publish to lease.
    pub wait: WaitView,
}

impl LaneView {
    /// The lane of this name is this one, too.
    pub(crate) fn add(&mut self, other: Self) {
        self.ready += other.ready;
        self.delayed += other.delayed;
        self.leased += other.leased;
        self.dead += other.dead;
        self.moving += other.moving;
        self.bytes += other.bytes;
        self.ready_bytes += other.ready_bytes;
        self.leased_bytes += other.leased_bytes;
        self.spilled += other.spilled;
        self.spilled_bytes += other.spilled_bytes;
        self.oldest_age_ms = self.oldest_age_ms.max(other.oldest_age_ms);
        self.published += other.published;
        self.delivered += other.delivered;
        self.settled += other.settled;
        self.redelivered += other.redelivered;
        self.inversions += other.inversions;
        self.expired += other.expired;
        self.evicted += other.evicted;
        self.removed += other.removed;
        self.moved += other.moved;
        self.dead_lettered += other.dead_lettered;
        self.wait.add(&other.wait);
    }
}

impl WaitView {
    fn add(&mut self, other: &Self) {
        for ((_, below), (_, more)) in self.buckets.iter_mut().zip(&other.buckets) {
            *below += more;
        }
        self.count += other.count;
        self.sum_ms += other.sum_ms;
    }
}

/// A histogram of waiting times.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WaitView {
    /// Upper bound in ms and how many waited at most so long (each bucket holds the ones before).
    pub buckets: Vec<(u64, u64)>,
    /// How many in all.
    pub count: u64,
    /// Their sum, ms.
    pub sum_ms: u64,
}

/// A message as it is now, but for its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    /// Its place in the order of publishing.
    pub seq: Seq,
    /// Its id: its publisher's, else `seq-N`.
    pub id: String,
    /// The scheme of its queue's priorities. `None`: a queue of one lane that takes any number, as AMQP declares it without `x-max-priority`; what its
    /// publishers mean by a number only they know.
    pub scheme: Option<Scheme>,
    /// The priority as it was given, or what the scheme took for a missing one.
    pub priority: Given,
    /// The priority as it was given, as a number ([`Scheme::number`](crate::Scheme::number)); `None`: none was given.
    pub given: Option<i32>,
    /// The priority inside.
    pub level: Priority,
    /// Its lane.
    pub lane: Arc<str>,
    /// Where in its life it stands.
    pub status: Status,
    /// When it was published.
    pub since: Time,
    /// When it expires.
    pub expires: Option<Time>,
    /// When it is due, if it is delayed.
    pub due: Option<Time>,
    /// When its lease ends, if it is leased and the lease ends by itself.
    pub deadline: Option<Time>,
    /// How often the message was leased, releases not counted.
    pub count: u32,
    /// Bytes of content.
    pub bytes: u32,
    /// Its key.
    pub key: Option<String>,
    /// The weight that its publisher gave its key.
    pub key_weight: Option<u32>,
    /// Where it died.
    pub deaths: Option<Arc<Deaths>>,
    /// The work on it that goes on.
    pub work: Option<Work>,
    /// How the work on it went.
    pub record: Option<Arc<Record>>,
    /// The attempts at the work on it that did not end it.
    pub attempts: Option<Arc<Attempts>>,
    /// Where its content is.
    pub place: Place,
}

impl MessageView {
    /// Where it died last, if it ever did.
    #[must_use]
    pub fn death(&self) -> Option<&Death> {
        self.deaths.as_deref().map(Deaths::last)
    }
}

/// What to show of a queue, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Only what stands so.
    pub status: Option<Status>,
    /// Only this priority.
    pub priority: Option<Priority>,
    /// Only this key.
    pub key: Option<String>,
    /// Only where the work ended so: by its record, or by the reason for which it is dead.
    pub ending: Option<Ending>,
    /// Only what was published without a priority.
    pub without_priority: bool,
    /// In which order.
    pub order: BrowseOrder,
    /// Leave out so many of them first.
    pub skip: u64,
    /// At most so many.
    pub limit: usize,
    /// Go on where the page before ended.
    pub cursor: Option<Cursor>,
    /// Look at no more messages than so many, whether they match or not; `None`: at all there are. In dispatch order this holds only for
    /// [`Broker::walk`](crate::Broker::walk), since no cursor says where each lane stands.
    pub looks: Option<usize>,
}

/// The result of a query.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// The page, and for each message where to go on after it.
    pub messages: Vec<(Cursor, MessageView)>,
    /// How many messages it leaves out of those that [`Query::skip`] names.
    pub skipped: u64,
    /// How many messages were looked at. In dispatch order those of the status that is looked for: what it passes over to find them does not count.
    pub looked: usize,
    /// How many messages were looked at in all.
    pub looks: usize,
    /// Where to go on; `None`: there is nothing more to look at.
    pub next: Option<Cursor>,
}

/// How many messages a query takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Messages that were looked at and are taken.
    pub count: u64,
    /// How many messages were looked at; 0 where gauges tell.
    pub looked: usize,
    /// Where to go on; `None`: all were counted.
    pub next: Option<Cursor>,
}

/// The order of browsing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BrowseOrder {
    /// As messages will be leased: first what is leased already, in the order of the leases; then the ready ones, the delayed by when they are due, and the dead letters by when they died. Those of the same time are in the order of publishing.
    #[default]
    Dispatch,
    /// As they were published.
    Published,
    /// The last published first.
    Newest,
}

/// Where a page ended: the number of messages seen in dispatch order, the last sequence in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub u64);
