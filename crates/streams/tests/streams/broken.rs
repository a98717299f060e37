//! Lanes and settlements that the server declines.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use overtake_streams::{Lanes, SubscribeOptions, Subscriber};

use crate::world::{World, drain, next, options};

fn short(consumer: &str) -> SubscribeOptions {
    SubscribeOptions { block: Duration::from_millis(20), ..options(consumer) }
}

#[tokio::test]
async fn a_lane_that_cannot_be_read_does_not_end_the_other() {
    for (broken, sound) in [("customer", "customer:backfill"), ("customer:backfill", "customer")] {
        let no_stream = (format!("SET {broken} something"), "WRONGTYPE");
        let no_right = (format!("ACL SETUSER default resetkeys ~{sound}"), "NOPERM");
        for (breaks, code) in [no_stream, no_right] {
            let Some(world) = World::new() else { return };
            let subscriber = world.subscribe(short("c")).await;
            world.add(sound, &["1"]).await;
            assert_eq!(drain(&subscriber, 1).await, ["1"]);
            world.ask(&breaks).await;
            while subscriber.broken().is_none() {
                world.add(sound, &["2"]).await;
                assert_eq!(drain(&subscriber, 1).await, ["2"]);
                // It looks further while somebody waits.
                let _ = tokio::time::timeout(Duration::from_millis(1), subscriber.next()).await;
            }
            let why = subscriber.broken().expect("it is broken");
            assert!(why.starts_with(&format!("{broken}: ")) && why.contains(code), "{why}");
            world.add(sound, &["3"]).await;
            assert_eq!(drain(&subscriber, 1).await, ["3"]);
            subscriber.stop().await.expect("nothing is held of it");
        }
    }
}

#[tokio::test]
async fn a_group_that_is_destroyed_in_one_lane_is_made_again_and_nobody_is_told() {
    for broken in ["customer", "customer:backfill"] {
        let Some(world) = World::new() else { return };
        let told = Errors::default();
        let _told = tracing::subscriber::set_default(told.clone());
        let subscriber = world.subscribe(short("c")).await;
        assert_eq!(world.number(&format!("XGROUP DESTROY {broken} mails")).await, 1, "it was there");
        world.add(broken, &["1"]).await;
        assert_eq!(drain(&subscriber, 1).await, ["1"]);
        assert_eq!((subscriber.broken(), told.all()), (None, vec![]));
    }
}

/// Looks for entries until it is known that a lane is broken, and says why.
async fn until_broken(subscriber: &Subscriber) -> String {
    loop {
        if let Some(why) = subscriber.broken() {
            return why;
        }
        let _ = tokio::time::timeout(Duration::from_millis(1), subscriber.next()).await;
    }
}

#[tokio::test]
async fn a_lane_that_cannot_be_made_again_without_memory_does_not_end_the_other() {
    for (broken, sound) in [("customer", "customer:backfill"), ("customer:backfill", "customer")] {
        let Some(world) = World::new() else { return };
        world.add(sound, &["1"]).await;
        let subscriber = world.subscribe(short("c")).await;
        assert_eq!(drain(&subscriber, 1).await, ["1"]);
        world.ask("CONFIG SET maxmemory 1").await;
        world.ask(&format!("DEL {broken}")).await;
        let why = until_broken(&subscriber).await;
        assert!(why.starts_with(&format!("{broken}: ")) && why.contains("OOM"), "{why}");
        // Nothing can be added now, but what is there can be new once more.
        world.ask(&format!("XGROUP SETID {sound} mails 0")).await;
        assert_eq!(drain(&subscriber, 1).await, ["1"]);
        world.ask("CONFIG SET maxmemory 0").await;
        world.add(broken, &["2"]).await;
        assert_eq!(drain(&subscriber, 1).await, ["2"]);
        assert_eq!(subscriber.broken(), None);
    }
}

#[tokio::test]
async fn a_backfill_lane_that_cannot_be_read_does_not_keep_the_primary_from_beginning() {
    let Some(world) = World::new() else { return };
    world.ask("SET customer:backfill something").await;
    world.add("customer", &["1"]).await;
    let subscriber = world.subscribe(short("c")).await;
    let why = subscriber.broken().expect("it is broken");
    assert!(why.starts_with("customer:backfill: ") && why.contains("WRONGTYPE"), "{why}");
    assert_eq!(drain(&subscriber, 1).await, ["1"]);
    // Somebody has put it right.
    world.ask("DEL customer:backfill").await;
    world.add("customer:backfill", &["2"]).await;
    assert_eq!(drain(&subscriber, 1).await, ["2"]);
    assert_eq!(subscriber.broken(), None);
}

#[tokio::test]
async fn a_primary_lane_that_stays_broken_is_told_at_each_retry_while_backfill_goes_on() {
    let Some(world) = World::new() else { return };
    let told = Errors::default();
    let _told = tracing::subscriber::set_default(told.clone());
    let subscriber = world.subscribe(short("c")).await;
    world.ask("SET customer something").await;
    let mut handled = 0;
    while told.all().len() < 3 {
        world.add("customer:backfill", &["1"]).await;
        handled += drain(&subscriber, 1).await.len();
        let _ = tokio::time::timeout(Duration::from_millis(1), subscriber.next()).await;
    }
    assert!(handled > 3, "{handled}");
    for why in told.all() {
        assert!(why.starts_with("customer: ") && why.contains("WRONGTYPE"), "{why}");
    }
}

/// The reasons of all that is logged at ERROR.
#[derive(Clone, Default)]
struct Errors(Arc<Mutex<Vec<String>>>);

impl Errors {
    fn all(&self) -> Vec<String> {
        self.0.lock().expect("whole").clone()
    }
}

impl tracing::field::Visit for Errors {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "why" {
            self.0.lock().expect("whole").push(format!("{value:?}"));
        }
    }
}

impl tracing::Subscriber for Errors {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn where_no_lane_can_be_read_that_is_told_whenever_it_is_asked() {
    for lanes in [Lanes::enabled(), Lanes::default()] {
        let Some(world) = World::new() else { return };
        let subscriber = world.subscribe(SubscribeOptions { lanes: lanes.clone(), ..short("c") }).await;
        for &lane in lanes.all() {
            world.ask(&format!("SET {} something", lanes.stream("customer", lane))).await;
        }
        for _ in 0..2 {
            let why = subscriber.next().await.unwrap_err();
            assert!(why.contains("WRONGTYPE"), "{why}");
        }
        // Somebody has put it right.
        for &lane in lanes.all() {
            world.ask(&format!("DEL {}", lanes.stream("customer", lane))).await;
        }
        world.add("customer", &["1"]).await;
        assert_eq!(drain(&subscriber, 1).await, ["1"]);
    }
}

#[tokio::test]
async fn an_entry_whose_acknowledgement_is_declined_comes_again() {
    let Some(world) = World::new() else { return };
    world.add("customer", &["1"]).await;
    let subscriber = world.subscribe(options("c")).await;
    let entry = next(&subscriber).await;
    world.ask("ACL SETUSER default -xack").await;
    let why = subscriber.ack(&entry).await.unwrap_err();
    assert!(why.contains("is not acknowledged"), "{why}");
    world.ask("ACL SETUSER default +xack").await;
    let again = next(&subscriber).await;
    assert_eq!((again.id(), again.attempt()), (entry.id(), 2));
    assert_eq!(subscriber.ack(&again).await, Ok(true));
}
