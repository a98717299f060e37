//! Memory of clients that do nothing, once they are connected and after a burst of work, beyond that of a broker that has worked.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::amqp::finding::Better::{Less, Neither};
use crate::amqp::finding::{Finding, Measure};
use crate::amqp::letter::{Ledger, Letter, Order, Post};
use crate::amqp::wire::Delivery;
use crate::amqp::wire::amqp::Resting;
use crate::amqp::{BODY_LEN, Stage};

const CONNECTIONS: u64 = 10_000;
/// Until a broker has put away what opening took.
const SETTLE: Duration = Duration::from_secs(3);
const QUEUE: &str = "burst";
/// Bursts before anything is measured, of as many connections that end: memory that the broker keeps for itself is not charged to connections.
const FIRST_BURSTS: u64 = 100;
/// Messages that each connection publishes and gets at once, and bytes of each.
const BURST: u64 = 100;
const BURST_LEN: usize = 4 << 10;

static COUNT: Measure = Measure::new("idle connections", "connections", Neither);
static BEFORE: Measure = Measure::new("resident without any, once it has worked (VmRSS)", "MiB", Less);
static AFTER: Measure = Measure::new("resident with all of them (goal 300)", "MiB", Less);
static EACH: Measure = Measure::new("resident for each", "KiB", Less);
static OPEN: Measure = Measure::new("opened one after the other", "µs each", Less);
static BURST_EACH: Measure = Measure::new("resident for each after a burst (goal 16)", "KiB", Less);
static BURST_TOOK: Measure = Measure::new(
    "burst, one connection after the other: 100 messages of 4 KiB published, confirmed, consumed, acknowledged",
    "ms each",
    Less,
);

pub(super) fn run(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    // Nothing to be measured on another machine.
    let Some(usage) = stage.broker.usage() else { return Ok(Vec::new()) };
    let count = stage.same_count(CONNECTIONS);
    stage.broker.declare(QUEUE)?;
    let mut bursts = Bursts::new();
    for _ in 0..FIRST_BURSTS {
        drop(bursts.of(stage.broker.idle()?)?);
    }
    std::thread::sleep(SETTLE);
    let before = usage.resident()?;
    let (start, mut open) = (Instant::now(), Vec::new());
    for at in 0..count {
        open.push(stage.broker.idle().with_context(|| format!("connection {at}"))?);
    }
    let took = start.elapsed();
    std::thread::sleep(SETTLE);
    let after = usage.resident()?;
    let start = Instant::now();
    let burst = |(at, idle)| bursts.of(idle).with_context(|| format!("burst of connection {at}"));
    let open = open.into_iter().enumerate().map(burst).collect::<Result<Vec<_>>>()?;
    let burst_took = start.elapsed();
    stage.broker.is_empty(QUEUE)?;
    std::thread::sleep(SETTLE);
    let after_bursts = usage.resident()?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let each = |bytes: u64| bytes.saturating_sub(before) as f64 / 1024.0 / count as f64;
    Ok(vec![
        COUNT.is(open.len() as f64),
        BEFORE.is(mib(before)),
        AFTER.is(mib(after)),
        EACH.is(each(after)),
        OPEN.is(took.as_secs_f64() * 1e6 / count as f64),
        BURST_EACH.is(each(after_bursts)),
        BURST_TOOK.is(burst_took.as_secs_f64() * 1e3 / count as f64),
    ])
}

/// The bursts of all connections, one after the other.
struct Bursts {
    post: Post,
    ledger: Ledger,
    bodies: Vec<Vec<u8>>,
}

impl Bursts {
    fn new() -> Self {
        Self { post: Post::new(0), ledger: Ledger::new(Order::All), bodies: Vec::new() }
    }

    fn of(&mut self, idle: Resting) -> Result<Resting> {
        let Self { post, ledger, bodies } = self;
        let published = ledger.count() + BURST;
        bodies.clear();
        bodies.extend((0..BURST).map(|_| post.write(0).repeat(BURST_LEN / BODY_LEN)));
        let mut all = Ok(());
        let idle = idle.burst(QUEUE, bodies, &mut |delivery| {
            if all.is_ok() {
                all = read(&delivery).and_then(|letter| ledger.enter(letter));
            }
        })?;
        all?;
        ledger.is_complete(published)?;
        Ok(idle)
    }
}

/// The letter that fills the body, again and again.
fn read(delivery: &Delivery<'_>) -> Result<Letter> {
    ensure!(delivery.body.len() == BURST_LEN, "a body of {} bytes came", delivery.body.len());
    let mut letters =
        delivery.body.chunks(BODY_LEN).map(|body| Letter::read(&Delivery { body, ..*delivery }));
    let first = letters.next().context("an empty body")??;
    for letter in letters {
        ensure!(letter? == first, "the body of message {} is not what was published", first.number);
    }
    Ok(first)
}
