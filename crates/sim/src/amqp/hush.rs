//! The calm, for those who speak AMQP: whatever they wait for comes, and they go in peace.

use overtake_lane::SessionId;

use super::side::Stage;
use super::wire::Wire;
use crate::failure::{Checked, Promise, hold};
use crate::world::World;

/// The calm waits so long for an answer, µs.
const PATIENCE_US: u64 = 30_000_000;

impl World {
    /// Everybody hears what there is to hear, closes the connection and is gone.
    pub(crate) fn hush(&mut self) -> Checked {
        self.until(|wire| wire.peer.is_some() && wire.is_quiet())?;
        for session in self.peers.wires.keys().copied().collect::<Vec<SessionId>>() {
            let mut wire = self.peers.wires.remove(&session).expect("it was just seen");
            if wire.side.stage == Stage::Running {
                Self::says_goodbye(&mut wire);
            }
            self.go_on(wire);
        }
        self.until(|_| false)
    }

    /// Lets things happen until every connection that is left is so.
    fn until(&mut self, is_so: impl Fn(&Wire) -> bool) -> Checked {
        let until = self.now_us + PATIENCE_US;
        self.wake_all();
        while let Some(wire) = self.peers.wires.values().find(|wire| !is_so(wire)) {
            hold(self.now_us < until, Promise::Alive, || {
                format!("{:?} waits in the calm: {:?}", wire.session, wire.side)
            })?;
            self.turn_soon(1_000);
            self.next_event()?;
        }
        Ok(())
    }

    /// Whether publishes are taken may have changed: then everybody is told.
    pub(crate) fn notice_full(&mut self) {
        let is_full = self.life.as_ref().is_some_and(|life| life.core.full().is_some());
        if std::mem::replace(&mut self.peers.was_full, is_full) != is_full {
            self.wake_all();
        }
    }

    fn wake_all(&mut self) {
        for session in self.peers.wires.keys().copied().collect::<Vec<SessionId>>() {
            self.wake(session, 1);
        }
    }
}
