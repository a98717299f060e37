//! Streams of Redis, handled in the scope of what they hold; with a Redis of the test's own.

use std::sync::Arc;
use std::time::Duration;

use overtake_client::streams::{
    DeadLetters, Done, Event, Lanes, Layout, Publisher, Retry, SubscribeOptions, Subscriber, Writer,
    envelope, handle, server,
};
use overtake_client::{Priority, with_priority};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

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
fn an_urgent_entry_finds_a_kept_slot_while_bulk_handlers_fill_all_others() {
    for partitions in [false, true] {
        let Some(redis) = Redis::start() else { return };
        go(async {
            let layout = Layout { lanes: Lanes::enabled(), is_partitioned: partitions };
            let mut publisher = Publisher::connect(&redis.server(), layout).await.unwrap();
            let event = |key: &str, what: &str, priority| {
                Event::new("customer", "Moved", json!(what).to_string()).key(key).priority(priority)
            };
            for key in ["1", "2", "3", "4"] {
                publisher.publish(&event(key, "bulk", Priority::BULK)).await.unwrap();
            }
            let options = SubscribeOptions {
                lanes: Lanes::enabled(),
                partitions,
                primary_slots: 1,
                // Longer than any test: what waits for so long must be woken.
                block: Duration::from_secs(3_600),
                retry: Retry { initial: Duration::from_millis(1), ..Retry::default() },
                ..SubscribeOptions::new("customer", "mails")
            };
            let subscriber = Subscriber::connect(&redis.server(), options).await.unwrap();
            let (tell, mut told) = mpsc::channel(100);
            let gate = Arc::new(Semaphore::new(0));
            let opened = Arc::clone(&gate);
            let handling = handle(subscriber, 3, move |entry| {
                let (tell, gate) = (tell.clone(), Arc::clone(&opened));
                async move {
                    let what: String = entry.data().unwrap();
                    tell.send(what.clone()).await.unwrap();
                    if what == "bulk" {
                        gate.acquire().await.unwrap().forget();
                    }
                    if entry.attempt() == 1 { Done::Fail("another time".to_owned()) } else { Done::Ack }
                }
            });
            for _ in 0..2 {
                assert_eq!(told.recv().await.unwrap(), "bulk");
            }
            // Two bulk handlers are blocked, and two bulk entries wait.
            for urgent in ["first", "second"] {
                publisher.publish(&event("1", urgent, Priority::HIGH)).await.unwrap();
                for _attempt in 0..2 {
                    assert_eq!(told.recv().await.unwrap(), urgent);
                }
            }
            // Each of the four is handled twice; when one ends the next one begins, although the read that waits left out its lane.
            gate.add_permits(8);
            for _ in 0..6 {
                assert_eq!(told.recv().await.unwrap(), "bulk");
            }
            handling.stop().await.unwrap();
        });
    }
}

#[test]
fn slots_that_cannot_be_kept_are_refused() {
    let Some(redis) = Redis::start() else { return };
    go(async {
        let one_lane = SubscribeOptions { primary_slots: 1, ..SubscribeOptions::new("customer", "mails") };
        let why = Subscriber::connect(&redis.server(), one_lane.clone()).await.err().unwrap();
        assert!(why.contains("`primary_slots` needs two lanes"), "{why}");
        let all = SubscribeOptions { lanes: Lanes::enabled(), primary_slots: 2, ..one_lane };
        let subscriber = Subscriber::connect(&redis.server(), all).await.unwrap();
        let why = handle(subscriber, 2, |_| async {}).wait().await.unwrap_err();
        assert!(why.contains("`primary_slots` is 2 of 2 slots"), "{why}");
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

#[test]
fn an_event_goes_to_the_lane_of_its_own_priority_or_of_its_scope_and_to_the_streams_of_its_key() {
    let Some(redis) = Redis::start() else { return };
    go(async {
        let layout = Layout { lanes: Lanes::enabled(), is_partitioned: true };
        let mut publisher = Publisher::connect(&redis.server(), layout).await.unwrap();
        let event = |what: &str| Event::new("customer", "Moved", json!(what).to_string()).id(what);
        let late = event("late").key("7").metadata(r#"{"trace": "t"}"#);
        with_priority(Priority::LOW, publisher.publish(&late)).await.unwrap();
        with_priority(Priority::LOW, publisher.publish(&event("said").priority(Priority::CRITICAL)))
            .await
            .unwrap();
        publisher.publish(&event("now")).await.unwrap();
        for (bad, why) in [
            (Event::new("customer", "Moved", "no JSON"), "its data is no JSON"),
            (event("x").metadata("no JSON"), "its metadata is no JSON"),
            (event("x").key("backfill"), "the partition key `backfill`"),
        ] {
            assert!(publisher.publish(&bad).await.unwrap_err().contains(why), "{why}");
        }
        let options = SubscribeOptions {
            lanes: Lanes::enabled(),
            partitions: true,
            ..SubscribeOptions::new("customer", "mails")
        };
        let subscriber = Subscriber::connect(&redis.server(), options).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..3 {
            let entry = subscriber.next().await.unwrap();
            assert!(subscriber.ack(&entry).await.unwrap());
            assert_eq!(entry.metadata()["headers"]["type"], "Moved");
            seen.push((
                entry.data::<String>().unwrap(),
                entry.priority().unwrap(),
                entry.stream().to_owned(),
            ));
        }
        let of = |what: &str, priority, stream: &str| (what.to_owned(), priority, stream.to_owned());
        let expect =
            [of("said", 100, "customer"), of("now", 0, "customer"), of("late", -50, "customer:7:backfill")];
        assert_eq!(seen, expect);
    });
}
