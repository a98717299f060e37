//! Consumers of one connection: each has a channel of its own, so that each has its own window.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::inbox::Inbox;
use crate::error::Error;

/// Names a consumer for as long as the client lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeatId(pub(super) u64);

/// What a consumer wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) queue: String,
    /// Most messages that are out to it.
    pub(crate) window: u16,
    /// Among consumers of a queue, those with more go first.
    pub(crate) consumer_priority: Option<i32>,
    /// Extra window for messages of this priority and more: from, how many.
    pub(crate) urgent_credit: Option<(i32, u32)>,
    pub(crate) is_exclusive: bool,
}

pub(super) struct Seat {
    pub(super) wanted: Wanted,
    pub(super) inbox: Arc<Inbox>,
    /// 0: it has none now.
    pub(super) channel: u16,
    /// Who waits for it to begin.
    pub(super) started: Option<oneshot::Sender<Result<(), Error>>>,
    /// It wants no more messages.
    pub(super) is_cancelled: bool,
}
