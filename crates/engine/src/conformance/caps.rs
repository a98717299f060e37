//! How many at once: caps of queues and lanes, windows of consumers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use overtake_lane::{
    LaneSettings, LeaseTerm, Outcome, PartitionMode, Partitions, Priority, RateLimit, Settings, UrgentCredit,
};
use tokio::task::JoinSet;

use super::{ENDS, Fixture, Story, settings};
use crate::api::LeaseRequest;

fn cap(most: u32) -> Settings {
    settings(|s| s.max_active = most)
}

/// However many ask.
pub async fn no_more_than_max_active_are_leased_at_once<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, cap(2)).await;
    story.publish("a:5 b:5 c:5").await;
    assert_eq!(story.lease(9).await, "a b");
    assert_eq!(story.lease(9).await, "");
    story.ack("a").await;
    assert_eq!(story.lease(9).await, "c");
}

/// Whoever waits gets the place that is free.
pub async fn a_place_that_gets_free_is_given_at_once<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, cap(1)).await;
    story.publish("a:5 b:5").await;
    story.lease(1).await;
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.ack("a").await;
    });
    assert_eq!(leased, "b");
}

/// Long bulk jobs never hold every place.
pub async fn a_cap_of_a_lane_keeps_places_for_the_others<F: Fixture>(fixture: F) {
    let lanes = [("1".to_owned(), LaneSettings { max_active: 2 })].into();
    let story = Story::of(fixture, settings(|s| (s.max_active, s.lanes) = (4, lanes))).await;
    story.publish("a:1 b:1 c:1 d:1").await;
    assert_eq!(story.lease(9).await, "a b");
    story.publish("x:9 y:5 z:9").await;
    assert_eq!(story.lease(9).await, "x z");
    story.ack("x").await;
    assert_eq!(story.lease(9).await, "y");
    story.ack("a z").await;
    assert_eq!(story.lease(9).await, "c");
}

/// It starts nothing new, and takes nothing away.
pub async fn a_cap_lowered_below_what_is_out_cancels_nothing<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, cap(3)).await;
    story.publish("a:5 b:5 c:5 d:5").await;
    assert_eq!(story.lease(3).await, "a b c");
    story.declare("q", cap(1)).await;
    assert_eq!(story.leased().await, 3);
    story.ack("a b").await;
    assert_eq!(story.lease(9).await, "");
    story.ack("c").await;
    assert_eq!(story.lease(9).await, "d");
}

/// Whoever waits is served when there is more room.
pub async fn a_cap_that_is_raised_lets_more_out_at_once<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, cap(1)).await;
    story.publish("a:5 b:5").await;
    story.lease(1).await;
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.declare("q", cap(2)).await;
    });
    assert_eq!(leased, "b");
}

/// One for which it was leased to both kinds of consumer.
pub async fn a_cap_counts_pulls_and_consumers_together<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, cap(3)).await;
    story.publish("a:5 b:5 c:5 d:5 e:5").await;
    assert_eq!(story.lease(1).await, "a");
    let mut consumer = story.consume(10).await;
    assert_eq!(story.next(&mut consumer, 2).await, "b c");
    assert_eq!((&*story.lease(9).await, story.leased().await), ("", 3));
    story.ack("a").await;
    assert_eq!(story.next(&mut consumer, 1).await, "d");
}

