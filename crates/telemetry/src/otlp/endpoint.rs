//! Where a collector is, and what is shown to it.

use std::fmt;
use std::str::FromStr;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use overtake_redact::masked;
use percent_encoding::percent_decode_str;

/// The address of a collector, to which the path of a signal is added.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    /// The address without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// It is to be asked under TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shown = masked(text);
        let wrong = |why: &str| Err(format!("`{shown}` {why}: use one such as http://127.0.0.1:4318"));
        let trimmed = text.trim().trim_end_matches('/');
        // It would be shown, and never sent. The rest of a password with `/` in it counts as a path below.
        if trimmed.contains('@') {
            return Err("an address holds no password: give it as a header, in otlp_headers".to_owned());
        }
        let Ok(uri) = Uri::from_str(trimmed) else { return wrong("is no address") };
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return wrong("does not begin with http:// or https://");
        }
        if uri.authority().is_none() {
            return wrong("names no host");
        }
        if uri.query().is_some() || trimmed.contains('#') {
            return wrong("has a query or a fragment");
        }
        if ["/v1/metrics", "/v1/traces"].iter().any(|path| uri.path().ends_with(path)) {
            return wrong("ends with the path of a signal, which is added to it");
        }
        Ok(Self(trimmed.to_owned()))
    }
}

/// Headers that are sent with every request, `name=value,name=value`, percent-encoded where need be (as in
/// `OTEL_EXPORTER_OTLP_HEADERS`). They hold secrets: only their names are shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(HeaderMap);

impl Headers {
    /// To be sent.
    #[must_use]
    pub fn map(&self) -> &HeaderMap {
        &self.0
    }
}

/// The names, and stars for what is sent.
impl fmt::Display for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.keys().map(|name| format!("{name}=***")).collect();
        f.write_str(&names.join(","))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Headers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut map = HeaderMap::new();
        for (at, (name, value)) in Pairs::from_str(text)?.0.into_iter().enumerate() {
            // The value is a secret, and is not said.
            let wrong = |what: &str| format!("header {} has {what} that HTTP does not allow", at + 1);
            let name = HeaderName::from_str(&name).map_err(|_| wrong("a name"))?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| wrong("a value"))?;
            value.set_sensitive(true);
            map.append(name, value);
        }
        Ok(Self(map))
    }
}

/// Names and values, `name=value,name=value`, percent-encoded where need be (W3C Baggage, as in `OTEL_RESOURCE_ATTRIBUTES`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(pub Vec<(String, String)>);

/// Percent-encoded again where need be.
impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SPECIAL: &percent_encoding::AsciiSet =
            &percent_encoding::CONTROLS.add(b',').add(b'=').add(b'%').add(b' ').add(b';').add(b'"');
        let encode = |text: &str| percent_encoding::utf8_percent_encode(text, SPECIAL).to_string();
        let pairs = self.0.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
        f.write_str(&pairs.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Pairs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let read = |(at, part): (usize, &str)| {
            let wrong = || format!("part {} is not NAME=VALUE: use such as a=1,b=2", at + 1);
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let decode = |text: &str| {
                let text = percent_decode_str(text.trim()).decode_utf8();
                text.map(|text| text.into_owned()).map_err(|_| wrong())
            };
            let (name, value) = (decode(name)?, decode(value)?);
            if name.is_empty() { Err(wrong()) } else { Ok((name, value)) }
        };
        parts.enumerate().map(read).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address_without_the_path_of_a_signal() {
        for (text, expect) in [
            ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318")),
            (" https://c.example/otlp/ ", Some("https://c.example/otlp")),
            ("127.0.0.1:4318", None),
            ("http://", None),
            ("ftp://c.example", None),
            ("http://a:b@c.example", None),
            ("http://c.example/v1/metrics", None),
            ("http://c.example?x=1", None),
            ("http://c.example#x", None),
        ] {
            assert_eq!(Endpoint::from_str(text).ok().as_ref().map(Endpoint::as_str), expect, "{text}");
        }
        let secretive = [
            "http://ann:secret@c.example",
            "ftp://ann:secret@c.example",
            "http://ann:secret@",
            "http://c.example?key=secret",
            "c.example?key=secret",
            "http://c.example#secret",
            "http://ann:secret/secret@c.example",
            "http://ann:secret#secret@c.example",
        ];
        for text in secretive {
            let said = Endpoint::from_str(text).expect_err(text);
            assert!(!said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn headers_are_sent_as_they_are_meant_and_never_shown() {
        let headers = Headers::from_str("api-key=s3cret, Authorization=Basic%20YTpi").expect("headers");
        assert_eq!(headers.map()["authorization"], "Basic YTpi");
        for shown in [headers.to_string(), format!("{headers:?}"), format!("{:?}", headers.map())] {
            assert!(!shown.contains("s3cret") && !shown.contains("YTpi"), "{shown}");
        }
        assert_eq!(headers.to_string(), "api-key=***,authorization=***");
        for wrong in ["secret", "a b=secret", "a=secret%0a", "=secret"] {
            let said = Headers::from_str(wrong).expect_err(wrong);
            assert!(!said.contains("secret"), "{said}");
        }
        assert_eq!(Headers::from_str("").expect("none"), Headers::default());
    }

    #[test]
    fn pairs_are_written_as_they_are_read() {
        let pairs = Pairs::from_str("a=1, b%2Cc=x%20y%3D%25 ,,d=").expect("pairs");
        let expect = [("a", "1"), ("b,c", "x y=%"), ("d", "")];
        assert_eq!(pairs.0, expect.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(Pairs::from_str(&pairs.to_string()), Ok(pairs));
    }
}
