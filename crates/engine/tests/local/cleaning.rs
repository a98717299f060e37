//! Space: what nobody needs any more is given back, and what somebody needs is still there.

use crate::support::{TINY, bodies, clock, message, open_disk, pull};
use overtake_engine::Engine;
use overtake_lane::{Outcome, Settings};
use overtake_store::MemoryDisk;

#[tokio::test]
async fn one_message_that_lingers_does_not_keep_the_journal_of_all_that_pass_by() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.publish(vec![message("lingering", 0)]).await.expect("published");
    let mut longest = 0;
    for round in 0..10_000 {
        let passing = (0..10).map(|n| message(&format!("{round}-{n}"), 9)).collect();
        engine.publish(passing).await.expect("published");
        let leased = engine.lease(pull("q", 10)).await.expect("leased");
        let receipts = leased.iter().map(|message| message.receipt).collect();
        let settled = engine.settle(receipts, Outcome::Ack).await.expect("settled");
        assert!(settled.iter().all(Result::is_ok));
        longest = longest.max(engine.health().journal_bytes);
    }
    assert!(longest <= 6 * TINY, "{longest} bytes of journal for one message");
    engine.publish(vec![message("last", 0)]).await.expect("published");
    engine.close();

    let engine = open_disk(&disk, &clock).expect("opens again");
    assert_eq!(bodies(&engine.lease(pull("q", 9)).await.expect("leased")), "lingering last");
}

#[tokio::test]
async fn messages_published_before_their_queue_was_last_described_are_kept() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut published = 0;
    // More and more stay: the journal's head moves on while messages of every age are there.
    for round in 0..1_000 {
        let mixed = (0..10).map(|n| message(&format!("{round}-{n}"), if n == 0 { 0 } else { 9 })).collect();
        engine.publish(mixed).await.expect("published");
        published += 1;
        let leased = engine.lease(pull("q", 9)).await.expect("leased");
        engine
            .settle(leased.iter().map(|message| message.receipt).collect(), Outcome::Ack)
            .await
            .expect("settled");
    }
    engine.close();

    let engine = open_disk(&disk, &clock).expect("opens again");
    assert_eq!(engine.recovered().messages, published);
}
