//! A server that is named by a URL, a user and a password, and a connection to it, plain or under TLS.

use std::sync::Arc;

use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use url::Url;

use crate::address::{Address, Login, parse};
use crate::secret::{Secret, Vault};
use crate::tls::{self, Tls};

/// A server as the settings name it.
pub struct Named<'a> {
    /// Without a password.
    pub url: &'a str,
    /// Goes before the URL's.
    pub username: Option<&'a str>,
    /// Where it is.
    pub password: Option<&'a Secret>,
    /// Under a scheme that means TLS.
    pub tls: &'a Tls,
}

/// A server, once its settings are read.
#[derive(Clone)]
pub struct Peer {
    /// As it was said.
    pub url: Url,
    /// Where it is.
    pub address: Address,
    /// Of the settings, else of the URL.
    pub username: Option<String>,
    password: Option<Secret>,
    tls: Option<Arc<ClientConfig>>,
}

/// Bytes in both directions.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for S {}

impl Peer {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub fn new(vault: Vault, named: &Named<'_>, schemes: &[(&str, u16, bool)]) -> Result<Self, String> {
        let (url, address) = parse(vault, named.url, schemes, Login::UserInUrl)?;
        if let Some(secret) = named.password {
            vault.check("password", secret)?;
        }
        let tls = named.tls.client(vault, address.is_secure)?;
        let of_url = (!url.username().is_empty()).then(|| url.username());
        let username = named.username.or(of_url).map(ToOwned::to_owned);
        Ok(Self { url, address, username, password: named.password.cloned(), tls })
    }

    /// The same user, password and trust at another place: a server may tell of others.
    ///
    /// # Errors
    /// The host is none, as a phrase.
    #[cfg(feature = "redis")]
    pub fn at(&self, host: &str, port: u16) -> Result<Self, String> {
        let address = Address { host: host.to_owned(), port, ..self.address.clone() };
        let url = format!("{}://{}", self.url.scheme(), address.authority());
        let url = Url::parse(&url).map_err(|error| format!("`{url}` is no URL: {error}"))?;
        Ok(Self { url, address, ..self.clone() })
    }

    /// Read for each connection: a secret may be changed without a restart.
    ///
    /// # Errors
    /// Why it cannot be read, as a phrase.
    pub fn password(&self) -> Result<Option<String>, String> {
        self.password.as_ref().map(Secret::read).transpose()
    }

    /// # Errors
    /// Why there is no connection, as a phrase.
    pub async fn connect(&self) -> Result<Box<dyn Socket>, String> {
        let socket = self.address.connect().await?;
        Ok(match &self.tls {
            Some(config) => Box::new(tls::begin(Arc::clone(config), &self.address.host, socket).await?),
            None => Box::new(socket),
        })
    }

    /// What the server says, with its name before it.
    #[cfg(feature = "redis")]
    pub fn says(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {what}", self.address.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMES: [(&str, u16, bool); 1] = [("redis", 6379, false)];

    fn named(vault: Vault, url: &str, password: Option<&Secret>, tls: &Tls) -> Result<Peer, String> {
        Peer::new(vault, &Named { url, username: None, password, tls }, &SCHEMES)
    }

    #[test]
    fn over_the_api_no_file_and_no_other_variable_of_the_server_can_be_named() {
        let why = |password: &Secret| {
            named(Vault::OF_API, "redis://h", Some(password), &Tls::default()).err().expect("refused")
        };
        for secret in [Secret::File("/etc/shadow".into()), Secret::Env("HOME".to_owned())] {
            assert!(why(&secret).contains("OVERTAKE_SECRET_"), "{secret:?}");
            assert!(named(Vault::ANY, "redis://h", Some(&secret), &Tls::default()).is_ok());
        }
        let tls = Tls { ca_file: Some("/etc/shadow".into()), ..Tls::default() };
        let why = named(Vault::OF_API, "redis://h", None, &tls).err().expect("refused");
        assert!(why.contains("`tls` names files of the server"), "{why}");
        let fine = Secret::Env("OVERTAKE_SECRET_REDIS".to_owned());
        assert!(named(Vault::OF_API, "redis://h", Some(&fine), &Tls::default()).is_ok());
    }

    #[test]
    fn a_url_may_name_the_user_and_never_the_password() {
        let peer = named(Vault::ANY, "redis://ada@h:7000/1", None, &Tls::default()).expect("a peer");
        assert_eq!((peer.username.as_deref(), peer.address.port), (Some("ada"), 7000));
        let why = named(Vault::ANY, "redis://ada:pw@h", None, &Tls::default()).err().expect("refused");
        assert!(why.contains("say the password in `password`"), "{why}");
    }
}
