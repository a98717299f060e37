//! Small sums over what was measured.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use super::peer::process::Process;

/// How long things took, ns.
#[derive(Default)]
pub(super) struct Spread(Vec<u64>);

impl Spread {
    pub(super) fn saw(&mut self, ns: u64) {
        self.0.push(ns);
    }

    pub(super) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// So large a part of them took no longer, ms; by the nearest rank. `None` when there are none.
    pub(super) fn percentile_ms(&mut self, part: f64) -> Option<f64> {
        self.0.sort_unstable();
        let rank = (self.0.len() as f64 * part).ceil() as usize;
        self.0.get(rank.max(1) - 1).map(|ns| *ns as f64 / 1e6)
    }
}

/// Time on a processor of this thread so far.
pub(super) fn thread_busy() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long something takes, and how much of a processor the broker needs for it.
pub(super) struct Watch<'a> {
    start: Instant,
    process: Option<&'a Process>,
    busy_ns: u64,
}

pub(super) struct Took {
    pub(super) wall: Duration,
    /// `None` where the broker is no process of ours.
    pub(super) broker_busy_ns: Option<u64>,
}

impl<'a> Watch<'a> {
    pub(super) fn start(process: Option<&'a Process>) -> Result<Self> {
        let busy_ns = process.map(Process::busy_ns).transpose()?.unwrap_or_default();
        Ok(Self { start: Instant::now(), process, busy_ns })
    }

    pub(super) fn stop(self) -> Result<Took> {
        let wall = self.start.elapsed();
        let busy = self.process.map(Process::busy_ns).transpose()?;
        Ok(Took { wall, broker_busy_ns: busy.map(|busy| busy - self.busy_ns) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let mut spread = Spread((1..=200).map(|ms| ms * 1_000_000).collect());
        let seen = [0.5, 0.99, 1.0].map(|part| spread.percentile_ms(part));
        assert_eq!(seen, [Some(100.0), Some(198.0), Some(200.0)]);
        assert_eq!(Spread::default().percentile_ms(0.5), None);
    }
}
