//! A planned end.

use std::sync::Arc;

use overtake_engine::{Engine, Failure};
use overtake_lane::Settings;
use overtake_store::MemoryDisk;
use tokio::task::JoinSet;

use crate::support::{clock, message, open_disk, pull};

#[tokio::test]
async fn what_was_asked_before_it_was_closed_is_done_and_kept() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = Arc::new(open_disk(&disk, &clock).expect("opens"));
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut publishes = JoinSet::new();
    for n in 0..200 {
        let engine = engine.clone();
        publishes.spawn(async move { engine.publish(vec![message(&n.to_string(), n % 10)]).await });
    }
    // Every task asks once before this one goes on.
    tokio::task::yield_now().await;
    engine.close();
    let mut confirmed = 0;
    while let Some(published) = publishes.join_next().await {
        match published.expect("no panic") {
            Ok(_) => confirmed += 1,
            Err(failure) => assert!(matches!(failure, Failure::Unavailable(_)), "{failure}"),
        }
    }
    assert!(confirmed > 0, "nothing was asked in time");
    let engine = open_disk(&disk, &clock).expect("opens again");
    assert_eq!(engine.recovered().messages, confirmed);
    assert_eq!(engine.recovered().journal.damage, []);
}

#[tokio::test]
async fn who_waits_for_a_lease_is_told_that_it_ends() {
    let engine = open_disk(&MemoryDisk::new(1), &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut request = pull("q", 1);
    request.wait_ms = 600_000;
    let (leased, ()) = tokio::join!(engine.lease(request), async { engine.close() });
    assert!(matches!(leased, Err(Failure::Unavailable(why)) if why.contains("stopping")));
}

#[tokio::test]
async fn a_consumer_ends_with_its_engine() {
    let engine = open_disk(&MemoryDisk::new(1), &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let request = overtake_engine::ConsumeRequest::new("q".into());
    let mut consumer = engine.consume(request).await.expect("consumes");
    engine.close();
    assert!(consumer.next().await.is_none());
}

#[tokio::test]
async fn a_closed_engine_answers_that_it_is() {
    let engine = open_disk(&MemoryDisk::new(1), &clock()).expect("opens");
    engine.close();
    engine.close();
    assert!(
        matches!(engine.queues(None, 9).await, Err(Failure::Unavailable(why)) if why.contains("stopping"))
    );
    assert!(engine.failed().await.contains("stopping"));
    assert!(engine.health().down.is_some());
}

#[tokio::test]
async fn an_engine_that_is_dropped_is_closed() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    drop(engine);
    let engine = open_disk(&disk, &clock).expect("opens again");
    assert_eq!(engine.queues(None, 9).await.expect("listed").queues.len(), 1);
}

#[tokio::test]
async fn whatever_ended_while_it_was_closed_ends_when_it_opens() {
    const MESSAGES: u64 = 20_000;
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("opens");
    engine
        .declare_queue("q", Settings { dead_letter_expired: true, ..Settings::default() })
        .await
        .expect("declared");
    for _ in 0..MESSAGES / 10 {
        let ten = (0..10).map(|_| overtake_engine::conformance::words::message("q", "a:5,ttl=1000"));
        engine.publish(ten.collect()).await.expect("published");
    }
    engine.close();
    clock.advance(1_000);
    // More ends at once than a journal file holds.
    for _ in 0..2 {
        let engine = open_disk(&disk, &clock).expect("opens again");
        let mut seen = (MESSAGES, 0);
        while seen.0 > 0 {
            let lanes = engine.queue("q").await.expect("seen").lanes;
            assert!(lanes[0].ready <= seen.0, "none is ready again: {seen:?}");
            seen = (lanes[0].ready, lanes[0].dead);
        }
        assert_eq!(seen, (0, MESSAGES));
        engine.publish(vec![message("b", 5)]).await.expect("published");
        engine.purge("q", None).await.expect("purged");
        engine.close();
    }
}
