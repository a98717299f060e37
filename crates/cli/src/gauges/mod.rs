//! What a broker's queues look like now, and how fast they move: what `overtake top` and `overtake watch` show.
//!
//! ```text
//!  broker ─ ask ─▶ QueueIn ─┬─ Tracker ─▶ QueueNow          counters of two polls become rates,
//!                           └─ kept for the next poll       histograms of two polls become quantiles
//! ```
//!
//! Only `ask` talks to the broker and knows what time it is; all the rest is arithmetic.

pub(crate) mod ask;
pub(crate) mod figures;
mod holders;
mod json;
mod now;
mod read;
mod tracker;
mod urgency;
mod wait;

pub(crate) use holders::Holders;
#[cfg(test)]
pub(crate) use holders::{Consumer, Held};
pub(crate) use now::{LaneNow, QueueNow, Sign, Sums};
pub(crate) use tracker::Tracker;
pub(crate) use urgency::{HEATS, Heat, bar};
pub(crate) use wait::Quantile;
