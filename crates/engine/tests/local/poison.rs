//! A failed sync: what is on the disk is unknown, so nothing is confirmed any more.

use std::sync::Arc;

use overtake_engine::core::Request;
use overtake_engine::{
    Ask, Browse, ConsumeRequest, DeleteOnly, Engine, Event, Failure, Filter, Full, LeaseRequest, LocalEngine,
    Select,
};
use overtake_lane::{Binding, Destination, ExchangeSettings, Outcome, Refusal, Settings};
use overtake_store::{Fault, MemoryDisk, OperationKind};

use crate::support::{bodies, clock, files_named, message, open_disk, pull};

/// Somebody removes the journal: a publish into the removed file is not confirmed. Requests that make no message go on.
#[tokio::test]
async fn a_publish_into_a_file_that_was_removed_is_not_confirmed() {
    let disk = MemoryDisk::new(1);
    let engine = open_disk(&disk, &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.publish(vec![message("before", 5)]).await.expect("published");
    for name in files_named(&disk, "journal-") {
        overtake_store::Disk::remove(&disk, &name).expect("it is there");
    }
    let published = engine.publish(vec![message("lost", 5)]).await;
    assert!(matches!(&published, Err(Failure::Unavailable(why)) if why.contains("removed")), "{published:?}");
    let mut session = engine.session();
    let request = Request::PublishOne(Box::new(message("late", 5)));
    session.asks.ask(vec![Ask { token: Some(1), request }]).await;
    let events = session.events.next().await.expect("an answer");
    assert!(matches!(&events[..], [Event::Answer { token: 1, result: Err(_) }]), "{events:?}");
    assert!(!engine.lease(pull("q", 1)).await.expect("leased").is_empty());
    let health = engine.health();
    assert_eq!((health.down, health.full), (None, Some(Full::Removed)));
    let refused = engine.publish(vec![message("never", 5)]).await;
    assert_eq!(refused.map(drop), Err(Refusal::StoreFull.into()));
    engine.close();
}

async fn poisoned(disk: &MemoryDisk) -> (LocalEngine, Arc<str>) {
    let engine = open_disk(disk, &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.publish(vec![message("before", 5)]).await.expect("published");
    disk.fail_next_sync();
    let published = engine.publish(vec![message("lost", 5)]).await;
    assert!(matches!(&published, Err(Failure::Unavailable(_))), "{published:?}");
    let why = engine.failed().await;
    (engine, why)
}

#[tokio::test]
async fn after_a_failed_sync_every_call_is_answered_unavailable() {
    let (engine, why) = poisoned(&MemoryDisk::new(1)).await;
    assert!(why.contains("input/output error"), "{why}");
    assert_eq!(engine.health().down, Some(why.clone()));
    let waiting = LeaseRequest { wait_ms: 600_000, ..pull("q", 1) };
    let consume = ConsumeRequest::new("q".into());
    let binding = || Binding::new("amq.topic", Destination::Queue("q".into()), "#");
    let all = || Select::Matching(Filter::default());
    let answers = [
        engine.declare_queue("r", Settings::default()).await.err(),
        engine.delete_queue("q", DeleteOnly::default()).await.err(),
        engine.queues(None, 9).await.err(),
        engine.queue("q").await.err(),
        engine.declare_exchange("x", ExchangeSettings::default()).await.err(),
        engine.delete_exchange("x", false).await.err(),
        engine.exchanges().await.err(),
        engine.exchange("x").await.err(),
        engine.bindings("x").await.err(),
        engine.bind(binding()).await.err(),
        engine.unbind(binding()).await.err(),
        engine.publish(vec![message("a", 5)]).await.err(),
        engine.transact(vec![message("a", 5)], Vec::new()).await.err(),
        engine.lease(waiting).await.err(),
        engine.consume(consume).await.err(),
        engine.settle(Vec::new(), Outcome::Ack).await.err(),
        engine.extend(Vec::new(), 1).await.err(),
        engine.browse("q", Browse { limit: 1, ..Browse::default() }).await.err(),
        engine.message("q", "a").await.err(),
        engine.reprioritise("q", all(), 5.into()).await.err(),
        engine.remove("q", all()).await.err(),
        engine.purge("q", None).await.err(),
        engine.replay("q", all(), None).await.err(),
    ];
    for (at, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer, Some(Failure::Unavailable(why.clone())), "call {at}");
    }
}

#[tokio::test]
async fn a_restart_after_a_failed_sync_recovers_what_was_confirmed() {
    for seed in 0..20 {
        let disk = MemoryDisk::new(seed);
        let (engine, _) = poisoned(&disk).await;
        engine.close();
        disk.power_cut();
        let engine = open_disk(&disk, &clock()).expect("opens again");
        let left = bodies(&engine.lease(pull("q", 9)).await.expect("leased"));
        assert!(left == "before" || left == "before lost", "{left}");
    }
}

#[tokio::test]
async fn whoever_waits_when_the_store_fails_is_told_why() {
    let disk = MemoryDisk::new(1);
    let engine = open_disk(&disk, &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let consume = ConsumeRequest::new("q".into());
    engine.declare_queue("r", Settings::default()).await.expect("declared");
    let mut consumer =
        engine.consume(ConsumeRequest { queue: "r".into(), ..consume }).await.expect("consumes");
    let waiting = engine.lease(LeaseRequest { wait_ms: 600_000, ..pull("q", 1) });
    let fail = async {
        while engine.queue("q").await.is_ok_and(|queue| queue.waiting == 0) {}
        disk.fail_next_sync();
        engine.declare_queue("s", Settings::default()).await
    };
    let (leased, declared) = tokio::join!(waiting, fail);
    assert!(matches!(leased, Err(Failure::Unavailable(why)) if why.contains("input/output error")));
    assert!(matches!(declared, Err(Failure::Unavailable(_))));
    assert!(consumer.next().await.is_none());
}

#[tokio::test]
async fn a_write_that_fails_poisons_as_well() {
    let disk = MemoryDisk::new(1);
    let engine = open_disk(&disk, &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    disk.set_hook(|operation| match operation.kind {
        OperationKind::Write if operation.name.starts_with("journal-") => {
            Fault::Error(std::io::ErrorKind::Other)
        }
        _ => Fault::None,
    });
    let published = engine.publish(vec![message("a", 5)]).await;
    assert!(matches!(published, Err(Failure::Unavailable(_))), "{published:?}");
    engine.failed().await;
}
