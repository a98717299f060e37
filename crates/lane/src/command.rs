//! What the broker is asked, and what it answers. Commands are the only way to change it.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::fact::Fact;
use crate::identity::Identity;
use crate::ids::{
    Asker, ConsumerId, FeedId, LeaseId, Place, QueueId, Receipt, Seq, SessionId, Time, VhostId, WindowId,
};
use crate::message::{Message, PutBack, Status};
use crate::metadata::MetadataEntry;
use crate::policy::{Policy, PolicyKind};
use crate::priority::{Given, Original, Priority};
use crate::producers::Origin;
use crate::pulling::Pull;
use crate::record::Report;
use crate::refusal::Refusal;
use crate::run::RunId;
use crate::settings::Settings;
use crate::topology::{Binding, ExchangeSettings, Marks};
use crate::vhosts::VhostSettings;
use crate::view::MessageView;

/// One thing to do. All of it happens or none of it. Without [`Command::By`] it is asked by nobody in particular, in `/`.
#[derive(Clone, Debug)]
pub enum Command {
    /// Does one thing as somebody asks it: what whoever is connected makes exclusive is its own, and so is what it holds; names
    /// are those of its virtual host.
    By {
        /// Who, and where.
        asker: Asker,
        /// What.
        command: Box<Command>,
    },
    /// Whoever was connected is gone: its consumers end, the queues it owns are deleted, its windows are forgotten, and what it holds is put back, a part of it later
    /// if that is much ([`Broker::put_back`](crate::Broker::put_back)). A session of which nothing is known ends as well.
    EndSession {
        /// Which.
        session: SessionId,
    },
    /// Makes a virtual host, or changes what is said of the one that is there. Answers [`Reply::VhostDeclared`].
    DeclareVhost {
        /// Its name.
        name: Arc<str>,
        /// What is said of it.
        settings: Box<VhostSettings>,
    },
    /// Deletes a virtual host with all its queues, exchanges, bindings and policies.
    DeleteVhost {
        /// Its name.
        name: Arc<str>,
    },
    /// Makes a queue, or finds the one that is there. Answers [`Reply::Declared`].
    DeclareQueue {
        /// Its name.
        name: Arc<str>,
        /// All its settings, already validated ([`Settings::validate`]).
        settings: Box<Settings>,
        /// What it is besides.
        identity: Identity,
        /// What becomes of one that is there.
        existing: Existing,
    },
    /// Asks whether a queue is there and may be used, which counts as a use. Answers [`Reply::Declared`].
    CheckQueue {
        /// Its name.
        name: Arc<str>,
    },
    /// Deletes a queue with all that is in it. Answers how many messages were ready.
    DeleteQueue {
        /// Its name.
        name: Arc<str>,
        /// Only when it holds no message.
        if_empty: bool,
        /// Only when it has no consumer.
        if_unused: bool,
    },
    /// Makes an exchange; one that is the same but for its arguments is left as it is.
    DeclareExchange {
        /// Its name.
        name: Arc<str>,
        /// What it is.
        settings: Box<ExchangeSettings>,
    },
    /// Deletes an exchange with the bindings of it and to it.
    DeleteExchange {
        /// Its name.
        name: Arc<str>,
        /// Only when nothing is bound to it.
        if_unused: bool,
    },
    /// Binds a queue or an exchange to an exchange.
    Bind(Box<Binding>),
    /// Takes a binding away, and with the last one an exchange that was declared so.
    Unbind(Box<Binding>),
    /// Sets and removes small named values that last and mean nothing to the broker. What is said last of a key holds.
    SetMetadata {
        /// In this order.
        entries: Vec<MetadataEntry>,
    },
    /// Sets a policy of the virtual host: queues and exchanges of it that it matches are by it from now on, with all that waits in
    /// them.
    SetPolicy {
        /// Whose.
        kind: PolicyKind,
        /// Its name.
        name: Arc<str>,
        /// What it is.
        policy: Box<Policy>,
    },
    /// Takes a policy of the virtual host away.
    RemovePolicy {
        /// Whose.
        kind: PolicyKind,
        /// Its name.
        name: Arc<str>,
    },
    /// Publishes one message.
    Publish(Publish),
    /// The same, but answers [`Reply::Count`] only: in so many queues it is; 1 for what was taken before. Where it stands there is not
    /// looked for.
    PublishUntold(Publish),
    /// Publishes and settles, over any queues, all or nothing.
    Transact {
        /// In this order.
        publishes: Vec<Publish>,
        /// Then these.
        settlements: Vec<(Receipt, Outcome)>,
    },
    /// Starts a consumer that stays. Its leases end with it.
    Consume(Consume),
    /// Ends a consumer; what it holds is put back.
    Cancel {
        /// Which.
        consumer: ConsumerId,
    },
    /// Ends a consumer that stays, but not its leases: they last until they are settled or its session ends. One without a
    /// session is cancelled.
    Leave {
        /// Which.
        consumer: ConsumerId,
    },
    /// A consumer without acknowledgements has read so many of the messages it was given: there is room for as many more.
    Took {
        /// Which.
        consumer: ConsumerId,
        /// How many.
        messages: u32,
    },
    /// A connection has taken so many bytes of what was pushed to its consumers, each message counted as
    /// [`pushed_bytes`](crate::pushed_bytes): there is room for as many more.
    Taken {
        /// The feed of the connection.
        feed: FeedId,
        /// How many.
        bytes: u64,
    },
    /// A connection is gone, with all that was pushed and not taken. Its consumers are ended before.
    EndFeed {
        /// The feed of the connection.
        feed: FeedId,
    },
    /// Says how many messages the consumers that share a window hold together. Lowering it takes nothing back.
    SetWindow {
        /// Which.
        window: WindowId,
        /// At most so many; 0: no limit.
        size: u32,
        /// Consumers of the window's session that share it from now on, with what they hold, beside those that were started with it. One
        /// that shares a window already, or that is gone, is left as it is.
        joining: Vec<ConsumerId>,
    },
    /// Leases the message that goes next, at once or not at all. Answers [`Reply::Got`].
    Get(Get),
    /// Leases messages once: at once what is there, else it waits for the first until `until`. Ends with
    /// [`Effect::Served`], in the same step or a later one.
    Pull(Pull),
    /// Settles leases, each for itself.
    Settle {
        /// Which leases.
        receipts: Vec<Receipt>,
        /// How.
        outcome: Outcome,
    },
    /// Settles one lease, and says how the work on its message went. Answers [`Reply::Each`].
    Finish {
        /// Which lease.
        receipt: Receipt,
        /// How it ends.
        outcome: Outcome,
        /// What its record says, if the message ends and its queue has a history.
        report: Box<Report>,
    },
    /// Ends a message that waits for its next attempt, as its last attempt says late: its lease ran out before. Answers [`Reply::Done`]. An outcome
    /// by which a message waits again leaves it as it is.
    FinishLate {
        /// The queue.
        queue: Arc<str>,
        /// Its id (its own, or `seq-N`).
        id: Box<str>,
        /// The attempt that says so, from 1.
        attempt: u32,
        /// How the attempt ended.
        outcome: Outcome,
        /// The report on the attempt, for the record.
        report: Box<Report>,
    },
    /// Takes messages back: those that wait are removed. Who works on one by a pull is told when it asks for more time
    /// ([`Refusal::CancelAsked`]); however it then comes back, unless it is acknowledged, it is cancelled.
    CancelMessages {
        /// The queue.
        queue: Arc<str>,
        /// Which messages.
        which: Which,
    },
    /// Lengthens leases, each for itself.
    Extend {
        /// Which leases.
        receipts: Vec<Receipt>,
        /// From now so long, ms; 0: no end by itself.
        visibility_ms: u64,
    },
    /// Gives ready or delayed messages another priority; each keeps its sequence.
    Reprioritise {
        /// The queue.
        queue: Arc<str>,
        /// Which messages.
        which: Which,
        /// The new priority.
        priority: Given,
    },
    /// Takes messages out of the queue, also leased and dead ones.
    Remove {
        /// The queue.
        queue: Arc<str>,
        /// Which messages.
        which: Which,
    },
    /// Takes out everything that stands so: by default what is ready and delayed.
    Purge {
        /// The queue.
        queue: Arc<str>,
        /// Ready, delayed or dead; `None`: ready and delayed. Leased ones stay with their consumers.
        status: Option<Status>,
        /// Only if there are exactly so many of them ([`Refusal::CountDiffers`]).
        expect: Option<u64>,
    },
    /// Puts dead letters back into their own lane.
    Replay {
        /// The queue.
        queue: Arc<str>,
        /// Which.
        which: Which,
        /// Another priority to replay them with.
        promote: Option<Given>,
    },
}

