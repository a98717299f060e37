//! Snapshots: copies of a store that is written to meanwhile.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use overtake_engine::{Browse, Engine, LocalEngine, ManualClock, NoSnapshot, Options, Snapshot};
use overtake_lane::{MetadataEntry, Outcome, Refusal, Settings};
use overtake_store::{Intake, Manifest, MemoryDisk, Segments};

use crate::support::{TINY, clock, message, options, pull};

/// Snapshots taken while everything goes on.
const SNAPSHOTS: usize = 40;
/// Threads that publish and consume.
const WORKERS: u64 = 3;
/// About so many messages wait.
const BACKLOG: usize = 1_500;

/// Opens an engine that keeps nothing in memory that can be elsewhere.
fn open(disk: &MemoryDisk, clock: &Arc<ManualClock>) -> LocalEngine {
    let options = Options { memory_bytes: 0, ..options(TINY) };
    LocalEngine::open_on(disk.clone(), options, clock.clone()).expect("it opens")
}

/// Copies a snapshot to a disk of its own.
fn copy(mut snapshot: Snapshot) -> MemoryDisk {
    let disk = MemoryDisk::new(2);
    let mut intake = Intake::begin(disk.clone()).expect("it is empty");
    while let Some((name, len)) = snapshot.next_file().expect("there is one") {
        intake.take(&name, &mut snapshot).expect("it is read");
        assert_eq!(disk.read(&format!("{name}.part")).map(|bytes| bytes.len() as u64), Some(len));
    }
    let manifest = snapshot.manifest().expect("all was read");
    intake.finish(&Manifest::parse(&manifest).expect("it is right"), true).expect("it is whole");
    disk
}

fn check(disk: &MemoryDisk) -> usize {
    let report = overtake_store::check(disk).expect("it is a store");
    assert!(report.damage.is_empty() && report.notes.is_empty(), "{report:#?}");
    report.segments
}

/// Numbers of messages, by what was said of them.
#[derive(Clone, Default)]
struct Said {
    publishing: BTreeSet<u64>,
    published: BTreeSet<u64>,
    acking: BTreeSet<u64>,
    acked: BTreeSet<u64>,
}

impl Said {
    fn waiting(&self) -> usize {
        self.published.len() - self.acked.len()
    }
}

/// One that publishes and consumes, and writes down what it asks before it asks, and what it is told.
struct Worker {
    number: u64,
    engine: Arc<LocalEngine>,
    said: Arc<Mutex<Said>>,
}

impl Worker {
    fn run(self, is_over: &AtomicBool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut next = self.number;
        for turn in 0_u64.. {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let is_long = self.said.lock().expect("no panic").waiting() > BACKLOG;
            // Mostly against the tide, but not always: leases and publishes come between each other.
            if is_long == turn.is_multiple_of(4) {
                let numbers: Vec<u64> = (0..8).map(|n| next + n * WORKERS).collect();
                next += 8 * WORKERS;
                runtime.block_on(self.publish(&numbers));
            } else {
                runtime.block_on(self.consume(turn));
            }
        }
    }

    async fn publish(&self, numbers: &[u64]) {
        self.said.lock().expect("no panic").publishing.extend(numbers);
        let messages = numbers.iter().map(|number| {
            let id = number.is_multiple_of(2).then(|| format!("id-{number}"));
            overtake_engine::NewMessage { id, ..message(&format!("{number:0>90}"), number % 10) }
        });
        self.engine.publish(messages.collect()).await.expect("published");
        self.said.lock().expect("no panic").published.extend(numbers);
    }

    async fn consume(&self, turn: u64) {
        let leased = self.engine.lease(pull("q", 10)).await.expect("leased");
        let receipts: Vec<_> = leased.iter().map(|message| message.receipt).collect();
        if turn.is_multiple_of(5) {
            self.engine.settle(receipts, Outcome::Release).await.expect("put back");
            return;
        }
        let numbers: Vec<u64> = leased.iter().map(|leased| number_of(&leased.content.body)).collect();
        self.said.lock().expect("no panic").acking.extend(&numbers);
        let settled = self.engine.settle(receipts, Outcome::Ack).await.expect("settled");
        assert!(settled.iter().all(Result::is_ok));
        self.said.lock().expect("no panic").acked.extend(&numbers);
    }
}

fn number_of(body: &[u8]) -> u64 {
    std::str::from_utf8(body).expect("text").parse().expect("a number")
}

