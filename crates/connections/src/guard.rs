//! The guard of the HTTP listeners: no web page of another origin reaches any route.
//!
//! A page anywhere can make a browser send requests to a broker that the browser can reach. Two headers give such a request away, and a
//! page can change neither: `Origin` (with `Sec-Fetch-Site`) names the page's own origin; `Host` names the host that the browser believes
//! it talks to, which is not the broker's where a name was bent to the broker's address (DNS rebinding). A page that is loaded from
//! an IP address was loaded from that very machine, so an IP address is never foreign. Programs that are no browser send neither `Origin`
//! nor a foreign `Host`.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Version, header};
use overtake_access::Peer;
use overtake_api::problem::Problem;

/// Host names under which HTTP is served.
///
/// IP addresses, `localhost`, names below `.localhost` and the machine's own name are always served. With names given, no other name is
/// served to anybody. Without, clients on other machines may use any name: `guest`, the one login that a page could know, is refused
/// to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    named: Vec<String>,
    machine: Option<String>,
}

impl Hosts {
    /// These names, each with or without a port, and the name of this machine.
    #[must_use]
    pub fn new(named: &[String], machine: Option<&str>) -> Self {
        let named = named.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { named, machine: machine.map(str::to_ascii_lowercase).filter(|name| !name.is_empty()) }
    }

    /// Refuses what a page of another origin sends, and what does not say once which host it is for.
    pub(crate) fn check(&self, request: &Parts, peer: &Peer) -> Result<(), Problem> {
        let host = the_only(&request.headers, &header::HOST).map_err(|()| bad_host("there are two"))?;
        if host.is_none() && request.version >= Version::HTTP_11 {
            return Err(bad_host("there is none"));
        }
        // A proxy may be sent the whole address; it must be ours as well.
        let authority = request.uri.authority().map(axum::http::uri::Authority::as_str);
        for host in host.into_iter().chain(authority) {
            let Some(address) = Address::read(host) else { return Err(bad_host("it cannot be read")) };
            if !self.serves(&address, peer) {
                return Err(foreign_host(host));
            }
        }
        match the_only(&request.headers, &header::ORIGIN) {
            Ok(None) => {}
            Ok(Some(origin)) if self.is_own(origin, host) => {}
            _ => return Err(foreign_origin()),
        }
        if is_of_another_site(&request.method, &request.headers) { Err(foreign_origin()) } else { Ok(()) }
    }

    fn serves(&self, host: &Address<'_>, peer: &Peer) -> bool {
        if host.name.parse::<IpAddr>().is_ok() || is_localhost(&host.name) || self.names(host) {
            return true;
        }
        if self.machine.as_deref() == Some(&host.name) {
            return true;
        }
        // This machine is where guest comes from, and where a browser beside the broker comes from.
        self.named.is_empty() && !peer.address().to_canonical().is_loopback()
    }

    /// Whether a configured name stands for this address: with a port only for that port.
    fn names(&self, host: &Address<'_>) -> bool {
        self.named
            .iter()
            .filter_map(|named| Address::read(named))
            .any(|named| named.name == host.name && (named.port.is_none() || named.port == host.port))
    }

    /// Whether a page of this origin is the broker's own: it was loaded from where it asks now, or from a configured name, which a proxy
    /// replaced on the way.
    fn is_own(&self, origin: &str, host: Option<&str>) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        if host.is_some_and(|host| host.eq_ignore_ascii_case(authority)) {
            return true;
        }
        let Some(address) = Address::read(authority) else { return false };
        let usual = match scheme {
            "https" => "443",
            "http" => "80",
            _ => return false,
        };
        self.named.iter().filter_map(|named| Address::read(named)).any(|named| {
            named.name == address.name && named.port.unwrap_or(usual) == address.port.unwrap_or(usual)
        })
    }
}

/// A host and its port, as a header names them.
#[derive(Debug, PartialEq, Eq)]
struct Address<'a> {
    /// In lower case, without the brackets of IPv6 and without the dot of the root.
    name: String,
    port: Option<&'a str>,
}

