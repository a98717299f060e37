//! Handlers.

use std::sync::{Arc, Mutex};

use overtake_client::{ConsumeOptions, Error, HandleOptions, Message, Outcome, Priority};
use serde_json::json;
use tokio::sync::{Barrier, Semaphore, mpsc};

use super::{World, go, said, take};

#[test]
fn what_a_handler_returns_says_what_becomes_of_the_message() {
    let world = World::new();
    world.queue("jobs", &json!({"scheme": "signed", "delivery_limit": 2}));
    go(async {
        let client = world.client().await;
        let (tell, mut told) = mpsc::channel(100);
        let handling = client
            .handle("jobs", 1, move |message| {
                let tell = tell.clone();
                async move {
                    let body = message.text().unwrap().to_owned();
                    tell.send(format!("{body}:{}", Priority::current())).await.unwrap();
                    match &*body {
                        "fails" => Err("it cannot be done now"),
                        "dies" => Ok(Outcome::Reject),
                        "panics" if message.count() == 1 => panic!("as it may"),
                        _ => Ok(Outcome::Ack),
                    }
                }
            })
            .await
            .unwrap();
        for (body, priority) in [("works", 50), ("fails", -50), ("dies", -60), ("panics", -70)] {
            client.publish("jobs", said(body).priority(priority)).await.unwrap();
            let times = if ["fails", "panics"].contains(&body) { 2 } else { 1 };
            for _ in 0..times {
                let expected = Priority(priority).to_string();
                assert_eq!(told.recv().await.unwrap(), format!("{body}:{expected}"));
            }
        }
        client.publish("jobs", said("nothing")).await.unwrap();
        assert_eq!(told.recv().await.unwrap(), "nothing:NORMAL");
        handling.stop().await.unwrap();
    });
    assert_eq!(world.messages("jobs", "dead"), "fails:-50 dies:-60");
    assert_eq!(world.messages("jobs", "ready"), "");
}

#[test]
fn what_it_publishes_inherits_the_priority_and_what_says_nothing_is_outside_of_any_scope() {
    let world = World::new();
    world.queue("out", &json!({"scheme": "signed"}));
    go(async {
        let client = world.client().await;
        let publisher = client.clone();
        let handler = move |message: overtake_client::Received| {
            // Called before anything is awaited, it is inside, too.
            let here = Priority::current();
            let publisher = publisher.clone();
            async move {
                assert_eq!(here, Priority::current());
                publisher.publish("out", Message::new(message.body().clone())).await
            }
        };
        let handling =
            overtake_client::with_priority(Priority::BULK, client.handle("q", 4, handler)).await.unwrap();
        for (body, priority) in [("a", Some(-50)), ("b", Some(0)), ("c", None)] {
            let message = said(body);
            let message = priority.map_or(message.clone(), |priority| message.priority(priority));
            client.publish("q", message).await.unwrap();
        }
        let mut consumer = client.consume("out", 1).await.unwrap();
        let mut all: Vec<String> = Vec::new();
        for _ in 0..3 {
            all.push(take(&mut consumer, 1).await);
        }
        all.sort();
        assert_eq!(all, ["a:-50", "b:0", "c:-"]);
        handling.stop().await.unwrap();
    });
}

#[test]
fn so_many_at_a_time_and_no_others_are_out() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let (together, gate) = (Arc::new(Barrier::new(4)), Arc::new(Semaphore::new(0)));
        let handler = {
            let (together, gate) = (Arc::clone(&together), Arc::clone(&gate));
            move |_| {
                let (together, gate) = (Arc::clone(&together), Arc::clone(&gate));
                async move {
                    together.wait().await;
                    drop(gate.acquire().await);
                }
            }
        };
        let handling = client.handle("q", 3, handler).await.unwrap();
        client.publish_all("q", ["a", "b", "c", "d"].map(said)).await.unwrap();
        together.wait().await;
        assert_eq!(world.waiting("q"), "d:-");
        // It stops once those at hand are done, and takes no other.
        let mut stopping = std::pin::pin!(handling.stop());
        tokio::select! {
            biased;
            _ = &mut stopping => panic!("those at hand are not done"),
            () = tokio::task::yield_now() => {}
        }
        gate.add_permits(3);
        stopping.await.unwrap();
        client.close().await;
        // What it says last is heard.
        while !world.messages("q", "leased").is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.waiting("q"), "d:-");
    });
}

