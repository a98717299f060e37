//! Arbitrary bytes as what a peer sends, client or server, for fuzz targets.
//!
//! The first byte of an input says in what pieces the rest arrives, and its highest bit whether frames have a limit. Whatever
//! comes, whole or in pieces, the frames are the same; what was understood goes out again with the same meaning and is not
//! longer; and no panic.

use std::collections::BTreeSet;

use bytes::BytesMut;
use overtake_lane::{ConsumerId, LeaseId, QueueId, Receipt, Refusal, Seq, Time};
use overtake_properties::{Limits, Properties};

use crate::client::{Client, ClientOptions, Event};
use crate::connection::{Answer, Ask, Connection, Delivery, Operation, Options, Refused};
use crate::content::ContentHeader;
use crate::error::WireError;
use crate::frame::{Frame, FrameKind, PROTOCOL_HEADER};
use crate::method::{Method, basic, confirm, queue};
use crate::writer::FrameWriter;

const LIMITS: Limits = Limits { bytes: 1 << 16, entries: 1 << 10, depth: 16 };

/// A frame that was understood, written anew, or what was wrong.
type Seen = Result<Vec<u8>, WireError>;

/// Reads the bytes as a stream of frames.
///
/// # Panics
/// When it matters how the bytes arrive, or something does not come back as it was.
pub fn codec(bytes: &[u8]) {
    let Some((&how, stream)) = bytes.split_first() else { return };
    let frame_max = if how & 0x80 == 0 { 4096 } else { 0 };
    let whole = read([stream], frame_max);
    let in_pieces = read(stream.chunks(usize::from(how & 0x7f) + 1), frame_max);
    assert_eq!(whole, in_pieces, "whole and in pieces");
}

fn read<'b>(pieces: impl IntoIterator<Item = &'b [u8]>, frame_max: u32) -> Vec<Seen> {
    let (mut buffer, mut at, mut seen) = (Vec::new(), 0, Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match Frame::parse(&buffer[at..], frame_max) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    at += frame.len();
                    seen.push(understand(&frame));
                }
                Err(error) => {
                    seen.push(Err(error));
                    return seen;
                }
            }
        }
    }
    seen
}

fn understand(frame: &Frame<'_>) -> Seen {
    let mut anew = Vec::new();
    match frame.kind {
        FrameKind::Method => method(frame, &mut anew)?,
        FrameKind::Header => header(frame.payload, &mut anew)?,
        FrameKind::Body => anew.extend_from_slice(frame.payload),
        FrameKind::Heartbeat => FrameWriter::new(&mut anew, 0).heartbeat(),
    }
    assert!(anew.len() <= frame.len(), "what was understood is not longer than it came");
    Ok(anew)
}

fn method(frame: &Frame<'_>, anew: &mut Vec<u8>) -> Result<(), WireError> {
    let method = Method::decode(frame.payload, &LIMITS)?;
    FrameWriter::new(anew, 0).method(frame.channel, method);
    let again = Frame::parse(anew, 0).expect("a frame").expect("a whole one");
    assert_eq!(again.channel, frame.channel);
    assert_eq!(Method::decode(again.payload, &LIMITS), Ok(method));
    assert!(!method.name().is_empty());
    Ok(())
}

fn header(payload: &[u8], anew: &mut Vec<u8>) -> Result<(), WireError> {
    ContentHeader::decode(payload, &LIMITS)?.encode(anew);
    assert_eq!(anew, payload, "properties keep their bytes");
    Ok(())
}

/// Reads the bytes as all that a client says on a connection: from the very beginning, or where the highest bit of the first
/// byte is set, with channel 1 open. A broker answers everything, and gives each consumer a message.
///
/// # Panics
/// When something other than whole frames goes out, or the connection goes on after its end.
pub fn connection(bytes: &[u8]) {
    let Some((&how, stream)) = bytes.split_first() else { return };
    let mut peer = Peer::new();
    if how & 0x80 != 0 {
        peer.hear(OPENING);
    }
    for piece in stream.chunks(usize::from(how & 0x7f) + 1) {
        peer.hear(piece);
    }
}

/// Protocol header, `start-ok` as guest, `tune-ok`, `open`, and `channel.open` on channel 1.
const OPENING: &[u8] = b"AMQP\0\0\x09\x01\
    \x01\0\0\0\0\0\x24\0\x0a\0\x0b\0\0\0\0\x05PLAIN\0\0\0\x0c\0guest\0guest\x05en_US\xce\
    \x01\0\0\0\0\0\x0c\0\x0a\0\x1f\0\0\0\x02\0\0\0\0\xce\
    \x01\0\0\0\0\0\x08\0\x0a\0\x28\x01/\0\0\xce\
    \x01\0\x01\0\0\0\x05\0\x14\0\x0a\0\xce";

