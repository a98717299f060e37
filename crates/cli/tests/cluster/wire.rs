//! One connection over AMQP, as little of it as publishers and consumers need: what is said and heard, and when the connection is gone.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

use overtake_amqp::method::{basic, channel, confirm, connection, tx};
use overtake_amqp::{Frame, FrameKind, FrameWriter, Method, PROTOCOL_HEADER};
use overtake_properties::{Limits, PropertiesRef, Short, ShortText, TableBuilder, Value};

use crate::history::Message;

const CHANNEL: u16 = 1;
/// What we agree to at most, as most clients do, bytes.
const FRAME_MAX: u32 = 131_072;
/// For how long an answer to the login may be waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// For how long one look waits for something to come.
const LOOK: Duration = Duration::from_millis(5);

/// What a broker says on an open channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A message for a consumer.
    Delivered { tag: u64, is_again: bool, message: Message },
    /// Publishes are confirmed: one, or all up to it.
    Confirmed { tag: u64, multiple: bool },
    /// Publishes could not be taken.
    Refused { tag: u64, multiple: bool },
    /// What was asked in a transaction is done.
    Committed,
}

/// A connection with one channel.
pub(crate) struct Wire {
    socket: TcpStream,
    input: Vec<u8>,
    out: Vec<u8>,
    /// Of the message that is on its way: its tag, and whether it was out before.
    coming: Option<(u64, bool)>,
}

