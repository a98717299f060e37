//! Space: what nobody needs any more is given back, and what somebody needs is still there.

use crate::support::{TINY, bodies, clock, message, open_disk, pull};
use overtake_engine::{DeleteOnly, Engine, NewMessage, Target};
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

/// As a broker is that has nothing to do for the night: its next start reads little.
#[tokio::test]
async fn the_journal_is_given_back_though_nobody_asks_for_anything() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("opens");
    for queue in ["q", "deep"] {
        engine.declare_queue(queue, Settings::default()).await.expect("declared");
    }
    for round in 0..300 {
        let passing = NewMessage { to: Target::Queue("deep".into()), ..message(&"x".repeat(300), 0) };
        let mut messages = vec![passing; 10];
        messages.push(message(&round.to_string(), 0));
        engine.publish(messages).await.expect("published");
    }
    assert!(engine.health().journal_bytes > 10 * TINY);
    engine.delete_queue("deep", DeleteOnly::default()).await.expect("deleted");
    while engine.health().journal_bytes > 5 * TINY {
        tokio::task::yield_now().await;
    }
    engine.close();

    let engine = open_disk(&disk, &clock).expect("opens again");
    assert_eq!(engine.recovered().messages, 300);
}
