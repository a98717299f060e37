//! A client and a broker around one connection, in words.

use bytes::BytesMut;
use overtake_amqp::connection::{Answer, Ask, Connection, Delivery, Options, Publish, Token};
use overtake_amqp::method::{basic, channel, connection};
use overtake_amqp::{ContentHeader, Frame, FrameKind, FrameWriter, Method, PROTOCOL_HEADER};
use overtake_lane::{ConsumerId, LeaseId, QueueId, Receipt, Refusal, Seq, Time};
use overtake_properties::{Fields, Limits, Properties, Short, ShortText, TableBuilder, TableRef, Value};

/// Both sides of a connection.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    pub(crate) now: Time,
    input: BytesMut,
}

/// The frames of a message to a queue.
fn content(channel: u16, key: &'static str, mandatory: bool, body: &[u8]) -> Vec<u8> {
    let properties = Fields { priority: Some(7), ..Fields::default() }.encode();
    let method = basic::Publish {
        ticket: 0,
        exchange: Short::literal(""),
        routing_key: Short::literal(key),
        mandatory,
        immediate: false,
    };
    let mut frames = Vec::new();
    FrameWriter::new(&mut frames, 4_096).content(channel, method, properties.view(), body).expect("they fit");
    frames
}

pub(crate) fn text(text: &'static str) -> ShortText<'static> {
    ShortText::literal(text)
}

impl Peer {
    /// A connection that nothing was said on.
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        let now = Time(1_000);
        Self { connection: Connection::new(now, options), now, input: BytesMut::new() }
    }

    /// A connection that is open, with channel 1.
    pub(crate) fn open() -> Self {
        Self::open_with(Options::default())
    }

    pub(crate) fn open_with(options: Options) -> Self {
        Self::open_with_frames(options, 131_072)
    }

    /// A connection that is open, with channel 1 and frames of at most `frame_max` bytes.
    pub(crate) fn open_with_frames(options: Options, frame_max: u32) -> Self {
        let mut peer = Self::with(options);
        peer.log_in(&["consumer_cancel_notify", "connection.blocked", "authentication_failure_close"]);
        peer.connection.logged_in(true);
        peer.say(0, connection::TuneOk { channel_max: 0, frame_max, heartbeat: 60 });
        peer.say(0, connection::Open { virtual_host: text("/"), capabilities: text(""), insist: false });
        peer.connection.opened(Ok(()));
        peer.say(1, channel::Open { out_of_band: text("") });
        peer.connection.take_asks();
        peer.hears();
        peer
    }

    /// Protocol header and start-ok.
    pub(crate) fn log_in(&mut self, capabilities: &[&'static str]) {
        self.bytes(&PROTOCOL_HEADER);
        let table = capabilities
            .iter()
            .fold(TableBuilder::new(), |table, name| table.entry(Short::literal(name), Value::Bool(true)));
        let client = TableBuilder::new().entry(Short::literal("capabilities"), Value::Table(table.view()));
        let start_ok = connection::StartOk {
            client_properties: client.view(),
            mechanism: text("PLAIN"),
            response: b"\0ann\0secret",
            locale: text("en_US"),
        };
        self.say(0, start_ok);
    }

    // ---- as the client ----

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.connection.receive(self.now, &mut self.input);
    }

    pub(crate) fn say<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        let mut frame = Vec::new();
        FrameWriter::new(&mut frame, 131_072).method(channel, method);
        self.bytes(&frame);
    }

    pub(crate) fn publish(&mut self, channel: u16, key: &'static str, mandatory: bool, body: &[u8]) {
        let frames = content(channel, key, mandatory, body);
        self.bytes(&frames);
    }

    /// Method and header of a message. Answers the frames of its body, which are still to come.
    pub(crate) fn begin_publish(&mut self, channel: u16, key: &'static str, body: &[u8]) -> Vec<u8> {
        let frames = content(channel, key, false, body);
        let mut at = 0;
        for _ in 0..2 {
            let frame = Frame::parse(&frames[at..], 0).expect("they are frames").expect("they are whole");
            at += frame.len();
        }
        self.bytes(&frames[..at]);
        frames[at..].to_vec()
    }

    pub(crate) fn consume(&mut self, channel: u16, tag: &'static str, no_ack: bool) {
        self.say(
            channel,
            basic::Consume {
                ticket: 0,
                queue: text("q"),
                consumer_tag: text(tag),
                no_local: false,
                no_ack,
                exclusive: false,
                no_wait: false,
                arguments: TableRef::default(),
            },
        );
    }

    /// What the client hears: a line for each frame.
    pub(crate) fn hears(&mut self) -> Vec<String> {
        let out = std::mem::take(self.connection.output());
        let (mut rest, mut lines) = (&out[..], Vec::new());
        while !rest.is_empty() {
            if rest == PROTOCOL_HEADER {
                lines.push("AMQP 0-9-1".to_owned());
                break;
            }
            let frame = Frame::parse(rest, 0).expect("frames go out").expect("whole ones");
            rest = &rest[frame.len()..];
            let said = match frame.kind {
                FrameKind::Method => {
                    format!("{:?}", Method::decode(frame.payload, &Limits::default()).expect("a method"))
                }
                FrameKind::Header => {
                    let header = ContentHeader::decode(frame.payload, &Limits::default()).expect("a header");
                    format!("header {} priority {:?}", header.body_len, header.properties.priority())
                }
                FrameKind::Body => format!("body {}", String::from_utf8_lossy(frame.payload)),
                FrameKind::Heartbeat => "heartbeat".to_owned(),
            };
            lines.push(format!("{} {said}", frame.channel));
        }
        lines
    }

    // ---- as the broker ----

    /// What the broker is asked.
    pub(crate) fn asks(&mut self) -> Vec<Ask> {
        self.connection.take_asks()
    }

    /// The token of the one thing that is asked.
    pub(crate) fn token(&mut self) -> Token {
        match &self.asks()[..] {
            [Ask::Do { token, .. } | Ask::Publish { token, .. }] => *token,
            asks => panic!("one thing is asked, not {asks:?}"),
        }
    }

    /// The publishes that are asked, and nothing else.
    pub(crate) fn publishes(&mut self) -> Vec<(Token, Publish)> {
        let one = |ask| match ask {
            Ask::Publish { token, publish, .. } => (token, publish),
            ask => panic!("a publish is asked, not {ask:?}"),
        };
        self.asks().into_iter().map(one).collect()
    }

    pub(crate) fn answer(&mut self, answer: Result<Answer, Refusal>) {
        let token = self.token();
        self.connection.answer(token, answer.map_err(Into::into));
    }

    /// The broker has the consumer `number` for what is asked.
    pub(crate) fn consuming(&mut self, number: u64) {
        self.answer(Ok(Answer::Consuming(ConsumerId(number))));
    }

    pub(crate) fn deliver(&mut self, consumer: u64, seq: u64) {
        let properties = Properties::EMPTY;
        let delivery = delivery(seq, &properties);
        self.connection.deliver(ConsumerId(consumer), &delivery);
    }
}

pub(crate) fn receipt(seq: u64) -> Receipt {
    Receipt { queue: QueueId(0), seq: Seq(seq), lease: LeaseId(seq) }
}

pub(crate) fn delivery(seq: u64, properties: &Properties) -> Delivery<'_> {
    Delivery {
        receipt: receipt(seq),
        redelivered: false,
        exchange: b"",
        routing_key: b"q",
        properties: properties.view(),
        body: b"hi",
    }
}
