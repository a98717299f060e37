//! What a client wants of a connection, and what it says of itself.

use overtake_properties::{Short, Table, TableBuilder, Value};

use crate::sasl::Credentials;

/// RabbitMQ's capabilities that a client has, by which servers know what they may say.
const CAPABILITIES: [Short<'static>; 6] = [
    Short::literal("publisher_confirms"),
    Short::literal("exchange_exchange_bindings"),
    Short::literal("basic.nack"),
    Short::literal("consumer_cancel_notify"),
    Short::literal("connection.blocked"),
    Short::literal("authentication_failure_close"),
];

/// What a client wants.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How it logs in: PLAIN, or EXTERNAL with the certificate of its TLS connection.
    pub credentials: Credentials,
    /// The virtual host, at most 255 bytes.
    pub vhost: String,
    /// Seconds between signs of life; 0: none. The server may want them more often.
    pub heartbeat_s: u16,
    /// Most channels; 0: as many as the server allows.
    pub channel_max: u16,
    /// The longest frame, bytes; at least [`FRAME_MIN_SIZE`](crate::FRAME_MIN_SIZE).
    pub frame_max: u32,
    /// The longest body that is taken, bytes. A longer one costs its channel.
    pub body_max: u64,
    /// How long the server may take to open the connection, or to agree that it is over, ms.
    pub patience_ms: u64,
    /// What it is.
    pub product: String,
    /// Which one of that.
    pub version: String,
    /// How people call this connection; empty: not at all.
    pub connection_name: String,
}

impl Default for ClientOptions {
    /// `guest` in `/`, a heartbeat of 60 s, frames of 128 KiB, bodies of 128 MiB, 30 s of patience.
    fn default() -> Self {
        Self {
            credentials: Credentials::Password { user: "guest".to_owned(), password: "guest".to_owned() },
            vhost: "/".to_owned(),
            heartbeat_s: 60,
            channel_max: 2_047,
            frame_max: 131_072,
            body_max: 128 << 20,
            patience_ms: 30_000,
            product: "Overtake".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            connection_name: String::new(),
        }
    }
}

impl ClientOptions {
    /// What it says of itself (1.4.2.2).
    pub(super) fn client_properties(&self) -> Table {
        let capabilities = CAPABILITIES
            .iter()
            .fold(TableBuilder::new(), |table, name| table.entry(*name, Value::Bool(true)));
        let table = TableBuilder::new()
            .entry(Short::literal("capabilities"), Value::Table(capabilities.view()))
            .entry(Short::literal("product"), Value::String(self.product.as_bytes()))
            .entry(Short::literal("version"), Value::String(self.version.as_bytes()))
            .entry(Short::literal("platform"), Value::String(b"Rust"));
        match self.connection_name.as_bytes() {
            b"" => table.finish(),
            name => table.entry(Short::literal("connection_name"), Value::String(name)).finish(),
        }
    }
}
