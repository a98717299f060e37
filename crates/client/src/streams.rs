//! Streams of Redis and Valkey, their urgent lane first, and handlers that run in the scope of what they handle.
//!
//! ```no_run
//! # async fn run() -> Result<(), String> {
//! use overtake_client::streams::{Lanes, SubscribeOptions, Subscriber, handle, server};
//!
//! let options = SubscribeOptions { lanes: Lanes::enabled(), ..SubscribeOptions::new("customer", "mails") };
//! let subscriber = Subscriber::connect(&server("redis://localhost")?, options).await?;
//! let handling = handle(subscriber, 4, |entry| async move {
//!     println!("{}: {}", entry.lane(), entry.body());
//! });
//! handling.wait().await
//! # }
//! ```

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

pub use overtake_streams::*;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

pub use crate::outbox::Event;
use crate::panics::{caught, caught_sync, said};
use crate::priority::{Priority, of_message, sync_of_message};

/// Adds events to categories: each to the lane of its priority, which is what it says, else that of the scope it is published in, else that of the scope it was made in, else
/// [`Priority::NORMAL`].
///
/// ```no_run
/// # async fn run() -> Result<(), String> {
/// use overtake_client::Priority;
/// use overtake_client::streams::{Event, Lanes, Layout, Publisher, server};
///
/// let layout = Layout { lanes: Lanes::enabled(), is_partitioned: false };
/// let mut publisher = Publisher::connect(&server("redis://localhost")?, layout).await?;
/// let placed = Event::new("order", "OrderPlaced", r#"{"id": 7}"#).priority(Priority::HIGH);
/// publisher.publish(&placed).await?;
/// # Ok(())
/// # }
/// ```
pub struct Publisher {
    writer: Writer,
    layout: Layout,
}

impl Publisher {
    /// # Errors
    /// Why there is no connection.
    pub async fn connect(server: &RedisServer, layout: Layout) -> Result<Self, String> {
        Ok(Self { writer: Writer::connect(server).await?, layout })
    }

    /// Adds an event, and returns the id that the server gave it.
    ///
    /// # Errors
    /// Its data or metadata are no JSON, no stream can be called so, or the server declines. Where the connection is lost, nobody knows whether it was added: connect again.
    pub async fn publish(&mut self, event: &Event) -> Result<String, String> {
        let (stream, fields, key) = event.entry(&self.layout)?;
        let declined = |fault: Fault| format!("{stream}: {fault}");
        if let Some(key) = key {
            // Readers of all partitions must know of a key before there is something in its stream.
            self.writer.record_keys(event.stream(), &[key]).await?.map_err(declined)?;
        }
        let added = self.writer.add(&[(stream.clone(), fields)]).await?.pop();
        added.ok_or_else(|| format!("{stream}: no answer"))?.map_err(declined)
    }
}

/// How the work on an entry ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It is done: acknowledged.
    Ack,
    /// It failed, for this reason: it is tried again, and after the last attempt it is a dead letter.
    Fail(String),
    /// It will never succeed, for this reason: it is a dead letter at once.
    Reject(String),
}

/// What a handler may return: nothing for what is done; a result, whose error is the reason for another attempt; or [`Done`] itself.
pub trait IntoDone {
    /// How the work ended.
    fn into_done(self) -> Done;
}

impl IntoDone for () {
    fn into_done(self) -> Done {
        Done::Ack
    }
}

impl IntoDone for Done {
    fn into_done(self) -> Done {
        self
    }
}

impl<T: IntoDone, E: Display> IntoDone for Result<T, E> {
    fn into_done(self) -> Done {
        match self {
            Ok(done) => done.into_done(),
            Err(error) => Done::Fail(error.to_string()),
        }
    }
}

/// Entries being handled. Dropping it stops as [`StreamHandling::stop`] does, without waiting.
#[derive(Debug)]
pub struct StreamHandling {
    task: JoinHandle<Result<(), String>>,
    is_stopped: watch::Sender<bool>,
}

