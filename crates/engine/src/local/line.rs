//! The line from a session to the broker thread.

use std::sync::Arc;

use overtake_lane::{Asker, ConsumerId, Receipt};
use tokio::sync::mpsc;

use super::{Ask, Door, Who};
use crate::api::Failure;
use crate::session::{self, Line, Places, Session, Taken};

struct Wire {
    door: Door,
    session: Who,
}

/// A new session, of its own or of somebody connected.
#[expect(clippy::disallowed_methods, reason = "windows and what is unheard bound it")]
pub(super) fn open(door: &Door, by: Asker) -> Session {
    let number = door.next_session();
    let session = Who { number, by: by.session.unwrap_or(number), vhost: by.vhost };
    let (to, events) = mpsc::unbounded_channel();
    door.ask_at_once(Ask::Begin { session: number, events: to });
    Session::new(Arc::new(Wire { door: door.clone(), session }), events)
}

impl Line for Wire {
    fn places(&self) -> &Places {
        &self.door.places
    }

    fn next_consumer(&self) -> ConsumerId {
        self.door.next_consumer()
    }

    fn unavailable(&self) -> Failure {
        self.door.unavailable()
    }

    fn ask(&self, asks: Vec<session::Ask>, places: Taken) {
        self.door.ask_at_once(Ask::Batch { session: self.session, asks: asks.into_iter(), places });
    }

    fn taken(&self, bytes: u64) {
        self.door.ask_at_once(Ask::Taken { session: self.session, bytes });
    }

    fn end(&self, unheard: Vec<Receipt>) {
        self.door.tell(Ask::End { session: self.session, unheard });
    }
}
