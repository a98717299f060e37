//! What front ends may ask. Every engine answers the same; `conformance` says what.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use overtake_lane::{
    Binding, BrowseOrder, Ending, ExchangeSettings, ExchangeView, Existing, Given, Identity, LaneChoice,
    LeaseTerm, MessageView, MetadataEntry, Origin, Outcome, Part, Policy, PolicyKind, QueueId, QueueView,
    Receipt, Refusal, Report, Route, Seq, Settings, Status, Time, UrgentCredit, VhostId, VhostSettings,
    VhostView, Walk,
};
use overtake_properties::Properties;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::consumer::Consumer;
use crate::damage::DamageHealth;
use crate::holder::{Held, Holder};
use crate::jobs::{Change, JobView, Started};
use crate::leadership::Leadership;
use crate::nodes::{ClusterView, NodeHealth};
use crate::orphans::Orphan;
use crate::partition_walk::PartitionWalk;
use crate::routes::{RouteSet, RoutesView};
use crate::sender::Sender;
use crate::session::Session;
use crate::snapshot::{NoSnapshot, Snapshot};
use crate::watermarks::{DiskHealth, Full};
use crate::work::{DiskWork, ServerWork};

/// An answer that is on its way.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// A broker, wherever it keeps its messages.
///
/// Every change answers once it is durable. A lease is handed out before that: losing it in a crash puts the message back.
/// Dropping the answer of [`Engine::lease`] gives up the wait; a message already on its way is put back.
pub trait Engine: Send + Sync + 'static {
    /// This engine, asked by somebody who is connected: the queues that it makes exclusive are its own, and what it gets and
    /// consumes it holds. Dropping it ends the session: its consumers end, what they held is put back, its queues are gone.
    fn connect(&self) -> Connection;

    /// This engine, asked in another virtual host: names mean what they mean there. As whom it is connected stays, and a session
    /// lasts until each of those who ask for it is dropped. That there is one is seen when it is asked for something.
    fn in_vhost(&self, vhost: VhostId) -> Connection;
    /// Makes a virtual host, or changes what is said of the one that is there. Answers its number.
    fn declare_vhost(&self, name: &str, settings: VhostSettings) -> Pending<VhostId>;
    /// Deletes a virtual host with all its queues, exchanges and bindings; consumers of those queues end. Not refused on a full
    /// store.
    fn delete_vhost(&self, name: &str) -> Pending<()>;
    /// Every virtual host, by name.
    fn vhosts(&self) -> Pending<Vec<VhostView>>;
    /// One virtual host.
    fn vhost(&self, name: &str) -> Pending<VhostView>;

    /// Makes a queue or changes the settings of the one that is there. The settings must be valid.
    fn declare_queue(&self, name: &str, settings: Settings) -> Pending<Declared> {
        self.declare(name, DeclareQueue { settings, ..DeclareQueue::default() })
    }
    /// Makes a queue, or finds the one that is there. The settings must be valid.
    fn declare(&self, name: &str, declare: DeclareQueue) -> Pending<Declared>;
    /// Asks whether a queue is there and may be used, which counts as a use.
    fn check_queue(&self, name: &str) -> Pending<Declared>;
    /// Deletes a queue with what is in it. Answers how many messages were ready.
    fn delete_queue(&self, name: &str, only: DeleteOnly) -> Pending<u64>;
    /// At most so many queues of the virtual host, 1 or more, by name: those after a name, which need not be one of a queue.
    fn queues(&self, after: Option<&str>, limit: usize) -> Pending<QueuePage>;
    /// One queue.
    fn queue(&self, name: &str) -> Pending<QueueView>;

    /// The name of each of these queues; `None`: it is not there, or in another virtual host.
    fn queue_names(&self, queues: Vec<QueueId>) -> Pending<Vec<Option<Arc<str>>>>;

    /// Queues on servers whose definition was lost, by number. An engine that keeps messages itself has none.
    fn orphans(&self) -> Pending<Vec<Orphan>>;
    /// Has such a queue be defined again as it was, in its virtual host, which is made where it is not there; or by another name. Answers the queue as it is then.
    fn adopt_orphan(&self, queue: QueueId, name: Option<&str>) -> Pending<Orphan>;
    /// Removes such a queue with its messages. Answers how many those were.
    fn remove_orphan(&self, queue: QueueId) -> Pending<u64>;

    /// Makes an exchange, or finds the one that is there, and is the same but for its arguments.
    fn declare_exchange(&self, name: &str, settings: ExchangeSettings) -> Pending<()>;
    /// Deletes an exchange with the bindings of it and to it; with `if_unused` only when it has none of its own.
    fn delete_exchange(&self, name: &str, if_unused: bool) -> Pending<()>;
    /// Every exchange of the virtual host, by name.
    fn exchanges(&self) -> Pending<Vec<ExchangeView>>;
    /// One exchange.
    fn exchange(&self, name: &str) -> Pending<ExchangeView>;
    /// The bindings of an exchange, in order of where they lead.
    fn bindings(&self, exchange: &str) -> Pending<Vec<Binding>>;
    /// Binds a queue or an exchange to an exchange.
    fn bind(&self, binding: Binding) -> Pending<()>;
    /// Takes a binding away, and with the last one an exchange that was declared so.
    fn unbind(&self, binding: Binding) -> Pending<()>;

    /// Sets and removes small named values, all or none; what is said last of a key holds. They last, and mean nothing to the
    /// engine. Removing is not refused on a full store.
    fn set_metadata(&self, entries: Vec<MetadataEntry>) -> Pending<()>;
    /// All values that are set, by key.
    fn metadata(&self) -> Pending<Metadata>;
    /// A number that changes whenever values are set or removed, also by another process on the same servers. `None`: every change
    /// is asked for here.
    fn metadata_versions(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Wishes to do some work of which one process on the same servers does it at a time, by a name of at most 1,024 bytes. Wishes of one process for the same work are told the same.
    /// A process that is told to lead knows all metadata that was set before.
    fn lead(&self, _work: &str) -> Leadership {
        Leadership::undisputed()
    }

    /// A number that changes after messages of the virtual host were cancelled, removed or purged, or their queue was deleted, at this
    /// process: whoever works on leased messages asks then whether they are still its own.
    fn withdrawals(&self) -> watch::Receiver<u64>;

    /// Sets a policy of the virtual host: queues and exchanges there that it matches are by it when this is answered. Where it means other
    /// lanes, messages move into them afterwards: [`LaneView::moving`](overtake_lane::LaneView::moving) says how many have not.
    fn set_policy(&self, kind: PolicyKind, name: &str, policy: Policy) -> Pending<()>;
    /// Takes a policy of the virtual host away. Not refused on a full store.
    fn remove_policy(&self, kind: PolicyKind, name: &str) -> Pending<()>;
    /// The policies of a kind of the virtual host, by name.
    fn policies(&self, kind: PolicyKind) -> Pending<NamedPolicies>;

    /// Sets the routes of the virtual host, all at once, in place of those there are. Queues of endpoints that are not there are made, by the
    /// scheme `route`. What is stored already stays as it is.
    fn set_routes(&self, routes: Arc<RouteSet>) -> Pending<()>;
    /// The routes of the virtual host, and what they did.
    fn routes(&self) -> Pending<RoutesView>;

    /// Publishes all or none. Answers one entry per copy made, in order.
    fn publish(&self, messages: Vec<NewMessage>) -> Pending<Vec<PublishedCopy>>;
    /// Publishes and settles, all or none.
    fn transact(
        &self,
        messages: Vec<NewMessage>,
        settlements: Vec<(Receipt, Outcome)>,
    ) -> Pending<Vec<PublishedCopy>>;
    /// Leases what is there, or waits for the first: no more than [`ANSWER_BYTES_MAX`] of content, but one message at least.
    fn lease(&self, lease: LeaseRequest) -> Pending<Vec<LeasedMessage>>;
    /// Leases the message that goes next, now or not at all; with `no_ack` it is settled as it is given. The lease lasts until it
    /// is settled or the session ends; without a session, until the broker does.
    fn get(&self, queue: &str, no_ack: bool) -> Pending<Option<Got>>;
    /// Starts a consumer that stays: messages come by themselves, within its window. Dropping it puts back what it holds.
    fn consume(&self, consume: ConsumeRequest) -> Pending<Consumer> {
        Box::pin(Consumer::start(self.session(), consume))
    }
    /// Says how many messages the consumers that share a window of this session hold together; 0: no limit.
    ///
    /// # Panics
    /// Without a session: nobody could share it.
    fn set_window(&self, number: u32, size: u32) -> Pending<()>;
    /// Settles leases, each for itself.
    fn settle(&self, receipts: Vec<Receipt>, outcome: Outcome) -> Pending<Vec<Result<(), Refusal>>>;
    /// Settles one lease and says how the work went, for the history of its queue.
    fn finish(&self, receipt: Receipt, outcome: Outcome, report: Report) -> Pending<Result<(), Refusal>>;
    /// Ends a message that waits for its next attempt, as its last attempt says late: its lease ran out before. `attempt` counts from 1; `outcome` ends the message
    /// (`Ack`, `Reject` or `Timeout`), any other leaves it waiting.
    ///
    /// # Errors
    /// The answer is a refusal where the message does not wait after this attempt: [`Refusal::NoSuchMessage`], [`Refusal::Dead`], [`Refusal::Leased`]
    /// (the next attempt is under way), [`Refusal::StaleReceipt`] (it waits after another attempt, or after none).
    fn finish_late(
        &self,
        queue: &str,
        id: &str,
        attempt: u32,
        outcome: Outcome,
        report: Report,
    ) -> Pending<()>;
    /// Lengthens leases, each for itself. 0: the lease has no end of its own.
    fn extend(&self, receipts: Vec<Receipt>, visibility_ms: u64) -> Pending<Vec<Result<(), Refusal>>>;
    /// Lengthens one lease, as [`Engine::extend`], and says what the work on it has printed so far, or the end of that. It is seen
    /// ([`Held::progress`]) until it is said anew or the lease ends; it is not durable.
    fn progress(
        &self,
        receipt: Receipt,
        visibility_ms: u64,
        output: Arc<str>,
    ) -> Pending<Result<(), Refusal>>;

    /// A client that asks without waiting, and hears what comes of it in order: for many messages over one connection. It is
    /// somebody connected, as [`Engine::connect`] makes one; of one who is connected already it is a part, and only what it
    /// consumes ends with it.
    fn session(&self) -> Session;

    /// A page of the messages of a queue: no more than [`ANSWER_BYTES_MAX`] of content, but one message at least.
    fn browse(&self, queue: &str, browse: Browse) -> Pending<Page>;
    /// One message, by its id.
    fn message(&self, queue: &str, id: &str) -> Pending<BrowsedMessage>;
    /// Changes messages. Answers how many, once that is done. Many are changed step by step, between other requests; that goes on when the answer
    /// is dropped, and after a restart. Who cancels its job has it answered with as many as were changed by then.
    fn change(&self, queue: &str, select: Select, change: Change) -> Pending<u64>;
    /// As [`Engine::change`], but answers what takes more than one step as soon as it has begun.
    fn start_change(&self, queue: &str, select: Select, change: Change) -> Pending<Started>;
    /// The jobs of the virtual host, by number: those that go on, and the last hundred of the broker that are over.
    fn jobs(&self) -> Pending<Vec<JobView>>;
    /// A job of the virtual host, now or, if `waits`, when it is over; `None`: it is not known, or no longer.
    fn job(&self, id: u64, waits: bool) -> Pending<Option<JobView>>;
    /// Ends a job where it is; what it has changed stays changed. Answers the job.
    fn cancel_job(&self, id: u64) -> Pending<Option<JobView>>;
    /// Gives ready and delayed messages another priority. Answers how many.
    fn reprioritise(&self, queue: &str, select: Select, priority: Given) -> Pending<u64> {
        self.change(queue, select, Change::Reprioritise(priority))
    }
    /// Removes messages. Answers how many.
    fn remove(&self, queue: &str, select: Select) -> Pending<u64> {
        self.change(queue, select, Change::Remove)
    }
    /// Takes messages back: those that wait end at once; who works on one is told when it asks for more time
    /// ([`Refusal::CancelAsked`]). Answers how many.
    fn cancel_messages(&self, queue: &str, select: Select) -> Pending<u64> {
        self.change(queue, select, Change::Cancel)
    }
    /// Removes everything that stands so, by default what is ready and delayed. Answers how many.
    fn purge(&self, queue: &str, status: Option<Status>) -> Pending<u64>;
    /// Purges as [`Engine::purge`] does, if that removes exactly `expect` messages; else removes none ([`Refusal::CountDiffers`]).
    fn purge_counted(&self, queue: &str, status: Option<Status>, expect: u64) -> Pending<u64>;
    /// Puts dead letters back into their lanes, with another priority if `promote` says so. Answers how many.
    fn replay(&self, queue: &str, select: Select, promote: Option<Given>) -> Pending<u64> {
        self.change(queue, select, Change::Replay(promote))
    }

    /// Whether it can serve. Waits for nothing.
    fn health(&self) -> Health;

    /// The servers that it shares with other brokers; `None`: it has a store of its own. Waits for nothing.
    fn cluster(&self) -> Option<ClusterView>;

    /// What a power cut now would leave of its store, to be copied while everything goes on; one at a time. Waits for the disk:
    /// a directory is listed, and at the most one file is given back.
    ///
    /// # Errors
    /// [`NoSnapshot`]; an engine without a store of its own takes none.
    fn snapshot(&self) -> Result<Snapshot, NoSnapshot> {
        Err(NoSnapshot::Unsupported)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The broker declines.
    Refused(Refused),
    /// The broker cannot: its store failed, or it is stopping. Whether the change was made is not known.
    Unavailable(Arc<str>),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.refusal.fmt(f),
            Self::Unavailable(why) => write!(f, "the broker is not available: {why}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.into())
    }
}

/// The broker declines: why, and at what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// Of publishes and settlements the one that cannot be done; `None`: all of them together.
    pub part: Option<Part>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, part: None }
    }
}

