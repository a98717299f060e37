//! A queue in a thousand places: how long a more urgent message had been there when a less urgent one was leased, and how soon a broker that begins serves it.

mod drain;
mod process;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use overtake_engine::{Content, Engine, LeaseRequest, NewMessage, Target};
use overtake_lane::{Given, Outcome, PartitionMode, Partitions, Settings};
use overtake_valkey::engine::ClusterEngine;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::Plan;
use crate::report::{Cell, Grid, Line};
use crate::shards::{Durability, Shards};

const QUEUE: &str = "gaps";
/// Places of the queue.
const PLACES: u16 = 1_000;
/// Bytes of a message: its number, and nothing.
const BODY_LEN: usize = 256;
/// Messages of a publish, which are in one place.
const BATCH: u32 = 10;
/// Between two publishes: 10,000 messages a second.
const TICK: Duration = Duration::from_millis(1);
/// Whoever leases, each one message after the other.
const CALLERS: usize = 4;
/// Messages that may be out at once, where that is limited.
const MAX_ACTIVE: u32 = 64;
/// Brokers that are made anew.
const STARTS: usize = 10;

/// What happened when.
enum Event {
    /// A message of this level was confirmed.
    Confirmed(u32, u8),
    /// A lease was asked for that gave these.
    Leased(Vec<(u32, u8)>),
}

type Events = Arc<Mutex<Vec<(Instant, Event)>>>;

fn message(queue: Arc<str>, number: u32, level: u8) -> NewMessage {
    let mut body = vec![0; BODY_LEN];
    body[..4].copy_from_slice(&number.to_le_bytes());
    body[4] = level;
    let content = Content { body: body.into(), ..Content::default() };
    NewMessage {
        to: Target::Queue(queue),
        priority: Given::Number(level.into()),
        content,
        ..NewMessage::default()
    }
}

fn number_of(body: &Bytes) -> (u32, u8) {
    let number = body[..4].try_into().expect("a number is in front");
    (u32::from_le_bytes(number), body[4])
}

/// Of each level as many, in no order (Fibonacci hashing).
fn level_of(number: u32) -> u8 {
    ((u64::from(number.wrapping_mul(2_654_435_769)) * 10) >> 32) as u8
}

/// Settings of a queue in so many places.
fn in_places(count: u16) -> Settings {
    let partitions = match count {
        1 => Partitions::default(),
        count => Partitions { mode: PartitionMode::Hash, count, ..Partitions::default() },
    };
    Settings { partitions, ..Settings::default() }
}

async fn publish(broker: Arc<ClusterEngine>, events: Events, count: u32) -> Result<()> {
    let (mut ticks, mut under_way) = (interval(TICK), JoinSet::new());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for first in (0..count).step_by(BATCH as usize) {
        ticks.tick().await;
        let levels: Vec<_> = (first..first + BATCH).map(|number| (number, level_of(number))).collect();
        let (broker, events) = (Arc::clone(&broker), Arc::clone(&events));
        under_way.spawn(async move {
            broker
                .publish(
                    levels.iter().map(|(number, level)| message(QUEUE.into(), *number, *level)).collect(),
                )
                .await?;
            let now = Instant::now();
            let confirmed = levels.into_iter().map(|(number, level)| (now, Event::Confirmed(number, level)));
            events.lock().expect("nobody panicked").extend(confirmed);
            anyhow::Ok(())
        });
    }
    while let Some(done) = under_way.join_next().await {
        done??;
    }
    Ok(())
}

async fn lease(broker: Arc<ClusterEngine>, events: Events, is_over: Arc<AtomicBool>) -> Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let leased = broker.lease(LeaseRequest::new(QUEUE.into(), 1)).await?;
        let numbers = leased.iter().map(|one| number_of(&one.content.body)).collect();
        events.lock().expect("nobody panicked").push((asked, Event::Leased(numbers)));
        broker.settle(leased.iter().map(|one| one.receipt).collect(), Outcome::Ack).await?;
    }
    Ok(())
}

/// For each message that was leased: how long before its lease was asked for something more urgent had been confirmed that was asked for later.
fn gaps(mut events: Vec<(Instant, Event)>) -> Vec<Duration> {
    events.sort_by_key(|(at, _)| *at);
    let (mut waiting, mut gaps) = (HashMap::<u32, (u8, Instant)>::new(), Vec::new());
    let (mut by_level, mut taken) = (vec![BTreeSet::new(); 10], BTreeSet::new());
    for (at, event) in events {
        match event {
            Event::Confirmed(number, level) if !taken.contains(&number) => {
                waiting.insert(number, (level, at));
                by_level[usize::from(level)].insert((at, number));
            }
            Event::Confirmed(..) => {}
            Event::Leased(numbers) => {
                for (number, _) in &numbers {
                    taken.insert(*number);
                    if let Some((level, since)) = waiting.remove(number) {
                        by_level[usize::from(level)].remove(&(since, *number));
                    }
                }
                for (_, level) in numbers {
                    let above = by_level[usize::from(level) + 1..].iter().filter_map(BTreeSet::first);
                    let oldest = above.map(|(since, _)| *since).min();
                    gaps.push(oldest.map_or(Duration::ZERO, |since| at - since));
                }
            }
        }
    }
    gaps.sort_unstable();
    gaps
}

