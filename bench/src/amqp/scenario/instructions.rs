//! Instructions of the broker for each message, by the path it takes and by who spends them. Callgrind counts them, so a busy machine counts the same.

use anyhow::Result;

use super::{rates, single};
use crate::amqp::Stage;
use crate::amqp::finding::Better::Less;
use crate::amqp::finding::{Finding, Measure};
use crate::amqp::peer::callgrind::{self, Callgrind};

const MESSAGES: u64 = 20_000;
/// Fewer: HTTP takes many instructions, and Callgrind makes each about a hundred times slower.
const LEASES: u64 = 1_000;
/// Before anything is counted.
const WARM_UP: u64 = 2_000;

static PUBLISH: Measure =
    Measure::new("publish and confirm, 1,000 unconfirmed", "instructions/message", Less);
static DRAIN: Measure = Measure::new("deliver and acknowledge, prefetch 100", "instructions/message", Less);
static ONE: Measure = Measure::new("deliver and acknowledge, prefetch 1", "instructions/message", Less);
static SINGLE: Measure = Measure::new("publish and confirm, 1 unconfirmed", "instructions/message", Less);
static GET: Measure = Measure::new("basic.get and acknowledge", "instructions/message", Less);
static CALL: Measure =
    Measure::new("remote procedure call with direct reply-to", "instructions/message", Less);
static LEASE: Measure = Measure::new("lease, then acknowledge over HTTP", "instructions/message", Less);

/// The broker of the stage stays idle: another is started under Callgrind.
pub(super) fn run(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    let counter = Callgrind::start()?;
    let stage = &Stage { peer: stage.peer, broker: counter.broker(), plan: stage.plan };
    rates::fill(stage, "warm-up", WARM_UP)?;
    rates::empty(stage, "warm-up", 100, WARM_UP)?;
    let (count, leases) = (stage.count(MESSAGES), stage.count(LEASES));
    let mut found = Vec::new();
    let mut path = |path: &'static Measure, count: u64, work: &dyn Fn() -> Result<()>| {
        let spent = counter.count(work)?;
        let each = |group: &callgrind::Group| path.at(group.name(), spent.of(*group) as f64 / count as f64);
        found.extend(callgrind::GROUPS.iter().map(each));
        Ok::<_, anyhow::Error>(())
    };
    path(&PUBLISH, count, &|| rates::fill(stage, "many", count).map(drop))?;
    path(&DRAIN, count, &|| rates::empty(stage, "many", 100, count).map(drop))?;
    rates::fill(stage, "one-by-one", count)?;
    path(&ONE, count, &|| rates::empty(stage, "one-by-one", 1, count).map(drop))?;
    path(&SINGLE, count, &|| single::publish_one_by_one(stage, "single", count).map(drop))?;
    path(&GET, count, &|| single::get(stage, "single", count).map(drop))?;
    path(&CALL, count, &|| single::call(stage, "calls", count).map(drop))?;
    rates::fill(stage, "leases", leases)?;
    path(&LEASE, leases, &|| single::lease(stage, "leases", 1, leases).map(drop))?;
    Ok(found)
}