/// A connection, and a broker that does whatever it is asked.
struct Peer {
    connection: Connection,
    input: BytesMut,
    consumers: u64,
}

impl Peer {
    fn new() -> Self {
        Self {
            connection: Connection::new(Time(0), Options::default()),
            input: BytesMut::new(),
            consumers: 0,
        }
    }

    fn hear(&mut self, piece: &[u8]) {
        self.input.extend_from_slice(piece);
        // What waited for an answer is looked at again.
        for _ in 0..=piece.len() {
            self.connection.receive(Time(1), &mut self.input);
            let asks = self.connection.take_asks();
            let is_quiet = asks.is_empty();
            asks.into_iter().for_each(|ask| self.answer(ask));
            if is_quiet {
                break;
            }
        }
        let was_over = self.connection.is_over();
        let out = std::mem::take(self.connection.output());
        if out != PROTOCOL_HEADER {
            check_frames(&out);
        }
        self.connection.written(Time(1));
        assert!(!was_over || self.input.is_empty() || !self.connection.wants_bytes());
    }

    fn answer(&mut self, ask: Ask) {
        let (receipt, empty) =
            (Receipt { queue: QueueId(0), seq: Seq(1), lease: LeaseId(1) }, Properties::EMPTY);
        let (exchange, routing_key, body) = (&b"x"[..], &b"k"[..], &b"body"[..]);
        let delivery =
            Delivery { receipt, redelivered: false, exchange, routing_key, properties: empty.view(), body };
        match ask {
            Ask::Login(_) => self.connection.logged_in(true),
            Ask::Open { .. } => self.connection.opened(Ok(())),
            Ask::Publish { token, publish, .. } => {
                let is_even = publish.body.len() % 2 == 0;
                self.connection
                    .published(token, if is_even { Ok(1) } else { Err(Refusal::Unroutable.into()) });
            }
            Ask::Settle { .. } | Ask::Leave { .. } | Ask::Took { .. } | Ask::Share { .. } => {}
            Ask::Do { token, operation, .. } => match operation {
                Operation::Get { .. } => self.connection.got(token, Ok(Some((delivery, 3)))),
                Operation::Consume(_) => {
                    self.consumers += 1;
                    let consumer = ConsumerId(self.consumers);
                    self.connection.answer(token, Ok(Answer::Consuming(consumer)));
                    self.connection.deliver(consumer, &delivery);
                }
                operation => self.connection.answer(token, reply(operation)),
            },
        }
    }
}

/// What the broker answers; some names are never there.
fn reply(operation: Operation) -> Result<Answer, Refused> {
    match operation {
        Operation::DeclareQueue(queue) if queue.name.len() > 8 => Err(Refusal::NameInvalid.into()),
        Operation::DeclareQueue(queue) => Ok(Answer::Queue { name: queue.name, messages: 1, consumers: 0 }),
        Operation::DeleteQueue { .. } | Operation::PurgeQueue { .. } => Ok(Answer::Count(1)),
        Operation::Transact { .. } => Ok(Answer::Committed { unrouted: vec![0] }),
        Operation::Bind(_) => Err(Refusal::NoSuchExchange.into()),
        _ => Ok(Answer::Done),
    }
}

fn check_frames(mut out: &[u8]) {
    while !out.is_empty() {
        let frame = Frame::parse(out, 0).expect("frames go out").expect("whole ones");
        understand(&frame).expect("a client understands them");
        out = &out[frame.len()..];
    }
}

/// Reads the bytes as all that a server says to a client: from the very beginning, or where the highest bit of the first byte is
/// set, with channel 1 open, on which it asked for confirms, a queue, a consumer and a message, and published. It settles
/// whatever comes, and opens and asks again what is closed.
///
/// # Panics
/// When something other than whole frames goes out, something happens after the end, or a publish is confirmed twice.
pub fn client(bytes: &[u8]) {
    let Some((&how, stream)) = bytes.split_first() else { return };
    let mut user = User::new();
    if how & 0x80 != 0 {
        WELCOME.iter().for_each(|said| user.hear(said));
    }
    for piece in stream.chunks(usize::from(how & 0x7f) + 1) {
        user.hear(piece);
    }
}

/// `start` with PLAIN, `tune` with frames of 4,096 bytes, `open-ok`, and `channel.open-ok` on channel 1.
const WELCOME: [&[u8]; 2] = [
    b"\x01\0\0\0\0\0\x1c\0\x0a\0\x0a\0\x09\0\0\0\0\0\0\0\x05PLAIN\0\0\0\x05en_US\xce\
    \x01\0\0\0\0\0\x0c\0\x0a\0\x1e\0\x03\0\0\x10\0\0\x3c\xce\
    \x01\0\0\0\0\0\x05\0\x0a\0\x29\0\xce",
    b"\x01\0\x01\0\0\0\x08\0\x14\0\x0b\0\0\0\0\xce",
];

