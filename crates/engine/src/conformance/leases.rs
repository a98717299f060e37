//! Lent and given back: receipts, deadlines, waiting.

use overtake_lane::{Outcome, Refusal, Settings};

use super::{Fixture, Story, settings};

/// Long enough for an engine that waits in real time to do its part before.
const SHORT_MS: u64 = 1_000;

fn short() -> Settings {
    settings(|s| s.visibility_timeout_ms = SHORT_MS)
}

/// A message has one holder at a time.
pub async fn a_leased_message_is_not_leased_again<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    assert_eq!(story.lease(9).await, "a");
    assert_eq!(story.lease(9).await, "");
    assert_eq!(story.left().await, "leased a");
}

/// Done is done.
pub async fn an_acknowledged_message_is_gone<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.ack("a").await;
    assert_eq!(story.left().await, "");
    assert_eq!(story.settle("a", Outcome::Ack).await, Err(Refusal::StaleReceipt));
}

/// Ahead of what was published after it, behind what is more urgent.
pub async fn a_message_put_back_returns_to_its_place<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5").await;
    assert_eq!(story.lease(2).await, "a b");
    story.publish("x:9 d:5").await;
    story.nack("b").await;
    story.nack("a").await;
    assert_eq!(story.left().await, "x a b c d");
    assert_eq!(story.drain().await, "x a(2) b(2) c d");
}

/// As if the consumer had said so.
pub async fn a_lease_that_ends_puts_its_message_back_to_its_place<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, short()).await;
    story.publish("a:5 b:5").await;
    assert_eq!(story.lease(1).await, "a");
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "a b");
    assert_eq!(story.lease(2).await, "a(2) b");
}

/// The one who lost it can do nothing to the one who has it.
pub async fn a_receipt_is_stale_once_its_lease_is_over<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, short()).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.advance(SHORT_MS).await;
    assert_eq!(story.settle("a#1", Outcome::Ack).await, Err(Refusal::StaleReceipt));
    assert_eq!(story.lease_for(1, Some(0)).await, "a(2)");
    assert_eq!(story.settle("a#1", Outcome::Ack).await, Err(Refusal::StaleReceipt));
    assert_eq!(story.settle("a#1", Outcome::Reject).await, Err(Refusal::StaleReceipt));
    assert_eq!(story.extend("a#1", 60_000).await, Err(Refusal::StaleReceipt));
    assert_eq!(story.left().await, "leased a");
    story.ack("a#2").await;
    assert_eq!(story.left().await, "");
}

/// Some stale, some not: each receipt has its own answer.
pub async fn each_receipt_is_settled_for_itself<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5").await;
    story.lease(3).await;
    story.ack("b").await;
    let receipts = vec![story.receipt("a"), story.receipt("b"), story.receipt("c"), story.receipt("c")];
    let results = story.engine().settle(receipts, Outcome::Ack).await;
    assert_eq!(results, Ok(vec![Ok(()), Err(Refusal::StaleReceipt), Ok(()), Err(Refusal::StaleReceipt)]));
    assert_eq!(story.left().await, "");
}

/// From now on, for as long as asked.
pub async fn a_lease_that_is_extended_lasts_longer<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, short()).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.extend("a", 600_000).await.expect("it is extended");
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "leased a");
    story.ack("a").await;
}

/// A deadline that moves nearer holds as well.
pub async fn a_lease_can_be_shortened<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.extend("a", SHORT_MS).await.expect("it is extended");
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "a");
}

/// 0 is no deadline.
pub async fn a_lease_of_no_length_never_ends_by_itself<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, short()).await;
    story.publish("a:5 b:5").await;
    assert_eq!(story.lease_for(1, Some(0)).await, "a");
    story.lease(1).await;
    story.extend("b", 0).await.expect("it is extended");
    story.advance(2 * SHORT_MS).await;
    assert_eq!(story.left().await, "leased a b");
}

/// What the lease says of itself.
pub async fn a_lease_tells_its_deadline_and_count<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.visibility_timeout_ms = 60_000)).await;
    story.publish("a:5,id=x,key=k,h.colour=red").await;
    let before = story.fixture().now();
    let leased = story.waiting_lease(0).await.expect("leased");
    assert!(
        (before.after(60_000)..=story.fixture().now().after(60_000))
            .contains(&leased[0].deadline.expect("it ends"))
    );
    let message = &leased[0].message;
    assert_eq!((&*message.id, message.key.as_deref(), message.count), ("x", Some("k"), 1));
    assert_eq!((message.priority.clone(), leased[0].content.body.as_ref()), (5.into(), b"a".as_ref()));
    assert_eq!(leased[0].content.headers().len(), 1);
}

/// Not at the next tick: at once.
pub async fn a_lease_that_waits_is_woken_by_an_arrival<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let (leased, _) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.publish("a:5").await;
    });
    assert_eq!(leased, "a");
}

/// What comes back is an arrival too.
pub async fn a_lease_that_waits_is_woken_by_a_message_put_back<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    story.lease(1).await;
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.nack("a").await;
    });
    assert_eq!(leased, "a(2)");
}

/// Time passes, a deadline with it, and somebody is glad of it.
pub async fn a_lease_that_waits_is_woken_by_a_lease_that_ends<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, short()).await;
    story.publish("a:5").await;
    story.lease(1).await;
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.advance(SHORT_MS).await;
    });
    assert_eq!(leased, "a(2)");
}

/// Nothing came.
pub async fn a_lease_that_waits_in_vain_answers_nothing<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let (leased, ()) = tokio::join!(story.wait(SHORT_MS), async {
        story.until_waiting(1).await;
        story.advance(SHORT_MS).await;
    });
    assert_eq!(leased, "");
    assert_eq!(story.view().await.waiting, 0);
}

/// First come, first served.
pub async fn whoever_waits_longest_is_served_first<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let first = async { story.wait(600_000).await };
    let second = async {
        story.until_waiting(1).await;
        story.wait(600_000).await
    };
    let publish = async {
        story.until_waiting(2).await;
        story.publish("a:5 b:5").await
    };
    let (first, second, _) = tokio::join!(first, second, publish);
    assert_eq!((&*first, &*second), ("a", "b"));
}

/// Nobody is there to work on it.
pub async fn a_lease_that_is_given_up_takes_no_message<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let waiting = story.waiting_lease(600_000);
    tokio::select! {
        biased;
        _ = waiting => panic!("there was nothing to lease"),
        () = story.until_waiting(1) => {}
    }
    story.until_waiting(0).await;
    story.publish("a:5").await;
    assert_eq!(story.lease(1).await, "a");
}

/// At most what was asked for, and what there is.
pub async fn a_lease_answers_what_is_there_and_does_not_wait_for_more<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5").await;
    assert_eq!(story.lease(2).await, "a b");
    assert_eq!(story.lease(2).await, "c");
}

/// No failure: neither a delay nor a count against it.
pub async fn a_message_released_goes_back_untouched<F: Fixture>(fixture: F) {
    let story = Story::of(
        fixture,
        settings(|s| {
            s.delivery_limit = 2;
            s.backoff.initial_ms = 600_000;
        }),
    )
    .await;
    story.publish("a:5").await;
    for _ in 0..4 {
        assert_eq!(story.lease(1).await, "a");
        story.release("a").await;
    }
    assert_eq!(story.left().await, "a");
}
