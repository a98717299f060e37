//! The connection while the broker refuses publishes. Reading goes on, since acknowledgements make room.
//!
//! A publish with confirms goes to the broker, which refuses the publish, so the answer is `basic.nack`. A publish without confirms could be
//! refused without anybody hearing of the refusal: such publishes are deferred until the broker takes publishes again. Deferred publishes are
//! bounded in bytes. Beyond the bound a client that only publishes is not read, as in RabbitMQ; a client that may have something to
//! settle is read, and the channel that publishes more is closed.

use std::collections::VecDeque;

use overtake_properties::ShortText;

use super::asks::{Ask, Publish};
use super::{Connection, FAILED, Stage};
use crate::method::basic;
use crate::method::connection::{Blocked, Unblocked};
use crate::reply::ReplyCode;
use crate::violation::Violation;

/// With so many bytes deferred no further publish is, bytes.
const DEFERRED_BYTES_MAX: u64 = 256 << 10;

/// Publishes without confirms that came while the broker refuses publishes, oldest first.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// Each with the channel it came on, and the life of that channel.
    publishes: VecDeque<(u16, u64, Publish)>,
    bytes: u64,
}

impl Deferred {
    pub(super) fn is_empty(&self) -> bool {
        self.publishes.is_empty()
    }

    /// Bytes that the publishes take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn is_full(&self) -> bool {
        self.bytes >= DEFERRED_BYTES_MAX
    }
}

impl Connection {
    /// The broker refuses publishes, and why; or takes them again.
    pub fn block(&mut self, reason: Option<&str>) {
        if self.blocked.is_some() == reason.is_some() {
            return;
        }
        self.blocked = reason.map(Box::from);
        if self.stage != Stage::Running {
            return;
        }
        self.tell_blocked();
        if reason.is_none() {
            for (number, life, publish) in std::mem::take(&mut self.deferred).publishes {
                self.submit(number, life, publish);
            }
        }
    }

    /// Tells a client that declared the capability `connection.blocked`.
    pub(super) fn tell_blocked(&mut self) {
        if !self.understands.blocked {
            return;
        }
        match self.blocked.clone() {
            Some(reason) => self.say(0, Blocked { reason: ShortText::cut(&reason) }),
            None => self.say(0, Unblocked {}),
        }
    }

    /// Whether a publish on this channel is deferred: nobody would hear of its refusal.
    pub(super) fn defers(&self, number: u16) -> bool {
        let confirms = self.channels.get(&number).and_then(|channel| channel.confirms.as_ref());
        self.blocked.is_some() && confirms.is_none()
    }

    /// Keeps a publish until publishes are taken again.
    pub(super) fn defer(&mut self, number: u16, life: u64, publish: Publish) -> Result<(), Violation> {
        if self.deferred.is_full() {
            let text = format!(
                "publishes are refused for now ({}), and {} bytes of publishes without confirms wait; use confirms, or publish \
                 on a connection without consumers",
                self.blocked.as_deref().unwrap_or_default(),
                self.deferred.bytes
            );
            return Err(Violation::of(ReplyCode::PreconditionFailed, text).by(basic::Publish::ID));
        }
        self.deferred.bytes += publish.len();
        self.deferred.publishes.push_back((number, life, publish));
        Ok(())
    }

    /// The client ends the connection behind publishes that wait, perhaps for long: its consumers leave, and its messages are returned.
    pub(super) fn release_leases(&mut self) {
        if self.deferred.is_empty() {
            return;
        }
        self.gather_settlements();
        let numbers: Vec<u16> = self.channels.keys().copied().collect();
        for number in numbers {
            let consumers = self.take_feeds(number);
            self.asks.extend(consumers.into_iter().map(|consumer| Ask::Leave { consumer }));
            let receipts = self.channel(number).take_all();
            self.channel(number).consumers.clear();
            self.put_back(receipts, FAILED);
        }
    }

    /// Whether nothing more is taken from the client until the broker takes publishes: much is deferred, and the client has nothing that
    /// makes room and waits for no confirm.
    pub(super) fn is_held_up(&self) -> bool {
        self.deferred.is_full() && self.channels.values().all(|channel| channel.only_publishes())
    }
}
