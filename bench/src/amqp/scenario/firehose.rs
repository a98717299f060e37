//! How long a small publisher waits for its confirms while another publishes as fast as it can.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::amqp::finding::Better::{More, Neither};
use crate::amqp::finding::{Finding, Measure, Waits, waits};
use crate::amqp::letter::{Ledger, Order, Post};
use crate::amqp::trickle::trickle;
use crate::amqp::work::{Level, drain, publish_while};
use crate::amqp::{Stage, WINDOW};

const FIREHOSE: &str = "firehose";
const TRICKLE: &str = "trickle";
/// From one message of the trickle to the next.
const GAP: Duration = Duration::from_millis(10);
/// For 10 s.
const COUNT: u64 = 1_000;

static CONFIRM: Waits = waits!("confirm of the trickle");
static TRICKLED: Measure =
    Measure::new("messages of the trickle: came once, whole and in order", "messages", Neither);
static RATE: Measure = Measure::new("the firehose meanwhile", "messages/s", More);
static POURED: Measure =
    Measure::new("messages of the firehose: came once, whole and in order", "messages", Neither);

pub(super) fn run(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    stage.broker.declare(FIREHOSE)?;
    stage.broker.declare(TRICKLE)?;
    let mut firehose = stage.broker.source(FIREHOSE)?;
    let mut sources = [stage.broker.source(TRICKLE)?];
    let (is_over, count) = (AtomicBool::new(false), stage.same_count(COUNT));
    let (mut waits, poured, rate) = std::thread::scope(|scope| {
        let pouring = scope.spawn(|| {
            let start = Instant::now();
            let goes_on = &mut |_| !is_over.load(Relaxed);
            let poured = publish_while(&mut *firehose, &mut Post::new(0), Level::Any, WINDOW, goes_on)?;
            let count = poured.waits.len() as u64;
            Ok::<_, anyhow::Error>((count, count as f64 / start.elapsed().as_secs_f64()))
        });
        let trickled = trickle(&mut sources, GAP, count);
        is_over.store(true, Relaxed);
        let (poured, rate) = pouring.join().expect("a publisher fails without a panic")?;
        Ok::<_, anyhow::Error>((trickled?, poured, rate))
    })?;
    for (queue, count) in [(TRICKLE, count), (FIREHOSE, poured)] {
        let mut ledger = Ledger::new(Order::All);
        drain(stage.broker.taker(queue, 100)?, count, &mut |letter| ledger.enter(letter))?;
        ledger.is_complete(count)?;
        stage.broker.is_empty(queue)?;
    }
    let mut found = CONFIRM.found(&mut waits);
    found.extend([TRICKLED.is(count as f64), RATE.is(rate), POURED.is(poured as f64)]);
    Ok(found)
}
