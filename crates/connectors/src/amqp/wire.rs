//! A client of AMQP on a socket.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use overtake_amqp::client::{Answer, Client, ClientOptions, Event, Unsent};
use overtake_amqp::method::{Method, MethodId};
use overtake_engine::Clock;
use overtake_properties::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};

use crate::sink::LinkError;
use crate::timer::sleep;

/// The channel everything happens on.
pub(crate) const CHANNEL: u16 = 1;
/// Read at once, bytes.
const PIECE: usize = 64 << 10;

/// Any socket.
trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// A connection that is open, with one channel.
pub(crate) struct Wire {
    pub(crate) client: Client,
    /// The other side is an Overtake, too.
    pub(crate) is_of_ours: bool,
    reader: ReadHalf<Box<dyn Socket>>,
    writer: WriteHalf<Box<dyn Socket>>,
    input: BytesMut,
    /// On its way into the socket.
    output: Vec<u8>,
    /// Bytes of it that are there.
    written: usize,
    /// The socket has passed on all that it was given: one under TLS may keep something back.
    is_flushed: bool,
    /// Heard, and not yet told.
    events: VecDeque<Event>,
    clock: Arc<dyn Clock>,
}

impl Wire {
    pub(super) async fn open(
        socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        options: ClientOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, LinkError> {
        let (reader, writer) = split(Box::new(socket) as Box<dyn Socket>);
        let client = Client::new(clock.now(), options);
        let input = BytesMut::with_capacity(PIECE);
        let (output, written, events) = (Vec::new(), 0, VecDeque::new());
        let is_of_ours = false;
        let is_flushed = true;
        let mut wire =
            Self { client, is_of_ours, reader, writer, input, output, written, is_flushed, events, clock };
        while !wire.client.is_open() {
            match wire.turn().await {
                Some(Event::Closed(ending)) => return Err(ending.to_string().into()),
                Some(Event::Opened(terms)) => {
                    let product = terms.server_properties.get("product").and_then(Value::text);
                    wire.is_of_ours = product == Some("Overtake");
                }
                _ => {}
            }
        }
        wire.client.open_channel().map_err(unsent)?;
        Ok(wire)
    }

    /// Asks, and waits for what comes of it.
    ///
    /// # Errors
    /// The server refuses, or the connection is lost.
    pub(crate) async fn ask<'m>(&mut self, method: impl Into<Method<'m>>) -> Result<Answer, LinkError> {
        let method: Method<'m> = method.into();
        let asked: MethodId = method.id();
        self.client.ask(CHANNEL, method).map_err(unsent)?;
        let mut others = VecDeque::new();
        let answer = loop {
            match self.next().await? {
                Event::Answered { request, answer, .. } if request == asked => break answer,
                other => others.push_back(other),
            }
        };
        others.append(&mut self.events);
        self.events = others;
        Ok(answer)
    }

    /// The next thing that is heard. What is said meanwhile goes out; nothing is lost when the wait is given up.
    ///
    /// # Errors
    /// The channel or the connection is over.
    pub(crate) async fn next(&mut self) -> Result<Event, LinkError> {
        loop {
            let event = match self.events.pop_front() {
                Some(event) => Some(event),
                None => self.turn().await,
            };
            let Some(event) = event else { continue };
            return ended_by(&event).map_or(Ok(event), Err);
        }
    }

    /// Hears what comes, and keeps it for [`Wire::next`]; ends when the channel or the connection is over.
    pub(crate) async fn lost(&mut self) -> LinkError {
        loop {
            if let Some(error) = self.events.iter().find_map(ended_by) {
                return error;
            }
            if let Some(event) = self.turn().await {
                self.events.push_front(event);
            }
        }
    }

    /// Something that was heard already, up to the end of the channel or the connection, which [`Wire::next`] and [`Wire::lost`] tell.
    pub(crate) fn heard(&mut self) -> Option<Event> {
        self.events.pop_front_if(|event| ended_by(event).is_none())
    }

    /// Has everything that was said in the socket.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) async fn flush(&mut self) -> Result<(), LinkError> {
        while self.has_output() {
            if let Some(event) = self.turn().await {
                let is_over = matches!(event, Event::Closed(_));
                self.events.push_front(event);
                if is_over {
                    return self.next().await.map(drop);
                }
            }
        }
        Ok(())
    }

    /// Asks the server to end the connection, and waits until it has: then it has done all that was said before.
    pub(crate) async fn close(&mut self, why: &str) {
        self.client.close(self.clock.now(), why);
        while !self.client.is_over() {
            // Deliveries that come now go back to the queue there.
            self.turn().await;
            self.events.clear();
        }
    }

    fn has_output(&mut self) -> bool {
        !self.is_flushed || self.written < self.output.len() || !self.client.output().is_empty()
    }

    /// Reads or writes once, or lets time pass.
    async fn turn(&mut self) -> Option<Event> {
        if self.written == self.output.len() {
            self.output = std::mem::take(self.client.output());
            self.written = 0;
        }
        let wakes = self.client.next_deadline().and_then(|at| self.clock.until(at));
        let rest = &self.output[self.written..];
        let Self { reader, writer, input, is_flushed, .. } = self;
        input.reserve(PIECE);
        tokio::select! {
            read = reader.read_buf(input) => match read {
                Ok(len) if len > 0 => self.client.receive(self.clock.now(), &mut self.input),
                _ => self.client.hung_up(),
            },
            given = give(writer, rest), if !rest.is_empty() || !*is_flushed => match given {
                Ok(0) => *is_flushed = true,
                Ok(len) => {
                    *is_flushed = false;
                    self.written += len;
                    self.client.written(self.clock.now());
                }
                Err(_) => self.client.hung_up(),
            },
            () = sleep(wakes) => {}
        }
        self.client.tick(self.clock.now());
        self.events.extend(self.client.take_events());
        self.events.pop_front()
    }
}

/// Gives the socket a part of these bytes; of none, has it pass on all that it was given. Answers how many it took.
async fn give(writer: &mut (impl AsyncWrite + Unpin), rest: &[u8]) -> std::io::Result<usize> {
    match rest {
        [] => writer.flush().await.map(|()| 0),
        rest => match writer.write(rest).await? {
            0 => Err(std::io::ErrorKind::WriteZero.into()),
            len => Ok(len),
        },
    }
}

/// How the channel or the connection ended, if this says so.
fn ended_by(event: &Event) -> Option<LinkError> {
    match event {
        Event::Closed(ending) => Some(ending.to_string().into()),
        Event::ChannelClosed { code, text, .. } => {
            Some(format!("the server closed the channel: {code} {text}").into())
        }
        _ => None,
    }
}

pub(crate) fn unsent(unsent: Unsent) -> LinkError {
    LinkError::Lost(unsent.to_string())
}

#[cfg(test)]
mod tests;