/// Most bytes of content in one answer, unless its only message has more.
pub const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// All values of metadata, each under its key, in the order of the keys.
pub type Metadata = Vec<(Arc<str>, Arc<[u8]>)>;

/// Policies, each under its name, in the order of the names.
pub type NamedPolicies = Vec<(Arc<str>, Policy)>;

/// A page of queues.
#[derive(Clone, Debug, Default)]
pub struct QueuePage {
    /// The queues.
    pub queues: Vec<QueueView>,
    /// After which name to go on; `None` at the end.
    pub next: Option<Arc<str>>,
}

/// An engine that is asked by somebody who is connected.
pub type Connection = Arc<dyn Engine>;

/// A queue to declare.
#[derive(Clone, Debug, Default)]
pub struct DeclareQueue {
    /// All its settings.
    pub settings: Settings,
    /// What it is besides.
    pub identity: Identity,
    /// What becomes of one that is there.
    pub existing: Existing,
}

/// A queue that was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// It is new.
    pub made: bool,
    /// Messages ready.
    pub ready: u64,
    /// Consumers that stay.
    pub consumers: u64,
}

/// A message that was asked for.
#[derive(Clone, Debug)]
pub struct Got {
    /// The message.
    pub message: LeasedMessage,
    /// Messages ready after it.
    pub ready: u64,
}

