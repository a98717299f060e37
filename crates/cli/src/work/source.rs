//! Where messages come from, as the worker sees it: they are leased, kept, and settled.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::contact::Contact;
use super::item::Item;
use super::queue::Queue;
use super::stream::Stream;
use crate::failure::Failure;

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The work is done.
    Ack,
    /// It failed: another attempt, after the queue's backoff or so long.
    Nack { delay_ms: Option<u64> },
    /// It can never be done.
    Reject,
    /// The work took too long.
    Timeout,
    /// Nobody tried.
    Release,
}

/// How a program went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// With what it ended, unless a signal ended it or it was never started.
    pub(crate) exit_code: Option<i32>,
    /// What went wrong, in a few words.
    pub(crate) error: Option<String>,
    /// The end of what it printed, if it printed anything.
    pub(crate) output: Option<String>,
}

/// What became of a lease that was to be settled or extended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It was.
    Done,
    /// The lease is over: the message is, or will be, somebody else's.
    Stale,
    /// Somebody wants the message back.
    CancelAsked,
    /// The broker declines, and will again.
    Declined(String),
}

/// Where messages come from.
pub(crate) enum Source {
    /// A queue of a broker.
    Queue(Box<Queue>),
    /// The streams of a category in Redis.
    Stream(Stream),
}

/// Where messages come from, and whether it answers.
pub(crate) struct Supply {
    pub(crate) source: Source,
    pub(crate) contact: Arc<Contact>,
}

impl Supply {
    /// What a program has to know of where its message came from, by the names of variables.
    pub(crate) fn around(&self) -> Vec<(&'static str, &str)> {
        match &self.source {
            Source::Queue(queue) => vec![("OVERTAKE_URL", queue.url()), ("OVERTAKE_VHOST", queue.vhost())],
            Source::Stream(_) => Vec::new(),
        }
    }

    /// Leases up to `max` messages: what is there, else the first that comes in time.
    pub(crate) async fn lease(&self, max: usize, wait_ms: u64) -> Result<Vec<Item>, Failure> {
        match &self.source {
            Source::Queue(queue) => queue.lease(max, wait_ms).await,
            Source::Stream(stream) => stream.lease(wait_ms).await,
        }
    }

    /// Keeps a message for longer, and says what was printed so far. The answer may wait for as long as `wait` while nothing happens.
    pub(crate) async fn extend(&self, receipt: &str, output: Option<&str>, wait: Duration) -> Answer {
        match &self.source {
            Source::Queue(queue) => queue.extend(receipt, output, wait).await,
            // A subscriber keeps what it holds.
            Source::Stream(_) => {
                sleep(wait).await;
                Answer::Done
            }
        }
    }

    /// Whether a message is nowhere any more, and not somebody else's.
    pub(crate) async fn is_gone(&self, id: &str) -> bool {
        match &self.source {
            Source::Queue(queue) => queue.has_lost(id).await,
            Source::Stream(_) => false,
        }
    }

    /// Settles a message and says how the work went.
    pub(crate) async fn settle(&self, receipt: &str, how: How, report: Option<&Report>) -> Answer {
        match &self.source {
            Source::Queue(queue) => queue.settle(receipt, how, report).await,
            Source::Stream(stream) => stream.settle(receipt, how, report).await,
        }
    }

    /// Gives back what is held and was not worked on.
    pub(crate) async fn close(&self) {
        if let Source::Stream(stream) = &self.source {
            stream.close().await;
        }
    }
}

/// Whether the broker may answer otherwise when it is asked again.
pub(crate) fn passes(failure: &Failure) -> bool {
    !failure.is_declined() || failure.word() == Some("store-full")
}
