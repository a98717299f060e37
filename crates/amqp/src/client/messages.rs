//! Messages on their way to a client: gathered frame by frame, told when they are whole.

use super::channel::{Carrier, Closing};
use super::unconfirmed::Likeness;
use super::{Client, Event, Message};
use crate::frame::{Frame, FrameKind};
use crate::incoming::{Whole, unexpected};
use crate::violation::Violation;

impl Client {
    pub(super) fn take_content(&mut self, frame: &Frame<'_>) -> Result<(), Violation> {
        let body_max = self.options.body_max;
        let Some(channel) = self.open_one(frame.channel)? else { return Ok(()) };
        if channel.closing == Closing::Broken {
            return Ok(());
        }
        let Some(incoming) = &mut channel.incoming else {
            return Err(unexpected("expected method frame, got content"));
        };
        let is_whole = match frame.kind {
            FrameKind::Header => incoming.header(frame.payload, body_max)?,
            _ => incoming.body(frame.payload)?,
        };
        if is_whole {
            let incoming = channel.incoming.take().expect("it is whole");
            let whole = incoming.finish(&channel.names);
            self.tell(frame.channel, whole);
        }
        Ok(())
    }

    fn tell(&mut self, channel: u16, whole: Whole<Carrier>) {
        let (carrier, word, message) = Message::of(whole);
        let event = match carrier {
            Carrier::Deliver { delivery_tag, redelivered } => {
                Event::Delivered { channel, consumer_tag: word, delivery_tag, redelivered, message }
            }
            Carrier::GetOk { delivery_tag, redelivered, message_count } => {
                Event::Got { channel, delivery_tag, redelivered, message_count, message }
            }
            Carrier::Return { code } => {
                let tag = self.returned(channel, &message);
                Event::Returned { channel, tag, code, text: word, message }
            }
        };
        self.events.push(event);
    }

    /// The number of a message that comes back.
    fn returned(&mut self, channel: u16, message: &Message) -> Option<u64> {
        let unconfirmed = self.channel(channel).unconfirmed.as_mut()?;
        let Message { exchange, routing_key, properties, body } = message;
        unconfirmed.give_back(Likeness::of(exchange, routing_key, properties.view(), body))
    }
}
