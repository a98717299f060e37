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
    /// The lease ended before its time: the message was removed, or its queue deleted.
    Ended,
    /// It is somebody else's.
    Lost,
}

/// The state of a lease, as far as the broker has told it.
#[derive(Clone, Copy, Debug)]
struct State {
    pulse: Pulse,
    /// Until then the lease lasts at least, unless somebody ends it.
    until: Instant,
}

/// Extends a lease until it is dropped.
pub(crate) struct Heart {
    state: watch::Receiver<State>,
    beating: AbortHandle,
}

impl Heart {
    /// Of a lease that has just begun. What is `printed` is told with it, where somebody may follow it.
    pub(crate) fn start(receipt: &str, printed: Option<Printed>, job: &Arc<Job>) -> Self {
        let (tell, state) =
            watch::channel(State { pulse: Pulse::Ours, until: Instant::now() + job.plan.lease });
        let beating = tokio::spawn(beat(receipt.to_owned(), printed, Arc::clone(job), tell)).abort_handle();
        Self { state, beating }
    }

    /// What the broker said last.
    pub(crate) fn pulse(&self) -> Pulse {
        self.state.borrow().pulse
    }

    /// Whether a lease that is over by now has been ended by somebody, and did not run out.
    pub(crate) fn was_ended(&self) -> bool {
        self.pulse() == Pulse::Ended || Instant::now() < self.state.borrow().until
    }

    /// Waits until the message is wanted back, or ours no more.
    pub(crate) async fn stopped(&mut self) {
        let waited = self.state.wait_for(|state| state.pulse != Pulse::Ours).await.is_ok();
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
async fn beat(receipt: String, printed: Option<Printed>, job: Arc<Job>, tell: watch::Sender<State>) {
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
async fn keep(receipt: &str, printed: Option<&Printed>, job: &Job, tell: &watch::Sender<State>) {
    let third: Duration = job.plan.lease / 3;
    // A short program costs no extension.
    let mut next = Instant::now() + third.min(LISTEN_AFTER);
    loop {
        sleep_until(next).await;
        next = Instant::now() + third;
        let until = Instant::now() + job.plan.lease;
        let answer = job.supply.extend(receipt, end_of(printed).as_deref(), third).await;
        if !heard(&answer, until, tell) {
            return;
        }
    }
}

/// Reports what the program prints, while it prints.
async fn report(receipt: &str, printed: Option<&Printed>, job: &Job, tell: &watch::Sender<State>) {
    let Some(printed) = printed else { return pending().await };
    let mut last = Instant::now();
    loop {
        printed.more().await;
        sleep_until(last + TELL_EVERY.min(job.plan.lease / 3)).await;
        last = Instant::now();
        let until = last + job.plan.lease;
        let answer = job.supply.extend(receipt, end_of(Some(printed)).as_deref(), Duration::ZERO).await;
        if !heard(&answer, until, tell) {
            return;
        }
    }
}

fn end_of(printed: Option<&Printed>) -> Option<String> {
    printed.map(|printed| printed.end(TOLD_MAX)).filter(|output| !output.is_empty())
}

/// Tells what the broker said of the message, whose lease lasts until then if it is extended. False: it is ours no more.
fn heard(answer: &Answer, until: Instant, tell: &watch::Sender<State>) -> bool {
    tell.send_if_modified(|state| {
        let before = state.pulse;
        match answer {
            Answer::CancelAsked => state.pulse = Pulse::CancelAsked,
            Answer::Stale if Instant::now() < state.until => state.pulse = Pulse::Ended,
            Answer::Stale => state.pulse = Pulse::Lost,
            Answer::Done => state.until = state.until.max(until),
            // A worker that may no longer extend may no longer lease either, and is told there.
            Answer::Declined(_) => {}
        }
        state.pulse != before
    });
    *answer != Answer::Stale
}
