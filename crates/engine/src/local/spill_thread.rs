//! The thread that writes and removes segments.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use overtake_store::Disk;

use super::Ask;
use super::disk_thread::News;
use crate::core::{Job, Spiller};

/// Runs until nobody has jobs any more.
pub(super) fn run<D: Disk>(mut spiller: Spiller<D>, jobs: &Receiver<Job>, news: &Sender<Ask>) {
    for job in jobs {
        let what = match spiller.perform(job) {
            Ok(done) => News::Done(done),
            Err(error) => News::Poisoned(Arc::from(error.to_string().as_str())),
        };
        // A broker that is gone need not know.
        drop(news.send(Ask::News(what)));
    }
}
