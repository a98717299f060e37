//! `basic.get`: one message for each request.

use anyhow::Result;
use overtake_amqp::method::basic;
use overtake_properties::ShortText;

use super::{CHANNEL, Connection, Consumer};
use crate::amqp::wire::{Delivery, Taker};

/// A channel that asks for each message.
pub(crate) struct Getter {
    consumer: Consumer,
    queue: String,
    /// The message that is acknowledged with the next request.
    last: Option<u64>,
}

impl Connection {
    pub(crate) fn getter(self, queue: &str) -> Getter {
        Getter { consumer: Consumer { wire: self }, queue: queue.to_owned(), last: None }
    }
}

impl Getter {
    /// Acknowledges the message before and asks for the next, in one write, and waits for it.
    ///
    /// # Errors
    /// When none is left.
    pub(crate) fn get(&mut self, each: &mut dyn FnMut(Delivery<'_>) -> Result<()>) -> Result<()> {
        if let Some(last) = self.last.take() {
            self.consumer.ack(last);
        }
        let get = basic::Get { ticket: 0, queue: ShortText::cut(&self.queue), no_ack: false };
        self.consumer.wire.say(CHANNEL, get);
        self.consumer.flush()?;
        self.last = Some(self.consumer.take_one(each)?);
        Ok(())
    }

    /// Acknowledges the last message, and ends when the broker has heard it.
    pub(crate) fn close(mut self) -> Result<()> {
        if let Some(last) = self.last.take() {
            self.consumer.ack(last);
        }
        Box::new(self.consumer).close()
    }
}
