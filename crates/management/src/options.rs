//! What the management API is told once.

use std::time::{Duration, Instant};

use overtake_engine::{Clock as _, SystemClock};
use overtake_lane::Time;

/// The version of RabbitMQ whose management API this one follows: tools decide by it what they may ask.
pub const RABBITMQ_VERSION: &str = "4.1.0";

/// What it is told once.
#[derive(Clone, Debug)]
pub struct ManagementOptions {
    /// The version of the server.
    pub version: String,
    /// What this broker is called among nodes: `overtake@` and the name of the machine.
    pub node: String,
    /// Longest body of a request, bytes.
    pub max_request_bytes: u64,
    /// Longest body of a message, bytes.
    pub max_message_bytes: u64,
    /// Most connections over AMQP at once.
    pub max_connections: u32,
    /// Where the broker is served.
    pub listeners: Vec<Listener>,
    /// When it was started.
    pub started: Instant,
    /// The time by the clock of the engine and the connections.
    pub clock: fn() -> Time,
    /// How far apart samples of counters are, from which rates are made.
    pub sampled_every: Duration,
}

/// Where a protocol is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// As RabbitMQ calls it: `amqp`, `amqp/ssl`, `http`, `https`.
    pub protocol: &'static str,
    /// Where.
    pub address: std::net::SocketAddr,
}

impl Default for ManagementOptions {
    fn default() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: "overtake@localhost".to_owned(),
            max_request_bytes: 16 << 20,
            max_message_bytes: 16 << 20,
            max_connections: 0,
            listeners: Vec::new(),
            started: Instant::now(),
            clock: || SystemClock.now(),
            sampled_every: Duration::from_secs(5),
        }
    }
}
