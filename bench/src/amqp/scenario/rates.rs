//! How many messages in a second: in, out, and through.

use std::time::Duration;

use anyhow::{Context, Result};

use super::disk;
use crate::amqp::Stage;
use crate::amqp::finding::Better::{Less, More, Neither};
use crate::amqp::finding::{Finding, Measure, Waits, waits};
use crate::amqp::letter::{Ledger, Order, Post};
use crate::amqp::peer::Peer;
use crate::amqp::tally::{Took, Watch};
use crate::amqp::wire::Source;
use crate::amqp::work::{Level, Published, drain, publish};
use crate::spread::Spread;

const MESSAGES: u64 = 500_000;
/// One after the other takes longer.
const ONE_BY_ONE: u64 = 100_000;
/// Publishers to one queue at once.
const CONNECTIONS: u64 = 4;
/// Before anything is measured.
const WARM_UP: u64 = 20_000;

/// A rate, with what a message costs on either side.
struct Rate {
    rate: Measure,
    client: Measure,
    broker: Measure,
    count: Measure,
}

macro_rules! rate {
    ($what:literal $(, $goal:literal)?) => {
        Rate {
            rate: Measure::new(concat!($what $(, " (goal ", $goal, ")")?), "messages/s", More),
            client: Measure::new(concat!($what, ": processor time of the client"), "µs/message", Neither),
            broker: Measure::new(concat!($what, ": processor time of the broker"), "µs/message", Less),
            count: Measure::new(concat!($what, ": came once, whole and in order"), "messages", Neither),
        }
    };
}

static PUBLISH: Rate = rate!("publish and confirm", "400 k");
static PUBLISH_WAIT: Waits = waits!("publish until confirmed, 1,000 unconfirmed");
static FIRST: Rate = rate!("publish and confirm, right after its start");
static FIRST_WAIT: Waits = waits!("publish until confirmed, right after its start");
static FOUR: Rate = rate!("publish and confirm, four connections to one queue at once");
static FOUR_WAIT: Waits =
    waits!("publish until confirmed, four connections to one queue at once, 1,000 unconfirmed each");
static DRAIN: Rate = rate!("drain at prefetch 100", "200 k");
static ONE: Rate = rate!("drain at prefetch 1", "25 k");
static THROUGH: Rate = rate!("end to end", "200 k");

impl Rate {
    fn found(&'static self, count: u64, took: &Took, client: Duration) -> Vec<Finding> {
        let each = |ns: u64| ns as f64 / 1e3 / count as f64;
        let mut found = vec![
            self.rate.is(count as f64 / took.wall.as_secs_f64()),
            self.client.is(each(client.as_nanos() as u64)),
        ];
        found.extend(took.broker_busy_ns.map(|busy| self.broker.is(each(busy))));
        found.push(self.count.is(count as f64));
        found
    }
}

pub(super) fn publish_and_drain(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    let count = stage.count(MESSAGES);
    // The broker's memory grows meanwhile: the system clears each page of it.
    let (took, Published { busy, mut waits }) = fill(stage, "first", count)?;
    let mut found = FIRST.found(count, &took, busy);
    found.extend(FIRST_WAIT.found(&mut waits));
    empty(stage, "first", 100, count)?;
    let before = stage.broker.commits()?;
    let (took, Published { busy, mut waits }) = fill(stage, "many", count)?;
    let commit_bytes = stage.broker.commits()?.zip(before).and_then(|(now, before)| now.mean_bytes(before));
    found.extend(PUBLISH.found(count, &took, busy));
    found.extend(PUBLISH_WAIT.found(&mut waits));
    if matches!(stage.peer, Peer::Overtake | Peer::Given) {
        found.extend(disk::overwrites(stage, commit_bytes)?);
    }
    let (took, busy) = empty(stage, "many", 100, count)?;
    found.extend(DRAIN.found(count, &took, busy));
    let count = stage.count(ONE_BY_ONE);
    fill(stage, "one-by-one", count)?;
    let (took, busy) = empty(stage, "one-by-one", 1, count)?;
    found.extend(ONE.found(count, &took, busy));
    found.extend(four(stage, "four", stage.count(MESSAGES) / CONNECTIONS)?);
    Ok(found)
}

