//! A client: a conversation, the session it is held over, and what is heard, in words.
//!
//! What a client asks is answered, or the test fails; what comes besides (messages, confirms, returns, cancels) is kept for
//! [`Client::hears`], which knows when there is no more: it asks something durable, and everything comes before its answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::BytesMut;
use overtake_amqp::connection::NoVhost;
use overtake_amqp::method::{channel, connection, exchange};
use overtake_amqp::{ContentHeader, Frame, FrameKind, FrameWriter, Method, PROTOCOL_HEADER};
use overtake_amqp_session::{Conversation, Everything, Options, Rights, Wish};
use overtake_engine::{Clock, ManualClock, Session};
use overtake_properties::{Limits, Value};

use crate::broker::wait;
use crate::words::{Letter, said, table, text};

/// The channel on which the test asks whether there is more.
const ASIDE: u16 = 999;
/// The tag of a consumer that needs no other.
pub(crate) const TAG: &str = "c";

/// Tells why the broker takes no messages, if it takes none.
pub(crate) type Full = Box<dyn Fn() -> Option<String>>;

/// One who talks with a broker.
pub(crate) struct Client {
    conversation: Conversation,
    /// What it may do.
    rights: Arc<dyn Rights>,
    session: Session,
    /// Why the broker takes no messages.
    full: Full,
    clock: Arc<ManualClock>,
    /// Said, and not taken.
    pub(crate) input: BytesMut,
    /// The channel on which it says everything.
    pub(crate) channel: u16,
    open: Vec<u16>,
    /// Closed by the broker, and asked for again.
    reopening: Vec<u16>,
    /// The last publish of each channel that was confirmed.
    confirmed: BTreeMap<u16, u64>,
    heard: VecDeque<Heard>,
    letters: Vec<Letter>,
    is_refusal_fine: bool,
    /// How often it was asked whether there is more, and not answered yet.
    asides: u32,
    /// What is said waits for more.
    holds_back: bool,
    /// Class and method that were at fault last.
    pub(crate) fault: (u16, u16),
}

/// Something that the broker said.
#[derive(Clone, Debug)]
struct Heard {
    channel: u16,
    what: What,
    words: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// To something that was asked.
    Answer,
    /// The end of a channel, or of all.
    Close,
    /// By itself.
    News,
    /// These publishes are safe.
    Safe(Vec<u64>),
    /// This one was not taken.
    NotTaken(u64),
}

impl Client {
    pub(crate) fn new(session: Session, full: Full, clock: Arc<ManualClock>, number: u64) -> Self {
        let connection = overtake_amqp::connection::Options {
            number,
            heartbeat_s: 0,
            body_max: 100_000,
            ..overtake_amqp::connection::Options::default()
        };
        let options = Options { connection, certificate: None, name: None, seed: [number, 7] };
        Self {
            conversation: Conversation::new(clock.now(), options),
            rights: Arc::new(Everything("guest".to_owned())),
            session,
            full,
            clock,
            input: BytesMut::new(),
            channel: 1,
            open: Vec::new(),
            reopening: Vec::new(),
            confirmed: BTreeMap::new(),
            heard: VecDeque::new(),
            letters: Vec::new(),
            is_refusal_fine: false,
            asides: 0,
            holds_back: false,
            fault: (0, 0),
        }
    }

    /// Somebody else, who may do this.
    pub(crate) fn with_rights(self, rights: Arc<dyn Rights>) -> Self {
        Self { rights, ..self }
    }

    /// From the first byte to the first channel.
    pub(crate) fn log_in(&mut self, vhost: &str, capabilities: &[&str]) {
        self.log_in_with(vhost, capabilities, 131_072);
    }

    /// The same, with frames of so many bytes at most.
    pub(crate) fn log_in_with(&mut self, vhost: &str, capabilities: &[&str], frame_max: u32) {
        let response = format!("\0{0}\0{0}", self.rights.user());
        self.greet("PLAIN", response.as_bytes(), capabilities);
        assert_eq!(self.answer(0), "connection.tune");
        self.tell_on(0, connection::TuneOk { channel_max: 0, frame_max, heartbeat: 0 });
        let open = connection::Open { virtual_host: text(vhost), capabilities: text(""), insist: false };
        self.tell_on(0, open);
        if !self.is_over() {
            assert_eq!(self.answer(0), "connection.open-ok");
            self.on(ASIDE);
            self.on(1);
        }
    }

