//! Whoever asks may go away at any moment.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use overtake_engine::{Engine, LeaseRequest};
use overtake_lane::Settings;
use overtake_store::MemoryDisk;

use crate::support::{bodies, clock, message, open_disk, pull};

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_lease_dropped_while_it_waits_takes_nothing() {
    let engine = open_disk(&MemoryDisk::new(1), &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    {
        let mut waiting = pin!(engine.lease(LeaseRequest { wait_ms: 600_000, ..pull("q", 1) }));
        assert!(poll_once(waiting.as_mut()).is_pending());
        assert_eq!(engine.queue("q").await.expect("seen").waiting, 1);
    }
    assert_eq!(engine.queue("q").await.expect("seen").waiting, 0);
    engine.publish(vec![message("a", 5)]).await.expect("published");
    assert_eq!(bodies(&engine.lease(pull("q", 1)).await.expect("leased")), "a");
}

#[tokio::test]
async fn a_lease_dropped_when_it_is_answered_gives_its_messages_back() {
    let engine = open_disk(&MemoryDisk::new(1), &clock()).expect("opens");
    let settings = Settings { delivery_limit: 1, ..Settings::default() };
    engine.declare_queue("q", settings).await.expect("declared");
    engine.publish(vec![message("a", 5), message("b", 5)]).await.expect("published");
    loop {
        let mut answered = pin!(engine.lease(pull("q", 2)));
        if let Poll::Ready(leased) = poll_once(answered.as_mut()) {
            // The engine was faster than this test. Once more.
            let receipts = leased.expect("leased").iter().map(|message| message.receipt).collect();
            engine.settle(receipts, overtake_lane::Outcome::Release).await.expect("released");
            continue;
        }
        // The lease was asked for before, so it is answered before.
        let leased: u64 = engine.queue("q").await.expect("seen").lanes.iter().map(|lane| lane.leased).sum();
        assert_eq!(leased, 2);
        break;
    }
    let lanes = engine.queue("q").await.expect("seen").lanes;
    assert_eq!(
        (lanes[0].ready, lanes[0].leased, lanes[0].dead),
        (2, 0, 0),
        "given back, and no failure of theirs"
    );
}

#[tokio::test]
async fn a_lease_dropped_at_any_moment_loses_no_message() {
    let engine = open_disk(&MemoryDisk::new(1), &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    for round in 0..500 {
        let lease = engine.lease(LeaseRequest { wait_ms: 600_000, ..pull("q", 1) });
        let message = message(&round.to_string(), 5);
        let publish = engine.publish(vec![message]);
        // Whichever is first: the answer of the lease, or the moment in which it is dropped.
        let taken = tokio::select! {
            leased = lease => Some(leased.expect("leased")),
            published = publish => { published.expect("published"); None }
        };
        let leased = match taken {
            Some(leased) => leased,
            None => engine.lease(pull("q", 1)).await.expect("leased"),
        };
        if leased.is_empty() {
            // The publish was the one that was dropped before it was asked.
            continue;
        }
        let receipts = leased.iter().map(|message| message.receipt).collect();
        engine.settle(receipts, overtake_lane::Outcome::Ack).await.expect("settled");
        let lanes = engine.queue("q").await.expect("seen").lanes;
        assert!(lanes.iter().all(|lane| lane.leased == 0), "round {round}: a message nobody has is leased");
    }
}

#[tokio::test]
async fn a_consumer_dropped_before_it_has_begun_is_gone() {
    let engine = open_disk(&MemoryDisk::new(1), &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.publish(vec![message("a", 5)]).await.expect("published");
    let request = overtake_engine::ConsumeRequest::new("q".into());
    {
        // It may be answered already; then the consumer is dropped as soon as it is there.
        let mut consume = pin!(engine.consume(request));
        drop(poll_once(consume.as_mut()));
    }
    let view = engine.queue("q").await.expect("seen");
    assert_eq!((view.consumers, view.lanes[0].ready, view.lanes[0].leased), (0, 1, 0));
}

#[tokio::test]
async fn what_was_asked_is_done_even_if_nobody_waits_for_the_answer() {
    let engine = open_disk(&MemoryDisk::new(1), &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    {
        let mut publish = pin!(engine.publish(vec![message("a", 5)]));
        drop(poll_once(publish.as_mut()));
    }
    assert_eq!(bodies(&engine.lease(pull("q", 1)).await.expect("leased")), "a");
}
