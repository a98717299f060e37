//! A batch on its way: what is sent next, and how each message fared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use overtake_engine::Clock;
use overtake_forward::Answer;

use crate::outgoing::Outgoing;
use crate::sink::LinkError;

/// Hands a link one message after the other. What is over is not handed out, nor what may be somebody else's since its lease has ended; and after a
/// halt nothing more is.
pub(crate) struct Outbox<'a> {
    batch: Vec<Outgoing>,
    next: usize,
    /// Of those that were handed out or passed over, so many are known not to be on their way: answered, or never sent.
    done: AtomicUsize,
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
        Self { batch, next: 0, done: AtomicUsize::new(0), halt, clock, tell }
    }

    /// The number of the next message to send now, in the order of the batch; `None`: no more.
    pub(crate) fn next(&mut self) -> Option<usize> {
        while self.next < self.batch.len() && !self.halt.load(Ordering::Acquire) {
            let (at, now) = (self.next, self.clock.now());
            self.next += 1;
            // Here, and not before: what stands behind a slow message may be over by now.
            if self.batch[at].held_until() <= now {
                // Without an answer it was not sent.
                self.done.fetch_add(1, Ordering::Relaxed);
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

    /// How many are on their way: handed out, without an answer, and not known to be still here.
    pub(crate) fn on_their_way(&self) -> usize {
        self.next.saturating_sub(self.done.load(Ordering::Relaxed))
    }

    /// A message that was handed out.
    pub(crate) fn get(&self, at: usize) -> &Outgoing {
        &self.batch[at]
    }

    /// How it fared.
    pub(crate) fn answer(&self, at: usize, answer: Answer) {
        self.batch[at].set_out(matches!(answer, Answer::Accepted { .. }));
        self.done.fetch_add(1, Ordering::Relaxed);
        (self.tell)(&self.batch[at], answer);
    }

    /// The receiver does not have the message that was handed out, and the connection ends with `why`: it is put back.
    pub(crate) fn not_sent(&self, at: usize, why: LinkError) -> LinkError {
        self.batch[at].set_out(false);
        self.done.fetch_add(1, Ordering::Relaxed);
        why
    }

    /// The message failed, and the receiver may have it all the same.
    #[cfg(feature = "kafka")]
    pub(crate) fn answer_in_doubt(&self, at: usize, answer: Answer) {
        self.done.fetch_add(1, Ordering::Relaxed);
        (self.tell)(&self.batch[at], answer);
    }

    pub(crate) fn now(&self) -> overtake_lane::Time {
        self.clock.now()
    }
}
