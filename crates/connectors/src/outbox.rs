//! A batch on its way: what is sent next, and how each message fared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use overtake_engine::Clock;
use overtake_forward::Answer;

use crate::outgoing::Outgoing;
use crate::sink::LinkError;

/// Hands a link one message after the other. What is over is not handed out, nor what may be somebody else's since its lease has ended; and after a
/// halt nothing more is.
pub(crate) struct Outbox<'a> {
    batch: Vec<Outgoing>,
    next: usize,
    halt: &'a AtomicBool,
    clock: &'a Arc<dyn Clock>,
    tell: &'a (dyn Fn(&Outgoing, Answer) + Send + Sync),
}

impl<'a> Outbox<'a> {
    pub(crate) fn new(
        batch: Vec<Outgoing>,
        halt: &'a AtomicBool,
        clock: &'a Arc<dyn Clock>,
        tell: &'a (dyn Fn(&Outgoing, Answer) + Send + Sync),
    ) -> Self {
        Self { batch, next: 0, halt, clock, tell }
    }

    /// The number of the next message to send now, in the order of the batch; `None`: no more.
    pub(crate) fn next(&mut self) -> Option<usize> {
        while self.next < self.batch.len() && !self.halt.load(Ordering::Acquire) {
            let (at, now) = (self.next, self.clock.now());
            self.next += 1;
            // Here, and not before: what stands behind a slow message may be over by now.
            if self.batch[at].held_until() <= now {
                // Without an answer it was not sent.
                continue;
            }
            if self.batch[at].expires() > now {
                self.batch[at].set_out(true);
                return Some(at);
            }
            self.answer(at, Answer::Expired);
        }
        None
    }

    /// How many were handed out or passed over.
    pub(crate) fn taken(&self) -> usize {
        self.next
    }

    /// A message that was handed out.
    pub(crate) fn get(&self, at: usize) -> &Outgoing {
        &self.batch[at]
    }

    /// How it fared.
    pub(crate) fn answer(&self, at: usize, answer: Answer) {
        self.batch[at].set_out(matches!(answer, Answer::Accepted { .. }));
        (self.tell)(&self.batch[at], answer);
    }

    /// The receiver does not have the message that was handed out, and the connection ends with `why`: it is put back.
    pub(crate) fn not_sent(&self, at: usize, why: LinkError) -> LinkError {
        self.batch[at].set_out(false);
        why
    }

    /// The message failed, and the receiver may have it all the same.
    #[cfg(feature = "kafka")]
    pub(crate) fn answer_in_doubt(&self, at: usize, answer: Answer) {
        (self.tell)(&self.batch[at], answer);
    }

    pub(crate) fn now(&self) -> overtake_lane::Time {
        self.clock.now()
    }
}
