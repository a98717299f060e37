//! Damage to a segment: found, named with file and offset; never a panic, never a message that was not written.

use overtake_lane::{Fact, Ordinals, Priority, QueueId, RunId, RunRecord, Seq, Settled, Time};
use overtake_store::{Damage, MemoryDisk, Segment, SegmentInfo, Sight, StoreError, check, record};
use proptest::prelude::*;

use crate::common::spilled::{Pair, QUEUE, STORE_ID, name, pair, read_all, rich_pair, segments, write};
use crate::common::{edit, open};

const HEADER_LEN: usize = 4096;
const FOOTER_LEN: usize = 72;
/// Length of the entry of a page of ids in the index.
const FIRST_LEN: usize = 8;

/// A few messages in a few blocks.
fn messages() -> Vec<Pair> {
    let plain = (1..20).map(|n| pair(n, &[n as u8; 30]));
    let long = [pair(50, &[9; 64 << 10]), pair(51, &[8; 100])];
    plain.chain([rich_pair(30, b"rich"), rich_pair(40, b"")]).chain(long).collect()
}

/// A store with that segment, and the bytes of it.
fn store(pairs: &[Pair]) -> (MemoryDisk, Vec<u8>) {
    let disk = MemoryDisk::new(1);
    drop(open(&disk));
    let info = write(&segments(&disk), pairs).expect("a segment");
    say_stored(&disk, &info, QUEUE, info.count as u32);
    let bytes = disk.read(&name(1)).expect("its file");
    (disk, bytes)
}

/// The journal says that so many messages of a queue wait in the segment.
fn say_stored(disk: &MemoryDisk, info: &SegmentInfo, queue: QueueId, count: u32) {
    let run = RunRecord {
        run: RunId(info.number),
        priority: Priority(5),
        count,
        ids: 0,
        deaths: 0,
        bytes: 0,
        expires: Time::NEVER,
        first: info.first,
        last: info.last,
        next: 0,
        holes: Ordinals::default(),
        is_mixed: false,
    };
    append(disk, &Fact::RunStored { queue, run: Box::new(run) });
}

fn append(disk: &MemoryDisk, fact: &Fact) {
    let mut bytes = Vec::new();
    record::encode(fact, record::Content::None, &mut bytes);
    let mut opened = open(disk);
    opened.writer.append(&[&bytes]).expect("room");
    let batch = opened.writer.take_batch().expect("a record");
    opened.committer.commit(&batch).expect("committed");
}

fn read(disk: &MemoryDisk) -> Result<Vec<Pair>, StoreError> {
    let segment = Segment::open(disk, 1, STORE_ID)?;
    let pairs = read_all(&segment, 7)?;
    for (ordinal, (message, _)) in (0..).zip(&pairs) {
        let found = message.id().map_or(Ok(vec![ordinal]), |id| segment.find_id(id))?;
        assert_eq!(found, [ordinal], "{message:?}");
    }
    Ok(pairs)
}

/// Length of a table of so few ids that it is one page.
fn table_len(ids: usize) -> usize {
    12 * ids + 4
}

/// Where the damage was found, and what.
fn found(outcome: Result<Vec<Pair>, StoreError>) -> (u64, Sight) {
    match outcome {
        Err(StoreError::Corrupt { file, at, what }) => {
            assert_eq!(file, name(1));
            (at, what)
        }
        other => panic!("no damage was found: {other:?}"),
    }
}

#[test]
fn every_flipped_byte_is_found_or_harmless() {
    let pairs = messages()[..21].to_vec();
    let (disk, bytes) = store(&pairs);
    let index_at = bytes.len() - FOOTER_LEN - FIRST_LEN - 32;
    let table_at = index_at - table_len(2);
    for at in 0..bytes.len() {
        for mask in [0x01, 0x80, 0xff] {
            disk.flip(&name(1), at as u64, mask);
            let report = check(&disk).expect("a store");
            if at < HEADER_LEN {
                assert_eq!(read(&disk).expect("one copy of the header is enough"), pairs, "{at}");
                assert!(report.is_clean());
                let in_a_copy = at % 2048 < 64;
                assert_eq!(report.notes.len(), usize::from(in_a_copy), "{at}");
            } else {
                let expected = match at {
                    _ if at >= bytes.len() - FOOTER_LEN => (bytes.len() - FOOTER_LEN, Sight::FooterBad),
                    _ if at >= index_at => (index_at, Sight::IndexBad),
                    _ if at >= table_at => (table_at, Sight::IdsBad),
                    _ => (HEADER_LEN, Sight::BlockBad),
                };
                if expected.1 == Sight::BlockBad {
                    assert_eq!(found(read(&disk)), (expected.0 as u64, expected.1), "{at}");
                } else {
                    assert_eq!(read(&disk).expect("its blocks are whole"), pairs, "{at}");
                }
                let damage = &report.damage[0];
                assert_eq!((&damage.file, damage.at, damage.what), (&name(1), expected.0 as u64, expected.1));
                assert_eq!(report.damage.len(), 1);
            }
            disk.flip(&name(1), at as u64, mask);
        }
    }
    assert!(check(&disk).expect("a store").is_clean());
}

