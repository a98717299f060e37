//! Where another system is: URLs without secrets, and sockets with errors that say what to do.

use std::net::IpAddr;

use overtake_redact::{MASK, masked};
use tokio::net::TcpStream;
use url::{Host, Url};

use crate::reach::LinkLocal;
use crate::secret::Vault;

/// Where another system is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name, or the text of an IP address without brackets.
    pub host: String,
    /// Of the URL, else the scheme's.
    pub port: u16,
    /// The scheme means TLS.
    pub is_secure: bool,
    /// What holds for the addresses that the host leads to.
    pub(crate) link_local: LinkLocal,
}

/// How a URL and the keys beside it say who asks. A URL is shown to people, so none holds a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// The URL may name the user; the password is in the key `password`.
    UserInUrl,
    /// The user is in the key `user`, the password in `password`.
    UserInKey,
    /// Headers show who asks.
    InHeaders,
}

impl Login {
    fn check(self, vault: Vault, has_user: bool, has_password: bool) -> Result<(), String> {
        match self {
            Self::InHeaders if has_user || has_password => Err(format!(
                "`url` names a user or a password, which is not sent: say it in `headers`, as {}",
                vault.header_form()
            )),
            Self::UserInUrl | Self::UserInKey if has_password => {
                Err(format!("a URL is shown to people: say the password in `password`, as {}", vault.forms()))
            }
            Self::UserInKey if has_user => Err("say the user in `user`, not in the URL".to_owned()),
            _ => Ok(()),
        }
    }
}

/// A URL with one of these schemes, each with its port and whether it means TLS, and its address as far as the vault admits it.
///
/// # Errors
/// What is wrong with it, as a phrase.
pub fn parse(
    vault: Vault,
    text: &str,
    schemes: &[(&str, u16, bool)],
    login: Login,
) -> Result<(Url, Address), String> {
    let shown = masked(text);
    let parsed = Url::parse(text);
    // A password with `/`, `?`, `#` or `@` in it makes a URL that does not parse.
    let has_password = match &parsed {
        Ok(url) => url.password().is_some(),
        Err(_) => shown.contains(&format!(":{MASK}@")),
    };
    login.check(vault, parsed.as_ref().is_ok_and(|url| !url.username().is_empty()), has_password)?;
    let url = parsed.map_err(|error| format!("`{shown}` is no URL: {error}"))?;
    let known = schemes.iter().find(|(scheme, ..)| *scheme == url.scheme());
    let Some((_, port, is_secure)) = known else {
        let all: Vec<String> = schemes.iter().map(|(scheme, ..)| format!("{scheme}://")).collect();
        return Err(format!("`{shown}` must begin with {}", all.join(" or ")));
    };
    let host = match url.host() {
        Some(Host::Domain("")) | None => return Err(format!("`{shown}` names no host")),
        Some(Host::Ipv6(address)) => address.to_string(),
        Some(host) => host.to_string(),
    };
    let port = url.port().unwrap_or(*port);
    let address = Address { host, port, is_secure: *is_secure, link_local: LinkLocal::Allowed };
    Ok((url, vault.admit(address)?))
}

impl Address {
    /// A connection to it. Each address that the name leads to is looked at here, and connected to as it was looked at.
    ///
    /// # Errors
    /// Why there is none, as a phrase.
    pub async fn connect(&self) -> Result<TcpStream, String> {
        let Self { host, port, link_local, .. } = self;
        let addresses = tokio::net::lookup_host((host.as_str(), *port)).await;
        let addresses: Vec<_> = match addresses {
            Ok(found) => found.collect(),
            Err(error) => return Err(format!("the name {host} is not known here: {error}")),
        };
        let mut why = format!("the name {host} has no address");
        for address in addresses {
            if let Err(refused) = link_local.check(address.ip()) {
                why = format!("{host}: {refused}");
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(socket) => {
                    let _ = socket.set_nodelay(true);
                    return Ok(socket);
                }
                Err(error) => why = format!("{address} does not answer: {error}"),
            }
        }
        Err(why)
    }

    /// As it stands in a URL.
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        match host.parse::<IpAddr>() {
            Ok(IpAddr::V6(host)) => format!("[{host}]:{port}"),
            _ => format!("{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTP: [(&str, u16, bool); 1] = [("http", 80, false)];

    fn of_api(vault: Vault, url: &str) -> Result<Address, String> {
        parse(vault, url, &HTTP, Login::UserInUrl).map(|(_, address)| address)
    }

    /// The address, as a definition over the API may name it.
    fn admitted(url: &str) -> Result<Address, String> {
        of_api(Vault::OF_API, url)
    }

    #[test]
    fn the_text_of_a_link_local_address_is_refused_in_every_spelling() {
        for host in ["169.254.169.254", "2852039166", "0xa9fea9fe", "[::ffff:a9fe:a9fe]", "[fe80::1]"] {
            let why = admitted(&format!("http://{host}/latest")).expect_err(host);
            assert!(why.contains("link-local"), "{why}");
        }
        assert!(admitted("http://127.0.0.1").is_ok());
        let allowed = Vault::OF_API.with_link_local(LinkLocal::Allowed);
        assert!(of_api(allowed, "http://169.254.169.254").is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_its_secrets() {
        use Login::{InHeaders, UserInKey, UserInUrl};
        let cases = [
            ("ftp://ann@h?token=pw#pw", UserInUrl, "`ftp://ann@h?***` must begin with http://"),
            ("ftp://ann:pw@h?token=pw", UserInUrl, "say the password in `password`"),
            ("http://ann:pw/pw@h", UserInUrl, "say the password in `password`"),
            ("http://ann:pw?pw@h", UserInKey, "say the password in `password`"),
            ("http://ann:pw#pw@h", InHeaders, "say it in `headers`"),
            ("http://ann@h", InHeaders, "say it in `headers`"),
            ("http://ann@h", UserInKey, "say the user in `user`"),
            ("http://h:pw/?pw#pw", UserInUrl, "is no URL: invalid port number"),
        ];
        for (url, login, expect) in cases {
            for vault in [Vault::ANY, Vault::OF_API] {
                let why = parse(vault, url, &HTTP, login).expect_err(url);
                assert!(why.contains(expect), "{url}: {why}");
                let is_of_api = why.contains("OVERTAKE_SECRET_");
                assert_eq!(is_of_api, vault.is_of_api() && why.contains("env"), "{url}: {why}");
            }
        }
        let why = parse(Vault::ANY, "http://ann:pw/pw@h", &HTTP, Login::UserInUrl).expect_err("a password");
        assert!(!why.contains("pw"), "{why}");
    }

    #[tokio::test]
    async fn a_name_is_judged_by_where_it_leads_when_a_connection_is_made() {
        // What a resolver answers for a name comes by the same way as the text of an address that was not looked at before.
        let address = of_api(Vault::ANY, "http://169.254.169.254").expect("a URL");
        let unjudged = Address { link_local: LinkLocal::Refused, ..address };
        let why = unjudged.connect().await.expect_err("refused");
        assert!(why.starts_with("169.254.169.254: 169.254.169.254 is a link-local address"), "{why}");
    }
}
