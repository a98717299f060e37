//! From what a request shows to the desk of whoever sends it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use overtake_engine::{Engine, Failure, Health};
use overtake_lane::{QueueView, VhostView};

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
}

impl Peer {
    /// Somebody at this address.
    #[must_use]
    pub const fn at(address: IpAddr) -> Self {
        Self { address, certificate: None }
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

    /// What a request with this header `Authorization` shows of who sends it: without one, the certificate of its connection.
    /// `None` when there is nothing to be read.
    #[must_use]
    pub fn shows(&self, authorization: Option<&[u8]>) -> Option<Credentials> {
        match authorization {
            Some(header) => Credentials::read(std::str::from_utf8(header).ok()?),
            None => self.certificate.clone().map(Credentials::Certificate),
        }
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

    /// Who shows this.
    ///
    /// # Errors
    /// [`LoginRefused`].
    pub async fn who(&self, shown: &Credentials, peer: &Peer) -> Result<Identity, LoginRefused> {
        let from = peer.address;
        match shown {
            Credentials::Basic { user, password } => self.gate.log_in(user, password, from).await,
            Credentials::Bearer(token) => self.gate.log_in_by_token(token, from),
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

    /// Every queue, by the name of its virtual host and its own.
    ///
    /// # Errors
    /// [`NotDone`] without the tag `monitoring`.
    pub async fn every_queue(&self, who: &Identity) -> Result<Vec<(Arc<str>, QueueView)>, NotDone> {
        who.must_have(Tag::Monitoring)?;
        let mut all = Vec::new();
        for vhost in self.engine.vhosts().await? {
            match self.engine.in_vhost(vhost.vhost).queues(None, usize::MAX).await {
                Ok(page) => all.extend(page.queues.into_iter().map(|queue| (Arc::clone(&vhost.name), queue))),
                // It went a moment ago.
                Err(Failure::Refused(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(all)
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

    #[test]
    fn credentials_are_read_from_a_header_or_else_a_certificate() {
        let here = Peer::at(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let certified = here.clone().with_certificate(Some("ann".into()));
        let show_of = |peer: &Peer, header: Option<&str>| match peer.shows(header.map(str::as_bytes)) {
            Some(Credentials::Basic { user, password }) => format!("{user} {password}"),
            Some(Credentials::Bearer(token)) => format!("<{token}>"),
            Some(Credentials::Certificate(name)) => format!("[{name}]"),
            None => "-".into(),
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
}
