//! What keeps a lease while a program runs: every third of it, it is extended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::Job;
use super::source::Answer;

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
    /// Of a lease that has just begun.
    pub(crate) fn start(receipt: &str, job: &Arc<Job>) -> Self {
        let (tell, pulse) = watch::channel(Pulse::Ours);
        let beating = tokio::spawn(beat(receipt.to_owned(), Arc::clone(job), tell)).abort_handle();
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
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

/// Goes on while a program that is wanted back is being ended: the lease is still ours.
async fn beat(receipt: String, job: Arc<Job>, tell: watch::Sender<Pulse>) {
    let third: Duration = job.plan.lease / 3;
    loop {
        sleep(third).await;
        match job.source.extend(&receipt).await {
            Answer::CancelAsked => drop(tell.send_replace(Pulse::CancelAsked)),
            Answer::Stale => {
                tell.send_replace(Pulse::Lost);
                return std::future::pending().await;
            }
            // Whoever may no longer extend may no longer lease either, and is told there.
            Answer::Done | Answer::Declined(_) => {}
        }
    }
}
