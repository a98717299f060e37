//! One AMQP connection at a broker: what a client says becomes requests of a session, what the session hears becomes frames.
//! Bytes and events in, bytes and requests out: no sockets, no clock, so the simulator can be the driver.
//!
//! ```text
//!   receive(now, bytes) ─▶ Conversation ─▶ take_requests() ─▶ engine::Asks
//!   output() ◀───────────────┘  ▲ hear(events) ◀── engine::Events
//! ```
//!
//! [`overtake_amqp::connection`] knows the protocol, this crate what it means here: arguments are settings, properties are
//! priorities and times to live, a death is an `x-death` header.

pub mod arguments;
mod control;
mod conversation;
mod delivery;
pub mod differs;
mod message;
mod names;
mod own;
mod pending;
mod rights;

use std::sync::Arc;

use overtake_amqp::connection::{Publish, Refused};
use overtake_engine::NewMessage;

pub use control::EXCHANGE as CONTROL_EXCHANGE;
pub use conversation::{Conversation, Options, Wish};
pub use rights::{Everything, Rights};

/// A message that somebody publishes without a connection, understood as one that came over AMQP.
///
/// # Errors
/// A property or a header that cannot be.
pub fn message_of(publish: Publish, user: &str) -> Result<NewMessage, Refused> {
    let here = rights::Here::new(Arc::new(Everything(user.to_owned())));
    message::message(
        publish,
        &message::Publisher { here: &here, replies: None },
        &mut message::Ways::default(),
    )
}
