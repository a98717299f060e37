//! What the client of a conversation may do, which is decided elsewhere.

use std::fmt;
use std::sync::Arc;

use overtake_amqp::ReplyCode;
use overtake_amqp::connection::Refused;
use overtake_engine::rights::{Need, Right, Takes};

use crate::message::REPLY_TO;

/// What one user may do. Asked for each request, so what changes counts at once.
pub trait Rights: fmt::Debug + Send + Sync {
    /// The user's name.
    fn user(&self) -> &str;
    /// Another number whenever an answer may be another.
    fn version(&self) -> u64;
    /// Whether the user may publish with the name of another one as `user_id`.
    fn may_impersonate(&self) -> bool {
        false
    }
    /// Whether the user has this right in this virtual host.
    ///
    /// # Errors
    /// Why not, for the client.
    fn check(&self, vhost: &str, need: Need<'_>) -> Result<(), String>;
}

/// All rights, for a user of this name: where nobody else is.
#[derive(Clone, Debug)]
pub struct Everything(pub String);

impl Rights for Everything {
    fn user(&self) -> &str {
        &self.0
    }

    fn version(&self) -> u64 {
        0
    }

    fn check(&self, _: &str, _: Need<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// No rights: before anybody has logged in.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Rights for Nobody {
    fn user(&self) -> &str {
        ""
    }

    fn version(&self) -> u64 {
        0
    }

    fn check(&self, _: &str, _: Need<'_>) -> Result<(), String> {
        Err("nobody has logged in".to_owned())
    }
}

/// The client's rights where it is.
#[derive(Debug)]
pub(crate) struct Here {
    pub(crate) vhost: String,
    rights: Arc<dyn Rights>,
    /// The exchange that was written last, and while which version: most messages of a connection go the same way.
    written: Option<(u64, Arc<str>)>,
}

impl Here {
    pub(crate) fn new(rights: Arc<dyn Rights>) -> Self {
        Self { vhost: String::new(), rights, written: None }
    }

    /// Whose they are.
    pub(crate) fn user(&self) -> &str {
        self.rights.user()
    }

    /// Whether the client may publish with the name of another user.
    pub(crate) fn may_impersonate(&self) -> bool {
        self.rights.may_impersonate()
    }

    /// Whether the client may do this.
    pub(crate) fn judge(&self, what: &impl Takes) -> Result<(), Refused> {
        what.takes(&mut |need| self.check(need))
    }

    /// Whether the client may publish to this exchange.
    pub(crate) fn judge_publish(&mut self, exchange: &Arc<str>) -> Result<(), Refused> {
        let version = self.rights.version();
        if self.written.as_ref().is_some_and(|(at, to)| *at == version && Arc::ptr_eq(to, exchange)) {
            return Ok(());
        }
        self.check(Need::exchange(Right::Write, exchange))?;
        self.written = Some((version, Arc::clone(exchange)));
        Ok(())
    }

    /// Whether a consumer of this queue may go on. A consumer of replies to the client's own channels needs no right.
    pub(crate) fn judge_consumer(&self, queue: &str) -> Result<(), Refused> {
        if queue == REPLY_TO { Ok(()) } else { self.check(Need::queue(Right::Read, queue)) }
    }

    fn check(&self, need: Need<'_>) -> Result<(), Refused> {
        let checked = self.rights.check(&self.vhost, need);
        checked.map_err(|why| Refused::because(ReplyCode::AccessRefused, why))
    }
}
