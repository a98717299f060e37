//! What a connection asks of the broker, in the words of the wire; and what it is told.

use bytes::Bytes;
use overtake_lane::{ConsumerId, Outcome, Receipt, Refusal};
use overtake_properties::{Properties, PropertiesRef, Table};

use crate::incoming::Whole;
use crate::reply::ReplyCode;
use crate::sasl::Credentials;

/// What an answer is called. Answers to publishes come in the order of their tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Something a connection wants. In order, but for what is answered early.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Whether these may log in. For [`Connection::logged_in`](super::Connection::logged_in).
    Login(Credentials),
    /// Whether the virtual host may be used. For [`Connection::opened`](super::Connection::opened).
    Open {
        /// Its name.
        vhost: String,
    },
    /// Something that is answered with [`Connection::answer`](super::Connection::answer).
    Do {
        /// What the answer is called.
        token: Token,
        /// The channel that wants it.
        channel: u16,
        /// What to do.
        operation: Operation,
    },
    /// A message. For [`Connection::published`](super::Connection::published).
    Publish {
        /// What the answer is called.
        token: Token,
        /// The channel it came on.
        channel: u16,
        /// The message.
        publish: Publish,
    },
    /// Leases end. Nobody waits for an answer.
    Settle {
        /// Which.
        receipts: Vec<Receipt>,
        /// How.
        outcome: Outcome,
    },
    /// A consumer takes no more. What it holds stays with the connection. Nobody waits for an answer.
    Leave {
        /// Which.
        consumer: ConsumerId,
    },
    /// So many messages of a consumer without acknowledgements are on their way to the client. Nobody waits for an answer.
    Took {
        /// Which.
        consumer: ConsumerId,
        /// How many.
        messages: u32,
    },
    /// The consumers of a channel that share a window hold so many messages together at most. Nobody waits for an answer.
    Share {
        /// The channel, by whose number the window is known.
        channel: u16,
        /// At most so many; 0: no limit.
        messages: u16,
        /// The consumers that share the window from now on, beside those that were started with it.
        joining: Vec<ConsumerId>,
    },
}

/// Something to do for a channel.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Answered [`Answer::Done`].
    DeclareExchange(DeclareExchange),
    /// Answered [`Answer::Done`], also when there is none.
    DeleteExchange {
        /// Its name.
        name: String,
        /// Only when nothing is bound to it.
        if_unused: bool,
    },
    /// Answered [`Answer::Queue`].
    DeclareQueue(DeclareQueue),
    /// Answered [`Answer::Count`]: so many messages were in it; 0 when there is none.
    DeleteQueue {
        /// Its name.
        name: String,
        /// Only when it has no consumer.
        if_unused: bool,
        /// Only when it has no message.
        if_empty: bool,
    },
    /// Answered [`Answer::Count`].
    PurgeQueue {
        /// Its name.
        name: String,
    },
    /// Answered [`Answer::Done`].
    Bind(Link),
    /// Answered [`Answer::Done`], also when there is none.
    Unbind(Link),
    /// Answered [`Answer::Consuming`] before its first message.
    Consume(Consume),
    /// Answered [`Answer::Done`] after its last message. What it holds stays with the connection.
    Cancel {
        /// Which.
        consumer: ConsumerId,
    },
    /// One message, if there is one. Answered with [`Connection::got`](super::Connection::got).
    Get {
        /// The queue.
        queue: String,
        /// It is settled as it is given.
        no_ack: bool,
    },
    /// All or nothing. Answered [`Answer::Committed`].
    Transact {
        /// In this order.
        publishes: Vec<Publish>,
        /// Then these.
        settlements: Vec<(Receipt, Outcome)>,
    },
}

/// An exchange as a client wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclareExchange {
    /// Its name.
    pub name: String,
    /// Its kind, as the client calls it.
    pub kind: String,
    /// Only look whether it is there.
    pub passive: bool,
    /// It outlives the broker.
    pub durable: bool,
    /// It goes with its last binding.
    pub auto_delete: bool,
    /// Only exchanges publish to it.
    pub internal: bool,
    /// What else is wanted.
    pub arguments: Table,
}

