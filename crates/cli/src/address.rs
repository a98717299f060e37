//! Where the broker is, and how its paths are written.

use std::net::IpAddr;

use overtake_redact::masked;

use crate::failure::Failure;

/// The address of a broker: `http://host:port` or `https://host:port`, perhaps with a path before the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Base(String);

impl Base {
    /// From `--url`.
    ///
    /// # Errors
    /// When it is no address of HTTP.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        let bad = |why: &str| {
            Failure::usage(format!("`{}` is no address of a broker: {why}", masked(url)))
                .hint("use one such as http://127.0.0.1:15672 with --url or OVERTAKE_URL")
        };
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) if !rest.contains('@') => (scheme, rest),
            _ if url.contains('@') => {
                return Err(bad("it says who asks, where everybody on the machine can read it")
                    .hint("say who asks with --user and OVERTAKE_PASSWORD, or with OVERTAKE_TOKEN"));
            }
            Some(_) => return Err(bad("it must begin with http:// or https://")),
            None => ("http", url),
        };
        let full = format!("{scheme}://{}", rest.trim_end_matches('/'));
        let uri: hyper::Uri = full.parse().map_err(|_| bad("it cannot be read"))?;
        match uri.host() {
            Some(host) if !host.is_empty() && uri.query().is_none() => Ok(Self(full)),
            _ => Err(bad("it names no host")),
        }
    }

    /// Whether what is said there is to be under TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.0.starts_with("https:")
    }

    /// Whether it is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let uri: Option<hyper::Uri> = self.0.parse().ok();
        let host = uri.as_ref().and_then(hyper::Uri::host).unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// As text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A path of segments, each encoded, so that names may hold anything.
pub(crate) fn path(segments: &[&str]) -> String {
    segments.iter().map(|segment| format!("/{}", encode(segment))).collect()
}

/// A query of pairs, each encoded, or nothing.
pub(crate) fn query(pairs: &[(String, String)]) -> String {
    let pairs: Vec<_> =
        pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// Percent-encodes everything but RFC 3986's unreserved characters. A segment of dots only would be taken for a step.
fn encode(text: &str) -> String {
    let only_dots = text.bytes().all(|byte| byte == b'.');
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            b'.' if !only_dots => out.push('.'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_http_and_has_a_host() {
        for (url, expect) in [
            ("http://127.0.0.1:15672", Some("http://127.0.0.1:15672")),
            ("http://127.0.0.1:15672/", Some("http://127.0.0.1:15672")),
            ("localhost:1", Some("http://localhost:1")),
            ("http://[::1]:1/broker/", Some("http://[::1]:1/broker")),
            ("https://broker/", Some("https://broker")),
            ("https://", None),
            ("amqp://broker", None),
            ("http://", None),
            ("", None),
            ("http://a b", None),
            ("http://broker?x", None),
        ] {
            assert_eq!(Base::parse(url).ok().as_ref().map(Base::as_str), expect, "{url}");
        }
    }

    #[test]
    fn guest_is_for_brokers_on_this_machine() {
        for (url, expect) in [
            ("http://127.0.0.1:15672", true),
            ("localhost:1", true),
            ("http://[::1]:1/broker/", true),
            ("https://broker", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Base::parse(url).expect(url).is_loopback(), expect, "{url}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_repeated() {
        for url in
            ["http://ann:secret@h", "http://ann:secret/?#secret@h", "ann:secret@h", "http://h?token=secret"]
        {
            let why = format!("{:?}", Base::parse(url).expect_err(url));
            assert!(why.contains("is no address") && !why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn names_may_hold_anything() {
        assert_eq!(path(&["v1", "queues", "a/b c?ü.x", ".."]), "/v1/queues/a%2Fb%20c%3F%C3%BC.x/%2E%2E");
        assert_eq!(
            query(&[("header.a".into(), "1&2".into()), ("k".into(), String::new())]),
            "?header.a=1%262&k="
        );
        assert_eq!(query(&[]), "");
    }
}
