//! *Aside*: a delivery that failed waits its queue's backoff, however the message came back; a released message waits for nothing and is
//! not counted.

use overtake_lane::{Message, Outcome, State, Time};

use crate::book::Book;
use crate::check::Step;
use crate::check::kept::Ended;
use crate::failure::{Checked, Promise, hold};

/// Leases that ended in this step, and whose messages stand in their queue again. `book` is as it was before the step.
pub(crate) fn check_returned(book: &Book, step: &Step<'_>) -> Checked {
    let ended = Ended::of(book, step);
    for (&(queue, seq), lease) in &book.holds {
        let (Some(before), Some(after)) = (step.before.find(queue, seq), step.after.find(queue, seq)) else {
            continue;
        };
        // A message may have come back before, of a consumer whose end is not over yet.
        if !matches!(before.state, State::Leased { lease: holds, .. } if holds == lease.receipt.lease) {
            continue;
        }
        let outcome = ended.outcome(lease, before, step.now);
        let is_back = matches!(after.state, State::Ready | State::Delayed { .. });
        let (Some(outcome), true) = (outcome, is_back) else { continue };
        let backoff = book.settings[&queue].backoff;
        let (count, wait_ms) = match outcome {
            Outcome::Release => (before.count - 1, 0),
            Outcome::Nack { delay_ms: Some(delay_ms) } => (before.count, delay_ms),
            _ => (before.count, backoff.wait_ms(before.count)),
        };
        // A message that waits for nothing may be delivered again in the same step, and come back from that.
        let is_right = match wait_ms {
            0 => after.count >= count,
            wait_ms => (after.count, after.state) == (count, State::Delayed { due: step.now.after(wait_ms) }),
        };
        hold(is_right, Promise::Aside, || told(before, after, outcome, step.now, wait_ms))?;
    }
    Ok(())
}

fn told(before: &Message, after: &Message, outcome: Outcome, now: Time, wait_ms: u64) -> String {
    let (seq, was, count, state) = (before.seq.0, before.count, after.count, after.state);
    format!(
        "message {seq}, delivered {was} times, came back by {outcome:?} at {now:?} as {state:?} with {count} deliveries; its wait is {wait_ms} ms"
    )
}
