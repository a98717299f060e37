//! Functions that get each message of a queue.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::consumer::{ConsumeOptions, Consumer};
use crate::delivery::{Delivery, Loan, reply};
use crate::error::Error;
use crate::line::{How, Line};
use crate::message::Message;
use crate::panics::{caught, caught_sync, said};
use crate::priority::{of_message, sync_of_message};
use crate::received::Received;

/// How messages are handled. From a number: so many at a time.
#[derive(Clone, Debug)]
pub struct HandleOptions {
    pub(crate) concurrency: usize,
    pub(crate) consume: ConsumeOptions,
}

impl HandleOptions {
    /// So many at a time, at least 1, and no others are out: an urgent message waits for one of them at most.
    #[must_use]
    pub fn concurrency(concurrency: u16) -> Self {
        let concurrency = concurrency.max(1);
        Self { concurrency: concurrency.into(), consume: ConsumeOptions::window(concurrency) }
    }

    /// How they are consumed: a wider window has the next ones here already.
    #[must_use]
    pub fn consume(self, consume: ConsumeOptions) -> Self {
        Self { consume, ..self }
    }
}

/// One at a time.
impl Default for HandleOptions {
    fn default() -> Self {
        Self::concurrency(1)
    }
}

impl From<u16> for HandleOptions {
    fn from(concurrency: u16) -> Self {
        Self::concurrency(concurrency)
    }
}

/// What becomes of a message that was handled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It is done.
    Ack,
    /// It failed and is put back.
    Nack,
    /// It will never succeed: it is dead-lettered.
    Reject,
    /// It is done, and this is the reply, if anybody waits for one.
    Reply(Box<Message>),
}

/// What a handler may return: nothing, or a message as a reply, for what is done; a result, whose error is logged and puts the message back; or the [`Outcome`]
/// itself.
pub trait IntoOutcome {
    /// What becomes of the message.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Ack
    }
}

impl IntoOutcome for Message {
    fn into_outcome(self) -> Outcome {
        Outcome::Reply(Box::new(self))
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl<T: IntoOutcome, E: Display> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(done) => done.into_outcome(),
            Err(error) => {
                tracing::error!(%error, "a handler failed; its message is put back");
                Outcome::Nack
            }
        }
    }
}

/// Messages being handled. Dropping it stops as [`Handling::stop`] does, without waiting.
#[derive(Debug)]
pub struct Handling {
    task: JoinHandle<Result<(), Error>>,
    is_stopped: watch::Sender<bool>,
}

impl Handling {
    pub(crate) fn begin<H, F>(queue: &str, consumer: Consumer, concurrency: usize, handler: H) -> Self
    where
        H: Fn(Received) -> F + Send + 'static,
        F: Future<Output: IntoOutcome> + Send + 'static,
    {
        let (is_stopped, stops) = watch::channel(false);
        Self { task: tokio::spawn(run(queue.into(), consumer, concurrency, handler, stops)), is_stopped }
    }

    /// Takes no more messages, and waits until those at hand are handled.
    ///
    /// # Errors
    /// Why it had ended before.
    pub async fn stop(self) -> Result<(), Error> {
        self.is_stopped.send_replace(true);
        self.wait().await
    }

    /// Waits until it ends: the broker ends its consumer or declines it, or the client is closed. The reason is logged at ERROR, unless the client was closed.
    ///
    /// # Errors
    /// Which of those.
    pub async fn wait(self) -> Result<(), Error> {
        let Self { task, is_stopped: _keeps } = self;
        task.await.unwrap_or(Err(Error::Closed))
    }
}

async fn run<H, F>(
    queue: Arc<str>,
    mut consumer: Consumer,
    concurrency: usize,
    handler: H,
    mut stops: watch::Receiver<bool>,
) -> Result<(), Error>
where
    H: Fn(Received) -> F,
    F: Future<Output: IntoOutcome> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(concurrency));
    let end = loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("nobody closes it");
        let next = tokio::select! {
            biased;
            // An error: nobody can stop it any more, which is the same.
            _ = stops.wait_for(|is_stopped| *is_stopped) => break Ok(()),
            next = consumer.next() => next,
        };
        let delivery = match next {
            Some(Ok(delivery)) => delivery,
            Some(Err(error)) => break Err(error),
            None => break Ok(()),
        };
        let (received, loan) = Delivery::apart(delivery);
        let priority = received.priority();
        // The function itself is called inside, too.
        let handled = caught_sync(|| sync_of_message(priority, || handler(received.clone())));
        let queue = Arc::clone(&queue);
        tokio::spawn(of_message(priority, async move {
            let outcome = match handled {
                Ok(handled) => caught(async move { handled.await.into_outcome() }).await,
                Err(panic) => Err(panic),
            };
            let outcome = outcome.unwrap_or_else(|panic| {
                let panic = said(&*panic);
                tracing::error!(%queue, %panic, "a handler panicked; its message is put back");
                Outcome::Nack
            });
            settle(&received, loan, outcome).await;
            drop(slot);
        }));
    };
    match &end {
        Ok(()) => {}
        Err(Error::Closed) => tracing::info!(%queue, "the handling ends with its client"),
        Err(why) => tracing::error!(%queue, %why, "the handling has ended"),
    }
    drop(consumer);
    let all = u32::try_from(concurrency).unwrap_or(u32::MAX);
    // Those at hand have theirs until they are done.
    let _ = slots.acquire_many(all).await;
    end
}

/// How what was received is to be settled; where there is a reply, it is sent first.
pub(crate) async fn how(line: &Line, received: &Received, outcome: Outcome) -> How {
    let message = match outcome {
        Outcome::Ack => return How::Ack,
        Outcome::Nack => return How::Nack,
        Outcome::Reject => return How::Reject,
        Outcome::Reply(_) if received.reply_to().is_none() => return How::Ack,
        Outcome::Reply(message) => message,
    };
    match reply(line, received, *message).await {
        // Who does not wait any more has not failed the work.
        Ok(()) | Err(Error::Unroutable(_)) => How::Ack,
        Err(error) => {
            tracing::error!(%error, "a reply could not be sent; its message is put back");
            How::Nack
        }
    }
}

async fn settle(received: &Received, loan: Loan, outcome: Outcome) {
    let how = how(&loan.chair.line, received, outcome).await;
    if let Err(error) = loan.settle(how) {
        tracing::debug!(%error, "a message was handled whose connection is gone; it comes again");
    }
}
