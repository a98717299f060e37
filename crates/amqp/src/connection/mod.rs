//! One connection (2.2.4, 4.2, 4.7): a state machine over bytes, without sockets and without a clock.
//!
//! ```text
//!   receive(now, bytes) ─▶ Connection ─▶ take_asks() ─▶ the broker
//!   output() ◀───────────────┘   ▲ answer, published, deliver, got, ended ◀──┘
//! ```
//!
//! Whoever drives it reads bytes while [`Connection::wants_bytes`], hands on what is asked, in order, tells what comes of it,
//! writes what [`Connection::output`] has gathered, and calls [`Connection::tick`] at [`Connection::next_deadline`].
//! Invariants: an operation of a channel is answered before the next method of that channel is looked at, so answers come in
//! the order of the questions; only whole frames are put out; what a closed channel asked for is told to nobody.

mod asks;
mod blocked;
mod channel;
mod confirms;
mod login;
mod methods;
mod outgoing;
mod refusal;
mod unacked;
mod view;

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::{Buf, BytesMut};
use overtake_lane::{ConsumerId, Outcome, Receipt, Time};
use overtake_properties::{ShortText, Table};

pub use crate::sasl::Credentials;
pub use asks::{
    Answer, Ask, Consume, DeclareExchange, DeclareQueue, Delivery, Destination, Link, Operation, Publish,
    Refused, Token,
};
pub use login::NoVhost;
pub use view::{ChannelCounts, ChannelView, ConnectionState, ConsumerView, View};

use crate::frame::{Frame, FrameKind, PROTOCOL_HEADER, starts_protocol};
use crate::method::connection::{Close, CloseOk};
use crate::method::{Method, MethodId, channel as wire};
use crate::pulse::{Beat, Pulse};
use crate::reply::{ReplyCode, Scope};
use crate::violation::Violation;
use crate::writer::FrameWriter;
use blocked::Deferred;
use channel::Channel;
use login::Understands;
use methods::Expect;
use outgoing::{Feed, InFlight};

/// The longest frame before limits are agreed on, bytes: enough for what clients say of themselves.
const FIRST_FRAME_MAX: u32 = 8_192;
/// With so many bytes of publishes unanswered nothing more is read: each is kept until then, as it may have to be sent back.
const UNANSWERED_BYTES_MAX: u64 = 8 << 20;
/// How long a client may take to log in, or to agree that it is over, ms.
const PATIENCE_MS: u64 = 10_000;
/// How a delivery ends that the client returns or leaves behind: the queue's backoff says how long the message waits.
const FAILED: Outcome = Outcome::Nack { delay_ms: None };

/// What a connection may do.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the broker says of itself.
    pub version: String,
    /// Most channels.
    pub channel_max: u16,
    /// The longest frame, bytes.
    pub frame_max: u32,
    /// Seconds between signs of life; 0: none.
    pub heartbeat_s: u16,
    /// The longest body, bytes.
    pub body_max: u64,
    /// The most bytes of contents that are being received and of publishes that wait for a commit, of all channels; twice `body_max`
    /// if that is more.
    pub held_max: u64,
    /// The most consumers of all channels.
    pub consumer_max: u32,
    /// The client showed a certificate.
    pub has_certificate: bool,
    /// Tells this connection's consumer tags from those of others.
    pub number: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            channel_max: 2_047,
            frame_max: 131_072,
            heartbeat_s: 60,
            body_max: 16 << 20,
            held_max: 128 << 20,
            consumer_max: 10_000,
            has_certificate: false,
            number: 0,
        }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing has come.
    Silent,
    StartOk,
    LoggingIn,
    TuneOk,
    Open,
    Opening,
    Running,
    /// We have closed it and wait for the client to agree.
    Closing,
    Over,
}

