//! AMQP 0-9-1, with our own codec: one channel, persistent messages, a durable queue with ten levels.

mod get;
mod rest;
mod rpc;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, anyhow, bail};
use overtake_amqp::method::{basic, channel, confirm, connection, queue};
use overtake_amqp::{ContentHeader, Frame, FrameKind, FrameWriter, Method, PROTOCOL_HEADER};
use overtake_properties::{Fields, Limits, Properties, Short, ShortText, TableBuilder, Value};

use super::confirms::Confirms;
use super::input::{Input, connect};
use super::{Delivery, Source, Taker};
use crate::amqp::LEVELS;
pub(crate) use get::Getter;
pub(crate) use rest::Resting;
pub(crate) use rpc::{Caller, Responder};

const CHANNEL: u16 = 1;
/// What we agree to at most, as most clients do, bytes.
const FRAME_MAX: u32 = 131_072;

/// Where a broker listens, and who we are.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) socket: SocketAddr,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) vhost: String,
}

impl Address {
    /// As clients do without a configuration.
    pub(crate) fn guest(socket: SocketAddr) -> Self {
        let guest = || "guest".to_owned();
        Self { socket, user: guest(), password: guest(), vhost: "/".to_owned() }
    }
}

/// A connection with one open channel.
pub(crate) struct Connection {
    socket: TcpStream,
    input: Input,
    out: Vec<u8>,
    frame_max: u32,
}

