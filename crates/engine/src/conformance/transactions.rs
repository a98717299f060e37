//! All or none.

use overtake_lane::{Outcome, Refusal, Settings};

use super::{Fixture, Story, settings};

/// Publishes and acknowledgements over several queues.
pub async fn a_transaction_does_all_of_it<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    story.publish("a:5 b:5 c:5").await;
    story.lease(3).await;
    let ends = [("a", Outcome::Ack), ("b", Outcome::Nack { delay_ms: None }), ("c", Outcome::Reject)];
    assert_eq!(story.transact("x:1 y:9 z:5,in=r", &ends).await, Ok(()));
    assert_eq!((&*story.left().await, &*story.left_in("r").await), ("y b x · dead c", "z"));
}

/// One that is refused takes the others with it.
pub async fn a_transaction_that_is_refused_does_none_of_it<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    story.lease(1).await;
    let ack = [("a", Outcome::Ack)];
    assert_eq!(story.transact("x:5 y:-1", &ack).await, Err(Refusal::PriorityOutOfRange));
    assert_eq!(story.transact("x:5 y:5,in=nowhere", &ack).await, Err(Refusal::NoSuchQueue));
    assert_eq!(story.left().await, "leased a");
    assert_eq!(story.transact("x:5", &ack).await, Ok(()));
    assert_eq!(story.left().await, "x");
}

/// Also when it is the receipt that no longer holds, or is there twice.
pub async fn a_transaction_with_a_stale_receipt_publishes_nothing<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5").await;
    story.lease(2).await;
    story.ack("a").await;
    let ends = [("b", Outcome::Ack), ("a", Outcome::Ack)];
    assert_eq!(story.transact("x:5", &ends).await, Err(Refusal::StaleReceipt));
    let twice = [("b", Outcome::Ack), ("b", Outcome::Ack)];
    assert_eq!(story.transact("x:5", &twice).await, Err(Refusal::StaleReceipt));
    assert_eq!(story.left().await, "leased b");
}

/// Together they would be too many, though each alone is not.
pub async fn the_messages_of_a_transaction_count_together_against_limits<F: Fixture>(fixture: F) {
    let full = settings(|s| (s.max_length, s.overflow) = (2, overtake_lane::Overflow::Reject));
    let story = Story::of(fixture, full).await;
    story.publish("a:5").await;
    assert_eq!(story.transact("b:5 c:5", &[]).await, Err(Refusal::QueueFull));
    assert_eq!(story.left().await, "a");
    assert_eq!(story.transact("b:5", &[]).await, Ok(()));
}

/// The sequence is assigned when it is done, so priority and age are respected.
pub async fn a_transaction_stands_in_order_like_everything_else<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("first:5").await;
    story.transact("low:1 high:9 same:5", &[]).await.expect("done");
    story.publish("last:5").await;
    assert_eq!(story.drain().await, "high first same last low");
}

/// None of it is seen before all of it is there.
pub async fn nobody_is_served_in_the_middle_of_a_transaction<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.transact("low:1 middle:5 high:9", &[]).await.expect("done");
    });
    assert_eq!(leased, "high");
}

/// Several at once over the same call as one.
pub async fn a_publish_of_many_is_all_or_none<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let bad = story.engine().publish(story.messages("a:5 b:5 c:-1")).await;
    assert_eq!(super::refused(bad), Refusal::PriorityOutOfRange);
    assert_eq!(story.left().await, "");
    let copies = story.engine().publish(story.messages("a:5 b:9 c:5")).await.expect("published");
    assert_eq!(copies.iter().map(|copy| copy.position).collect::<Vec<_>>(), [Some(0), Some(0), Some(2)]);
}

/// An id twice in one is one message.
pub async fn an_id_twice_in_a_transaction_is_one_message<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let copies = story.engine().publish(story.messages("a:5,id=x b:5,id=x")).await.expect("published");
    assert_eq!((copies[0].duplicate, copies[1].duplicate), (false, true));
    assert_eq!(copies[0].seq, copies[1].seq);
    assert_eq!(story.left().await, "a");
}

/// Nothing is a transaction too.
pub async fn a_transaction_of_nothing_does_nothing<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    assert_eq!(story.transact("", &[]).await, Ok(()));
    assert_eq!(story.left().await, "");
}
