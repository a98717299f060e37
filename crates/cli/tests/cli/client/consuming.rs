//! Consuming with a window, and settling.

use overtake_client::{ConsumeOptions, Error, Priority};
use serde_json::json;

use super::{World, go, next, said, shown, take};

#[test]
fn the_most_urgent_comes_first_and_no_more_than_the_window_is_out() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        for (body, priority) in [("a", -50), ("b", 0), ("c", 100), ("d", 0)] {
            client.publish("q", said(body).priority(priority)).await.unwrap();
        }
        let mut consumer = client.consume("q", 2).await.unwrap();
        let first = next(&mut consumer).await;
        let second = next(&mut consumer).await;
        assert_eq!((shown(&first), shown(&second)), ("c:100".to_owned(), "b:0".to_owned()));
        assert_eq!(world.waiting("q"), "d:0 a:-50", "two are out");
        client.publish("q", said("urgent").priority(Priority::HIGH)).await.unwrap();
        second.ack().unwrap();
        assert_eq!(take(&mut consumer, 1).await, "urgent:50");
        first.ack().unwrap();
        assert_eq!(take(&mut consumer, 2).await, "d:0 a:-50");
    });
}

#[test]
fn ack_ends_it_nack_puts_it_back_and_reject_lets_it_die() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let mut consumer = client.consume("q", 10).await.unwrap();
        for body in ["a", "b", "c", "d"] {
            client.publish("q", said(body)).await.unwrap();
        }
        next(&mut consumer).await.ack().unwrap();
        next(&mut consumer).await.nack().unwrap();
        next(&mut consumer).await.reject().unwrap();
        drop(next(&mut consumer).await);
        let again = next(&mut consumer).await;
        assert_eq!((again.text(), again.is_redelivered(), again.count()), (Some("b"), true, 2));
        again.ack().unwrap();
        let dropped = next(&mut consumer).await;
        assert_eq!((dropped.text(), dropped.count()), (Some("d"), 2), "what is dropped is put back");
        dropped.ack().unwrap();
        client.publish("q", said("end")).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, "end:-");
        assert_eq!(world.messages("q", "dead"), "c:-");
    });
}

#[test]
fn a_consumer_that_is_dropped_puts_back_what_it_did_not_give_out() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        for body in ["a", "b", "c"] {
            client.publish("q", said(body)).await.unwrap();
        }
        let mut consumer = client.consume("q", 10).await.unwrap();
        let held = next(&mut consumer).await;
        drop(consumer);
        let mut other = client.consume("q", 10).await.unwrap();
        let came = [next(&mut other).await, next(&mut other).await];
        assert_eq!(came.each_ref().map(|delivery| delivery.text().unwrap()), ["b", "c"]);
        held.ack().unwrap();
        for delivery in came {
            delivery.ack().unwrap();
        }
        client.publish("q", said("d")).await.unwrap();
        assert_eq!(take(&mut other, 1).await, "d:-", "a is gone");
    });
}

#[test]
fn extra_window_is_for_what_is_urgent() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let options = ConsumeOptions::window(1).urgent_credit(Priority::HIGH, 1).consumer_priority(5);
        let mut consumer = client.consume("q", options).await.unwrap();
        client.publish("q", said("bulk").priority(Priority::BULK)).await.unwrap();
        let held = next(&mut consumer).await;
        client.publish("q", said("more").priority(Priority::BULK)).await.unwrap();
        client.publish("q", said("urgent").priority(Priority::CRITICAL)).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, "urgent:100");
        held.ack().unwrap();
        assert_eq!(take(&mut consumer, 1).await, "more:-100");
    });
}

#[test]
fn a_queue_that_is_not_there_or_is_somebodys_own_is_refused() {
    let world = World::new();
    world.queue("gone", &json!({}));
    go(async {
        let client = world.client().await;
        let told = client.consume("none", 1).await.unwrap_err();
        assert!(matches!(&told, Error::Refused { code: 404, text } if text.contains("none")), "{told}");
        let _alone = client.consume("q", ConsumeOptions::window(1).exclusive()).await.unwrap();
        let told = client.consume("q", 1).await.unwrap_err();
        assert!(matches!(told, Error::Refused { code: 403, .. }), "{told}");
        let mut consumer = client.consume("gone", 1).await.unwrap();
        client.delete_queue("gone").await.unwrap();
        assert_eq!(consumer.next().await.unwrap().unwrap_err(), Error::ConsumerCancelled);
        assert!(consumer.next().await.is_none(), "there was an error before");
    });
}

#[test]
fn it_is_a_stream() {
    fn is_stream(_: impl futures_core::Stream) {}
    let world = World::new();
    go(async { is_stream(world.client().await.consume("q", 1).await.unwrap()) });
}

#[test]
fn a_client_that_is_closed_ends_its_consumers() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let mut consumer = client.consume("q", 1).await.unwrap();
        let other = client.clone();
        let confirm = client.send("q", said("a")).await.unwrap();
        client.close().await;
        confirm.await.unwrap();
        assert_eq!(consumer.next().await.unwrap().unwrap_err(), Error::Closed);
        assert_eq!(other.publish("q", said("b")).await, Err(Error::Closed));
        assert_eq!(other.consume("q", 1).await.unwrap_err(), Error::Closed);
    });
}
