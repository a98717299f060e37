//! The thread that writes: commits batches, prepares files, retires them.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Instant;

use overtake_lane::Receipt;
use overtake_store::{Batch, Committer, Disk, FileReady, Prepared, Space, StoreError};
use tokio::sync::mpsc;

use super::freeze::{Freeze, SHORT};
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

/// Whatever else the system says of the room, it is not watched.
fn news_of(space: Result<Option<Space>, StoreError>) -> News {
    match space {
        Err(error) if error.is_gone() => News::DirectoryGone,
        other => News::Space(other.ok().flatten()),
    }
}

/// Runs until the broker thread is gone.
pub(super) fn run<D: Disk>(
    mut committer: Committer<D>,
    flushes: &Receiver<Flush>,
    jobs: &Sender<Job>,
    news: &Sender<Ask>,
    shared: &Shared,
    freeze: &Freeze,
) {
    let tell = |what: News| drop(news.send(Ask::News(what)));
    // Told before what changed it, so that nothing is decided without.
    let look = |committer: &Committer<D>| tell(news_of(committer.space()));
    // The broker comes before a snapshot of it.
    let give_way = || {
        let gives_way = freeze.give_way(SHORT);
        // The thread that does them outlives this one.
        freeze.kept_jobs().into_iter().for_each(|job| drop(jobs.send(job)));
        gives_way
    };
    let mut preparing = false;
    loop {
        let flush = match if preparing { flushes.try_recv() } else { flushes.recv().map_err(Into::into) } {
            Ok(flush) => Some(flush),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => return freeze.close(super::STOPPED),
        };
        if let Some(Flush {
            batch,
            answers,
            events,
            jobs: late,
            published,
            prepare,
            drop_spares,
            look: asked,
        }) = flush
        {
            preparing |= prepare;
            let done = batch.as_ref().map_or(Ok(()), |batch| {
                let begun = Instant::now();
                committer.commit(batch)?;
                shared.tally.committed(begun.elapsed(), batch.records(), batch.len());
                Ok(())
            });
            if drop_spares {
                give_way();
            }
            // Not when a file is released: the batch that states it may be the one after.
            let done = done.and_then(|()| freeze.committed(&mut committer));
            // One that is wanted at once is not made anew.
            let is_spare = drop_spares && !preparing && committer.spares() > 0;
            let done = done.and_then(|gone| Ok(gone + if is_spare { committer.drop_spares()? } else { 0 }));
            if asked || done.as_ref().is_ok_and(|gone| *gone > 0) {
                look(&committer);
            }
            let removed = batch.is_some() && done.is_ok() && committer.is_removed();
            if removed {
                tell(News::FileRemoved);
            }
            let poison: Option<Arc<str>> = done.err().map(|error| Arc::from(error.to_string().as_str()));
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
                late.into_iter().for_each(|job| drop(jobs.send(job)));
            }
            tell(News::Flushed(poison.map_or(Ok(batch), Err)));
        }
        if preparing {
            match committer.prepare_some() {
                Ok(Prepared::More) => {}
                Ok(Prepared::Ready(file)) => {
                    preparing = false;
                    look(&committer);
                    tell(News::FileReady(file));
                }
                Err(StoreError::Full) => {
                    preparing = false;
                    if give_way()
                        && let Err(error) = freeze.committed(&mut committer)
                    {
                        tell(News::Poisoned(Arc::from(error.to_string().as_str())));
                        continue;
                    }
                    look(&committer);
                    tell(News::Full);
                }
                Err(StoreError::TooManyFiles { .. }) => {
                    preparing = false;
                    tell(News::TooManyFiles);
                }
                Err(error) => {
                    preparing = false;
                    tell(News::Poisoned(Arc::from(error.to_string().as_str())));
                }
            }
        }
    }
}
