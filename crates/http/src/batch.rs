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
    let shapes = shapes(&messages);
    let published = match check_priorities(&messages) {
        Ok(()) => desk.publish(messages).await,
        Err(not) => Err(not),
    };
    match published {
        Ok(copies) => Ok(copies),
        Err(NotDone::Failed(Failure::Refused(Refused { refusal, .. })))
            if shapes.len() == 1 && refusal != Refusal::StoreFull =>
        {
            Err(refusal.into())
        }
        Err(not) => Err(problem(desk, not, "messages", &shapes, &[]).await),
    }
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
    let shapes = shapes(&messages);
    let done = match check_priorities(&messages) {
        Ok(()) => desk.transact(messages, settlements).await,
        Err(not) => Err(not),
    };
    match done {
        Ok(copies) => Ok(copies),
        Err(not) => {
            let part = part_of(&not);
            let problem = problem(desk, not, "publish", &shapes, receipts).await;
            let is_of_exchange = problem.0.body().code() == "no-such-exchange";
            match part.and_then(|at| shapes.get(at)).map(|(to, _)| to) {
                Some(Target::Queue(name)) => Err(named(problem, desk, name).await),
                Some(Target::Exchange { name, .. }) if is_of_exchange => {
                    Err(named(problem, desk, name).await)
                }
                _ => Err(problem),
            }
        }
    }
}

/// Where a message goes, and how many bytes a queue counts of it.
type Shape = (Target, u64);

fn shapes(messages: &[NewMessage]) -> Vec<Shape> {
    messages.iter().map(|message| (message.to.clone(), message.content.size() as u64)).collect()
}

/// Refuses a priority that no scheme takes, of a message for an exchange: it may lead to no queue, or routes may say how urgent the message is there.
fn check_priorities(messages: &[NewMessage]) -> Result<(), NotDone> {
    for (at, message) in messages.iter().enumerate() {
        if let (Target::Exchange { .. }, Err(refusal)) = (&message.to, message.priority.check()) {
            let part = Some(Part::Publish(at));
            return Err(NotDone::Failed(Failure::Refused(Refused { refusal, part })));
        }
    }
    Ok(())
}

/// The message that is at fault, from 0.
fn part_of(not: &NotDone) -> Option<usize> {
    match not {
        NotDone::Failed(Failure::Refused(Refused { part: Some(Part::Publish(at)), .. })) => Some(*at),
        _ => None,
    }
}

async fn problem(desk: &Desk, not: NotDone, list: &str, messages: &[Shape], receipts: &[usize]) -> Problem {
    let NotDone::Failed(Failure::Refused(Refused { refusal, part })) = not else { return not.into() };
    let count = messages.len();
    let (place, what) = match part {
        Some(Part::Publish(at)) => {
            let place = format!("{list}[{at}]");
            if refusal == Refusal::QueueFull
                && let Some(why) = never_fits(desk, messages, at).await
            {
                return why.inside(&place);
            }
            (place, format!("message {} of {count}", at + 1))
        }
        Some(Part::Settlement(at)) => settlement(at, receipts),
        None if refusal == Refusal::StoreFull => return store_full(&desk.health()),
        None => return of_all(refusal, count),
    };
    Problem::from(refusal).inside(&place).detail(format!("{what} is refused: {refusal}; nothing was done"))
}

/// The problem with messages that are more than the queue of one of them ever holds, or larger: they are refused however empty it is. `None`: they may fit
/// another time.
async fn never_fits(desk: &Desk, messages: &[Shape], at: usize) -> Option<Problem> {
    let (Target::Queue(name), _) = messages.get(at)? else { return None };
    let is_there = |to: &Target| matches!(to, Target::Queue(other) if other == name);
    let sizes = messages.iter().filter(|(to, _)| is_there(to)).map(|(_, bytes)| *bytes);
    let (count, bytes) = sizes.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
    let queue = desk.queue(name).await.ok()?;
    let settings = queue.effective_settings();
    let limits = [
        ("messages", count, "max_length", settings.max_length),
        ("bytes", bytes, "max_bytes", settings.max_bytes),
    ];
    let is_over = |limit: &(&str, u64, &str, u64)| limit.3 > 0 && limit.1 > limit.3;
    let (what, is, setting, most) = limits.into_iter().find(is_over)?;
    let detail = format!(
        "queue `{name}` never holds all of them at once: they are {is} {what}, and its `{setting}` is {most}; nothing was done"
    );
    let hint = format!("publish fewer messages at once, or raise `{setting}` of the queue");
    Some(Problem::from(Refusal::QueueFull).detail(detail).hint(hint))
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
    match &health.full {
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
