//! Small sums over what was measured.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use super::peer::usage::Usage;

/// Time on a processor of this thread so far.
pub(super) fn thread_busy() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long something takes, and how much of a processor the broker needs for it.
pub(super) struct Watch {
    start: Instant,
    usage: Option<Usage>,
    busy_ns: u64,
}

pub(super) struct Took {
    pub(super) wall: Duration,
    /// `None` where the broker is no process of this machine.
    pub(super) broker_busy_ns: Option<u64>,
}

impl Watch {
    pub(super) fn start(usage: Option<Usage>) -> Result<Self> {
        let busy_ns = usage.map(Usage::busy_ns).transpose()?.unwrap_or_default();
        Ok(Self { start: Instant::now(), usage, busy_ns })
    }

    pub(super) fn stop(self) -> Result<Took> {
        let wall = self.start.elapsed();
        let busy = self.usage.map(Usage::busy_ns).transpose()?;
        Ok(Took { wall, broker_busy_ns: busy.map(|busy| busy - self.busy_ns) })
    }
}
