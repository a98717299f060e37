//! What keeps a lease while a program runs: every third of it, it is extended; and sooner, at most once a second, while the program
//! prints what somebody may want to follow. Between extensions the broker holds its answer back, to say at once when the message is
//! wanted back.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::Job;
use super::printed::Printed;
use super::source::Answer;

/// What a program prints is told so often at most.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// A program that runs for so long is listened for.
const LISTEN_AFTER: Duration = Duration::from_secs(1);
/// Most of it that is told at once, bytes.
const TOLD_MAX: usize = 16 << 10;

/// What the broker says about a message that is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pulse {
    /// It is ours.
    Ours,
    /// Somebody wants it back.
    CancelAsked,
    /// It is somebody else's.
    Lost,
}

/// Extends a lease until it is dropped.
pub(crate) struct Heart {
    pulse: watch::Receiver<Pulse>,
    beating: AbortHandle,
}

impl Heart {
    /// Of a lease that has just begun. What is `printed` is told with it, where somebody may follow it.
    pub(crate) fn start(receipt: &str, printed: Option<Printed>, job: &Arc<Job>) -> Self {
        let (tell, pulse) = watch::channel(Pulse::Ours);
        let beating = tokio::spawn(beat(receipt.to_owned(), printed, Arc::clone(job), tell)).abort_handle();
        Self { pulse, beating }
    }

    /// What the broker said last.
    pub(crate) fn pulse(&self) -> Pulse {
        *self.pulse.borrow()
    }

    /// Waits until the message is wanted back, or lost.
    pub(crate) async fn stopped(&mut self) {
        let waited = self.pulse.wait_for(|pulse| *pulse != Pulse::Ours).await.is_ok();
        if !waited {
            // It beats no more without a word: only when the runtime ends.
            pending::<()>().await;
        }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

/// Goes on while a program that is wanted back is being ended: the lease is still ours.
async fn beat(receipt: String, printed: Option<Printed>, job: Arc<Job>, tell: watch::Sender<Pulse>) {
    let keep = keep(&receipt, printed.as_ref(), &job, &tell);
    let report = report(&receipt, printed.as_ref(), &job, &tell);
    // Either ends when the message is somebody else's.
    tokio::select! {
        () = keep => {}
        () = report => {}
    }
    pending().await
}

/// Extends the lease in good time. The broker answers late, unless the message is wanted back or lost: so that is heard at once.
async fn keep(receipt: &str, printed: Option<&Printed>, job: &Job, tell: &watch::Sender<Pulse>) {
    let third: Duration = job.plan.lease / 3;
    // A short program costs no extension.
    let mut next = Instant::now() + third.min(LISTEN_AFTER);
    loop {
        sleep_until(next).await;
        next = Instant::now() + third;
        if !heard(&job.supply.extend(receipt, end_of(printed).as_deref(), third).await, tell) {
            return;
        }
    }
}

/// Reports what the program prints, while it prints.
async fn report(receipt: &str, printed: Option<&Printed>, job: &Job, tell: &watch::Sender<Pulse>) {
    let Some(printed) = printed else { return pending().await };
    let mut last = Instant::now();
    loop {
        printed.more().await;
        sleep_until(last + TELL_EVERY.min(job.plan.lease / 3)).await;
        last = Instant::now();
        if !heard(&job.supply.extend(receipt, end_of(Some(printed)).as_deref(), Duration::ZERO).await, tell) {
            return;
        }
    }
}

fn end_of(printed: Option<&Printed>) -> Option<String> {
    printed.map(|printed| printed.end(TOLD_MAX)).filter(|output| !output.is_empty())
}

/// Tells what the broker said of the message. False: it is somebody else's.
fn heard(answer: &Answer, tell: &watch::Sender<Pulse>) -> bool {
    match answer {
        Answer::CancelAsked => drop(tell.send_replace(Pulse::CancelAsked)),
        Answer::Stale => drop(tell.send_replace(Pulse::Lost)),
        // A worker that may no longer extend may no longer lease either, and is told there.
        Answer::Done | Answer::Declined(_) => {}
    }
    *answer != Answer::Stale
}
