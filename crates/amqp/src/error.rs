//! What a peer may do wrong on the wire, before anyone asks what it means.

use std::fmt;

use overtake_properties::Fault;

use crate::method::MethodId;
use crate::reply::ReplyCode;

/// Bytes that are no AMQP. Each ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A frame of a type that nobody knows.
    UnknownFrame(u8),
    /// A frame that is longer than was agreed on.
    FrameTooLarge {
        /// Length of its payload, bytes.
        len: u32,
        /// The most that was agreed on.
        max: u32,
    },
    /// The octet behind the payload is not 0xCE.
    FrameEnd(u8),
    /// A method that nobody knows.
    UnknownMethod(MethodId),
    /// The payload ends in the middle of a field.
    Truncated,
    /// Bytes follow the last field.
    Trailing,
    /// A short string that is to be text is no UTF-8.
    NotText,
    /// Content of another class than basic.
    ContentClass(u16),
    /// The weight in a content header is not 0.
    ContentWeight(u16),
    /// A table or the properties of a message.
    Table(Fault),
}

impl WireError {
    /// The code to close with. The unfitting content header is an unexpected frame, and text that is none a frame error,
    /// because they are to RabbitMQ.
    #[must_use]
    pub fn reply(self) -> ReplyCode {
        match self {
            Self::UnknownFrame(_) | Self::FrameTooLarge { .. } | Self::FrameEnd(_) | Self::NotText => {
                ReplyCode::FrameError
            }
            Self::UnknownMethod(_) => ReplyCode::NotImplemented,
            Self::Truncated | Self::Trailing | Self::Table(_) => ReplyCode::SyntaxError,
            Self::ContentClass(_) | Self::ContentWeight(_) => ReplyCode::UnexpectedFrame,
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFrame(kind) => write!(f, "there is no frame of type {kind}"),
            Self::FrameTooLarge { len, max } => {
                write!(f, "a frame of {len} bytes, at most {max} were agreed on")
            }
            Self::FrameEnd(octet) => write!(f, "a frame ends with {octet} and not with 206"),
            Self::UnknownMethod(id) => write!(f, "there is no method {} of class {}", id.method, id.class),
            Self::Truncated => f.write_str("the frame ends in the middle of a field"),
            Self::Trailing => f.write_str("bytes follow the last field of the frame"),
            Self::NotText => f.write_str("a short string is not UTF-8"),
            Self::ContentClass(class) => write!(f, "content of class {class}, expected 60"),
            Self::ContentWeight(weight) => write!(f, "a content header of weight {weight}, expected 0"),
            Self::Table(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for WireError {}

impl From<Fault> for WireError {
    fn from(fault: Fault) -> Self {
        Self::Table(fault)
    }
}
