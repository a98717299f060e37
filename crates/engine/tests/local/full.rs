//! A disk without room: publishes are refused, what frees room is taken.

use std::sync::Arc;

use overtake_engine::{Engine, Failure, Filter, Full, LeasedMessage, LocalEngine, ManualClock, Select};
use overtake_lane::{
    ApplyTo, Definition, Given, MetadataEntry, Outcome, Pattern, Policy, PolicyKind, Refusal, Settings,
    VhostSettings,
};
use overtake_store::{Fault, MemoryDisk, OperationKind};

use crate::support::{TINY, bodies, clock, message, open_disk, pull};

const FILES: u64 = 6;

fn policy(most: u64) -> Policy {
    let definition = Definition { max_length: Some(1_000 + most), ..Definition::default() };
    let pattern = Pattern::new("").expect("a pattern");
    Policy { pattern, definition, priority: 0, apply_to: ApplyTo::All }
}

/// A disk that has room for so many files, an engine on it, and how many messages it took until it was full.
async fn filled(settings: Settings) -> (MemoryDisk, Arc<ManualClock>, LocalEngine, u64) {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    disk.set_capacity(Some(FILES * TINY));
    let engine = open_disk(&disk, &clock).expect("opens");
    engine.declare_queue("q", settings).await.expect("declared");
    for taken in 0_u64.. {
        match engine.publish(vec![message(&format!("{taken:0>200}"), taken % 10)]).await {
            Ok(_) => {}
            Err(failure) => {
                assert_eq!(failure, Refusal::StoreFull.into());
                assert!(taken > 100, "only {taken} messages in {FILES} files");
                return (disk, clock, engine, taken);
            }
        }
    }
    unreachable!("a bounded disk gets full")
}

/// Tries until it is taken, letting time pass: room is looked for now and then.
async fn publish_in_time(engine: &LocalEngine, clock: &ManualClock) {
    for _ in 0..1_000 {
        match engine.publish(vec![message("after", 5)]).await {
            Ok(_) => return,
            Err(failure) => assert_eq!(failure, Refusal::StoreFull.into()),
        }
        clock.advance(1_000);
    }
    panic!("there is room again, and publishes are still refused");
}

fn receipts(messages: &[LeasedMessage]) -> Vec<overtake_lane::Receipt> {
    messages.iter().map(|message| message.receipt).collect()
}

#[tokio::test]
async fn a_full_disk_refuses_publishes_and_takes_acknowledgements() {
    let (disk, clock, engine, taken) = filled(Settings::default()).await;
    assert!(engine.health().full.is_some(), "it says that it is full");
    assert_eq!(engine.health().down, None);
    let mut acknowledged = 0;
    loop {
        let leased = engine.lease(pull("q", 10)).await.expect("leased");
        if leased.is_empty() {
            break;
        }
        let settled = engine.settle(receipts(&leased), Outcome::Ack).await.expect("settled");
        assert!(settled.iter().all(Result::is_ok));
        acknowledged += leased.len() as u64;
    }
    assert_eq!(acknowledged, taken, "leases and acknowledgements go on");
    publish_in_time(&engine, &clock).await;
    engine.close();
    let engine = open_disk(&disk, &clock).expect("opens again");
    assert_eq!(bodies(&engine.lease(pull("q", 9)).await.expect("leased")), "after");
}

#[tokio::test]
async fn a_full_disk_lets_messages_be_purged() {
    let (_disk, clock, engine, taken) = filled(Settings::default()).await;
    assert_eq!(engine.purge("q", None).await, Ok(taken));
    publish_in_time(&engine, &clock).await;
}

#[tokio::test]
async fn a_full_disk_lets_a_queue_be_deleted() {
    let (_disk, clock, engine, _) = filled(Settings::default()).await;
    engine.delete_queue("q", overtake_engine::DeleteOnly::default()).await.expect("deleted");
    for _ in 0..1_000 {
        if engine.declare_queue("q", Settings::default()).await.is_ok() {
            return publish_in_time(&engine, &clock).await;
        }
        clock.advance(1_000);
    }
    panic!("there is room again, and nothing can be declared");
}

