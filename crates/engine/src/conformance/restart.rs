//! What is still there when the engine has ended and is back: as planned, then without warning.

use overtake_lane::{
    BrowseOrder, DeadLetterTo, ExchangeKind, LastValue, Order, Outcome, Refusal, Scheme, Settings, Status,
};

use super::{ENDS, Fixture, Story, binding, settings};

/// A confirmed publish, with its content, priority and place.
pub async fn messages_survive<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("a:5,id=a,key=k,h.colour=red,bytes=3000 b:9 c:5,ttl=600000").await;
    let before = story.show("a").await;
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.find(BrowseOrder::Dispatch, "").await, "b a c", "{end:?}");
        let after = story.show("a").await;
        assert_eq!(after.content, before.content, "{end:?}");
        assert_eq!(
            format!("{:?}", (after.message.seq, &after.message.key, after.message.since)),
            format!("{:?}", (before.message.seq, &before.message.key, before.message.since)),
            "{end:?}"
        );
    }
}

/// What was confirmed settled never comes back.
pub async fn settled_messages_do_not_return<F: Fixture>(fixture: F) {
    let mut story = Story::of(fixture, settings(|s| s.dead_letter = DeadLetterTo::Drop)).await;
    story.publish("acked:9 rejected:8 removed:7,id=r left:5").await;
    story.lease(2).await;
    story.ack("acked").await;
    story.reject("rejected").await;
    story.remove("r").await.expect("removed");
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.left().await, "left", "{end:?}");
    }
}

/// With its receipt, its deadline and its count; and it counts against the cap.
pub async fn leases_survive_with_their_receipts_and_deadlines<F: Fixture>(fixture: F) {
    let mut story =
        Story::of(fixture, settings(|s| (s.max_active, s.visibility_timeout_ms) = (2, 60_000))).await;
    story.publish("a:5,id=a b:5,id=b c:5").await;
    assert_eq!(story.lease(9).await, "a b");
    let deadline = story.show("a").await.message.deadline;
    story.durable().await;
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.left().await, "c · leased a b", "{end:?}");
        assert_eq!(story.show("a").await.message.deadline, deadline, "{end:?}");
        assert_eq!(story.lease(9).await, "", "{end:?}");
    }
    story.ack("a").await;
    story.extend("b", 120_000).await.expect("the receipt holds");
    assert_eq!(story.lease(9).await, "c");
}

/// The time that passed while it was down counts.
pub async fn a_lease_ends_after_a_restart_when_it_would_have_ended<F: Fixture>(fixture: F) {
    let mut story = Story::of(fixture, settings(|s| s.visibility_timeout_ms = 1_000)).await;
    story.publish("a:5 b:5").await;
    story.lease(1).await;
    story.durable().await;
    for (count, end) in (2..).zip(ENDS) {
        story.again(end).await;
        story.advance(1_000).await;
        assert_eq!(story.left().await, "a b", "{end:?}");
        assert_eq!(story.lease(1).await, format!("a({count})"), "{end:?}");
        assert_eq!(story.settle("a#1", Outcome::Ack).await, Err(Refusal::StaleReceipt), "{end:?}");
        story.durable().await;
    }
}

/// Its connection is gone, and so is its hold.
pub async fn what_a_consumer_held_is_ready_again<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("a:5 b:5").await;
    for end in ENDS {
        let mut consumer = story.consume(1).await;
        assert!(story.next(&mut consumer, 1).await.starts_with('a'));
        story.again(end).await;
        assert_eq!(story.left().await, "a b", "{end:?}");
    }
}

/// Of what a consumer holds nothing is written when it is given.
pub async fn what_a_purge_leaves_survives_and_nothing_else<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("held:9").await;
    for end in ENDS {
        story.publish("b:5 c:5 d:5,delay=600000").await;
        let mut consumer = story.consume(1).await;
        assert!(story.next(&mut consumer, 1).await.starts_with("held"));
        assert_eq!(story.purge(None).await, 3, "{end:?}");
        story.publish("later:5").await;
        assert_eq!(story.purge(Some(Status::Ready)).await, 1);
        story.again(end).await;
        assert_eq!(story.left().await, "held", "{end:?}");
    }
}

