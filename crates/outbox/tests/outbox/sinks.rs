//! Sinks that do as they are told, and tell what they were asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use overtake_outbox::sink::{Answer, Sink};
use overtake_outbox::{Outcome, Row};
use tokio::sync::mpsc;

/// What a sink does with one batch.
pub(crate) type Doing = Box<dyn FnMut(&[&Row]) -> Vec<Outcome> + Send>;

/// A sink, held by a relay.
pub(crate) struct FakeSink {
    does: Arc<Mutex<Doing>>,
    /// Errors before it is ready; then it is.
    unready: Arc<Mutex<VecDeque<String>>>,
    told: mpsc::Sender<String>,
}

/// The other end of it.
pub(crate) struct Seen {
    pub(crate) does: Arc<Mutex<Doing>>,
    pub(crate) unready: Arc<Mutex<VecDeque<String>>>,
    told: mpsc::Receiver<String>,
}

/// One that does this with each batch.
pub(crate) fn sink(does: impl FnMut(&[&Row]) -> Vec<Outcome> + Send + 'static) -> (Box<FakeSink>, Seen) {
    let (says, told) = mpsc::channel(100_000);
    let does: Arc<Mutex<Doing>> = Arc::new(Mutex::new(Box::new(does)));
    let unready = Arc::default();
    let fake = FakeSink { does: Arc::clone(&does), unready: Arc::clone(&unready), told: says };
    (Box::new(fake), Seen { does, unready, told })
}

/// All is well.
pub(crate) fn takes_all(rows: &[&Row]) -> Vec<Outcome> {
    rows.iter().map(|_| Outcome::Published).collect()
}

impl Seen {
    /// The next so many things it was told: a row that it took as its message id, anything else as `id!`, not being ready as `-`.
    pub(crate) async fn next(&mut self, things: usize) -> String {
        let mut all = Vec::new();
        while all.len() < things {
            all.push(self.told.recv().await.expect("the relay runs"));
        }
        all.join(" ")
    }

    /// From now on.
    pub(crate) fn do_with_each(&self, does: impl FnMut(&[&Row]) -> Vec<Outcome> + Send + 'static) {
        *self.does.lock().expect("nobody panicked") = Box::new(does);
    }
}

impl Sink for FakeSink {
    fn ready(&mut self) -> Answer<'_, Result<(), String>> {
        Box::pin(async {
            let why = self.unready.lock().expect("nobody panicked").pop_front();
            match why {
                None => Ok(()),
                Some(why) => {
                    let _ = self.told.try_send("-".to_owned());
                    Err(why)
                }
            }
        })
    }

    fn publish<'a>(&'a mut self, rows: &'a [&'a Row], _until: Instant) -> Answer<'a, Vec<Outcome>> {
        Box::pin(async {
            let outcomes = self.does.lock().expect("nobody panicked")(rows);
            for (row, outcome) in rows.iter().zip(&outcomes) {
                let mark = if *outcome == Outcome::Published { "" } else { "!" };
                let _ = self.told.try_send(format!("{}{mark}", row.message_id));
            }
            outcomes
        })
    }
}
