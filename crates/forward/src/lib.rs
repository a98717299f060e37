//! Store and forward: what an endpoint sends next, and when it tries again.
//!
//! ```text
//!            Lease: one lane, the most urgent that may go            Send: the batch
//!   queue ─────────────────────────────────────────▶ Forwarder ─────────────────────▶ line ─▶ receiver
//!     ▲                                                  │  ▲                            │
//!     └──── Settle: each message for itself ─────────────┘  └────── answered, finished ──┘
//! ```
//!
//! An endpoint is a queue with a forwarder; a **line** is one connection to the receiver, with one batch at most under way. After each
//! batch the most urgent lane is asked for again; and while one is under way, lanes that are more urgent are waited for: what comes
//! there stops the batch after the message that is being sent, and goes next. So nothing less urgent is ever in front of it but that message, or what was
//! written already.
//!
//! Invariants: nothing is leased that could not be sent at once: whoever is not connected, has no room at its rate or whose breaker is open
//! leaves messages where they are, at their places. A lane that fails holds back no other. Nobody here asks for the time or draws lots: time is
//! handed in, and chance comes from a seed.

mod allowance;
mod breaker;
mod forwarder;
mod item;
mod line;
mod settle;
mod terms;
mod throughput;
mod view;

pub use forwarder::{Action, Ask, Forwarder};
pub use item::{Answer, End, Item};
pub use terms::{BadTerms, Terms};
pub use throughput::Throughput;
pub use view::{BreakerView, BudgetView, ForwarderView, LaneCounts, State};