/// With many queues, the deletion of each of which is said, and many policies, of which that is not.
#[tokio::test]
async fn a_full_disk_lets_a_virtual_host_be_deleted() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let there = engine.in_vhost(engine.declare_vhost("v", VhostSettings::default()).await.expect("declared"));
    for n in 0..100 {
        there.declare_queue(&format!("q{n}"), Settings::default()).await.expect("declared");
        there.set_policy(PolicyKind::User, &format!("p{n}"), policy(n)).await.expect("set");
    }
    engine.set_policy(PolicyKind::User, "p", policy(7)).await.expect("set");
    disk.set_capacity(Some(disk.used().max(FILES * TINY)));
    for n in 0_u64.. {
        if there
            .publish(vec![overtake_engine::NewMessage {
                to: overtake_engine::Target::Queue(format!("q{}", n % 100).into()),
                ..message(&format!("{n:0>200}"), n % 10)
            }])
            .await
            .is_err()
        {
            break;
        }
    }
    let more = engine.declare_vhost("w", VhostSettings::default()).await;
    assert!(more.is_ok() || more == Err(Refusal::StoreFull.into()), "{more:?}");
    there.remove_policy(PolicyKind::User, "p0").await.expect("removed");
    engine.delete_vhost("v").await.expect("deleted");
    publish_in_time(&engine, &clock).await;
    engine.close();
    let engine = open_disk(&disk, &clock).expect("opens again");
    assert_eq!((engine.recovered().queues, engine.recovered().messages), (1, 1));
    assert!(engine.vhost("v").await.is_err());
    assert_eq!(engine.policies(PolicyKind::User).await.expect("shown"), [("p".into(), policy(7))]);
}

#[tokio::test]
async fn a_store_that_was_full_opens_again() {
    let (disk, clock, engine, taken) = filled(Settings::default()).await;
    engine.close();
    let engine = open_disk(&disk, &clock).expect("opens again, on the full disk");
    assert_eq!(engine.recovered().messages, taken);
    let leased = engine.lease(pull("q", 5)).await.expect("leased");
    let settled = engine.settle(receipts(&leased), Outcome::Ack).await.expect("settled");
    assert!(settled.iter().all(Result::is_ok));
}

#[tokio::test]
async fn on_a_full_disk_everything_may_still_be_leased_and_come_back() {
    let (_disk, clock, engine, taken) =
        filled(Settings { visibility_timeout_ms: 1_000, ..Settings::default() }).await;
    let mut out = 0;
    loop {
        let leased = engine.lease(pull("q", 100)).await.expect("leased").len() as u64;
        out += leased;
        if leased == 0 {
            break;
        }
    }
    assert!(out > 0, "some leases go on");
    clock.advance(1_000);
    // Each step ends some of them.
    let mut ready = 0;
    for _ in 0..=taken {
        ready = engine.queue("q").await.expect("seen").lanes.iter().map(|lane| lane.ready).sum();
        if ready == taken {
            break;
        }
    }
    assert_eq!(ready, taken, "all leases ended, and nothing stopped");
    assert_eq!(engine.health().down, None);
}

#[tokio::test]
async fn on_a_full_disk_everything_may_die_at_once() {
    let name = "n".repeat(200);
    let dead = Settings { dead_letter_expired: true, ..Settings::default() };
    let (disk, clock) = (MemoryDisk::new(1), clock());
    disk.set_capacity(Some(FILES * TINY));
    let engine = open_disk(&disk, &clock).expect("opens");
    engine.declare_queue(&name, dead).await.expect("declared");
    let mut taken = 0;
    let expiring = overtake_engine::conformance::words::message(&name, "a:5,ttl=1000");
    while engine.publish(vec![expiring.clone()]).await.is_ok() {
        taken += 1;
    }
    clock.advance(1_000);
    // Each step lets some of them die.
    let mut now = (taken, 0);
    for _ in 0..=taken {
        let lanes = engine.queue(&name).await.expect("seen").lanes;
        now = (lanes[0].ready, lanes[0].dead);
        if now.0 == 0 {
            break;
        }
    }
    assert_eq!(now, (0, taken));
    assert_eq!(engine.health().down, None);
    // So many deaths with so long a name may not fit. Then they are told when there is room.
    disk.set_capacity(None);
    for _ in 0..100 {
        clock.advance(1_000);
        engine.queue(&name).await.expect("seen");
    }
    assert_eq!(engine.purge(&name, Some(overtake_lane::Status::Dead)).await, Ok(taken));
    engine.close();
    assert_eq!(open_disk(&disk, &clock).expect("opens again").recovered().messages, 0);
}