impl Wire {
    /// Logs in at a broker.
    pub(crate) fn open(socket: TcpStream) -> Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut wire = Self { socket, input: Vec::new(), out: PROTOCOL_HEADER.to_vec(), coming: None };
        wire.call(|method| matches!(method, Method::ConnectionStart(_)))?;
        wire.log_in();
        wire.call(|method| matches!(method, Method::ConnectionTune(_)))?;
        wire.say(0, connection::TuneOk { channel_max: 0, frame_max: FRAME_MAX, heartbeat: 0 });
        let virtual_host = ShortText::literal("/");
        wire.say(0, connection::Open { virtual_host, ..connection::Open::default() });
        wire.call(|method| matches!(method, Method::ConnectionOpenOk(_)))?;
        wire.say(CHANNEL, channel::Open::default());
        wire.call(|method| matches!(method, Method::ChannelOpenOk(_)))?;
        wire.socket.set_read_timeout(Some(LOOK))?;
        Ok(wire)
    }

    fn log_in(&mut self) {
        let capabilities =
            TableBuilder::new().entry(Short::literal("authentication_failure_close"), Value::Bool(true));
        let client =
            TableBuilder::new().entry(Short::literal("capabilities"), Value::Table(capabilities.view()));
        let start_ok = connection::StartOk {
            client_properties: client.view(),
            mechanism: ShortText::literal("PLAIN"),
            response: b"\0guest\0guest",
            locale: ShortText::literal("en_US"),
        };
        self.say(0, start_ok);
    }

    /// From now on publishes are confirmed.
    pub(crate) fn confirm(&mut self) {
        self.say(CHANNEL, confirm::Select { no_wait: false });
    }

    /// From now on settlements happen when they are committed.
    pub(crate) fn transact(&mut self) {
        self.say(CHANNEL, tx::Select {});
    }

    /// Wants messages, so many at once.
    pub(crate) fn consume(&mut self, queue: &str, window: u16) {
        self.say(CHANNEL, basic::Qos { prefetch_size: 0, prefetch_count: window, global: false });
        self.say(CHANNEL, basic::Consume { queue: ShortText::cut(queue), ..basic::Consume::default() });
    }

    /// Publishes a message to a queue, which must be there.
    pub(crate) fn publish(&mut self, queue: &str, properties: PropertiesRef<'_>, body: &[u8]) {
        let routing_key = Short::new(queue.as_bytes()).expect("a short name");
        let publish = basic::Publish { routing_key, mandatory: true, ..basic::Publish::default() };
        let mut frames = FrameWriter::new(&mut self.out, FRAME_MAX);
        frames.content(CHANNEL, publish, properties, body).expect("few properties fit a frame");
    }

    /// A message is done.
    pub(crate) fn ack(&mut self, tag: u64) {
        self.say(CHANNEL, basic::Ack { delivery_tag: tag, multiple: false });
    }

    /// A message is to be put back.
    pub(crate) fn put_back(&mut self, tag: u64) {
        self.say(CHANNEL, basic::Nack { delivery_tag: tag, multiple: false, requeue: true });
    }

    /// What was settled since the last time is to happen.
    pub(crate) fn commit(&mut self) {
        self.say(CHANNEL, tx::Commit {});
    }

    /// Sends what was said, and takes what has come, within a moment.
    pub(crate) fn exchange(&mut self) -> Result<Vec<Heard>> {
        self.flush()?;
        self.fill()?;
        let (mut heard, mut at) = (Vec::new(), 0);
        while let Some(frame) = Frame::parse(&self.input[at..], FRAME_MAX).map_err(Error::other)? {
            heard.extend(hear(&frame, &mut self.coming)?);
            at += frame.len();
        }
        self.input.drain(..at);
        Ok(heard)
    }

    fn say<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        FrameWriter::new(&mut self.out, FRAME_MAX).method(channel, method);
    }

    fn flush(&mut self) -> Result<()> {
        self.socket.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Reads once; nothing may have come.
    fn fill(&mut self) -> Result<bool> {
        let mut piece = [0; 65_536];
        match self.socket.read(&mut piece) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => {
                self.input.extend_from_slice(&piece[..len]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits for an answer.
    fn call(&mut self, is_it: impl Fn(&Method<'_>) -> bool) -> Result<()> {
        self.flush()?;
        loop {
            let Some(frame) = Frame::parse(&self.input, FRAME_MAX).map_err(Error::other)? else {
                if !self.fill()? {
                    return Err(ErrorKind::TimedOut.into());
                }
                continue;
            };
            let method = Method::decode(frame.payload, &Limits::default()).map_err(Error::other)?;
            let is_answer = is_it(&method);
            let len = frame.len();
            if !is_answer {
                return Err(Error::other(format!("{method:?}")));
            }
            self.input.drain(..len);
            return Ok(());
        }
    }
}

/// What a frame says, once it is all there.
fn hear(frame: &Frame<'_>, coming: &mut Option<(u64, bool)>) -> Result<Option<Heard>> {
    match frame.kind {
        FrameKind::Header | FrameKind::Heartbeat => return Ok(None),
        FrameKind::Body => {
            let (tag, is_again) = coming.take().expect("a body belongs to a delivery");
            return Ok(Some(Heard::Delivered { tag, is_again, message: named(frame.payload) }));
        }
        FrameKind::Method => {}
    }
    let method = Method::decode(frame.payload, &Limits::default()).map_err(Error::other)?;
    Ok(match method {
        Method::BasicDeliver(deliver) => {
            *coming = Some((deliver.delivery_tag, deliver.redelivered));
            None
        }
        Method::BasicAck(ack) => Some(Heard::Confirmed { tag: ack.delivery_tag, multiple: ack.multiple }),
        Method::BasicNack(nack) => Some(Heard::Refused { tag: nack.delivery_tag, multiple: nack.multiple }),
        Method::TxCommitOk(_) => Some(Heard::Committed),
        Method::ConnectionClose(_)
        | Method::ChannelClose(_)
        | Method::BasicCancel(_)
        | Method::BasicReturn(_) => {
            return Err(Error::other(format!("{method:?}")));
        }
        _ => None,
    })
}

/// How many digits of a body name its message.
const DIGITS: usize = 10;

/// A body that names its message.
pub(crate) fn body(message: Message, len: usize) -> Vec<u8> {
    let mut body = format!("{:0DIGITS$}", message.0).into_bytes();
    body.resize(len, b'.');
    body
}

/// Which message a body names.
pub(crate) fn named(body: &[u8]) -> Message {
    let digits = body.get(..DIGITS).and_then(|digits| std::str::from_utf8(digits).ok());
    Message(digits.and_then(|digits| digits.parse().ok()).expect("a body names its message"))
}
