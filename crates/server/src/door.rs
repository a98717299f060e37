//! One AMQP connection at the gate: who it is, where it may go, how much it may have, and whether it may stay.

use std::net::IpAddr;
use std::sync::Arc;

use overtake_access::{DEFAULT_VHOST, Gate, Identity};
use overtake_amqp::connection::{Connection, NoVhost};
use overtake_amqp_session::{Conversation, Rights, Wish};
use overtake_engine::{Clock, SystemClock};
use tokio::sync::watch;

use crate::access::Client;
use crate::crowd::{Crowd, Seat};

/// What every connection shares.
#[derive(Clone, Debug)]
pub(crate) struct Doors {
    pub(crate) gate: Arc<Gate>,
    pub(crate) crowd: Crowd,
}

/// What one connection went through.
#[derive(Debug)]
pub(crate) struct Door {
    doors: Doors,
    from: IpAddr,
    changes: watch::Receiver<()>,
    who: Option<Identity>,
    seat: Option<Seat>,
}

impl Door {
    /// For a connection from this address.
    pub(crate) fn new(doors: Doors, from: IpAddr) -> Self {
        let changes = doors.gate.roll().changes();
        Self { doors, from, changes, who: None, seat: None }
    }

    /// Decides what the client wants, and tells it. May take seconds.
    pub(crate) async fn grant(&mut self, conversation: &mut Conversation, wish: Wish) {
        let gate = &self.doors.gate;
        let who = match wish {
            Wish::LogIn { user, password } => gate.log_in(&user, &password, self.from).await,
            Wish::Certificate { user } => gate.log_in_by_certificate(&user, self.from),
            Wish::Enter { vhost } => return conversation.entered(self.enter(vhost)),
        };
        self.who = who.ok();
        conversation.logged_in(self.who.clone().map(|who| Arc::new(Client(who)) as Arc<dyn Rights>));
    }

    fn enter(&mut self, vhost: String) -> Result<String, NoVhost> {
        if vhost != DEFAULT_VHOST {
            return Err(NoVhost::Unknown);
        }
        let who = self.who.as_ref().expect("nobody enters before the login");
        who.must_enter(&vhost).map_err(|denied| NoVhost::Because(denied.to_string()))?;
        self.seat = Some(self.doors.crowd.enter(who, &vhost, None).map_err(NoVhost::Because)?);
        Ok(vhost)
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

    /// Who is gone does not stay.
    pub(crate) fn look(&self, connection: &mut Connection) {
        let Some(seat) = &self.seat else { return };
        if !seat.who().is_there(SystemClock.now()) {
            connection.force_close(&format!("user '{}' is deleted", seat.who().user()));
        }
    }
}