impl<'a> Address<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (name, rest) = match text.strip_prefix('[') {
            Some(text) => text.split_once(']')?,
            None => text.find(':').map_or((text, ""), |colon| text.split_at(colon)),
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port),
            _ => return None,
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_plain) {
            return None;
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        Some(Self { name, port: port.filter(|port| !port.is_empty()) })
    }
}

/// `localhost` and the names below it are this machine's in every browser (RFC 6761).
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// The value of a header that may be there once. What is no text is empty, which no host and no origin is.
fn the_only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut all = headers.get_all(name).iter();
    let first = all.next().map(|value| value.to_str().unwrap_or_default());
    if all.next().is_some() { Err(()) } else { Ok(first) }
}

/// Whether a browser says that a page of another site sends this. Following a link is no such thing: people do that, and the page that they
/// left sees nothing of the answer.
fn is_of_another_site(method: &Method, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_foreign = text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let is_link = method.is_safe()
        && text("sec-fetch-mode") == Some("navigate")
        && text("sec-fetch-dest").is_none_or(|dest| dest == "document");
    is_foreign && !is_link
}

fn bad_host(why: &'static str) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "host-invalid",
        "the request does not say which host it is for",
        "send one `Host` header, with the host and port of the URL",
    )
    .detail(format!("of the header `Host`, {why}"))
}

fn foreign_host(host: &str) -> Problem {
    Problem::new(
        StatusCode::MISDIRECTED_REQUEST,
        "host-foreign",
        "the request is for another host",
        "use localhost or an IP address as the host, or add the name that clients or a proxy use to http.hosts (--http-hosts)",
    )
    .detail(format!("the broker is not served as `{host}`"))
}