/// What was found: gaps in order, how long it took, and how long brokers took to serve, in order.
struct Found {
    gaps: Vec<Duration>,
    took: Duration,
    published: u32,
    starts: Vec<Duration>,
}

async fn found(seconds: u32, max_active: u32) -> Result<Found> {
    let shards = Shards::start(1, Durability::EverySecond).await?;
    let [one, other] = [Arc::new(shards.engine().await?), Arc::new(shards.engine().await?)];
    one.declare_queue(QUEUE, Settings { max_active, ..in_places(PLACES) }).await?;
    let (events, is_over) = (Events::default(), Arc::new(AtomicBool::new(false)));
    let mut leasing = JoinSet::new();
    for _ in 0..CALLERS {
        leasing.spawn(lease(Arc::clone(&other), Arc::clone(&events), Arc::clone(&is_over)));
    }
    let published = seconds * 1_000 * BATCH;
    let begun = Instant::now();
    publish(Arc::clone(&one), Arc::clone(&events), published).await?;
    let took = begun.elapsed();
    is_over.store(true, Ordering::Relaxed);
    while let Some(done) = leasing.join_next().await {
        done??;
    }
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let anew = shards.engine().await?;
        anew.lease(LeaseRequest::new(QUEUE.into(), 1)).await?;
        starts.push(begun.elapsed());
        anew.close().await;
    }
    starts.sort_unstable();
    for broker in [one, other] {
        broker.close().await;
    }
    let events = std::mem::take(&mut *events.lock().expect("nobody panicked"));
    Ok(Found { gaps: gaps(events), took, published, starts })
}

fn line(what: &'static str, unit: &'static str, value: f64) -> Line {
    Line { what, unit, who: "", is_reference: false, cells: vec![Some(Cell { value, times_better: None })] }
}

fn gap_lines(measure: impl Fn(u32) -> Found) -> Vec<Line> {
    let Found { gaps, took, published, starts } = measure(0);
    let capped = measure(MAX_ACTIVE);
    let ms = |all: &[Duration], part: f64| all[((all.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    let passed_over = gaps.iter().filter(|gap| !gap.is_zero()).count();
    let rate = |count: usize| count as f64 / took.as_secs_f64();
    let lines = [
        ("published", "messages a second", rate(published as usize)),
        ("leased, one at a time by four", "messages a second", rate(gaps.len())),
        (
            "the same with an exact max_active of 64 over all places",
            "messages a second",
            capped.gaps.len() as f64 / capped.took.as_secs_f64(),
        ),
        ("of those without while something more urgent was there", "messages in all", passed_over as f64),
        ("how long that had been there, 99 % of all that was leased", "ms", ms(&gaps, 0.99)),
        ("how long that had been there, 99.9 %", "ms", ms(&gaps, 0.999)),
        ("how long that had been there, the longest", "ms", ms(&gaps, 1.0)),
        ("a broker that is made anew, until its first lease: median", "ms", ms(&starts, 0.5)),
        ("a broker that is made anew, until its first lease: the longest", "ms", ms(&starts, 1.0)),
    ];
    lines.into_iter().map(|(what, unit, value)| line(what, unit, value)).collect()
}

pub(crate) fn run(plan: Plan) -> Grid {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut lines = Vec::new();
    if plan.wants("gaps") {
        lines.extend(gap_lines(|max_active: u32| {
            let found = runtime.block_on(found(if plan.quick { 2 } else { 20 }, max_active));
            found.unwrap_or_else(|why| panic!("{why:#}"))
        }));
    }
    if plan.wants("starts") {
        lines.extend(runtime.block_on(process::lines(plan)).unwrap_or_else(|why| panic!("{why:#}")));
    }
    if plan.wants("drained") {
        lines.extend(runtime.block_on(drain::lines(plan)).unwrap_or_else(|why| panic!("{why:#}")));
    }
    Grid { columns: vec![String::new()], lines, notes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_since_when_something_more_urgent_was_there() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let events = vec![
            (at(1), Event::Confirmed(1, 9)),
            (at(2), Event::Confirmed(2, 5)),
            (at(5), Event::Leased(vec![(2, 5)])),
            (at(6), Event::Leased(vec![(1, 9)])),
            // Asked for before it was confirmed.
            (at(7), Event::Leased(vec![(3, 1)])),
            (at(8), Event::Confirmed(3, 1)),
        ];
        assert_eq!(gaps(events), [0, 0, 4].map(Duration::from_millis));
    }
}
