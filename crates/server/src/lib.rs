//! The server: configuration, listeners, logs and shutdown. The only place that has any of them.
//!
//! [`config::load`] says what the broker is told to be and where each value comes from; [`serve`](fn@serve) runs it
//! until a signal ends it.
//!
//! ```text
//!  bind ─▶ open the engine ─▶ declare queues ─▶ ports file, banner ─▶ accept ─── SIGTERM ──▶ finish ─▶ close the engine
//!                                                                                  └── second signal: give up
//! ```

mod accept;
mod access;
mod amqp;
mod cluster;
pub mod config;
mod connectors;
mod crowd;
mod door;
mod drain;
mod error;
mod http;
mod logs;
mod management;
mod open;
mod ports;
mod queues;
mod room;
mod routes;
mod running;
mod seen;
mod serve;
mod signals;
mod socket;
mod supervisor;
mod telemetry;
mod tls;

pub use error::ServeError;
pub use logs::start_logs;
pub use running::{Found, FoundStore};
pub use serve::{Addresses, Ready, Stopped, serve};
