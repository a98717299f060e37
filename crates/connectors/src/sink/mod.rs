//! What a protocol has to do: connect, and send what it is handed.

pub(crate) mod amqp;
pub(crate) mod kafka;
#[cfg(feature = "mqtt")]
pub(crate) mod mqtt;
pub(crate) mod queue;
#[cfg(feature = "redis")]
pub(crate) mod redis;
pub(crate) mod webhook;

use std::fmt;
use std::pin::Pin;

use crate::outbox::Outbox;
use crate::outgoing::Outgoing;

/// Something on its way.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A receiver that can be connected to.
pub(crate) trait Sink: Send + Sync {
    /// Whether it may know messages by [`Outgoing::origin`](crate::outgoing::Outgoing::origin).
    fn is_numbered(&self) -> bool {
        false
    }

    /// The names of the headers and properties that a message is sent without, since the receiver's protocol has no room for them.
    fn left_out(&self, _message: &Outgoing) -> Vec<String> {
        Vec::new()
    }

    /// A connection that is ready to send: with names looked up, secrets shown, and the target seen to be there where the protocol can say so.
    fn connect(&self) -> Work<'_, Result<Box<dyn Link>, LinkError>>;
}

/// A connection to a receiver. Dropping it closes it.
pub(crate) trait Link: Send {
    /// Sends what the outbox hands out until there is no more, and says of each how it fared. Nothing else is sent before this ends.
    fn send<'a>(&'a mut self, outbox: &'a mut Outbox<'_>) -> Work<'a, Result<(), LinkError>>;

    /// Ends when the connection is lost while nothing is sent.
    fn lost(&mut self) -> Work<'_, LinkError> {
        Box::pin(std::future::pending())
    }
}

/// Why there is no connection, or no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkError {
    /// It may come back.
    Lost(String),
    /// The receiver says that it is gone for good.
    Gone(String),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Lost(why) | Self::Gone(why)) = self;
        f.write_str(why)
    }
}

impl From<String> for LinkError {
    fn from(why: String) -> Self {
        Self::Lost(why)
    }
}
