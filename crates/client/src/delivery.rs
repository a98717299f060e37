//! A message that came, to be settled.

use std::ops::Deref;
use std::sync::Arc;

use crate::error::Error;
use crate::line::{How, Line, SeatId};
use crate::message::Message;
use crate::received::Received;

/// The place of a consumer at the broker, for as long as it or one of its deliveries is there.
pub(crate) struct Chair {
    pub(crate) line: Line,
    pub(crate) seat: SeatId,
}

impl Drop for Chair {
    fn drop(&mut self) {
        self.line.stand_up(self.seat);
    }
}

/// A message that came, to be settled. It reads as a [`Received`]. One that is dropped is put back.
#[must_use = "a delivery that is dropped is put back"]
pub struct Delivery {
    received: Received,
    loan: Loan,
}

/// What is to be settled of a delivery.
pub(crate) struct Loan {
    pub(crate) chair: Arc<Chair>,
    pub(crate) life: u64,
    pub(crate) tag: u64,
    pub(crate) is_settled: bool,
}

impl Delivery {
    pub(crate) fn new(received: Received, loan: Loan) -> Self {
        Self { received, loan }
    }

    pub(crate) fn apart(self) -> (Received, Loan) {
        (self.received, self.loan)
    }

    /// It is done: the broker forgets it. Said with the next bytes that go out; what is lost on the way comes again.
    ///
    /// # Errors
    /// [`Error::LeaseOver`]: its connection was lost meanwhile, or its channel. It comes again.
    pub fn ack(self) -> Result<(), Error> {
        self.loan.settle(How::Ack)
    }

    /// It failed and is put back: to its own place, or aside for as long as the queue's backoff says.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    pub fn nack(self) -> Result<(), Error> {
        self.loan.settle(How::Nack)
    }

    /// It will never succeed: it is dead-lettered.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    pub fn reject(self) -> Result<(), Error> {
        self.loan.settle(How::Reject)
    }

    /// Answers whoever published it and waits for a reply. Acknowledge it then.
    ///
    /// # Errors
    /// [`Error::Invalid`]: nobody waits for a reply; or as [`Client::publish`](crate::Client::publish).
    pub async fn reply(&self, message: Message) -> Result<(), Error> {
        reply(&self.loan.chair.line, &self.received, message).await
    }

    /// The message, which may be kept.
    #[must_use]
    pub fn received(&self) -> &Received {
        &self.received
    }
}

impl Loan {
    pub(crate) fn settle(mut self, how: How) -> Result<(), Error> {
        self.is_settled = true;
        self.chair.line.settle(self.chair.seat, self.life, self.tag, how)
    }
}

/// Answers what was received, in its priority unless something else says one.
pub(crate) async fn reply(line: &Line, received: &Received, message: Message) -> Result<(), Error> {
    let queue = received.reply_to().ok_or_else(|| {
        Error::Invalid("nobody waits for a reply: the message names no queue for it".to_owned())
    })?;
    let message = match received.correlation_id() {
        Some(id) => message.correlation_id(id),
        None => message,
    };
    let scope = crate::priority::scope().or(received.priority());
    crate::client::send(line, queue.into(), message, scope).await?.wait().await
}

impl Drop for Loan {
    fn drop(&mut self) {
        if !self.is_settled {
            // If its connection is gone it is back already.
            let _ = self.chair.line.settle(self.chair.seat, self.life, self.tag, How::Nack);
        }
    }
}

impl Deref for Delivery {
    type Target = Received;

    fn deref(&self) -> &Received {
        &self.received
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.received.fmt(f)
    }
}
