//! Where another system is: URLs without secrets, and sockets with errors that say what to do.

use std::net::IpAddr;

use tokio::net::TcpStream;
use url::{Host, Url};

/// Where another system is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name, or the text of an IP address without brackets.
    pub host: String,
    /// Of the URL, else the scheme's.
    pub port: u16,
    /// The scheme means TLS.
    pub is_secure: bool,
}

/// A URL with one of these schemes, each with its port and whether it means TLS.
///
/// # Errors
/// What is wrong with it, as a phrase.
pub fn parse(text: &str, schemes: &[(&str, u16, bool)]) -> Result<(Url, Address), String> {
    let url = Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
    let known = schemes.iter().find(|(scheme, ..)| *scheme == url.scheme());
    let Some((_, port, is_secure)) = known else {
        let all: Vec<String> = schemes.iter().map(|(scheme, ..)| format!("{scheme}://")).collect();
        return Err(format!("`{text}` must begin with {}", all.join(" or ")));
    };
    if url.password().is_some() {
        return Err("a URL is shown to people: say the password in `password`, as { env = \"…\" } or { file = \"…\" }".to_owned());
    }
    let host = match url.host() {
        Some(Host::Domain("")) | None => return Err(format!("`{text}` names no host")),
        Some(Host::Ipv6(address)) => address.to_string(),
        Some(host) => host.to_string(),
    };
    let port = url.port().unwrap_or(*port);
    let address = Address { host, port, is_secure: *is_secure };
    Ok((url, address))
}

impl Address {
    /// A connection to it.
    ///
    /// # Errors
    /// Why there is none, as a phrase.
    pub async fn connect(&self) -> Result<TcpStream, String> {
        let Self { host, port, .. } = self;
        let addresses = tokio::net::lookup_host((host.as_str(), *port)).await;
        let addresses: Vec<_> = match addresses {
            Ok(found) => found.collect(),
            Err(error) => return Err(format!("the name {host} is not known here: {error}")),
        };
        let mut why = format!("the name {host} has no address");
        for address in addresses {
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