    /// Protocol header and start-ok.
    pub(crate) fn greet(&mut self, mechanism: &str, response: &[u8], capabilities: &[&str]) {
        self.input.extend_from_slice(&PROTOCOL_HEADER);
        self.turn();
        assert_eq!(self.answer(0), "connection.start");
        let can: Vec<_> = capabilities.iter().map(|name| (*name, Value::Bool(true))).collect();
        let can = table(&can);
        let client = table(&[("capabilities", Value::Table(can.view()))]);
        let start_ok = connection::StartOk {
            client_properties: client.view(),
            mechanism: text(mechanism),
            response,
            locale: text("en_US"),
        };
        self.tell_on(0, start_ok);
    }

    // ---- saying ----

    /// Goes on on this channel, which is opened when it is not.
    pub(crate) fn on(&mut self, channel: u16) -> &mut Self {
        self.channel = channel;
        if !self.open.contains(&channel) {
            self.open.push(channel);
            self.tell(channel::Open { out_of_band: text("") });
            assert_eq!(self.answer(channel), "channel.open-ok");
        }
        self
    }

    /// Closes its channel.
    pub(crate) fn close_channel(&mut self) {
        let close = channel::Close { reply_code: 200, reply_text: text("bye"), class_id: 0, method_id: 0 };
        assert_eq!(self.ask(close), "channel.close-ok");
        self.open.retain(|channel| *channel != self.channel);
    }

