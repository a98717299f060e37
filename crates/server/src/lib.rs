//! The server: configuration, ports, logs and shutdown. No other crate has any of them; `connections` serves the clients that a port accepts.
//!
//! [`config::load`] says what the broker is told to be and where each value comes from; [`serve`](fn@serve) runs it
//! until a signal ends it.
//!
//! ```text
//!  bind ─▶ open the engine ─▶ declare queues ─▶ ports file, banner ─▶ accept ─── SIGTERM ──▶ finish ─▶ close the engine
//!                                                                                  └── second signal: give up
//! ```

mod access;
mod cluster;
pub mod config;
mod connectors;
mod descriptors;
mod drain;
mod error;
mod logs;
mod management;
mod memory;
mod open;
mod ports;
mod queues;
mod room;
mod routes;
mod running;
mod serve;
mod signals;
mod supervisor;
mod telemetry;
mod threads;

pub use error::{RefusedQueue, ServeError};
pub use logs::start_logs;
pub use running::{Found, FoundStore, Notice};
pub use serve::{Addresses, Ready, Stopped, check, serve};