#[test]
fn a_damaged_block_costs_its_messages_only() {
    let (disk, _) = store(&messages());
    let segment = Segment::open(&disk, 1, STORE_ID).expect("it is whole");
    let blocks: Vec<_> = segment.blocks().collect();
    assert_eq!(blocks.len(), 3);
    let harmed = &blocks[1];
    disk.flip(&name(1), harmed.file_range.start + 1000, 4);
    assert_eq!(segment.read(0, 21).expect("before it").len(), 21);
    assert!(
        matches!(segment.read(0, 22), Err(StoreError::Corrupt { at, .. }) if at == harmed.file_range.start)
    );
    assert_eq!(segment.content(22).expect("behind it").expect("it is there"), [8; 100]);
    assert!(segment.read_ahead(0).is_err(), "who reads ahead is told, too");
    let report = check(&disk).expect("a store");
    assert_eq!((report.segments, report.segment_messages), (1, 22));
    let damage = &report.damage[..];
    assert_eq!(damage.len(), 1);
    let range = damage[0].at..damage[0].at + damage[0].bytes;
    assert_eq!(range, harmed.file_range);
}

#[test]
fn every_truncation_is_found() {
    let pairs = messages();
    let (disk, bytes) = store(&pairs);
    let near = |at: usize| at.saturating_sub(100)..(at + 100).min(bytes.len());
    let lens = near(0).chain(near(HEADER_LEN)).chain(near(40_000)).chain(bytes.len() - 400..bytes.len());
    for len in lens {
        disk.put(&name(1), bytes[..len].to_vec());
        let expected = if len < 64 { Sight::HeaderBad } else { Sight::FooterBad };
        match read(&disk) {
            // What is left of it is read.
            Ok(left) => assert!(pairs.starts_with(&left) && expected == Sight::FooterBad, "{len}"),
            outcome => {
                let (at, what) = found(outcome);
                assert!(what == expected && at <= len as u64, "{len}: {at} {what}");
            }
        }
        let damage = check(&disk).expect("a store").damage;
        assert_eq!((damage.len(), damage[0].what), (1, expected), "{len}");
        assert_eq!(check(&disk).expect("a store").damage.len(), 1);
    }
    let longer = [&bytes[..], &[0]].concat();
    disk.put(&name(1), longer);
    assert_eq!(read(&disk).expect("its blocks are whole"), pairs);
    assert_eq!(check(&disk).expect("a store").damage[0].what, Sight::FooterBad);
}

#[test]
fn a_file_cut_while_it_is_open_is_damage() {
    let (disk, bytes) = store(&messages());
    let segment = Segment::open(&disk, 1, STORE_ID).expect("it is whole");
    let file = overtake_store::Disk::open(&disk, &name(1)).expect("its file");
    overtake_store::DiskFile::set_len(&file, HEADER_LEN as u64 + 10).expect("cut");
    assert!(bytes.len() > 70_000);
    for ordinal in [0, 21, 22] {
        assert!(matches!(segment.block(ordinal), Err(StoreError::Corrupt { what: Sight::BlockBad, .. })));
    }
}

#[test]
fn a_newer_format_is_named_with_both_versions() {
    let (disk, _) = store(&messages());
    edit(&disk, &name(1), |bytes| {
        for copy in [0, 2048] {
            bytes[copy + 8] = 3;
            let crc = crc32c::crc32c(&bytes[copy..copy + 60]);
            bytes[copy + 60..copy + 64].copy_from_slice(&crc.to_le_bytes());
        }
    });
    let error = read(&disk).expect_err("it is newer");
    assert!(matches!(&error, StoreError::Newer { file, found: 3, known: 1 } if *file == name(1)));
    assert!(error.to_string().contains("format 3"), "{error}");
    assert_eq!(check(&disk).expect("a store").damage[0].what, Sight::HeaderNewer);
}

#[test]
fn a_segment_of_another_store_or_number_is_refused() {
    let (disk, bytes) = store(&messages());
    assert!(matches!(
        Segment::open(&disk, 1, 7),
        Err(StoreError::OtherStore { found: STORE_ID, wanted: 7, .. })
    ));
    disk.put(&name(2), bytes);
    let misplaced = Segment::open(&disk, 2, STORE_ID).err();
    assert!(matches!(misplaced, Some(StoreError::Corrupt { what: Sight::HeaderMisplaced, .. })));
    assert!(matches!(Segment::open(&disk, 3, STORE_ID), Err(StoreError::Io { op: "open", .. })));
}

