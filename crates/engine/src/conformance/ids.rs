//! Publishing the same thing twice, and where it stands.

use super::{Fixture, Story};

/// While it is pending: the answer is the position it has.
pub async fn a_message_of_a_pending_id_is_not_stored_again<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let first = story.publish("x:9 a:5,id=one b:5,id=two").await;
    let again = story.publish("other:1,id=two").await;
    assert!(again[0].duplicate && !first[2].duplicate);
    assert_eq!((again[0].seq, again[0].priority.clone()), (first[2].seq, 5.into()));
    assert_eq!((again[0].position, again[0].position_in_priority), (Some(2), Some(1)));
    assert_eq!(story.left().await, "x a b");
}

/// Out with a consumer or waiting to be due is pending too.
pub async fn leased_and_delayed_messages_are_pending<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,id=a").await;
    story.lease(1).await;
    story.publish("b:5,id=b,delay=600000").await;
    assert!(story.publish("a:5,id=a b:5,id=b").await.iter().all(|copy| copy.duplicate));
    assert_eq!(story.left().await, "leased a · delayed b");
}

/// It is free again.
pub async fn an_id_may_be_used_again_once_its_message_is_settled<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,id=a").await;
    story.lease(1).await;
    story.ack("a").await;
    let again = story.publish("a:5,id=a").await;
    assert!(!again[0].duplicate);
    assert_eq!(story.left().await, "a");
}

/// Each queue has its own.
pub async fn an_id_is_known_in_its_queue_only<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.declare("r", overtake_lane::Settings::default()).await;
    let copies = story.publish("a:5,id=x b:5,id=x,in=r").await;
    assert!(copies.iter().all(|copy| !copy.duplicate && copy.id == "x"));
    assert_eq!((&*story.left().await, &*story.left_in("r").await), ("a", "b"));
}

/// By its sequence.
pub async fn a_message_without_an_id_is_given_one<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let copies = story.publish("a:5 b:5").await;
    assert_eq!(copies[1].id, format!("seq-{}", copies[1].seq.0));
    assert!(copies[0].seq < copies[1].seq);
    assert_eq!(&*story.show(&copies[1].id).await.content.body, b"b");
}

/// In dispatch order, and in its own lane.
pub async fn a_publish_tells_how_many_messages_are_ahead<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let copies = story.publish("a:5 b:5 x:9 low:1 c:5").await;
    let positions: Vec<_> = copies.iter().map(|copy| (copy.position, copy.position_in_priority)).collect();
    let expected = [(0, 0), (1, 1), (0, 0), (3, 0), (3, 2)].map(|(all, lane)| (Some(all), Some(lane)));
    assert_eq!(positions, expected);
}

/// Asked later, answered as it is then.
pub async fn a_message_tells_how_many_are_ahead_of_it_now<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 x:9 b:5,id=b y:9").await;
    let shown = story.show("b").await;
    assert_eq!((shown.position, shown.position_in_priority), (Some(3), Some(1)));
    story.lease(1).await;
    story.ack("x").await;
    let shown = story.show("b").await;
    assert_eq!((shown.position, shown.position_in_priority), (Some(2), Some(1)));
    story.lease(9).await;
    assert_eq!(story.show("b").await.position, None);
}