    /// Says something that is not answered, or whose answer comes later.
    pub(crate) fn tell<'m>(&mut self, method: impl Into<Method<'m>>) {
        self.tell_on(self.channel, method);
    }

    pub(crate) fn tell_on<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        append(&mut self.input, channel, method);
        self.turn();
    }

    /// Says these bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.turn();
    }

    /// Says all this at once.
    pub(crate) fn together(&mut self, says: impl FnOnce(&mut Self)) {
        self.holds_back = true;
        says(self);
        self.holds_back = false;
        self.turn();
    }

    /// Says something, and answers what the broker answers.
    pub(crate) fn ask<'m>(&mut self, method: impl Into<Method<'m>>) -> String {
        self.tell(method);
        self.answer(self.channel)
    }

    /// The next answer on a channel.
    pub(crate) fn answer(&mut self, channel: u16) -> String {
        let is_answer = |heard: &Heard| match heard.what {
            What::Answer => heard.channel == channel,
            What::Close => heard.channel == channel || heard.channel == 0,
            _ => false,
        };
        loop {
            if let Some(at) = self.heard.iter().position(is_answer) {
                if self.heard[at].what == What::Close {
                    assert!(self.is_refusal_fine, "it is refused: {}", self.heard[at].words);
                    return String::new();
                }
                return self.heard.remove(at).expect("it is there").words;
            }
            self.listen();
        }
    }

    /// Why something is refused.
    pub(crate) fn refused<R>(&mut self, does: impl FnOnce(&mut Self) -> R) -> String {
        self.is_refusal_fine = true;
        does(self);
        self.settle_down();
        self.is_refusal_fine = false;
        let close = self.heard.iter().position(|heard| heard.what == What::Close);
        let close = close.and_then(|at| self.heard.remove(at));
        close.unwrap_or_else(|| panic!("it is not refused: {:?}", self.heard)).words
    }

    /// An operator ends the connection.
    pub(crate) fn force_close(&mut self, why: &str) {
        self.conversation.connection().force_close(why);
        self.turn();
    }

    /// The broker wants to be left.
    pub(crate) fn drain(&mut self) {
        self.conversation.connection().drain();
        self.turn();
    }

    // ---- hearing ----

    /// Whether the connection is over.
    pub(crate) fn is_over(&mut self) -> bool {
        self.conversation.connection().is_over()
    }

    /// All that has come and was not asked for: `a · b! · safe 1-2`. On another channel than 1 it says so: `2:a`.
    pub(crate) fn hears(&mut self) -> String {
        self.settle_down();
        let heard = std::mem::take(&mut self.heard);
        let (mut lines, mut safe, mut not_taken) = (Vec::new(), Vec::new(), Vec::new());
        for Heard { channel, what, words } in heard {
            match what {
                What::Safe(numbers) => safe.extend(numbers),
                What::NotTaken(number) => not_taken.push(number),
                _ if channel > 1 => lines.push(format!("{channel}:{words}")),
                _ => lines.push(words),
            }
        }
        for (word, numbers) in [("safe", safe), ("not taken", not_taken)] {
            if !numbers.is_empty() {
                let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
                lines.push(format!("{word} {}", numbers.join(" ")));
            }
        }
        lines.join(" · ")
    }

    /// Everything in the order in which it came, confirms among it.
    pub(crate) fn hears_in_order(&mut self) -> String {
        self.settle_down();
        let heard = std::mem::take(&mut self.heard);
        heard.into_iter().map(|heard| heard.words).collect::<Vec<_>>().join(" · ")
    }

    /// The last message that says this.
    pub(crate) fn letter(&self, body: &str) -> &Letter {
        let letter = self.letters.iter().rev().find(|letter| letter.body == body);
        letter.unwrap_or_else(|| panic!("{body} has not come"))
    }

    /// Hears that somebody's rights have changed.
    pub(crate) fn look_at_rights(&mut self) {
        self.conversation.look_at_rights();
        self.turn();
    }

    /// Waits until nothing more comes.
    fn settle_down(&mut self) {
        let nothing =
            exchange::Delete { ticket: 0, exchange: text("none"), if_unused: false, no_wait: false };
        self.tell_on(ASIDE, nothing);
        self.asides += 1;
        // Of who is not listened to nothing is asked.
        while !self.is_over() && (self.input.is_empty() || self.conversation.connection().wants_bytes()) {
            if let Some(at) = self.heard.iter().position(|heard| heard.channel == ASIDE) {
                self.heard.remove(at);
                self.asides -= 1;
                if self.asides == 0 {
                    return;
                }
            } else {
                self.listen();
            }
        }
    }

    fn listen(&mut self) {
        let events = wait(self.session.events.next()).expect("the broker runs");
        let asks = &self.session.asks;
        self.conversation.hear(events, || asks.next_consumer());
        self.turn();
    }

    // ---- the driver ----

    /// The user has its name for a password, and there is one virtual host.
    fn grant(&mut self, wish: Wish) {
        let conversation = &mut self.conversation;
        match wish {
            Wish::LogIn { user, password } if user != password || user != self.rights.user() => {
                conversation.logged_in(None);
            }
            Wish::LogIn { .. } | Wish::Certificate { .. } => {
                conversation.logged_in(Some(Arc::clone(&self.rights)));
            }
            Wish::Enter { vhost } if vhost == "/" => conversation.entered(Ok(vhost)),
            Wish::Enter { .. } => conversation.entered(Err(NoVhost::Unknown)),
        }
    }

    /// Hands on what there is, both ways.
    pub(crate) fn turn(&mut self) {
        while !self.holds_back {
            let now = self.clock.now();
            let full = (self.full)();
            self.conversation.connection().block(full.as_deref());
            if self.conversation.connection().wants_bytes() {
                self.conversation.receive(now, &mut self.input);
            }
            let requests = self.conversation.take_requests(|| self.session.asks.next_consumer());
            let wish = self.conversation.take_wish();
            let is_quiet = requests.is_empty() && wish.is_none();
            if let Some(wish) = wish {
                self.grant(wish);
            }
            wait(self.session.asks.ask(requests));
            let out = std::mem::take(self.conversation.connection().output());
            if out.is_empty() && is_quiet {
                return;
            }
            self.conversation.connection().written(now);
            self.read(&out);
        }
    }

    fn read(&mut self, mut out: &[u8]) {
        while let Some(frame) = next_frame(&mut out) {
            assert_eq!(frame.kind, FrameKind::Method, "nothing else begins what is said");
            let method = Method::decode(frame.payload, &Limits::default()).expect("a method");
            if method.has_content() {
                let letter = read_letter(&method, frame.channel, &mut out);
                self.receive(&method, letter);
            } else {
                self.take(frame.channel, &method);
            }
        }
    }

    fn take(&mut self, channel: u16, method: &Method<'_>) {
        let (what, words) = match method {
            Method::BasicAck(ack) => {
                let last = self.confirmed.insert(channel, ack.delivery_tag).unwrap_or_default();
                let first = if ack.multiple { last + 1 } else { ack.delivery_tag };
                let numbers = (first..=ack.delivery_tag).collect();
                (What::Safe(numbers), format!("safe {}", ack.delivery_tag))
            }
            Method::BasicNack(nack) => {
                self.confirmed.insert(channel, nack.delivery_tag);
                (What::NotTaken(nack.delivery_tag), format!("not taken {}", nack.delivery_tag))
            }
            Method::ChannelClose(close) => {
                self.fault = (close.class_id, close.method_id);
                self.reopen(channel);
                (What::Close, said(method))
            }
            Method::ConnectionClose(close) => {
                self.fault = (close.class_id, close.method_id);
                append(&mut self.input, 0, connection::CloseOk {});
                (What::Close, said(method))
            }
            Method::ChannelOpenOk(_) if self.reopening.contains(&channel) => {
                return self.reopening.retain(|closed| *closed != channel);
            }
            Method::BasicCancel(_) | Method::ConnectionBlocked(_) | Method::ConnectionUnblocked(_) => {
                (What::News, said(method))
            }
            _ => (What::Answer, said(method)),
        };
        self.heard.push_back(Heard { channel, what, words });
    }

    /// As client libraries do, but that the channel is there again.
    fn reopen(&mut self, channel: u16) {
        append(&mut self.input, channel, channel::CloseOk {});
        append(&mut self.input, channel, channel::Open { out_of_band: text("") });
        self.reopening.push(channel);
        self.confirmed.remove(&channel);
    }

    fn receive(&mut self, method: &Method<'_>, letter: Letter) {
        let channel = letter.channel;
        let (what, words) = match method {
            Method::BasicGetOk(_) => (What::Answer, letter.said()),
            Method::BasicReturn(back) => {
                let why = String::from_utf8_lossy(back.reply_text.as_bytes());
                (What::News, format!("returned {}: {} {why}", letter.body, back.reply_code))
            }
            Method::BasicDeliver(deliver) if deliver.consumer_tag.as_bytes() == TAG.as_bytes() => {
                (What::News, letter.said())
            }
            Method::BasicDeliver(deliver) => {
                let tag = String::from_utf8_lossy(deliver.consumer_tag.as_bytes());
                (What::News, format!("{tag}={}", letter.said()))
            }
            method => panic!("{} has no content", method.name()),
        };
        self.letters.push(letter);
        self.heard.push_back(Heard { channel, what, words });
    }
}

