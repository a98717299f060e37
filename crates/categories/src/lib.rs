//! Categories of streams: what is published to one, every group of consumers has a copy of, in two lanes.
//!
//! ```text
//!                                     ┌─▶ queue `customer@mails`     primary: customer
//!  publish ─▶ exchange `customer` ────┤                              backfill: customer:backfill
//!                                     └─▶ queue `customer@billing`   …
//! ```
//!
//! A category is a fanout exchange, and a group of it a queue that is bound to it and called so. There is nothing else to remember, so whoever speaks
//! AMQP publishes to the exchange and consumes from the queue. How many lanes there are is a setting of the server, and holds for all groups.

mod categories;
mod group;
mod view;

pub use categories::{Categories, NotInCategory};
pub use group::{category_of, queue_of};
pub use view::{CategoryView, GroupView, StreamView};
