//! What can never be done: kept, moved, brought back.

use overtake_lane::{DeadLetterTo, DeathReason, ExchangeKind, Priority, Refusal, Scheme, Settings, Status};

use super::{Fixture, Story, settings};

fn into_queue(queue: &str) -> Settings {
    settings(|s| s.dead_letter = DeadLetterTo::Queue(queue.into()))
}

/// With everything it was: priority, place, reason, count and time.
pub async fn a_rejected_message_is_kept_as_a_dead_letter<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:7,id=a b:5").await;
    story.lease(1).await;
    let before = story.fixture().now();
    story.reject("a").await;
    assert_eq!(story.left().await, "b · dead a");
    let shown = story.show("a").await.message;
    assert_eq!((shown.status, shown.level), (Status::Dead, Priority(7)));
    let death = shown.death().expect("it died");
    assert_eq!(
        (death.reason, &*death.queue, &*death.lane, death.count),
        (DeathReason::Rejected, "q", "7", 1)
    );
    assert!((before..=story.fixture().now()).contains(&death.at));
}

/// Where nobody wants to look at them.
pub async fn dead_letters_may_be_dropped<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.dead_letter = DeadLetterTo::Drop)).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.reject("a").await;
    assert_eq!((&*story.left().await, story.lane("5").await.removed), ("", 1));
}

/// Into its own lane there, with where it came from.
pub async fn dead_letters_may_go_to_another_queue<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, into_queue("dead")).await;
    story.declare("dead", Settings::default()).await;
    story.publish("low:1,in=dead a:7 b:7").await;
    story.lease(2).await;
    story.reject("b").await;
    story.reject("a").await;
    assert_eq!((&*story.left().await, &*story.left_in("dead").await), ("", "b a low"));
    let page = story
        .engine()
        .browse("dead", crate::api::Browse { limit: 1, ..Default::default() })
        .await
        .expect("seen");
    let death = page.messages[0].message.death().expect("it died");
    assert_eq!((&*death.queue, &*death.lane, page.messages[0].message.level), ("q", "7", Priority(7)));
}

/// Both into a queue of another scheme, and back into their own lanes.
pub async fn in_a_queue_of_another_scheme_a_dead_letter_is_as_urgent<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, into_queue("dead")).await;
    story.declare("dead", settings(|s| s.scheme = Scheme::Named)).await;
    story.publish("low:1,id=low high:8,id=high").await;
    story.lease(2).await;
    story.reject("low").await;
    story.reject("high").await;
    assert_eq!(story.left_in("dead").await, "high low");
    let level = async |queue: &str, id: &str| {
        story.engine().message(queue, id).await.expect("it is there").message.level
    };
    assert_eq!([level("dead", "high").await, level("dead", "low").await], [Priority(4), Priority(0)]);
    let all = crate::api::Select::Matching(crate::api::Filter::default());
    assert_eq!(story.engine().replay("dead", all, None).await, Ok(2));
    assert_eq!(story.left().await, "high low");
    assert_eq!([level("q", "high").await, level("q", "low").await], [Priority(8), Priority(1)]);
}

/// As if published there.
pub async fn dead_letters_may_go_to_an_exchange<F: Fixture>(fixture: F) {
    let to = DeadLetterTo::Exchange { name: "dlx".into(), routing_key: None };
    let story = Story::of(fixture, settings(|s| s.dead_letter = to)).await;
    story.declare("one", Settings::default()).await;
    story.declare("two", Settings::default()).await;
    story.exchange("dlx", ExchangeKind::Topic, &["one q", "two #", "one #"]).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.reject("a").await;
    assert_eq!(
        (&*story.left().await, &*story.left_in("one").await, &*story.left_in("two").await),
        ("", "a", "a")
    );
}

/// No queue, no room, no route: it stays where it is, dead, and is not lost.
pub async fn a_dead_letter_that_cannot_be_written_stays<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, into_queue("dead")).await;
    story.publish("a:5 b:5").await;
    story.lease(2).await;
    story.reject("a").await;
    assert_eq!(story.left().await, "leased b · dead a");
    let full = settings(|s| (s.max_length, s.overflow) = (1, overtake_lane::Overflow::Reject));
    story.declare("dead", full).await;
    story.publish("x:1,in=dead").await;
    story.reject("b").await;
    assert_eq!((&*story.left().await, &*story.left_in("dead").await), ("dead a b", "x"));
}

/// Into its own lane, at its old place, with a fresh count.
pub async fn a_dead_letter_replayed_returns_to_its_lane<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.delivery_limit = 1)).await;
    story.publish("a:5,id=a b:5 x:9").await;
    assert_eq!(story.lease(2).await, "x a");
    story.nack("a").await;
    story.ack("x").await;
    assert_eq!(story.replay("a", None).await, Ok(1));
    assert_eq!(story.left().await, "a b");
    assert_eq!(story.lease(1).await, "a");
}

/// An explicit choice.
pub async fn a_dead_letter_may_be_replayed_with_another_priority<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:1,id=a b:5").await;
    story.lease(2).await;
    story.reject("a").await;
    story.release("b").await;
    assert_eq!(story.replay("a", Some("9")).await, Ok(1));
    assert_eq!(story.left().await, "a b");
}

/// From the queue that collects them, to where each came from.
pub async fn dead_letters_in_another_queue_are_replayed_into_their_own<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, into_queue("dead")).await;
    story.declare("dead", Settings::default()).await;
    story.publish("a:5 b:7 c:5 mine:5,in=dead").await;
    story.lease(2).await;
    story.reject("b").await;
    story.reject("a").await;
    let all = crate::api::Select::Matching(crate::api::Filter::default());
    let replayed = story.engine().replay("dead", all, None).await;
    assert_eq!((replayed, &*story.left_in("dead").await), (Ok(2), "mine"));
    assert_eq!(story.drain().await, "b c a");
}

/// Dead letters are counted apart, do not fill the queue and hold no place of the cap.
pub async fn dead_letters_count_against_no_limit<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| (s.max_length, s.max_active) = (1, 1))).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.reject("a").await;
    story.publish("b:5").await;
    assert_eq!(story.left().await, "b · dead a");
    assert_eq!(story.lease(1).await, "b");
}

/// Only the dead.
pub async fn a_message_that_lives_is_not_replayed<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,id=a").await;
    assert_eq!(story.replay("a", None).await, Err(Refusal::NotDead));
    assert_eq!(story.replay("*", None).await, Ok(0));
}

/// Two of one id are one too many.
pub async fn a_dead_letter_is_not_replayed_while_its_id_is_pending<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("old:5,id=x").await;
    story.lease(1).await;
    story.reject("old").await;
    let copies = story.publish("new:5,id=x").await;
    assert!(!copies[0].duplicate, "a dead letter is not pending");
    assert_eq!(story.replay("*dead", None).await, Ok(0));
    assert_eq!(story.left().await, "new · dead old");
    story.lease(1).await;
    story.ack("new").await;
    assert_eq!(story.replay("*dead", None).await, Ok(1));
    assert_eq!(story.left().await, "old");
}
