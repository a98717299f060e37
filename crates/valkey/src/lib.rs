//! Queues on Redis and Valkey, one server or a cluster.
//!
//! A partition of a queue is a *place*: keys that share one hash tag, and functions that the server runs, each of which does one thing whole or not at all
//! ([`functions`]).

pub mod functions;
