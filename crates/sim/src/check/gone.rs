//! *Gone*: what was acknowledged, and confirmed so, never returns.

use std::collections::{BTreeMap, BTreeSet};

use overtake_engine::LeasedMessage;
use overtake_engine::core::{Answer, Request};
use overtake_lane::{Command, Outcome, QueueId, Seq};

use crate::book::Book;
use crate::failure::{Checked, Promise, hold};
use crate::refold::{Refold, mark_of};

/// A message, and the mark that tells it from one of a later queue with the same number.
type Name = (QueueId, Seq, u64);

/// What was acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    answered: BTreeMap<u64, Vec<Name>>,
    settled: BTreeSet<Name>,
    /// The marks of those.
    marks: BTreeSet<u64>,
}

impl Gone {
    /// Settlements were answered, and the answer is on its way. Before the book learns of it.
    pub(crate) fn answered(&mut self, book: &Book, ticket: u64, request: &Request, answer: &Answer) {
        let acked: Vec<_> = match (request, answer) {
            (Request::Do(Command::Settle { receipts, outcome: Outcome::Ack }), Answer::Each(results)) => {
                let done = receipts.iter().zip(results).filter(|(_, result)| result.is_ok());
                done.map(|(receipt, _)| *receipt).collect()
            }
            (Request::Do(Command::Finish { receipt, outcome: Outcome::Ack, .. }), Answer::Each(results)) => {
                results.iter().filter(|result| result.is_ok()).map(|_| *receipt).collect()
            }
            (Request::Publish { settlements, .. }, _) => {
                let acks = settlements.iter().filter(|(_, outcome)| *outcome == Outcome::Ack);
                acks.map(|(receipt, _)| *receipt).collect()
            }
            _ => return,
        };
        let named = acked
            .iter()
            .filter_map(|receipt| Some((receipt.queue, receipt.seq, book.hold_of(receipt)?.mark?)));
        self.answered.insert(ticket, named.collect());
    }

    /// The answer arrived.
    pub(crate) fn told(&mut self, ticket: u64) {
        let settled = self.answered.remove(&ticket).unwrap_or_default();
        self.marks.extend(settled.iter().map(|(.., mark)| *mark));
        self.settled.extend(settled);
    }

    /// Whether a copy of this message is acknowledged for good.
    pub(crate) fn has(&self, mark: u64) -> bool {
        self.marks.contains(&mark)
    }

    pub(crate) fn check_lent(&self, message: &LeasedMessage) -> Checked {
        let Some(mark) = mark_of(message.content.content_type()) else { return Ok(()) };
        let name = (message.receipt.queue, message.receipt.seq, mark);
        hold(!self.settled.contains(&name), Promise::Gone, || {
            format!("{} is delivered again after its settlement was confirmed", message.receipt)
        })
    }

    /// A new life begins; answers that were on their way are lost.
    pub(crate) fn recovered(&mut self) {
        self.answered.clear();
    }

    pub(crate) fn check_recovered(&self, refold: &Refold) -> Checked {
        for ((queue, seq), mark) in refold.marks() {
            hold(!self.settled.contains(&(queue, seq, mark)), Promise::Gone, || {
                format!(
                    "message {} of queue {} is there again after its settlement was confirmed",
                    seq.0, queue.0
                )
            })?;
        }
        Ok(())
    }
}
