//! Content on its way in: `basic.publish`, then its header, then its body in pieces (4.2.6).

use bytes::Bytes;
use overtake_properties::{Limits, Properties};

use super::Publish;
use super::violation::Violation;
use crate::content::ContentHeader;
use crate::method::basic;
use crate::reply::ReplyCode;

/// No more room is made for a body than this before it comes, bytes.
const ROOM_MAX: u64 = 1 << 20;

/// What has come of a message so far, in one piece of memory: exchange, routing key, properties, body.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) mandatory: bool,
    bytes: Vec<u8>,
    exchange_len: usize,
    routing_key_len: usize,
    body_at: usize,
    /// Bytes of body still to come; `None` before the header.
    left: Option<u64>,
}

impl Incoming {
    pub(super) fn begin(publish: &basic::Publish<'_>) -> Self {
        let (exchange, routing_key) = (publish.exchange.as_bytes(), publish.routing_key.as_bytes());
        Self {
            mandatory: publish.mandatory,
            bytes: [exchange, routing_key].concat(),
            exchange_len: exchange.len(),
            routing_key_len: routing_key.len(),
            body_at: 0,
            left: None,
        }
    }

    /// Takes the header. `Some`: the message has no body, so it is whole.
    pub(super) fn header(&mut self, payload: &[u8], body_max: u64) -> Result<bool, Violation> {
        if self.left.is_some() {
            return Err(unexpected("expected content body, got another content header"));
        }
        let header = ContentHeader::decode(payload, &Limits::default()).map_err(Violation::wire)?;
        if header.body_len > body_max {
            let text = format!("message size {} is larger than max size {body_max}", header.body_len);
            return Err(Violation::of(ReplyCode::PreconditionFailed, text));
        }
        let properties = header.properties.as_bytes();
        self.bytes.reserve_exact(properties.len() + header.body_len.min(ROOM_MAX) as usize);
        self.bytes.extend_from_slice(properties);
        self.body_at = self.bytes.len();
        self.left = Some(header.body_len);
        Ok(header.body_len == 0)
    }

    /// Takes a piece of the body. True: it was the last.
    pub(super) fn body(&mut self, piece: &[u8]) -> Result<bool, Violation> {
        let Some(left) = self.left else {
            return Err(unexpected("expected content header, got a content body"));
        };
        let left = left.checked_sub(piece.len() as u64);
        let Some(left) = left else {
            return Err(Violation::of(ReplyCode::FrameError, "the body is longer than its header says"));
        };
        self.bytes.extend_from_slice(piece);
        self.left = Some(left);
        Ok(left == 0)
    }

    /// The message, which is whole.
    pub(super) fn finish(self) -> Result<Publish, Violation> {
        let bytes = Bytes::from(self.bytes);
        let key_at = self.exchange_len + self.routing_key_len;
        let properties = Properties::check(bytes.slice(key_at..self.body_at), &Limits::default());
        Ok(Publish {
            exchange: bytes.slice(..self.exchange_len),
            routing_key: bytes.slice(self.exchange_len..key_at),
            mandatory: self.mandatory,
            properties: properties.map_err(|fault| Violation::wire(fault.into()))?,
            body: bytes.slice(self.body_at..),
        })
    }
}

/// Something else came where content should.
pub(super) fn unexpected(text: &str) -> Violation {
    Violation::of(ReplyCode::UnexpectedFrame, text)
}
