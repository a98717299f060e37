//! Where the broker is, and how to be its client.

use std::time::Duration;

use overtake_amqp::client::{ClientOptions, Credentials};
use overtake_redact::masked;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use crate::error::Error;
use crate::tls::Tls;

/// How long to wait before a login is tried again that was refused.
const LOGIN_RETRY: Duration = Duration::from_secs(30);

/// Where the broker is, and how to be its client. From a URL, `amqp://USER:PASSWORD@HOST:PORT/VHOST`, with more said by methods:
///
/// ```
/// use std::time::Duration;
///
/// use overtake_client::ConnectOptions;
///
/// let options = ConnectOptions::new("amqp://shop:secret@broker.example.org").name("shop, orders").heartbeat(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    url: String,
    #[cfg(feature = "http")]
    http: Option<String>,
    pub(crate) tls: Tls,
    name: String,
    heartbeat: Duration,
    pub(crate) patience: Duration,
    pub(crate) login_retry: Option<Duration>,
    pub(crate) unconfirmed_max: usize,
    pub(crate) exactly_once: bool,
}

/// What the options come to.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_secure: bool,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) vhost: String,
}

impl ConnectOptions {
    /// A broker at `amqp://…`, or `amqps://…` with TLS. Without a user it is `guest`, without a port 5672 or 5671, and without a virtual host, which stands
    /// percent-encoded in the path, `/`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            #[cfg(feature = "http")]
            http: None,
            tls: Tls::default(),
            name: String::new(),
            heartbeat: Duration::from_secs(60),
            patience: Duration::from_secs(10),
            login_retry: Some(LOGIN_RETRY),
            unconfirmed_max: 1_000,
            exactly_once: false,
        }
    }

    /// Where the broker serves HTTP, if not on the same host at port 15672, or under TLS at 15671: `http://HOST:PORT`.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(self, url: impl Into<String>) -> Self {
        Self { http: Some(url.into()), ..self }
    }

    /// Whom to believe, and what certificate to show.
    #[must_use]
    pub fn tls(self, tls: Tls) -> Self {
        Self { tls, ..self }
    }

    /// How people call this connection; they see it at the broker.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// How often both sides give a sign of life, in whole seconds; none for 0. Without any for twice as long a connection is lost. Else 60 s.
    #[must_use]
    pub fn heartbeat(self, heartbeat: Duration) -> Self {
        Self { heartbeat, ..self }
    }

    /// How long a connection, a login or a request over HTTP may take; else 10 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { patience: timeout, ..self }
    }

    /// How long to wait before a login is tried again that the broker refuses although it accepted it before: the password was changed, or the virtual host
    /// is gone. The default is 30 s. Publishers and consumers wait meanwhile, as while there is no connection.
    ///
    /// `None`: the first such refusal ends the client, and whoever waits has [`Error::LoginRefused`]. The very first login is never tried again.
    #[must_use]
    pub fn login_retry(self, every: Option<Duration>) -> Self {
        Self { login_retry: every, ..self }
    }

    /// Most publishes that are not confirmed, at least 1, else 1,000. Whoever publishes beyond that waits.
    #[must_use]
    pub fn unconfirmed_max(self, unconfirmed_max: usize) -> Self {
        Self { unconfirmed_max: unconfirmed_max.max(1), ..self }
    }

    /// Numbers what is published, so that the broker takes once what is published again after a connection was lost, not knowing whether it had come. Without it
    /// such a message may be there twice.
    #[must_use]
    pub fn exactly_once(self) -> Self {
        Self { exactly_once: true, ..self }
    }

    /// # Errors
    /// [`Error::Invalid`]: the URL makes no sense.
    pub(crate) fn address(&self) -> Result<Address, Error> {
        let wrong = |why: &str| Error::Invalid(format!("`{}`: {why}", masked(&self.url)));
        let url = Url::parse(&self.url).map_err(|error| match self.url.contains('@') {
            true => wrong(&format!("{error}; percent-encode `/`, `?`, `#` and `@` in a password")),
            false => wrong(&error.to_string()),
        })?;
        let is_secure = match url.scheme() {
            "amqp" => false,
            "amqps" => true,
            _ => return Err(wrong("it must begin with amqp:// or amqps://")),
        };
        let host = match url.host() {
            Some(Host::Domain("")) | None => return Err(wrong("it names no host")),
            Some(Host::Ipv6(address)) => address.to_string(),
            Some(host) => host.to_string(),
        };
        let decoded = |text: &str| {
            let text = percent_decode_str(text).decode_utf8().map(std::borrow::Cow::into_owned);
            text.map_err(|_| wrong("what is percent-encoded is no UTF-8"))
        };
        let vhost = decoded(url.path().strip_prefix('/').unwrap_or_default())?;
        Ok(Address {
            host,
            port: url.port().unwrap_or(if is_secure { 5671 } else { 5672 }),
            is_secure,
            user: decoded(url.username())?,
            password: decoded(url.password().unwrap_or_default())?,
            vhost: if vhost.is_empty() { "/".to_owned() } else { vhost },
        })
    }

    /// What the connection is told.
    pub(crate) fn client_options(&self, address: &Address) -> ClientOptions {
        let default = ClientOptions::default();
        let credentials = match (address.user.is_empty(), self.tls.has_identity()) {
            (true, true) => Credentials::Certificate,
            (true, false) => default.credentials.clone(),
            (false, _) => {
                Credentials::Password { user: address.user.clone(), password: address.password.clone() }
            }
        };
        ClientOptions {
            credentials,
            vhost: address.vhost.clone(),
            heartbeat_s: u16::try_from(self.heartbeat.as_secs()).unwrap_or(u16::MAX),
            patience_ms: u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX),
            product: "overtake-client".to_owned(),
            connection_name: self.name.clone(),
            ..default
        }
    }

    /// Where HTTP is.
    #[cfg(feature = "http")]
    pub(crate) fn http_url(&self, address: &Address) -> String {
        self.http.clone().unwrap_or_else(|| {
            let host =
                if address.host.contains(':') { format!("[{}]", address.host) } else { address.host.clone() };
            let (scheme, port) = if address.is_secure { ("https", 15671) } else { ("http", 15672) };
            format!("{scheme}://{host}:{port}")
        })
    }
}

impl From<&str> for ConnectOptions {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl From<&String> for ConnectOptions {
    fn from(url: &String) -> Self {
        Self::new(url)
    }
}

impl From<String> for ConnectOptions {
    fn from(url: String) -> Self {
        Self::new(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: &str) {
        let seen = match ConnectOptions::new(url).address() {
            Ok(Address { host, port, is_secure, user, password, vhost }) => {
                format!("{host} {port} {is_secure} {user} {password} {vhost}")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_url_says_where_and_who() {
        check("amqp://127.0.0.1", "127.0.0.1 5672 false   /");
        check("amqps://a:b%40c@host/%2f", "host 5671 true a b@c /");
        check("amqp://a@[::1]:7/shop%2Feu", "::1 7 false a  shop/eu");
        check("http://a:secret@host", "`http://a:***@host`: it must begin with amqp:// or amqps://");
        let encode = "percent-encode `/`, `?`, `#` and `@` in a password";
        for url in ["amqp://a:secret/secret@host", "amqp://a:secret?@host", "amqp://a:secret#secret@host"] {
            check(url, &format!("`amqp://a:***@host`: invalid port number; {encode}"));
        }
        check("amqp:///", "`amqp:///`: it names no host");
    }
}
