//! The loop: lease for the slots that are free, and hear of those that become free.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;

use tokio::task::{JoinHandle, JoinSet};

use super::Job;
use super::backoff::Backoff;
use super::display::Event;
use super::item::Item;
use super::slot::{self, Finished};
use super::source::passes;
use super::stage::Stage;
use super::tally::Tally;
use super::verdict::Outcome;
use crate::commands::Ended;
use crate::failure::{Exit, Failure};
use crate::table::count;

/// How long one request waits for a message, ms.
const WAIT_MS: u64 = 5_000;
/// The same while something runs that may be the last: it may be put back and be ready again.
const LAST_WAIT_MS: u64 = 1_000;

/// Who runs programs for messages.
pub(crate) struct Worker {
    job: Arc<Job>,
    free: BTreeSet<usize>,
    at_work: JoinSet<Finished>,
    asking: Option<Asking>,
    /// Messages that were leased.
    taken: u64,
    tally: Tally,
    /// The broker has answered.
    is_known: bool,
    /// Nothing was ready while nothing ran.
    was_empty: bool,
    /// The stage that people know of.
    announced: Stage,
    failure: Option<Failure>,
}

/// A request for messages that is under way.
struct Asking {
    answer: JoinHandle<Result<Vec<Item>, Failure>>,
    /// It was sent while nothing ran.
    was_idle: bool,
}

impl Worker {
    /// One that has nothing yet.
    pub(crate) fn new(job: Job) -> Self {
        Self {
            free: (0..job.plan.slots).collect(),
            job: Arc::new(job),
            at_work: JoinSet::new(),
            asking: None,
            taken: 0,
            tally: Tally::default(),
            is_known: false,
            was_empty: false,
            announced: Stage::Working,
            failure: None,
        }
    }

    /// Works until it is told to stop, or until there is no more to do.
    pub(crate) async fn work(mut self) -> Ended {
        let stages = self.job.stages.clone();
        let display = self.job.display.clone();
        loop {
            if self.asking.is_none() && self.wants_more() {
                self.ask();
            }
            if self.asking.is_none() && self.at_work.is_empty() {
                break;
            }
            let next_stage = self.announced.next();
            tokio::select! {
                answer = answer(&mut self.asking) => self.answered(answer).await,
                Some(finished) = self.at_work.join_next() => {
                    // A task ends badly only by a panic, which goes on here.
                    self.finished(&finished.expect("it does not panic"));
                }
                () = stages.reached(next_stage), if next_stage > self.announced => {
                    self.announce(stages.now()).await;
                }
                // Whoever read the lines has had enough.
                () = display.is_closed(), if self.announced == Stage::Working => stages.finish(),
            }
        }
        self.ended().await
    }

    fn wants_more(&self) -> bool {
        let stops = self.job.stages.now() > Stage::Working || self.failure.is_some() || self.was_empty;
        !stops && self.most() > 0
    }

    /// How many messages are wanted.
    fn most(&self) -> usize {
        let left = self.job.plan.max.map_or(u64::MAX, |max| max.saturating_sub(self.taken));
        self.free.len().min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    fn ask(&mut self) {
        let was_idle = self.at_work.is_empty();
        let wait_ms = match (self.job.plan.until_empty, was_idle) {
            (false, _) => WAIT_MS,
            (true, false) => LAST_WAIT_MS,
            (true, true) => 0,
        };
        let answer = tokio::spawn(lease(Arc::clone(&self.job), self.most(), wait_ms, self.is_known));
        self.asking = Some(Asking { answer, was_idle });
    }

    async fn answered(&mut self, (leased, was_idle): (Result<Vec<Item>, Failure>, bool)) {
        let items = match leased {
            Ok(items) => items,
            Err(failure) => return self.failed(failure).await,
        };
        self.is_known = true;
        self.was_empty = self.job.plan.until_empty && was_idle && items.is_empty();
        for item in items {
            if self.job.stages.now() > Stage::Working {
                slot::put_back(&item, &self.job).await;
                continue;
            }
            let slot = self.free.pop_first().expect("no more is leased than there are free slots");
            self.taken += 1;
            self.at_work.spawn(slot::work(slot, item, Arc::clone(&self.job)));
        }
    }

    /// No more can be taken; what runs is waited for.
    async fn failed(&mut self, failure: Failure) {
        if !self.at_work.is_empty() {
            let text = format!("no more is taken: {}", failure.what());
            self.job.display.tell(Event::Notice(text)).await;
        }
        self.failure = Some(failure);
    }

    fn finished(&mut self, finished: &Finished) {
        self.free.insert(finished.slot);
        self.tally.add(finished.outcome);
    }

    /// Says what a signal did.
    async fn announce(&mut self, stage: Stage) {
        self.announced = stage;
        let running = count(self.at_work.len() as u64, "program");
        let text = match stage {
            Stage::Working => return,
            Stage::Finishing if self.at_work.is_empty() => "stopping".to_owned(),
            Stage::Finishing => format!("stopping: {running} left to finish; once more ends them"),
            Stage::Ending => format!("ending {running}; once more kills and waits for nothing"),
            Stage::Leaving => "leaving".to_owned(),
        };
        self.job.display.tell(Event::Notice(text)).await;
    }

    async fn ended(self) -> Ended {
        let left = self.tally.of(Outcome::Left);
        tokio::select! {
            () = self.job.supply.close() => {}
            () = self.job.stages.reached(Stage::Leaving) => {}
        }
        // What failed before there was anything says it all.
        if self.failure.is_none() || self.taken > 0 {
            self.job.display.tell(Event::Stopped(self.tally)).await;
        }
        self.job.display.tell(Event::Over).await;
        match self.failure {
            Some(failure) => Err(failure),
            None if left > 0 => {
                let what = format!("{} left as they were", count(left, "message"));
                Err(Failure::new(Exit::Error, what).hint("they come back when their leases end"))
            }
            None => Ok(Exit::Done),
        }
    }
}

/// Waits for the answer, if there is to be one.
async fn answer(asking: &mut Option<Asking>) -> (Result<Vec<Item>, Failure>, bool) {
    let Some(Asking { answer, was_idle }) = asking else { return pending().await };
    // As above.
    let answered = (answer.await.expect("it does not panic"), *was_idle);
    *asking = None;
    answered
}

/// Asks until there is an answer, or until no more is wanted. Who has never answered is not asked again: the address may be wrong.
async fn lease(job: Arc<Job>, max: usize, wait_ms: u64, is_known: bool) -> Result<Vec<Item>, Failure> {
    let mut backoff = Backoff::default();
    loop {
        let leased = tokio::select! {
            leased = job.supply.lease(max, wait_ms) => leased,
            // What may come now comes back when its lease ends.
            () = job.stages.reached(Stage::Ending) => return Ok(Vec::new()),
        };
        match leased {
            Err(_) if job.stages.now() > Stage::Working => return Ok(Vec::new()),
            Err(failure) if is_known && passes(&failure) => job.supply.contact.failed(&failure).await,
            leased => return leased,
        }
        tokio::select! {
            () = backoff.wait() => {}
            () = job.stages.reached(Stage::Finishing) => return Ok(Vec::new()),
        }
    }
}
