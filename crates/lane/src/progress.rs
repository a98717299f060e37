//! The output that holders of leases have reported so far.
//!
//! Reported output is in memory only, until the lease ends without a report of its own: then it becomes the output of the attempt. The end of a lease
//! forgets nothing here, since every message ends one: what is over is forgotten when more has been reported, or too much is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::broker::Broker;
use crate::ids::{LeaseId, Receipt, Time};
use crate::message::{Message, State};
use crate::record::Report;

/// How far the work on a leased message is, in the words of its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The end of what the work has printed so far, at most [`REPORT_BYTES_MAX`](crate::REPORT_BYTES_MAX) bytes.
    pub output: Arc<str>,
    /// When the holder reported it.
    pub at: Time,
}

/// Most bytes that are kept for all leases together; beyond that, what was reported longest ago goes.
const KEPT_MAX: usize = 64 << 20;
/// Bytes that one costs beside its output, about.
const OVERHEAD: usize = 256;
/// So many may be kept before those are forgotten whose lease is over.
const FEW: usize = 64;

/// The last progress of each lease.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgressByLease {
    by: BTreeMap<LeaseId, (u64, Receipt, Arc<Progress>)>,
    /// Leases in the order in which their progress was reported.
    order: BTreeMap<u64, LeaseId>,
    reported: u64,
    bytes: usize,
    /// How many were left when those were forgotten whose lease was over.
    left: usize,
}

impl ProgressByLease {
    fn of(&self, lease: LeaseId) -> Option<&Arc<Progress>> {
        self.by.get(&lease).map(|(_, _, progress)| progress)
    }

    fn report(&mut self, receipt: Receipt, progress: Progress) {
        self.forget(receipt.lease);
        self.reported += 1;
        self.bytes += progress.output.len() + OVERHEAD;
        self.order.insert(self.reported, receipt.lease);
        self.by.insert(receipt.lease, (self.reported, receipt, Arc::new(progress)));
    }

    fn forget(&mut self, lease: LeaseId) {
        if let Some((reported, _, progress)) = self.by.remove(&lease) {
            self.order.remove(&reported);
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

/// Reported output, and room in the store, for the records of work that ends.
#[derive(Clone, Debug)]
pub(crate) struct WorkNotes {
    /// Bytes that records and attempts may take in the store; what does not fit ends without one.
    pub(crate) room: u64,
    progress: ProgressByLease,
}

impl Default for WorkNotes {
    fn default() -> Self {
        Self { room: u64::MAX, progress: ProgressByLease::default() }
    }
}

impl WorkNotes {
    /// Returns the last progress of the lease that a message is out by.
    fn of(&self, message: &Message) -> Option<&Arc<Progress>> {
        let State::Leased { lease, .. } = message.state else { return None };
        self.progress.of(lease)
    }

    /// Returns the report of work that ends: where it has no output, with the output that the holder reported so far.
    pub(crate) fn complete(&self, message: &Message, report: &Report) -> Report {
        match self.of(message) {
            Some(progress) => report.clone().or_output(&progress.output),
            None => report.clone(),
        }
    }

    /// Returns the bytes of the output that [`WorkNotes::complete`] may add.
    pub(crate) fn output_len(&self, message: &Message) -> u64 {
        self.of(message).map_or(0, |progress| progress.output.len() as u64)
    }
}

impl Broker {
    /// Notes what the holder of a lease has reported of its work so far: output that was checked to be no longer than
    /// [`REPORT_BYTES_MAX`](crate::REPORT_BYTES_MAX). If the lease ends without a report, the attempt keeps this output.
    pub fn note_progress(&mut self, receipt: Receipt, output: Arc<str>) {
        let Self { work_notes, queues, now, .. } = self;
        let progress = &mut work_notes.progress;
        progress.report(receipt, Progress { output, at: *now });
        progress
            .tidy(|receipt| queues.get(&receipt.queue).is_some_and(|queue| queue.leased(receipt).is_ok()));
    }

    /// The last progress that the holder of a lease reported.
    #[must_use]
    pub fn progress(&self, lease: LeaseId) -> Option<&Arc<Progress>> {
        self.work_notes.progress.of(lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QueueId, REPORT_BYTES_MAX, Seq};

    fn receipt(number: u64) -> Receipt {
        Receipt { queue: QueueId(1), seq: Seq(number), lease: LeaseId(number) }
    }

    fn progress(len: usize) -> Progress {
        Progress { output: "x".repeat(len).into(), at: Time(0) }
    }

    #[test]
    fn what_is_over_is_forgotten_and_what_was_reported_longest_ago_gives_way() {
        let mut told = ProgressByLease::default();
        for number in 0..10_000 {
            told.report(receipt(number), progress(10));
            told.tidy(|receipt| receipt.seq.0 + 5 > number);
            assert!(told.by.len() <= 2 * 5 + FEW + 1, "{}", told.by.len());
        }
        let each = REPORT_BYTES_MAX + OVERHEAD;
        let most = (KEPT_MAX / each) as u64;
        for number in 0..2 * most {
            told.report(receipt(number), progress(REPORT_BYTES_MAX));
            told.report(receipt(0), progress(REPORT_BYTES_MAX));
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
