//! *One holder*: no two live leases of one message, no lease id twice, and a receipt holds exactly as long as its lease.

use overtake_engine::core::{Answer, Request};
use overtake_engine::{LeasedMessage, Refused};
use overtake_lane::{Command, Receipt, Refusal};

use crate::book::Book;
use crate::check::Step;
use crate::failure::{Checked, Promise, broken, hold};

/// Before the book learns of a lease.
pub(crate) fn check_lent(book: &Book, message: &LeasedMessage) -> Checked {
    let Receipt { queue, seq, lease } = message.receipt;
    if let Some(other) = book.holds.get(&(queue, seq)) {
        return broken(
            Promise::OneHolder,
            format!("{} is leased again while {} holds", message.receipt, other.receipt),
        );
    }
    hold(!book.leases.contains(&lease), Promise::OneHolder, || {
        format!("the lease of {} was given before", message.receipt)
    })
}

/// Before the book learns of the settlements of a request.
pub(crate) fn check_settled(
    book: &Book,
    step: &Step<'_>,
    request: &Request,
    result: &Result<Answer, Refused>,
) -> Checked {
    let receipts: Vec<Receipt> = match request {
        Request::Do(Command::Settle { receipts, .. } | Command::Extend { receipts, .. }) => receipts.clone(),
        Request::Do(Command::Finish { receipt, .. }) => vec![*receipt],
        Request::Publish { settlements, .. } => settlements.iter().map(|(receipt, _)| *receipt).collect(),
        _ => return Ok(()),
    };
    let once = !matches!(request, Request::Do(Command::Extend { .. }));
    let holds = |at: usize| {
        let receipt = &receipts[at];
        let is_here = step.before.queues.get(&receipt.queue).is_some_and(|seen| seen.vhost == step.vhost);
        is_here && book.hold_of(receipt).is_some() && !(once && receipts[..at].contains(receipt))
    };
    match result {
        Ok(Answer::Each(results)) => {
            for (at, result) in results.iter().enumerate() {
                // Who is asked to give it back has it still, and may not keep it longer.
                let is_asked_back = *result == Err(Refusal::CancelAsked) && !once;
                hold((result.is_ok() || is_asked_back) == holds(at), Promise::OneHolder, || {
                    format!("{} was answered {result:?}, its lease holds: {}", receipts[at], holds(at))
                })?;
            }
            Ok(())
        }
        Ok(_) => hold((0..receipts.len()).all(holds), Promise::OneHolder, || {
            format!("a transaction settled {receipts:?}, not all of which hold")
        }),
        Err(Refused { refusal: Refusal::StaleReceipt, .. }) => {
            hold(!(0..receipts.len()).all(holds), Promise::OneHolder, || {
                format!("a transaction was refused as stale though all of {receipts:?} hold")
            })
        }
        Err(_) => Ok(()),
    }
}
