//! What is measured, in the order of the table.

use crate::spread::Spread;
use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Measure {
    Fill,
    FillWritten,
    FillDevice,
    Own,
    OwnEach,
    Resident,
    Peak,
    Open,
    FirstLease,
    OpenPeak,
    LeaseP50,
    LeaseP99,
    LeaseAckP50,
    LeaseAckP99,
    UrgentP50,
    UrgentP99,
    Steady,
    SteadyRatio,
    SteadyBusy,
    SteadyBusyRatio,
    SteadyWritten,
    SteadyDevice,
    Drain,
    DrainLeast,
    Conserved,
}

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    More,
    Less,
    Neither,
}

/// What a child found.
pub(super) type Findings = Vec<(Measure, f64)>;

impl Measure {
    pub(super) const ALL: [Self; 25] = [
        Self::Fill,
        Self::FillWritten,
        Self::FillDevice,
        Self::Own,
        Self::OwnEach,
        Self::Resident,
        Self::Peak,
        Self::Open,
        Self::FirstLease,
        Self::OpenPeak,
        Self::LeaseP50,
        Self::LeaseP99,
        Self::LeaseAckP50,
        Self::LeaseAckP99,
        Self::UrgentP50,
        Self::UrgentP99,
        Self::Steady,
        Self::SteadyRatio,
        Self::SteadyBusy,
        Self::SteadyBusyRatio,
        Self::SteadyWritten,
        Self::SteadyDevice,
        Self::Drain,
        Self::DrainLeast,
        Self::Conserved,
    ];

    /// What it is, in which unit, and which way is better.
    pub(super) fn describe(self) -> (&'static str, &'static str, Better) {
        use Better::{Less, More, Neither};
        match self {
            Self::Fill => ("publish while filling, durable", "messages/s", More),
            Self::FillWritten => ("written per byte published, while filling", "bytes", Less),
            Self::FillDevice => {
                ("the same on the device, by all who use it, while filling", "bytes", Neither)
            }
            Self::Own => ("memory when filled, without pages of files", "MiB", Less),
            Self::OwnEach => ("the same per message, without what an empty one has", "bytes", Less),
            Self::Resident => ("resident when filled (VmRSS)", "MiB", Less),
            Self::Peak => ("peak while filling (VmHWM)", "MiB", Less),
            Self::Open => ("open after kill -9, page cache warm", "ms", Less),
            Self::FirstLease => ("open until the first lease is answered", "ms", Less),
            Self::OpenPeak => ("peak of opening (VmHWM)", "MiB", Less),
            Self::LeaseP50 => ("one lease, p50", "µs", Less),
            Self::LeaseP99 => ("one lease, p99", "µs", Less),
            Self::LeaseAckP50 => ("one lease and its durable ack, p50", "µs", Less),
            Self::LeaseAckP99 => ("one lease and its durable ack, p99", "µs", Less),
            Self::UrgentP50 => ("publish of an urgent message until it is leased, p50", "µs", Less),
            Self::UrgentP99 => ("publish of an urgent message until it is leased, p99", "µs", Less),
            Self::Steady => ("steady state: publish, lease, ack at this depth", "µs/message", Less),
            Self::SteadyRatio => ("steady state, beside the least depth", "×", Neither),
            Self::SteadyBusy => ("steady state, processor time of all threads", "µs/message", Less),
            Self::SteadyBusyRatio => ("the same, beside the least depth", "×", Neither),
            Self::SteadyWritten => ("written per byte published, steady state", "bytes", Less),
            Self::SteadyDevice => {
                ("the same on the device, by all who use it, steady state", "bytes", Neither)
            }
            Self::Drain => ("lease + ack, all levels", "messages/s", More),
            Self::DrainLeast => ("lease + ack, the three least urgent levels", "messages/s", More),
            Self::Conserved => ("came exactly once, whole and in order", "messages", Neither),
        }
    }

    /// How many times better the first value is than the second; `None` where that says nothing.
    pub(super) fn times_better(self, ours: f64, theirs: f64) -> Option<f64> {
        let times = match self.describe().2 {
            Better::More => ours / theirs,
            Better::Less => theirs / ours,
            Better::Neither => return None,
        };
        // Beside nothing at all there is no ratio.
        times.is_finite().then_some(times)
    }
}

/// The median and the 99th percentile of durations in ns, in µs.
pub(super) fn percentiles(samples: Vec<u64>) -> (f64, f64) {
    let mut spread = Spread::of(samples);
    let mut at = |part: f64| spread.percentile(part).expect("something was measured") as f64 / 1e3;
    (at(0.5), at(0.99))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_measure_once() {
        assert!(Measure::ALL.is_sorted_by(|one, next| one < next));
        assert_eq!(Measure::ALL.last(), Some(&Measure::Conserved));
    }

    #[test]
    fn percentiles_are_of_what_was_seen() {
        assert_eq!(percentiles((0..=100).rev().map(|at| at * 1_000).collect()), (50.0, 99.0));
        assert_eq!(percentiles(vec![7_000]), (7.0, 7.0));
    }
}
