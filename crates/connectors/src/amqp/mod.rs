//! AMQP 0-9-1 to another broker: where it is, and how to log in there.

mod wire;

use std::sync::Arc;

use overtake_amqp::client::{ClientOptions, Credentials};
use overtake_engine::Clock;
use overtake_peer::{Address, Login, Secret, Tls, Vault, parse};
use overtake_properties::ShortText;
use percent_encoding::percent_decode_str;
use rustls::ClientConfig;

pub(crate) use self::wire::{CHANNEL, Wire, unsent};
use crate::sink::LinkError;

/// How urgent a message is, where the property `priority` has no room for it (`docs/amqp.md`).
pub(crate) const PRIORITY: &str = "x-processing-priority";
/// The scheme of a message's priority, where it need not be the queue's (`docs/amqp.md`).
pub(crate) const PRIORITY_SCHEME: &str = "x-overtake-priority-scheme";
/// [`crate::texts::PRIORITY_NONE`] as a header.
pub(crate) const PRIORITY_NONE: &str = "x-overtake-priority-none";

/// Another broker, as endpoints and sources name it.
#[derive(Clone, Debug)]
pub(crate) struct AmqpServer {
    pub(crate) url: String,
    pub(crate) user: String,
    pub(crate) password: Option<Secret>,
    pub(crate) heartbeat_s: Option<u16>,
    pub(crate) tls: Tls,
}

/// How to get there.
#[derive(Clone)]
pub(crate) struct AmqpWay {
    server: AmqpServer,
    address: Address,
    vhost: String,
    tls: Option<Arc<ClientConfig>>,
    /// How this connection is called at the other end.
    name: String,
    clock: Arc<dyn Clock>,
}

impl AmqpServer {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn way(&self, vault: Vault, name: &str, clock: Arc<dyn Clock>) -> Result<AmqpWay, String> {
        let schemes = [("amqp", 5672, false), ("amqps", 5671, true)];
        let (url, address) = parse(vault, &self.url, &schemes, Login::UserInKey)?;
        self.password.iter().try_for_each(|secret| vault.check("password", secret))?;
        let path = url.path().strip_prefix('/').unwrap_or_default();
        let vhost =
            percent_decode_str(path).decode_utf8().map_err(|_| "the virtual host of the URL is no text")?;
        let vhost = if vhost.is_empty() { "/".to_owned() } else { vhost.into_owned() };
        let tls = self.tls.client(vault, address.is_secure)?;
        let name = format!("overtake {name}");
        Ok(AmqpWay { server: self.clone(), address, vhost, tls, name, clock })
    }
}

impl AmqpWay {
    /// A connection that is open, with channel 1.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) async fn connect(&self) -> Result<Wire, LinkError> {
        let default = ClientOptions::default();
        let credentials = match &self.server.password {
            None if self.server.user.is_empty() && self.server.tls.cert_file.is_some() => {
                Credentials::Certificate
            }
            None if self.server.user.is_empty() => default.credentials.clone(),
            None => return Err(format!("`password` of {} is missing", self.server.user).into()),
            Some(secret) => {
                Credentials::Password { user: self.server.user.clone(), password: secret.read()? }
            }
        };
        let options = ClientOptions {
            credentials,
            vhost: self.vhost.clone(),
            heartbeat_s: self.server.heartbeat_s.unwrap_or(default.heartbeat_s),
            connection_name: self.name.clone(),
            ..default
        };
        let socket = self.address.connect().await?;
        let clock = Arc::clone(&self.clock);
        match &self.tls {
            None => Wire::open(socket, options, clock).await,
            Some(config) => {
                let socket = overtake_peer::begin(Arc::clone(config), &self.address.host, socket).await?;
                Wire::open(socket, options, clock).await
            }
        }
    }
}

/// # Errors
/// It is too long, as a phrase.
pub(crate) fn short(text: &str) -> Result<ShortText<'_>, String> {
    ShortText::new(text).ok_or_else(|| format!("`{text}` is longer than 255 bytes"))
}
