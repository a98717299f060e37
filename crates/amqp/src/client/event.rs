//! What a client hears, in the words of the wire.

use std::ops::RangeInclusive;

use bytes::Bytes;
use overtake_properties::{Properties, Table, Value};

use super::ending::Ending;
use crate::incoming::Whole;
use crate::method::MethodId;

/// Something that happened. In order.
///
/// On each channel, what comes of a publish comes so: a message that no queue gets is [`Returned`](Self::Returned) first, and
/// [`Confirmed`](Self::Confirmed) then, as accepted. What is not confirmed when its channel or connection ends may have been
/// taken, or not.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The connection is open.
    Opened(Box<Terms>),
    /// What came of a request.
    Answered {
        /// The channel it was asked on.
        channel: u16,
        /// The method that asked. Answers to the same method come in the order of the questions.
        request: MethodId,
        /// What came of it.
        answer: Answer,
    },
    /// Publishes are answered for: each is told once, and each range is of as many as were told together.
    Confirmed {
        /// The channel they were published on.
        channel: u16,
        /// Their numbers.
        tags: RangeInclusive<u64>,
        /// They are safe; otherwise the server could not take them, and they may be published again.
        is_accepted: bool,
    },
    /// A mandatory message comes back, because no queue gets it. Its confirm follows.
    Returned {
        /// The channel it was published on.
        channel: u16,
        /// Its number, where publishes are confirmed: of the oldest mandatory one that is not confirmed and did not come back
        /// yet, with the same exchange, routing key, `message_id` and body. `None`: there is none.
        tag: Option<u64>,
        /// Why, as a reply code.
        code: u16,
        /// Why, for people.
        text: Bytes,
        /// The message.
        message: Message,
    },
    /// A message for a consumer.
    Delivered {
        /// The channel it came on, and is to be settled on.
        channel: u16,
        /// The consumer.
        consumer_tag: Bytes,
        /// What to settle it by.
        delivery_tag: u64,
        /// It was out before.
        redelivered: bool,
        /// The message.
        message: Message,
    },
    /// A message that was asked for with `basic.get`.
    Got {
        /// The channel it came on, and is to be settled on.
        channel: u16,
        /// What to settle it by.
        delivery_tag: u64,
        /// It was out before.
        redelivered: bool,
        /// So many more are ready.
        message_count: u32,
        /// The message.
        message: Message,
    },
    /// The server has ended a consumer: its queue is gone, or its node.
    ConsumerCancelled {
        /// The channel it was on.
        channel: u16,
        /// The consumer.
        consumer_tag: String,
    },
    /// The server wants no content on a channel for now, or wants it again. It was answered.
    Flow {
        /// The channel.
        channel: u16,
        /// It wants it.
        is_active: bool,
    },
    /// A channel is over, and was not asked to be. Its number is free again.
    ChannelClosed {
        /// The channel.
        channel: u16,
        /// Why, as a reply code.
        code: u16,
        /// Why, for people.
        text: String,
    },
    /// The server takes no messages for now: what is published meanwhile waits, in the socket if need be.
    Blocked {
        /// Why, for people.
        reason: String,
    },
    /// It does again.
    Unblocked,
    /// The connection is over. Nothing comes after it.
    Closed(Ending),
}

/// What was agreed on when the connection was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// What the server says of itself: product, version, capabilities.
    pub server_properties: Table,
    /// The highest number of a channel.
    pub channel_max: u16,
    /// The longest frame, bytes.
    pub frame_max: u32,
    /// Seconds between signs of life; 0: none.
    pub heartbeat_s: u16,
}

impl Terms {
    /// Whether the server says that it has a capability of RabbitMQ's: `publisher_confirms`, `basic.nack` and so on.
    #[must_use]
    pub fn has_capability(&self, name: &str) -> bool {
        match self.server_properties.get("capabilities") {
            Some(Value::Table(capabilities)) => {
                capabilities.get(name).and_then(Value::bool).unwrap_or_default()
            }
            _ => false,
        }
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// The queue is there.
    Queue {
        /// Its name.
        name: String,
        /// Messages that are ready.
        messages: u32,
        /// Consumers.
        consumers: u32,
    },
    /// So many messages were purged, or deleted with their queue.
    Count(u32),
    /// The consumer of this tag is there.
    Consuming(String),
    /// The consumer of this tag is gone. What it holds is still to be settled.
    Cancelled(String),
    /// No message is ready.
    Empty,
}

/// A message, which owns its part of what came.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The exchange it was published to. Any bytes, as the wire has them.
    pub exchange: Bytes,
    /// The routing key it was published with. Any bytes, as the wire has them.
    pub routing_key: Bytes,
    /// What it says about itself.
    pub properties: Properties,
    /// What it says.
    pub body: Bytes,
}

impl Message {
    /// The message, and what its method says besides.
    pub(super) fn of<M>(whole: Whole<M>) -> (M, Bytes, Self) {
        let Whole { about, word, exchange, routing_key, properties, body } = whole;
        (about, word, Self { exchange, routing_key, properties, body })
    }
}
