//! Streams of Redis, handled in the scope of what they hold; with a Redis of the test's own.

use std::time::Duration;

use overtake_client::Priority;
use overtake_client::streams::{
    DeadLetters, Done, Lanes, Retry, SubscribeOptions, Subscriber, Writer, envelope, handle, server,
};
use serde_json::json;
use tokio::sync::mpsc;

use super::go;
use crate::servers::Server;

struct Redis(Server);

impl Redis {
    /// `None` where there is none; in CI there must be.
    fn start() -> Option<Self> {
        Server::redis(&[]).map(Self)
    }

    fn server(&self) -> overtake_client::streams::RedisServer {
        server(&format!("redis://127.0.0.1:{}", self.0.port)).unwrap()
    }

    /// Each goes where its priority says, and says it.
    async fn add(&self, all: &[(&str, i32)]) {
        let entries = all.iter().map(|(what, priority)| {
            let text = envelope(&json!(what), &json!({ "domain": { "priority": priority } }));
            let stream = Lanes::enabled().stream_of("customer", *priority);
            (stream, vec![(b"data".to_vec(), text.into_bytes())])
        });
        let added = Writer::connect(&self.server()).await.unwrap().add(&entries.collect::<Vec<_>>()).await;
        assert!(added.unwrap().iter().all(Result::is_ok));
    }

    async fn subscriber(&self) -> Subscriber {
        let retry = Retry { attempts: 2, initial: Duration::from_millis(5), ..Retry::default() };
        let options =
            SubscribeOptions { lanes: Lanes::enabled(), retry, ..SubscribeOptions::new("customer", "mails") };
        Subscriber::connect(&self.server(), options).await.unwrap()
    }
}

#[test]
fn streams_are_read_with_their_urgent_lane_first() {
    let Some(redis) = Redis::start() else { return };
    go(async {
        redis.add(&[("migration", -50), ("import", -100), ("order", 0), ("payment", 50)]).await;
        let subscriber = redis.subscriber().await;
        for expected in ["order", "payment", "migration", "import"] {
            let entry = subscriber.next().await.unwrap();
            assert_eq!(entry.data::<String>().unwrap(), expected);
            assert!(subscriber.ack(&entry).await.unwrap());
        }
    });
}

#[test]
fn what_a_stream_holds_is_handled_in_its_scope_and_a_failure_is_tried_again() {
    let Some(redis) = Redis::start() else { return };
    go(async {
        let (tell, mut told) = mpsc::channel(100);
        let handling = handle(redis.subscriber().await, 1, move |entry| {
            // Called before anything is awaited, it is inside, too.
            let here = Priority::current();
            assert!(entry.attempt() > 1 || entry.body() != "\"panics at once\"", "as it may");
            let tell = tell.clone();
            async move {
                assert_eq!(Priority::current(), here);
                let what: String = entry.data().unwrap();
                tell.send(format!("{what}:{here}:{}", entry.attempt())).await.unwrap();
                match &*what {
                    "fails" => Err("it cannot be done now"),
                    "dies" => Ok(Done::Reject("it never can".to_owned())),
                    "panics" if entry.attempt() == 1 => panic!("as it may"),
                    _ => Ok(Done::Ack),
                }
            }
        });
        for (what, priority, times) in [
            ("works", 50, 1),
            ("fails", -50, 2),
            ("dies", -60, 1),
            ("panics", -70, 2),
            ("normal", 0, 1),
            ("panics at once", 0, 2),
        ] {
            redis.add(&[(what, priority)]).await;
            // Who panics at once has told nothing.
            let first = if what == "panics at once" { 2 } else { 1 };
            for attempt in first..=times {
                let expected = format!("{what}:{}:{attempt}", Priority(priority));
                assert_eq!(told.recv().await.unwrap(), expected);
            }
        }
        handling.stop().await.unwrap();
        let dead = DeadLetters::new(&redis.server(), "customer", Lanes::enabled()).unwrap();
        let reasons: Vec<_> =
            dead.list(9).await.unwrap().into_iter().map(|letter| letter.reason.unwrap()).collect();
        assert_eq!(reasons, ["it never can", "it cannot be done now"]);
    });
}

#[test]
fn dead_letters_of_streams_are_replayed_to_their_own_lane() {
    let Some(redis) = Redis::start() else { return };
    go(async {
        redis.add(&[("migration", -50)]).await;
        let subscriber = redis.subscriber().await;
        let entry = subscriber.next().await.unwrap();
        subscriber.reject(&entry, "no").await.unwrap();
        let dead = DeadLetters::new(&redis.server(), "customer", Lanes::enabled()).unwrap();
        assert_eq!(dead.replay_all(None).await, Ok(1));
        let again = subscriber.next().await.unwrap();
        assert_eq!((again.stream(), again.body()), ("customer:backfill", "\"migration\""));
    });
}
