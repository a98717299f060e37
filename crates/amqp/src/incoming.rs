//! Content on its way in: a method that carries it, then its header, then its body in pieces (4.2.6).

use bytes::Bytes;
use overtake_properties::{Limits, Properties, Short};

use crate::content::ContentHeader;
use crate::reply::ReplyCode;
use crate::violation::Violation;

/// No more room is made for a body than this before it comes, bytes.
const ROOM_MAX: u64 = 1 << 20;

/// The names in the last method that carried content. Most messages of a channel have those of the message before, and share them.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The name that only some methods have: of a consumer, or why a message comes back.
    word: Bytes,
    exchange: Bytes,
    routing_key: Bytes,
}

impl Names {
    /// Keeps the names of the next message.
    pub(crate) fn hear(&mut self, word: Short<'_>, exchange: Short<'_>, routing_key: Short<'_>) {
        let said =
            [(&mut self.word, word), (&mut self.exchange, exchange), (&mut self.routing_key, routing_key)];
        for (last, now) in said {
            if last != now.as_bytes() {
                *last = Bytes::copy_from_slice(now.as_bytes());
            }
        }
    }
}

/// A message of which not all frames have come.
#[derive(Debug)]
pub(crate) struct Incoming<M> {
    /// What its method says besides names.
    about: M,
    properties: Properties,
    body: Vec<u8>,
    /// Bytes of body still to come; `None` before the header.
    left: Option<u64>,
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
    pub(crate) fn begin(about: M) -> Self {
        Self { about, properties: Properties::EMPTY, body: Vec::new(), left: None }
    }

    /// Takes the header. True: the message has no body, so it is whole.
    pub(crate) fn header(&mut self, payload: &[u8], body_max: u64) -> Result<bool, Violation> {
        if self.left.is_some() {
            return Err(unexpected("expected content body, got another content header"));
        }
        let header = ContentHeader::decode(payload, &Limits::default()).map_err(Violation::wire)?;
        if header.body_len > body_max {
            let text = format!("message size {} is larger than max size {body_max}", header.body_len);
            return Err(Violation::of(ReplyCode::PreconditionFailed, text));
        }
        self.properties = header.properties.to_properties();
        self.body.reserve_exact(header.body_len.min(ROOM_MAX) as usize);
        self.left = Some(header.body_len);
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
        self.body.extend_from_slice(piece);
        self.left = Some(left);
        Ok(left == 0)
    }

    /// Bytes that the message takes once it is whole, as far as they are known.
    pub(crate) fn len(&self) -> u64 {
        self.come() + self.left.unwrap_or(0)
    }

    /// Bytes of it that have come.
    pub(crate) fn come(&self) -> u64 {
        (self.properties.as_bytes().len() + self.body.len()) as u64
    }

    /// The message, which is whole, with the names in its method.
    pub(crate) fn finish(self, names: &Names) -> Whole<M> {
        let Names { word, exchange, routing_key } = names;
        Whole {
            about: self.about,
            word: word.clone(),
            exchange: exchange.clone(),
            routing_key: routing_key.clone(),
            properties: self.properties,
            body: self.body.into(),
        }
    }
}

/// Something else came where content should.
pub(crate) fn unexpected(text: &str) -> Violation {
    Violation::of(ReplyCode::UnexpectedFrame, text)
}
