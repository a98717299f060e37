//! What the work on leased messages has printed so far.
//!
//! Nothing is done when a lease ends, since that is on everybody's way: what was said of it is not seen any more, and is forgotten
//! when more has been said, or too much is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{Command, LeaseId, REPORT_BYTES_MAX, Receipt, Refusal, Time};

use super::{Answer, Core, Refused};
use crate::holder::Progress;

/// Most bytes that are kept for all leases together; beyond that what was said longest ago goes.
const KEPT_MAX: usize = 64 << 20;
/// What one costs beside its output, about.
const OVERHEAD: usize = 256;
/// So many may be kept before those are forgotten whose lease is over.
const FEW: usize = 64;

/// What was told, by lease.
#[derive(Debug, Default)]
pub(super) struct Told {
    by: BTreeMap<LeaseId, (u64, Receipt, Arc<Progress>)>,
    /// In the order in which it was told.
    order: BTreeMap<u64, LeaseId>,
    told: u64,
    bytes: usize,
    /// How many were left when those were forgotten whose lease was over.
    left: usize,
}

impl Told {
    pub(super) fn of(&self, lease: LeaseId) -> Option<Arc<Progress>> {
        self.by.get(&lease).map(|(_, _, progress)| Arc::clone(progress))
    }

    fn tell(&mut self, receipt: Receipt, progress: Progress) {
        self.forget(receipt.lease);
        self.told += 1;
        self.bytes += progress.output.len() + OVERHEAD;
        self.order.insert(self.told, receipt.lease);
        self.by.insert(receipt.lease, (self.told, receipt, Arc::new(progress)));
    }

    fn forget(&mut self, lease: LeaseId) {
        if let Some((told, _, progress)) = self.by.remove(&lease) {
            self.order.remove(&told);
            self.bytes -= progress.output.len() + OVERHEAD;
        }
    }

    /// Keeps what is asked for as long as there is not too much of it.
    fn tidy(&mut self, holds: impl Fn(&Receipt) -> bool) {
        if self.by.len() <= 2 * self.left + FEW && self.bytes <= KEPT_MAX {
            return;
        }
        let over: Vec<LeaseId> =
            self.by.values().filter(|(_, receipt, _)| !holds(receipt)).map(|(_, its, _)| its.lease).collect();
        over.into_iter().for_each(|lease| self.forget(lease));
        while self.bytes > KEPT_MAX
            && let Some((_, lease)) = self.order.first_key_value()
        {
            self.forget(*lease);
        }
        self.left = self.by.len();
    }
}

impl<T> Core<T> {
    /// Lengthens a lease, and keeps what is said of the work while it lasts.
    pub(super) fn progress(
        &mut self,
        now: Time,
        receipt: Receipt,
        visibility_ms: u64,
        output: Arc<str>,
    ) -> Result<Answer, Refused> {
        if output.len() > REPORT_BYTES_MAX {
            return Err(Refusal::ReportTooLarge.into());
        }
        let extend = Command::Extend { receipts: vec![receipt], visibility_ms };
        let answer = self.change(now, super::Request::Do(extend))?;
        if let Answer::Each(results) = &answer
            && results[..] == [Ok(())]
        {
            self.progress.tell(receipt, Progress { output, at: now });
            let broker = &self.broker;
            self.progress.tidy(|receipt| broker.leased(receipt).is_some());
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use overtake_lane::{QueueId, Seq};

    use super::*;

    fn receipt(number: u64) -> Receipt {
        Receipt { queue: QueueId(1), seq: Seq(number), lease: LeaseId(number) }
    }

    fn progress(len: usize) -> Progress {
        Progress { output: "x".repeat(len).into(), at: Time(0) }
    }

    #[test]
    fn what_is_over_is_forgotten_and_what_was_told_longest_ago_gives_way() {
        let mut told = Told::default();
        for number in 0..10_000 {
            told.tell(receipt(number), progress(10));
            told.tidy(|receipt| receipt.seq.0 + 5 > number);
            assert!(told.by.len() <= 2 * 5 + FEW + 1, "{}", told.by.len());
        }
        let each = REPORT_BYTES_MAX + OVERHEAD;
        let most = (KEPT_MAX / each) as u64;
        for number in 0..2 * most {
            told.tell(receipt(number), progress(REPORT_BYTES_MAX));
            told.tell(receipt(0), progress(REPORT_BYTES_MAX));
            told.tidy(|_| true);
            assert!(told.bytes <= KEPT_MAX && told.of(LeaseId(number)).is_some());
        }
        assert!(told.of(LeaseId(0)).is_some() && told.of(LeaseId(1)).is_none());
        assert_eq!(
            told.bytes,
            told.by.values().map(|(_, _, its)| its.output.len() + OVERHEAD).sum::<usize>()
        );
        assert_eq!(told.order.len(), told.by.len());
    }
}