fn foreign_origin() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "origin-foreign",
        "the request comes from a web page of another origin",
        "call the broker from a program; where a proxy serves the broker's page under another name, add that name to http.hosts (--http-hosts)",
    )
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::http::Request;

    use super::*;

    const HERE: Peer = Peer::at(IpAddr::V4(Ipv4Addr::LOCALHOST));
    const FAR: Peer = Peer::at(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));

    fn hosts(named: &[&str]) -> Hosts {
        Hosts::new(&named.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), Some("Desk"))
    }

    fn judged(hosts: &Hosts, peer: &Peer, method: &str, headers: &[(&str, &str)]) -> String {
        let mut request = Request::builder().method(method).uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        match hosts.check(&parts, peer) {
            Ok(()) => "served".to_owned(),
            Err(problem) => problem.body().code().to_owned(),
        }
    }

    fn host(hosts: &Hosts, peer: &Peer, host: &str) -> String {
        judged(hosts, peer, "GET", &[("host", host)])
    }

    #[test]
    fn addresses_and_names_of_this_machine_are_always_served() {
        let all = [
            "localhost",
            "LOCALHOST:15672",
            "broker.localhost:1",
            "127.0.0.1:15672",
            "127.8.9.1",
            "[::1]:15672",
            "[::1]",
            "10.0.0.1",
            "10.0.0.1:80",
            "[2001:db8::1]:15672",
            "desk",
            "DESK:15672",
            "localhost.",
        ];
        for name in all {
            for hosts in [hosts(&[]), hosts(&["broker.example"])] {
                assert_eq!(host(&hosts, &HERE, name), "served", "{name}");
                assert_eq!(host(&hosts, &FAR, name), "served", "{name}");
            }
        }
    }

    #[test]
    fn on_this_machine_no_other_name_is_served_that_is_not_configured() {
        let foreign = [
            "example.com:15672",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "desk.example.com",
            "evillocalhost",
        ];
        for name in foreign {
            assert_eq!(host(&hosts(&[]), &HERE, name), "host-foreign", "{name}");
            assert_eq!(host(&hosts(&["broker.example"]), &HERE, name), "host-foreign", "{name}");
            assert_eq!(host(&hosts(&["broker.example"]), &FAR, name), "host-foreign", "{name}");
            assert_eq!(host(&hosts(&[]), &FAR, name), "served", "{name}: guest does not come from there");
        }
        let mapped = Peer::at("::ffff:127.0.0.1".parse().expect("an address"));
        assert_eq!(host(&hosts(&[]), &mapped, "example.com"), "host-foreign");
        for (name, expected) in [
            ("broker.example", "served"),
            ("BROKER.example:99", "served"),
            ("a.broker.example", "host-foreign"),
        ] {
            assert_eq!(host(&hosts(&["Broker.example"]), &HERE, name), expected, "{name}");
        }
        let with_port = hosts(&["broker.example:8443"]);
        assert_eq!(host(&with_port, &HERE, "broker.example:8443"), "served");
        assert_eq!(host(&with_port, &HERE, "broker.example"), "host-foreign");
    }

    #[test]
    fn a_host_is_named_once_and_can_be_read() {
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(judged(&hosts(&[]), &HERE, "GET", &twice), "host-invalid");
        assert_eq!(judged(&hosts(&[]), &HERE, "GET", &[]), "host-invalid");
        for bad in [
            "",
            " ",
            "a b",
            "[::1",
            "localhost:x",
            "localhost:1:2",
            "[::1]x",
            "user@localhost",
            "localhost/x",
            "a,b",
        ] {
            assert_eq!(host(&hosts(&[]), &HERE, bad), "host-invalid", "{bad:?}");
        }
        let (mut old, ()) = Request::new(()).into_parts();
        old.version = Version::HTTP_10;
        assert!(hosts(&[]).check(&old, &HERE).is_ok(), "HTTP/1.0 has no Host, and no browser speaks it");
    }

    #[test]
    fn a_whole_address_must_be_ours_as_the_host_must() {
        for (uri, expected) in [("http://localhost/", true), ("http://example.com/", false)] {
            let request =
                Request::builder().uri(uri).header("host", "localhost").body(()).expect("a request");
            assert_eq!(hosts(&[]).check(&request.into_parts().0, &HERE).is_ok(), expected, "{uri}");
        }
    }

    #[test]
    fn a_page_of_another_origin_is_refused_whatever_it_asks() {
        let own = ("host", "localhost:15672");
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
            for origin in [
                "https://example.com",
                "http://localhost:8080",
                "http://localhost",
                "null",
                "",
                "localhost:15672",
            ] {
                let judged = judged(&hosts(&[]), &HERE, method, &[own, ("origin", origin)]);
                assert_eq!(judged, "origin-foreign", "{method} {origin}");
            }
            let own = [own, ("origin", "http://localhost:15672"), ("sec-fetch-site", "same-origin")];
            assert_eq!(judged(&hosts(&[]), &HERE, method, &own), "served", "{method}");
        }
        let two = [own, ("origin", "http://localhost:15672"), ("origin", "http://localhost:15672")];
        assert_eq!(judged(&hosts(&[]), &HERE, "GET", &two), "origin-foreign");
    }

    #[test]
    fn a_proxy_may_replace_the_host_when_its_own_name_is_configured() {
        let hosts = hosts(&["broker.example", "inside.example:8443"]);
        for (origin, expected) in [
            ("https://broker.example", "served"),
            ("http://broker.example:80", "served"),
            ("https://broker.example:8443", "origin-foreign"),
            ("https://inside.example:8443", "served"),
            ("https://inside.example", "origin-foreign"),
            ("ftp://broker.example", "origin-foreign"),
            ("https://other.example", "origin-foreign"),
        ] {
            let headers = [("host", "127.0.0.1:15672"), ("origin", origin)];
            assert_eq!(judged(&hosts, &HERE, "POST", &headers), expected, "{origin}");
        }
    }

    #[test]
    fn a_link_may_be_followed_from_anywhere_and_nothing_else_be_loaded() {
        let of = |method, mode, dest| {
            let headers = [
                ("host", "localhost"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            judged(&hosts(&[]), &HERE, method, &headers)
        };
        assert_eq!(of("GET", "navigate", "document"), "served");
        assert_eq!(of("GET", "navigate", "iframe"), "origin-foreign");
        assert_eq!(of("POST", "navigate", "document"), "origin-foreign");
        assert_eq!(of("GET", "no-cors", "image"), "origin-foreign");
        assert_eq!(of("GET", "cors", "empty"), "origin-foreign");
    }
}
