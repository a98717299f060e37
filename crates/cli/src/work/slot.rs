//! One message on its way through the worker: its program is started, kept company, ended, and what came of it is settled.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use super::Job;
use super::display::{Event, Label};
use super::heart::{Heart, Pulse};
use super::item::Item;
use super::printed::Printed;
use super::running::Running;
use super::source::{Answer, How};
use super::stage::Stage;
use super::verdict::{Cause, Outcome, Verdict};

/// Longest that a lease may take on its way here: the broker's clock began so much earlier than ours.
const LATENCY_MAX: Duration = Duration::from_secs(1);

/// A message the worker is through with.
pub(crate) struct Finished {
    /// The slot, free again.
    pub(crate) slot: usize,
    /// What became of the message.
    pub(crate) outcome: Outcome,
}

/// Works on a message. It is settled when this returns, or cannot be.
pub(crate) async fn work(slot: usize, mut item: Item, job: Arc<Job>) -> Finished {
    let label = Arc::new(Label::of(slot, &item));
    let printed = Printed::new(job.plan.keep);
    let told = (item.is_followed && job.plan.keep > 0).then(|| printed.clone());
    let heart = Heart::start(&item.receipt, told, &job);
    job.display.tell(Event::Started(Arc::clone(&label))).await;
    let (verdict, took) = match Running::start(&mut item, printed, &job) {
        Ok(running) => attend(running, heart, &item, label.begun, &job).await,
        Err(error) => {
            let verdict = Verdict::unstarted(&error, &job.plan);
            (settled(verdict, &item, &job).await, label.begun.elapsed())
        }
    };
    let outcome = verdict.outcome;
    job.display.tell(Event::Ended { label, outcome, report: verdict.report, took }).await;
    Finished { slot, outcome }
}

/// Puts back a message that came when no more was wanted.
pub(crate) async fn put_back(item: &Item, job: &Job) {
    tokio::select! {
        _ = job.supply.settle(&item.receipt, How::Release, None) => {}
        () = job.stages.reached(Stage::Leaving) => {}
    }
}

/// Waits for the end of a program, or ends it, and settles.
async fn attend(
    mut running: Running,
    mut heart: Heart,
    item: &Item,
    begun: Instant,
    job: &Job,
) -> (Verdict, Duration) {
    // By our own clock, which began later than the broker's: by then the message is over there.
    let late = async {
        match item.run_timeout {
            Some(most) => sleep_until((begun + most).into()).await,
            None => pending().await,
        }
    };
    let mut status = None;
    let mut cause = tokio::select! {
        biased;
        ended = running.ended() => {
            status = ended;
            Cause::Itself
        }
        () = heart.stopped() => Cause::Cancelled,
        () = late => Cause::TooLong,
        () = job.stages.reached(Stage::Ending) => Cause::Stopped,
    };
    let took = begun.elapsed();
    // Also after its end: what it left behind ends with it.
    running.group.end(job.plan.grace, &job.stages).await;
    let (status, output) = running.close(status).await;
    // A message whose work ran too long is no longer ours either.
    if matches!(heart.pulse(), Pulse::Ended | Pulse::Lost) && cause != Cause::TooLong {
        cause = match item.run_timeout {
            Some(most) if took + LATENCY_MAX >= most => Cause::TooLong,
            _ if is_removed(&heart, item, job).await => Cause::Removed,
            _ => Cause::Lost,
        };
    }
    // The heart beats on: as long as the broker does not answer, the lease has to last.
    let mut verdict = settled(Verdict::of(cause, status, output, &job.plan), item, job).await;
    if verdict.outcome == Outcome::Lost && cause != Cause::Lost && is_removed(&heart, item, job).await {
        verdict.removed();
    }
    drop(heart);
    (verdict, took)
}

/// Whether a message whose lease is over was removed, and did not go to somebody else when the lease ran out.
async fn is_removed(heart: &Heart, item: &Item, job: &Job) -> bool {
    heart.was_ended()
        && tokio::select! {
            is_gone = job.supply.is_gone(&item.id) => is_gone,
            () = job.stages.reached(Stage::Leaving) => false,
        }
}

/// Settles as the verdict says; what the broker answers may change it.
async fn settled(mut verdict: Verdict, item: &Item, job: &Job) -> Verdict {
    let Some(how) = verdict.how else { return verdict };
    let answer = tokio::select! {
        biased;
        () = job.stages.reached(Stage::Leaving) => None,
        answer = job.supply.settle(&item.receipt, how, Some(&verdict.report)) => Some(answer),
    };
    match answer {
        Some(Answer::Done | Answer::CancelAsked) => {}
        // The message was over at the end of its run timeout.
        Some(Answer::Stale) if verdict.outcome == Outcome::TimedOut => {}
        Some(Answer::Stale) => {
            verdict.outcome = Outcome::Lost;
            verdict.report.error = Some("lease lost".to_owned());
        }
        Some(Answer::Declined(why)) => {
            verdict.outcome = Outcome::Left;
            verdict.report.error = Some(format!("cannot be settled: {why}"));
        }
        None => verdict.outcome = Outcome::Left,
    }
    verdict
}
