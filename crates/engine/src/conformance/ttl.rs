//! The time to live: never delivered after it, wherever a message stands.

use overtake_lane::{DeathReason, Overflow, Refusal, Settings, Status};

use super::{Fixture, Story, settings};

const SHORT_MS: u64 = 1_000;

async fn expired(story: &Story<impl Fixture>, lane: &str) -> u64 {
    story.lane(lane).await.expired
}

/// Gone, and counted.
pub async fn an_expired_message_is_never_delivered<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,ttl=1000 b:5").await;
    story.advance(SHORT_MS).await;
    assert_eq!(story.drain().await, "b");
    assert_eq!(expired(&story, "5").await, 1);
}

/// A run of dead heads must not make a lower message look first.
pub async fn a_run_of_expired_heads_lets_no_lower_message_pass<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    for n in 0..20 {
        story.publish(&format!("gone{n}:9,ttl=1000")).await;
    }
    story.publish("low:1 high:9").await;
    story.advance(SHORT_MS).await;
    assert_eq!(story.lease(1).await, "high");
    assert_eq!(expired(&story, "9").await, 20);
}

/// It does not wait for the urgent one to be consumed.
pub async fn an_expired_low_message_does_not_wait_behind_an_urgent_one<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("urgent:9 low:1,ttl=1000").await;
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "urgent");
}

/// Not its own alone, nor the queue's alone.
pub async fn the_shortest_time_to_live_holds<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| (s.ttl_ms, s.max_ttl_ms) = (60_000, 30_000))).await;
    let base = story.fixture().now();
    story.publish("none:5,id=none own:5,id=own,ttl=1000 long:5,id=long,ttl=99000").await;
    for (id, ms) in [("none", 30_000), ("own", 1_000), ("long", 30_000)] {
        let shown = story.show(id).await.message;
        assert_eq!(shown.expires, Some(shown.since.after(ms)), "{id}");
        assert!(shown.since >= base);
    }
}

/// What is stamped at publish stays.
pub async fn a_changed_time_to_live_touches_no_message_that_is_there<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("before:5").await;
    story.declare("q", settings(|s| s.ttl_ms = SHORT_MS)).await;
    story.publish("after:5").await;
    story.declare("q", Settings::default()).await;
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "before");
}

/// Nothing said is nothing set.
pub async fn no_time_to_live_is_for_ever<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,id=a").await;
    assert_eq!(story.show("a").await.message.expires, None);
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "a");
}

/// A consumer that has it may finish; if it gives it back, it is over.
pub async fn a_message_that_expires_while_leased_is_not_delivered_again<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,ttl=1000 b:5,ttl=1000").await;
    assert_eq!(story.lease(2).await, "a b");
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "leased a b");
    story.nack("a").await;
    story.ack("b").await;
    assert_eq!(story.left().await, "");
}

/// Out of the lanes is no shelter.
pub async fn a_delayed_message_expires_too<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,ttl=1000,delay=600000").await;
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "");
    assert_eq!(expired(&story, "5").await, 1);
}

/// When the queue says so.
pub async fn an_expired_message_becomes_a_dead_letter_if_asked<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.dead_letter_expired = true)).await;
    story.publish("a:7,id=a,ttl=1000").await;
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "dead a");
    let shown = story.show("a").await.message;
    let death = shown.death().expect("it died");
    assert_eq!((shown.status, death.reason, &*death.lane), (Status::Dead, DeathReason::Expired, "7"));
}

/// A lease that waits sleeps through it and is still woken by the next.
pub async fn a_lease_that_waits_is_not_served_with_what_is_over<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("gone:9,ttl=1000,delay=1000").await;
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.advance(SHORT_MS).await;
        story.publish("a:1").await;
    });
    assert_eq!(leased, "a");
}

/// 0 is "at once": whoever waits gets it, else it is over.
pub async fn a_time_to_live_of_0_is_taken_at_once_or_over<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("gone:5,ttl=0").await;
    assert_eq!((&*story.left().await, expired(&story, "5").await), ("", 1));
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.publish("a:5,ttl=0").await;
    });
    assert_eq!(leased, "a");
    story.nack("a").await;
    assert_eq!((&*story.left().await, expired(&story, "5").await), ("", 2));
}

/// For all of its messages, and it takes no room that another needs.
pub async fn a_queue_may_let_expire_what_nobody_takes_at_once<F: Fixture>(fixture: F) {
    let at_once = settings(|s| (s.expire_at_once, s.dead_letter_expired) = (true, true));
    let story = Story::of(fixture, at_once).await;
    let mut consumer = story.consume(1).await;
    story.publish("a b").await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    assert_eq!(story.left().await, "leased a · dead b");
}

/// A limit of no messages: it is evicted like any other, also when it comes back; or refused where the queue refuses what is too much.
pub async fn a_queue_may_evict_what_nobody_takes_at_once<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.evict_at_once = true)).await;
    let mut consumer = story.consume(1).await;
    story.publish("a b").await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    assert_eq!(story.left().await, "leased a");
    story.nack("a").await;
    assert_eq!(story.left().await, "");
    let lane = story.lane("4").await;
    assert_eq!((lane.evicted, lane.expired), (2, 0));
}

/// As a dead letter, where the queue keeps what it evicts.
pub async fn what_is_evicted_at_once_may_be_kept<F: Fixture>(fixture: F) {
    let keeps = settings(|s| (s.evict_at_once, s.dead_letter_evicted) = (true, true));
    let story = Story::of(fixture, keeps).await;
    story.publish("a:5,id=a").await;
    assert_eq!(story.left().await, "dead a");
    assert_eq!(story.show("a").await.message.death().expect("it died").reason, DeathReason::Maxlen);
}

/// Where a full queue refuses, it is always full.
pub async fn a_queue_of_no_messages_may_refuse_all<F: Fixture>(fixture: F) {
    let refuses = settings(|s| (s.evict_at_once, s.overflow) = (true, Overflow::Reject));
    let story = Story::of(fixture, refuses).await;
    assert_eq!(story.refusal("a").await, Refusal::QueueFull);
}