/// When a queue may be deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOnly {
    /// Only when it holds no message.
    pub if_empty: bool,
    /// Only when it has no consumer.
    pub if_unused: bool,
}

/// What a message says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// What it says about itself, in the bytes in which AMQP has it: whichever way it came, nothing is lost on the next.
    pub properties: Properties,
    /// Where it was published to, for whoever gets it. Without a routing key the engine says it of the [`Target`].
    pub route: Route,
    /// Its own time to live, ms, for whoever gets it. The engine says it of the [`NewMessage`].
    pub ttl_ms: Option<u64>,
    /// Its body.
    pub body: Bytes,
}

/// A message to publish.
#[derive(Clone, Debug, Default)]
pub struct NewMessage {
    /// Where to.
    pub to: Target,
    /// Its sender, for the conditions of routes. Not stored.
    pub sender: Sender,
    /// As the wire said it.
    pub priority: Given,
    /// Makes the publish idempotent while it is pending.
    pub id: Option<String>,
    /// By which number its producer knows it: one that was taken before, however long ago, is answered as if it were taken, without
    /// copies, and not published again.
    pub origin: Option<Origin>,
    /// Its key.
    pub key: Option<String>,
    /// The turns of its key beside those of others, where keys take turns and the settings of the queue give this key no weight: 1 to 1,000.
    pub key_weight: Option<u32>,
    /// Its time to live, ms; `None`: unset; 0: over unless a consumer takes it at once.
    pub ttl_ms: Option<u64>,
    /// Not before so many ms from now.
    pub delay_ms: u64,
    /// What it says.
    pub content: Content,
}