/// Eight at once, and never more than the cap among them.
pub async fn many_consumers_never_hold_more_than_the_cap<F: Fixture>(fixture: F) {
    const CAP: u64 = 3;
    let story = Story::of(fixture, cap(CAP as u32)).await;
    for n in 0..60 {
        story.publish(&format!("m{n}:{}", n % 10)).await;
    }
    let (held, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let (engine, held, done) = (story.engine(), held.clone(), done.clone());
        workers.spawn(async move {
            let request =
                LeaseRequest { wait_ms: 600_000, term: LeaseTerm::Ms(0), ..LeaseRequest::new("q".into(), 2) };
            while done.load(Ordering::SeqCst) < 60 {
                let leased = tokio::select! {
                    leased = engine.lease(request.clone()) => leased.expect("leased"),
                    () = until_done(&done, 60) => return,
                };
                let count = leased.len() as u64;
                assert!(held.fetch_add(count, Ordering::SeqCst) + count <= CAP, "more than the cap are held");
                tokio::task::yield_now().await;
                held.fetch_sub(count, Ordering::SeqCst);
                let receipts = leased.iter().map(|message| message.receipt).collect();
                engine.settle(receipts, Outcome::Ack).await.expect("settled");
                done.fetch_add(count, Ordering::SeqCst);
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker.expect("a worker does not panic");
    }
    assert_eq!(done.load(Ordering::SeqCst), 60);
    assert_eq!(story.left().await, "");
}

async fn until_done(done: &AtomicU64, all: u64) {
    while done.load(Ordering::SeqCst) < all {
        tokio::task::yield_now().await;
    }
}

/// What a consumer has not settled counts; the rest stays in the queue, for others and for what is more urgent.
pub async fn a_consumer_holds_no_more_than_its_window<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5").await;
    let mut consumer = story.consume(2).await;
    assert_eq!(story.next(&mut consumer, 2).await, "a b");
    assert_eq!(story.left().await, "c · leased a b");
    story.publish("x:9").await;
    story.ack("a").await;
    assert_eq!(story.next(&mut consumer, 1).await, "x");
}

/// The queue's own, whatever the consumer asks for.
pub async fn the_window_of_a_queue_bounds_every_consumer<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.max_unacked = 1)).await;
    story.publish("a:5 b:5 c:5 d:5").await;
    let mut unasked = story.consume_with(None, None, 0).await;
    assert_eq!(story.next(&mut unasked, 1).await, "a");
    let mut asked = story.consume_with(Some(10), None, 0).await;
    assert_eq!(story.next(&mut asked, 1).await, "b");
    assert_eq!(story.left().await, "c d · leased a b");
    story.ack("b").await;
    assert_eq!(story.next(&mut asked, 1).await, "c");
    // What changes counts at once.
    story.declare("q", settings(|s| s.max_unacked = 2)).await;
    let left = story.left().await;
    let left: BTreeSet<&str> = left.split(' ').collect();
    assert_eq!(left, BTreeSet::from(["leased", "a", "c", "d"]));
}

/// A pull is as a consumer that asks for so many.
pub async fn the_window_of_a_queue_bounds_every_lease<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.max_unacked = 2)).await;
    story.publish("a:5 b:5 c:5").await;
    story.lease(3).await;
    assert_eq!(story.left().await, "c · leased a b");
}

/// A window full of bulk is no wall.
pub async fn urgent_credit_lets_urgent_messages_into_a_full_window<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let urgent = UrgentCredit { at: Priority(8), extra: 1 };
    let mut consumer = story.consume_with(Some(1), Some(urgent), 0).await;
    story.publish("bulk:1 more:1 seven:7").await;
    assert_eq!(story.next(&mut consumer, 1).await, "bulk");
    story.publish("eight:8 nine:9").await;
    assert_eq!(story.next(&mut consumer, 1).await, "eight");
    assert_eq!(story.left().await, "nine seven more · leased bulk eight");
}

/// Not in twos and threes to whoever came first.
pub async fn consumers_with_room_take_turns<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let (mut one, mut two) = (story.consume(9).await, story.consume(9).await);
    story.publish("a:5 b:5 c:5 d:5").await;
    assert_eq!(story.next(&mut one, 2).await, "a c");
    assert_eq!(story.next(&mut two, 2).await, "b d");
}

/// While it has window.
pub async fn a_consumer_of_higher_priority_is_served_first<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let (mut low, mut high) =
        (story.consume_with(Some(9), None, 0).await, story.consume_with(Some(2), None, 1).await);
    story.publish("a:5 b:5 c:5").await;
    assert_eq!(story.next(&mut high, 2).await, "a b");
    assert_eq!(story.next(&mut low, 1).await, "c");
}

