//! The task that has the sink.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::{Batch, Tried, Trouble, pause};
use crate::metrics::Watch;
use crate::policy::{Held, waves};
use crate::row::{Outcome, Row};
use crate::sink::Sink;

/// Whether rows can be published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    /// The sink is there.
    pub(super) has_sink: bool,
    /// How often rows had to be given back.
    pub(super) turns: u64,
}

pub(super) struct Publisher {
    pub(super) sink: Box<dyn Sink>,
    pub(super) batches: mpsc::Receiver<Batch>,
    pub(super) tried: mpsc::Sender<Tried>,
    /// Whether the sink is there, and how often rows had to be given back: what was claimed before that must not go before them.
    pub(super) ready: watch::Sender<Ready>,
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) keeps_key_order: bool,
    /// How long after a claim its rows may still be published.
    pub(super) publish_within: Duration,
    pub(super) watch: Watch,
}

impl Publisher {
    pub(super) async fn run(mut self) {
        self.reach(None).await;
        while let Some(batch) = self.batches.recv().await {
            if *self.stopping.borrow() || batch.turn != self.ready.borrow().turns {
                self.give_back(batch).await;
                continue;
            }
            let (outcomes, is_late) = self.publish(&batch).await;
            if is_late {
                self.ready.send_modify(|ready| ready.turns += 1);
            }
            let lost = outcomes.iter().find_map(|outcome| match outcome {
                Outcome::Lost(why) => Some(why.clone()),
                _ => None,
            });
            // Who marks is gone only where it panicked.
            let _ = self.tried.send(Tried { batch, outcomes }).await;
            if lost.is_some() {
                self.reach(lost).await;
            }
        }
    }

    async fn give_back(&mut self, batch: Batch) {
        let outcomes = untried(&batch);
        let _ = self.tried.send(Tried { batch, outcomes }).await;
    }

    /// Until the sink is there, or the relay is to stop. What was claimed meanwhile goes back.
    async fn reach(&mut self, lost: Option<String>) {
        self.set_ready(false);
        let mut trouble = Trouble::new("nothing can be published");
        if let Some(why) = lost {
            trouble.says(why);
        }
        loop {
            while let Ok(batch) = self.batches.try_recv() {
                self.give_back(batch).await;
            }
            let reached = tokio::select! {
                reached = self.sink.ready() => reached,
                _ = self.stopping.wait_for(|stopping| *stopping) => return,
            };
            match reached {
                Ok(()) => {
                    trouble.is_over();
                    return self.set_ready(true);
                }
                Err(why) => {
                    let wait = trouble.says(why);
                    if pause(wait, &mut self.stopping).await {
                        return;
                    }
                }
            }
        }
    }

    fn set_ready(&self, ready: bool) {
        self.ready.send_modify(|known| {
            known.has_sink = ready;
            known.turns += u64::from(!ready);
        });
        self.watch.count(|seen| seen.has_sink = ready);
    }

    /// What became of each row, and whether some were not tried for want of time.
    async fn publish(&mut self, batch: &Batch) -> (Vec<Outcome>, bool) {
        let until = batch.claimed + self.publish_within;
        let rows = &batch.rows;
        let mut outcomes = untried(batch);
        let waves = if self.keeps_key_order { waves(rows) } else { vec![(0..rows.len()).collect()] };
        let mut held = Held::default();
        for wave in waves {
            if Instant::now() >= until || *self.stopping.borrow() {
                return (outcomes, true);
            }
            let going: Vec<usize> = wave.into_iter().filter(|at| held.is_free(&rows[*at])).collect();
            let these: Vec<&Row> = going.iter().map(|at| &rows[*at]).collect();
            let said = self.sink.publish(&these, until).await;
            debug_assert_eq!(said.len(), these.len(), "a sink says something of each row");
            let mut is_lost = false;
            for (at, outcome) in going.into_iter().zip(said) {
                is_lost |= matches!(outcome, Outcome::Lost(_));
                if self.keeps_key_order {
                    held.tell(&rows[at], &outcome);
                }
                outcomes[at] = outcome;
            }
            if is_lost {
                break;
            }
        }
        (outcomes, false)
    }
}

fn untried(batch: &Batch) -> Vec<Outcome> {
    batch.rows.iter().map(|_| Outcome::Untried).collect()
}