/// Who ends the socket of a connection that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// The broker, once everything is written.
    Broker,
    /// The client, who has closed the connection; the broker only if it does not.
    Client,
    /// Whoever likes: the client is lost.
    Nobody,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    options: Options,
    stage: Stage,
    farewell: Farewell,
    /// Until then it must be open, or over.
    patience: Time,
    understands: Understands,
    client_properties: Table,
    mechanism: &'static str,
    vhost: String,
    channel_max: u16,
    frame_max: u32,
    pulse: Pulse,
    /// Boxed: the map has room for eleven as soon as there is one, and most connections have one.
    channels: BTreeMap<u16, Box<Channel>>,
    lives: u64,
    feeds: HashMap<ConsumerId, Feed>,
    /// Operations that are not answered.
    expected: BTreeMap<Token, Expect>,
    /// Publishes that are not answered, oldest first.
    in_flight: VecDeque<InFlight>,
    /// Channels with confirms to tell.
    to_confirm: Vec<u16>,
    /// Channels with something to be written.
    written_on: Vec<u16>,
    /// What consumers without acknowledgements were given since the last write.
    taken: BTreeMap<ConsumerId, u32>,
    /// What was settled and is not handed on yet, and how.
    settling: (Vec<Receipt>, Outcome),
    next_token: u64,
    is_publisher: bool,
    /// Nobody may begin to consume.
    is_draining: bool,
    /// Why the broker refuses publishes for now.
    blocked: Option<Box<str>>,
    /// Publishes that wait until the broker takes them.
    deferred: Deferred,
    /// Bytes of the publishes that are not answered.
    unanswered_bytes: u64,
    /// It is not read, since there is no memory for what it sends.
    is_paused: bool,
    /// A channel has ended, and the client may not have been told yet.
    has_parted: bool,
    out: Vec<u8>,
    asks: Vec<Ask>,
}

impl Connection {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(now: Time, options: Options) -> Self {
        Self {
            channel_max: options.channel_max,
            frame_max: FIRST_FRAME_MAX,
            options,
            stage: Stage::Silent,
            farewell: Farewell::Broker,
            patience: now.after(PATIENCE_MS),
            understands: Understands::default(),
            client_properties: Table::default(),
            mechanism: "",
            vhost: String::new(),
            pulse: Pulse::new(now),
            channels: BTreeMap::new(),
            lives: 0,
            feeds: HashMap::new(),
            expected: BTreeMap::new(),
            in_flight: VecDeque::new(),
            to_confirm: Vec::new(),
            written_on: Vec::new(),
            taken: BTreeMap::new(),
            settling: (Vec::new(), Outcome::Ack),
            next_token: 0,
            is_publisher: false,
            is_draining: false,
            has_parted: false,
            blocked: None,
            deferred: Deferred::default(),
            unanswered_bytes: 0,
            is_paused: false,
            out: Vec::new(),
            asks: Vec::new(),
        }
    }

    // ---- bytes in ----

    /// Takes what can be taken of these bytes; what is left belongs before what comes next. Where that is more than a frame may
    /// be, a channel waits for an answer: read no more until there is one.
    pub fn receive(&mut self, now: Time, bytes: &mut BytesMut) {
        if !bytes.is_empty() {
            self.pulse.hear(now);
        }
        if self.stage == Stage::Silent && !self.take_protocol(bytes) {
            return;
        }
        // Answers to what comes now come after them.
        self.tell_confirms();
        let mut taken = 0;
        loop {
            match Frame::parse(&bytes[taken..], self.frame_max) {
                _ if self.stage == Stage::Over => return bytes.clear(),
                Ok(Some(frame)) if !self.must_wait(&frame) => {
                    taken += frame.len();
                    if let Err(violation) = self.take_frame(now, &frame) {
                        self.violated(frame.channel, violation);
                    }
                }
                Ok(Some(frame)) if self.is_end(&frame) => {
                    self.release_leases();
                    break;
                }
                Ok(_) => break,
                Err(_) if self.stage == Stage::Closing => return bytes.clear(),
                Err(error) => {
                    bytes.clear();
                    return self.end(Violation::wire(error));
                }
            }
        }
        bytes.advance(taken);
        self.gather_settlements();
    }

    /// The first eight bytes. False: more must come, or they were wrong.
    fn take_protocol(&mut self, bytes: &mut BytesMut) -> bool {
        if !starts_protocol(bytes) {
            bytes.clear();
            self.out.extend_from_slice(&PROTOCOL_HEADER);
            self.stage = Stage::Over;
            return false;
        }
        if bytes.len() < PROTOCOL_HEADER.len() {
            return false;
        }
        bytes.advance(PROTOCOL_HEADER.len());
        self.greet();
        true
    }

