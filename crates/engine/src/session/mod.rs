//! A client that asks without waiting, and hears what comes of it, in order and in batches.
//!
//! ```text
//!   Asks: room(n).await, then a batch of asks ─▶ Line ─▶ the engine
//!   Events: next().await ◀─ as many as have gathered ◀─────┘
//! ```
//!
//! One call and one wake-up carry many requests, or much of what came of them: made for a wire on which one connection
//! publishes and consumes as fast as it can. The calls of [`Engine`](crate::Engine) are for everybody else.
//!
//! # Order
//! - Requests are done one by one, in the order in which they were asked, each for itself: one that is refused leaves its
//!   neighbours alone.
//! - Whatever changes something durable (publishes, settlements, queues, bindings) is answered in that order too, each after it
//!   is durable, also when it is refused. So publishes may be confirmed up to the last one answered.
//! - A lease is answered as soon as there is something, or the wait is over; a get, a consumer, and what only looks, at once. These
//!   may come before the answers of changes asked earlier. A change of messages that match a filter is answered when it is done, or begun:
//!   after changes that were asked later.
//! - A consumer is answered before its first message; and a [`Cancel`](overtake_lane::Command::Cancel) or
//!   [`Leave`](overtake_lane::Command::Leave) after its last one.
//!
//! # Bounds
//! Requests that wait in line are bounded for all together, by their number and by the bytes of what they publish ([`Places`]). Events that wait
//! for a slow session are bounded by what it asked for: deliveries by the windows of its consumers, and in bytes by the limit of the
//! engine for each session and for all ([`PushLimits`](overtake_lane::PushLimits)); answers by [`UNHEARD_MAX`]. Whoever waits for room must go on listening, since hearing answers is what makes room.
//!
//! # The end
//! A session ends when its [`Events`] are dropped: what was asked before is done, its consumers are cancelled and what they
//! held is put back, leases that wait are given up, and what was leased and not yet heard is put back; what it got is put back
//! and the queues that it owns are gone, unless it is a part of somebody connected. A lease that was heard belongs to its
//! receipt, as any other. When the engine ends, what has not been answered is answered
//! [`Failure::Unavailable`], as far as it got; then [`Events::next`] answers `None`.
//!
//! # Another engine
//! makes a session of a [`Line`], on which it takes batches, and of the sending end of an unbounded channel, to which it sends
//! events; and keeps the promises above, as `conformance::sessions` says.

mod asks;
mod delivered;
mod events;
mod places;

use std::sync::Arc;

use overtake_lane::{ConsumerId, Receipt};
use tokio::sync::{Semaphore, mpsc};

use crate::api::Failure;

pub use asks::{Ask, Asks, BATCH_MAX, Room, UNHEARD_MAX};
pub use delivered::Delivered;
pub(crate) use events::leased;
pub use events::{Event, Events};
pub use places::{Places, Taken};

/// A client that asks without waiting. Its two halves may part.
pub struct Session {
    /// Where it asks.
    pub asks: Asks,
    /// Where it hears.
    pub events: Events,
}

/// The way from a session to its engine.
pub trait Line: Send + Sync + 'static {
    /// Where requests wait in line.
    fn places(&self) -> &Places;
    /// A number for a lease or a consumer that nobody else has.
    fn next_consumer(&self) -> ConsumerId;
    /// Why nothing is answered, when the engine is gone.
    fn unavailable(&self) -> Failure;
    /// Takes a batch. It may vanish when the engine is gone.
    fn ask(&self, asks: Vec<Ask>, places: Taken);
    /// So many bytes of what was delivered are taken, each message counted as [`pushed_bytes`](overtake_lane::pushed_bytes).
    fn taken(&self, bytes: u64);
    /// Nobody hears any more. These were leased, and never heard.
    fn end(&self, unheard: Vec<Receipt>);
}

impl Session {
    /// Over this line; its events come from here.
    #[must_use]
    pub fn new(line: Arc<dyn Line>, events: mpsc::UnboundedReceiver<Vec<Event>>) -> Self {
        let unheard = Arc::new(Semaphore::new(UNHEARD_MAX));
        Self {
            asks: Asks::new(Arc::clone(&line), Arc::clone(&unheard)),
            events: Events::new(line, events, unheard),
        }
    }
}
