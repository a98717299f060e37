//! A queue whose messages are spread one by one over its places, leased in batches: what one claim has to gather.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use overtake_engine::{DeleteOnly, Engine, LeaseRequest};
use overtake_lane::{Outcome, Receipt};
use overtake_valkey::engine::ClusterEngine;
use tokio::task::JoinSet;

use super::{CALLERS, in_places, message};
use crate::Plan;
use crate::report::Line;
use crate::shards::{Durability, Shards};

/// Numbers of places.
const PLACES: [u16; 4] = [1, 16, 100, 1_000];
/// Messages of a lease.
const BATCH: u32 = 100;
/// Publishes under way.
const PUBLISHERS: u32 = 256;

/// How long it took to lease all, and to acknowledge all.
struct Drained {
    lease: Duration,
    ack: Duration,
}

async fn publish(broker: Arc<ClusterEngine>, queue: Arc<str>, numbers: Vec<u32>) -> Result<()> {
    for number in numbers {
        broker.publish(vec![message(Arc::clone(&queue), number, 4)]).await?;
    }
    Ok(())
}

async fn lease(broker: Arc<ClusterEngine>, queue: Arc<str>) -> Result<Vec<Vec<Receipt>>> {
    let mut all = Vec::new();
    loop {
        let leased = broker.lease(LeaseRequest::new(Arc::clone(&queue), BATCH)).await?;
        if leased.is_empty() {
            return Ok(all);
        }
        all.push(leased.iter().map(|one| one.receipt).collect());
    }
}

async fn ack(broker: Arc<ClusterEngine>, batches: Vec<Vec<Receipt>>) -> Result<()> {
    for batch in batches {
        broker.settle(batch, Outcome::Ack).await?;
    }
    Ok(())
}

async fn all<T: Send + 'static>(
    running: impl IntoIterator<Item = impl Future<Output = Result<T>> + Send + 'static>,
) -> Result<Vec<T>> {
    let (mut running, mut all) = (running.into_iter().collect::<JoinSet<_>>(), Vec::new());
    while let Some(done) = running.join_next().await {
        all.push(done??);
    }
    Ok(all)
}

async fn drained(shards: &Shards, places: u16, count: u32) -> Result<Drained> {
    let broker = Arc::new(shards.engine().await?);
    let queue: Arc<str> = format!("drained-{places}").into();
    broker.declare_queue(&queue, in_places(places)).await?;
    let numbers = |first: u32| (first..count).step_by(PUBLISHERS as usize).collect();
    all((0..PUBLISHERS).map(|first| publish(Arc::clone(&broker), Arc::clone(&queue), numbers(first))))
        .await?;
    let begun = Instant::now();
    let leased = all((0..CALLERS).map(|_| lease(Arc::clone(&broker), Arc::clone(&queue)))).await?;
    let lease = begun.elapsed();
    let begun = Instant::now();
    all(leased.into_iter().map(|batches| ack(Arc::clone(&broker), batches))).await?;
    let ack = begun.elapsed();
    broker.delete_queue(&queue, DeleteOnly::default()).await?;
    broker.close().await;
    Ok(Drained { lease, ack })
}

pub(super) async fn lines(plan: Plan) -> Result<Vec<Line>> {
    let shards = Shards::start(1, Durability::EverySecond).await?;
    let count = if plan.quick { 4_000 } else { 40_000 };
    let mut lines = Vec::new();
    for places in PLACES {
        let Drained { lease, ack } = drained(&shards, places, count).await?;
        let rate = |took: Duration| f64::from(count) / took.as_secs_f64();
        let (leased, acked) = match places {
            1 => ("of one place, leased a hundred at a time by four", "of one place, acknowledged"),
            16 => (
                "spread one by one over 16 places, leased a hundred at a time by four",
                "over 16 places, acknowledged",
            ),
            100 => ("spread over 100 places, leased so", "over 100 places, acknowledged"),
            _ => ("spread over 1,000 places, leased so", "over 1,000 places, acknowledged"),
        };
        lines.push(super::line(leased, "messages a second", rate(lease)));
        lines.push(super::line(acked, "messages a second", rate(ack)));
    }
    Ok(lines)
}