    /// Whether a frame waits for the answer to what its channel asked before: then nothing that is said now comes before that.
    /// The end of the connection waits for every publish.
    fn must_wait(&self, frame: &Frame<'_>) -> bool {
        match (self.stage, self.channels.get(&frame.channel)) {
            (Stage::LoggingIn | Stage::Opening, _) => frame.kind != FrameKind::Heartbeat,
            (Stage::Running, _) if self.is_held_up() => true,
            (_, Some(channel)) => channel.must_wait(frame),
            (Stage::Running, None) if self.is_end(frame) => {
                !self.in_flight.is_empty() || !self.deferred.is_empty()
            }
            (_, None) => false,
        }
    }

    /// Whether a frame is the client's `connection.close`.
    fn is_end(&self, frame: &Frame<'_>) -> bool {
        let is_method = self.stage == Stage::Running && frame.channel == 0 && frame.kind == FrameKind::Method;
        is_method && MethodId::peek(frame.payload) == Some(Close::ID)
    }

    fn take_frame(&mut self, now: Time, frame: &Frame<'_>) -> Result<(), Violation> {
        if let Some(channel) = self.channels.get_mut(&frame.channel) {
            channel.active_at = now;
        }
        match frame.kind {
            FrameKind::Heartbeat if frame.channel == 0 => Ok(()),
            FrameKind::Heartbeat => {
                Err(Violation::of(ReplyCode::UnexpectedFrame, "a heartbeat belongs on channel 0"))
            }
            FrameKind::Method => {
                let method = Method::decode(frame.payload, &Self::limits()).map_err(Violation::wire)?;
                let taken = match frame.channel {
                    0 => self.take_on_connection(now, &method),
                    channel => self.take_on_channel(channel, &method),
                };
                taken.map_err(|violation| violation.by(method.id()))
            }
            FrameKind::Header | FrameKind::Body => self.take_content(frame),
        }
    }

    fn take_on_connection(&mut self, now: Time, method: &Method<'_>) -> Result<(), Violation> {
        match (self.stage, method) {
            (_, Method::ConnectionCloseOk(_)) if self.stage == Stage::Closing => self.stage = Stage::Over,
            (_, Method::ConnectionClose(_)) => {
                // What was settled before counts.
                self.gather_settlements();
                // Nothing may follow the answer, whatever the broker still tells.
                self.leave_channels(FAILED);
                self.say(0, CloseOk {});
                self.stage = Stage::Over;
                self.farewell = Farewell::Client;
            }
            (Stage::Closing, _) => {}
            (Stage::Running, Method::ConnectionUpdateSecret(_)) => {
                self.say(0, crate::method::connection::UpdateSecretOk {});
            }
            (Stage::Running, method) => {
                let text = format!("{} does not come on channel 0", method.name());
                return Err(Violation::of(ReplyCode::CommandInvalid, text));
            }
            _ => return self.begin(now, method),
        }
        Ok(())
    }

    // ---- the end ----

    /// Ends what must end because of a violation: the channel, or all of it.
    fn violated(&mut self, channel: u16, violation: Violation) {
        let is_soft = violation.code.scope() == Scope::Channel && self.stage == Stage::Running;
        match self.channels.contains_key(&channel) && is_soft {
            true => self.end_channel(channel, &violation),
            false => self.end(violation),
        }
    }

    fn end_channel(&mut self, number: u16, violation: &Violation) {
        if self.channels.get(&number).is_none_or(|channel| channel.is_closing) {
            return;
        }
        self.leave_channel(number, FAILED);
        let text = violation.code.text(&violation.text);
        let close = wire::Close {
            reply_code: violation.code.code(),
            reply_text: ShortText::cut(&text),
            class_id: violation.method.class,
            method_id: violation.method.method,
        };
        self.say(number, close);
        let mut channel = Box::new(Channel::new(self.heard_at(), self.next_life()));
        channel.is_closing = true;
        self.channels.insert(number, channel);
    }

