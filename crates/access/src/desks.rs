//! From what a request shows to the desk of whoever sends it.
//!
//! A browser shows a cookie by itself, also for what a page of somebody else made it send. So a cookie counts only for requests that
//! change nothing, or that carry the header [`PAGE_HEADER`], which no other origin's page can send: a browser asks first
//! (CORS), and is not answered. The cookie itself is `SameSite=Strict` and out of the reach of scripts.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method, header};
use overtake_engine::{ClusterView, Engine, Health};
use overtake_lane::VhostView;

use crate::desk::{Desk, NotDone};
use crate::gate::{DEFAULT_VHOST, Gate, LoginRefused};
use crate::identity::{Denied, Identity};
use crate::office::Office;
use crate::right::Tag;

/// Who is at the other end of the connection that a request comes by, as the server says with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    address: IpAddr,
    certificate: Option<Arc<str>>,
    secure: bool,
}

impl Peer {
    /// Somebody at this address.
    #[must_use]
    pub const fn at(address: IpAddr) -> Self {
        Self { address, certificate: None, secure: false }
    }

    /// The connection is under TLS.
    #[must_use]
    pub fn under_tls(self) -> Self {
        Self { secure: true, ..self }
    }

    /// Whether the connection is under TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// It showed a certificate with this common name, which was checked.
    #[must_use]
    pub fn with_certificate(self, certificate: Option<Arc<str>>) -> Self {
        Self { certificate, ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// What a request shows of who sends it: the header `Authorization`; without one the cookie of a web session, where it counts; else
    /// the certificate of its connection. `None` when there is nothing to be read.
    #[must_use]
    pub fn shows(&self, method: &Method, headers: &HeaderMap) -> Option<Credentials> {
        if let Some(header) = headers.get(header::AUTHORIZATION) {
            return Credentials::read(std::str::from_utf8(header.as_bytes()).ok()?);
        }
        let counts = method.is_safe() || is_of_the_page(headers);
        let session = web_session(headers).filter(|_| counts).map(Credentials::WebSession);
        session.or_else(|| self.certificate.clone().map(Credentials::Certificate))
    }
}

/// Of whom nothing is said does not come from this machine.
impl Default for Peer {
    fn default() -> Self {
        Self::at(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }
}

/// What a request shows of who sends it (`Authorization`, RFC 7617 and RFC 6750).
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A name and a password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token.
    Bearer(String),
    /// The cookie of a web session ([`web_session_cookie`]).
    WebSession(String),
    /// The common name of a certificate that was checked.
    Certificate(Arc<str>),
}

impl Credentials {
    /// Of the value of an `Authorization` header; `None` when it is of neither kind.
    #[must_use]
    pub fn read(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self::Bearer(rest.to_owned()));
        }
        let pair = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(rest).ok()).flatten()?;
        let pair = String::from_utf8(pair).ok()?;
        let (user, password) = pair.split_once(':')?;
        Some(Self::Basic { user: user.to_owned(), password: password.to_owned() })
    }
}

/// What the broker's own page sends with each request. Any value counts.
pub const PAGE_HEADER: &str = "overtake-page";

/// Whether a request says that the broker's own page sends it.
#[must_use]
pub fn is_of_the_page(headers: &HeaderMap) -> bool {
    headers.contains_key(PAGE_HEADER)
}

/// The name of the cookie of web sessions, for a request with these headers. Cookies do not tell ports apart (RFC 6265, 8.5), so the
/// port is part of it: brokers on one machine do not log each other's people out.
#[must_use]
pub fn web_session_cookie(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    let port = host.rsplit(|byte| *byte == b':').next().and_then(|port| std::str::from_utf8(port).ok());
    match port.and_then(|port| port.parse::<u16>().ok()) {
        Some(port) => format!("overtake-session-{port}"),
        None => "overtake-session".to_owned(),
    }
}

