//! What the engine is asked, and what it answers.

use std::sync::Arc;

use overtake_lane::{
    Asker, Binding, Command, ConsumerId, ExchangeView, Get, Outcome, PolicyKind, QueueId, QueueView, Receipt,
    Refusal, Reply, VhostId, VhostView,
};

use crate::api::{
    Browse, BrowsedMessage, ConsumeRequest, Declared, Got, LeaseRequest, LeasedMessage, Metadata,
    NamedPolicies, NewMessage, Page, PublishedCopy, QueuePage, Select,
};
use crate::holder::Holder;
use crate::jobs::{Change, JobView, Started};
use crate::routes::{RouteSet, RoutesView};

/// Bytes that a message in line takes beside its content, about.
const NEW_MESSAGE_BYTES: usize = 256;

/// One thing asked of the engine.
#[derive(Clone, Debug)]
pub enum Request {
    /// A request as somebody asks it; without it, by nobody in particular, in `/`.
    By {
        /// Who, and where.
        asker: Asker,
        /// What.
        request: Box<Request>,
    },
    /// A command that needs nothing of the engine: neither content nor a consumer.
    Do(Command),
    /// Publishes and settles, all or none.
    Publish {
        /// In this order.
        messages: Vec<NewMessage>,
        /// Then these.
        settlements: Vec<(Receipt, Outcome)>,
    },
    /// Publishes one message, and is told no more of it than [`Answer::Count`]: in so many queues it is now.
    PublishOne(Box<NewMessage>),
    /// Leases once. Answered when there is something or the wait is over.
    Lease {
        /// A new number for this request.
        consumer: ConsumerId,
        /// What for.
        lease: LeaseRequest,
    },
    /// Leases one message, now or not at all.
    Get {
        /// What for.
        get: Get,
        /// Who asks, for people to see.
        holder: Option<Arc<Holder>>,
    },
    /// Lengthens one lease and says how far the work is. Answered as [`Command::Extend`].
    Progress {
        /// Which.
        receipt: Receipt,
        /// From now so long, ms; 0: it has no end of its own.
        visibility_ms: u64,
        /// The end of what was printed so far.
        output: Arc<str>,
    },
    /// The one who asked for this lease is gone. If it still waits it is answered, with nothing.
    GiveUp {
        /// The number of the request.
        consumer: ConsumerId,
    },
    /// Starts a consumer that stays. Answered before its first message. One that shares a window does so by its session.
    Consume {
        /// A new number for it.
        consumer: ConsumerId,
        /// What for.
        consume: ConsumeRequest,
    },
    /// Says how many messages the consumers that share a window of this session hold together.
    SetWindow {
        /// Its number.
        number: u32,
        /// At most so many; 0: no limit.
        size: u32,
        /// Consumers of this session that share the window from now on, beside those that were started with it.
        joining: Vec<ConsumerId>,
    },
    /// Changes messages. Answered with [`Answer::Count`] when that is done.
    Change {
        /// The queue.
        queue: Arc<str>,
        /// Which messages.
        select: Select,
        /// What is done to them.
        change: Change,
        /// Answered with [`Answer::Started`] as soon as it is known whether it takes more than one step.
        only_start: bool,
    },
    /// Shows the jobs of the virtual host, by number: [`Answer::Jobs`].
    Jobs,
    /// Shows a job of the virtual host: [`Answer::Job`].
    Job {
        /// Its number.
        id: u64,
        /// Answered when it is over.
        waits: bool,
    },
    /// Ends a job of the virtual host where it is, and shows it: [`Answer::Job`]. One that is over is left as it is.
    CancelJob {
        /// Its number.
        id: u64,
    },
    /// Shows every virtual host, by name.
    Vhosts,
    /// Shows one virtual host.
    Vhost(Arc<str>),
    /// Shows queues, by name.
    Queues {
        /// Those after this name.
        after: Option<Arc<str>>,
        /// At most so many.
        limit: usize,
    },
    /// Shows one queue.
    Queue(Arc<str>),
    /// Tells the names of queues.
    QueueNames(Vec<QueueId>),
    /// Tells of which of these receipts the message is still in its queue and no dead letter, whoever has it by now:
    /// [`Answer::Each`], with [`Refusal::NoSuchMessage`] for each that is not.
    StillThere(Vec<Receipt>),
    /// Shows every exchange.
    Exchanges,
    /// Shows one exchange.
    Exchange(Arc<str>),
    /// Shows the bindings of an exchange.
    Bindings(Arc<str>),
    /// Shows all metadata, by key.
    Metadata,
    /// Shows the policies of a kind of the virtual host, by name.
    Policies(PolicyKind),
    /// Sets the routes of the virtual host.
    SetRoutes(Arc<RouteSet>),
    /// Shows the routes of the virtual host.
    Routes,
    /// Shows messages.
    Browse {
        /// The queue.
        queue: Arc<str>,
        /// Which messages.
        browse: Browse,
    },
    /// Shows one message.
    Message {
        /// The queue.
        queue: Arc<str>,
        /// Its id.
        id: String,
    },
}

