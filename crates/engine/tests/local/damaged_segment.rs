//! One damaged place in a segment of several blocks: what starts, what is lost, what goes on.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::ErrorKind;

use overtake_engine::core::OpenError;
use overtake_engine::{Engine, LocalEngine, Options};
use overtake_lane::{Outcome, Settings};
use overtake_store::{Fault, MemoryDisk, OnDamage, OperationKind, Segment};

use crate::support::{TINY, clock, copy_of, files_named, message, options, pull};

/// So much that a segment has several blocks.
const MEMORY: u64 = 2 << 20;

/// Memory for many more segments than are kept open.
const LITTLE: u64 = 128 << 10;

fn open(disk: &MemoryDisk, on_damage: OnDamage) -> Result<LocalEngine, OpenError> {
    open_with(disk, MEMORY, on_damage)
}

fn open_with(disk: &MemoryDisk, memory_bytes: u64, on_damage: OnDamage) -> Result<LocalEngine, OpenError> {
    let options = Options { memory_bytes, on_damage, ..options(TINY) };
    LocalEngine::open_on(disk.clone(), options, clock())
}

/// A store of two queues with so many messages in the first, most of them in segments.
async fn store(count: u64) -> MemoryDisk {
    store_with(count, MEMORY).await
}

async fn store_with(count: u64, memory_bytes: u64) -> MemoryDisk {
    let disk = MemoryDisk::new(1);
    let engine = open_with(&disk, memory_bytes, OnDamage::Refuse).expect("opens");
    for queue in ["q", "other"] {
        engine.declare_queue(queue, Settings::default()).await.expect("declared");
    }
    for batch in 0..count / 20 {
        let bodies = batch * 20..(batch + 1) * 20;
        let batch = bodies.map(|n| message(&format!("{n:0>500}"), 5));
        engine.publish(batch.collect()).await.expect("published");
    }
    while engine.health().memory.segments < 4 {
        engine.queues(None, 1).await.expect("it goes on");
    }
    let other = overtake_engine::conformance::words::message("other", "alone:5");
    engine.publish(vec![other]).await.expect("published");
    engine.close();
    disk
}

/// A place in each part of a segment.
fn regions(disk: &MemoryDisk) -> (String, Vec<(&'static str, u64)>) {
    let name = files_named(disk, "segment-").remove(0);
    let number = name.rsplit_once('-').expect("a number").1.parse().expect("a number");
    let bytes = disk.read(&name).expect("a file");
    let store_id = u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"));
    let segment = Segment::open(disk, number, store_id).expect("it is whole");
    let blocks: Vec<_> = segment.blocks().map(|block| block.file_range).collect();
    assert!(blocks.len() > 2, "{} blocks", blocks.len());
    let len = bytes.len() as u64;
    let places = vec![
        ("header", 20),
        ("first block", blocks[0].start + 1_000),
        ("head of a block", blocks[1].start + 2),
        ("block", blocks[1].start + 1_000),
        ("last block", blocks[blocks.len() - 1].start + 1_000),
        ("index", blocks[blocks.len() - 1].end + 9),
        ("footer", len - 30),
    ];
    (name, places)
}

/// The place in a block that is neither the first nor the last.
fn middle_of(places: &[(&str, u64)]) -> u64 {
    places.iter().find(|(region, _)| *region == "block").expect("a segment has one").1
}

/// Takes everything out of `q` and settles it; each once.
async fn drain(engine: &LocalEngine) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    loop {
        let leased = engine.lease(pull("q", 100)).await.expect("it goes on");
        if leased.is_empty() {
            return found;
        }
        for message in &leased {
            let body = String::from_utf8_lossy(&message.content.body).into_owned();
            assert_eq!(body.len(), 500, "what is leased is what was published");
            assert!(found.insert(body), "a message comes once");
        }
        let receipts = leased.iter().map(|message| message.receipt).collect();
        let settled = engine.settle(receipts, Outcome::Ack).await.expect("settled");
        assert!(settled.iter().all(Result::is_ok));
    }
}