/// A queue as a client wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclareQueue {
    /// Its name; empty: the broker makes one up.
    pub name: String,
    /// Only look whether it is there.
    pub passive: bool,
    /// It outlives the broker.
    pub durable: bool,
    /// It is for this connection alone, and goes with it.
    pub exclusive: bool,
    /// It goes with its last consumer.
    pub auto_delete: bool,
    /// What else is wanted.
    pub arguments: Table,
}

/// A binding.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The exchange that messages come from.
    pub source: String,
    /// What they go to.
    pub destination: Destination,
    /// The routing key or pattern.
    pub routing_key: String,
    /// What else they must meet.
    pub arguments: Table,
}

/// What a binding leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A queue.
    Queue(String),
    /// An exchange.
    Exchange(String),
}

/// A consumer as a client wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct Consume {
    /// The queue.
    pub queue: String,
    /// Its tag: the client's, or one that was made up for it.
    pub tag: String,
    /// Most messages it holds unacknowledged; 0: no limit.
    pub prefetch: u16,
    /// The channel whose shared window ([`Ask::Share`]) holds for it, too.
    pub shared: Option<u16>,
    /// Messages are settled as they are given.
    pub no_ack: bool,
    /// Nobody else may consume.
    pub exclusive: bool,
    /// Consumers of a higher one are served first.
    pub priority: i32,
    /// What else is wanted.
    pub arguments: Table,
}

/// A message as a client sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct Publish {
    /// The exchange. Any bytes, as the wire has them.
    pub exchange: Bytes,
    /// The routing key. Any bytes, as the wire has them.
    pub routing_key: Bytes,
    /// It is returned when no queue gets it.
    pub mandatory: bool,
    /// What it says about itself.
    pub properties: Properties,
    /// What it says.
    pub body: Bytes,
}

/// Bytes of a publish besides its content, about.
const PUBLISH_LEN: u64 = 256;

impl Publish {
    /// Bytes that it takes, about.
    pub(super) fn len(&self) -> u64 {
        (self.properties.as_bytes().len() + self.body.len()) as u64 + PUBLISH_LEN
    }
}

impl From<Whole<bool>> for Publish {
    fn from(whole: Whole<bool>) -> Self {
        let Whole { about: mandatory, exchange, routing_key, properties, body, .. } = whole;
        Self { exchange, routing_key, mandatory, properties, body }
    }
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// The queue is there.
    Queue {
        /// Its name.
        name: String,
        /// Messages that are ready.
        messages: u64,
        /// Consumers.
        consumers: u64,
    },
    /// So many messages.
    Count(u64),
    /// The consumer is there.
    Consuming(ConsumerId),
    /// The transaction is done. These publishes, counted from 0, reached no queue.
    Committed {
        /// Ascending.
        unrouted: Vec<usize>,
    },
}

/// What was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// By the broker. Code and text are those that clients know.
    Declined(Refusal),
    /// Before the broker was asked, or with a text that tells more.
    Because {
        /// The reply code.
        code: ReplyCode,
        /// What is said behind the name of the code.
        text: String,
    },
}

impl Refused {
    /// With a text of its own.
    #[must_use]
    pub fn because(code: ReplyCode, text: impl Into<String>) -> Self {
        Self::Because { code, text: text.into() }
    }

    /// The reply code that clients know for it.
    #[must_use]
    pub fn code(&self) -> ReplyCode {
        match self {
            Self::Declined(refusal) => super::refusal::reply(*refusal),
            Self::Because { code, .. } => *code,
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::Declined(refusal)
    }
}

/// A message on its way to a client.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// What to show when it is settled.
    pub receipt: Receipt,
    /// It was out before.
    pub redelivered: bool,
    /// The exchange it was published to.
    pub exchange: &'a [u8],
    /// The routing key it was published with.
    pub routing_key: &'a [u8],
    /// What it says about itself.
    pub properties: PropertiesRef<'a>,
    /// What it says.
    pub body: &'a [u8],
}