impl Command {
    /// Makes a queue that stays, for everybody, or changes the settings of the one that is there.
    #[must_use]
    pub fn declare(name: Arc<str>, settings: Box<Settings>) -> Self {
        Self::DeclareQueue { name, settings, identity: Identity::default(), existing: Existing::Update }
    }
}

/// A message to publish.
#[derive(Clone, Debug)]
pub struct Publish {
    /// Where to.
    pub to: Address,
    /// As the wire said it.
    pub priority: Given,
    /// Makes the publish idempotent while it is pending.
    pub id: Option<Box<str>>,
    /// By which number its producer knows it: one that was taken before is not taken again, and answered as if it were.
    pub origin: Option<Box<Origin>>,
    /// The key.
    pub key: Option<Box<str>>,
    /// The turns of its key beside those of others, where keys take turns and the settings of the queue give this key no weight: 1 to
    /// [`KEY_WEIGHT_MAX`](crate::KEY_WEIGHT_MAX).
    pub key_weight: Option<u32>,
    /// The message's own time to live, ms; `None`: unset; 0: over unless a consumer takes it at once.
    pub ttl_ms: Option<u64>,
    /// The time to live, ms, 1 or more, that stands in for the queue's and the global one; `None`: they hold.
    pub base_ttl_ms: Option<u64>,
    /// Not before so many ms from now.
    pub delay_ms: u64,
    /// Bytes of content.
    pub bytes: u32,
    /// Where the content is. With several copies, all have the same place.
    pub place: Place,
}

