//! A store that is not as it was written.

use overtake_engine::core::{Core, OpenError, Recovered};
use overtake_engine::{Engine, Options};
use overtake_lane::Settings;
use overtake_store::{MemoryDisk, OnDamage, StoreError};

use crate::support::{START, TINY, clock, copy_of, files_named, message, open_disk, options, pull};

const KEPT: u64 = 300;

/// A store of a few files, closed as planned, with messages of every state in it.
async fn store() -> MemoryDisk {
    let disk = MemoryDisk::new(1);
    let engine = open_disk(&disk, &clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    for n in 0..KEPT {
        engine.publish(vec![message(&format!("{n:0>500}"), n % 10)]).await.expect("published");
    }
    let leased = engine.lease(pull("q", 10)).await.expect("leased");
    engine.settle(vec![leased[0].receipt], overtake_lane::Outcome::Reject).await.expect("settled");
    engine.close();
    disk
}

fn open(disk: &MemoryDisk, on_damage: OnDamage) -> Result<Recovered, OpenError> {
    let options = Options { on_damage, ..options(TINY) };
    Core::<()>::open(disk.clone(), &options, START).map(|opened| opened.recovered)
}

/// Refused with its place, or everything is there; and skipped, it opens. Answers whether it was refused.
fn check(damaged: &MemoryDisk, what: &str) -> bool {
    let refused = match open(&copy_of(damaged), OnDamage::Refuse) {
        Ok(recovered) => {
            assert_eq!(recovered.messages, KEPT, "{what}: opened, and not all is there");
            false
        }
        Err(OpenError::Store(StoreError::Corrupt { file, .. })) => {
            assert!(what.contains(&file), "{what}: the damage is said to be in {file}");
            true
        }
        Err(OpenError::Store(StoreError::Newer { .. })) => true,
        Err(error) => panic!("{what}: {error}"),
    };
    match open(damaged, OnDamage::Skip) {
        Ok(recovered) => {
            assert!(recovered.messages <= KEPT, "{what}: nothing is invented");
            let again =
                open(damaged, OnDamage::Refuse).unwrap_or_else(|error| panic!("{what}, then: {error}"));
            assert_eq!(
                again.messages, recovered.messages,
                "{what}: a plain start finds the same after a skip"
            );
            assert!(
                overtake_store::check(damaged).expect("a store").is_clean(),
                "{what}: nothing is damaged any more"
            );
        }
        // A version is believed, damaged or not.
        Err(OpenError::Store(StoreError::Newer { .. })) => {}
        Err(error) => panic!("{what}, skipped: {error}"),
    }
    refused
}

#[tokio::test]
async fn a_flipped_bit_is_found_or_costs_nothing() {
    let disk = store().await;
    let mut refused = 0;
    for name in disk.names() {
        let len = disk.read(&name).expect("a file").len() as u64;
        for offset in (0..4_096).step_by(211).chain((4_096..len).step_by(2_503)) {
            let damaged = copy_of(&disk);
            damaged.flip(&name, offset, 1 << (offset % 8));
            refused += u64::from(check(&damaged, &format!("a bit of {name} at {offset}")));
        }
    }
    assert!(refused > 20, "only {refused} flips were found: are they where the records are?");
}

#[tokio::test]
async fn a_truncated_file_is_found_or_costs_nothing() {
    let disk = store().await;
    for name in disk.names() {
        let bytes = disk.read(&name).expect("a file");
        for len in (0..bytes.len()).step_by(5_003) {
            let damaged = copy_of(&disk);
            damaged.put(&name, bytes[..len].to_vec());
            check(&damaged, &format!("{name} cut at {len}"));
        }
    }
}

#[tokio::test]
async fn one_damaged_record_costs_only_what_it_said() {
    let disk = store().await;
    let name = &files_named(&disk, "journal-")[0];
    let (bytes, body) = (disk.read(name).expect("it is there"), format!("{:0>500}", 50));
    let at =
        bytes.windows(body.len()).position(|part| part == body.as_bytes()).expect("it is in the first file");
    disk.flip(name, at as u64, 0xff);
    let recovered = open(&disk, OnDamage::Skip).expect("opens");
    assert_eq!(recovered.journal.damage.len(), 1);
    assert!((KEPT - 2..KEPT).contains(&recovered.messages), "{} of {KEPT} are left", recovered.messages);
}

#[tokio::test]
async fn a_queue_whose_description_is_damaged_keeps_its_messages() {
    let disk = store().await;
    let name = &files_named(&disk, "journal-")[0];
    // The first record of the store describes the queue.
    disk.flip(name, 4_096 + 150, 0xff);
    let options = Options { on_damage: OnDamage::Skip, ..options(TINY) };
    let engine = overtake_engine::LocalEngine::open_on(disk.clone(), options, clock()).expect("opens");
    let queues = engine.queues(None, usize::MAX).await.expect("listed").queues;
    assert_eq!(queues.iter().map(|queue| &*queue.name).collect::<Vec<_>>(), ["recovered-0"]);
    let lanes = &queues[0].lanes;
    assert_eq!(lanes.iter().map(|lane| lane.ready + lane.leased + lane.dead).sum::<u64>(), KEPT);
}

/// Most of it waits in segments. Also, how much that is.
async fn spilled_store() -> (MemoryDisk, u64) {
    let disk = MemoryDisk::new(1);
    let options = Options { memory_bytes: 0, ..options(TINY) };
    let engine = overtake_engine::LocalEngine::open_on(disk.clone(), options, clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    let mut kept = 0;
    while engine.health().memory.segments < 4 || kept < 1_000 {
        engine.publish(vec![message(&format!("{kept:0>500}"), kept % 2)]).await.expect("published");
        kept += 1;
    }
    engine.close();
    (disk, kept)
}

/// Leases all there is. `None`: the engine stopped, and said why.
async fn lease_all(disk: &MemoryDisk, on_damage: OnDamage) -> Option<u64> {
    let options = Options { on_damage, ..options(TINY) };
    let engine = overtake_engine::LocalEngine::open_on(disk.clone(), options, clock()).ok()?;
    let mut leased = 0;
    loop {
        let Ok(messages) = engine.lease(pull("q", 50)).await else {
            let why = engine.failed().await;
            assert!(why.contains("segment"), "it says what cannot be read: {why}");
            return None;
        };
        if messages.is_empty() {
            return Some(leased);
        }
        leased += messages.len() as u64;
        let whole = |message: &overtake_engine::LeasedMessage| message.content.body.len() == 500;
        assert!(messages.iter().all(whole), "what is leased is what was published");
    }
}

#[tokio::test]
async fn what_cannot_be_read_of_a_segment_is_taken_from_the_journal() {
    let (disk, kept) = spilled_store().await;
    let segments = files_named(&disk, "segment-");
    assert!(segments.len() > 3, "{segments:?}");
    for name in segments.iter().take(3) {
        let len = disk.read(name).expect("a file").len() as u64;
        for offset in (4_096..len).step_by(151) {
            let damaged = copy_of(&disk);
            damaged.flip(name, offset, 0x55);
            let left = lease_all(&copy_of(&damaged), OnDamage::Refuse).await.expect("the rest goes on");
            let skipped = lease_all(&damaged, OnDamage::Skip).await.expect("what is left can be read");
            assert_eq!(left, skipped, "{name} at {offset}");
            // The journal has given back its oldest file.
            assert!(kept - left <= 10, "{left} of {kept} with {name} damaged at {offset}");
        }
        let gone = copy_of(&disk);
        overtake_store::Disk::remove(&gone, name).expect("it is there");
        let report = overtake_store::check(&gone).expect("it can be read");
        assert_eq!(report.damage.iter().map(|damage| &damage.file).collect::<Vec<_>>(), [name]);
        for on_damage in [OnDamage::Refuse, OnDamage::Skip] {
            let recovered = open(&copy_of(&gone), on_damage).expect("opens");
            assert_eq!(recovered.lost.segments.len(), 1);
            let lost = recovered.lost.segments[0].messages;
            assert!(lost <= 10 && recovered.messages + lost == kept, "the journal has them: {recovered:?}");
        }
    }
}