/// Where a message is published to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A queue.
    Queue(Arc<str>),
    /// Every queue an exchange chooses.
    Exchange {
        /// The exchange.
        name: Arc<str>,
        /// The routing key.
        routing_key: Arc<str>,
        /// Further routing keys: it goes wherever one of all leads, once to each queue.
        more_keys: Vec<Arc<str>>,
        /// Refuse it when no queue gets it.
        mandatory: bool,
    },
}

impl Target {
    /// What a message that is published there says of it.
    #[must_use]
    pub fn route(&self) -> Route {
        match self {
            Self::Queue(name) => Route::by("", Arc::clone(name)),
            Self::Exchange { name, routing_key, more_keys, .. } => {
                let keys = [routing_key].into_iter().chain(more_keys).cloned().collect();
                Route { exchange: Arc::clone(name), keys }
            }
        }
    }
}

impl Default for Target {
    fn default() -> Self {
        Self::Queue(Arc::from(""))
    }
}

/// One copy of a published message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedCopy {
    /// Which of the messages it is of, from 0.
    pub publish: usize,
    /// The queue it is in.
    pub queue: Arc<str>,
    /// Its id: the publisher's, else `seq-N`.
    pub id: String,
    /// Its place in the order of publishing.
    pub seq: Seq,
    /// Its priority, in the words of the queue's scheme.
    pub priority: Given,
    /// It was there before.
    pub duplicate: bool,
    /// Messages ahead of it.
    pub position: Option<u64>,
    /// Messages ahead of it in its own lane.
    pub position_in_priority: Option<u64>,
}