impl Connection {
    pub(crate) fn open(address: &Address) -> Result<Self> {
        let socket = connect(address.socket)?;
        let mut this = Self { socket, input: Input::new(), out: PROTOCOL_HEADER.to_vec(), frame_max: 0 };
        this.call("connection.start", |method| matches!(method, Method::ConnectionStart(_)).then_some(()))?;
        this.log_in(address);
        let pick = |method: &Method<'_>| match method {
            Method::ConnectionTune(tune) => Some((tune.channel_max, tune.frame_max)),
            _ => None,
        };
        let (channel_max, frame_max) = this.call("connection.tune", pick)?;
        this.frame_max = if frame_max == 0 { FRAME_MAX } else { frame_max.min(FRAME_MAX) };
        this.say(0, connection::TuneOk { channel_max, frame_max: this.frame_max, heartbeat: 0 });
        let virtual_host = ShortText::new(&address.vhost).context("a shorter virtual host")?;
        this.say(0, connection::Open { virtual_host, ..connection::Open::default() });
        this.call("connection.open-ok", |method| {
            matches!(method, Method::ConnectionOpenOk(_)).then_some(())
        })?;
        this.say(CHANNEL, channel::Open::default());
        this.call("channel.open-ok", |method| matches!(method, Method::ChannelOpenOk(_)).then_some(()))?;
        Ok(this)
    }

    fn log_in(&mut self, address: &Address) {
        let (yes, name) = (Value::Bool(true), Short::literal("capabilities"));
        let capabilities = TableBuilder::new()
            .entry(Short::literal("publisher_confirms"), yes)
            .entry(Short::literal("basic.nack"), yes)
            .entry(Short::literal("connection.blocked"), yes)
            .entry(Short::literal("authentication_failure_close"), yes);
        let client = TableBuilder::new()
            .entry(Short::literal("product"), Value::String(b"overtake-bench"))
            .entry(name, Value::Table(capabilities.view()));
        let response = format!("\0{}\0{}", address.user, address.password);
        let start_ok = connection::StartOk {
            client_properties: client.view(),
            mechanism: ShortText::literal("PLAIN"),
            response: response.as_bytes(),
            locale: ShortText::literal("en_US"),
        };
        self.say(0, start_ok);
    }

    /// What the broker says at once when it has greeted: `product version`.
    pub(crate) fn product(address: SocketAddr) -> Result<String> {
        let socket = connect(address)?;
        let mut this = Self { socket, input: Input::new(), out: PROTOCOL_HEADER.to_vec(), frame_max: 0 };
        this.call("connection.start", |method| {
            let Method::ConnectionStart(start) = method else { return None };
            let text = |name| match start.server_properties.get(name) {
                Some(Value::String(text)) => String::from_utf8_lossy(text).into_owned(),
                _ => "?".to_owned(),
            };
            Some(format!("{} {}", text("product"), text("version")))
        })
    }

    pub(crate) fn declare(&mut self, name: &str) -> Result<()> {
        let most = Value::I32(i32::from(LEVELS - 1));
        let arguments = TableBuilder::new().entry(Short::literal("x-max-priority"), most);
        let queue = ShortText::cut(name);
        let declare =
            queue::Declare { durable: true, queue, arguments: arguments.view(), ..Default::default() };
        self.say(CHANNEL, declare);
        self.call("queue.declare-ok", |method| matches!(method, Method::QueueDeclareOk(_)).then_some(()))
    }

    /// How many messages of a queue are ready.
    pub(crate) fn depth(&mut self, name: &str) -> Result<u64> {
        let queue = ShortText::cut(name);
        self.say(CHANNEL, queue::Declare { passive: true, queue, ..Default::default() });
        self.call("queue.declare-ok", |method| match method {
            Method::QueueDeclareOk(ok) => Some(ok.message_count.into()),
            _ => None,
        })
    }

    pub(crate) fn publisher(mut self, queue: &str) -> Result<Publisher> {
        self.say(CHANNEL, confirm::Select { no_wait: false });
        self.call("confirm.select-ok", |method| matches!(method, Method::ConfirmSelectOk(_)).then_some(()))?;
        let of_level =
            |level| Fields { delivery_mode: Some(2), priority: Some(level), ..Fields::default() }.encode();
        Ok(Publisher {
            wire: self,
            queue: queue.to_owned(),
            properties: (0..LEVELS).map(of_level).collect(),
            confirms: Confirms::default(),
        })
    }

    /// The broker names it.
    pub(crate) fn consumer(self, queue: &str, prefetch: u16) -> Result<Consumer> {
        self.named_consumer(queue, prefetch, ShortText::literal(""))
    }

    fn named_consumer(
        mut self,
        queue: &str,
        prefetch_count: u16,
        consumer_tag: ShortText<'_>,
    ) -> Result<Consumer> {
        self.say(CHANNEL, basic::Qos { prefetch_size: 0, prefetch_count, global: false });
        self.call("basic.qos-ok", |method| matches!(method, Method::BasicQosOk(_)).then_some(()))?;
        let queue = ShortText::cut(queue);
        self.consume(basic::Consume { queue, consumer_tag, ..basic::Consume::default() })
    }

    fn consume(mut self, consume: basic::Consume<'_>) -> Result<Consumer> {
        self.say(CHANNEL, consume);
        // Its answer is skipped when it comes: deliveries follow at once.
        self.flush()?;
        Ok(Consumer { wire: self })
    }

    fn say<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        FrameWriter::new(&mut self.out, self.frame_max).method(channel, method);
    }

    fn flush(&mut self) -> Result<()> {
        self.socket.write_all(&self.out).context("writing to the broker")?;
        self.out.clear();
        Ok(())
    }

    /// Sends what is to be sent and waits for this answer.
    fn call<T>(&mut self, what: &str, pick: impl Fn(&Method<'_>) -> Option<T>) -> Result<T> {
        self.flush()?;
        loop {
            while let Some(frame) = Frame::parse(self.input.unread(), self.frame_max)? {
                let picked = match frame.kind {
                    FrameKind::Method => heard(&Method::decode(frame.payload, &Limits::default())?, &pick),
                    _ => Ok(None),
                };
                let len = frame.len();
                self.input.consume(len);
                if let Some(picked) = picked.with_context(|| format!("waiting for {what}"))? {
                    return Ok(picked);
                }
            }
            self.input.fill(&mut self.socket).with_context(|| format!("waiting for {what}"))?;
        }
    }

    /// Ends when the broker has heard everything.
    pub(crate) fn close(mut self) -> Result<()> {
        self.say(0, connection::Close { reply_code: 200, ..connection::Close::default() });
        self.call("connection.close-ok", |method| {
            matches!(method, Method::ConnectionCloseOk(_)).then_some(())
        })
    }
}

/// What was wanted, or why it will not come.
fn heard<T>(method: &Method<'_>, pick: impl Fn(&Method<'_>) -> Option<T>) -> Result<Option<T>> {
    match method {
        Method::ConnectionClose(close) => {
            bail!("the broker closed the connection: {} {}", close.reply_code, close.reply_text.as_str())
        }
        Method::ChannelClose(close) => {
            bail!("the broker closed the channel: {} {}", close.reply_code, close.reply_text.as_str())
        }
        Method::BasicCancel(_) => bail!("the broker cancelled the consumer"),
        Method::BasicNack(nack) => bail!("the broker refused message {}", nack.delivery_tag),
        Method::ConnectionBlocked(blocked) => {
            eprintln!("amqp: the broker blocks publishers: {}", blocked.reason.as_str());
            Ok(None)
        }
        method => Ok(pick(method)),
    }
}

/// A channel with confirms.
pub(crate) struct Publisher {
    wire: Connection,
    queue: String,
    /// One for each level, as bytes.
    properties: Vec<Properties>,
    confirms: Confirms,
}

