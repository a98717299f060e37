//! Sharded channels, heard where their slots are, wherever these go.
//!
//! ```text
//!  subscribe ─▶ hub ─▶ ear of a node ─▶ SSUBSCRIBE
//!     ▲          │  ◀─ live, message, lost, moved ─┘
//!     └ Message, Gap
//! ```
//!
//! One connection to each node that is listened to, whatever the number of channels and receivers. A receiver hears a [`Heard::Gap`] whenever it begins or began again to hear, and
//! where it was too slow: what it was told before may be out of date. So whoever looks at the state at each gap has missed nothing.

mod ear;
mod hub;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

pub(super) use self::hub::{Hub, Want};

/// Most messages that wait for a receiver; beyond that it hears a gap.
const WAITING_MAX: usize = 256;

/// What a receiver is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// What was published.
    Message(Bytes),
    /// From here on it hears again; something may have been published before that it never hears.
    Gap,
}

/// A receiver of a channel. Dropping it ends that.
pub struct Subscription {
    messages: mpsc::Receiver<Bytes>,
    gap: Arc<Gap>,
}

/// Whether something was missed.
#[derive(Default)]
struct Gap {
    is_there: AtomicBool,
    made: Notify,
}

/// The other end of a subscription.
pub(super) struct Listener {
    messages: mpsc::Sender<Bytes>,
    gap: Arc<Gap>,
}

pub(super) fn pair() -> (Listener, Subscription) {
    let (sender, messages) = mpsc::channel(WAITING_MAX);
    let gap = Arc::new(Gap::default());
    (Listener { messages: sender, gap: Arc::clone(&gap) }, Subscription { messages, gap })
}

impl Listener {
    fn gap(&self) {
        self.gap.is_there.store(true, Ordering::Release);
        self.gap.made.notify_one();
    }

    fn message(&self, message: Bytes) {
        if self.messages.try_send(message).is_err() {
            self.gap();
        }
    }

    fn is_gone(&self) -> bool {
        self.messages.is_closed()
    }
}

impl Subscription {
    /// What comes next; `None` once the cluster is closed. A gap goes ahead of messages that wait: whoever looks at the state then has seen what they tell.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if self.gap.is_there.swap(false, Ordering::AcqRel) {
                return Some(Heard::Gap);
            }
            tokio::select! {
                biased;
                () = self.gap.made.notified() => {}
                message = self.messages.recv() => return message.map(Heard::Message),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_receiver_hears_of_what_it_missed_and_then_what_there_was_room_for() {
        let (listener, mut subscription) = pair();
        for number in 0..WAITING_MAX + 2 {
            listener.message(Bytes::from(number.to_string()));
        }
        assert_eq!(subscription.next().await, Some(Heard::Gap), "once, however much it was");
        for number in 0..WAITING_MAX {
            let message = Heard::Message(Bytes::from(number.to_string()));
            assert_eq!(subscription.next().await, Some(message));
        }
        listener.message(Bytes::from("again"));
        assert_eq!(subscription.next().await, Some(Heard::Message(Bytes::from("again"))));
        drop(listener);
        assert_eq!(subscription.next().await, None);
    }
}
