//! A scripted server around one client, in words.

use bytes::BytesMut;
use overtake_amqp::client::{Answer, Client, ClientOptions, Credentials, Event};
use overtake_amqp::method::{basic, channel, confirm, connection};
use overtake_amqp::{ContentHeader, Frame, FrameKind, FrameWriter, Method, MethodId, PROTOCOL_HEADER};
use overtake_lane::Time;
use overtake_properties::{Fields, Limits, Properties, Short, ShortText, TableRef};

/// Both sides of a connection.
pub(crate) struct Peer {
    pub(crate) client: Client,
    pub(crate) now: Time,
    input: BytesMut,
}

pub(crate) fn text(text: &'static str) -> ShortText<'static> {
    ShortText::literal(text)
}

/// Who logs in.
pub(crate) fn options() -> ClientOptions {
    let credentials = Credentials::Password { user: "ann".into(), password: "secret".into() };
    ClientOptions { credentials, connection_name: "relay".into(), ..ClientOptions::default() }
}

pub(crate) fn start(mechanisms: &'static [u8]) -> connection::Start<'static> {
    connection::Start {
        version_major: 0,
        version_minor: 9,
        server_properties: TableRef::EMPTY,
        mechanisms,
        locales: b"en_US",
    }
}

impl Peer {
    /// A connection that nothing was said on.
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    pub(crate) fn with(options: ClientOptions) -> Self {
        let now = Time(1_000);
        Self { client: Client::new(now, options), now, input: BytesMut::new() }
    }

    /// A connection that is open, with channel 1 open.
    pub(crate) fn open() -> Self {
        Self::open_with(options())
    }

    pub(crate) fn open_with(options: ClientOptions) -> Self {
        let mut peer = Self::with(options);
        peer.say(0, start(b"PLAIN AMQPLAIN"));
        peer.say(0, connection::Tune { channel_max: 2_047, frame_max: 131_072, heartbeat: 60 });
        peer.say(0, connection::OpenOk { known_hosts: text("") });
        assert_eq!(peer.client.open_channel(), Ok(1));
        peer.say(1, channel::OpenOk { channel_id: b"" });
        assert!(matches!(&peer.client.take_events()[..], [Event::Opened(_), Event::Answered { .. }]));
        peer.hears();
        peer
    }

    /// That, with confirms on channel 1.
    pub(crate) fn confirming() -> Self {
        let mut peer = Self::open();
        peer.client.ask(1, confirm::Select { no_wait: false }).expect("the channel is open");
        peer.say(1, confirm::SelectOk {});
        assert_eq!(peer.events(), ["1 confirm.select Done"]);
        peer.hears();
        peer
    }

    // ---- as the server ----

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.client.receive(self.now, &mut self.input);
    }

    pub(crate) fn say<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        let mut frame = Vec::new();
        FrameWriter::new(&mut frame, 0).method(channel, method);
        self.bytes(&frame);
    }

    /// What the server hears: a line for each frame.
    pub(crate) fn hears(&mut self) -> Vec<String> {
        let out = std::mem::take(self.client.output());
        let mut rest = out.strip_prefix(&PROTOCOL_HEADER).unwrap_or(&out);
        let mut lines = Vec::new();
        while !rest.is_empty() {
            let frame = Frame::parse(rest, 0).expect("frames go out").expect("whole ones");
            rest = &rest[frame.len()..];
            lines.push(format!("{} {}", frame.channel, said(&frame)));
        }
        lines
    }

    // ---- as whoever uses the client ----

    pub(crate) fn publish(&mut self, key: &'static str, mandatory: bool, body: &[u8]) -> Option<u64> {
        let properties = Fields { priority: Some(7), ..Fields::default() }.encode();
        let routing_key = Short::literal(key);
        let method = basic::Publish { routing_key, mandatory, ..basic::Publish::default() };
        self.client.publish(1, method, properties.view(), body).expect("it is sent")
    }

    /// What happened: a line each.
    pub(crate) fn events(&mut self) -> Vec<String> {
        self.client.take_events().iter().map(line).collect()
    }
}

fn said(frame: &Frame<'_>) -> String {
    match frame.kind {
        FrameKind::Method => {
            format!("{:?}", Method::decode(frame.payload, &Limits::default()).expect("a method"))
        }
        FrameKind::Header => {
            let header = ContentHeader::decode(frame.payload, &Limits::default()).expect("a header");
            format!("header {} priority {:?}", header.body_len, header.properties.priority())
        }
        FrameKind::Body => format!("body of {}", frame.payload.len()),
        FrameKind::Heartbeat => "heartbeat".to_owned(),
    }
}

/// The frames of a message from the server.
pub(crate) fn content<'m>(method: impl Into<Method<'m>>, body: &[u8]) -> Vec<u8> {
    let properties = Properties::EMPTY;
    let mut frames = Vec::new();
    FrameWriter::new(&mut frames, 4_096).content(1, method, properties.view(), body).expect("they fit");
    frames
}

fn name(id: MethodId) -> &'static str {
    let signature = overtake_amqp::method::GRAMMAR.iter().find(|signature| signature.id == id);
    signature.expect("a method").name
}

/// An event in few words.
pub(crate) fn line(event: &Event) -> String {
    match event {
        Event::Opened(terms) => {
            format!("open {} {} {}", terms.channel_max, terms.frame_max, terms.heartbeat_s)
        }
        Event::Answered { channel, request, answer } => match answer {
            Answer::Done => format!("{channel} {} Done", name(*request)),
            answer => format!("{channel} {answer:?}"),
        },
        Event::Confirmed { channel, tags, is_accepted } => {
            format!("{channel} {} {tags:?}", if *is_accepted { "confirmed" } else { "not taken" })
        }
        Event::Returned { channel, tag, code, text, message } => {
            format!("{channel} returned {tag:?} {code} {} {}", utf8(text), utf8(&message.routing_key))
        }
        Event::Delivered { channel, consumer_tag, delivery_tag, redelivered, message } => {
            let again = if *redelivered { " again" } else { "" };
            let (consumer, body) = (utf8(consumer_tag), utf8(&message.body));
            format!("{channel} {consumer} {delivery_tag}{again} {body}")
        }
        Event::Got { channel, delivery_tag, message_count, message, .. } => {
            format!("{channel} got {delivery_tag} {} of {message_count}", utf8(&message.body))
        }
        Event::Closed(ending) => format!("closed: {ending}"),
        event => format!("{event:?}"),
    }
}

fn utf8(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}
