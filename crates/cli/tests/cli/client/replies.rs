//! Requests and their replies.

use std::time::Duration;

use overtake_client::{Error, LeaseOptions, Message, Priority, with_priority};

use super::{World, go, next, said};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn whoever_asks_gets_the_answer_to_what_it_asked() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let handler = |message: overtake_client::Received| async move {
            Message::new(format!("{} at {}", message.text().unwrap(), Priority::current()))
        };
        let handling = client.handle("q", 2, handler).await.unwrap();
        let ask = |body: &'static str, priority| {
            let client = client.clone();
            with_priority(priority, async move { client.request("q", said(body), LONG).await })
        };
        let (a, b) = tokio::join!(ask("a", 50), ask("b", -50));
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!((a.text(), b.text()), (Some("a at HIGH"), Some("b at LOW")));
        assert_eq!(
            (a.priority(), b.priority()),
            (Some(Priority::HIGH), Some(Priority::LOW)),
            "a reply inherits, too"
        );
        handling.stop().await.unwrap();
    });
}

#[test]
fn what_is_leased_is_answered_too() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let wait = LeaseOptions::max(1).wait(LONG);
        let ask = |body: &'static str| {
            let client = client.clone();
            tokio::spawn(async move { client.request("q", said(body).priority(300), LONG).await })
        };
        let asked = ask("a");
        let lease = client.lease("q", wait.clone()).await.unwrap().remove(0);
        lease.reply(said("by hand")).await.unwrap();
        lease.ack().await.unwrap();
        assert_eq!(asked.await.unwrap().unwrap().text(), Some("by hand"));
        let asked = ask("b");
        let lease = client.lease("q", wait).await.unwrap().remove(0);
        lease
            .handle(async |message: overtake_client::Received| Message::new(message.body().clone()))
            .await
            .unwrap();
        let reply = asked.await.unwrap().unwrap();
        assert_eq!((reply.text(), reply.priority()), (Some("b"), Some(Priority(300))));
        assert_eq!(world.messages("q", "leased"), "");
    });
}

#[test]
fn a_reply_by_hand() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let mut consumer = client.consume("q", 1).await.unwrap();
        let asking = client.clone();
        let asked = tokio::spawn(async move { asking.request("q", said("a"), LONG).await });
        let delivery = next(&mut consumer).await;
        delivery.reply(said("b")).await.unwrap();
        delivery.ack().unwrap();
        assert_eq!(asked.await.unwrap().unwrap().text(), Some("b"));
        client.publish("q", said("nobody waits")).await.unwrap();
        let delivery = next(&mut consumer).await;
        assert!(matches!(delivery.reply(said("b")).await, Err(Error::Invalid(_))));
        delivery.ack().unwrap();
    });
}

#[test]
fn whoever_does_not_wait_long_enough_is_told_and_the_answer_harms_nobody() {
    let world = World::new();
    go(async {
        let client = world.client().await;
        let told = client.request("q", said("a"), Duration::ZERO).await;
        assert_eq!(told.unwrap_err(), Error::TimedOut);
        let told = client.request("q", said("b"), Duration::from_millis(1)).await;
        assert_eq!(told.unwrap_err(), Error::TimedOut);
        let told = client.request("none", said("b"), LONG).await;
        assert!(matches!(told, Err(Error::Unroutable(_))));
        let handling = client.handle("q", 1, |_| async { said("late") }).await.unwrap();
        assert_eq!(client.request("q", said("c"), LONG).await.unwrap().text(), Some("late"));
        handling.stop().await.unwrap();
    });
}
