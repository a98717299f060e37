//! Who is connected over AMQP: each connection has a seat here, and answers when it is asked what it is like.
//!
//! ```text
//!   connection ─ enter ─▶ Seat ◀─ Question (look, close) ─ Connections ◀─ whoever wants to see
//! ```
//!
//! Nothing is told while nobody asks, so a connection that nobody looks at pays for its seat alone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use overtake_amqp::connection::{ConnectionState, View};
use overtake_lane::Time;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How long a connection that is busy is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Questions to one connection that are not answered.
const UNANSWERED_MAX: usize = 16;

/// Who is connected. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Connections(Arc<Mutex<Seats>>);

#[derive(Debug, Default)]
struct Seats {
    next: u64,
    created: u64,
    closed: u64,
    taken: BTreeMap<u64, (Arc<Caller>, mpsc::Sender<Question>)>,
}

/// Where a connection comes from, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The client's address.
    pub peer: SocketAddr,
    /// Ours.
    pub local: SocketAddr,
    /// It is under TLS.
    pub is_secure: bool,
    /// Since when.
    pub connected_at: Time,
}

impl Caller {
    /// What RabbitMQ calls a connection: both ends of it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} -> {}", self.peer, self.local)
    }
}

/// What a connection is asked.
#[derive(Debug)]
pub enum Question {
    /// What it is like now.
    Look(oneshot::Sender<Looks>),
    /// To close itself, for this reason.
    Close(String),
}

/// What a connection is like.
#[derive(Clone, Debug)]
pub struct Looks {
    /// The name it logged in with.
    pub user: String,
    /// What it has open. Its times are by the clock of the engine.
    pub view: View,
    /// Bytes read from the client.
    pub received: u64,
    /// Bytes written to it.
    pub sent: u64,
}

/// The place of a connection; dropping it gives it up.
#[derive(Debug)]
pub struct Seat {
    number: u64,
    questions: mpsc::Receiver<Question>,
    connections: Connections,
}

impl Seat {
    /// What it is asked next.
    pub async fn question(&mut self) -> Question {
        self.questions.recv().await.expect("the connections have the other end as long as the seat is taken")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.connections.seats();
        seats.taken.remove(&self.number);
        seats.closed += 1;
    }
}

/// A connection that was looked at.
#[derive(Clone, Debug)]
pub struct Connected {
    /// Its number; a later one has a higher one.
    pub number: u64,
    /// Where it comes from.
    pub caller: Arc<Caller>,
    /// What it is like.
    pub looks: Looks,
}

impl Connections {
    /// Somebody has connected.
    #[must_use]
    pub fn enter(&self, caller: Caller) -> Seat {
        let (ask, questions) = mpsc::channel(UNANSWERED_MAX);
        let mut seats = self.seats();
        seats.next += 1;
        seats.created += 1;
        let number = seats.next;
        seats.taken.insert(number, (Arc::new(caller), ask));
        Seat { number, questions, connections: self.clone() }
    }

    /// How many were opened and closed since the broker was started.
    #[must_use]
    pub fn churn(&self) -> (u64, u64) {
        let seats = self.seats();
        (seats.created, seats.closed)
    }

    /// How many are open, whether they have got in or not.
    #[must_use]
    pub fn open(&self) -> usize {
        self.seats().taken.len()
    }

    /// All that have opened a virtual host, the oldest first. One that does not answer within a second is left out.
    pub async fn look(&self) -> Vec<Connected> {
        let all: Vec<_> = {
            let seats = self.seats();
            seats
                .taken
                .iter()
                .map(|(number, (caller, ask))| (*number, Arc::clone(caller), ask.clone()))
                .collect()
        };
        let asked: Vec<_> = all
            .into_iter()
            .filter_map(|(number, caller, ask)| {
                let (tell, told) = oneshot::channel();
                ask.try_send(Question::Look(tell)).ok().map(|()| (number, caller, told))
            })
            .collect();
        let mut connected = Vec::new();
        let until = tokio::time::Instant::now() + PATIENCE;
        for (number, caller, told) in asked {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if let Ok(Ok(looks)) = timeout(left, told).await
                && looks.view.state != ConnectionState::Starting
            {
                connected.push(Connected { number, caller, looks });
            }
        }
        connected
    }

    /// Closes a connection for this reason. False: it is not there any more.
    pub async fn close(&self, number: u64, why: &str) -> bool {
        let ask = self.seats().taken.get(&number).map(|(_, ask)| ask.clone());
        match ask {
            Some(ask) => ask.send(Question::Close(why.to_owned())).await.is_ok(),
            None => false,
        }
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use overtake_amqp::connection::{Connection, Options};

    use super::*;

    fn caller(port: u16) -> Caller {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Caller { peer: address(port), local: address(5_672), is_secure: false, connected_at: Time(7) }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_answers_is_seen_until_it_goes() {
        let connections = Connections::default();
        let mut seat = connections.enter(caller(40_000));
        let silent = connections.enter(caller(40_001));
        let answering = tokio::spawn(async move {
            loop {
                match seat.question().await {
                    Question::Look(tell) => {
                        let mut view = Connection::new(Time(0), Options::default()).view();
                        view.state = ConnectionState::Running;
                        let looks = Looks { user: "ann".to_owned(), view, received: 1, sent: 2 };
                        tell.send(looks).expect("somebody waits");
                    }
                    Question::Close(why) => return why,
                }
            }
        });
        let seen = connections.look().await;
        let [only] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!(only.caller.name(), "127.0.0.1:40000 -> 127.0.0.1:5672");
        assert!(connections.close(only.number, "enough").await);
        assert_eq!(answering.await.expect("it ends"), "enough");
        assert!(!connections.close(only.number, "enough").await, "it is gone");
        drop(silent);
        assert_eq!(connections.churn(), (2, 2));
    }
}
