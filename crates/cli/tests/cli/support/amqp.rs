//! A client that says frames and hears them, over any stream.

use std::io::{Read, Write};

use overtake_amqp::method::connection as wire;
use overtake_amqp::{Frame, FrameKind, FrameWriter, Method, PROTOCOL_HEADER};
use overtake_properties::{Limits, Short, ShortText, TableBuilder, Value};

/// A client on a stream.
pub struct Client<S> {
    pub stream: S,
    input: Vec<u8>,
}

pub fn text(text: &'static str) -> ShortText<'static> {
    ShortText::literal(text)
}

impl<S: Read + Write> Client<S> {
    /// One that has said which protocol it speaks.
    pub fn greet(mut stream: S) -> Self {
        stream.write_all(&PROTOCOL_HEADER).expect("the broker reads");
        Self { stream, input: Vec::new() }
    }

    /// One that is logged in by this mechanism, in the virtual host `/`.
    pub fn open(stream: S, mechanism: &'static str, response: &'static [u8]) -> Self {
        Self::open_in("/", stream, mechanism, response)
    }

    /// The same, in another virtual host.
    pub fn open_in(vhost: &'static str, stream: S, mechanism: &'static str, response: &'static [u8]) -> Self {
        let mut client = Self::greet(stream);
        client.hear();
        client.log_in(mechanism, response);
        client.hear();
        client.say(0, wire::TuneOk { channel_max: 0, frame_max: 0, heartbeat: 0 });
        client.say(0, wire::Open { virtual_host: text(vhost), capabilities: text(""), insist: false });
        let opened = client.hear();
        assert!(opened.starts_with("ConnectionOpenOk"), "{opened}");
        client
    }

    /// What one is told that logs in and is not let in.
    pub fn turned_away(stream: S, mechanism: &'static str, response: &'static [u8]) -> String {
        let mut client = Self::greet(stream);
        client.hear();
        client.log_in_to_hear(mechanism, response);
        client.hear();
        client.say(0, wire::TuneOk { channel_max: 0, frame_max: 0, heartbeat: 0 });
        client.say(0, wire::Open { virtual_host: text("/"), capabilities: text(""), insist: false });
        client.hear()
    }

    /// What one is told that cannot log in so.
    pub fn refused(stream: S, mechanism: &'static str, response: &'static [u8]) -> String {
        let mut client = Self::greet(stream);
        client.hear();
        client.log_in_to_hear(mechanism, response);
        client.hear()
    }

    /// As a client that does not know how a login is refused.
    pub fn log_in(&mut self, mechanism: &'static str, response: &'static [u8]) {
        self.log_in_as(&TableBuilder::new(), mechanism, response);
    }

    /// As one that does.
    fn log_in_to_hear(&mut self, mechanism: &'static str, response: &'static [u8]) {
        let closes = Short::literal("authentication_failure_close");
        let can = TableBuilder::new().entry(closes, Value::Bool(true));
        let client = TableBuilder::new().entry(Short::literal("capabilities"), Value::Table(can.view()));
        self.log_in_as(&client, mechanism, response);
    }

    fn log_in_as(&mut self, client: &TableBuilder, mechanism: &'static str, response: &'static [u8]) {
        let client_properties = client.view();
        self.say(
            0,
            wire::StartOk { client_properties, mechanism: text(mechanism), response, locale: text("en_US") },
        );
    }

    pub fn say<'m>(&mut self, channel: u16, method: impl Into<Method<'m>>) {
        let mut bytes = Vec::new();
        FrameWriter::new(&mut bytes, 0).method(channel, method);
        self.stream.write_all(&bytes).expect("the broker reads");
    }

    /// The next method, as Rust shows it; `the end` when there is none.
    pub fn hear(&mut self) -> String {
        loop {
            if let Some(frame) = Frame::parse(&self.input, u32::MAX).expect("frames") {
                let (len, kind) = (frame.len(), frame.kind);
                let method = (kind == FrameKind::Method).then(|| {
                    format!("{:?}", Method::decode(frame.payload, &Limits::default()).expect("a method"))
                });
                self.input.drain(..len);
                match method {
                    Some(method) => return method,
                    None => continue,
                }
            }
            let mut piece = [0; 4_096];
            match self.stream.read(&mut piece) {
                Ok(0) | Err(_) => return "the end".to_owned(),
                Ok(read) => self.input.extend_from_slice(&piece[..read]),
            }
        }
    }
}
