//! What administrators do to messages.

use overtake_lane::{Given, Refusal, Scheme, Status};

use super::{Fixture, Story, refused, settings};
use crate::{Filter, Select};

/// Where its age puts it, not at the end.
pub async fn a_reprioritised_message_stands_where_its_age_puts_it<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:9 low:1,id=low b:9").await;
    assert_eq!(story.reprioritise("low", "9").await, Ok(1));
    assert_eq!(story.left().await, "a low b");
    assert_eq!(story.reprioritise("low", "0").await, Ok(1));
    assert_eq!(story.left().await, "a b low");
}

/// When it comes back from a consumer, it comes back there.
pub async fn a_new_priority_stays_through_a_put_back<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:1,id=a b:5").await;
    story.reprioritise("a", "9").await.expect("done");
    assert_eq!(story.lease(1).await, "a");
    story.nack("a").await;
    assert_eq!(story.drain().await, "a(2) b");
}

/// It is due when it was due.
pub async fn a_delayed_message_can_be_reprioritised<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("b:5 a:1,id=a,delay=1000").await;
    assert_eq!(story.reprioritise("a", "9").await, Ok(1));
    assert_eq!(story.left().await, "b · delayed a");
    story.advance(1_000).await;
    assert_eq!(story.left().await, "a b");
}

/// Its consumer has it, or it is dead.
pub async fn a_leased_or_dead_message_is_not_reprioritised<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5,id=a").await;
    story.lease(1).await;
    assert_eq!(story.reprioritise("a", "9").await, Err(Refusal::Leased));
    story.reject("a").await;
    assert_eq!(story.reprioritise("a", "9").await, Err(Refusal::Dead));
    assert_eq!(story.reprioritise("*", "9").await, Ok(0));
}

/// All that match and for which it can be done.
pub async fn messages_are_reprioritised_by_filter<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:1,key=k b:1 c:1,key=k d:9,h.colour=red e:1,h.colour=red f:2").await;
    assert_eq!(story.reprioritise("*key=k", "5").await, Ok(2));
    assert_eq!(story.reprioritise("*h.colour=red", "7").await, Ok(2));
    assert_eq!(story.reprioritise("*priority=2", "8").await, Ok(1));
    assert_eq!(story.left().await, "f d e a c b");
}

/// In the words of the queue's scheme.
pub async fn a_new_priority_is_understood_as_the_queue_says<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.scheme = Scheme::Named)).await;
    story.publish("a:low,id=a b:normal").await;
    assert_eq!(story.reprioritise("a", "critical").await, Ok(1));
    assert_eq!(story.reprioritise("a", "9").await, Err(Refusal::PriorityUnknown));
    assert_eq!(story.show("a").await.message.priority, "critical".into());
    assert_eq!(story.drain().await, "a b");
}

/// Ready, delayed, leased or dead.
pub async fn a_message_is_removed_wherever_it_stands<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story
        .publish("dead:9,id=dead leased:8,id=leased ready:5,id=ready delayed:5,id=delayed,delay=600000")
        .await;
    story.lease(2).await;
    story.reject("dead").await;
    for id in ["dead", "leased", "ready", "delayed"] {
        assert_eq!(story.remove(id).await, Ok(1), "{id}");
        assert_eq!(story.remove(id).await, Err(Refusal::NoSuchMessage), "{id}");
    }
    assert_eq!(story.left().await, "");
    let late = story.settle("leased", overtake_lane::Outcome::Ack).await;
    assert_eq!(late, Err(Refusal::StaleReceipt));
}

/// And nothing else.
pub async fn messages_are_removed_by_filter<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5,key=k c:9 d:9,delay=600000 e:1,h.n=7").await;
    assert_eq!(story.lease(1).await, "c");
    assert_eq!(story.remove("*ready priority=5 key=k").await, Ok(1));
    assert_eq!(story.remove("*h.n=7").await, Ok(1));
    assert_eq!(story.remove("*delayed").await, Ok(1));
    assert_eq!(story.remove("*key=nobody").await, Ok(0));
    assert_eq!(story.left().await, "a · leased c");
    assert_eq!(story.remove("*").await, Ok(2));
}

/// Whoever saw how many there are changes these or none.
pub async fn a_change_of_as_many_as_are_expected_is_done_or_nothing<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5 b:5 c:9,key=k d:1,delay=600000").await;
    let counted = |filter: Filter, expect| Select::Counted { filter, expect };
    let by_key = || Filter { key: Some("k".to_owned()), ..Filter::default() };
    let engine = story.engine();
    let differs = |count| Refusal::CountDiffers { count };
    assert_eq!(refused(engine.remove("q", counted(Filter::default(), 3)).await), differs(4));
    assert_eq!(refused(engine.remove("q", counted(by_key(), 0)).await), differs(1));
    assert_eq!(refused(engine.reprioritise("q", counted(by_key(), 2), Given::Number(1)).await), differs(1));
    assert_eq!(refused(engine.cancel_messages("q", counted(by_key(), 2)).await), differs(1));
    assert_eq!(refused(engine.replay("q", counted(by_key(), 2), None).await), differs(1));
    assert_eq!(refused(engine.purge_counted("q", None, 3).await), differs(4));
    assert_eq!(story.left().await, "c a b · delayed d");
    assert_eq!(engine.remove("q", counted(by_key(), 1)).await, Ok(1));
    assert_eq!(engine.purge_counted("q", Some(Status::Delayed), 1).await, Ok(1));
    assert_eq!(engine.purge_counted("q", None, 2).await, Ok(2));
    assert_eq!(engine.purge_counted("q", Some(Status::Dead), 0).await, Ok(0));
    assert_eq!(story.left().await, "");
}

