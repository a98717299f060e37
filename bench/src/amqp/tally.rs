//! Small sums over what was measured.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use super::peer::process::Process;

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
