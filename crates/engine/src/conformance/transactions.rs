//! All or none.

use overtake_lane::{LANES_MAX, Outcome, Part, Refusal, Scheme, Settings};

use super::{Fixture, Story, settings};
use crate::api::{Failure, Refused};

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

/// Each by itself, in the order in which they stand: the first that cannot be done.
pub async fn a_refused_batch_names_its_message_at_fault<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let at = |refusal, at| Err(Refused { refusal, part: Some(Part::Publish(at)) });
    for count in 1..9 {
        for fault in 0..count {
            let words = (0..count).map(|at| if at < fault { "a:5 " } else { "a:-1 " });
            let seen = story.batch(&words.collect::<String>(), &[]).await;
            assert_eq!(seen, at(Refusal::PriorityOutOfRange, fault), "{fault} of {count}");
        }
    }
    assert_eq!(story.batch("a:5 b:5,in=nowhere c:-1", &[]).await, at(Refusal::NoSuchQueue, 1));
    assert_eq!(story.batch("a:5 b:5 c:5,id=seq-1", &[]).await, at(Refusal::IdInvalid, 2));
    assert_eq!(story.batch("a:5 b:5,to=amq.direct/k,must c:5", &[]).await, at(Refusal::Unroutable, 1));
    assert_eq!(story.left().await, "");
}

/// What stands before it in the batch counts.
pub async fn a_message_that_is_one_too_many_is_named<F: Fixture>(fixture: F) {
    let full = settings(|s| (s.max_length, s.overflow) = (4, overtake_lane::Overflow::Reject));
    let story = Story::of(fixture, full).await;
    story.publish("a:5 b:5,id=b").await;
    let refused = Err(Refused { refusal: Refusal::QueueFull, part: Some(Part::Publish(3)) });
    assert_eq!(story.batch("c:5 again:5,id=b d:5 e:5 f:5", &[]).await, refused);
    assert_eq!(story.batch("c:5 again:5,id=b d:5", &[]).await, Ok(()));
}

/// Lanes of messages before it count.
pub async fn a_message_that_would_open_a_lane_too_many_is_named<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Signed)).await;
    for priority in 0..LANES_MAX - 4 {
        story.publish(&format!("a:{priority}")).await;
    }
    let at = |refusal, at| Err(Refused { refusal, part: Some(Part::Publish(at)) });
    assert_eq!(story.batch("a:-1 b:1 c:-2 d:-3 e:-4", &[]).await, at(Refusal::TooManyLanes, 3));
    assert_eq!(story.batch("a:-1 b:1 c:-2 d:never e:-3", &[]).await, at(Refusal::PriorityUnknown, 3));
}

/// Leases of pulls and of consumers that stay.
pub async fn a_refused_transaction_names_its_settlement_at_fault<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5").await;
    story.lease(2).await;
    story.ack("b").await;
    let mut consumer = story.consume(2).await;
    story.publish("c:5 d:5").await;
    story.next(&mut consumer, 2).await;
    story.ack("d").await;
    let ack = |texts: &'static str| texts.split(' ').map(|text| (text, Outcome::Ack)).collect::<Vec<_>>();
    let at = |at| Err(Refused { refusal: Refusal::StaleReceipt, part: Some(Part::Settlement(at)) });
    for (receipts, fault) in
        [("a b", 1), ("b a", 0), ("c a b d", 2), ("a c d b", 2), ("a c a", 2), ("c c", 1)]
    {
        assert_eq!(story.batch("x:5", &ack(receipts)).await, at(fault), "{receipts}");
    }
    assert_eq!(story.left().await, "leased a c", "and none of them is settled");
    assert_eq!(story.batch("x:5", &ack("a c")).await, Ok(()));
}

/// Then no part of it is named.
pub async fn a_batch_that_is_too_large_in_all_names_no_part<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let many = vec![story.messages("a:5,bytes=8000").remove(0); 10_000];
    let refused = story.engine().transact(many, Vec::new()).await.expect_err("it is too large");
    assert_eq!(refused, Failure::Refused(Refused { refusal: Refusal::TooLargeAtOnce, part: None }));
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
