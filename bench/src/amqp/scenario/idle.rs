//! What clients cost that do nothing.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::amqp::Stage;
use crate::amqp::finding::Better::{Less, Neither};
use crate::amqp::finding::{Finding, Measure};

const CONNECTIONS: u64 = 10_000;
/// Until a broker has put away what opening took.
const SETTLE: Duration = Duration::from_secs(3);

static COUNT: Measure = Measure::new("idle connections", "connections", Neither);
static BEFORE: Measure = Measure::new("resident without any (VmRSS)", "MiB", Less);
static AFTER: Measure = Measure::new("resident with all of them (goal 300)", "MiB", Less);
static EACH: Measure = Measure::new("resident for each", "KiB", Less);
static OPEN: Measure = Measure::new("opened one after the other", "µs each", Less);

pub(super) fn run(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    let process = stage.broker.process().context("whose memory?")?;
    let count = stage.same_count(CONNECTIONS);
    let before = process.resident()?;
    let (start, mut open) = (Instant::now(), Vec::new());
    for at in 0..count {
        open.push(stage.broker.idle().with_context(|| format!("connection {at}"))?);
    }
    let took = start.elapsed();
    std::thread::sleep(SETTLE);
    let after = process.resident()?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Ok(vec![
        COUNT.is(open.len() as f64),
        BEFORE.is(mib(before)),
        AFTER.is(mib(after)),
        EACH.is(after.saturating_sub(before) as f64 / 1024.0 / count as f64),
        OPEN.is(took.as_secs_f64() * 1e6 / count as f64),
    ])
}
