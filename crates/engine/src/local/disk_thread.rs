//! The thread that writes: commits batches, and tells of what is durable then.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use overtake_lane::Receipt;
use overtake_store::{Batch, Disk, FileReady, Log, ReadyFile, Space, StoreError};
use tokio::sync::mpsc;

use super::files_thread::{Order, Room};
use super::freeze::Freeze;
use super::inbox::Inbox;
use super::{Ask, Caller, Shared};
use crate::api::Failure;
use crate::core::{Answer, Done, Job};
use crate::session::{Event, leased};
use crate::traces::Published;

/// Events, and where they go.
pub(super) type Told = (mpsc::UnboundedSender<Vec<Event>>, Vec<Event>);

/// What the broker thread hands over: in order, each at most once.
#[derive(Default)]
pub(super) struct Flush {
    /// What to make durable.
    pub(super) batch: Option<Batch>,
    /// What to tell once everything handed over before and this batch is durable.
    pub(super) answers: Vec<(Caller, Result<Answer, Failure>)>,
    /// The same, for sessions: answers and nothing else.
    pub(super) events: Vec<Told>,
    /// What may be done once this batch is durable.
    pub(super) jobs: Vec<Job>,
    /// Publishes that are told then.
    pub(super) published: Published,
    /// A file is wanted.
    pub(super) prepare: bool,
    /// The disk is short of room: spares go.
    pub(super) drop_spares: bool,
    /// How much room the disk has is to be told.
    pub(super) look: bool,
}

/// Why a publish is not confirmed though it was written.
const REMOVED: &str =
    "the journal file was removed while it was in use: nobody will find there what was published";

/// What the broker thread hears.
pub(super) enum News {
    /// A flush is done; its batch comes back for its memory. Or it failed, and nothing can be made durable any more.
    Flushed(Result<Option<Batch>, Arc<str>>),
    /// A file stands ready.
    FileReady(FileReady),
    /// There is no room for another file.
    Full,
    /// The process may open no more files.
    TooManyFiles,
    /// A job is done.
    Done(Done),
    /// So much room is on the disk, if it says so.
    Space(Option<Space>),
    /// The directory of the store is not there any more, or another one is.
    DirectoryGone,
    /// The journal file in use was removed.
    FileRemoved,
    /// Leases that became durable, and that nobody was there to hear of.
    Unheard(Vec<Receipt>),
    /// Nothing can be made durable any more.
    Poisoned(Arc<str>),
}

/// The channels of the disk thread.
pub(super) struct Ways<D: Disk> {
    pub(super) flushes: Receiver<Flush>,
    /// Files that stand ready.
    pub(super) made: Receiver<ReadyFile<D::File>>,
    pub(super) orders: Sender<Order>,
    pub(super) jobs: Sender<Job>,
    pub(super) news: Arc<Inbox>,
    pub(super) room: Arc<Room<D>>,
}

/// Runs until the broker thread is gone.
pub(super) fn run<D: Disk>(mut log: Log<D::File>, ways: &Ways<D>, shared: &Shared, freeze: &Freeze) {
    let tell = |what: News| ways.news.tell(Ask::News(what));
    let mut oldest = log.oldest();
    let mut next = ways.flushes.recv().ok();
    while let Some(flush) = next {
        let Flush { batch, answers, events, jobs, published, prepare, drop_spares, look } = flush;
        // Each was sent before the broker was told of it, so a batch finds every file it needs.
        ways.made.try_iter().for_each(|file| log.add(file));
        let done = batch.as_ref().map_or(Ok(()), |batch| {
            let begun = Instant::now();
            log.commit(batch)?;
            shared.tally.committed(begun.elapsed(), batch.records(), batch.len());
            Ok(())
        });
        if done.is_ok() {
            let is_owed = freeze.committed(log.moment());
            if is_owed || prepare || drop_spares || log.oldest() != oldest {
                oldest = log.oldest();
                // The thread that carries them out outlives this one.
                drop(ways.orders.send(Order { oldest, prepare, drop_spares }));
            }
        }
        if look {
            ways.room.tell();
        }
        let removed = batch.is_some() && done.is_ok() && log.is_removed();
        if removed {
            tell(News::FileRemoved);
        }
        let poison: Option<Arc<str>> =
            done.err().map(|error: StoreError| Arc::from(error.to_string().as_str()));
        if let Some(why) = &poison {
            // Before anybody hears of it: nothing that is asked then is served.
            tell(News::Poisoned(Arc::clone(why)));
        }
        if poison.is_none() {
            published.durable();
        }
        let mut unheard: Vec<Receipt> = Vec::new();
        for (caller, result) in answers {
            let result = match (&poison, result) {
                (Some(why), _) => Err(Failure::Unavailable(Arc::clone(why))),
                (None, Ok(answer)) if removed && answer.is_of_publish() => {
                    Err(Failure::Unavailable(REMOVED.into()))
                }
                (None, result) => result,
            };
            unheard.extend(caller.send(result).err().iter().flatten().flat_map(Answer::leased));
        }
        for (to, mut events) in events {
            if let Some(why) = &poison {
                events.iter_mut().for_each(|event| event.fail(why));
            }
            if removed {
                events.iter_mut().for_each(|event| event.fail_publish(&REMOVED.into()));
            }
            let unsent = to.send(events).err();
            unheard.extend(unsent.iter().flat_map(|unsent| &unsent.0).flat_map(leased));
        }
        if !unheard.is_empty() {
            tell(News::Unheard(unheard));
        }
        if poison.is_none() {
            // The thread that does them outlives this one.
            jobs.into_iter().for_each(|job| drop(ways.jobs.send(job)));
        }
        let flushed = Ask::News(News::Flushed(poison.map_or(Ok(batch), Err)));
        next = ways.flushes.try_recv().ok();
        if next.is_some() {
            ways.news.tell(flushed);
        } else {
            // With nothing to write this thread does what follows, most often the next batch of whoever was told, and wakes nobody for it.
            drop(ways.news.ask(flushed));
            next = ways.flushes.recv().ok();
        }
    }
    freeze.close(super::STOPPED);
}
