//! What is asked of the server.

use std::fmt;

use overtake_properties::{PropertiesRef, ShortText};

use super::channel::{Channel, Closing};
use super::unconfirmed::Likeness;
use super::{Client, Stage};
use crate::method::{Method, basic, channel};
use crate::writer::{FrameWriter, HeaderTooLarge};

/// Why something was not sent. Nothing of it was put out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The connection is not open yet, or no more.
    NotOpen,
    /// There is no such channel, or it is being closed.
    NoSuchChannel,
    /// All numbers of channels are in use.
    NoChannelFree,
    /// The server wants no content on this channel for now; [`Event::Flow`](super::Event::Flow) says when it does.
    Halted,
    /// It is no request of a channel, or has a method of its own here.
    NoRequest,
    /// It fits no frame of the length that was agreed on.
    TooLarge {
        /// How long the frame would be, bytes.
        len: usize,
    },
}

impl Client {
    /// Opens a channel, with the lowest number that is free. It may be used at once; its opening is answered as other requests
    /// are.
    ///
    /// # Errors
    /// [`Unsent::NotOpen`], [`Unsent::NoChannelFree`].
    pub fn open_channel(&mut self) -> Result<u16, Unsent> {
        self.check_open()?;
        let is_free = |number: &u16| !self.channels.contains_key(number);
        let number = (1..=self.channel_max).find(is_free).ok_or(Unsent::NoChannelFree)?;
        let mut channel = Channel::default();
        channel.awaited.push_back(channel::Open::ID);
        self.channels.insert(number, channel);
        self.say(number, channel::Open { out_of_band: ShortText::default() });
        Ok(number)
    }

    /// Closes a channel. What it was asked before is still answered; what is out to it goes back.
    ///
    /// # Errors
    /// [`Unsent::NotOpen`], [`Unsent::NoSuchChannel`].
    pub fn close_channel(&mut self, number: u16, why: &str) -> Result<(), Unsent> {
        let channel = self.usable(number)?;
        channel.closing = Closing::Asked;
        channel.awaited.push_back(channel::Close::ID);
        let reply_text = ShortText::cut(why);
        self.say(number, channel::Close { reply_code: 200, reply_text, class_id: 0, method_id: 0 });
        Ok(())
    }

    /// Asks something on a channel: a method of the classes exchange and queue, `confirm.select`, or of basic `qos`, `consume`,
    /// `cancel`, `get`, `recover`, and `ack`, `nack`, `reject`. All but the last three, and those with `no_wait`, are answered:
    /// with [`Event::Answered`](super::Event::Answered), or [`Event::ChannelClosed`](super::Event::ChannelClosed) where the
    /// server refuses. They need not wait for each other.
    ///
    /// # Errors
    /// Any [`Unsent`] but [`Unsent::NoChannelFree`] and [`Unsent::Halted`].
    pub fn ask<'m>(&mut self, number: u16, method: impl Into<Method<'m>>) -> Result<(), Unsent> {
        let method = method.into();
        let is_answered = is_answered(&method).ok_or(Unsent::NoRequest)?;
        self.usable(number)?;
        let start = self.out.len();
        self.say(number, method);
        let len = self.out.len() - start;
        if len > self.frame_max as usize {
            self.out.truncate(start);
            return Err(Unsent::TooLarge { len });
        }
        let channel = self.channel(number);
        if is_answered {
            channel.awaited.push_back(method.id());
        }
        if matches!(method, Method::ConfirmSelect(_)) {
            channel.unconfirmed.get_or_insert_default();
        }
        Ok(())
    }

    /// Publishes a message. Answers its number, where `confirm.select` was asked on the channel before: they are counted from 1
    /// since then.
    ///
    /// # Errors
    /// [`Unsent::NotOpen`], [`Unsent::NoSuchChannel`], [`Unsent::Halted`]; [`Unsent::TooLarge`] where its properties do not fit a
    /// frame.
    pub fn publish(
        &mut self,
        number: u16,
        method: basic::Publish<'_>,
        properties: PropertiesRef<'_>,
        body: &[u8],
    ) -> Result<Option<u64>, Unsent> {
        if self.usable(number)?.is_halted {
            return Err(Unsent::Halted);
        }
        FrameWriter::new(&mut self.out, self.frame_max).content(number, method, properties, body)?;
        let Some(unconfirmed) = &mut self.channel(number).unconfirmed else { return Ok(None) };
        let (exchange, routing_key) = (method.exchange.as_bytes(), method.routing_key.as_bytes());
        let likeness = || Likeness::of(exchange, routing_key, properties, body);
        Ok(Some(unconfirmed.publish(method.mandatory.then(likeness))))
    }

    /// How many publishes of a channel are not confirmed; 0 when there is no such channel, or nobody asked for confirms.
    #[must_use]
    pub fn unconfirmed(&self, number: u16) -> u64 {
        let unconfirmed = self.channels.get(&number).and_then(|channel| channel.unconfirmed.as_ref());
        unconfirmed.map_or(0, super::unconfirmed::Unconfirmed::len)
    }

    fn check_open(&self) -> Result<(), Unsent> {
        if self.stage == Stage::Running { Ok(()) } else { Err(Unsent::NotOpen) }
    }

    /// A channel that may be used.
    fn usable(&mut self, number: u16) -> Result<&mut Channel, Unsent> {
        self.check_open()?;
        let channel = self.channels.get_mut(&number).filter(|channel| channel.closing == Closing::Not);
        channel.ok_or(Unsent::NoSuchChannel)
    }
}

/// Whether a request is answered; `None`: it is none.
fn is_answered(method: &Method<'_>) -> Option<bool> {
    Some(match method {
        Method::ConfirmSelect(ask) => !ask.no_wait,
        Method::ExchangeDeclare(ask) => !ask.no_wait,
        Method::ExchangeDelete(ask) => !ask.no_wait,
        Method::ExchangeBind(ask) => !ask.no_wait,
        Method::ExchangeUnbind(ask) => !ask.no_wait,
        Method::QueueDeclare(ask) => !ask.no_wait,
        Method::QueueBind(ask) => !ask.no_wait,
        Method::QueuePurge(ask) => !ask.no_wait,
        Method::QueueDelete(ask) => !ask.no_wait,
        Method::BasicConsume(ask) => !ask.no_wait,
        Method::BasicCancel(ask) => !ask.no_wait,
        Method::QueueUnbind(_) | Method::BasicQos(_) | Method::BasicGet(_) | Method::BasicRecover(_) => true,
        Method::BasicAck(_) | Method::BasicNack(_) | Method::BasicReject(_) => false,
        _ => return None,
    })
}

impl From<HeaderTooLarge> for Unsent {
    fn from(header: HeaderTooLarge) -> Self {
        Self::TooLarge { len: header.len }
    }
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => f.write_str("the connection is not open"),
            Self::NoSuchChannel => f.write_str("there is no such channel"),
            Self::NoChannelFree => f.write_str("no channel is free"),
            Self::Halted => f.write_str("the server wants no messages on this channel for now"),
            Self::NoRequest => f.write_str("it is nothing that is asked on a channel"),
            Self::TooLarge { len } => write!(f, "{len} bytes fit no frame"),
        }
    }
}

impl std::error::Error for Unsent {}
