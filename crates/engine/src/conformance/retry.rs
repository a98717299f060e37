//! What becomes of a message whose work failed.

use overtake_lane::{Backoff, DeathReason, Outcome, Settings};

use super::{Fixture, Story, settings};

const WAIT_MS: u64 = 500;

fn backoff() -> Settings {
    settings(|s| s.backoff = Backoff { initial_ms: WAIT_MS, multiplier: 3, max_ms: 2 * WAIT_MS })
}

/// The first wait is the first one, the next ones longer, none longer than the longest.
pub async fn a_message_that_fails_waits_longer_each_time<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, backoff()).await;
    story.publish("a:5,id=a").await;
    for wait_ms in [WAIT_MS, 2 * WAIT_MS, 2 * WAIT_MS] {
        story.lease(1).await;
        let before = story.fixture().now();
        story.nack("a").await;
        let due = story.show("a").await.message.due.expect("it waits");
        assert!((before.after(wait_ms)..=story.fixture().now().after(wait_ms)).contains(&due), "{wait_ms}");
        story.advance(wait_ms).await;
    }
    assert_eq!(story.lease(1).await, "a(4)");
}

/// Nothing is held up, and nothing less urgent counts as first.
pub async fn a_message_waits_its_backoff_aside<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, backoff()).await;
    story.publish("a:9 b:9 c:5").await;
    assert_eq!(story.lease(1).await, "a");
    story.nack("a").await;
    assert_eq!(story.left().await, "b c · delayed a");
    assert_eq!(story.lease(1).await, "b");
    story.advance(WAIT_MS).await;
    assert_eq!(story.lease(2).await, "a(2) c");
}

/// Whoever nacks may know better.
pub async fn a_nack_may_say_how_long_to_wait<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, backoff()).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.settle("a", Outcome::Nack { delay_ms: Some(0) }).await.expect("it ends");
    assert_eq!(story.left().await, "a");
    story.lease(1).await;
    story.settle("a", Outcome::Nack { delay_ms: Some(1_000) }).await.expect("it ends");
    story.advance(1_000).await;
    assert_eq!(story.left().await, "a");
}

/// The last attempt is the last.
pub async fn a_message_dies_after_as_many_deliveries_as_allowed<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.delivery_limit = 3)).await;
    story.publish("a:5,id=a").await;
    for _ in 0..3 {
        assert!(story.lease(1).await.starts_with('a'));
        story.nack("a").await;
    }
    assert_eq!(story.left().await, "dead a");
    let shown = story.show("a").await.message;
    let death = shown.death().expect("it died");
    assert_eq!((death.reason, death.count), (DeathReason::DeliveryLimit, 3));
}

/// A consumer that dies with it each time must not have it for ever.
pub async fn a_lease_that_ends_counts_as_a_delivery<F: Fixture>(fixture: F) {
    let story =
        Story::of(fixture, settings(|s| (s.delivery_limit, s.visibility_timeout_ms) = (1, 1_000))).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.advance(1_000).await;
    assert_eq!(story.left().await, "dead a");
}

/// The same for one whose connection is lost.
pub async fn a_consumer_that_goes_counts_as_a_delivery<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.delivery_limit = 1)).await;
    story.publish("a:5").await;
    let mut consumer = story.consume(1).await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    drop(consumer);
    story.until_leased(0).await;
    assert_eq!(story.left().await, "dead a");
}

/// A lease that runs out is a failed delivery like a nack.
pub async fn a_lease_that_ends_waits_the_backoff<F: Fixture>(fixture: F) {
    let settings = Settings { visibility_timeout_ms: 1_000, ..backoff() };
    let story = Story::of(fixture, settings).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.advance(1_000).await;
    assert_eq!(story.left().await, "delayed a");
    story.advance(WAIT_MS).await;
    assert_eq!(story.lease(1).await, "a(2)");
}

/// So is the delivery of a consumer that is gone.
pub async fn a_message_of_a_consumer_that_goes_waits_the_backoff<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, backoff()).await;
    story.publish("a:5").await;
    let mut consumer = story.consume(1).await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    drop(consumer);
    story.until_leased(0).await;
    assert_eq!(story.left().await, "delayed a");
    story.advance(WAIT_MS).await;
    assert_eq!(story.lease(1).await, "a(2)");
}

/// A release is no delivery: neither the limit nor the next backoff counts it.
pub async fn a_release_costs_no_delivery<F: Fixture>(fixture: F) {
    let settings = Settings { delivery_limit: 2, ..backoff() };
    let story = Story::of(fixture, settings).await;
    story.publish("a:5,id=a").await;
    for _ in 0..3 {
        assert_eq!(story.lease(1).await, "a");
        story.release("a").await;
    }
    assert_eq!(story.lease(1).await, "a");
    let before = story.fixture().now();
    story.nack("a").await;
    let due = story.show("a").await.message.due.expect("it waits");
    assert!((before.after(WAIT_MS)..=story.fixture().now().after(WAIT_MS)).contains(&due));
    story.advance(WAIT_MS).await;
    assert_eq!(story.lease(1).await, "a(2)");
    story.nack("a").await;
    assert_eq!(story.left().await, "dead a");
}

/// 0 is for ever.
pub async fn without_a_limit_a_message_is_tried_for_ever<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    for count in 2..30 {
        story.lease(1).await;
        story.nack("a").await;
        assert_eq!(story.left().await, "a", "after {count}");
    }
}