/// A request for messages.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// The queue.
    pub queue: Arc<str>,
    /// Most messages, 1 or more.
    pub max: u32,
    /// Wait so long for the first, ms.
    pub wait_ms: u64,
    /// Most bytes of content, but one message at least.
    pub max_bytes: u64,
    /// How long the leases last.
    pub term: LeaseTerm,
    /// Which lanes they are from.
    pub lanes: LaneChoice,
    /// Who asks, for people to see.
    pub holder: Option<Arc<Holder>>,
}

impl LeaseRequest {
    /// At most so many messages of a queue, now, for as long as the queue says.
    #[must_use]
    pub fn new(queue: Arc<str>, max: u32) -> Self {
        let (term, lanes) = (LeaseTerm::OfQueue, LaneChoice::default());
        Self { queue, max, max_bytes: ANSWER_BYTES_MAX, wait_ms: 0, term, lanes, holder: None }
    }
}

/// A message, lent.
#[derive(Clone, Debug)]
pub struct LeasedMessage {
    /// What to show when settling.
    pub receipt: Receipt,
    /// When the lease ends.
    pub deadline: Option<Time>,
    /// The message.
    pub message: MessageView,
    /// What it says.
    pub content: Arc<Content>,
}

impl LeasedMessage {
    /// By which exchange and routing keys it came into its queue.
    #[must_use]
    pub fn route(&self) -> &Route {
        self.content.route_of(&self.message)
    }

    /// Its own time to live as it was published, ms; it loses it when it dies.
    #[must_use]
    pub fn ttl_ms(&self) -> Option<u64> {
        self.content.ttl_ms.filter(|_| self.message.deaths.is_none())
    }
}

