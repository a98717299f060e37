//! Remote procedure calls, with direct reply-to: requests go to a queue, replies straight to the caller's channel.

use std::io::Write;

use anyhow::{Context, Result};
use overtake_amqp::FrameWriter;
use overtake_amqp::method::basic;
use overtake_properties::{Fields, Properties, Short, ShortText};

use super::{CHANNEL, Connection, Consumer};
use crate::amqp::wire::{Delivery, Taker};

/// The name by which a channel consumes the replies to its own requests, and asks for them.
const REPLIES: &str = "amq.rabbitmq.reply-to";

/// A channel that calls, without confirms.
pub(crate) struct Caller {
    consumer: Consumer,
    queue: String,
    /// Transient, with a place for the reply.
    properties: Properties,
}

/// A channel that replies to each request, without acknowledgements.
pub(crate) struct Responder {
    consumer: Consumer,
    /// Transient.
    properties: Properties,
    out: Vec<u8>,
}

impl Connection {
    pub(crate) fn caller(self, queue: &str) -> Result<Caller> {
        let reply_to = Some(Short::literal(REPLIES));
        let properties = Fields { delivery_mode: Some(1), reply_to, ..Fields::default() }.encode();
        Ok(Caller { consumer: self.consume_unacknowledged(REPLIES)?, queue: queue.to_owned(), properties })
    }

    /// The requests of this queue.
    pub(crate) fn responder(self, queue: &str) -> Result<Responder> {
        let properties = Fields { delivery_mode: Some(1), ..Fields::default() }.encode();
        Ok(Responder { consumer: self.consume_unacknowledged(queue)?, properties, out: Vec::new() })
    }

    fn consume_unacknowledged(self, queue: &str) -> Result<Consumer> {
        let queue = ShortText::cut(queue);
        self.consume(basic::Consume { queue, no_ack: true, ..basic::Consume::default() })
    }
}

impl Caller {
    /// Sends a request and waits for its reply.
    pub(crate) fn call(
        &mut self,
        body: &[u8],
        each: &mut dyn FnMut(Delivery<'_>) -> Result<()>,
    ) -> Result<()> {
        let Connection { out, frame_max, .. } = &mut self.consumer.wire;
        write(out, *frame_max, self.queue.as_bytes(), &self.properties, body)?;
        self.consumer.flush()?;
        self.consumer.take_one(each)?;
        Ok(())
    }

    pub(crate) fn close(self) -> Result<()> {
        self.consumer.wire.close()
    }
}

impl Responder {
    /// Replies to this many requests, each with its own body.
    pub(crate) fn serve(&mut self, count: u64) -> Result<()> {
        let Self { consumer, properties, out } = self;
        let (frame_max, mut served) = (consumer.wire.frame_max, 0);
        while served < count {
            let mut all = Ok(());
            consumer.take(&mut |delivery| {
                served += 1;
                if all.is_ok() {
                    all = write(out, frame_max, delivery.reply_to, properties, delivery.body);
                }
            })?;
            all?;
            consumer.wire.socket.write_all(out).context("writing replies")?;
            out.clear();
        }
        Ok(())
    }

    pub(crate) fn close(self) -> Result<()> {
        self.consumer.wire.close()
    }
}

/// Appends a message for a queue.
fn write(
    out: &mut Vec<u8>,
    frame_max: u32,
    queue: &[u8],
    properties: &Properties,
    body: &[u8],
) -> Result<()> {
    let routing_key = Short::new(queue).filter(|name| !name.as_bytes().is_empty());
    let routing_key = routing_key.context("a message without a queue to go to")?;
    let publish = basic::Publish { routing_key, ..basic::Publish::default() };
    let mut frames = FrameWriter::new(out, frame_max);
    frames.content(CHANNEL, publish, properties.view(), body).context("properties longer than a frame")
}
