//! Publishing: confirms, what is refused, windows.

use std::time::Duration;

use overtake_client::{Error, Message, To, Value};
use serde_json::json;

use super::{World, go, said, take};
use crate::support::http::ask;

#[test]
fn what_is_confirmed_is_there_after_kill_9() {
    let mut world = World::new();
    go(async {
        let client = world.client().await;
        client.publish("q", said("a")).await.unwrap();
        client.publish_all("q", (0..100).map(|n| said(&n.to_string()))).await.unwrap();
    });
    world = world.kill_and_start();
    let state = ask(&world.broker.url, "GET", "/v1/queues/q", &serde_json::Value::Null).expect(200);
    assert_eq!(state["totals"]["ready"], 101);
}

#[test]
fn a_message_says_all_that_it_may() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let message = Message::new(&b"\xff\0"[..])
            .id("one")
            .key("k")
            .kind("mail")
            .content_type("application/octet-stream")
            .correlation_id("c")
            .reply_to("answers")
            .ttl(Duration::from_secs(60))
            .header("number", 7)
            .header("text", "seven")
            .header("is", true);
        client.publish("q", message.clone()).await.unwrap();
        client.publish("q", message).await.unwrap();
        client.publish("q", Message::json(&json!({"a": 1})).unwrap()).await.unwrap();
        let mut consumer = client.consume("q", 2).await.unwrap();
        let came = super::next(&mut consumer).await;
        assert_eq!(came.body().as_ref(), b"\xff\0");
        assert_eq!((came.id(), came.kind(), came.correlation_id()), (Some("one"), Some("mail"), Some("c")));
        assert_eq!((came.reply_to(), came.ttl()), (Some("answers"), Some(Duration::from_secs(60))));
        assert_eq!(came.content_type(), Some("application/octet-stream"));
        assert_eq!(came.header("number").and_then(Value::int), Some(7));
        assert_eq!(came.header("text").and_then(Value::text), Some("seven"));
        assert_eq!(came.header("is").and_then(Value::bool), Some(true));
        assert_eq!((came.exchange(), came.routing_key(), came.is_redelivered()), ("", "q", false));
        came.ack().unwrap();
        let came = super::next(&mut consumer).await;
        assert_eq!(
            came.json::<serde_json::Value>().unwrap(),
            json!({"a": 1}),
            "the second of that id was not stored"
        );
        assert_eq!(came.content_type(), Some("application/json"));
        came.ack().unwrap();
    });
}

#[test]
fn an_exchange_knows_who_gets_it() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        client.declare_exchange("events", r#"{"kind": "topic"}"#).await.unwrap();
        client.declare_queue("orders", r#"{"scheme": "signed"}"#).await.unwrap();
        client.bind_queue("orders", "events", "order.*").await.unwrap();
        client.publish(To::exchange("events", "order.paid"), said("a")).await.unwrap();
        client.publish(To::exchange("events", "other"), said("b")).await.unwrap();
        let told = client.publish(To::exchange("events", "other").mandatory(), said("c")).await;
        assert!(matches!(told, Err(Error::Unroutable(_))), "{told:?}");
        let mut consumer = client.consume("orders", 1).await.unwrap();
        assert_eq!(take(&mut consumer, 1).await, "a:-");
        client.delete_exchange("events").await.unwrap();
        client.delete_queue("orders").await.unwrap();
        let told = consumer.next().await.unwrap();
        assert_eq!(told.unwrap_err(), Error::ConsumerCancelled);
        assert!(consumer.next().await.is_none());
    });
}

