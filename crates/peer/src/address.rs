//! Where another system is: URLs without secrets, and sockets with errors that say what to do.

use std::net::IpAddr;

use tokio::net::TcpStream;
use url::{Host, Url};

use crate::reach::LinkLocal;
use crate::secret::MASK;

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

/// A URL as it may be shown: without a password and a query, which may hold secrets.
#[must_use]
pub fn masked(url: &str) -> String {
    let (before, is_asked) = match url.split_once('?') {
        Some((before, query)) => (before, !query.is_empty()),
        None => (url, false),
    };
    let start = before.find("://").map_or(0, |at| at + 3);
    let end = before[start..].find('/').map_or(before.len(), |at| start + at);
    let (scheme, authority, path) = (&before[..start], &before[start..end], &before[end..]);
    let authority = match authority.rsplit_once('@') {
        Some((userinfo, host)) => match userinfo.split_once(':') {
            Some((user, _)) => format!("{user}:{MASK}@{host}"),
            None => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let query = if is_asked { format!("?{MASK}") } else { String::new() };
    format!("{scheme}{authority}{path}{query}")
}

/// A URL with one of these schemes, each with its port and whether it means TLS.
///
/// # Errors
/// What is wrong with it, as a phrase.
pub fn parse(text: &str, schemes: &[(&str, u16, bool)]) -> Result<(Url, Address), String> {
    let shown = masked(text);
    let url = Url::parse(text).map_err(|error| format!("`{shown}` is no URL: {error}"))?;
    let known = schemes.iter().find(|(scheme, ..)| *scheme == url.scheme());
    let Some((_, port, is_secure)) = known else {
        let all: Vec<String> = schemes.iter().map(|(scheme, ..)| format!("{scheme}://")).collect();
        return Err(format!("`{shown}` must begin with {}", all.join(" or ")));
    };
    if url.password().is_some() {
        return Err("a URL is shown to people: say the password in `password`, as { env = \"…\" } or { file = \"…\" }".to_owned());
    }
    let host = match url.host() {
        Some(Host::Domain("")) | None => return Err(format!("`{shown}` names no host")),
        Some(Host::Ipv6(address)) => address.to_string(),
        Some(host) => host.to_string(),
    };
    let port = url.port().unwrap_or(*port);
    let address = Address { host, port, is_secure: *is_secure, link_local: LinkLocal::Allowed };
    Ok((url, address))
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
    use crate::secret::Vault;

    /// The address, as a definition over the API may name it.
    fn admitted(url: &str) -> Result<Address, String> {
        let (_, address) = parse(url, &[("http", 80, false)]).expect("a URL");
        Vault::OF_API.admit(address)
    }

    #[test]
    fn the_text_of_a_link_local_address_is_refused_in_every_spelling() {
        for host in ["169.254.169.254", "2852039166", "0xa9fea9fe", "[::ffff:a9fe:a9fe]", "[fe80::1]"] {
            let why = admitted(&format!("http://{host}/latest")).expect_err(host);
            assert!(why.contains("link-local"), "{why}");
        }
        assert!(admitted("http://127.0.0.1").is_ok());
        let (_, address) = parse("http://169.254.169.254", &[("http", 80, false)]).expect("a URL");
        let allowed = Vault::OF_API.with_link_local(LinkLocal::Allowed);
        assert!(allowed.admit(address).is_ok());
    }

    #[test]
    fn a_url_is_shown_without_its_password_and_its_query() {
        let cases = [
            ("https://h/p", "https://h/p"),
            ("https://h/p?token=x", "https://h/p?***"),
            ("https://ann:pw@h:1/p?a=b?c", "https://ann:***@h:1/p?***"),
            ("redis://ann@h", "redis://ann@h"),
            ("https://a:p@w@h/@", "https://a:***@h/@"),
            ("a:b@c?d", "a:***@c?***"),
            ("", ""),
        ];
        for (url, shown) in cases {
            assert_eq!(masked(url), shown);
        }
        let why = parse("ftp://ann:pw@h?token=x", &[("http", 80, false)]).expect_err("refused");
        assert!(why.contains("`ftp://ann:***@h?***` must begin with http://"), "{why}");
    }

    #[tokio::test]
    async fn a_name_is_judged_by_where_it_leads_when_a_connection_is_made() {
        // What a resolver answers for a name comes by the same way as the text of an address that was not looked at before.
        let (_, address) = parse("http://169.254.169.254", &[("http", 80, false)]).expect("a URL");
        let unjudged = Address { link_local: LinkLocal::Refused, ..address };
        let why = unjudged.connect().await.expect_err("refused");
        assert!(why.starts_with("169.254.169.254: 169.254.169.254 is a link-local address"), "{why}");
    }
}
