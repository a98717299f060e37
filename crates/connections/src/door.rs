//! One AMQP connection at the gate: who it is, where it may go, how much it may have, and whether it may stay.

use std::net::IpAddr;
use std::sync::Arc;

use overtake_access::{Gate, Identity, LoginRefused};
use overtake_amqp::connection::{Connection, NoVhost};
use overtake_amqp_session::{Conversation, Rights, Wish};
use overtake_engine::{Clock, Engine, Failure, Session, WallClock};
use tokio::sync::watch;

use crate::client::Client;
use crate::crowd::{Crowd, Seat};

/// What all AMQP connections share.
#[derive(Clone)]
pub struct Doors {
    /// The broker.
    pub engine: Arc<dyn Engine>,
    /// The users, and how they log in.
    pub gate: Arc<Gate>,
    /// How many connections and channels are open, for the limits of users and virtual hosts.
    pub crowd: Crowd,
}

/// What one connection went through.
pub(crate) struct Door {
    doors: Doors,
    from: IpAddr,
    changes: watch::Receiver<()>,
    who: Option<Identity>,
    seat: Option<Seat>,
    session: Option<Session>,
    /// The version of permissions when the virtual host was looked for.
    entered_at: u64,
}

impl Door {
    /// For a connection from this address.
    pub(crate) fn new(doors: Doors, from: IpAddr) -> Self {
        let changes = doors.gate.roll().changes();
        Self { doors, from, changes, who: None, seat: None, session: None, entered_at: 0 }
    }

    /// Decides what the client wants, and tells it. May take seconds.
    pub(crate) async fn grant(&mut self, conversation: &mut Conversation, wish: Wish) {
        let gate = &self.doors.gate;
        let who = match wish {
            Wish::LogIn { user, password } => gate.log_in(&user, &password, self.from).await,
            Wish::Certificate { user } => gate.log_in_by_certificate(&user, self.from),
            Wish::Enter { vhost } => return conversation.entered(self.enter(vhost).await),
        };
        if let Err(LoginRefused::Crowded) = who {
            return conversation.not_logged_in(&LoginRefused::Crowded.to_string());
        }
        self.who = who.ok();
        conversation.logged_in(self.who.clone().map(|who| Arc::new(Client(who)) as Arc<dyn Rights>));
    }

    async fn enter(&mut self, vhost: String) -> Result<String, NoVhost> {
        // Before the virtual host is looked for, so that its deletion is not missed.
        self.entered_at = self.doors.gate.roll().version();
        let there = self.doors.engine.vhost(&vhost).await.map_err(|failure| match failure {
            Failure::Refused(_) => NoVhost::Unknown,
            Failure::Unavailable(why) => NoVhost::Because(format!("the broker is not available: {why}")),
        })?;
        let who = self.who.as_ref().expect("nobody enters before the login");
        who.must_enter(&vhost).map_err(|denied| NoVhost::Because(denied.to_string()))?;
        let most = there.settings.max_connections;
        self.seat = Some(self.doors.crowd.enter(who, &vhost, most).map_err(NoVhost::Because)?);
        self.session = Some(self.doors.engine.in_vhost(there.vhost).session());
        Ok(vhost)
    }

    /// The session in the virtual host that was entered, once.
    pub(crate) fn take_session(&mut self) -> Option<Session> {
        self.session.take()
    }

    /// Counts the channels.
    pub(crate) fn count(&mut self, connection: &mut Connection) {
        let Some(seat) = &mut self.seat else { return };
        let channels = connection.open_channels().try_into().unwrap_or(u32::MAX);
        if let Err(why) = seat.channels(channels) {
            connection.exceed(&why);
        }
    }

    /// Once somebody was changed.
    pub(crate) async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Closes the connection where its virtual host or its user is deleted, or the user may not enter any more. Answers whether
    /// it stays open.
    pub(crate) fn look(&self, connection: &mut Connection) -> bool {
        let Some(seat) = &self.seat else { return true };
        let (who, vhost) = (seat.who(), seat.vhost());
        let why = if who.is_vhost_deleted(vhost, self.entered_at) {
            format!("vhost '{vhost}' is deleted")
        } else if !who.is_there(WallClock.now()) {
            format!("user '{}' is deleted", who.user())
        } else if let Err(denied) = who.must_enter(vhost) {
            denied.to_string()
        } else {
            return true;
        };
        connection.force_close(&why);
        false
    }
}