/// The place of a removed message is free for the next.
pub async fn a_leased_message_that_is_removed_gives_its_place_free<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.max_active = 1)).await;
    story.publish("a:5,id=a b:5").await;
    story.lease(1).await;
    let (leased, ()) = tokio::join!(story.wait(600_000), async {
        story.until_waiting(1).await;
        story.remove("a").await.expect("removed");
    });
    assert_eq!(leased, "b");
}

/// What is with consumers stays with them.
pub async fn a_purge_takes_what_waits<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("leased:9 dead:9 ready:5 delayed:5,delay=600000").await;
    story.lease(2).await;
    story.reject("dead").await;
    assert_eq!(story.purge(None).await, 2);
    assert_eq!(story.left().await, "leased leased · dead dead");
    assert_eq!(story.purge(Some(Status::Dead)).await, 1);
    assert_eq!(story.purge(Some(Status::Leased)).await, 0);
    story.ack("leased").await;
}

/// Whoever waits for it hears that it is gone, and its messages are.
pub async fn a_queue_is_deleted_with_what_is_in_it<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    let mut consumer = story.consume(1).await;
    assert_eq!(story.next(&mut consumer, 1).await, "a");
    let engine = story.engine();
    engine.delete_queue("q", crate::api::DeleteOnly::default()).await.expect("deleted");
    assert!(consumer.next().await.is_none());
    story.declare("q", overtake_lane::Settings::default()).await;
    assert_eq!(story.left().await, "");
    assert_eq!(story.settle("a", overtake_lane::Outcome::Ack).await, Err(Refusal::StaleReceipt));
}

/// Told, not left waiting.
pub async fn a_lease_that_waits_hears_that_its_queue_is_gone<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    let (leased, ()) = tokio::join!(story.waiting_lease(600_000), async {
        story.until_waiting(1).await;
        story.engine().delete_queue("q", crate::api::DeleteOnly::default()).await.expect("deleted");
    });
    assert_eq!(super::refused(leased.map(|messages| messages.len())), Refusal::NoSuchQueue);
}

/// By name.
pub async fn every_queue_is_listed_with_its_settings<F: Fixture>(fixture: F) {
    let story = Story::of(fixture, settings(|s| s.max_active = 7)).await;
    story.declare("b", overtake_lane::Settings::default()).await;
    story.declare("a", overtake_lane::Settings::default()).await;
    let queues = story.engine().queues(None, usize::MAX).await.expect("listed").queues;
    let names: Vec<_> = queues.iter().map(|queue| &*queue.name).collect();
    assert_eq!((&names[..], queues[2].settings.max_active), (&["a", "b", "q"][..], 7));
}

/// By name, however the queues come and go between two pages.
pub async fn queues_are_listed_in_pages<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    for queue in ["b", "d", "a", "c"] {
        story.declare(queue, overtake_lane::Settings::default()).await;
    }
    let page = async |after, limit| {
        let page = story.engine().queues(after, limit).await.expect("listed");
        let names: Vec<_> = page.queues.iter().map(|queue| queue.name.to_string()).collect();
        (names.join(" "), page.next.map(|next| next.to_string()))
    };
    let check = |seen: (String, Option<String>), names: &str, next: Option<&str>| {
        assert_eq!((&*seen.0, seen.1.as_deref()), (names, next));
    };
    check(page(None, 2).await, "a b", Some("b"));
    story.engine().delete_queue("b", crate::api::DeleteOnly::default()).await.expect("deleted");
    story.declare("bb", overtake_lane::Settings::default()).await;
    check(page(Some("b"), 2).await, "bb c", Some("c"));
    check(page(Some("c"), 2).await, "d q", None);
    check(page(Some("q"), 2).await, "", None);
    check(page(None, 5).await, "a bb c d q", None);
    check(page(None, 4).await, "a bb c d", Some("d"));
}

/// New, or as before.
pub async fn declaring_a_queue_again_makes_no_second_one<F: Fixture>(fixture: F) {
    let story = Story::new(fixture).await;
    story.publish("a:5").await;
    let declared = story.engine().declare_queue("q", settings(|s| s.max_active = 3)).await.expect("declared");
    assert!(!declared.made);
    assert_eq!(story.view().await.settings.max_active, 3);
    assert_eq!(story.left().await, "a");
    assert!(story.engine().declare_queue("r", settings(|_| {})).await.expect("declared").made);
}
