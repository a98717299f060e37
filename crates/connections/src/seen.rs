//! What others may see of a connection over AMQP: it is asked, and answers for itself.

use std::net::SocketAddr;
use std::sync::Arc;

use overtake_amqp_session::Conversation;
use overtake_engine::{Clock, SystemClock, WallClock};
use overtake_lane::Time;
use overtake_management::{Caller, Connections, Looks, Question, Seat};
use tokio::net::TcpStream;

/// A connection's seat among the others, and what it has read and written.
pub(crate) struct Seen {
    seat: Seat,
    name: Arc<str>,
    received: u64,
    sent: u64,
}

impl Seen {
    /// Somebody has connected.
    pub(crate) fn enter(
        connections: &Connections,
        stream: &TcpStream,
        peer: SocketAddr,
        is_secure: bool,
    ) -> std::io::Result<Self> {
        let (local, connected_at) = (stream.local_addr()?, WallClock.now());
        let caller = Caller { peer, local, is_secure, connected_at };
        let name = caller.name().into();
        Ok(Self { seat: connections.enter(caller), name, received: 0, sent: 0 })
    }

    /// What the connection is called.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// So many bytes more were read.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// So many bytes more were written.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// What is asked next.
    pub(crate) async fn question(&mut self) -> Question {
        self.seat.question().await
    }

    /// Answers what is asked. Who asked may be gone.
    pub(crate) fn answer(&self, question: Question, conversation: &mut Conversation) {
        match question {
            Question::Look(tell) => {
                let user = conversation.user().to_owned();
                let mut view = conversation.connection().view();
                // A connection knows how much time has passed, and no dates.
                let (passed, now) = (SystemClock.steady().running(), SystemClock.now());
                for channel in &mut view.channels {
                    let idle_ms = passed.since(channel.active_at);
                    channel.active_at = Time(now.0.saturating_sub(idle_ms));
                }
                let _ = tell.send(Looks { user, view, received: self.received, sent: self.sent });
            }
            Question::Close(why) => conversation.connection().force_close(&why),
        }
    }
}