/// A consumer that stays.
#[derive(Clone, Debug)]
pub struct ConsumeRequest {
    /// The queue.
    pub queue: Arc<str>,
    /// Most messages it holds at once; `None`: as the queue says.
    pub window: Option<u32>,
    /// Extra window for urgent messages.
    pub urgent: Option<UrgentCredit>,
    /// Consumers of a higher one are served first.
    pub priority: i32,
    /// The number of a window that it shares with others of its session ([`Engine::set_window`]). Both hold.
    pub shared: Option<u32>,
    /// Wants to be the only consumer.
    pub exclusive: bool,
    /// Messages are settled as they are given. Then its window is how many wait to be read at most.
    pub no_ack: bool,
    /// Who consumes, for people to see.
    pub holder: Option<Arc<Holder>>,
}

impl ConsumeRequest {
    /// A consumer with the window that the queue gives.
    #[must_use]
    pub fn new(queue: Arc<str>) -> Self {
        Self {
            queue,
            window: None,
            urgent: None,
            priority: 0,
            shared: None,
            exclusive: false,
            no_ack: false,
            holder: None,
        }
    }
}

/// Which messages of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// The one with this id. Refused if it cannot be done.
    Id(String),
    /// All that match and for which it can be done.
    Matching(Filter),
    /// All that match and for which it can be done, if exactly `expect` match; else nothing is done ([`Refusal::CountDiffers`]).
    Counted {
        /// Which messages.
        filter: Filter,
        /// How many messages match, as far as the client knows.
        expect: u64,
    },
}

impl Select {
    /// All that match, or all there are if that is said: an empty filter alone is more often a mistake than meant.
    ///
    /// # Errors
    /// [`Unclear`]: neither is said, or both.
    pub fn matching(filter: Filter, all: bool) -> Result<Self, Unclear> {
        match (filter == Filter::default(), all) {
            _ if filter.has_empty_part() => Err(Unclear::Part),
            (true, false) => Err(Unclear::Empty),
            (false, true) => Err(Unclear::Both),
            _ => Ok(Self::Matching(filter)),
        }
    }
}

/// Why a filter does not say which messages are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// It says nothing, and not that all are meant.
    Empty,
    /// It says something, and that all are meant.
    Both,
    /// A part of it is there and empty: a key, a user, or the name or value of a header.
    Part,
}

impl Unclear {
    /// The key of the request that is wrong.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Empty | Self::Part => "filter",
            Self::Both => "all",
        }
    }
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "an empty filter means every message: say `\"all\": true` if that is meant",
            Self::Both => "give a filter or `\"all\": true`, not both",
            Self::Part => {
                "a key, a user, a header's name or its value is empty: give it or leave that part out"
            }
        })
    }
}

impl std::error::Error for Unclear {}

/// Which messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// Only what stands so.
    pub status: Option<Status>,
    /// Only this priority, in the words of the queue's scheme.
    pub priority: Option<Given>,
    /// Only this key.
    pub key: Option<String>,
    /// Only those with all these headers, compared as text.
    pub headers: Vec<(String, String)>,
    /// Only those that say they are of this user.
    pub user_id: Option<String>,
    /// Only where the work ended so: by their record, or by the reason for which they are dead.
    pub ending: Option<Ending>,
    /// Only what was published without a priority.
    pub without_priority: bool,
}

impl Filter {
    fn has_empty_part(&self) -> bool {
        let texts = [&self.key, &self.user_id].into_iter().flatten();
        let headers = self.headers.iter().flat_map(|(name, value)| [name, value]);
        texts.chain(headers).any(String::is_empty)
    }
}

/// A page to see.
#[derive(Clone, Debug, Default)]
pub struct Browse {
    /// Which messages.
    pub filter: Filter,
    /// In which order.
    pub order: BrowseOrder,
    /// Leave out so many of them first.
    pub skip: u64,
    /// Count all of them, whatever the page holds ([`Page::total`]). By status and by priority gauges tell, else the queue is walked.
    pub with_total: bool,
    /// Most messages, 1 to [`BROWSE_LIMIT_MAX`].
    pub limit: usize,
    /// Where the page before ended.
    pub cursor: Option<PageCursor>,
    /// Look at about so many messages at most, whether they match or not; `None`: at as many as it takes. A page that ends for it has a
    /// [`Page::next`], and may have few messages or none. Messages that `skip` leaves out are passed all the same, in one request.
    pub looks: Option<usize>,
}