#[test]
fn a_table_of_ids_that_contradicts_the_messages_is_found() {
    let pairs: Vec<Pair> = (1..9).map(|n| rich_pair(n, b"content")).collect();
    let (disk, bytes) = store(&pairs);
    let salt = crc32c::crc32c(&bytes[..60]);
    let index_at = bytes.len() - FOOTER_LEN - FIRST_LEN - 32;
    let table_at = index_at - table_len(8);
    edit(&disk, &name(1), |bytes| {
        bytes[table_at + 8] ^= 1;
        let crc = crc32c::crc32c_append(salt, &(table_at as u64).to_le_bytes());
        let crc = crc32c::crc32c_append(crc, &bytes[table_at..index_at - 4]);
        bytes[index_at - 4..index_at].copy_from_slice(&crc.to_le_bytes());
    });
    let damage = check(&disk).expect("a store").damage;
    assert_eq!(damage.len(), 1);
    assert_eq!((damage[0].at, damage[0].what), (table_at as u64, Sight::IdsBad));
}

/// Every part of a segment is bound to its file: the same part of one that differs in its number only is not accepted.
#[test]
fn parts_of_another_segment_are_not_accepted() {
    let pairs = messages();
    let (disk, first) = store(&pairs);
    write(&segments(&disk), &pairs).expect("a second one");
    let second = disk.read(&name(2)).expect("its file");
    assert_eq!(first.len(), second.len());
    let footer_at = first.len() - FOOTER_LEN;
    let index_at = footer_at - FIRST_LEN - 3 * 32;
    let table_at = index_at - table_len(2);
    let parts = [HEADER_LEN..table_at, table_at..index_at, index_at..footer_at, footer_at..first.len()];
    let sights = [Sight::BlockBad, Sight::IdsBad, Sight::IndexBad, Sight::FooterBad];
    for (part, sight) in parts.into_iter().zip(sights) {
        let mut mixed = first.clone();
        mixed[part.clone()].copy_from_slice(&second[part]);
        disk.put(&name(1), mixed);
        if sight == Sight::BlockBad {
            assert_eq!(found(read(&disk)).1, sight);
        } else {
            assert_eq!(read(&disk).expect("the blocks are its own"), pairs);
        }
        // The index has no salt in its bytes, only in its checksum, which is in the footer.
        let what: Vec<Sight> =
            check(&disk).expect("a store").damage.iter().map(|damage| damage.what).collect();
        assert_eq!(what.contains(&sight), sight != Sight::IndexBad, "{what:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever becomes of the bytes, what is read is what was written, or an error.
    #[test]
    fn no_scribbled_or_cut_segment_panics_or_invents(
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..40), any::<bool>()), 1..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let pairs = messages();
        let (disk, mut bytes) = store(&pairs);
        for (place, patch, near_the_end) in edits {
            let at = if near_the_end { bytes.len() - 1 - place.index(300) } else { place.index(bytes.len()) };
            let len = patch.len().min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&patch[..len]);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        disk.put(&name(1), bytes);
        check(&disk).expect("a check finds, it does not fail");
        if let Ok(segment) = Segment::open(&disk, 1, STORE_ID) {
            for (ordinal, (message, content)) in (0..).zip(&pairs) {
                if let Ok(found) = segment.read(ordinal, 1)
                    && let Some(found) = found.first()
                {
                    prop_assert_eq!(&found.message, message);
                    let read = segment.content(ordinal).expect("what was read once");
                    prop_assert_eq!(read.as_ref(), Some(content));
                }
                let _ = segment.find(message.seq);
                if let Some(Ok(found)) = message.id().map(|id| segment.find_id(id)) {
                    let is_lost = found.is_empty() && (segment.info().is_rebuilt || !segment.has_whole_ids());
                    prop_assert!(is_lost || found == [ordinal], "{:?}", found);
                }
            }
        }
    }

    /// The same with every checksum made right again: nonsense is refused, too, not only what does not match.
    #[test]
    fn nonsense_under_right_checksums_is_read_or_refused(
        edits in prop::collection::vec((0..700_usize, any::<u8>()), 1..6),
    ) {
        let pairs: Vec<Pair> = (1..9).map(|n| rich_pair(n, b"content")).collect();
        let (disk, mut bytes) = store(&pairs);
        let salt = crc32c::crc32c(&bytes[..60]);
        let footer_at = bytes.len() - FOOTER_LEN;
        let index_at = footer_at - FIRST_LEN - 32;
        let table_at = index_at - table_len(8);
        for (place, byte) in edits {
            let at = HEADER_LEN + place % (bytes.len() - HEADER_LEN);
            bytes[at] = byte;
        }
        let crc = crc32c::crc32c_append(salt, &(HEADER_LEN as u64).to_le_bytes());
        let crc = crc32c::crc32c_append(crc, &bytes[HEADER_LEN..HEADER_LEN + 28]);
        let crc = crc32c::crc32c_append(crc, &bytes[HEADER_LEN + 32..table_at]);
        bytes[HEADER_LEN + 28..HEADER_LEN + 32].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32c::crc32c_append(salt, &(table_at as u64).to_le_bytes());
        let crc = crc32c::crc32c_append(crc, &bytes[table_at..index_at - 4]);
        bytes[index_at - 4..index_at].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32c::crc32c_append(salt, &bytes[index_at..footer_at]);
        bytes[footer_at + 64..footer_at + 68].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32c::crc32c_append(salt, &bytes[footer_at..footer_at + 68]);
        bytes[footer_at + 68..].copy_from_slice(&crc.to_le_bytes());
        disk.put(&name(1), bytes);
        check(&disk).expect("a check finds, it does not fail");
        if let Ok(segment) = Segment::open(&disk, 1, STORE_ID) {
            let _ = read_all(&segment, 3);
            let _ = segment.sequences(0..u64::MAX);
            let _ = segment.find(pairs[3].0.seq);
            let _ = segment.find_id("order-4");
        }
    }
}

