//! One message at a time: how long each takes when nothing else is under way.

use std::time::Instant;

use anyhow::{Context, Result};

use super::rates;
use crate::amqp::Stage;
use crate::amqp::finding::Better::{Less, More};
use crate::amqp::finding::{Finding, Measure};
use crate::amqp::letter::{Ledger, Letter, Order, Post};
use crate::amqp::peer::Peer;
use crate::amqp::tally::{Took, Watch};
use crate::amqp::wire::http::Http;
use crate::amqp::work::{Level, drain, publish_while};
use crate::spread::Spread;

const MESSAGES: u64 = 20_000;
/// An acknowledgement over HTTP is answered once it is on the disk.
const LEASES: u64 = 10_000;
/// Before anything is measured.
const WARM_UP: u64 = 200;

/// One way to do one message after the other.
struct Case {
    rate: Measure,
    broker: Measure,
    p50: Measure,
    p99: Measure,
}

macro_rules! case {
    ($what:literal) => {
        Case {
            rate: Measure::new($what, "messages/s", More),
            broker: Measure::new(concat!($what, ": processor time of the broker"), "µs/message", Less),
            p50: Measure::new(concat!($what, ": round trip, p50"), "µs", Less),
            p99: Measure::new(concat!($what, ": round trip, p99"), "µs", Less),
        }
    };
}

static PUBLISH: Case = case!("publish and confirm, 1 unconfirmed");
static GET: Case =
    case!("basic.get and acknowledge, the next get in the same write as the acknowledgement of the last");
static CALL: Case = case!("remote procedure call with direct reply-to, transient, no confirms");
static LEASE: Case = case!("lease, then acknowledge over HTTP, 1 connection");
static LEASE_FOUR: Case = case!("lease, then acknowledge over HTTP, 4 connections");
static LEASE_MANY: Case = case!("lease, then acknowledge over HTTP, 32 connections");

impl Case {
    fn found(&'static self, took: &Took, mut trips: Spread) -> Vec<Finding> {
        let count = trips.len() as f64;
        let mut found = vec![self.rate.is(count / took.wall.as_secs_f64())];
        found.extend(took.broker_busy_ns.map(|ns| self.broker.is(ns as f64 / 1e3 / count)));
        for (measure, part) in [(&self.p50, 0.5), (&self.p99, 0.99)] {
            found.extend(trips.percentile(part).map(|ns| measure.is(ns as f64 / 1e3)));
        }
        found
    }
}

pub(super) fn run(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    let count = stage.count(MESSAGES);
    publish_one_by_one(stage, "warm-up", WARM_UP)?;
    take_all(stage, "warm-up", WARM_UP)?;
    let (took, trips) = publish_one_by_one(stage, "single", count)?;
    let mut found = PUBLISH.found(&took, trips);
    if !stage.peer.is_amqp() || stage.peer == Peer::Sink {
        take_all(stage, "single", count)?;
        return Ok(found);
    }
    let (took, trips) = get(stage, "single", count)?;
    found.extend(GET.found(&took, trips));
    call(stage, "calls", WARM_UP)?;
    let (took, trips) = call(stage, "calls", count)?;
    found.extend(CALL.found(&took, trips));
    // Others speak no HTTP of ours.
    if stage.peer == Peer::Overtake {
        for (case, connections) in [(&LEASE, 1), (&LEASE_FOUR, 4), (&LEASE_MANY, 32)] {
            let (queue, each) = (format!("leases-{connections}"), stage.count(LEASES) / connections);
            rates::fill(stage, &queue, connections * each)?;
            let (took, trips) = lease(stage, &queue, connections, each)?;
            found.extend(case.found(&took, trips));
        }
    }
    Ok(found)
}

