//! Leases over HTTP.

use std::time::Duration;

use overtake_client::{Error, LeaseOptions, Message, Outcome, Priority, Value};
use serde_json::json;

use super::{World, go, said, shown};
use crate::support::http::ask;

#[test]
fn leases_are_settled_one_by_one() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        for (body, priority) in [("a", Some(-300)), ("b", Some(0)), ("c", None), ("d", Some(300))] {
            let message = said(body).header("n", 7).id(body);
            let message = priority.map_or(message.clone(), |priority| message.priority(priority));
            client.publish("q", message).await.unwrap();
        }
        let leases = client.lease("q", LeaseOptions::max(10).worker("ann")).await.unwrap();
        let all: Vec<_> = leases.iter().map(|lease| shown(lease)).collect();
        assert_eq!(all, ["d:300", "b:0", "c:-", "a:-300"]);
        assert_eq!((leases[0].id(), leases[0].header("n").and_then(Value::int)), (Some("d"), Some(7)));
        let [d, b, c, a] = leases.try_into().unwrap();
        d.ack().await.unwrap();
        b.nack().await.unwrap();
        c.reject().await.unwrap();
        a.nack_for(Duration::from_secs(3_600)).await.unwrap();
        assert_eq!((world.waiting("q"), world.messages("q", "dead")), ("b:0".to_owned(), "c:-".to_owned()));
        assert_eq!(world.messages("q", "delayed"), "a:-300");
        let again = client.lease("q", LeaseOptions::default()).await.unwrap().remove(0);
        assert_eq!((again.text(), again.count(), again.is_redelivered()), (Some("b"), 2, true));
        again.release().await.unwrap();
        let again = client.lease("q", LeaseOptions::default()).await.unwrap().remove(0);
        assert_eq!(again.text(), Some("b"));
        again.ack().await.unwrap();
        assert!(client.lease("q", LeaseOptions::default()).await.unwrap().is_empty(), "nothing is there");
    });
}

#[test]
fn bytes_that_are_no_text_come_as_they_went() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        client.publish("q", Message::new(&b"\xff\0\xfe"[..])).await.unwrap();
        let lease = client.lease("q", LeaseOptions::default()).await.unwrap().remove(0);
        assert_eq!(lease.body().as_ref(), b"\xff\0\xfe");
        lease.ack().await.unwrap();
    });
}

#[test]
fn whoever_waits_gets_the_first_that_comes() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let waiting = client.clone();
        let wait = LeaseOptions::max(1).wait(Duration::from_secs(60));
        let leased = tokio::spawn(async move { waiting.lease("q", wait).await.unwrap() });
        loop {
            let state = ask(&world.broker.url, "GET", "/v1/queues/q", &serde_json::Value::Null).expect(200);
            if state["waiting"].as_u64() == Some(1) {
                break;
            }
            tokio::task::yield_now().await;
        }
        client.publish("q", said("a")).await.unwrap();
        let lease = leased.await.unwrap().remove(0);
        assert_eq!(lease.text(), Some("a"));
        lease.ack().await.unwrap();
    });
}

/// The lease is shorter than what it takes to lease something else that comes due later.
#[test]
fn a_lease_is_extended_as_long_as_it_is_there() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        client.publish("q", said("a")).await.unwrap();
        let short = LeaseOptions::max(1).lease(Duration::from_millis(600));
        let held = client.lease("q", short.clone()).await.unwrap().remove(0);
        world.queue("clock", &json!({}));
        let late = json!({"body": "late", "delay_ms": 1_500});
        ask(&world.broker.url, "POST", "/v1/queues/clock/messages", &late).expect(201);
        let wait = LeaseOptions::max(1).wait(Duration::from_secs(60));
        client.lease("clock", wait.clone()).await.unwrap().remove(0).ack().await.unwrap();
        assert_eq!(world.messages("q", "leased"), "a:-", "it would have been over twice");
        held.extend(Duration::from_secs(60)).await.unwrap();
        assert!(!held.is_over());
        // A lease that is dropped is put back, and so the message comes before its time.
        drop(held);
        let again = client.lease("q", wait).await.unwrap().remove(0);
        assert_eq!((again.text(), again.count()), (Some("a"), 2));
        again.ack().await.unwrap();
    });
}

#[test]
fn whatever_ends_the_work_puts_the_message_back() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        client.publish("q", said("a")).await.unwrap();
        let wait = LeaseOptions::max(1).wait(Duration::from_secs(60)).lease(Duration::from_secs(3_600));
        let lease = client.lease("q", wait.clone()).await.unwrap().remove(0);
        let panics = tokio::spawn(async move {
            lease.handle(|message| async move { assert_ne!(message.text(), Some("a"), "as it may") }).await
        });
        assert!(panics.await.unwrap_err().is_panic(), "the panic goes on");
        let lease = client.lease("q", wait.clone()).await.unwrap().remove(0);
        assert_eq!(lease.count(), 2);
        let aborted = tokio::spawn(lease.handle(|_| std::future::pending::<()>()));
        aborted.abort();
        let lease = client.lease("q", wait).await.unwrap().remove(0);
        assert_eq!(lease.count(), 3);
        lease.ack().await.unwrap();
        assert_eq!(world.messages("q", "ready"), "");
    });
}

#[test]
fn what_is_over_is_told() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        client.publish("q", said("a").id("a")).await.unwrap();
        let lease = client.lease("q", LeaseOptions::default()).await.unwrap().remove(0);
        ask(&world.broker.url, "POST", "/v1/queues/q/remove", &json!({"all": true})).expect(200);
        assert_eq!(lease.extend(Duration::from_secs(1)).await, Err(Error::LeaseOver));
        assert!(lease.is_over());
        assert_eq!(lease.ack().await, Err(Error::LeaseOver));
        let told = client.lease("none", LeaseOptions::default()).await.unwrap_err();
        assert!(matches!(told, Error::Refused { code: 404, .. }), "{told}");
    });
}

#[test]
fn it_is_handled_in_the_scope_of_its_message() {
    let world = World::new();
    world.queue("out", &json!({"scheme": "signed"}));
    go(async {
        let client = world.client().await;
        for (body, priority) in [("a", Priority::LOW), ("b", Priority::BULK)] {
            client.publish("q", said(body).priority(priority)).await.unwrap();
        }
        for lease in client.lease("q", LeaseOptions::max(2)).await.unwrap() {
            let is_bad = lease.text() == Some("b");
            let handler = async |message: overtake_client::Received| {
                client.publish("out", Message::new(message.body().clone())).await?;
                Ok::<_, Error>(if is_bad { Outcome::Reject } else { Outcome::Ack })
            };
            lease.handle(handler).await.unwrap();
        }
    });
    assert_eq!(
        (world.waiting("out"), world.messages("q", "dead")),
        ("a:-50 b:-100".to_owned(), "b:-100".to_owned())
    );
}
