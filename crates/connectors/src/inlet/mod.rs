//! What a protocol has to do to bring messages in: connect, receive, and let go of what is safe here.

pub(crate) mod amqp;
pub(crate) mod kafka;
#[cfg(feature = "mqtt")]
pub(crate) mod mqtt;
#[cfg(feature = "redis")]
pub(crate) mod redis;

use bytes::Bytes;
use overtake_lane::Given;
use overtake_properties::Properties;

use crate::sink::{LinkError, Work};

/// Another system that messages can be taken from.
pub(crate) trait Origin: Send + Sync {
    /// A connection that receives: with names looked up, secrets shown, and the topic, stream or queue seen to be there where the protocol can
    /// say so.
    fn connect(&self) -> Work<'_, Result<Box<dyn Inlet>, LinkError>>;

    /// Connects for a test, beside a connection that is there already and must stay.
    fn try_out(&self) -> Work<'_, Result<(), LinkError>> {
        Box::pin(async { self.connect().await.map(drop) })
    }
}

/// A connection that receives. What was received and not settled when it is dropped comes again, there or at somebody else's.
pub(crate) trait Inlet: Send {
    /// Waits for messages, and hands over at most so many, in the order in which they came; none where there is a new [`fault`](Self::fault).
    /// Nothing is lost when the wait is given up.
    fn receive(&mut self, max: usize) -> Work<'_, Result<Vec<Incoming>, LinkError>>;

    /// Why one or more of its topics or streams cannot be read while the others can: each reason once. The inlet tries these again by itself.
    fn fault(&mut self) -> Option<String> {
        None
    }

    /// Ends when the connection is lost while what was handed over waits to be settled. Signs of life go on meanwhile where the other side
    /// wants them, and nothing is handed over. Nothing is lost when the wait is given up.
    fn lost(&mut self) -> Work<'_, LinkError> {
        Box::pin(std::future::pending())
    }

    /// What became of all that was handed over last, in its order: it is never asked for more before that.
    fn settle(&mut self, fates: Vec<Fate>) -> Work<'_, Result<(), LinkError>>;

    /// Ends the connection with the other side's consent, so that it has done all that was said before: a server may throw away an
    /// acknowledgement that it has received when its connection is only dropped. Where each settlement has an answer there is nothing to do.
    fn close(&mut self) -> Work<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What became of a message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is durable here.
    Taken,
    /// It will never be taken here. Where the protocol can set it aside it does, else it is let go of: it was set aside here, or counted.
    Refused,
}

/// A message that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// The same whenever it comes again: its own id, else where it stood. Empty: nothing tells it from others.
    pub(crate) id: String,
    /// Its key, where the protocol has one.
    pub(crate) key: Option<String>,
    /// The weight that it gives its key.
    pub(crate) key_weight: Option<u32>,
    /// Where it came from, in the words of the protocol: a topic, a stream, an exchange and a routing key.
    pub(crate) path: String,
    /// Where in that it stood, for people, as `partition 3, offset 42`. Empty: the protocol does not say.
    pub(crate) place: String,
    /// The names of the parts of that, where the source is told.
    pub(crate) parts: Result<Parts, String>,
    /// How urgent it says it is, in the words of whoever sent it: more than the property `priority` has room for.
    pub(crate) priority: Given,
    /// The scheme of that, where it says so.
    pub(crate) scheme: Option<String>,
    /// The message says that it has no priority in a queue of routes, whatever number stands beside that.
    pub(crate) is_last_of_routes: bool,
    /// What it says about itself, headers among it. An expiration is in `ttl_ms`.
    pub(crate) properties: Properties,
    /// Its time to live from now, ms.
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) body: Bytes,
}

impl Default for Incoming {
    fn default() -> Self {
        Self {
            id: String::new(),
            key: None,
            key_weight: None,
            path: String::new(),
            place: String::new(),
            parts: Ok(Parts::default()),
            priority: Given::Missing,
            scheme: None,
            is_last_of_routes: false,
            properties: Properties::default(),
            ttl_ms: None,
            body: Bytes::new(),
        }
    }
}

/// The named parts of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The device that published.
    pub(crate) device: Option<String>,
    /// The module of that device.
    pub(crate) module: Option<String>,
    /// The rest of the topic: the subject of the message.
    pub(crate) path: Option<String>,
}
