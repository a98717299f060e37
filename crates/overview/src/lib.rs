//! How all queues stand and have stood, for somebody who looks at all of them at once.
//!
//! ```text
//! every second while somebody watches, else every ten: all queues ─▶ Look (rates and waits since the look before)
//!                                                                     ├▶ History: ten seconds a sample, an hour of them
//!                                                                     └▶ Trouble: what is wrong, the worst first
//! ```
//!
//! Nothing here is counted by itself: each number is one of the broker's, or the difference of two.

mod history;
mod look;
mod overview;
mod quantile;
mod trouble;

pub use history::{LaneSeries, SAMPLE_MS, SAMPLES_MAX, Series, Totals};
pub use look::{Flow, LaneLook, Look, QueueLook, QueueRole};
pub use overview::Overview;
pub use quantile::quantile_ms;
pub use trouble::{Trouble, TroubleKind};