/// Its leases end with it.
pub async fn what_a_consumer_held_is_put_back_when_it_goes<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:5").await;
    let mut consumer = story.consume(2).await;
    assert_eq!(story.next(&mut consumer, 2).await, "a b");
    story.ack("a").await;
    assert_eq!(story.next(&mut consumer, 1).await, "c");
    drop(consumer);
    story.until_leased(0).await;
    assert_eq!((&*story.left().await, story.view().await.consumers), ("b c", 0));
    assert_eq!(story.drain().await, "b(2) c(2)");
}

/// Before the settings: one consumer, one message.
pub async fn a_consumers_lease_has_no_end_of_its_own<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.visibility_timeout_ms = 1_000)).await;
    let mut consumer = story.consume(1).await;
    story.publish("a:5").await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    story.advance(2_000).await;
    assert_eq!(story.left().await, "leased a");
    story.ack("a").await;
}

/// What is held back holds nobody else back.
pub async fn no_more_of_a_key_are_leased_than_the_limit_of_its_group<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.group_limit = 1)).await;
    story.publish("a:9,key=k b:9,key=k c:5,key=l d:5 e:5").await;
    assert_eq!(story.lease(9).await, "a c d e");
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.ack("a").await;
    });
    assert_eq!(leased, "b");
}

/// Where places go by the key nothing else needs to be said of it.
pub async fn one_message_of_a_key_is_leased_where_places_go_by_the_key<F: Fixture>(fixture: F) {
    let by_key = Partitions { mode: PartitionMode::Key, count: 4, ..Partitions::default() };
    let story = Story::of(fixture, settings(|s| s.partitions = by_key)).await;
    story.publish("a:9,key=k b:9,key=k c:5,key=l d:5 e:5").await;
    assert_eq!(story.lease(9).await, "a c d e");
    story.ack("a").await;
    assert_eq!(story.lease(9).await, "b");
}

/// What was out is out still.
pub async fn groups_survive_a_restart<F: Fixture>(fixture: F) {
    let mut story = Story::of(fixture, settings(|s| s.group_limit = 1)).await;
    story.publish("a:5,key=k b:5,key=k c:5,key=k").await;
    assert_eq!(story.lease(1).await, "a");
    story.durable().await;
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.lease(9).await, "", "{end:?}");
    }
    story.ack("a").await;
    assert_eq!(story.lease(9).await, "b");
}

/// Whoever waits gets the next token.
pub async fn a_rate_lets_so_many_go_in_so_long<F: Fixture>(fixture: F) {
    let rate = RateLimit { messages: 2, per_ms: 2_000 };
    let story = Story::of(fixture, settings(|s| s.rate_limit = Some(rate))).await;
    story.publish("a:5 b:5 c:5 d:5").await;
    assert_eq!(story.lease(9).await, "a b");
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.advance(1_000).await;
    });
    assert_eq!(leased, "c");
    assert_eq!(story.lease(9).await, "");
}

/// Nor does what has no key wait.
pub async fn a_rate_of_a_key_holds_back_nobody_else<F: Fixture>(fixture: F) {
    let rate = RateLimit { messages: 1, per_ms: 2_000 };
    let story = Story::of(fixture, settings(|s| s.key_rate_limit = Some(rate))).await;
    story.publish("a:9,key=k b:9,key=k c:5,key=l d:5 e:5").await;
    assert_eq!(story.lease(9).await, "a c d e");
    story.advance(2_000).await;
    assert_eq!(story.lease(9).await, "b");
}

/// In place of the oldest message first.
pub async fn keys_may_take_turns<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.fair_keys = true)).await;
    story.publish("a:5,key=k b:5,key=k c:5,key=k x:5,key=l y:9,key=k").await;
    assert_eq!(story.lease(9).await, "y x a b c");
}

/// What comes waits, and what is out may be settled.
pub async fn nothing_is_leased_while_a_queue_is_paused<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, Settings::default()).await;
    story.publish("a:5 b:5").await;
    assert_eq!(story.lease(1).await, "a");
    story.declare("q", settings(|s| s.paused = true)).await;
    story.ack("a").await;
    assert_eq!(story.lease(9).await, "");
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.declare("q", Settings::default()).await;
    });
    assert_eq!(leased, "b");
}