pub(super) fn publish_one_by_one(stage: &Stage<'_>, queue: &str, count: u64) -> Result<(Took, Spread)> {
    stage.broker.declare(queue)?;
    let mut source = stage.broker.source(queue)?;
    let watch = Watch::start(stage.broker.usage())?;
    let goes_on = &mut |sent| sent < count;
    let published = publish_while(&mut *source, &mut Post::new(0), Level::Any, 1, goes_on)?;
    Ok((watch.stop()?, published.waits))
}

fn take_all(stage: &Stage<'_>, queue: &str, count: u64) -> Result<()> {
    let mut ledger = Ledger::new(Order::All);
    drain(stage.broker.taker(queue, 100)?, count, &mut |letter| ledger.enter(letter))?;
    ledger.is_complete(count)?;
    stage.broker.is_empty(queue)
}

pub(super) fn get(stage: &Stage<'_>, queue: &str, count: u64) -> Result<(Took, Spread)> {
    let (mut getter, mut ledger) = (stage.broker.getter(queue)?, Ledger::new(Order::All));
    let watch = Watch::start(stage.broker.usage())?;
    let trips = trips(count, || getter.get(&mut |delivery| ledger.enter(Letter::read(&delivery)?)))?;
    let took = watch.stop()?;
    getter.close()?;
    ledger.is_complete(count)?;
    stage.broker.is_empty(queue)?;
    Ok((took, trips))
}

/// One connection calls, a second one replies.
pub(super) fn call(stage: &Stage<'_>, queue: &str, count: u64) -> Result<(Took, Spread)> {
    stage.broker.declare(queue)?;
    let mut responder = stage.broker.responder(queue)?;
    let (mut caller, mut post) = (stage.broker.caller(queue)?, Post::new(0));
    let mut ledger = Ledger::new(Order::WithinLevels);
    let watch = Watch::start(stage.broker.usage())?;
    let trips = std::thread::scope(|scope| {
        let responding = scope.spawn(|| responder.serve(count));
        let trips = trips(count, || {
            caller.call(post.write(0), &mut |delivery| ledger.enter(Letter::read(&delivery)?))
        });
        responding.join().expect("a responder fails without a panic")?;
        trips
    })?;
    let took = watch.stop()?;
    caller.close()?;
    responder.close()?;
    ledger.is_complete(count)?;
    stage.broker.is_empty(queue)?;
    Ok((took, trips))
}

/// Leases and acknowledges so many messages on each of these connections.
pub(super) fn lease(stage: &Stage<'_>, queue: &str, connections: u64, each: u64) -> Result<(Took, Spread)> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let mut http = stage.broker.http()?.context("it does not speak HTTP")?;
        http.use_token()?;
        clients.push(http);
    }
    let watch = Watch::start(stage.broker.usage())?;
    let (mut ledger, mut trips) = (Ledger::new(Order::All), Spread::default());
    std::thread::scope(|scope| {
        let leasing = |http| scope.spawn(move || lease_each(http, queue, each));
        for leasing in clients.into_iter().map(leasing).collect::<Vec<_>>() {
            let (its, took) = leasing.join().expect("a client fails without a panic")?;
            ledger = std::mem::replace(&mut ledger, Ledger::new(Order::All)).join(&its)?;
            trips.join(took);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    let took = watch.stop()?;
    ledger.is_complete(connections * each)?;
    stage.broker.is_empty(queue)?;
    Ok((took, trips))
}

fn lease_each(mut http: Http, queue: &str, count: u64) -> Result<(Ledger, Spread)> {
    let mut ledger = Ledger::new(Order::All);
    let trips =
        trips(count, || http.lease_and_ack(queue, &mut |delivery| ledger.enter(Letter::read(&delivery)?)))?;
    Ok((ledger, trips))
}

/// Does it so often, one after the other: how long each took.
fn trips(count: u64, mut once: impl FnMut() -> Result<()>) -> Result<Spread> {
    let mut trips = Spread::default();
    for _ in 0..count {
        let start = Instant::now();
        once()?;
        trips.saw(start.elapsed().as_nanos() as u64);
    }
    Ok(trips)
}