impl Request {
    /// Whether it may take leased messages from their holders, or ask for them back.
    #[must_use]
    pub fn withdraws(&self) -> bool {
        match self {
            Self::By { request, .. } => request.withdraws(),
            Self::Change { change: Change::Cancel | Change::Remove | Change::Purge, .. } => true,
            Self::Do(command) => matches!(
                command,
                Command::CancelMessages { .. }
                    | Command::Remove { .. }
                    | Command::Purge { .. }
                    | Command::DeleteQueue { .. }
                    | Command::DeleteVhost { .. }
            ),
            _ => false,
        }
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Done.
    Done,
    /// A queue is declared.
    Declared(Declared),
    /// A virtual host is declared.
    VhostDeclared(VhostId),
    /// Virtual hosts.
    Vhosts(Vec<VhostView>),
    /// A virtual host.
    Vhost(Box<VhostView>),
    /// Messages are published.
    Copies(Vec<PublishedCopy>),
    /// Messages are leased.
    Leased(Vec<LeasedMessage>),
    /// A message is leased, or there was none.
    Got(Option<Box<Got>>),
    /// One result per receipt.
    Each(Vec<Result<(), Refusal>>),
    /// So many messages.
    Count(u64),
    /// Queues.
    Queues(QueuePage),
    /// A queue.
    Queue(Box<QueueView>),
    /// The name of each queue that is there.
    QueueNames(Vec<Option<Arc<str>>>),
    /// Exchanges.
    Exchanges(Vec<ExchangeView>),
    /// An exchange.
    Exchange(Box<ExchangeView>),
    /// The bindings of an exchange.
    Bindings(Vec<Binding>),
    /// All metadata, by key.
    Metadata(Metadata),
    /// Policies, by name.
    Policies(NamedPolicies),
    /// Routes.
    Routes(Box<RoutesView>),
    /// A page.
    Page(Page),
    /// A message.
    Message(Box<BrowsedMessage>),
    /// A change has begun.
    Started(Started),
    /// Jobs.
    Jobs(Vec<JobView>),
    /// A job; `None`: there is none of this number.
    Job(Option<Box<JobView>>),
}

impl Request {
    /// Bytes of the messages that it publishes, about.
    #[must_use]
    pub fn published_bytes(&self) -> u64 {
        let bytes = |message: &NewMessage| (message.content.size() + NEW_MESSAGE_BYTES) as u64;
        match self {
            Self::By { request, .. } => request.published_bytes(),
            Self::Publish { messages, .. } => messages.iter().map(bytes).sum(),
            Self::PublishOne(message) => bytes(message),
            _ => 0,
        }
    }

    /// Messages that it publishes, leases at most, or settles, where it says how many; else 1.
    pub(crate) fn work(&self) -> usize {
        match self {
            Self::By { request, .. } => request.work(),
            Self::Publish { messages, settlements } => messages.len() + settlements.len(),
            Self::Lease { lease, .. } => lease.max as usize,
            Self::Do(Command::Settle { receipts, .. }) => receipts.len(),
            _ => 1,
        }
    }
}

impl Answer {
    /// Whether something may have been published with it.
    pub(crate) fn is_of_publish(&self) -> bool {
        // A count may be the answer to `PublishOne`.
        matches!(self, Self::Copies(_) | Self::Count(_))
    }

    /// What was leased with it.
    pub fn leased(&self) -> impl Iterator<Item = Receipt> + '_ {
        let messages = match self {
            Self::Leased(messages) => &messages[..],
            Self::Got(Some(got)) => std::slice::from_ref(&got.message),
            _ => &[],
        };
        messages.iter().map(|message| message.receipt)
    }
}

/// What a command of the broker answers.
///
/// # Panics
/// For a get or a publish, which are answered where more is known than the broker says.
#[must_use]
pub fn answer_of(reply: Reply) -> Answer {
    match reply {
        Reply::Done => Answer::Done,
        Reply::VhostDeclared(vhost) => Answer::VhostDeclared(vhost),
        Reply::Declared { made, ready, consumers, .. } => {
            Answer::Declared(Declared { made, ready, consumers })
        }
        Reply::Each(results) => Answer::Each(results.into_vec()),
        Reply::Count(count) => Answer::Count(count),
        Reply::Got(_) => unreachable!("a get is answered where its message is"),
        Reply::Published(_) => unreachable!("publishes are answered where their ids are known"),
    }
}
