//! Content on its way in: a method that carries it, then its header, then its body in pieces (4.2.6).

use bytes::Bytes;
use overtake_properties::{Limits, Properties, Short};

use crate::content::ContentHeader;
use crate::reply::ReplyCode;
use crate::violation::Violation;

/// No more room is made for a body than this before it comes, bytes.
const ROOM_MAX: u64 = 1 << 20;

/// What has come of a message so far, in one piece of memory: the names in its method, properties, body.
#[derive(Debug)]
pub(crate) struct Incoming<M> {
    /// What its method says besides names.
    about: M,
    bytes: Vec<u8>,
    name_ends: [usize; 3],
    body_at: usize,
    /// Bytes of body still to come; `None` before the header.
    left: Option<u64>,
    /// Bytes of body that the header says.
    body_len: u64,
}

/// A message that is whole.
#[derive(Debug)]
pub(crate) struct Whole<M> {
    /// What its method says besides names.
    pub(crate) about: M,
    /// The name that only some methods have: of a consumer, or why a message comes back.
    pub(crate) word: Bytes,
    pub(crate) exchange: Bytes,
    pub(crate) routing_key: Bytes,
    pub(crate) properties: Properties,
    pub(crate) body: Bytes,
}

impl<M> Incoming<M> {
    pub(crate) fn begin(about: M, word: Short<'_>, exchange: Short<'_>, routing_key: Short<'_>) -> Self {
        let (word, exchange, routing_key) = (word.as_bytes(), exchange.as_bytes(), routing_key.as_bytes());
        let (word_end, exchange_end) = (word.len(), word.len() + exchange.len());
        Self {
            about,
            bytes: [word, exchange, routing_key].concat(),
            name_ends: [word_end, exchange_end, exchange_end + routing_key.len()],
            body_at: 0,
            left: None,
            body_len: 0,
        }
    }

    /// Takes the header. `Some`: the message has no body, so it is whole.
    pub(crate) fn header(&mut self, payload: &[u8], body_max: u64) -> Result<bool, Violation> {
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
        self.body_len = header.body_len;
        Ok(header.body_len == 0)
    }

    /// Takes a piece of the body. True: it was the last.
    pub(crate) fn body(&mut self, piece: &[u8]) -> Result<bool, Violation> {
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

    /// Bytes that the message takes once it is whole, as far as they are known.
    pub(crate) fn len(&self) -> u64 {
        self.body_at as u64 + self.body_len
    }

    /// Bytes of it that have come.
    pub(crate) fn come(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The message, which is whole.
    pub(crate) fn finish(self) -> Result<Whole<M>, Violation> {
        let bytes = Bytes::from(self.bytes);
        let [word_end, exchange_end, key_end] = self.name_ends;
        let properties = Properties::check(bytes.slice(key_end..self.body_at), &Limits::default());
        Ok(Whole {
            about: self.about,
            word: bytes.slice(..word_end),
            exchange: bytes.slice(word_end..exchange_end),
            routing_key: bytes.slice(exchange_end..key_end),
            properties: properties.map_err(|fault| Violation::wire(fault.into()))?,
            body: bytes.slice(self.body_at..),
        })
    }
}

/// Something else came where content should.
pub(crate) fn unexpected(text: &str) -> Violation {
    Violation::of(ReplyCode::UnexpectedFrame, text)
}