/// Where a message is published to.
#[derive(Clone, Debug)]
pub enum Address {
    /// Straight into a queue.
    Queue(Arc<str>),
    /// To every queue bound for it.
    Exchange {
        /// The exchange.
        name: Arc<str>,
        /// The routing key.
        routing_key: Arc<str>,
        /// Further routing keys: it goes wherever one of all leads, once to each queue.
        more_keys: Vec<Arc<str>>,
        /// What it says about itself, for exchanges that go by it.
        marks: Arc<dyn Marks>,
        /// Whether a message that no queue is bound for is refused, not dropped.
        mandatory: bool,
    },
    /// Into these queues, as routes have decided.
    Copies {
        /// One for each queue. What is for a queue that is not there is left out.
        copies: Vec<RouteCopy>,
        /// Whether a message that nobody gets is refused, not dropped.
        mandatory: bool,
    },
}

/// A copy that a route puts into a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCopy {
    /// The queue.
    pub queue: Arc<str>,
    /// How urgent.
    pub urgency: Urgency,
    /// The time to live, ms, 1 or more, that stands in for the queue's and the global one; `None`: they hold.
    pub ttl_ms: Option<u64>,
}

/// How urgent a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// As the message says.
    Own,
    /// On the levels of routes ([`Given::of_route`](crate::Given::of_route)), whatever the queue's scheme.
    Level(Option<u8>),
}

/// Which messages of a queue.
#[derive(Clone, Debug)]
pub enum Which {
    /// The one with this id (its own, or `seq-N`). Refused if it cannot be done.
    Id(Box<str>),
    /// These; those for which it cannot be done are left alone.
    Seqs(Vec<Seq>),
    /// All for which it can be done.
    All,
}

