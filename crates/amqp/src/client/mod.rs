//! The other end of a connection: a client, as a state machine over bytes, without sockets and without a clock.
//!
//! ```text
//!   receive(now, bytes) ─▶ Client ─▶ take_events() ─▶ whoever wanted something
//!   output() ◀───────────────┘  ▲ ask, publish, close ◀──┘
//! ```
//!
//! It is driven as the server's [`Connection`](crate::connection::Connection) is: read bytes, take events, write what
//! [`Client::output`] has gathered, call [`Client::tick`] at [`Client::next_deadline`]; and [`Client::hung_up`] when the socket
//! ends. Invariants: whatever the server sends, the answer is bounded by it; each publish that is numbered is told to be
//! confirmed once at most; [`Event::Closed`] comes once, and last; only whole frames are put out.
//!
//! ```
//! use std::io::{Read, Result, Write};
//!
//! use bytes::BytesMut;
//! use overtake_amqp::client::{Client, Event};
//! use overtake_lane::Time;
//!
//! /// One turn of a loop around a socket whose reads end by `Client::next_deadline`.
//! fn turn(now: Time, client: &mut Client, socket: &mut (impl Read + Write), input: &mut BytesMut) -> Result<Vec<Event>> {
//!     let out = std::mem::take(client.output());
//!     if !out.is_empty() {
//!         socket.write_all(&out)?;
//!         client.written(now);
//!     }
//!     let mut piece = [0; 65_536];
//!     match socket.read(&mut piece)? {
//!         0 => client.hung_up(),
//!         len => {
//!             input.extend_from_slice(&piece[..len]);
//!             client.receive(now, input);
//!         }
//!     }
//!     client.tick(now);
//!     Ok(client.take_events())
//! }
//! ```

mod channel;
mod close;
mod ending;
mod event;
mod handshake;
mod messages;
mod options;
mod replies;
mod requests;
mod unconfirmed;

use std::collections::BTreeMap;
use std::fmt;

use bytes::{Buf, BytesMut};
use overtake_lane::Time;
use overtake_properties::{Limits, Table};

pub use crate::sasl::Credentials;
pub use ending::{Ending, Moment};
pub use event::{Answer, Event, Message, Terms};
pub use options::ClientOptions;
pub use requests::Unsent;

use crate::frame::{FRAME_MIN_SIZE, Frame, FrameKind, PROTOCOL_HEADER};
use crate::method::Method;
use crate::pulse::{Beat, Pulse};
use crate::reply::ReplyCode;
use crate::violation::Violation;
use crate::writer::FrameWriter;
use channel::Channel;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The protocol header is out.
    Greeting,
    /// The login is out.
    LoggingIn,
    /// The virtual host is asked for.
    Opening,
    Running,
    /// It is to be closed, and the server has not agreed. What it says still counts.
    Closing,
    /// The server broke the protocol and has not agreed that it is over. What it says does not count.
    Broken,
    Over,
}

/// One connection, from the side that opens it.
pub struct Client {
    options: ClientOptions,
    stage: Stage,
    /// Until then it must be open, or over.
    patience: Time,
    server_properties: Table,
    channel_max: u16,
    frame_max: u32,
    pulse: Pulse,
    channels: BTreeMap<u16, Channel>,
    is_blocked: bool,
    out: Vec<u8>,
    events: Vec<Event>,
}

impl Client {
    /// A connection whose socket was just connected. There is something to be written.
    #[must_use]
    pub fn new(now: Time, options: ClientOptions) -> Self {
        Self {
            stage: Stage::Greeting,
            patience: now.after(options.patience_ms),
            server_properties: Table::default(),
            channel_max: options.channel_max,
            frame_max: options.frame_max.max(FRAME_MIN_SIZE),
            pulse: Pulse::new(now),
            channels: BTreeMap::new(),
            is_blocked: false,
            out: PROTOCOL_HEADER.to_vec(),
            events: Vec::new(),
            options,
        }
    }

    // ---- bytes in ----

