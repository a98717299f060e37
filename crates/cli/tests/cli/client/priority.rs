//! Scopes, and how a priority travels.

use overtake_client::{InPriority, Priority, with_priority, with_priority_sync};
use serde_json::json;

use super::{World, go, next, said, shown, take};
use crate::support::http::ask;

#[test]
fn what_a_message_says_goes_before_the_scope_and_the_innermost_scope_before_the_others() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        client.publish("q", said("nothing")).await.unwrap();
        with_priority(Priority::LOW, async {
            client.publish("q", said("low")).await.unwrap();
            with_priority(Priority::CRITICAL, async {
                client.publish("q", said("critical")).await.unwrap();
            })
            .await;
            client.publish("q", said("low again")).await.unwrap();
            client.publish("q", said("bulk").priority(Priority::BULK)).await.unwrap();
            client.publish("q", said("zero").priority(0)).await.unwrap();
            client.publish_all("q", [said("many"), said("odd").priority(7)]).await.unwrap();
            client.send("q", said("sent")).await.unwrap().wait().await.unwrap();
        })
        .await;
    });
    assert_eq!(
        world.waiting("q"),
        "critical:100 odd:7 nothing:- zero:0 low:-50 low again:-50 many:-50 sent:-50 bulk:-100",
        "an explicit 0 is explicit, and what says nothing says nothing"
    );
}

#[test]
fn a_scope_holds_for_what_is_awaited_in_it_although_it_was_called_before() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        with_priority(Priority::LOW, client.publish("q", said("publish"))).await.unwrap();
        client.publish("q", said("in_priority")).in_priority(Priority::LOW).await.unwrap();
        with_priority(Priority::LOW, client.publish_all("q", [said("publish_all")])).await.unwrap();
        with_priority(Priority::LOW, client.send("q", said("send"))).await.unwrap().wait().await.unwrap();
        with_priority(Priority::LOW, client.publish("q", said("explicit").priority(7))).await.unwrap();
        with_priority(Priority::LOW, async {
            client.publish("q", said("inner")).in_priority(Priority::HIGH).await.unwrap();
        })
        .await;
    });
    assert_eq!(
        world.waiting("q"),
        "inner:50 explicit:7 publish:-50 in_priority:-50 publish_all:-50 send:-50"
    );
}

#[test]
fn what_is_awaited_outside_of_any_scope_has_that_in_which_it_was_called() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let later = with_priority_sync(Priority::LOW, || client.publish("q", said("a")));
        later.await.unwrap();
        let later = with_priority_sync(Priority::LOW, || client.publish_all("q", [said("b")]));
        later.await.unwrap();
    });
    assert_eq!(world.waiting("q"), "a:-50 b:-50");
}

#[test]
fn a_scope_ends_with_a_panic_and_is_no_other_tasks() {
    go(async {
        let panicking = tokio::spawn(with_priority(Priority::LOW, async {
            let inner = with_priority(Priority::HIGH, async { panic!("as it may") });
            let caught = tokio::spawn(inner.in_current_priority()).await;
            assert!(caught.unwrap_err().is_panic());
            let same_task =
                std::panic::catch_unwind(|| with_priority_sync(Priority::BULK, || panic!("as it may")));
            assert!(same_task.is_err());
            Priority::current()
        }));
        assert_eq!(panicking.await.unwrap(), Priority::LOW);
        let other = with_priority(Priority::LOW, async {
            tokio::spawn(async { Priority::current() }).await.unwrap()
        });
        assert_eq!(other.await, Priority::NORMAL, "a task begins outside");
        let inherits = with_priority(9, async {
            tokio::spawn(async { Priority::current() }.in_current_priority()).await.unwrap()
        });
        assert_eq!(inherits.await, Priority(9));
        let thread =
            with_priority(9, async { tokio::task::spawn_blocking(Priority::current).await.unwrap() });
        assert_eq!(thread.await, Priority::NORMAL);
        assert_eq!(async { Priority::current() }.in_priority(Priority::HIGH).await, Priority::HIGH);
    });
}

#[test]
fn a_priority_comes_as_it_went() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let mut consumer = client.consume("q", 1).await.unwrap();
        for priority in [i32::MIN, -50, -1, 0, 7, 255, 256, 300, i32::MAX] {
            client.publish("q", said("a").priority(priority)).await.unwrap();
            assert_eq!(take(&mut consumer, 1).await, format!("a:{priority}"));
        }
        client.publish("q", said("a")).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, "a:-");
    });
}

/// Every queue a hop: each handler publishes into the next, in the scope of what it handles.
#[test]
fn a_priority_survives_three_hops_a_retry_a_dead_letter_and_its_replay() {
    let world = World::new();
    for queue in ["one", "two", "three", "end"] {
        world.queue(queue, &json!({"scheme": "signed", "delivery_limit": 2}));
    }
    go(async {
        let client = world.client().await;
        let mut handlings = Vec::new();
        for (from, to) in [("one", "two"), ("two", "three")] {
            let next = client.clone();
            let handle = move |message: overtake_client::Received| {
                let next = next.clone();
                async move {
                    // A task of its own in between.
                    let publish = async move {
                        next.publish(to, overtake_client::Message::new(message.body().clone())).await
                    };
                    tokio::spawn(publish.in_current_priority()).await.unwrap()
                }
            };
            handlings.push(client.handle(from, 1, handle).await.unwrap());
        }
        for (body, priority) in
            [("low", Some(-50)), ("none", None), ("zero", Some(0)), ("seven", Some(7)), ("big", Some(300))]
        {
            let message = said(body);
            let message = priority.map_or(message.clone(), |priority| message.priority(priority));
            client.publish("one", message).await.unwrap();
            // It fails twice, and is dead.
            let mut consumer = client.consume("three", 1).await.unwrap();
            for attempt in 1..=2 {
                let delivery = next(&mut consumer).await;
                assert_eq!((delivery.count(), delivery.text()), (attempt, Some(body)));
                delivery.nack().unwrap();
            }
            // What follows it shows that it is gone.
            client.publish("three", said("after")).await.unwrap();
            assert_eq!(take(&mut consumer, 1).await, "after:-");
            let expected =
                format!("{body}:{}", priority.map_or("-".to_owned(), |priority: i32| priority.to_string()));
            assert_eq!(world.messages("three", "dead"), expected);
            ask(&world.broker.url, "POST", "/v1/queues/three/replay", &json!({"all": true})).expect(200);
            let delivery = next(&mut consumer).await;
            assert_eq!(shown(&delivery), expected);
            delivery.ack().unwrap();
        }
        for handling in handlings {
            handling.stop().await.unwrap();
        }
    });
}