impl StreamHandling {
    /// Takes no more entries, waits until those at hand are handled, and gives back what is held beyond them.
    ///
    /// # Errors
    /// Why it had ended before, or why a lane is not read for now ([`Subscriber::broken`]).
    pub async fn stop(self) -> Result<(), String> {
        self.is_stopped.send_replace(true);
        self.wait().await
    }

    /// Waits until it ends: the server does not let us read any lane. The reason is logged at ERROR, too.
    ///
    /// # Errors
    /// Why.
    pub async fn wait(self) -> Result<(), String> {
        let Self { task, is_stopped: _keeps } = self;
        task.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// Runs a function for each entry, so many at a time, in a scope of the entry's priority: what it publishes inherits that ([`Entry::priority_in`]). A handler that
/// blocks its thread keeps the subscriber from saying that it lives. A handler that panics has failed, and the others go on. Where `primary_slots` of the subscriber's options is
/// not less than `concurrency`, nothing is handled, and [`StreamHandling::wait`] says so at once.
pub fn handle<H, F>(subscriber: Subscriber, concurrency: u16, handler: H) -> StreamHandling
where
    H: Fn(Entry) -> F + Send + 'static,
    F: Future<Output: IntoDone> + Send + 'static,
{
    let (is_stopped, stops) = watch::channel(false);
    let task = tokio::spawn(run(subscriber, concurrency.max(1), handler, stops));
    StreamHandling { task, is_stopped }
}

async fn run<H, F>(
    subscriber: Subscriber,
    concurrency: u16,
    handler: H,
    mut stops: watch::Receiver<bool>,
) -> Result<(), String>
where
    H: Fn(Entry) -> F,
    F: Future<Output: IntoDone> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(concurrency.into()));
    let is_set = subscriber.set_slots(concurrency);
    let subscriber = Arc::new(subscriber);
    let end = loop {
        if let Err(why) = is_set {
            break Err(why);
        }
        // First room, then an entry: what nobody has room for is left to others.
        let slot = Arc::clone(&slots).acquire_owned().await.expect("nobody closes it");
        let next = tokio::select! {
            biased;
            // An error: nobody can stop it any more, which is the same.
            _ = stops.wait_for(|is_stopped| *is_stopped) => break Ok(()),
            next = subscriber.next() => next,
        };
        let entry = match next {
            Ok(entry) => entry,
            Err(why) => break Err(why),
        };
        let priority = entry.priority_in(&subscriber.options().lanes).map(Priority);
        // The function itself is called inside, too.
        let handled = caught_sync(|| sync_of_message(priority, || handler(entry.clone())));
        let subscriber = Arc::clone(&subscriber);
        tokio::spawn(async move {
            let done = match handled {
                Ok(handled) => caught(of_message(priority, async move { handled.await.into_done() })).await,
                Err(panic) => Err(panic),
            };
            let done = done.unwrap_or_else(|panic| Done::Fail(format!("it panicked: {}", said(&*panic))));
            settle(&subscriber, &entry, done).await;
            drop((subscriber, slot));
        });
    };
    if let Err(why) = &end {
        tracing::error!(category = subscriber.options().category, %why, "the handling has ended");
    }
    // Those at hand have theirs until they are done.
    let _ = slots.acquire_many(concurrency.into()).await;
    let Some(subscriber) = Arc::into_inner(subscriber) else { return end };
    let broken = subscriber.broken().map_or(Ok(()), Err);
    let stopped = subscriber.stop().await;
    end.and(broken).and(stopped)
}

async fn settle(subscriber: &Subscriber, entry: &Entry, done: Done) {
    let (id, stream) = (entry.id(), entry.stream());
    let settled = match done {
        Done::Ack => subscriber.ack(entry).await.map(drop),
        Done::Fail(why) => {
            tracing::error!(%id, %stream, %why, "a handler failed");
            subscriber.fail(entry, &why).await.map(drop)
        }
        Done::Reject(why) => subscriber.reject(entry, &why).await.map(drop),
    };
    if let Err(error) = settled {
        tracing::error!(%id, %stream, %error, "an entry was handled and is not settled; it comes again");
    }
}
