//! The most that the disk allows, to compare publishes with.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::amqp::Stage;
use crate::amqp::finding::Better::Neither;
use crate::amqp::finding::{Finding, Measure};
use crate::overwrite::Overwrite;
use crate::spread::Spread;

const LAST: Duration = Duration::from_secs(2);
/// Of a commit, where the broker does not say.
const COMMIT_BYTES: usize = 64 << 10;

static BYTES: Measure = Measure::new(
    "reference: bytes of each sync, as many as the broker had per commit on average (64 KiB where it does not say)",
    "bytes",
    Neither,
);
static RATE: Measure = Measure::new(
    "reference: bare overwrite + fdatasync by one thread, in a file of 64 MiB that was written before",
    "syncs/s",
    Neither,
);
static P50: Measure = Measure::new("reference: bare overwrite + fdatasync, p50", "ms", Neither);
static P99: Measure = Measure::new("reference: bare overwrite + fdatasync, p99", "ms", Neither);

/// In the directory in which brokers have theirs.
pub(super) fn overwrites(stage: &Stage<'_>, commit_bytes: Option<usize>) -> Result<Vec<Finding>> {
    let last = if stage.plan.quick { LAST / 10 } else { LAST };
    let dir = tempfile::tempdir()?;
    let mut file = Overwrite::open(&dir.path().join("bare"))?;
    let block = vec![0x5a; commit_bytes.unwrap_or(COMMIT_BYTES)];
    let (start, mut syncs) = (Instant::now(), Spread::default());
    while start.elapsed() < last {
        let before = Instant::now();
        file.write_and_sync(&block)?;
        syncs.saw(before.elapsed().as_nanos() as u64);
    }
    let rate = syncs.len() as f64 / start.elapsed().as_secs_f64();
    let mut found = vec![BYTES.is(block.len() as f64), RATE.is(rate)];
    for (measure, part) in [(&P50, 0.5), (&P99, 0.99)] {
        found.extend(syncs.percentile_ms(part).map(|ms| measure.is(ms)));
    }
    Ok(found)
}