    /// Ends a channel: its consumers leave, and each message that it held is settled with `outcome`.
    fn leave_channel(&mut self, number: u16, outcome: Outcome) {
        self.gather_settlements();
        let Some(mut channel) = self.channels.remove(&number) else { return };
        let consumers = self.take_feeds(number);
        self.asks.extend(consumers.into_iter().map(|consumer| Ask::Leave { consumer }));
        self.put_back(channel.take_all(), outcome);
    }

    fn leave_channels(&mut self, outcome: Outcome) {
        self.deferred = Deferred::default();
        let numbers: Vec<u16> = self.channels.keys().copied().collect();
        for number in numbers {
            self.leave_channel(number, outcome);
        }
    }

    fn put_back(&mut self, receipts: Vec<Receipt>, outcome: Outcome) {
        if !receipts.is_empty() {
            self.asks.push(Ask::Settle { receipts, outcome });
        }
    }

    /// Ends the connection because of the client. Its channels end with it.
    fn end(&mut self, violation: Violation) {
        self.end_with(violation, FAILED);
    }

    /// Ends the connection, and settles each message that it held with `outcome`.
    fn end_with(&mut self, violation: Violation, outcome: Outcome) {
        if matches!(self.stage, Stage::Closing | Stage::Over) {
            return;
        }
        self.gather_settlements();
        self.leave_channels(outcome);
        let text = violation.code.text(&violation.text);
        let close = Close {
            reply_code: violation.code.code(),
            reply_text: ShortText::cut(&text),
            class_id: violation.method.class,
            method_id: violation.method.method,
        };
        self.say(0, close);
        self.stage = Stage::Closing;
        self.patience = Time(0);
    }

    /// An operator ends the connection. The messages that it held are failed deliveries, as after any other end of it.
    pub fn force_close(&mut self, why: &str) {
        self.close_with(why, FAILED);
    }

    /// The broker ends the connection because it stops. The messages that it held go back untouched: the client has not failed.
    pub fn stop(&mut self, why: &str) {
        self.close_with(why, Outcome::Release);
    }

    fn close_with(&mut self, why: &str, outcome: Outcome) {
        match self.stage {
            Stage::Running => self.end_with(Violation::of(ReplyCode::ConnectionForced, why), outcome),
            _ => self.stage = Stage::Over,
        }
    }

    /// It has more of something than its user may have.
    pub fn exceed(&mut self, why: &str) {
        if self.stage == Stage::Running {
            self.end(Violation::of(ReplyCode::NotAllowed, why));
        }
    }

    /// How many channels are open.
    #[must_use]
    pub fn open_channels(&self) -> usize {
        self.channels.len()
    }

    /// The broker wants to be left, in peace: consumers are cancelled and keep what they hold, nobody may begin to consume, and
    /// once nothing is out and everything is answered the connection is closed. To be called again after whatever has happened.
    pub fn drain(&mut self) {
        self.is_draining = true;
        match self.stage {
            Stage::Closing | Stage::Over => {}
            Stage::Running => {
                let mut consumers: Vec<ConsumerId> = self.feeds.keys().copied().collect();
                consumers.sort_unstable();
                for consumer in consumers {
                    self.ended(consumer);
                    self.asks.push(Ask::Leave { consumer });
                }
                if self.is_idle() {
                    self.end(Violation::of(
                        ReplyCode::ConnectionForced,
                        "the broker is being drained; connect to another",
                    ));
                }
            }
            _ => self.stage = Stage::Over,
        }
    }

    /// Whether nothing is out, and nothing waits for an answer.
    fn is_idle(&self) -> bool {
        let is_answered = self.expected.is_empty() && self.in_flight.is_empty() && self.to_confirm.is_empty();
        is_answered && self.deferred.is_empty() && self.channels.values().all(|channel| channel.is_idle())
    }

    /// Whether it is over: the socket is to be closed once everything is written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    // ---- back-pressure ----

    /// Whether bytes are welcome. They are not while much that the client has published is not answered, nor while the broker refuses
    /// publishes and a client that only publishes has much that waits.
    #[must_use]
    pub fn wants_bytes(&self) -> bool {
        let has_room = !self.is_paused && self.unanswered_bytes < UNANSWERED_BYTES_MAX;
        self.stage != Stage::Over && has_room && !self.is_held_up()
    }

