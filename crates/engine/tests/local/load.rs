//! Many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use overtake_engine::LeaseRequest;
use overtake_lane::{Outcome, Settings};
use tokio::task::JoinSet;

use crate::support::{Directory, Running, message};
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
