//! Queues in Redis or Valkey, on one server or on a cluster.
//!
//! [`cluster`] is the lowest floor: how server-side functions are called, where they are done, and what an answer promises.

pub mod cluster;
