//! One channel: what was asked on it, and what is on its way.

use std::collections::VecDeque;

use super::unconfirmed::Unconfirmed;
use crate::incoming::{Incoming, Names};
use crate::method::MethodId;

/// A channel that is open, or being opened or closed.
#[derive(Debug, Default)]
pub(super) struct Channel {
    pub(super) closing: Closing,
    /// Requests that are not answered, oldest first.
    pub(super) awaited: VecDeque<MethodId>,
    pub(super) names: Names,
    pub(super) incoming: Option<Incoming<Carrier>>,
    /// Where publishes are confirmed.
    pub(super) unconfirmed: Option<Unconfirmed>,
    /// The server wants no content for now.
    pub(super) is_halted: bool,
}

/// Who wants a channel closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Closing {
    /// Nobody.
    #[default]
    Not,
    /// We do. What the server says until it agrees still counts.
    Asked,
    /// It was broken, which was told: what the server says until it agrees does not count.
    Broken,
}

/// What a method that carries content says besides names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carrier {
    Return { code: u16 },
    Deliver { delivery_tag: u64, redelivered: bool },
    GetOk { delivery_tag: u64, redelivered: bool, message_count: u32 },
}

impl Channel {
    /// The oldest question of that method is answered. False: nobody asked. Questions of several methods may be answered in
    /// another order: a consumer is told of by its queue, and not by its channel (RabbitMQ).
    pub(super) fn answered(&mut self, request: MethodId) -> bool {
        let at = self.awaited.iter().position(|awaited| *awaited == request);
        at.and_then(|at| self.awaited.remove(at)).is_some()
    }
}
