//! What keeps a lease while a program runs: every third of it, it is extended; and sooner, at most once a second, while the program
//! prints what somebody may want to follow.

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
    let third: Duration = job.plan.lease / 3;
    let mut last = Instant::now();
    loop {
        tokio::select! {
            () = sleep_until(last + third) => {}
            () = more(printed.as_ref()) => sleep_until((last + TELL_EVERY).min(last + third)).await,
        }
        let output =
            printed.as_ref().map(|printed| printed.end(TOLD_MAX)).filter(|output| !output.is_empty());
        last = Instant::now();
        match job.supply.extend(&receipt, output.as_deref()).await {
            Answer::CancelAsked => drop(tell.send_replace(Pulse::CancelAsked)),
            Answer::Stale => {
                tell.send_replace(Pulse::Lost);
                return pending().await;
            }
            // Whoever may no longer extend may no longer lease either, and is told there.
            Answer::Done | Answer::Declined(_) => {}
        }
    }
}

async fn more(printed: Option<&Printed>) {
    match printed {
        Some(printed) => printed.more().await,
        None => pending().await,
    }
}
