//! Messages of a queue, as they come.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::delivery::{Chair, Delivery, Loan};
use crate::error::Error;
use crate::line::{Inbox, Incoming, Line, Wanted};
use crate::priority::Priority;

/// What a consumer wants. From a number: that window.
#[derive(Clone, Debug)]
pub struct ConsumeOptions {
    pub(crate) window: u16,
    pub(crate) consumer_priority: Option<i32>,
    pub(crate) urgent_credit: Option<(Priority, u32)>,
    pub(crate) is_exclusive: bool,
}

impl ConsumeOptions {
    /// Most messages that are out to it, at least 1. The more, the faster; the fewer, the less bulk goes ahead of an urgent message that comes later.
    #[must_use]
    pub fn window(window: u16) -> Self {
        Self { window: window.max(1), consumer_priority: None, urgent_credit: None, is_exclusive: false }
    }

    /// Extra window that only messages of this priority and more may use, so that they reach a consumer whose window is full of bulk.
    #[must_use]
    pub fn urgent_credit(self, from: impl Into<Priority>, messages: u32) -> Self {
        Self { urgent_credit: Some((from.into(), messages)), ..self }
    }

    /// Consumers with more are served first, as long as their windows have room (`x-priority`). It has nothing to do with the priority of messages.
    #[must_use]
    pub fn consumer_priority(self, priority: i32) -> Self {
        Self { consumer_priority: Some(priority), ..self }
    }

    /// Nobody else may consume from the queue.
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self { is_exclusive: true, ..self }
    }
}

/// A window of 100.
impl Default for ConsumeOptions {
    fn default() -> Self {
        Self::window(100)
    }
}

impl From<u16> for ConsumeOptions {
    fn from(window: u16) -> Self {
        Self::window(window)
    }
}

/// Messages of a queue, as they come. After a connection was lost it goes on; what was out comes again.
///
/// It ends with an error: the queue is gone, the broker declines, the client is closed. Dropping it puts back what was not taken; what was
/// taken may still be settled.
pub struct Consumer {
    chair: Arc<Chair>,
    inbox: Arc<Inbox>,
    batch: VecDeque<Incoming>,
}

impl Consumer {
    pub(crate) async fn begin(line: &Line, queue: &str, options: ConsumeOptions) -> Result<Self, Error> {
        let ConsumeOptions { window, consumer_priority, urgent_credit, is_exclusive } = options;
        if queue.len() > 255 {
            return Err(Error::Invalid(format!("the name of a queue is longer than 255 bytes: {queue}")));
        }
        let urgent_credit = urgent_credit.map(|(from, messages)| (from.0, messages));
        let wanted =
            Wanted { queue: queue.to_owned(), window, consumer_priority, urgent_credit, is_exclusive };
        let (seat, inbox) = line.sit_down(wanted).await?;
        let chair = Arc::new(Chair { line: line.clone(), seat });
        Ok(Self { chair, inbox, batch: VecDeque::new() })
    }

    /// The next message; `None`: there was an error before. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Option<Result<Delivery, Error>> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delivery, Error>>> {
        loop {
            let life = self.inbox.life();
            while let Some(Incoming { life: came_over, tag, received }) = self.batch.pop_front() {
                if came_over == life {
                    let loan = Loan { chair: Arc::clone(&self.chair), life, tag, is_settled: false };
                    return Poll::Ready(Some(Ok(Delivery::new(received, loan))));
                }
            }
            match ready!(self.inbox.poll(cx, &mut self.batch)) {
                Some(Ok(())) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Stream for Consumer {
    type Item = Result<Delivery, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(cx)
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.chair.line.cancel(self.chair.seat);
        for Incoming { life, tag, .. } in self.batch.drain(..) {
            // It drops, and so goes back.
            drop(Loan { chair: Arc::clone(&self.chair), life, tag, is_settled: false });
        }
    }
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