impl Source for Publisher {
    fn put(&mut self, level: u8, body: &[u8]) -> u64 {
        let routing_key = Short::new(self.queue.as_bytes()).expect("a short name");
        let publish = basic::Publish { routing_key, ..basic::Publish::default() };
        let properties = self.properties[usize::from(level)].view();
        let mut frames = FrameWriter::new(&mut self.wire.out, self.wire.frame_max);
        frames.content(CHANNEL, publish, properties, body).expect("two properties fit a frame");
        self.confirms.published()
    }

    fn flush(&mut self) -> Result<()> {
        self.wire.flush()
    }

    fn hear(&mut self, confirmed: &mut dyn FnMut(u64)) -> Result<()> {
        let Connection { input, socket, frame_max, .. } = &mut self.wire;
        input.fill(socket)?;
        let limits = Limits::default();
        while let Some(frame) = Frame::parse(input.unread(), *frame_max)? {
            if frame.kind == FrameKind::Method {
                match Method::decode(frame.payload, &limits)? {
                    Method::BasicAck(ack) => self.confirms.ack(ack.delivery_tag, ack.multiple, confirmed)?,
                    method => drop(heard(&method, |_| None::<()>)?),
                }
            }
            let len = frame.len();
            input.consume(len);
        }
        Ok(())
    }

    fn socket(&self) -> &TcpStream {
        &self.wire.socket
    }
}

/// A channel with one consumer.
pub(crate) struct Consumer {
    wire: Connection,
}

impl Consumer {
    /// Waits for the one message that was asked for; its tag.
    fn take_one(&mut self, each: &mut dyn FnMut(Delivery<'_>) -> Result<()>) -> Result<u64> {
        let mut one = None;
        while one.is_none() {
            self.take(&mut |delivery| {
                let tag = delivery.tag;
                one = Some(match one.take() {
                    None => each(delivery).map(|()| tag),
                    Some(_) => Err(anyhow!("two messages came where one was asked for")),
                });
            })?;
        }
        one.expect("the loop ends with one")
    }
}

impl Taker for Consumer {
    fn take(&mut self, each: &mut dyn FnMut(Delivery<'_>)) -> Result<()> {
        let Connection { input, socket, frame_max, .. } = &mut self.wire;
        input.fill(socket)?;
        let (limits, mut at) = (Limits::default(), 0);
        let bytes = input.unread();
        while let Some((delivery, len)) = next(&bytes[at..], *frame_max, &limits)? {
            at += len;
            if let Some(delivery) = delivery {
                each(delivery);
            }
        }
        input.consume(at);
        Ok(())
    }

    fn ack(&mut self, tag: u64) {
        self.wire.say(CHANNEL, basic::Ack { delivery_tag: tag, multiple: false });
    }

    fn flush(&mut self) -> Result<()> {
        self.wire.flush()
    }

    fn holds_part(&self) -> bool {
        !self.wire.input.unread().is_empty()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.wire.close()
    }

    fn socket(&self) -> &TcpStream {
        &self.wire.socket
    }
}

/// The next message, or something else that came; with its length, once it is all there.
fn next<'a>(
    bytes: &'a [u8],
    frame_max: u32,
    limits: &Limits,
) -> Result<Option<(Option<Delivery<'a>>, usize)>> {
    let Some(first) = Frame::parse(bytes, frame_max)? else { return Ok(None) };
    if first.kind != FrameKind::Method {
        return Ok(Some((None, first.len())));
    }
    let (tag, redelivered) = match Method::decode(first.payload, limits)? {
        Method::BasicDeliver(deliver) => (deliver.delivery_tag, deliver.redelivered),
        Method::BasicGetOk(got) => (got.delivery_tag, got.redelivered),
        Method::BasicGetEmpty(_) => bail!("the broker says that nothing is left"),
        method => {
            heard(&method, |_| None::<()>)?;
            return Ok(Some((None, first.len())));
        }
    };
    let mut len = first.len();
    let Some(second) = Frame::parse(&bytes[len..], frame_max)? else { return Ok(None) };
    if second.kind != FrameKind::Header {
        bail!("a delivery without a content header");
    }
    let header = ContentHeader::decode(second.payload, limits)?;
    len += second.len();
    let Some(third) = Frame::parse(&bytes[len..], frame_max)? else { return Ok(None) };
    if third.kind != FrameKind::Body || third.payload.len() as u64 != header.body_len {
        bail!("a short body that is not in one piece");
    }
    len += third.len();
    let delivery = Delivery {
        tag,
        level: Some(header.properties.priority().unwrap_or(0)),
        redelivered,
        reply_to: header.properties.reply_to().map_or(&[][..], Short::as_bytes),
        body: third.payload,
    };
    Ok(Some((Some(delivery), len)))
}
