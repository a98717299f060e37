//! Many connections that publish a little each.

use std::time::Duration;

use anyhow::Result;

use crate::amqp::Stage;
use crate::amqp::finding::Better::{Less, Neither};
use crate::amqp::finding::{Finding, Measure, Waits, waits};
use crate::amqp::letter::{Ledger, Letter, Order};
use crate::amqp::peer::usage::Usage;
use crate::amqp::tally::Watch;
use crate::amqp::trickle::trickle;
use crate::amqp::work::drain;

const QUEUE: &str = "slow";
const CONNECTIONS: u64 = 1_000;
/// Of each connection, from one message to the next.
const GAP: Duration = Duration::from_secs(1);
/// Of each connection.
const MESSAGES: u64 = 10;

static COUNT: Measure = Measure::new("confirmed; came once, whole and in order", "messages", Neither);
static CONFIRM: Waits = waits!("publish until confirmed");
static BROKER: Measure = Measure::new("processor time of the broker", "µs/message", Less);
static EACH: Measure =
    Measure::new("resident for each connection beyond before, with the queue empty again", "KiB", Less);

pub(super) fn run(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    stage.broker.declare(QUEUE)?;
    let usage = stage.broker.usage();
    let before = usage.map(Usage::resident).transpose()?;
    let sources = (0..CONNECTIONS).map(|_| stage.broker.source(QUEUE)).collect::<Result<Vec<_>>>();
    let (mut sources, count) = (sources?, CONNECTIONS * stage.same_count(MESSAGES));
    let watch = Watch::start(usage)?;
    let mut waits = trickle(&mut sources, GAP / CONNECTIONS as u32, count)?;
    let took = watch.stop()?;
    take_all(stage, count)?;
    let mut found = vec![COUNT.is(waits.len() as f64)];
    found.extend(CONFIRM.found(&mut waits));
    found.extend(took.broker_busy_ns.map(|ns| BROKER.is(ns as f64 / 1e3 / count as f64)));
    if let Some((usage, before)) = usage.zip(before) {
        let more = usage.resident()?.saturating_sub(before);
        found.push(EACH.is(more as f64 / 1024.0 / CONNECTIONS as f64));
    }
    Ok(found)
}

/// What each connection published must come in order: it is a stream of its own.
fn take_all(stage: &Stage<'_>, count: u64) -> Result<()> {
    let mut ledgers: Vec<_> = (0..CONNECTIONS).map(|_| Ledger::new(Order::All)).collect();
    drain(stage.broker.taker(QUEUE, 100)?, count, &mut |letter| {
        let ledger =
            ledgers.get_mut((letter.number % CONNECTIONS) as usize).expect("a ledger for each connection");
        ledger.enter(Letter { number: letter.number / CONNECTIONS, ..letter })
    })?;
    ledgers.iter().try_for_each(|ledger| ledger.is_complete(count / CONNECTIONS))?;
    stage.broker.is_empty(QUEUE)
}
