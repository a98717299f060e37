//! Batches: all of it happens or none, and a refusal says which part is at fault.
//!
//! The part is named as decoding names it: `key` is its place in the body, and `detail` says it in words.

use overtake_access::{Desk, NotDone};
use overtake_engine::{Failure, Health, NewMessage, PublishedCopy, Refused, Target};
use overtake_lane::{Outcome, Part, Receipt, Refusal};

use crate::named::named;
use crate::problem::Problem;

/// Publishes messages that stand under `messages`, or one that stands alone.
///
/// # Errors
/// What the engine refuses; with more than one message, of which.
pub(crate) async fn publish(desk: &Desk, messages: Vec<NewMessage>) -> Result<Vec<PublishedCopy>, Problem> {
    let count = messages.len();
    let published = desk.publish(messages).await;
    published.map_err(|not| match not {
        NotDone::Failed(Failure::Refused(Refused { refusal, .. }))
            if count == 1 && refusal != Refusal::StoreFull =>
        {
            refusal.into()
        }
        not => problem(desk, not, "messages", count, &[]),
    })
}

/// Publishes messages that stand under `publish`, and settles those that stand under `settle`: `receipts` in each.
///
/// # Errors
/// What the engine refuses, and of which part.
pub(crate) async fn transact(
    desk: &Desk,
    messages: Vec<NewMessage>,
    settlements: Vec<(Receipt, Outcome)>,
    receipts: &[usize],
) -> Result<Vec<PublishedCopy>, Problem> {
    let to: Vec<Target> = messages.iter().map(|message| message.to.clone()).collect();
    match desk.transact(messages, settlements).await {
        Ok(copies) => Ok(copies),
        Err(not) => {
            let part = part_of(&not);
            let problem = problem(desk, not, "publish", to.len(), receipts);
            let is_of_exchange = problem.0.body().code() == "no-such-exchange";
            match part.and_then(|at| to.get(at)) {
                Some(Target::Queue(name)) => Err(named(problem, desk, name).await),
                Some(Target::Exchange { name, .. }) if is_of_exchange => {
                    Err(named(problem, desk, name).await)
                }
                _ => Err(problem),
            }
        }
    }
}

/// The message that is at fault, from 0.
fn part_of(not: &NotDone) -> Option<usize> {
    match not {
        NotDone::Failed(Failure::Refused(Refused { part: Some(Part::Publish(at)), .. })) => Some(*at),
        _ => None,
    }
}

fn problem(desk: &Desk, not: NotDone, list: &str, messages: usize, receipts: &[usize]) -> Problem {
    let NotDone::Failed(Failure::Refused(Refused { refusal, part })) = not else { return not.into() };
    let (place, what) = match part {
        Some(Part::Publish(at)) => (format!("{list}[{at}]"), format!("message {} of {messages}", at + 1)),
        Some(Part::Settlement(at)) => settlement(at, receipts),
        None if refusal == Refusal::StoreFull => return store_full(&desk.health()),
        None => return of_all(refusal, messages),
    };
    Problem::from(refusal).inside(&place).detail(format!("{what} is refused: {refusal}; nothing was done"))
}

/// Where the receipt is that is the so-many-th of all, and what it is called.
fn settlement(at: usize, receipts: &[usize]) -> (String, String) {
    let mut left = at;
    for (settle, count) in receipts.iter().enumerate() {
        if left < *count {
            let place = format!("settle[{settle}].receipts[{left}]");
            return (place, format!("receipt {} of {count} in settlement {}", left + 1, settle + 1));
        }
        left -= count;
    }
    ("settle".to_owned(), "a settlement".to_owned())
}

/// Why the store takes no messages, and what to do.
fn store_full(health: &Health) -> Problem {
    let problem = Problem::from(Refusal::StoreFull);
    match health.full {
        Some(why) => problem.detail(format!("{}: {why}", Refusal::StoreFull)).hint(why.hint()),
        None => {
            problem.detail("the store was full a moment ago, and takes messages again").hint("send it again")
        }
    }
}

/// No message alone is at fault.
fn of_all(refusal: Refusal, messages: usize) -> Problem {
    let problem = Problem::from(refusal);
    match refusal {
        Refusal::TooLargeAtOnce => problem
            .detail(format!("the {messages} messages are too large to be stored at once; nothing was done")),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_counted_in_its_settlement() {
        let check = |at, expect: &str| assert_eq!(settlement(at, &[2, 1, 3]).0, expect, "{at}");
        check(0, "settle[0].receipts[0]");
        check(1, "settle[0].receipts[1]");
        check(2, "settle[1].receipts[0]");
        check(5, "settle[2].receipts[2]");
    }
}
