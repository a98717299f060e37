//! The engine in this process: durable publishes, leases and acknowledgements, 256-byte bodies over ten levels.
//!
//! The broker, its disk thread and the one thread that asks share the machine. Every publish is confirmed after its
//! `fdatasync`, every settlement is answered after its own; but for the acknowledgements of a session, which are not.

mod session;
mod shards;
mod traces;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use overtake_engine::{Connection, Content, LeaseRequest, LocalEngine, NewMessage, Target};
use overtake_lane::{Given, Outcome, Settings};
use tokio::task::JoinSet;

use crate::Plan;
use crate::reference::Dice;
use crate::report::{Row, time};

const BODY_LEN: usize = 256;
const QUEUE: &str = "bench";

/// How a row asks: so many messages in one call, so many calls at once.
#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    calls: usize,
}

/// `--only=calls`, `--only=session`, `--only=traces` or `--only=shards` measures one of these.
pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory for the store");
    let mut rows = vec![bare_sync(dir.path(), 100), bare_sync(dir.path(), 1_000)];
    for (shape, messages) in [
        (Shape { batch: 100, calls: 64 }, plan.times(1_000_000)),
        (Shape { batch: 1, calls: 1_024 }, plan.times(300_000)),
    ] {
        if !plan.wants("calls") {
            continue;
        }
        rows.extend(runtime.block_on(fill_and_drain(
            &dir.path().join(shape.batch.to_string()),
            shape,
            messages,
        )));
    }
    if plan.wants("session") {
        rows.extend(runtime.block_on(session::run(&dir.path().join("session"), plan)));
    }
    if plan.wants("traces") {
        rows.extend(runtime.block_on(traces::run(dir.path(), plan)));
    }
    if plan.wants("shards") {
        rows.extend(shards::run(&dir.path().join("shards"), plan));
    }
    rows
}

/// The disk alone: one write over what is there and one `fdatasync` for so many bodies.
fn bare_sync(dir: &Path, batch: usize) -> Row {
    const COMMITS: usize = 500;
    let file = File::create(dir.join("bare")).expect("a file");
    let block = vec![0x5a; batch * BODY_LEN];
    for commit in 0..COMMITS {
        file.write_all_at(&block, (commit * block.len()) as u64).expect("a write");
    }
    file.sync_all().expect("a sync");
    let took = time(|| {
        for commit in 0..COMMITS {
            file.write_all_at(&block, (commit * block.len()) as u64).expect("a write");
            file.sync_data().expect("a sync");
        }
    });
    Row::new(format!("overwrite + fdatasync, {batch} bodies each"), "bodies", COMMITS * batch, took)
        .reference()
}

async fn fill_and_drain(dir: &Path, shape: Shape, messages: usize) -> [Row; 2] {
    let local = Arc::new(LocalEngine::open(dir).expect("a new store"));
    let engine: Connection = local.clone();
    engine.declare_queue(QUEUE, Settings::default()).await.expect("a new queue");
    let Shape { batch, calls } = shape;
    let how = format!("{batch} in a call, {calls} calls at once");

    let start = std::time::Instant::now();
    fill(&engine, shape, messages).await;
    let published = Row::new(format!("publish, durable: {how}"), "messages", messages, start.elapsed());

    let start = std::time::Instant::now();
    drain(&engine, shape).await;
    let drained = Row::new(format!("lease + ack, durable: {how}"), "messages", messages, start.elapsed());
    local.close();
    [published, drained]
}

async fn fill(engine: &Connection, shape: Shape, messages: usize) {
    let mut dice = Dice::new();
    let body = Bytes::from(vec![7_u8; BODY_LEN]);
    let queue: Arc<str> = Arc::from(QUEUE);
    let mut open = JoinSet::new();
    for _ in 0..messages / shape.batch {
        if open.len() >= shape.calls {
            open.join_next().await;
        }
        let message = |priority| NewMessage {
            to: Target::Queue(Arc::clone(&queue)),
            priority: Given::Number(priority),
            content: Content { body: body.clone(), ..Content::default() },
            ..NewMessage::default()
        };
        let publish = engine.publish((0..shape.batch).map(|_| message(dice.roll(10) as i64)).collect());
        open.spawn(async move { publish.await.map(drop).expect("there is room") });
    }
    open.join_all().await;
}

/// Workers that each lease and acknowledge until nothing is left.
async fn drain(engine: &Connection, shape: Shape) {
    let mut open = JoinSet::new();
    for _ in 0..shape.calls {
        let engine = Arc::clone(engine);
        open.spawn(async move {
            loop {
                let lease = LeaseRequest::new(QUEUE.into(), shape.batch as u32);
                let messages = engine.lease(lease).await.expect("a lease");
                if messages.is_empty() {
                    return;
                }
                let receipts = messages.iter().map(|message| message.receipt).collect();
                engine.settle(receipts, Outcome::Ack).await.map(drop).expect("an acknowledgement");
            }
        });
    }
    open.join_all().await;
}
