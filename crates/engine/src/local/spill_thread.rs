//! The thread that writes and removes segments.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use overtake_store::{Disk, StoreError};

use super::disk_thread::News;
use super::freeze::Freeze;
use super::inbox::Inbox;
use super::{Ask, Shared};
use crate::core::{Job, Spiller};

/// Runs until nobody has jobs any more.
pub(super) fn run<D: Disk>(
    mut spiller: Spiller<D>,
    jobs: &Receiver<Job>,
    news: &Inbox,
    shared: &Shared,
    freeze: &Freeze,
) {
    // A broker that is gone need not know.
    let tell = |what: News| news.tell(Ask::News(what));
    let poisoned = |error: &StoreError| News::Poisoned(Arc::from(error.to_string().as_str()));
    let mut is_merging = true;
    loop {
        match if is_merging { jobs.try_recv() } else { jobs.recv().map_err(Into::into) } {
            Ok(job) => {
                is_merging = true;
                let done = match job {
                    Job::Remove(run) => freeze.remove(run, || spiller.perform(Job::Remove(run))),
                    job => Some(spiller.perform(job)),
                };
                if let Some(done) = done {
                    done.iter().for_each(|done| shared.tally.done(done));
                    tell(done.map_or_else(|error| poisoned(&error), News::Done));
                }
            }
            Err(TryRecvError::Empty) => {
                is_merging = spiller.merge_ids().unwrap_or_else(|error| {
                    tell(poisoned(&error));
                    false
                });
            }
            Err(TryRecvError::Disconnected) => return,
        }
    }
}