    /// Takes all whole frames of these bytes; what is left belongs before what comes next.
    pub fn receive(&mut self, now: Time, bytes: &mut BytesMut) {
        if !bytes.is_empty() {
            self.pulse.hear(now);
        }
        if self.stage == Stage::Greeting && !self.check_protocol(bytes) {
            return;
        }
        loop {
            match Frame::parse(bytes, self.frame_max) {
                _ if self.stage == Stage::Over => return bytes.clear(),
                Ok(Some(frame)) => {
                    let len = frame.len();
                    if let Err(violation) = self.take_frame(now, &frame) {
                        self.violated(now, frame.channel, violation);
                    }
                    bytes.advance(len);
                }
                Ok(None) => return,
                Err(error) => {
                    bytes.clear();
                    return self.end(now, Violation::wire(error));
                }
            }
        }
    }

    fn take_frame(&mut self, now: Time, frame: &Frame<'_>) -> Result<(), Violation> {
        match frame.kind {
            FrameKind::Heartbeat if frame.channel == 0 => Ok(()),
            FrameKind::Heartbeat => {
                Err(Violation::of(ReplyCode::UnexpectedFrame, "a heartbeat belongs on channel 0"))
            }
            FrameKind::Method => {
                let method = Method::decode(frame.payload, &Limits::default()).map_err(Violation::wire)?;
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
            (Stage::Closing, Method::ConnectionCloseOk(_)) => self.finish(Ending::Asked),
            (Stage::Broken, Method::ConnectionCloseOk(_)) => self.stage = Stage::Over,
            (_, Method::ConnectionClose(close)) => self.closed_by_server(close),
            (Stage::Broken, _) => {}
            (Stage::Running | Stage::Closing, Method::ConnectionBlocked(blocked)) => {
                self.is_blocked = true;
                self.events.push(Event::Blocked { reason: blocked.reason.as_str().to_owned() });
            }
            (Stage::Running | Stage::Closing, Method::ConnectionUnblocked(_)) => {
                self.is_blocked = false;
                self.events.push(Event::Unblocked);
            }
            _ => return self.begin(now, method),
        }
        Ok(())
    }

    // ---- how it stands ----

    /// Whether it is over: the socket is to be closed once everything is written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether it is open, and was not asked to close.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Running
    }

    /// Whether the server has said that it takes no messages for now.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    // ---- time ----

    /// When [`Client::tick`] has something to do at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        match self.stage {
            Stage::Over => None,
            Stage::Running => self.pulse.next(),
            Stage::Opening => self.pulse.next().into_iter().chain([self.patience]).min(),
            _ => Some(self.patience),
        }
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Time) {
        match self.stage {
            Stage::Over => {}
            Stage::Running => self.beat(now),
            Stage::Closing if now >= self.patience => self.finish(Ending::Asked),
            _ if now >= self.patience => self.finish(Ending::Late),
            // A server may take long to look for a virtual host, and wants signs of life already.
            Stage::Opening => self.beat(now),
            _ => {}
        }
    }

    fn beat(&mut self, now: Time) {
        match self.pulse.beat(now) {
            Beat::Nothing => {}
            Beat::Send => {
                FrameWriter::new(&mut self.out, self.frame_max).heartbeat();
                self.pulse.say(now);
            }
            Beat::Dead => self.finish(Ending::Silent),
        }
    }

    // ---- what goes out ----

    /// What has happened, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// The bytes to be written, which whoever writes them takes out. Call [`Client::written`] then.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// All that was put out is on its way. Not to be called when that was nothing: it is what the server hears of us, and puts off
    /// the next sign of life.
    pub fn written(&mut self, now: Time) {
        self.pulse.say(now);
    }

    fn say<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        FrameWriter::new(&mut self.out, self.frame_max).method(channel, method);
    }
}

impl fmt::Debug for Client {
    /// Without what is to be written: the password may be there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut client = f.debug_struct("Client");
        client.field("stage", &self.stage).field("options", &self.options).finish_non_exhaustive()
    }
}