/// So many messages pass through another queue, enough to have the journal cleaned.
async fn publish_and_consume(engine: &LocalEngine, count: u64) {
    for _ in 0..count / 20 {
        let batch =
            vec![overtake_engine::conformance::words::message("other", &format!("{:0>500}:5", "")); 20];
        engine.publish(batch).await.expect("published");
        let leased = engine.lease(pull("other", 20)).await.expect("leased");
        let receipts = leased.iter().map(|message| message.receipt).collect();
        engine.settle(receipts, Outcome::Ack).await.expect("settled");
    }
}

/// Damages each part in turn and says what came of it.
async fn table(count: u64) -> String {
    let disk = store(count).await;
    let (name, places) = regions(&disk);
    let mut table = String::new();
    for (region, at) in places {
        for on_damage in [OnDamage::Refuse, OnDamage::Skip] {
            let damaged = copy_of(&disk);
            assert!(damaged.flip(&name, at, 0x10));
            let _ = write!(table, "{region}, {on_damage:?}: ");
            let engine = match open(&damaged, on_damage) {
                Ok(engine) => engine,
                Err(error) => {
                    let _ = writeln!(table, "refused: {error}");
                    continue;
                }
            };
            let found = drain(&engine).await;
            let other = engine.lease(pull("other", 1)).await.expect("the other queue goes on");
            assert_eq!(other.len(), 1);
            let damage = engine.health().damage;
            assert_eq!(damage.lost_messages, count - found.len() as u64, "{damage:?}");
            engine.close();
            let again = open(&damaged, OnDamage::Refuse).expect("the next plain start works");
            assert_eq!(drain(&again).await.len(), 0, "what was settled does not come back");
            again.close();
            let _ = writeln!(table, "{} lost, {} in quarantine", damage.lost_messages, damage.blocks);
        }
    }
    table
}

#[tokio::test]
async fn while_the_journal_has_the_messages_none_is_lost() {
    let table = table(4_000).await;
    assert!(table.lines().all(|line| line.contains(": 0 lost")), "{table}");
}

