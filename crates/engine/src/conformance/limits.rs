//! When it is full, the least urgent pays.

use overtake_lane::{LastValue, Overflow, Refusal, RejectBelow, Settings};

use super::{Fixture, Story, settings};

fn most(messages: u64) -> Settings {
    settings(|s| s.max_length = messages)
}

/// Its lane's oldest goes; the most urgent never does.
pub async fn in_a_full_queue_the_least_urgent_message_pays<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, most(3)).await;
    story.publish("a:5 old:1 young:1 urgent:9").await;
    assert_eq!(story.left().await, "urgent a young");
    assert_eq!(story.lane("1").await.evicted, 1);
}

/// A newcomer that is the least urgent of all pays itself, before it is in.
pub async fn a_message_less_urgent_than_all_is_refused_by_a_full_queue<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, most(2)).await;
    story.publish("a:5 b:5").await;
    assert_eq!(story.refusal("low:4").await, Refusal::QueueFull);
    story.publish("same:5").await;
    assert_eq!(story.left().await, "b same");
}

/// Where nothing may be dropped.
pub async fn a_full_queue_may_refuse_instead<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| (s.max_length, s.overflow) = (2, Overflow::Reject))).await;
    story.publish("a:1 b:1").await;
    assert_eq!(story.refusal("urgent:9").await, Refusal::QueueFull);
    assert_eq!(story.left().await, "a b");
}

/// What is with a consumer has left the queue, and comes back even if it is full.
pub async fn what_is_leased_does_not_fill_a_queue<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| (s.max_length, s.overflow) = (1, Overflow::Reject))).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.publish("b:5").await;
    story.nack("a").await;
    assert_eq!(story.left().await, "a b");
    assert_eq!(story.refusal("c:9").await, Refusal::QueueFull);
}

/// Delayed messages wait as well.
pub async fn what_is_delayed_fills_a_queue<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| (s.max_length, s.overflow) = (1, Overflow::Reject))).await;
    story.publish("a:5,delay=600000").await;
    assert_eq!(story.refusal("b:9").await, Refusal::QueueFull);
}

/// Several small ones for a large one.
pub async fn in_a_queue_full_of_bytes_as_many_pay_as_it_takes<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.max_bytes = 100)).await;
    story.publish("a:1,bytes=30 b:1,bytes=30 c:2,bytes=30 big:9,bytes=60").await;
    assert_eq!(story.left().await, "big c");
    assert_eq!(story.refusal("huge:9,bytes=101").await, Refusal::MessageTooLarge);
}

/// By priority, at a depth; the others are taken.
pub async fn a_deep_queue_may_refuse_what_is_not_urgent<F: Fixture>(fixture: F) {
    let reject = RejectBelow { depth: 2, priority: 5.into() };
    let story = Story::of(fixture, settings(|s| s.reject_below = Some(reject))).await;
    story.publish("a:1 b:1").await;
    assert_eq!(story.refusal("four:4").await, Refusal::BelowPriority);
    assert_eq!(story.refusal("none").await, Refusal::BelowPriority);
    story.publish("five:5").await;
    assert_eq!(story.left().await, "five a b");
    story.lease(2).await;
    story.publish("four:4").await;
}

/// The queue's own limit.
pub async fn a_message_over_the_size_of_its_queue_is_refused<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.max_message_bytes = 10)).await;
    story.publish("fits:5,bytes=10").await;
    assert_eq!(story.refusal("not:5,bytes=11").await, Refusal::MessageTooLarge);
    assert_eq!(story.refusal("nor:5,bytes=5,h.name=value").await, Refusal::MessageTooLarge);
    assert_eq!(story.left().await, "fits");
}

/// Each says what it would have cost.
pub async fn a_limit_that_is_lowered_drops_nothing_by_itself<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5").await;
    story.declare("q", most(1)).await;
    assert_eq!(story.left().await, "a b c");
    story.publish("d:5").await;
    assert_eq!(story.left().await, "d");
}

/// Whatever their priorities.
pub async fn a_last_value_queue_keeps_the_newest_of_each_key<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.last_value = Some(LastValue::Key))).await;
    story.publish("a1:9,key=a b1:5,key=b a2:1,key=a b2:5,key=b").await;
    assert_eq!(story.left().await, "b2 a2");
    assert_eq!(story.refusal("none:5").await, Refusal::KeyMissing);
}

/// One for all.
pub async fn a_last_value_queue_may_keep_one_message_in_all<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.last_value = Some(LastValue::One))).await;
    story.publish("a:9 b:1").await;
    assert_eq!(story.left().await, "b");
}

/// An older value that is out is not taken away, but does not come back either.
pub async fn a_replaced_message_that_was_leased_does_not_come_back<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.last_value = Some(LastValue::Key))).await;
    story.publish("old:5,key=k").await;
    story.lease(1).await;
    story.publish("new:5,key=k").await;
    assert_eq!(story.left().await, "new · leased old");
    story.nack("old").await;
    assert_eq!(story.left().await, "new");
}
