//! Many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use overtake_engine::{Engine, LeaseRequest};
use overtake_lane::{Outcome, Settings};
use overtake_store::MemoryDisk;
use tokio::task::JoinSet;

use crate::support::{Directory, Running, clock, message, open_disk};
use overtake_engine::conformance::Fixture;

const TASKS: u64 = 64;
const MESSAGES: u64 = 20_000;
const CAP: i64 = 10;

#[tokio::test]
async fn sixty_four_tasks_never_hold_more_than_the_cap() {
    let fixture = Running::on(Directory::new(1 << 20));
    let engine = fixture.engine();
    let settings = Settings { max_active: CAP as u32, visibility_timeout_ms: 0, ..Settings::default() };
    engine.declare_queue("q", settings).await.expect("declared");
    let (held, done) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (engine, held, done) = (engine.clone(), held.clone(), done.clone());
        tasks.spawn(async move {
            for n in 0..MESSAGES.div_ceil(TASKS) {
                let published = engine.publish(vec![message(&format!("{task}-{n}"), n % 10)]);
                published.await.expect("published");
                // Whatever is leased is one more than was there before, so nobody waits for ever.
                let request = LeaseRequest { wait_ms: 600_000, ..LeaseRequest::new("q".into(), 1) };
                let leased = engine.lease(request).await.expect("leased");
                assert_eq!(leased.len(), 1);
                assert!(held.fetch_add(1, Ordering::SeqCst) < CAP, "more than the cap are held");
                tokio::task::yield_now().await;
                held.fetch_sub(1, Ordering::SeqCst);
                let settled = engine.settle(vec![leased[0].receipt], Outcome::Ack).await;
                assert_eq!(settled, Ok(vec![Ok(())]));
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("no task panics");
    }
    assert!(done.load(Ordering::SeqCst) >= MESSAGES);
    let lanes = engine.queue("q").await.expect("seen").lanes;
    assert!(lanes.iter().all(|lane| lane.ready + lane.leased == 0), "nothing is left");
}

/// Each of them runs the broker whenever nobody else does, and no request may be left lying when two come at once.
#[test]
fn threads_that_ask_at_once_are_all_answered() {
    const THREADS: u64 = 4;
    let engine = open_disk(&MemoryDisk::new(3), &clock()).expect("opened");
    alone(engine.declare_queue("q", Settings::default())).expect("declared");
    let work = async |thread: u64| {
        for n in 0..MESSAGES / THREADS {
            if n % 16 == 0 {
                let published = engine.publish(vec![message(&format!("{thread}-{n}"), n % 10)]);
                published.await.expect("published");
            }
            let leased = engine.lease(LeaseRequest::new("q".into(), 1)).await.expect("leased");
            let receipts = leased.iter().map(|message| message.receipt).collect();
            engine.settle(receipts, Outcome::Ack).await.expect("settled");
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || alone(work(thread)));
        }
    });
    let lanes = alone(engine.queue("q")).expect("seen").lanes;
    assert!(lanes.iter().all(|lane| lane.leased == 0), "each was acknowledged by whoever leased it");
}

/// Done by this thread, which sleeps whenever it waits.
fn alone<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}