/// What becomes of a queue that is declared and is there already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It gets these settings and keeps its identity.
    #[default]
    Update,
    /// The queue is left as it is. The declaration is refused ([`Refusal::QueueDiffers`]) if the queue is another one
    /// ([`Identity::is_same`]), or if it was declared with other arguments and has other settings. Settings that were changed since, or a
    /// pause, do not keep a client from declaring its queue again.
    Same,
    /// The queue gets these settings if its own are still those in here, else the declaration is refused ([`Refusal::QueueDiffers`]):
    /// somebody else has changed them meanwhile. No queue is made ([`Refusal::NoSuchQueue`]).
    From(Box<Settings>),
}

/// How a lease ends.
///
/// For AMQP: an ack is [`Outcome::Ack`]; a nack and a reject are [`Outcome::Nack`] with `requeue` and [`Outcome::Reject`] without.
/// The messages of a recover, and of a channel or connection that ends, are [`Outcome::Nack`]; those of a broker that stops are
/// [`Outcome::Release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The work is done.
    Ack,
    /// It failed: put back, after the delay, else after the queue's backoff.
    Nack {
        /// How long the message waits instead of the queue's backoff, ms.
        delay_ms: Option<u64>,
    },
    /// Put back untouched: neither a failure nor a delivery, and no wait.
    Release,
    /// It can never be done: dead-letter at once.
    Reject,
    /// The work took too long: the message ends as when the queue's `run_timeout_ms` is over.
    Timeout,
}

/// A consumer that stays.
#[derive(Clone, Debug)]
pub struct Consume {
    /// Its name for cancel and deliveries.
    pub consumer: ConsumerId,
    /// The queue.
    pub queue: Arc<str>,
    /// Most messages it holds at once; `None`: no limit. The queue's `max_unacked` holds as well.
    pub window: Option<u32>,
    /// A window that it shares with others of its session. Both hold.
    pub shared: Option<WindowId>,
    /// Extra window for urgent messages.
    pub urgent: Option<UrgentCredit>,
    /// Consumers of a higher one are served first while they have window.
    pub priority: i32,
    /// The feed of its connection, which bounds the bytes that are pushed to it; `None`: nothing does.
    pub feed: Option<FeedId>,
    /// Wants to be the only consumer that stays.
    pub exclusive: bool,
    /// Messages are settled as they are given. Then its own window is what was given and not yet read ([`Command::Took`]),
    /// and it takes nothing of a shared one.
    pub no_ack: bool,
}

impl Consume {
    /// A consumer of a queue with the window that the queue gives.
    #[must_use]
    pub fn new(consumer: ConsumerId, queue: Arc<str>) -> Self {
        Self {
            consumer,
            queue,
            window: None,
            shared: None,
            urgent: None,
            priority: 0,
            feed: None,
            exclusive: false,
            no_ack: false,
        }
    }
}

/// One message, now.
#[derive(Clone, Debug)]
pub struct Get {
    /// A new number, its name for the delivery.
    pub consumer: ConsumerId,
    /// The queue.
    pub queue: Arc<str>,
    /// It is settled as it is given. Else it is leased until it is settled or the session ends.
    pub no_ack: bool,
}

/// Extra window that only lanes at or above a priority may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrgentCredit {
    /// The least urgent priority that may use it.
    pub at: Priority,
    /// So many messages beyond the window.
    pub extra: u32,
}

/// Mostly one, which then needs no memory of its own: a reply is made for every message.
pub type Few<T> = SmallVec<[T; 1]>;

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Done.
    Done,
    /// The queue is there.
    Declared {
        /// Which.
        queue: QueueId,
        /// It was made now.
        made: bool,
        /// Messages ready.
        ready: u64,
        /// Consumers that stay.
        consumers: u64,
    },
    /// The virtual host is there.
    VhostDeclared(VhostId),
    /// How many messages are ready after the one that was given; `None`: there was none to give.
    Got(Option<u64>),
    /// The copies a publish made, in the order of the queues' names; for several publishes in their order.
    Published(Few<Published>),
    /// One result per receipt.
    Each(Few<Result<(), Refusal>>),
    /// The command touched so many messages.
    Count(u64),
}