/// The numbers of all messages there are; each is there once.
async fn numbers(engine: &LocalEngine) -> BTreeSet<u64> {
    let (mut found, mut cursor) = (BTreeSet::new(), None);
    loop {
        let page =
            engine.browse("q", Browse { limit: 1_000, cursor, ..Browse::default() }).await.expect("seen");
        for browsed in page.messages {
            let number = number_of(&browsed.content.body);
            assert!(found.insert(number), "{number} is there twice");
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

#[tokio::test]
async fn a_snapshot_holds_what_was_confirmed_before_and_nothing_that_was_asked_after() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = Arc::new(open(&disk, &clock));
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let (said, is_over) = (Arc::new(Mutex::new(Said::default())), Arc::new(AtomicBool::new(false)));
    let workers = (0..WORKERS).map(|number| {
        let worker = Worker { number, engine: Arc::clone(&engine), said: Arc::clone(&said) };
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || worker.run(&is_over))
    });
    let workers: Vec<_> = workers.collect();
    let (mut segments, mut meanwhile) = (0, 0);
    for _ in 0..SNAPSHOTS {
        let before = said.lock().expect("no panic").clone();
        let snapshot = engine.snapshot().expect("one at a time");
        let after = said.lock().expect("no panic").clone();
        let copied = copy(snapshot);
        meanwhile += said.lock().expect("no panic").acked.len() - after.acked.len();
        segments += check(&copied);
        let again = open(&copied, &clock);
        let found = numbers(&again).await;
        let lost: Vec<_> =
            before.published.difference(&found).filter(|number| !after.acking.contains(number)).collect();
        assert!(lost.is_empty(), "confirmed before, and not there: {lost:?}");
        let back: Vec<_> = before.acked.intersection(&found).collect();
        assert!(back.is_empty(), "acknowledged before, and there again: {back:?}");
        let foreign: Vec<_> = found.difference(&after.publishing).collect();
        assert!(foreign.is_empty(), "asked later, and there: {foreign:?}");
        // It goes on from there.
        again.publish(vec![message("0", 9)]).await.expect("published");
        again.close();
        check(&copied);
    }
    is_over.store(true, Ordering::Relaxed);
    workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
    assert!(segments > SNAPSHOTS, "only {segments} segments in all");
    assert!(meanwhile > 0, "nothing was acknowledged while snapshots were copied");
    let waiting = said.lock().expect("no panic").waiting();
    assert_eq!(numbers(&engine).await.len(), waiting);
}

#[tokio::test]
async fn a_snapshot_holds_metadata_as_it_is() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open(&disk, &clock);
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let entries = (0..10).map(|n| MetadataEntry::set(&format!("key{n}"), &[n; 500])).collect();
    engine.set_metadata(entries).await.expect("set");
    // It is written again meanwhile.
    pass(&engine, 200).await;
    engine.set_metadata(vec![MetadataEntry::remove("key3")]).await.expect("removed");
    let copied = copy(engine.snapshot().expect("one at a time"));
    check(&copied);
    let (live, again) = (engine.metadata().await, open(&copied, &clock).metadata().await);
    assert_eq!(live.as_ref().map(Vec::len), Ok(9));
    assert_eq!(live, again);
}

/// Publishes and consumes so often; everything is answered.
async fn pass(engine: &LocalEngine, rounds: usize) {
    for _ in 0..rounds {
        let passing = (0..20).map(|n| message(&format!("{n:0>200}"), n % 10)).collect();
        engine.publish(passing).await.expect("published");
        let leased = engine.lease(pull("q", 20)).await.expect("leased");
        let receipts = leased.iter().map(|message| message.receipt).collect();
        let settled = engine.settle(receipts, Outcome::Ack).await.expect("settled");
        assert_eq!(settled.len(), 20);
    }
}

fn count(disk: &MemoryDisk, stem: &str) -> usize {
    disk.names().iter().filter(|name| name.starts_with(stem) && !name.contains("new")).count()
}