/// What is set already may be set again: it writes nothing.
#[tokio::test]
async fn a_full_disk_refuses_metadata_and_lets_it_be_removed() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    disk.set_capacity(Some(FILES * TINY));
    let engine = open_disk(&disk, &clock).expect("opens");
    let (key, value) = (|n: usize| format!("key{n}"), vec![0; 1_000]);
    let mut set = 0;
    let failure = loop {
        match engine.set_metadata(vec![MetadataEntry::set(&key(set), &value)]).await {
            Ok(()) => set += 1,
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure, Refusal::StoreFull.into());
    assert!(set > 50, "only {set} values in {FILES} files");
    assert_eq!(engine.set_metadata(vec![MetadataEntry::set(&key(0), &value)]).await, Ok(()));
    assert_eq!(engine.metadata().await.expect("shown").len(), set);
    for n in 0..set {
        engine.set_metadata(vec![MetadataEntry::remove(&key(n))]).await.expect("removed");
    }
    // Time passes, and house is kept.
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    publish_in_time(&engine, &clock).await;
    engine.set_metadata(vec![MetadataEntry::set("a", &value)]).await.expect("there is room again");
    engine.close();
    let engine = open_disk(&disk, &clock).expect("opens again");
    assert_eq!(engine.metadata().await.expect("shown").len(), 1);
}

#[tokio::test]
async fn too_many_open_files_are_waited_for() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let options = overtake_engine::Options { memory_bytes: 64 << 10, ..crate::support::options(TINY) };
    let engine = LocalEngine::open_on(disk.clone(), options, clock.clone()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let (is_short, told) = (Arc::new(AtomicBool::new(true)), engine.full());
    let hook = Arc::clone(&is_short);
    disk.set_hook(move |operation| {
        let fails = operation.kind == OperationKind::Create && hook.load(Ordering::Relaxed);
        if fails { Fault::TooManyFiles } else { Fault::None }
    });
    let mut taken = 0_u64;
    while engine.publish(vec![message(&format!("{taken:0>200}"), 5)]).await.is_ok() {
        taken += 1;
    }
    assert_eq!(engine.health().down, None);
    assert_eq!(*told.borrow(), Some(Full::TooManyFiles), "after {taken} messages");
    let leased = engine.lease(pull("q", 1)).await.expect("consumers go on");
    engine.settle(receipts(&leased), Outcome::Ack).await.expect("settled");
    is_short.store(false, Ordering::Relaxed);
    for _ in 0..taken {
        publish_in_time(&engine, &clock).await;
    }
    assert_eq!(engine.health().down, None);
}

/// Journal files are prepared one by one, so a large batch comes when the next is not ready: it waits for that.
#[tokio::test]
async fn while_the_disk_has_room_no_batch_is_refused() {
    for file in [TINY, 2 * TINY, 4 * TINY, 16 * TINY] {
        let engine = LocalEngine::open_on(MemoryDisk::new(1), crate::support::options(file), clock());
        let engine = engine.expect("opens");
        engine.declare_queue("q", Settings::default()).await.expect("declared");
        let (mut taken, mut too_large) = (0, 0);
        let most = file / 1_024;
        for round in 0..3 {
            for body in [0, 10, 300, 2_000, 15_000] {
                for count in [1, 7, most / 5, most / 2, most - 9, most - 5, most * 2] {
                    let messages = vec![message(&"x".repeat(body), round); count as usize];
                    match engine.publish(messages).await {
                        Ok(_) => taken += count,
                        Err(Failure::Refused(refused)) => {
                            let is_too_large =
                                matches!(refused.refusal, Refusal::TooLargeAtOnce | Refusal::TooManyCopies);
                            assert!(is_too_large, "{count} of {body} bytes, files of {file}: {refused:?}");
                            too_large += 1;
                        }
                        Err(failure) => panic!("{failure:?}"),
                    }
                }
            }
        }
        assert!(too_large > 0 && taken > 5 * most, "batches were as large as they may be");
        let select = Select::Matching(Filter::default());
        let moved = engine.reprioritise("q", select, Given::Number(9)).await;
        assert_eq!(moved, Ok(taken), "a change of all of them waits for as many files as it takes");
        assert_eq!(engine.purge("q", None).await, Ok(taken));
    }
}

/// A change that would take more than the disk has is refused at once, and takes no files for nothing.
#[tokio::test]
async fn what_can_never_fit_is_refused_and_takes_no_room() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    for _ in 0..400 {
        engine.publish(vec![message("", 1); 50]).await.expect("published");
    }
    // Each of them may take so much that all together need twice as much as there is.
    disk.set_capacity(Some(disk.used() + 6 * TINY));
    clock.advance(10_000);
    engine.queue("q").await.expect("seen");
    engine.publish(vec![message("", 1)]).await.expect("the disk was looked at");
    let used = disk.used();
    let moved = engine.reprioritise("q", Select::Matching(Filter::default()), Given::Number(9)).await;
    assert_eq!(moved, Err(Refusal::StoreFull.into()));
    assert!(disk.used() <= used + 2 * TINY, "{} bytes after {used}", disk.used());
}