    /// Bytes that have come of contents that are not whole, of publishes that wait for a commit, and of those that wait until the broker
    /// takes them.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.deferred.bytes() + self.channels.values().map(|channel| channel.bytes_here()).sum::<u64>()
    }

    /// There is no memory for more of what the client sends, or there is again.
    pub fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// There was no memory for what the client sends for too long.
    pub fn exhaust(&mut self, why: &str) {
        self.is_paused = false;
        match self.stage {
            Stage::Running => self.end(Violation::of(ReplyCode::ResourceError, why)),
            _ => self.stage = Stage::Over,
        }
    }

    // ---- time ----

    /// When [`Connection::tick`] has something to do at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        match self.stage {
            Stage::Over => None,
            Stage::Running => self.pulse.next(),
            _ => Some(self.patience),
        }
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Time) {
        if !self.wants_bytes() {
            // Whoever is not listened to cannot be heard.
            self.pulse.hear(now);
        }
        match self.stage {
            Stage::Over => {}
            Stage::Running => match self.pulse.beat(now) {
                Beat::Nothing => {}
                Beat::Send => {
                    FrameWriter::new(&mut self.out, self.frame_max).heartbeat();
                    self.pulse.say(now);
                }
                Beat::Dead => self.lose(),
            },
            // It was closed since the last tick.
            Stage::Closing if self.patience == Time(0) => self.patience = now.after(PATIENCE_MS),
            _ if now >= self.patience => self.lose(),
            _ => {}
        }
    }

    /// The client has said nothing for too long.
    fn lose(&mut self) {
        // What the broker still tells is for nobody.
        self.leave_channels(FAILED);
        self.stage = Stage::Over;
        self.farewell = Farewell::Nobody;
    }

    /// Of a connection that [is over](Self::is_over).
    #[must_use]
    pub fn farewell(&self) -> Farewell {
        self.farewell
    }

    // ---- what goes out ----

    /// Whether something in the output ends the connection or a channel of it: before that is written, what was asked must be on its way to
    /// the broker, so that a client that has heard of the end finds put back what it did not settle.
    #[must_use]
    pub fn has_last_words(&self) -> bool {
        self.is_over() || self.has_parted
    }

    /// Room to gather asks in, for a connection that has none: it holds none once all are taken.
    pub fn lend_asks(&mut self, room: impl FnOnce() -> Vec<Ask>) {
        if self.asks.capacity() == 0 {
            self.asks = room();
            self.asks.clear();
        }
    }

    /// What is to be asked of the broker, in order.
    pub fn take_asks(&mut self) -> Vec<Ask> {
        std::mem::take(&mut self.asks)
    }

    /// The bytes to be written, which whoever writes them takes out. Call [`Connection::written`] then.
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.tell_confirms();
        &mut self.out
    }

    /// Room to put out into, for a connection that has none: it holds none once all is taken out.
    pub fn lend_room(&mut self, room: impl FnOnce() -> Vec<u8>) {
        if self.out.capacity() == 0 {
            self.out = room();
            self.out.clear();
        }
    }

    /// All that was put out is on its way.
    pub fn written(&mut self, now: Time) {
        self.pulse.say(now);
        self.has_parted = false;
        for number in self.written_on.drain(..) {
            if let Some(channel) = self.channels.get_mut(&number) {
                channel.active_at = now;
            }
        }
        for (consumer, messages) in std::mem::take(&mut self.taken) {
            if self.feeds.contains_key(&consumer) {
                self.asks.push(Ask::Took { consumer, messages });
            }
        }
    }

    /// What the client says of itself: product, version, connection name and so on.
    #[must_use]
    pub fn client_properties(&self) -> &Table {
        &self.client_properties
    }

    fn say<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        self.write_on(channel);
        FrameWriter::new(&mut self.out, self.frame_max).method(channel, method);
    }

    /// When the client last said something.
    fn heard_at(&self) -> Time {
        self.pulse.heard()
    }

    /// Something for this channel is among what is to be written.
    fn write_on(&mut self, number: u16) {
        if self.written_on.last() != Some(&number) {
            self.written_on.push(number);
        }
    }

    fn next_life(&mut self) -> u64 {
        self.lives += 1;
        self.lives
    }

    fn next_token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }
}
