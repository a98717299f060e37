//! Not before: out of the lanes until due, then at its place.

use overtake_lane::Status;

use super::{Fixture, Story};

const SHORT_MS: u64 = 1_000;

/// Neither leased nor in anybody's way.
pub async fn a_delayed_message_is_not_leased_before_it_is_due<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("later:9,delay=1000 now:1").await;
    assert_eq!(story.left().await, "now · delayed later");
    assert_eq!(story.drain().await, "now");
    story.advance(SHORT_MS).await;
    assert_eq!(story.drain().await, "later");
}

/// By its priority and the time it was published, not by when it is due.
pub async fn a_message_that_is_due_stands_where_its_sequence_says<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,delay=1000 b:5 x:9,delay=1000 c:5").await;
    story.advance(SHORT_MS).await;
    assert_eq!(story.drain().await, "x a b c");
}

/// At once.
pub async fn a_lease_that_waits_is_woken_by_a_message_that_is_due<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,delay=1000").await;
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.advance(SHORT_MS).await;
    });
    assert_eq!(leased, "a");
}

/// Each in its time.
pub async fn messages_come_due_one_after_the_other<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("b:5,delay=2000 a:5,delay=1000").await;
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "a · delayed b");
    story.advance(SHORT_MS).await;
    assert_eq!(story.left().await, "b a");
}

/// It says when.
pub async fn a_delayed_message_shows_when_it_is_due<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let copies = story.publish("a:5,id=a,delay=60000").await;
    assert_eq!((copies[0].position, copies[0].position_in_priority), (None, None));
    let shown = story.show("a").await.message;
    assert_eq!((shown.status, shown.due), (Status::Delayed, Some(shown.since.after(60_000))));
}