/// As everything else.
pub async fn settings_survive<F: Fixture>(fixture: F) {
    let first =
        settings(|s| (s.scheme, s.max_active, s.last_value) = (Scheme::Signed, 7, Some(LastValue::Key)));
    let mut story = Story::of(fixture, first.clone()).await;
    let second = settings(|s| (s.order, s.dead_letter) = (Order::Fifo, DeadLetterTo::Queue("q".into())));
    story.declare("r", Settings::default()).await;
    story.declare("r", second.clone()).await;
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.view().await.settings, first, "{end:?}");
        assert_eq!(story.engine().queue("r").await.expect("there").settings, second, "{end:?}");
    }
}

/// Why, where and when included.
pub async fn dead_letters_survive<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("a:5,id=a b:5").await;
    story.lease(1).await;
    story.reject("a").await;
    let death = story.show("a").await.message.deaths;
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.left().await, "b · dead a", "{end:?}");
        assert_eq!(story.show("a").await.message.deaths, death, "{end:?}");
    }
    assert_eq!(story.replay("a", None).await, Ok(1));
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.left().await, "a b", "{end:?}");
    }
}

/// Also those that went to another queue: once, there, and with where they came from.
pub async fn dead_letters_that_moved_survive_where_they_are<F: Fixture>(fixture: F) {
    let mut story =
        Story::of(fixture, settings(|s| s.dead_letter = DeadLetterTo::Queue("dead".into()))).await;
    story.declare("dead", Settings::default()).await;
    story.publish("a:7,bytes=500 b:5").await;
    story.lease(1).await;
    story.reject("a").await;
    for end in ENDS {
        story.again(end).await;
        assert_eq!((&*story.left().await, &*story.left_in("dead").await), ("b", "a"), "{end:?}");
    }
    let all = crate::api::Select::Matching(crate::api::Filter::default());
    assert_eq!(story.engine().replay("dead", all, None).await, Ok(1));
    for end in ENDS {
        story.again(end).await;
        assert_eq!((&*story.left().await, &*story.left_in("dead").await), ("a b", ""), "{end:?}");
    }
}

/// In its new lane, at its old age.
pub async fn a_new_priority_survives<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("a:9 b:1,id=b c:9").await;
    story.reprioritise("b", "9").await.expect("done");
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.left().await, "a b c", "{end:?}");
        assert_eq!(story.show("b").await.message.priority, 9.into(), "{end:?}");
    }
}

/// Until it is due, also when that was meanwhile.
pub async fn a_delay_survives<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("a:5,delay=600000,id=a b:5,delay=1000").await;
    let due = story.show("a").await.message.due;
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.show("a").await.message.due, due, "{end:?}");
    }
    story.advance(1_000).await;
    assert_eq!(story.left().await, "b · delayed a");
}

/// It expires when it would have expired.
pub async fn a_time_to_live_survives<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.publish("a:5,ttl=1000 b:5").await;
    for end in ENDS {
        story.again(end).await;
    }
    story.advance(1_000).await;
    assert_eq!(story.left().await, "b");
}

/// The limit of deliveries goes on counting.
pub async fn a_delivery_count_survives<F: Fixture>(fixture: F) {
    let mut story = Story::of(fixture, settings(|s| s.delivery_limit = 3)).await;
    story.publish("a:5").await;
    for (before, end) in ["a", "a(2)"].into_iter().zip(ENDS) {
        assert_eq!(story.lease(1).await, before, "{end:?}");
        story.nack("a").await;
        story.again(end).await;
    }
    assert_eq!(story.lease(1).await, "a(3)");
    story.nack("a").await;
    assert_eq!(story.left().await, "dead a");
}