/// Publishes so many messages to a new queue.
pub(super) fn fill(stage: &Stage<'_>, queue: &str, count: u64) -> Result<(Took, Published)> {
    stage.broker.declare(queue)?;
    let mut source = stage.broker.source(queue)?;
    let watch = Watch::start(stage.broker.usage())?;
    let published = publish(&mut *source, &mut Post::new(0), Level::Any, count)?;
    Ok((watch.stop()?, published))
}

/// So many from each connection, a stream each.
fn four(stage: &Stage<'_>, queue: &str, count: u64) -> Result<Vec<Finding>> {
    stage.broker.declare(queue)?;
    let sources = (0..CONNECTIONS).map(|_| stage.broker.source(queue)).collect::<Result<Vec<_>>>()?;
    let watch = Watch::start(stage.broker.usage())?;
    let (mut busy, mut waits) = (Duration::ZERO, Spread::default());
    std::thread::scope(|scope| {
        let publishing = |(stream, mut source): (u8, Box<dyn Source>)| {
            scope.spawn(move || publish(&mut *source, &mut Post::new(stream), Level::Any, count))
        };
        let publishers: Vec<_> = (0..).zip(sources).map(publishing).collect();
        for publisher in publishers {
            let published = publisher.join().expect("a publisher fails without a panic")?;
            busy += published.busy;
            waits.join(published.waits);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    let took = watch.stop()?;
    // What the sink makes up is of one stream.
    if stage.peer != Peer::Sink {
        let mut ledgers: Vec<_> = (0..CONNECTIONS).map(|_| Ledger::new(Order::All)).collect();
        drain(stage.broker.taker(queue, 100)?, count * CONNECTIONS, &mut |letter| {
            ledgers.get_mut(usize::from(letter.stream)).context("of no stream")?.enter(letter)
        })?;
        ledgers.iter().try_for_each(|ledger| ledger.is_complete(count))?;
        stage.broker.is_empty(queue)?;
    }
    let mut found = FOUR.found(count * CONNECTIONS, &took, busy);
    found.extend(FOUR_WAIT.found(&mut waits));
    Ok(found)
}

/// Takes and acknowledges all messages of a queue, of which there are so many.
pub(super) fn empty(stage: &Stage<'_>, queue: &str, prefetch: u16, count: u64) -> Result<(Took, Duration)> {
    let mut ledger = Ledger::new(Order::All);
    let watch = Watch::start(stage.broker.usage())?;
    let taker = stage.broker.taker(queue, prefetch)?;
    let busy = drain(taker, count, &mut |letter| ledger.enter(letter))?;
    let took = watch.stop()?;
    ledger.is_complete(count)?;
    stage.broker.is_empty(queue)?;
    Ok((took, busy))
}

pub(super) fn end_to_end(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    through(stage, "warm-up", stage.count(WARM_UP))?;
    let count = stage.count(MESSAGES);
    let (took, busy) = through(stage, "through", count)?;
    Ok(THROUGH.found(count, &took, busy))
}

fn through(stage: &Stage<'_>, queue: &str, count: u64) -> Result<(Took, Duration)> {
    stage.broker.declare(queue)?;
    let mut source = stage.broker.source(queue)?;
    let taker = stage.broker.taker(queue, 100)?;
    let mut ledger = Ledger::new(Order::WithinLevels);
    let watch = Watch::start(stage.broker.usage())?;
    let busy = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publish(&mut *source, &mut Post::new(0), Level::Any, count));
        let drained = drain(taker, count, &mut |letter| ledger.enter(letter));
        let published = publishing.join().expect("a publisher fails without a panic");
        Ok::<_, anyhow::Error>(published?.busy + drained?)
    })?;
    let took = watch.stop()?;
    ledger.is_complete(count)?;
    stage.broker.is_empty(queue)?;
    Ok((took, busy))
}