/// The web session that a request shows.
#[must_use]
pub fn web_session(headers: &HeaderMap) -> Option<String> {
    let name = web_session_cookie(headers);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

/// Where desks come from.
#[derive(Clone)]
pub struct Desks {
    engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
}

impl Desks {
    /// Over this engine, for those who come in by this gate.
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>, gate: Arc<Gate>) -> Self {
        Self { engine, gate }
    }

    /// The gate.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Whether the engine can serve. Everybody may ask.
    #[must_use]
    pub fn health(&self) -> Health {
        self.engine.health()
    }

    /// The servers that the engine shares with other brokers, if it does. Everybody may ask who may ask for the broker's state.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterView> {
        self.engine.cluster()
    }

    /// Who shows this.
    ///
    /// # Errors
    /// [`LoginRefused`].
    pub async fn who(&self, shown: &Credentials, peer: &Peer) -> Result<Identity, LoginRefused> {
        let from = peer.address;
        match shown {
            Credentials::Basic { user, password } => self.gate.log_in(user, password, from).await,
            Credentials::Bearer(token) => self.gate.log_in_by_token(token, from),
            Credentials::WebSession(shown) => self.gate.log_in_by_web_session(shown, from),
            Credentials::Certificate(user) => self.gate.log_in_by_certificate(user, from),
        }
    }

    /// The engine itself, for somebody with this tag: for what rights do not speak of, which whoever asks it writes down.
    ///
    /// # Errors
    /// [`Denied::Tag`].
    pub fn engine(&self, who: &Identity, tag: Tag) -> Result<&Arc<dyn Engine>, Denied> {
        who.must_have(tag)?;
        Ok(&self.engine)
    }

    /// The virtual hosts that somebody may enter; with the tag `monitoring` all.
    ///
    /// # Errors
    /// [`NotDone`].
    pub async fn vhosts(&self, who: &Identity) -> Result<Vec<VhostView>, NotDone> {
        let sees_all = who.must_have(Tag::Monitoring).is_ok();
        let mut all = self.engine.vhosts().await?;
        all.retain(|vhost| sees_all || who.must_enter(&vhost.name).is_ok());
        Ok(all)
    }

    /// One of them.
    ///
    /// # Errors
    /// [`NotDone`].
    pub async fn vhost(&self, who: &Identity, name: &str) -> Result<VhostView, NotDone> {
        who.must_enter(name).or_else(|denied| who.must_have(Tag::Monitoring).map_err(|_| denied))?;
        Ok(self.engine.vhost(name).await?)
    }

    /// Where administrators change who there is.
    ///
    /// # Errors
    /// [`Denied`] for others.
    pub fn office(&self, who: Identity) -> Result<Office, Denied> {
        who.must_have(Tag::Administrator)?;
        Ok(Office::new(who, Arc::clone(&self.engine), Arc::clone(&self.gate)))
    }

    /// The desk of somebody in a virtual host.
    ///
    /// # Errors
    /// [`NotDone`] when there is no such virtual host. What may be done there is asked with each request.
    pub async fn desk(&self, who: Identity, vhost: &str) -> Result<Desk, NotDone> {
        if vhost == DEFAULT_VHOST {
            return Ok(Desk::new(Arc::clone(&self.engine), vhost.into(), who, Arc::clone(&self.gate)));
        }
        // Whether there is one is nobody's business who may not enter it.
        let there = self.vhost(&who, vhost).await?;
        let engine = self.engine.in_vhost(there.vhost);
        Ok(Desk::new(engine, there.name, who, Arc::clone(&self.gate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    #[test]
    fn credentials_are_read_from_a_header_or_else_a_certificate() {
        let here = Peer::at(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let certified = here.clone().with_certificate(Some("ann".into()));
        let show_of = |peer: &Peer, header: Option<&str>| {
            let headers = header.map(|header| ("authorization", header));
            shown(peer, &Method::POST, &headers.into_iter().collect::<Vec<_>>())
        };
        let show = |header: &str| show_of(&certified, Some(header));
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        assert_eq!(show(&basic("guest:guest")), "guest guest");
        assert_eq!(show(&basic("a:b:c")), "a b:c");
        assert_eq!(show(&basic("ü:")), "ü ");
        assert_eq!(show("bearer  ovt_x"), "<ovt_x>");
        for header in ["", "Basic", "Basic !", &basic("none"), "Digest x"] {
            assert_eq!(show(header), "-", "{header}");
        }
        assert_eq!(show_of(&certified, None), "[ann]", "the header goes before");
        assert_eq!(show_of(&here, None), "-");
    }

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let value = |value: &str| HeaderValue::from_str(value).expect("a value");
        of.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect()
    }

    fn shown(peer: &Peer, method: &Method, of: &[(&'static str, &str)]) -> String {
        match peer.shows(method, &headers(of)) {
            Some(Credentials::Basic { user, password }) => format!("{user} {password}"),
            Some(Credentials::Bearer(token)) => format!("<{token}>"),
            Some(Credentials::WebSession(secret)) => format!("({secret})"),
            Some(Credentials::Certificate(name)) => format!("[{name}]"),
            None => "-".into(),
        }
    }

    #[test]
    fn a_cookie_counts_where_no_page_of_others_can_have_sent_it() {
        let here = Peer::at(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let certified = here.clone().with_certificate(Some("ann".into()));
        let host = ("host", "localhost:15672");
        let cookie = ("cookie", "a=b; overtake-session-15672=x ; overtake-session=y");
        assert_eq!(shown(&here, &Method::GET, &[host, cookie]), "(x)");
        assert_eq!(shown(&here, &Method::GET, &[("host", "broker.example"), cookie]), "(y)");
        assert_eq!(shown(&here, &Method::GET, &[("host", "[::1]:1"), cookie]), "-", "that of another port");
        assert_eq!(shown(&here, &Method::POST, &[host, cookie]), "-");
        assert_eq!(shown(&here, &Method::DELETE, &[host, cookie, (PAGE_HEADER, "1")]), "(x)");
        assert_eq!(shown(&certified, &Method::POST, &[host, cookie]), "[ann]");
        assert_eq!(shown(&certified, &Method::GET, &[host, cookie]), "(x)");
        assert_eq!(shown(&here, &Method::GET, &[host, cookie, ("authorization", "Bearer t")]), "<t>");
    }
}