fn append<'m>(input: &mut BytesMut, channel: u16, method: impl Into<Method<'m>>) {
    let mut frame = Vec::new();
    FrameWriter::new(&mut frame, 131_072).method(channel, method);
    input.extend_from_slice(&frame);
}

/// The first frame, which is taken away.
fn next_frame<'o>(out: &mut &'o [u8]) -> Option<Frame<'o>> {
    let frame = Frame::parse(out, 0).expect("frames come out");
    assert!(frame.is_some() || out.is_empty(), "whole ones");
    *out = &out[frame.map_or(0, |frame| frame.len())..];
    frame
}

/// The content behind a method.
fn read_letter(method: &Method<'_>, channel: u16, out: &mut &[u8]) -> Letter {
    let header = next_frame(out).expect("a header follows");
    let header = ContentHeader::decode(header.payload, &Limits::default()).expect("a header");
    let mut body = Vec::new();
    while (body.len() as u64) < header.body_len {
        body.extend_from_slice(next_frame(out).expect("a body follows").payload);
    }
    let (delivery_tag, redelivered, exchange, key, behind) = match method {
        Method::BasicDeliver(it) => (it.delivery_tag, it.redelivered, it.exchange, it.routing_key, 0),
        Method::BasicGetOk(it) => {
            (it.delivery_tag, it.redelivered, it.exchange, it.routing_key, it.message_count)
        }
        Method::BasicReturn(it) => (0, false, it.exchange, it.routing_key, 0),
        method => panic!("{} has no content", method.name()),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Letter {
        channel,
        delivery_tag,
        redelivered,
        exchange: text(exchange.as_bytes()),
        key: text(key.as_bytes()),
        properties: header.properties.to_properties(),
        body: text(&body),
        behind,
    }
}
