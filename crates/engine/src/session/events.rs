//! The half of a session that hears.

use std::sync::Arc;

use overtake_lane::{ConsumerId, Receipt, pushed_bytes};
use tokio::sync::{Semaphore, mpsc};

use super::{Delivered, Line};
use crate::api::Failure;
use crate::core::Answer;

/// What a session hears.
#[derive(Debug)]
pub enum Event {
    /// A request is answered.
    Answer {
        /// What it was called.
        token: u64,
        /// The answer.
        result: Result<Answer, Failure>,
    },
    /// A message for a consumer.
    Deliver {
        /// Which.
        consumer: ConsumerId,
        /// The message.
        message: Delivered,
    },
    /// A consumer held this for longer than the queue's `consumer_timeout_ms`, or a `get` or one that has left did. It was put
    /// back, and no more messages come to whom it was.
    TimedOut {
        /// Which.
        consumer: ConsumerId,
        /// The lease that is over.
        receipt: Receipt,
    },
    /// A consumer is gone with its queue, or with whom it was of.
    Ended {
        /// Which.
        consumer: ConsumerId,
    },
}

/// Where a session hears. Dropping it ends the session.
pub struct Events {
    line: Arc<dyn Line>,
    events: mpsc::UnboundedReceiver<Vec<Event>>,
    unheard: Arc<Semaphore>,
    /// Bytes that were delivered with the last batch, and before it, and not told to the engine.
    delivered: u64,
}

/// Bytes that are told together: to tell each message would cost more than to deliver it.
const TOLD_AT_ONCE: u64 = 64 << 10;

impl Events {
    pub(super) fn new(
        line: Arc<dyn Line>,
        events: mpsc::UnboundedReceiver<Vec<Event>>,
        unheard: Arc<Semaphore>,
    ) -> Self {
        Self { line, events, unheard, delivered: 0 }
    }

    /// As many as have gathered, one at least, as soon as there are; `None` when the engine is gone. Given up at any moment it
    /// loses nothing.
    pub async fn next(&mut self) -> Option<Vec<Event>> {
        // Whoever comes for more has done with what it got.
        if self.delivered >= TOLD_AT_ONCE {
            self.line.taken(std::mem::take(&mut self.delivered));
        }
        let events = self.events.recv().await?;
        self.delivered += events.iter().map(delivered_bytes).sum::<u64>();
        let answers = events.iter().filter(|event| matches!(event, Event::Answer { .. })).count();
        self.unheard.add_permits(answers);
        Some(events)
    }

    /// Why nothing comes, after [`Events::next`] answered `None`.
    #[must_use]
    pub fn unavailable(&self) -> Failure {
        self.line.unavailable()
    }
}

fn delivered_bytes(event: &Event) -> u64 {
    match event {
        Event::Deliver { message, .. } => pushed_bytes(message.content.size() as u64),
        _ => 0,
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.events.close();
        let mut unheard = Vec::new();
        while let Ok(events) = self.events.try_recv() {
            unheard.extend(events.iter().flat_map(leased));
        }
        self.line.end(unheard);
    }
}

impl Event {
    /// An answer that can no longer be given.
    pub(crate) fn fail(&mut self, why: &Arc<str>) {
        if let Self::Answer { result, .. } = self {
            *result = Err(Failure::Unavailable(Arc::clone(why)));
        }
    }

    /// The same, if it is the answer to a publish.
    pub(crate) fn fail_publish(&mut self, why: &Arc<str>) {
        if matches!(self, Self::Answer { result: Ok(answer), .. } if answer.is_of_publish()) {
            self.fail(why);
        }
    }
}

/// What was leased with this, but for what a consumer holds.
pub(crate) fn leased(event: &Event) -> impl Iterator<Item = Receipt> + '_ {
    let answer = if let Event::Answer { result: Ok(answer), .. } = event { Some(answer) } else { None };
    answer.into_iter().flat_map(Answer::leased)
}