/// One copy of a published message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Which publish of the command it is of, from 0.
    pub publish: usize,
    /// The queue it is in.
    pub queue: QueueId,
    /// Its place in the order of publishing.
    pub seq: Seq,
    /// The priority it has there.
    pub priority: Priority,
    /// It was there before: a pending message has the same id.
    pub duplicate: bool,
    /// Messages ahead in dispatch order; `None` if it is not ready, or too deep to tell under this picker, or there
    /// before in the midst of a deep lane.
    pub position: Option<u64>,
    /// Messages ahead in its own lane; `None` if it is not ready, or there before in the midst of a deep lane.
    pub position_in_priority: Option<u64>,
}

/// What a publish would put into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The queue.
    pub queue: QueueId,
    /// The priority it has there.
    pub priority: Priority,
    /// The priority as it came.
    pub original: Original,
    /// Its time to live from now, ms; `None`: it does not expire; 0: it is over unless a consumer takes it at once.
    pub ttl_ms: Option<u64>,
    /// It is ready in so many ms; 0: at once.
    pub delay_ms: u64,
}

/// What must happen outside because of a command or of time passing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Give a message to a consumer.
    Deliver(Delivery),
    /// A pull is over; all its deliveries came before.
    Served {
        /// Which.
        consumer: ConsumerId,
    },
    /// The queue of a consumer is gone, and so is the consumer.
    Cancelled {
        /// Which.
        consumer: ConsumerId,
    },
    /// A consumer held a message for longer than `consumer_timeout_ms`. It was put back; the consumer takes nothing more and is to
    /// be ended.
    TimedOut {
        /// Which.
        consumer: ConsumerId,
        /// Whose it is, if it is a session's. A `get`, and a consumer that has left, are nothing that anybody else knows.
        session: Option<SessionId>,
        /// The lease that is over.
        receipt: Receipt,
    },
    /// Nobody here holds a message any more that is kept elsewhere: it is to be given back there.
    Returned {
        /// The lease that is over here.
        receipt: Receipt,
        /// Why.
        why: PutBack,
    },
    /// One message fewer needs the content at this place.
    Released(Place),
    /// One message more needs the content at this place.
    Shared(Place),
    /// So many messages that waited in this run need their content no more.
    Forgotten {
        /// The run.
        run: RunId,
        /// How many messages.
        messages: u64,
    },
}

/// A lease, and the message it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// To whom.
    pub consumer: ConsumerId,
    /// What to show when settling.
    pub receipt: Receipt,
    /// Where the content is.
    pub place: Place,
    /// How urgent it is.
    pub priority: Priority,
    /// When the lease ends; [`Time::NEVER`]: not by itself.
    pub deadline: Time,
    /// How often the message has been leased, this time included.
    pub count: u32,
    /// What it was, if it is settled by being delivered: it can be asked for no more.
    pub settled: Option<Box<Gone>>,
}

/// A message that was settled by being delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// As it was.
    pub message: Message,
    /// What could be seen of it.
    pub view: MessageView,
}

impl Delivery {
    /// The lease.
    #[must_use]
    pub fn lease(&self) -> LeaseId {
        self.receipt.lease
    }
}

/// A part of a transaction, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One of its publishes.
    Publish(usize),
    /// One of its settlements.
    Settlement(usize),
}

/// Where the broker leaves what a step brings about: facts to make durable, effects to carry out.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// In order.
    pub facts: Vec<Fact>,
    /// In order.
    pub effects: Vec<Effect>,
    /// The part for which a transaction was declined; `None`: it was not, or for all of it together.
    pub at_fault: Option<Part>,
    /// Messages that it may still end or move without being asked for each.
    pub(crate) room: usize,
}

impl Step {
    /// Forgets what it has brought about and keeps the memory.
    pub fn clear(&mut self) {
        self.facts.clear();
        self.effects.clear();
        self.at_fault = None;
    }

    /// Whether it may end or move one more message without being asked for it.
    pub(crate) fn take_room(&mut self) -> bool {
        let has_room = self.room > 0;
        self.room = self.room.saturating_sub(1);
        has_room
    }
}
