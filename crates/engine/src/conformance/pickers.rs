//! Which lane's head goes next, when it is not always the most urgent one.

use std::collections::BTreeMap;

use overtake_lane::PickerKind;

use super::{Fixture, Story, settings};

/// No hidden timer.
pub async fn strict_never_lets_age_win<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("old:1").await;
    story.advance(2_000).await;
    story.publish("new:2").await;
    assert_eq!(story.lease(2).await, "new old");
}

/// One step of age for each level: then the older one goes first.
pub async fn ageing_lets_a_message_pass_once_it_has_waited_its_steps<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.picker = PickerKind::AgingMs(300))).await;
    story.publish("old:4 older:1").await;
    story.advance(600).await;
    story.publish("new:5").await;
    assert_eq!(story.lease(3).await, "old new older");
}

/// In a lane nothing passes anything.
pub async fn ageing_keeps_the_order_inside_a_lane<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.picker = PickerKind::AgingMs(100))).await;
    story.publish("a:5 b:5").await;
    story.advance(50).await;
    story.publish("c:5 d:5").await;
    assert_eq!(story.drain().await, "a b c d");
}

/// Each lane in turn, the most urgent first, as many as its weight.
pub async fn weights_share_the_turns<F: Fixture>(fixture: F) {
    let weights = BTreeMap::from([("9".to_owned(), 3), ("5".to_owned(), 2)]);
    let story = Story::of(fixture, settings(|s| s.picker = PickerKind::Weighted(weights))).await;
    story.publish("a1:9 a2:9 a3:9 a4:9 b1:5 b2:5 b3:5 c1:1 c2:1").await;
    assert_eq!(story.drain().await, "a1 a2 a3 b1 b2 c1 a4 b3 c2");
}

/// What a lane cannot use it does not save up.
pub async fn an_empty_lane_gives_its_turn_away<F: Fixture>(fixture: F) {
    let weights = BTreeMap::from([("9".to_owned(), 2)]);
    let story = Story::of(fixture, settings(|s| s.picker = PickerKind::Weighted(weights))).await;
    story.publish("b1:5 b2:5 b3:5").await;
    assert_eq!(story.lease(2).await, "b1 b2");
    story.publish("a1:9 a2:9 a3:9").await;
    assert_eq!(story.lease(4).await, "a1 a2 b3 a3");
}

/// The next lease obeys the new one.
pub async fn the_picker_changes_while_messages_wait<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.picker = PickerKind::Weighted(BTreeMap::new()))).await;
    story.publish("a:9 b:9 c:5").await;
    assert_eq!(story.lease(2).await, "a c");
    story.publish("d:5").await;
    story.declare("q", overtake_lane::Settings::default()).await;
    assert_eq!(story.lease(2).await, "b d");
}