#[test]
fn a_segment_that_is_not_the_one_of_the_journal_is_found() {
    let disk = MemoryDisk::new(1);
    drop(open(&disk));
    let info = write(&segments(&disk), &messages()).expect("a segment");
    let count = info.count as u32;
    for (queue, count, is_clean) in
        [(QUEUE, count, true), (QueueId(8), count, false), (QUEUE, count - 1, false), (QUEUE, count, true)]
    {
        say_stored(&disk, &info, queue, count);
        let report = check(&disk).expect("a store");
        let what: Vec<Sight> = report.damage.iter().map(|damage| damage.what).collect();
        let expected = if is_clean { Vec::new() } else { vec![Sight::HeaderMisplaced] };
        assert_eq!(what, expected, "{queue:?}, {count} messages");
    }
}

/// As repairing, which has nothing to save there, says too: of a queue that is gone or was purged, or that the journal does not know yet.
#[test]
fn damage_to_a_segment_of_which_nothing_is_left_is_no_damage_to_the_store() {
    let files = |of: &[Damage]| of.iter().map(|damage| damage.file.clone()).collect::<Vec<_>>();
    let (last, run, how) = (messages()[22].0.seq, RunId(1), Settled::Removed);
    let purged = |before, kept| Fact::Purged { queue: QUEUE, before, kept };
    for (fact, is_needed) in [
        // What was fetched from it before may still have its content there.
        (Fact::RunSettled { queue: QUEUE, run, how }, true),
        (Fact::RunFetched { queue: QUEUE, run }, true),
        (Fact::QueueDeleted { queue: QUEUE }, false),
        (Fact::QueueDeleted { queue: QueueId(8) }, true),
        (purged(Seq(last.0 + 2), vec![Seq(last.0 + 1)]), false),
        (purged(Seq(last.0 + 1), vec![last]), true),
        (purged(last, Vec::new()), true),
    ] {
        let (disk, _) = store(&messages());
        write(&segments(&disk), &messages()).expect("one that the journal does not know yet");
        for number in [1, 2] {
            disk.flip(&name(number), HEADER_LEN as u64 + 100, 1);
        }
        let report = check(&disk).expect("a store");
        assert_eq!((files(&report.damage), files(&report.notes)), (vec![name(1)], vec![name(2)]));
        append(&disk, &fact);
        let report = check(&disk).expect("a store");
        let expected = if is_needed { vec![name(1)] } else { Vec::new() };
        assert_eq!(files(&report.damage), expected, "{fact:?}");
        assert_eq!(report.notes.len(), 2 - expected.len(), "{fact:?}");
    }
}

#[test]
fn a_segment_without_index_or_footer_is_read_block_by_block() {
    let (disk, bytes) = store(&messages());
    for at in [bytes.len() - 10, bytes.len() - FOOTER_LEN - 20] {
        disk.flip(&name(1), at as u64, 1);
        let segment = Segment::open(&disk, 1, STORE_ID).expect("its blocks are whole");
        assert!(segment.info().is_rebuilt && !segment.has_whole_ids());
        assert_eq!(read(&disk).expect("all of it"), messages(), "ids are found, too");
        disk.flip(&name(1), at as u64, 1);
    }
    let first = Segment::open(&disk, 1, STORE_ID).expect("whole").blocks().next().expect("a block");
    let end = first.file_range.end as usize + 100;
    disk.put(&name(1), bytes[..end].to_vec());
    let segment = Segment::open(&disk, 1, STORE_ID).expect("its first block is whole");
    assert_eq!(segment.info().count, first.ordinals.end);
}