/// What is pending is known, so the publisher may ask again.
pub async fn pending_ids_survive<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    let first = story.publish("a:5,id=a").await;
    for end in ENDS {
        story.again(end).await;
        let again = story.publish("a:5,id=a").await;
        assert_eq!((again[0].duplicate, again[0].seq), (true, first[0].seq), "{end:?}");
    }
}

/// A sequence is used once, also when its message is long gone.
pub async fn sequences_go_on<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    let mut last = overtake_lane::Seq(0);
    for end in ENDS {
        let copies = story.publish("a:5 b:5").await;
        assert!(copies[0].seq > last, "{end:?}");
        last = copies[1].seq;
        assert_eq!(story.drain().await, "a b", "{end:?}");
        story.again(end).await;
    }
}

/// And route.
pub async fn exchanges_and_bindings_survive<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    story.exchange("x", ExchangeKind::Topic, &["q a.*", "r a.#", "r b"]).await;
    story.engine().unbind(binding("x", "r b")).await.expect("unbound");
    story.exchange("gone", ExchangeKind::Fanout, &["q"]).await;
    story.engine().delete_exchange("gone", false).await.expect("deleted");
    let before = story.engine().exchanges().await.expect("listed");
    let bound = story.engine().bindings("x").await.expect("listed");
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.engine().exchanges().await.expect("listed"), before, "{end:?}");
        assert_eq!(story.engine().bindings("x").await.expect("listed"), bound, "{end:?}");
    }
    story.publish("m,to=x/a.b n,to=x/b").await;
    assert_eq!((&*story.left().await, &*story.left_in("r").await), ("m", "m"));
}

/// Deleted is deleted, and the name is free.
pub async fn a_deleted_queue_does_not_return<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    story.publish("a:5,in=r").await;
    story.engine().delete_queue("r", crate::api::DeleteOnly::default()).await.expect("deleted");
    for end in ENDS {
        story.again(end).await;
        assert_eq!(
            super::refused(story.engine().queue("r").await.map(drop)),
            Refusal::NoSuchQueue,
            "{end:?}"
        );
    }
    story.declare("r", Settings::default()).await;
    assert_eq!(story.left_in("r").await, "");
}

/// Not a part of it.
pub async fn a_transaction_survives_whole<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    story.declare("r", Settings::default()).await;
    story.publish("a:5").await;
    story.lease(1).await;
    story.transact("x:5,bytes=2000 y:9,in=r z:1", &[("a", Outcome::Ack)]).await.expect("done");
    for end in ENDS {
        story.again(end).await;
        assert_eq!((&*story.left().await, &*story.left_in("r").await), ("x z", "y"), "{end:?}");
    }
}

/// Only the newest is there, also when the older one was out.
pub async fn last_values_survive<F: Fixture>(fixture: F) {
    let mut story = Story::of(fixture, settings(|s| s.last_value = Some(LastValue::Key))).await;
    story.publish("a1:5,key=a b1:5,key=b").await;
    assert_eq!(story.lease(1).await, "a1");
    story.publish("a2:5,key=a b2:9,key=b").await;
    for end in ENDS {
        story.again(end).await;
        assert_eq!(story.left().await, "b2 a2 · leased a1", "{end:?}");
    }
    story.nack("a1").await;
    assert_eq!(story.left().await, "b2 a2");
}

/// Everything at once, many times.
pub async fn nothing_is_lost_over_many_restarts<F: Fixture>(fixture: F) {
    let mut story = Story::new(fixture).await;
    let mut kept = Vec::new();
    for round in 0..6 {
        story.publish(&format!("keep{round}:5 gone{round}:9")).await;
        kept.push(format!("keep{round}"));
        assert_eq!(story.lease(1).await, format!("gone{round}"));
        story.ack(&format!("gone{round}")).await;
        story.again(ENDS[round % 2]).await;
        assert_eq!(story.left().await, kept.join(" "), "round {round}");
    }
}
