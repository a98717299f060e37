//! From what a request shows to the desk of whoever sends it.

use std::net::IpAddr;
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

/// Where a request comes from, as the server says with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

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
    pub async fn who(&self, shown: &Credentials, from: IpAddr) -> Result<Identity, LoginRefused> {
        match shown {
            Credentials::Basic { user, password } => self.gate.log_in(user, password, from).await,
            Credentials::Bearer(token) => self.gate.log_in_by_token(token, from),
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
    fn credentials_are_read_from_a_header() {
        let show = |header: &str| match Credentials::read(header) {
            Some(Credentials::Basic { user, password }) => format!("{user} {password}"),
            Some(Credentials::Bearer(token)) => format!("<{token}>"),
            None => "-".into(),
        };
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        assert_eq!(show(&basic("guest:guest")), "guest guest");
        assert_eq!(show(&basic("a:b:c")), "a b:c");
        assert_eq!(show(&basic("ü:")), "ü ");
        assert_eq!(show("bearer  ovt_x"), "<ovt_x>");
        for header in ["", "Basic", "Basic !", &basic("none"), "Digest x"] {
            assert_eq!(show(header), "-", "{header}");
        }
    }
}