#[tokio::test]
async fn what_is_kept_for_a_snapshot_is_given_back_after_it() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open(&disk, &clock);
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    pass(&engine, 500).await;
    let journals = count(&disk, "journal-");
    // Nobody reads it, and everything goes on.
    let snapshot = engine.snapshot().expect("one at a time");
    let shown = overtake_store::check(&disk).expect("it is a store").segments;
    pass(&engine, 500).await;
    assert!(count(&disk, "journal-") > journals + 20, "the journal was given back meanwhile");
    assert!(count(&disk, "segment-") >= shown);
    check(&copy(snapshot));
    for _ in 0..1_000 {
        pass(&engine, 1).await;
        if count(&disk, "journal-") <= journals + 4 && count(&disk, "segment-") <= shown + 20 {
            return;
        }
    }
    panic!("{} journal files and {} segments are left", count(&disk, "journal-"), count(&disk, "segment-"));
}

#[tokio::test]
async fn there_is_one_snapshot_at_a_time() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open(&disk, &clock);
    let mut first = engine.snapshot().expect("the first");
    assert_eq!(engine.snapshot().err(), Some(NoSnapshot::Running));
    assert!(first.next_file().expect("it is there").is_some());
    // Half-read, it is over all the same.
    drop(first);
    let second = engine.snapshot().expect("the first is over");
    assert!(second.manifest().is_err(), "nothing was read");
    check(&copy(engine.snapshot().expect("the second is over")));
}

#[tokio::test]
async fn a_snapshot_gives_way_when_the_disk_is_short_of_room() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    disk.set_capacity(Some(12 * TINY));
    let engine = LocalEngine::open_on(disk.clone(), options(TINY), clock.clone()).expect("it opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut snapshot = engine.snapshot().expect("one at a time");
    assert!(snapshot.next_file().expect("it is there").is_some());
    let (mut published, mut acked) = (0, 0);
    for _ in 0..2_000 {
        match engine.publish(vec![message(&format!("{published:0>500}"), 5)]).await {
            Ok(_) => published += 1,
            Err(failure) => assert_eq!(failure, Refusal::StoreFull.into()),
        }
        let leased = engine.lease(pull("q", 1)).await.expect("leased");
        let receipts: Vec<_> = leased.iter().map(|message| message.receipt).collect();
        acked += receipts.len();
        let settled = engine.settle(receipts, Outcome::Ack).await.expect("settled");
        assert!(settled.iter().all(Result::is_ok));
        clock.advance(1_000);
    }
    assert_eq!(published, acked, "what is taken can be acknowledged");
    assert!(published > 1_900, "only {published} of 2000 were taken");
    let error = snapshot.read(&mut [0; 10]).expect_err("its files are used again");
    assert!(error.to_string().contains("the disk is short of room"), "{error}");
    assert!(snapshot.manifest().is_err());
    check(&copy(engine.snapshot().expect("the first was given up")));
}

#[tokio::test]
async fn a_snapshot_does_not_outlive_its_engine() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open(&disk, &clock);
    let mut snapshot = engine.snapshot().expect("one at a time");
    assert!(snapshot.next_file().expect("it is there").is_some());
    engine.close();
    let error = snapshot.read(&mut [0; 10]).expect_err("the next engine may use its files");
    assert!(error.to_string().ends_with("it is stopping"), "{error}");
    assert!(matches!(engine.snapshot(), Err(NoSnapshot::Unavailable(_))));
}

#[tokio::test]
async fn a_snapshot_that_was_not_begun_to_be_read_says_why_it_is_over() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open(&disk, &clock);
    let mut snapshot = engine.snapshot().expect("one at a time");
    engine.close();
    disk.names().iter().for_each(|name| overtake_store::Disk::remove(&disk, name).expect("removed"));
    let error = snapshot.next_file().expect_err("it is over");
    assert_eq!(error.to_string(), "the snapshot was given up: it is stopping");
}

#[tokio::test]
async fn a_segment_that_is_needed_is_in_the_snapshot_though_it_is_consumed_meanwhile() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open(&disk, &clock);
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    for n in 0..200 {
        let messages = (0..10).map(|m| message(&format!("{:0>200}", n * 10 + m), 5)).collect();
        engine.publish(messages).await.expect("published");
    }
    let snapshot = engine.snapshot().expect("one at a time");
    assert_eq!(engine.purge("q", None).await, Ok(2_000));
    pass(&engine, 500).await;
    let copied = copy(snapshot);
    assert!(check(&copied) > 1);
    let segments = Segments::open(copied.clone(), 7, 9, 1, usize::MAX).expect("it opens");
    assert!(!segments.numbers().expect("listed").is_empty());
    let again = open(&copied, &clock);
    assert_eq!(numbers(&again).await, (0..2_000).collect());
}
