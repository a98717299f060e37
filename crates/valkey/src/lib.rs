//! Queues in Redis or Valkey, on one server or on a cluster.
//!
//! A partition of a queue is a *place*: keys that share one hash tag, and functions that the server runs, each of which does one thing whole or not at all.
//! - [`functions`] is what places do, how they are asked, and what they answer;
//! - [`cluster`] is how functions are called, where they are done, and what an answer promises;
//! - [`places`] are those of one queue, merged by their heads: every process gives what goes next over all of them;
//! - [`engine`] is a process of the broker on all of that.

pub mod cluster;
pub mod engine;
pub mod functions;
pub mod places;