#[test]
fn a_wider_window_has_the_next_ones_here_already() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let all = Arc::new(Mutex::new(Vec::new()));
        let (handled, done) = (Arc::clone(&all), Arc::new(Semaphore::new(0)));
        let ready = Arc::clone(&done);
        let handler = move |message: overtake_client::Received| {
            handled.lock().unwrap().push(message.text().unwrap().to_owned());
            ready.add_permits(1);
            async {}
        };
        client.publish_all("q", (0..50).map(|number| said(&number.to_string()))).await.unwrap();
        let options = HandleOptions::concurrency(1).consume(ConsumeOptions::window(20));
        let handling = client.handle("q", options, handler).await.unwrap();
        let _ = done.acquire_many(50).await.unwrap();
        handling.stop().await.unwrap();
        let expected: Vec<_> = (0..50).map(|number| number.to_string()).collect();
        assert_eq!(*all.lock().unwrap(), expected);
    });
}

/// The function may panic before there is a future, too.
#[test]
fn a_handler_that_panics_ends_the_work_on_its_message_only() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let (tell, mut told) = mpsc::channel(100);
        let handler = move |message: overtake_client::Received| {
            let body = message.text().unwrap().to_owned();
            tell.try_send(format!("{body}{}", message.count())).unwrap();
            assert!(body != "at once" || message.count() > 1, "as it may");
            async move { assert!(body != "later" || message.count() > 1, "as it may") }
        };
        let handling = client.handle("q", 1, handler).await.unwrap();
        for body in ["at once", "later", "never"] {
            client.publish("q", said(body)).await.unwrap();
        }
        let mut all = Vec::new();
        for _ in 0..5 {
            all.push(told.recv().await.unwrap());
        }
        assert_eq!(all, ["at once1", "at once2", "later1", "later2", "never1"]);
        handling.stop().await.unwrap();
        client.close().await;
    });
    assert_eq!(world.messages("q", "ready"), "");
}

#[test]
fn it_ends_with_the_right_to_read_and_what_is_in_hand_is_settled() {
    let world = World::new();
    let allow = |read: &str| {
        world.broker.run(&["user", "allow", "ann", "--read", read, "--write", ".*"]).ok();
    };
    world.broker.feed(&["user", "put", "ann", "--new-password"], b"password-1\n").ok();
    allow(".*");
    go(async {
        let url = format!("amqp://ann:password-1@{}", world.broker.amqp);
        let options = overtake_client::ConnectOptions::new(url).http(&world.broker.url);
        let client = overtake_client::Client::connect(options).await.unwrap();
        let (tell, mut told) = mpsc::channel(1);
        let goes_on = Arc::new(Semaphore::new(0));
        let waits = Arc::clone(&goes_on);
        let handling = client
            .handle("q", 2, move |_| {
                let (tell, waits) = (tell.clone(), Arc::clone(&waits));
                async move {
                    tell.send(()).await.unwrap();
                    drop(waits.acquire().await);
                }
            })
            .await
            .unwrap();
        client.publish("q", said("a")).await.unwrap();
        told.recv().await.unwrap();
        allow("none");
        goes_on.add_permits(1);
        assert_eq!(handling.wait().await, Err(Error::ConsumerCancelled));
        client.close().await;
    });
    assert_eq!((world.messages("q", "ready"), world.messages("q", "leased")), (String::new(), String::new()));
}

#[test]
fn it_ends_with_its_queue() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let handling = client.handle("q", 1, |_| async {}).await.unwrap();
        client.delete_queue("q").await.unwrap();
        assert_eq!(handling.wait().await, Err(Error::ConsumerCancelled));
    });
}