/// Most messages of one page.
pub const BROWSE_LIMIT_MAX: usize = 1_000;

/// The [`Browse::looks`] of a request by somebody who waits for the answer. As many messages are looked at in about a quarter of a second where they
/// have to be read from segments, which is about as long as somebody waits without wondering; and asking again for each so many costs nothing beside it.
pub const BROWSE_LOOKS_MAX: usize = 100_000;

/// Where a page of messages goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageCursor {
    /// In the orders `published` and `newest`: after the message of this sequence.
    After(Seq),
    /// In dispatch order: after so many messages that match. They are looked for again.
    Passed(u64),
    /// In dispatch order: where the look before was.
    Walk(Arc<Walk>),
    /// In dispatch order: where the look before was, of a queue whose messages are at servers.
    PartitionWalk(Arc<PartitionWalk>),
}

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The messages.
    pub messages: Vec<BrowsedMessage>,
    /// Where to go on; `None` at the end.
    pub next: Option<PageCursor>,
    /// How many the filter takes in all, if that was asked for and [`Browse::looks`] were enough to count them.
    pub total: Option<u64>,
    /// How many messages were looked at for this page, whether they match or not; but not those that were only counted. In dispatch order what was
    /// passed over to find messages of a status does not count, so it may be 0 although there is more to look at.
    pub looked_at: u64,
    /// How many messages the queue has, whatever their status.
    pub in_queue: u64,
}

/// A message, seen and left where it is.
#[derive(Clone, Debug)]
pub struct BrowsedMessage {
    /// The message.
    pub message: MessageView,
    /// What it says.
    pub content: Arc<Content>,
    /// What is known of its lease, if it is leased.
    pub held: Option<Held>,
    /// Messages ahead of it; only when asked for one message.
    pub position: Option<u64>,
    /// Messages ahead of it in its own lane; only when asked for one message.
    pub position_in_priority: Option<u64>,
}

impl BrowsedMessage {
    /// By which exchange and routing keys it came into its queue.
    #[must_use]
    pub fn route(&self) -> &Route {
        self.content.route_of(&self.message)
    }
}

/// Bytes of memory of one kind, and the bound on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BytesInUse {
    /// Bytes in use, about.
    pub bytes: u64,
    /// The most there may be, about; 0: no limit.
    pub limit: u64,
    /// How often something had to wait for room.
    pub waits: u64,
}

impl BytesInUse {
    /// Both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let Self { bytes, limit, waits } = other;
        Self { bytes: self.bytes + bytes, limit: self.limit + limit, waits: self.waits + waits }
    }
}

/// Where messages are: in memory, or in segments only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryHealth {
    /// Bytes of memory that messages take, about.
    pub bytes: u64,
    /// Messages that wait in segments only.
    pub spilled: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes of them on disk.
    pub segment_bytes: u64,
    /// Bytes of memory that waiting messages may take.
    pub limit: u64,
    /// Messages of requests that wait in line.
    pub inbox: BytesInUse,
    /// Messages that were pushed to connections which have not taken them yet.
    pub pushed: BytesInUse,
}

/// Whether an engine can serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Why it cannot serve at all.
    pub down: Option<Arc<str>>,
    /// Why it refuses publishes, while it still takes acknowledgements.
    pub full: Option<Full>,
    /// The room on its disk; `None` where it is not known.
    pub disk: Option<DiskHealth>,
    /// Bytes of journal on disk.
    pub journal_bytes: u64,
    /// Where messages are.
    pub memory: MemoryHealth,
    /// Damage found in its segments.
    pub damage: DamageHealth,
    /// What its store has done.
    pub work: DiskWork,
    /// Records waiting to be durable.
    pub unsynced: u64,
    /// What it has done on servers, if it has none of its store itself.
    pub servers: Option<ServerWork>,
    /// The servers it is on, if it has none of its store itself.
    pub nodes: Vec<NodeHealth>,
}