#[test]
fn one_that_is_refused_is_told_and_the_others_go() {
    let world = World::new();
    world.queue("ten", &json!({"scheme": "ten-level"}));
    go(async {
        // What goes again after a channel was closed is there once, since it is numbered.
        let options = world.options().exactly_once();
        let client = overtake_client::Client::connect(options).await.unwrap();
        let told = client.publish("none", said("a")).await.unwrap_err();
        assert!(matches!(&told, Error::Unroutable(why) if why.contains("none")), "{told}");
        // An exchange that is not there costs the channel, and everything on its way with it.
        let mut confirms = Vec::new();
        for number in 0..40 {
            let body = number.to_string();
            let to = if number % 13 == 5 { To::exchange("nowhere", "") } else { To::queue("q") };
            confirms.push(client.send(to, said(&body)).await.unwrap());
        }
        for (number, confirm) in confirms.into_iter().enumerate() {
            let told = confirm.await;
            if number % 13 == 5 {
                assert!(
                    matches!(&told, Err(Error::Refused { code: 404, text }) if text.contains("nowhere")),
                    "{told:?}"
                );
            } else {
                assert_eq!(told, Ok(()), "{number}");
            }
        }
        let told = client.publish("ten", said("a").priority(-1)).await.unwrap_err();
        assert!(told.to_string().contains("priority"), "{told}");
    });
    let expected: Vec<_> =
        (0..40).filter(|number| number % 13 != 5).map(|number| format!("{number}:-")).collect();
    let page = world.waiting("q");
    assert_eq!(page, expected.join(" "), "each once, and in order");
}

#[test]
fn what_cannot_be_said_is_told_at_once() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let long = "x".repeat(256);
        for (message, words) in [
            (said("a").header(&long, 1), "the name of a header is longer than 255 bytes"),
            (said("a").content_type(&long), "the content type is longer"),
        ] {
            let told = client.publish("q", message).await.unwrap_err();
            assert!(matches!(&told, Error::Invalid(text) if text.contains(words)), "{told}");
        }
        assert!(matches!(client.publish(&long, said("a")).await, Err(Error::Invalid(_))));
        let big = "x".repeat(200_000);
        let told = client.publish("q", said("a").header("big", &big)).await.unwrap_err();
        assert!(matches!(&told, Error::Invalid(text) if text.contains("too long")), "{told}");
        assert!(matches!(client.declare_queue("x", "{").await, Err(Error::Invalid(_))));
        let told = client.declare_queue("x", r#"{"skeme": "signed"}"#).await.unwrap_err();
        assert!(
            matches!(&told, Error::Refused { code: 422 | 400, text } if text.contains("skeme")),
            "{told}"
        );
        client.publish("q", said("b")).await.unwrap();
    });
    assert_eq!(world.waiting("q"), "b:-");
}

#[test]
fn a_queue_that_is_full_refuses() {
    let world = World::new();
    world.queue("small", &json!({"max_length": 1, "overflow": "reject"}));
    go(async {
        let client = world.client().await;
        client.publish("small", said("a")).await.unwrap();
        assert_eq!(client.publish("small", said("b")).await, Err(Error::NotConfirmed));
    });
}

/// The link carries nothing back, so nothing is confirmed.
#[test]
fn whoever_publishes_more_than_the_window_waits() {
    let world = World::new();
    let link = crate::support::link::Link::to(&world.broker.amqp, 1_000_000);
    go(async {
        let options = overtake_client::ConnectOptions::new(format!("amqp://{}", link.address));
        let client = overtake_client::Client::connect(options.http(&world.broker.url).unconfirmed_max(3))
            .await
            .unwrap();
        link.deafen();
        let mut confirms = Vec::new();
        for number in 0..3 {
            confirms.push(client.send("q", said(&number.to_string())).await.unwrap());
        }
        let mut fourth = Box::pin(client.send("q", said("3")));
        let waits =
            std::future::poll_fn(|cx| std::task::Poll::Ready(fourth.as_mut().poll(cx).is_pending())).await;
        assert!(waits, "there is no room");
        link.cut();
        link.mend();
        confirms.push(fourth.await.unwrap());
        for confirm in confirms {
            confirm.await.unwrap();
        }
    });
}

#[test]
fn a_message_of_a_megabyte_goes() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let body = "x".repeat(1_000_000);
        client.publish("q", said(&body)).await.unwrap();
        let mut consumer = client.consume("q", 1).await.unwrap();
        let came = super::next(&mut consumer).await;
        assert_eq!(came.body().len(), 1_000_000);
        came.ack().unwrap();
    });
}
