//! The management API, over this engine.

use std::sync::Arc;
use std::time::Instant;

use overtake_access::Desks;
use overtake_management::{Connections, Listener, ManagementOptions};

use crate::config::Config;
use crate::serve::Addresses;

/// Its routes, for those who log in at these desks.
pub(crate) fn router(
    config: &Config,
    desks: Desks,
    connections: Connections,
    addresses: &Addresses,
) -> axum::Router {
    let options = ManagementOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        node: format!("overtake@{}", machine()),
        max_request_bytes: config.max_request_bytes(),
        max_message_bytes: config.max_message_bytes(),
        max_connections: config.amqp.max_connections.value.0,
        listeners: listeners(addresses),
        started: Instant::now(),
        ..ManagementOptions::default()
    };
    overtake_management::router(desks, connections, options)
}

/// Each as RabbitMQ calls it.
fn listeners(addresses: &Addresses) -> Vec<Listener> {
    let name = |scheme| match scheme {
        "amqps" => "amqp/ssl",
        scheme => scheme,
    };
    addresses.served().map(|(scheme, address)| Listener { protocol: name(scheme), address }).collect()
}

/// The name of this machine, up to its first dot.
pub(crate) fn machine() -> Arc<str> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("localhost").into()
}
