//! A connection that idles, and what it may do before.

use std::net::TcpStream;

use anyhow::{Result, ensure};
use overtake_amqp::Method;
use overtake_amqp::method::basic;
use overtake_properties::ShortText;

use super::{CHANNEL, Connection, Publisher};
use crate::amqp::wire::input::Input;
use crate::amqp::wire::{Delivery, Source, Taker};

/// How the consumer of a burst is called.
const CONSUMER: &str = "burst";

/// A connection without buffers, of which the client can have many.
pub(crate) struct Resting {
    socket: TcpStream,
    frame_max: u32,
}

impl Connection {
    pub(crate) fn rest(self) -> Resting {
        Resting { socket: self.socket, frame_max: self.frame_max }
    }
}

impl Resting {
    /// Publishes these with confirms, gets as many by a consumer that acknowledges each, and rests again, without the consumer.
    pub(crate) fn burst(
        self,
        queue: &str,
        bodies: &[Vec<u8>],
        each: &mut dyn FnMut(Delivery<'_>),
    ) -> Result<Self> {
        let Self { socket, frame_max } = self;
        let wire = Connection { socket, input: Input::new(), out: Vec::new(), frame_max };
        let (wire, consumer_tag) = (publish(wire.publisher(queue)?, bodies)?, ShortText::literal(CONSUMER));
        let mut consumer = wire.named_consumer(queue, bodies.len() as u16, consumer_tag)?;
        let mut tags = Vec::new();
        while tags.len() < bodies.len() {
            let before = tags.len();
            consumer.take(&mut |delivery| {
                tags.push(delivery.tag);
                each(delivery);
            })?;
            tags[before..].iter().for_each(|tag| consumer.ack(*tag));
            consumer.flush()?;
        }
        let mut wire = consumer.wire;
        wire.say(CHANNEL, basic::Cancel { consumer_tag, no_wait: false });
        wire.call("basic.cancel-ok", |method| matches!(method, Method::BasicCancelOk(_)).then_some(()))?;
        ensure!(wire.input.unread().is_empty(), "more came than was published");
        Ok(wire.rest())
    }
}

/// Level 0 for each.
fn publish(mut publisher: Publisher, bodies: &[Vec<u8>]) -> Result<Connection> {
    for body in bodies {
        publisher.put(0, body);
    }
    publisher.flush()?;
    let mut confirmed = 0;
    while confirmed < bodies.len() {
        publisher.hear(&mut |_| confirmed += 1)?;
    }
    Ok(publisher.wire)
}
