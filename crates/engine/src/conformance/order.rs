//! Which message goes next.

use overtake_lane::{BrowseOrder, ExchangeKind, Given, Priority, Scheme};

use super::{Fixture, Story, settings};
use crate::api::Browse;

/// The reason for all of this.
pub async fn urgent_work_overtakes_bulk_work<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("bulk:1 urgent:9 middle:5").await;
    assert_eq!(story.lease(9).await, "urgent middle bulk");
}

/// Leased one by one or all at once, the order is the same.
pub async fn within_a_priority_the_oldest_goes_first<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 x:9 c:5 y:9").await;
    assert_eq!(story.drain().await, "x y a b c");
}

/// Low messages that were confirmed first give way to a high one that comes later.
pub async fn no_lease_passes_over_a_more_urgent_message_that_was_confirmed_before_it<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:1 b:1 c:1").await;
    assert_eq!(story.lease(1).await, "a");
    story.publish("urgent:9").await;
    assert_eq!(story.lease(1).await, "urgent");
    assert_eq!(story.lease(1).await, "b");
}

/// An explicit 0 is the least urgent, nothing is 4.
pub async fn no_priority_is_not_the_priority_zero<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let copies = story.publish("none zero:0 three:3 five:5").await;
    assert_eq!(copies[0].priority, 4.into());
    assert_eq!(copies[1].priority, 0.into());
    assert_eq!(story.drain().await, "five none three zero");
}

/// What a queue takes a missing priority for is its own to say.
pub async fn a_queue_may_say_what_no_priority_means<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.default_priority = Some(8.into()))).await;
    story.publish("seven:7 none nine:9").await;
    assert_eq!(story.drain().await, "nine none seven");
}

/// Counted as 9, shown as 12.
pub async fn a_priority_is_shown_as_it_came<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("nine:9,id=nine twelve:12,id=twelve").await;
    let shown = story.show("twelve").await.message;
    assert_eq!((shown.priority, shown.level.0, &*shown.lane), (12.into(), 9, "9"));
    assert_eq!(story.drain().await, "nine twelve");
}

/// The names of the seed that has them, and every integer between.
pub async fn the_signed_scheme_takes_numbers_and_names<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Signed)).await;
    story.publish("bulk:bulk none low:LOW most:2147483647 high:high least:-2147483648").await;
    assert_eq!(story.drain().await, "most high none low bulk least");
}

/// Five names, in any case.
pub async fn the_named_scheme_orders_its_five_names<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Named)).await;
    story.publish("e:background d:low none c:normal b:HIGH a:critical").await;
    assert_eq!(story.drain().await, "a b none c d e");
}

/// As in routes: 0 first, and what gives none after all that give one.
pub async fn the_route_scheme_puts_zero_first_and_nothing_last<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Route)).await;
    story.publish("none nine:9 zero:0 five:5").await;
    assert_eq!(story.drain().await, "zero five nine none");
}

/// Each queue takes what is as urgent in its own scheme, whatever number or name stood for it elsewhere.
pub async fn a_priority_of_another_scheme_is_as_urgent_here<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let schemes = [
        ("ten", Scheme::TenLevel),
        ("signed", Scheme::Signed),
        ("named", Scheme::Named),
        ("route", Scheme::Route),
        ("max", Scheme::Max(5)),
    ];
    for (queue, scheme) in schemes {
        story.declare(queue, settings(|s| s.scheme = scheme)).await;
    }
    let names = schemes.map(|(queue, _)| queue);
    story.exchange("x", ExchangeKind::Fanout, &names).await;
    let mut messages = story.messages("last,to=x/ first,to=x/ middle,to=x/");
    let levels = [
        Given::Of(Scheme::Route, Priority(0)),
        Given::Of(Scheme::Named, Priority(4)),
        Given::Of(Scheme::Signed, Priority(0)),
    ];
    for (message, priority) in messages.iter_mut().zip(levels) {
        message.priority = priority;
    }
    story.engine().publish(messages).await.expect("published");
    for queue in names {
        assert_eq!(story.left_in(queue).await, "first middle last", "{queue}");
    }
    let expected =
        [("ten", "9"), ("signed", "CRITICAL"), ("named", "critical"), ("route", "0"), ("max", "5")];
    for (queue, shown) in expected {
        let browse = Browse { order: BrowseOrder::Dispatch, limit: 1, ..Browse::default() };
        let page = story.engine().browse(queue, browse).await.expect("a page");
        assert_eq!(page.messages[0].message.priority.to_string(), shown, "{queue}");
    }
}

/// As `x-max-priority`.
pub async fn the_max_scheme_takes_more_than_its_most_as_its_most<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Max(3))).await;
    story.publish("none three:3 nine:9 one:1").await;
    assert_eq!(story.drain().await, "three nine one none");
}

/// What was leased before a message came is not taken back for it.
pub async fn only_what_is_leased_already_can_come_before_a_more_urgent_message<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:1 b:1").await;
    let mut consumer = story.consume(1).await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    story.publish("urgent:9").await;
    story.ack("a").await;
    assert_eq!(story.next(&mut consumer, 1).await, "urgent");
}
