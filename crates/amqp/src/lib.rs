//! AMQP 0-9-1 with RabbitMQ's extensions, as bytes.
//!
//! A [`Frame`] is cut from what a socket has brought so far; its payload is a [`Method`], a [`ContentHeader`] or a piece of
//! a body, borrowed from there. What goes out is appended by a [`FrameWriter`], whole frames only. Nothing here knows
//! sockets, time or what a method means, nothing is allocated while reading, and whatever a peer sends, the answer is
//! bounded: a [`WireError`] names the reply code with which to close. Above that are both ends of a connection, [`connection`]
//! the server's and [`client`] the other, still without sockets, and handed the time.
//!
//! The sections that are cited are those of the AMQP 0-9-1 specification (13 November 2008).

pub mod client;
pub mod connection;
mod content;
mod error;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod incoming;
pub mod method;
mod pulse;
mod reply;
mod sasl;
mod violation;
mod writer;

pub use content::ContentHeader;
pub use error::WireError;
pub use frame::{FRAME_MIN_SIZE, FRAME_OVERHEAD, Frame, FrameKind, PROTOCOL_HEADER, starts_protocol};
pub use method::{Method, MethodId};
pub use reply::{ReplyCode, Scope};
pub use writer::{FrameWriter, HeaderTooLarge};