/// A client, and somebody who wants a lot of it.
struct User {
    client: Client,
    input: BytesMut,
    /// Numbers of publishes that are open, by channel.
    unconfirmed: BTreeSet<(u16, u64)>,
    is_over: bool,
}

impl User {
    fn new() -> Self {
        let client = Client::new(Time(0), ClientOptions { body_max: 1 << 16, ..ClientOptions::default() });
        Self { client, input: BytesMut::new(), unconfirmed: BTreeSet::new(), is_over: false }
    }

    fn hear(&mut self, piece: &[u8]) {
        self.input.extend_from_slice(piece);
        self.client.receive(Time(1), &mut self.input);
        let events = self.client.take_events();
        events.into_iter().for_each(|event| self.react(event));
        let out = std::mem::take(self.client.output());
        check_frames(out.strip_prefix(&PROTOCOL_HEADER).unwrap_or(&out));
        self.client.written(Time(1));
        assert!(!self.client.is_over() || self.is_over && self.input.is_empty());
    }

    fn react(&mut self, event: Event) {
        assert!(!self.is_over, "nothing happens after the end: {event:?}");
        match event {
            Event::Opened(_) => self.begin(),
            Event::ChannelClosed { channel, .. } => {
                self.unconfirmed.retain(|(of, _)| *of != channel);
                self.begin();
            }
            Event::Confirmed { channel, tags, .. } => {
                for tag in tags {
                    assert!(self.unconfirmed.remove(&(channel, tag)), "it is confirmed once");
                }
            }
            Event::Delivered { channel, delivery_tag, .. } | Event::Got { channel, delivery_tag, .. } => {
                // It may be closed meanwhile.
                let _ = self.client.ask(channel, basic::Ack { delivery_tag, multiple: false });
            }
            Event::Returned { channel, tag: Some(tag), .. } => {
                assert!(self.unconfirmed.contains(&(channel, tag)), "it comes back before its confirm");
            }
            Event::Closed(ending) => {
                assert!(!ending.to_string().is_empty());
                self.is_over = true;
            }
            _ => {}
        }
    }

    /// Opens a channel and asks for all there is.
    fn begin(&mut self) {
        let Ok(channel) = self.client.open_channel() else { return };
        let asks: [Method<'_>; 5] = [
            confirm::Select { no_wait: false }.into(),
            queue::Declare::default().into(),
            basic::Qos::default().into(),
            basic::Consume::default().into(),
            basic::Get::default().into(),
        ];
        asks.into_iter().for_each(|ask| self.client.ask(channel, ask).expect("it is open"));
        let method = basic::Publish { mandatory: true, ..basic::Publish::default() };
        for body in [&b"body"[..], b"", &[0; 5_000]] {
            let tag =
                self.client.publish(channel, method, Properties::EMPTY.view(), body).expect("it is open");
            self.unconfirmed.insert((channel, tag.expect("a number")));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_codec_input_panics() {
        overtake_corpus::check("amqp_codec", super::codec);
    }

    #[test]
    fn no_connection_input_panics() {
        overtake_corpus::check("amqp_connection", super::connection);
    }

    #[test]
    fn no_client_input_panics() {
        overtake_corpus::check("amqp_client", super::client);
    }

    #[test]
    fn the_welcome_opens_a_client() {
        let mut user = super::User::new();
        super::WELCOME.iter().for_each(|said| user.hear(said));
        assert!(user.client.is_open() && user.unconfirmed.len() == 3);
        // basic.ack of all
        user.hear(b"\x01\0\x01\0\0\0\x0d\0\x3c\0\x50\0\0\0\0\0\0\0\0\x01\xce");
        assert!(user.client.is_open() && user.unconfirmed.is_empty());
    }

    #[test]
    fn the_opening_opens_a_channel() {
        let mut peer = super::Peer::new();
        peer.hear(super::OPENING);
        // basic.qos of 1
        peer.hear(b"\x01\0\x01\0\0\0\x0b\0\x3c\0\x0a\0\0\0\0\0\x01\0\xce");
        assert!(!peer.connection.is_over());
        peer.input.extend_from_slice(b"\x01\0\x01\0\0\0\x0b\0\x3c\0\x0a\0\0\0\0\0\x01\0\xce");
        peer.connection.receive(super::Time(1), &mut peer.input);
        assert_eq!(peer.connection.output()[7..11], *b"\0\x3c\0\x0b", "basic.qos-ok");
    }
}