#[tokio::test]
async fn a_damaged_block_costs_its_messages_and_nothing_else() {
    let table = table(16_000).await;
    for line in table.lines() {
        let lost: u64 =
            line.split(": ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect(line);
        let expected = if line.contains("block") { 1..100 } else { 0..1 };
        assert!(expected.contains(&lost), "{table}");
    }
}

#[tokio::test]
async fn segments_are_taken_over_where_the_journal_that_spoke_of_them_is_damaged() {
    let disk = store(16_000).await;
    let all: BTreeSet<String> = (0..16_000).map(|n| format!("{n:0>500}")).collect();
    let engine = open(&disk, OnDamage::Refuse).expect("opens");
    let first = engine.lease(pull("q", 100)).await.expect("leased");
    let receipts = first.iter().map(|message| message.receipt).collect();
    engine.settle(receipts, Outcome::Ack).await.expect("settled");
    engine.close();
    let mut files_that_spoke = 0;
    for name in &files_named(&disk, "journal-") {
        let damaged = copy_of(&disk);
        let bytes = damaged.read(name).expect("a file");
        damaged.put(name, bytes[..bytes.len() / 3].to_vec());
        let engine = match open(&damaged, OnDamage::Skip) {
            Ok(engine) => engine,
            Err(error) => panic!("{name} is cut: {error}"),
        };
        let speaks_of_segments = !engine.recovered().lost.adopted.is_empty();
        let speaks_of_queue = engine.queue("q").await.is_err();
        engine.close();
        if !speaks_of_segments || speaks_of_queue {
            continue;
        }
        assert!(overtake_store::check(&damaged).expect("a store").is_clean(), "{name}");
        let engine = open(&damaged, OnDamage::Refuse).expect("a plain start works again");
        let found = drain(&engine).await;
        // What was published in the part of one file that is cut, and is nowhere else.
        assert!(
            found.is_subset(&all) && found.len() >= 16_000 - 100 - 130,
            "{name}: {} are left",
            found.len()
        );
        assert!(found.len() <= 16_000, "{name}");
        engine.close();
        files_that_spoke += 1;
        if files_that_spoke == 3 {
            return;
        }
    }
    panic!("three files speak of segments, not {files_that_spoke}");
}

#[tokio::test]
async fn what_waits_in_a_segment_that_is_missing_is_taken_from_the_journal() {
    let disk = store(4_000).await;
    let segments = files_named(&disk, "segment-");
    for (name, on_damage) in segments.iter().zip([OnDamage::Refuse, OnDamage::Skip]) {
        let damaged = copy_of(&disk);
        overtake_store::Disk::remove(&damaged, name).expect("it is there");
        let engine = open(&damaged, on_damage).unwrap_or_else(|error| panic!("{name}: {error}"));
        engine.queue("q").await.expect("it goes on");
        let damage = engine.health().damage;
        // With that segment damage was skipped, and is over.
        let blocks = u64::from(on_damage == OnDamage::Refuse);
        assert_eq!((damage.blocks, damage.lost_messages), (blocks, 0), "{name}");
        let last = damage.sentence().unwrap_or_default();
        assert!(blocks == 0 || last.contains(name) && last.contains("missing"), "{last}");
        engine.close();
        let engine = open(&damaged, OnDamage::Refuse).expect("the next plain start works");
        assert_eq!(drain(&engine).await.len(), 4_000, "the journal has all of them");
        engine.close();
        let engine = open(&damaged, OnDamage::Refuse).expect("and the one after that");
        assert_eq!(drain(&engine).await.len(), 0, "what was settled does not come back");
        engine.close();
    }
}

/// Somebody removes the files of segments under a running broker.
#[tokio::test]
async fn a_segment_that_is_removed_while_the_broker_runs_costs_what_waited_in_it() {
    let disk = store_with(24_000, LITTLE).await;
    let engine = open_with(&disk, LITTLE, OnDamage::Refuse).expect("opens");
    let segments = files_named(&disk, "segment-");
    // The last 256 that were needed are still open, and are read on.
    assert!(segments.len() > 512, "{} segments", segments.len());
    let removed = &segments[segments.len() / 4..segments.len() / 2];
    for name in removed {
        overtake_store::Disk::remove(&disk, name).expect("it is there");
    }
    let found = drain(&engine).await;
    let damage = engine.health().damage;
    assert!(damage.blocks > 0 && damage.lost_messages > 0, "{damage:?}");
    assert_eq!(found.len() as u64 + damage.lost_messages, 24_000, "{damage:?}");
    let last = damage.sentence().expect("it is named");
    assert!(removed.iter().any(|name| last.contains(name.as_str())) && last.contains("missing"), "{last}");
    let other = engine.lease(pull("other", 1)).await.expect("another queue goes on");
    assert_eq!(other.len(), 1);
    engine.publish(vec![message("new", 5)]).await.expect("it takes messages");
    engine.close();
    let engine = open_with(&disk, LITTLE, OnDamage::Refuse).expect("a plain start works");
    assert!(!engine.lease(pull("q", 1)).await.expect("leased").is_empty());
    engine.close();
}

/// A segment that was put back after a start without it has what it had, but for what was settled meanwhile.
#[tokio::test]
async fn a_segment_that_is_put_back_has_what_was_not_settled_without_it() {
    let disk = store(16_000).await;
    let name = files_named(&disk, "segment-").remove(0);
    let bytes = disk.read(&name).expect("a file");
    overtake_store::Disk::remove(&disk, &name).expect("it is there");
    let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
    let leased = engine.lease(pull("q", 10)).await.expect("leased");
    let lost = engine.health().damage.lost_messages;
    assert!(lost > 0, "the journal no longer has all of them");
    let receipts = leased.iter().map(|message| message.receipt).collect();
    engine.settle(receipts, Outcome::Ack).await.expect("settled");
    engine.close();
    disk.put(&name, bytes);
    let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
    assert_eq!(drain(&engine).await.len(), 16_000 - 10);
    assert_eq!(engine.health().damage.blocks, 0);
    engine.close();
}

/// A segment that was missing for so long that nothing mentions it any more is kept when it comes back, and not read.
#[tokio::test]
async fn a_segment_that_comes_back_when_nothing_mentions_it_any_more_is_kept() {
    let disk = store(4_000).await;
    let name = files_named(&disk, "segment-").remove(0);
    let bytes = disk.read(&name).expect("a file");
    overtake_store::Disk::remove(&disk, &name).expect("it is there");
    let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
    assert_eq!(drain(&engine).await.len(), 4_000, "the journal has all of them");
    // The journal is kept for a while.
    publish_and_consume(&engine, 8_000).await;
    engine.close();
    let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
    publish_and_consume(&engine, 20).await;
    assert_eq!(engine.health().damage.blocks, 0, "nothing mentions it");
    engine.close();
    disk.put(&name, bytes.clone());
    let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
    let unknown = engine.recovered().unknown.clone();
    let [only] = &unknown[..] else { panic!("one is told: {unknown:?}") };
    assert_eq!((&*only.queue, &*only.kept_as), ("q", &*format!("unknown-{name}")));
    assert!(only.messages > 0);
    assert_eq!(drain(&engine).await.len(), 0, "what was settled does not come back");
    engine.close();
    assert_eq!(disk.read(&only.kept_as), Some(bytes), "it is kept");
    let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
    assert_eq!(engine.recovered().unknown, [], "it is told once");
    engine.close();
}

/// The damaged file has its other name before anything else happens: a plain start would take it for one that is over.
#[tokio::test]
async fn a_damaged_file_that_was_skipped_is_kept_even_if_nothing_happens_before_the_next_start() {
    let disk = store(4_000).await;
    let (name, places) = regions(&disk);
    assert!(disk.flip(&name, middle_of(&places), 0x10));
    let bytes = disk.read(&name);
    open(&disk, OnDamage::Skip).expect("opens").close();
    open(&disk, OnDamage::Refuse).expect("a plain start works").close();
    assert_eq!(disk.read(&format!("damaged-{name}")), bytes);
}

/// Each place is told with the messages that it cost.
#[tokio::test]
async fn of_two_damaged_places_of_a_segment_each_has_its_own_messages() {
    let disk = store(16_000).await;
    let (name, places) = regions(&disk);
    for region in ["first block", "last block"] {
        let at = places.iter().find(|(found, _)| *found == region).expect("a segment has one").1;
        assert!(disk.flip(&name, at, 0x10));
    }
    let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
    let found = drain(&engine).await;
    let damage = engine.health().damage;
    let each: Vec<u64> = damage.places.iter().map(|place| place.messages).collect();
    assert_eq!(each.iter().sum::<u64>(), 16_000 - found.len() as u64);
    assert!(each.len() == 2 && each.iter().all(|messages| (1..100).contains(messages)), "{damage:?}");
    engine.close();
}

/// A directory of segments was a store: without its journal it is not begun anew, which would remove them.
#[tokio::test]
async fn a_store_without_its_journal_is_not_begun_anew() {
    let disk = store(4_000).await;
    let before = files_named(&disk, "segment-");
    let journal = files_named(&disk, "journal-");
    let kept: Vec<_> = journal.iter().map(|name| (name, disk.read(name).expect("a file"))).collect();
    for name in &journal {
        overtake_store::Disk::remove(&disk, name).expect("it is there");
    }
    let refused = open(&disk, OnDamage::Refuse).err().expect("a start is refused").to_string();
    assert!(refused.contains("the journal is missing") && refused.contains("segments"), "{refused}");
    assert_eq!(files_named(&disk, "segment-"), before);

    let without = copy_of(&disk);
    let engine = open(&without, OnDamage::Skip).expect("it starts with what the segments have");
    let (adopted, messages) = (engine.recovered().lost.adopted.len(), engine.recovered().messages);
    assert!(adopted == before.len() && messages > 0, "{adopted} of {} segments, {messages}", before.len());
    engine.close();
    let engine = open(&without, OnDamage::Refuse).expect("a plain start works");
    let queues = engine.queues(None, 9).await.expect("it goes on").queues;
    let [recovered] = &queues[..] else { panic!("{queues:?}") };
    assert!(recovered.name.starts_with("recovered-"), "{}", recovered.name);
    assert_eq!(recovered.lanes.iter().map(|lane| lane.ready).sum::<u64>(), messages);
    engine.close();

    for (name, bytes) in kept {
        disk.put(name, bytes);
    }
    let engine = open(&disk, OnDamage::Refuse).expect("it is whole again");
    assert_eq!(drain(&engine).await.len(), 4_000);
    engine.close();
}

/// A purge ends what is told of a segment that is missing, and so does the end of the queue; also at later starts.
#[tokio::test]
async fn a_missing_segment_is_told_until_its_queue_is_purged_or_gone() {
    for end in ["purge", "delete"] {
        let disk = store(16_000).await;
        let name = files_named(&disk, "segment-").remove(0);
        overtake_store::Disk::remove(&disk, &name).expect("it is there");
        open(&disk, OnDamage::Refuse).expect("a plain start works").close();
        let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
        engine.queues(None, 1).await.expect("it goes on");
        assert_eq!(engine.health().damage.blocks, 1, "it is told at each start");
        let lost = engine.queue("q").await.expect("it is there").quarantined;
        assert!(lost > 0);
        drain(&engine).await;
        match end {
            "purge" => {
                let if_empty = overtake_engine::DeleteOnly { if_empty: true, ..Default::default() };
                let refused = engine.delete_queue("q", if_empty).await;
                assert_eq!(refused.map(drop), Err(overtake_lane::Refusal::NotEmpty.into()));
                assert_eq!(engine.purge("q", None).await, Ok(lost));
            }
            _ => engine
                .delete_queue("q", overtake_engine::DeleteOnly::default())
                .await
                .map(drop)
                .expect("deleted"),
        }
        engine.queues(None, 1).await.expect("it goes on");
        assert_eq!(engine.health().damage.blocks, 0, "{end}");
        engine.close();
        let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
        engine.queues(None, 1).await.expect("it goes on");
        assert_eq!(engine.health().damage.blocks, 0, "{end}");
        engine.close();
    }
}

/// A block that is readable again after a start, however late that is: all else was consumed, and the journal was cleaned meanwhile.
#[tokio::test]
async fn what_is_in_quarantine_waits_until_it_can_be_read_again() {
    let disk = store(16_000).await;
    let (name, places) = regions(&disk);
    let at = middle_of(&places);
    assert!(disk.flip(&name, at, 0x10));
    let engine = open(&disk, OnDamage::Refuse).expect("opens");
    let mut found = drain(&engine).await;
    let lost = engine.health().damage.lost_messages;
    assert!(lost > 0 && found.len() as u64 + lost == 16_000, "{lost} lost");
    publish_and_consume(&engine, 20_000).await;
    engine.close();
    let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
    assert_eq!(drain(&engine).await.len(), 0, "it cannot be read yet");
    publish_and_consume(&engine, 20_000).await;
    assert_eq!(engine.health().damage.lost_messages, lost, "it is said again");
    engine.close();
    assert!(disk.flip(&name, at, 0x10), "the segment is kept");
    let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
    let again = drain(&engine).await;
    assert_eq!(again.len() as u64, lost);
    found.extend(again);
    assert_eq!(found.len(), 16_000, "each came once");
    assert_eq!(engine.health().damage.blocks, 0);
    engine.close();
}

/// What was found in the journal is settled for good: it is in no quarantine, from which it would come again.
#[tokio::test]
async fn what_was_found_in_the_journal_comes_once_even_if_its_block_can_be_read_again() {
    let whole = store(4_000).await;
    let (name, places) = regions(&whole);
    for (region, at) in places {
        for others in [0, 6_000] {
            let disk = copy_of(&whole);
            assert!(disk.flip(&name, at, 0x10));
            let engine = open(&disk, OnDamage::Refuse).unwrap_or_else(|error| panic!("{region}: {error}"));
            assert_eq!(drain(&engine).await.len(), 4_000, "{region}: the journal has them");
            publish_and_consume(&engine, others).await;
            assert_eq!(engine.health().damage.sentence(), None, "{region}: nothing is missing");
            engine.close();
            for mended in [false, true] {
                if mended {
                    disk.flip(&name, at, 0x10);
                }
                let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
                assert_eq!(drain(&engine).await.len(), 0, "{region}, {others} others, mended: {mended}");
                publish_and_consume(&engine, others).await;
                engine.close();
            }
        }
    }
}

/// What was found in the journal and not consumed yet waits after each start, though all else of its segment is gone.
#[tokio::test]
async fn what_was_found_in_the_journal_waits_through_starts() {
    let disk = store(4_000).await;
    let (name, places) = regions(&disk);
    let at = middle_of(&places);
    assert!(disk.flip(&name, at, 0x10));
    let mut found = BTreeSet::new();
    for _ in 0..4 {
        let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
        for _ in 0..10 {
            let leased = engine.lease(pull("q", 100)).await.expect("leased");
            for message in &leased {
                let body = String::from_utf8_lossy(&message.content.body).into_owned();
                assert!(found.insert(body), "a message comes once");
            }
            let receipts = leased.iter().map(|message| message.receipt).collect();
            engine.settle(receipts, Outcome::Ack).await.expect("settled");
        }
        engine.close();
    }
    assert_eq!(found.len(), 4_000);
}

/// Segments that were removed under a running broker and come back, when everything else of their queue was consumed.
#[tokio::test]
async fn segments_that_are_put_back_after_everything_else_was_consumed_have_what_they_had() {
    let disk = store_with(24_000, LITTLE).await;
    let engine = open_with(&disk, LITTLE, OnDamage::Refuse).expect("opens");
    let segments = files_named(&disk, "segment-");
    let removed: Vec<_> = segments[segments.len() / 4..segments.len() / 2]
        .iter()
        .map(|name| (name.clone(), disk.read(name).expect("a file")))
        .collect();
    for (name, _) in &removed {
        overtake_store::Disk::remove(&disk, name).expect("it is there");
    }
    let mut found = drain(&engine).await;
    let lost = engine.health().damage.lost_messages;
    assert!(lost > 0);
    engine.close();
    for (name, bytes) in removed {
        disk.put(&name, bytes);
    }
    let engine = open_with(&disk, LITTLE, OnDamage::Refuse).expect("a plain start works");
    let again = drain(&engine).await;
    assert_eq!(again.len() as u64, lost);
    found.extend(again);
    assert_eq!(found.len(), 24_000);
    engine.close();
}

/// A file that may not be read, or a directory in its place: a broker that serves goes on without what waits in it, and a start names it.
#[tokio::test]
async fn a_segment_that_may_not_be_read_ends_no_broker_and_refuses_a_start() {
    for kind in [ErrorKind::PermissionDenied, ErrorKind::IsADirectory] {
        let disk = store(32_000).await;
        let segments = files_named(&disk, "segment-");
        // Some of the last are still open.
        assert!(segments.len() > 70, "{} segments", segments.len());
        let name = segments[3].clone();
        let forbid = |disk: &MemoryDisk| {
            let forbidden = name.clone();
            disk.set_hook(move |operation| {
                let is_hit = operation.kind == OperationKind::Read && operation.name == forbidden;
                if is_hit { Fault::Error(kind) } else { Fault::None }
            });
        };
        let engine = open(&disk, OnDamage::Refuse).expect("opens");
        forbid(&disk);
        let mut found = drain(&engine).await;
        let damage = engine.health().damage;
        assert!(damage.lost_messages > 0 && engine.health().down.is_none(), "{kind}: {damage:?}");
        assert!(damage.places.iter().all(|place| place.place.contains(&name)), "{kind}: {damage:?}");
        engine.close();
        disk.clear_hook();
        forbid(&disk);
        let refused = open(&disk, OnDamage::Refuse).err().expect("a start is refused").to_string();
        assert!(refused.contains(&name) && refused.contains(&kind.to_string()), "{refused}");
        let without = copy_of(&disk);
        forbid(&without);
        open(&without, OnDamage::Skip).expect("it starts without that segment").close();
        assert!(without.names().contains(&format!("damaged-{name}")), "{:?}", without.names());
        disk.clear_hook();
        let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
        found.extend(drain(&engine).await);
        assert_eq!(found.len(), 32_000, "{kind}");
        engine.close();
    }
}

/// A purge, a deletion of the queue, and a start that skips damage end what is in quarantine.
#[tokio::test]
async fn what_is_in_quarantine_is_over_when_somebody_says_so() {
    for end in ["purge", "delete", "skip"] {
        let disk = store(16_000).await;
        let (name, places) = regions(&disk);
        let at = middle_of(&places);
        assert!(disk.flip(&name, at, 0x10));
        let engine = open(&disk, OnDamage::Refuse).expect("opens");
        let lost = 16_000 - drain(&engine).await.len() as u64;
        assert_eq!(engine.queue("q").await.expect("it is there").quarantined, lost);
        match end {
            "purge" => assert_eq!(engine.purge("q", None).await, Ok(lost)),
            "delete" => {
                let if_empty = overtake_engine::DeleteOnly { if_empty: true, ..Default::default() };
                let refused = engine.delete_queue("q", if_empty).await;
                assert_eq!(refused.map(drop), Err(overtake_lane::Refusal::NotEmpty.into()));
                engine.delete_queue("q", overtake_engine::DeleteOnly::default()).await.expect("deleted");
                engine.declare_queue("q", Settings::default()).await.expect("declared");
            }
            _ => {}
        }
        engine.close();
        if end == "skip" {
            open(&disk, OnDamage::Skip).expect("opens").close();
        }
        disk.flip(&name, at, 0x10);
        let engine = open(&disk, OnDamage::Refuse).expect("a plain start works");
        assert_eq!(drain(&engine).await.len(), 0, "{end}");
        engine.close();
        let left = disk.names().iter().filter(|name| name.starts_with("segment-")).count();
        assert_eq!(left, 0, "{end}: nothing is kept for what is over");
    }
}

/// The disk cannot read a block, or anything of a segment: that costs what a flipped bit there does.
#[tokio::test]
async fn what_the_disk_cannot_read_is_put_aside_and_all_else_goes_on() {
    let disk = store(16_000).await;
    let (name, places) = regions(&disk);
    let mut lost = Vec::new();
    for (region, at) in places {
        let damaged = copy_of(&disk);
        let bad = name.clone();
        damaged.set_hook(move |operation| {
            let range = operation.offset..operation.offset + operation.len;
            let is_hit =
                operation.kind == OperationKind::Read && operation.name == bad && range.contains(&at);
            if is_hit { Fault::Unreadable } else { Fault::None }
        });
        let engine = open(&damaged, OnDamage::Refuse).unwrap_or_else(|error| panic!("{region}: {error}"));
        let found = drain(&engine).await;
        assert_eq!(engine.health().down, None, "{region}");
        let damage = engine.health().damage;
        assert_eq!(damage.lost_messages, 16_000 - found.len() as u64, "{region}: {damage:?}");
        assert!(
            damage.blocks == 0 || damage.places.iter().all(|place| place.place.contains(&name)),
            "{region}"
        );
        lost.push((region, damage.lost_messages));
        engine.close();
    }
    let is_cheap = |(region, lost): &(&str, u64)| match *region {
        // Both copies of it are in what is read at once.
        "header" => *lost > 0,
        "index" | "footer" => *lost == 0,
        _ => (1..100).contains(lost),
    };
    assert!(lost.iter().all(is_cheap), "{lost:?}");
}

#[tokio::test]
async fn a_purge_holds_for_messages_that_are_taken_from_the_journal() {
    let disk = store(4_000).await;
    let (name, places) = regions(&disk);
    let engine = open(&disk, OnDamage::Refuse).expect("opens");
    engine.purge("q", None).await.expect("purged");
    engine.close();
    for (region, at) in places {
        let damaged = copy_of(&disk);
        if !damaged.flip(&name, at, 0x10) {
            continue;
        }
        let engine = open(&damaged, OnDamage::Refuse).unwrap_or_else(|error| panic!("{region}: {error}"));
        assert_eq!(drain(&engine).await.len(), 0, "{region}: what was purged does not come back");
        engine.close();
    }
}
