//! How well priorities are kept: inversions, and how long each level waits when more comes than can be done.

use std::time::Duration;

use anyhow::Result;

use crate::amqp::finding::Better::{Less, Neither};
use crate::amqp::finding::{Finding, Measure};
use crate::amqp::letter::Order;
use crate::amqp::paced::{Pace, Paced, Seen};
use crate::amqp::{LEVELS, Stage};

const WORK: Duration = Duration::from_micros(500);
const LAST_S: f64 = 10.0;
/// Published for each that is taken.
const OVERLOAD: f64 = 1.2;
/// To know how many are taken.
const TRIAL: u64 = 2_000;

static LOAD: Measure = Measure::new("published", "messages/s", Neither);
static COUNT: Measure = Measure::new("came once, whole, and in order within levels", "messages", Neither);
static SENT: Measure = Measure::new(
    "sent by the broker while a confirmed, more urgent one waited (inversions)",
    "messages",
    Less,
);
static SENT_MS: Measure =
    Measure::new("time for which the broker let messages be overtaken, all together", "ms", Less);
static SENT_MOST: Measure =
    Measure::new("time for which the broker let one be overtaken, at most", "ms", Less);
static BEGUN: Measure =
    Measure::new("begun by the worker while a confirmed, more urgent one waited", "messages", Less);
static BEGUN_MS: Measure =
    Measure::new("time for which messages were overtaken until the worker began, all together", "ms", Less);
static BEGUN_MOST: Measure =
    Measure::new("time for which one was overtaken until the worker began, at most", "ms", Less);

/// A prefetch, and how it is called.
struct Case {
    prefetch: u16,
    label: &'static str,
    p50: Measure,
    p99: Measure,
}

macro_rules! case {
    ($prefetch:literal) => {
        Case {
            prefetch: $prefetch,
            label: concat!("prefetch ", $prefetch),
            p50: Measure::new(
                concat!("publish until the worker begins at 120 % load, prefetch ", $prefetch, ", p50"),
                "ms",
                Less,
            ),
            p99: Measure::new(
                concat!("publish until the worker begins at 120 % load, prefetch ", $prefetch, ", p99"),
                "ms",
                Less,
            ),
        }
    };
}

static CASES: [Case; 3] = [case!(1), case!(10), case!(100)];

pub(super) fn run(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for case in &CASES {
        found.extend(one(stage, case)?);
    }
    Ok(found)
}

fn one(stage: &Stage<'_>, case: &'static Case) -> Result<Vec<Finding>> {
    let trial = stage.count(TRIAL).max(200);
    let Seen { worked_ns, .. } = pass(stage, case, "trial", Pace { count: trial, gap_ns: 0 })?;
    let rate = OVERLOAD * trial as f64 * 1e9 / worked_ns as f64;
    let last_s = if stage.plan.quick { LAST_S / 10.0 } else { LAST_S };
    let pace = Pace { count: (rate * last_s) as u64, gap_ns: (1e9 / rate) as u64 };
    let Seen { at_socket, at_worker, mut waits, .. } = pass(stage, case, "overload", pace)?;
    let at = case.label;
    let mut found = vec![
        LOAD.at(at, rate),
        COUNT.at(at, pace.count as f64),
        SENT.at(at, at_socket.inversions() as f64),
        SENT_MS.at(at, at_socket.lost_ms()),
        SENT_MOST.at(at, at_socket.lost_most_ms()),
        BEGUN.at(at, at_worker.inversions() as f64),
        BEGUN_MS.at(at, at_worker.lost_ms()),
        BEGUN_MOST.at(at, at_worker.lost_most_ms()),
    ];
    for (measure, part) in [(&case.p50, 0.5), (&case.p99, 0.99)] {
        let levels = (0..LEVELS).rev().map(|level| (level, waits[usize::from(level)].percentile_ms(part)));
        let levels: Vec<_> = levels.collect();
        found.extend(
            levels.into_iter().filter_map(|(level, ms)| Some(measure.at(format!("level {level}"), ms?))),
        );
    }
    Ok(found)
}

fn pass(stage: &Stage<'_>, case: &Case, what: &str, pace: Pace) -> Result<Seen> {
    let queue = format!("{what}-{}", case.prefetch);
    stage.broker.declare(&queue)?;
    let mut source = stage.broker.source(&queue)?;
    let mut taker = stage.broker.taker(&queue, case.prefetch)?;
    let seen = Paced::new(&mut *source, &mut *taker, Order::WithinLevels, WORK).run(pace)?;
    taker.close()?;
    stage.broker.is_empty(&queue)?;
    Ok(seen)
}
