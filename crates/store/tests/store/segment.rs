//! The life of a segment without damage: what is written comes back, whatever its size, and costs what it should.

use overtake_lane::{Extras, Message, Original, Place, Priority, Seq, State, Time};
use overtake_store::{Disk, MemoryDisk, Segment, Segments, StoreError, check};
use proptest::prelude::*;

use crate::common;
use crate::common::spilled::{Pair, QUEUE, STORE_ID, name, pair, read_all, rich_pair, segments, write};
use crate::common::{TempDir, open};

fn times() -> impl Strategy<Value = Time> {
    prop_oneof![any::<u64>().prop_map(Time), Just(Time::NEVER)]
}

fn messages() -> impl Strategy<Value = Message> {
    let states = prop_oneof![
        9 => Just(State::Ready),
        1 => Just(State::Dead),
        1 => times().prop_map(|due| State::Delayed { due }),
    ];
    let extras = (prop::option::of("\\PC{0,9}"), prop::option::of("\\PC{0,9}")).prop_map(|(id, key)| {
        let extras = Extras { id: id.map(Into::into), key: key.map(Into::into), ..Extras::default() };
        (extras != Extras::default()).then(|| Box::new(extras))
    });
    (any::<i32>(), any::<u64>(), times(), any::<u32>(), any::<u32>(), states, extras).prop_map(
        |(priority, since, expires, bytes, count, state, extras)| Message {
            seq: Seq(0),
            priority: Priority(priority),
            original: Original::Missing,
            since: Time(since),
            expires,
            bytes,
            count,
            place: Place::default(),
            state,
            extras,
        },
    )
}

/// Messages whose sequences ascend by a step each, with contents of all lengths around that of a block.
fn backlogs() -> impl Strategy<Value = Vec<Pair>> {
    let lens = prop_oneof![5 => 0..300_usize, 2 => 0..40_000_usize, 1 => 65_000..70_000_usize];
    let one = (messages(), 1..1000_u64, lens, any::<u8>());
    prop::collection::vec(one, 1..60).prop_map(|all| {
        let mut seq = 0;
        all.into_iter()
            .map(|(mut message, step, len, fill)| {
                seq += step;
                message.seq = Seq(seq);
                (message, vec![fill; len])
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_comes_back(pairs in backlogs(), step in 1..100_usize, probe in 0..60_000_u64) {
        let disk = MemoryDisk::new(1);
        let segments = segments(&disk);
        let info = write(&segments, &pairs).expect("a segment");
        disk.power_cut();
        let segment = segments.get(info.number).expect("no damage").expect("it is there");
        prop_assert_eq!(segment.info(), &info);
        prop_assert_eq!(&read_all(&segment, step).expect("no damage"), &pairs);

        prop_assert_eq!((info.count, info.queue), (pairs.len() as u64, QUEUE));
        prop_assert_eq!(info.bytes, pairs.iter().map(|(_, content)| content.len() as u64).sum::<u64>());
        prop_assert_eq!(Some(info.expires), pairs.iter().map(|(message, _)| message.expires).min());
        prop_assert_eq!(info.file_len, disk.used());

        let seqs: Vec<Seq> = pairs.iter().map(|(message, _)| message.seq).collect();
        prop_assert_eq!((info.first, info.last), (seqs[0], *seqs.last().expect("one")));
        prop_assert_eq!(&segment.sequences(0..u64::MAX).expect("no damage"), &seqs);
        let before = seqs.partition_point(|seq| seq.0 < probe) as u64;
        prop_assert_eq!(segment.before(Seq(probe)).expect("no damage"), before);
        for (ordinal, seq) in (0..).zip(&seqs) {
            prop_assert_eq!(segment.find(*seq).expect("no damage"), Some(ordinal));
            prop_assert_eq!(segment.find(Seq(seq.0 + 1)).expect("no damage").is_some(), seqs.contains(&Seq(seq.0 + 1)));
        }
        prop_assert_eq!(info.ids, pairs.iter().filter(|(message, _)| message.id().is_some()).count() as u64);
        for id in pairs.iter().filter_map(|(message, _)| message.id()).chain(["absent"]) {
            let has = |pair: &Pair| pair.0.id() == Some(id);
            let expected: Vec<u64> = (0..).zip(&pairs).filter(|(_, pair)| has(pair)).map(|(at, _)| at).collect();
            prop_assert_eq!(segment.find_id(id).expect("no damage"), expected);
        }
        for block in segment.blocks() {
            let messages = &pairs[block.ordinals.start as usize..block.ordinals.end as usize];
            prop_assert_eq!(Some(block.expires), messages.iter().map(|(message, _)| message.expires).min());
            prop_assert!(block.file_range.end - block.file_range.start <= 32 + (64 << 10) || messages.len() == 1);
        }
    }
}

/// Messages that each have an id.
fn named(count: u64) -> Vec<Pair> {
    (0..count).map(|n| rich_pair(n, b"")).collect()
}

fn numbered(count: u64, len: usize) -> Vec<Pair> {
    (0..count).map(|n| pair(10 + 3 * n, &vec![n as u8; len])).collect()
}

#[test]
fn one_message_is_a_segment() {
    let disk = MemoryDisk::new(1);
    let info = write(&segments(&disk), &[rich_pair(9, b"")]).expect("a segment");
    assert_eq!((info.number, info.count, info.bytes), (1, 1, 0));
    assert_eq!((info.first, info.last, info.expires), (Seq(9), Seq(9), Time(1_800_000_000_000 - 9)));
    let segment = Segment::open(&disk, 1, STORE_ID).expect("it is there");
    assert_eq!(read_all(&segment, 1).expect("no damage"), [rich_pair(9, b"")]);
    assert_eq!(segment.content(1).expect("no damage"), None);
    assert!(segment.read(5, 9).expect("no damage").is_empty());
    segment.read_ahead(0).expect("there is nothing behind it");
    segment.read_ahead(99).expect("nor there");
}

#[test]
fn a_hundred_thousand_messages_are_read_in_order_with_one_read_for_each_block() {
    let disk = MemoryDisk::new(1);
    let segments = segments(&disk);
    let pairs = numbered(100_000, 100);
    let before = disk.counts();
    let info = write(&segments, &pairs).expect("a segment");
    let (writes, syncs) = (disk.counts().writes - before.writes, disk.counts().syncs - before.syncs);
    assert!(writes <= info.file_len / (256 << 10) + 1, "{writes} writes of {} bytes", info.file_len);
    assert!(syncs <= info.file_len / (512 << 10) + 1, "{syncs} syncs of {} bytes", info.file_len);
    let segment = segments.get(1).expect("no damage").expect("it is there");
    let before = disk.counts().reads;
    for (from, expected) in (0..).step_by(250).zip(pairs.chunks(250)) {
        let found = segment.read(from, 250).expect("no damage");
        assert!(found.iter().map(|one| &one.message).eq(expected.iter().map(|(message, _)| message)));
        for (one, (_, content)) in found.iter().zip(expected) {
            let block = segment.block(one.ordinal).expect("no damage").expect("it is there");
            assert_eq!(block.content(one.ordinal), content);
        }
        segment.read_ahead(from + 249).expect("no damage");
    }
    assert_eq!(disk.counts().reads - before, segment.blocks().count() as u64);
}

#[test]
fn between_two_blocks_the_first_is_not_read_again() {
    let disk = MemoryDisk::new(1);
    let segments = segments(&disk);
    write(&segments, &numbered(3000, 100)).expect("a segment");
    let segment = segments.get(1).expect("no damage").expect("it is there");
    let starts: Vec<u64> = segment.blocks().map(|block| block.ordinals.start).collect();
    for starts in starts.windows(4) {
        for start in starts {
            segment.block(*start).expect("no damage");
        }
        let before = disk.counts().reads;
        let between = Seq(10 + 3 * starts[1] - 1);
        assert_eq!(segment.block_start_of(between), None);
        assert_eq!(segment.before(between).expect("no damage"), starts[1]);
        assert_eq!(segment.find(between).expect("no damage"), None);
        assert_eq!(disk.counts().reads, before);
    }
}

#[test]
fn reading_ahead_leaves_nothing_to_read() {
    let disk = MemoryDisk::new(1);
    let segments = segments(&disk);
    write(&segments, &numbered(3000, 100)).expect("a segment");
    let segment = segments.get(1).expect("no damage").expect("it is there");
    for block in segment.blocks() {
        segment.read_ahead(block.ordinals.start).expect("no damage");
        let before = disk.counts().reads;
        segment.read_ahead(block.ordinals.start).expect("it is here");
        let next = segment.block(block.ordinals.end).expect("no damage");
        assert_eq!(
            next.map(|next| next.ordinals().start),
            Some(block.ordinals.end).filter(|end| *end < 3000)
        );
        assert_eq!(disk.counts().reads, before);
    }
    segment.forget_blocks();
    let before = disk.counts().reads;
    segment.block(0).expect("no damage");
    assert_eq!(disk.counts().reads, before + 1);
}

/// How many of four blocks with messages of this length stay when the first three are read, then the first again, and then the last.
fn kept(content_len: usize) -> Vec<u64> {
    let disk = MemoryDisk::new(1);
    let segments = segments(&disk);
    let pairs: Vec<_> = (1..=4).map(|seq| pair(seq, &vec![7; content_len])).collect();
    write(&segments, &pairs).expect("a segment");
    let segment = segments.get(1).expect("no damage").expect("it is there");
    for ordinal in [0, 1, 2, 0, 3] {
        segment.block(ordinal).expect("no damage");
    }
    (0..4).filter(|ordinal| segment.has_read(*ordinal)).collect()
}

#[test]
fn of_small_blocks_the_three_used_last_stay_and_of_large_ones_two() {
    assert_eq!(kept(40 << 10), [0, 2, 3]);
    assert_eq!(kept(400 << 10), [0, 3]);
    assert!(kept(2 << 20).is_empty());
}

#[test]
fn an_id_is_found_with_one_read_and_segments_without_ids_read_nothing() {
    let disk = MemoryDisk::new(1);
    drop(open(&disk));
    let segments = segments(&disk);
    for pairs in [named(5000), numbered(5000, 9)] {
        let number = write(&segments, &pairs).expect("a segment").number;
        let segment = segments.get(number).expect("no damage").expect("it is there");
        let before = disk.counts().reads;
        for n in (0..5000).step_by(7) {
            let found = segment.find_id(&format!("order-{n}")).expect("no damage");
            assert_eq!(found, [n].repeat(usize::from(number == 1)));
            assert!(segment.find_id(&format!("absent-{n}")).expect("no damage").is_empty());
        }
        // An absent hash may be below all others, and one that begins a page may be in the page before it, too.
        let reads = disk.counts().reads - before;
        if number == 1 {
            assert!((1400..=1445).contains(&reads), "{reads}");
        } else {
            assert_eq!(reads, 0);
        }
    }
    assert!(check(&disk).expect("a store").is_clean());
}

#[test]
fn a_large_message_has_a_block_of_its_own_and_is_not_kept_in_memory() {
    let disk = MemoryDisk::new(1);
    let segments = segments(&disk);
    let large = vec![0xab; 16 << 20];
    let pairs = [pair(1, b"before"), pair(2, &large), pair(3, b"after")];
    write(&segments, &pairs).expect("a segment");
    let segment = segments.get(1).expect("no damage").expect("it is there");
    assert_eq!(segment.blocks().map(|block| block.ordinals).collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
    assert!(read_all(&segment, 3).expect("no damage") == pairs);
    let before = disk.counts().reads;
    assert_eq!(segment.content(1).expect("no damage").map(|content| content.len()), Some(16 << 20));
    assert_eq!(segment.content(2).expect("no damage").as_deref(), Some(&b"after"[..]));
    assert_eq!(disk.counts().reads, before + 1, "the large one is read again, the small one is not");
}

#[test]
fn a_number_is_never_used_twice() {
    let disk = MemoryDisk::new(1);
    let set = segments(&disk);
    assert_eq!(write(&set, &numbered(3, 9)).expect("a segment").number, 1);
    set.writer(QUEUE).expect("a writer").abandon().expect("removed");
    assert_eq!(write(&set, &numbered(4, 9)).expect("a segment").number, 3);
    set.remove(3).expect("removed");
    set.remove(3).expect("it is gone already");
    assert_eq!((set.numbers().expect("a list"), set.next_number()), (vec![1], 4));
    assert!(set.get(3).expect("no damage").is_none());
    let again = segments(&disk);
    again.keep_free(8);
    again.keep_free(2);
    assert_eq!(write(&again, &numbered(1, 9)).expect("a segment").number, 9);
}

#[test]
fn fewer_segments_are_open_where_their_blocks_are_large() {
    const LARGE: usize = 100_000;
    let disk = MemoryDisk::new(1);
    let set =
        Segments::open(disk.clone(), STORE_ID, 1, 1_000, 8 * LARGE).expect("the directory can be listed");
    let mut pairs = numbered(2, 0);
    for (_, content) in &mut pairs {
        content.resize(LARGE, 7);
    }
    for number in 1..=20 {
        write(&set, &pairs).expect("a segment");
        let segment = set.get(number).expect("no damage").expect("it is there");
        assert_eq!(read_all(&segment, 1).expect("it is read"), pairs);
    }
    // Three open segments had two blocks each when the last one was opened, which has two since then.
    assert_eq!(set.open_count(), 4);
}

#[test]
fn few_segments_are_open_at_once_and_those_in_use_stay() {
    let disk = MemoryDisk::new(1);
    let set = segments(&disk);
    for n in 1..=4 {
        write(&set, &numbered(n, 9)).expect("a segment");
    }
    let count = |number| set.get(number).expect("no damage").expect("it is there").info().count;
    let reads = |number| {
        let before = disk.counts().reads;
        count(number);
        disk.counts().reads - before
    };
    assert_eq!([1, 2, 3, 4].map(count), [1, 2, 3, 4]);
    assert_eq!(set.open_count(), 2);
    assert_eq!([3, 4, 1, 4, 3].map(reads), [0, 0, 3, 0, 3]);
    let held = set.get(4).expect("no damage").expect("it is there");
    set.close(4);
    assert_eq!(reads(4), 3);
    assert_eq!(read_all(&held, 9).expect("no damage").len(), 4);
}

#[test]
fn a_segment_can_be_read_by_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let disk = MemoryDisk::new(1);
    let set = segments(&disk);
    write(&set, &numbered(3, 9)).expect("a segment");
    shared(&set);
    shared(&set.get(1).expect("no damage").expect("it is there"));
}

#[test]
#[should_panic(expected = "in the order of their sequences")]
fn sequences_ascend() {
    let _ = write(&segments(&MemoryDisk::new(1)), &[pair(2, b""), pair(2, b"")]);
}

#[test]
fn an_opening_keeps_segments_and_removes_half_made_ones() {
    let dir = TempDir::new("segments");
    let disk = dir.disk();
    drop(open(&disk));
    let set = segments(&disk);
    write(&set, &numbered(2000, 50)).expect("a segment");
    let mut writer = set.writer(QUEUE).expect("a writer");
    writer.push(&pair(1, b"").0, b"").expect("pushed");
    drop(writer);

    let report = check(&disk).expect("a store");
    assert!(report.is_clean());
    assert_eq!((report.segments, report.segment_messages, report.segment_bytes), (1, 2000, 100_000));
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert_eq!(report.notes[0].file, "segment-new-000000000002");

    assert_eq!(open(&disk).report.put_aside, 1);
    let mut names = disk.list().expect("a list");
    names.sort();
    assert_eq!(names, ["LOCK".to_owned(), common::journal(1), name(1)]);
    let segment = Segment::open(&disk, 1, STORE_ID).expect("it is there");
    assert!(read_all(&segment, 999).expect("no damage") == numbered(2000, 50));
    assert!(check(&disk).expect("a store").notes.is_empty());
}

#[test]
fn a_full_disk_leaves_nothing_and_another_writer_may_try_later() {
    let disk = MemoryDisk::new(1);
    let set = segments(&disk);
    for room in [0, 100, 300 << 10, 1 << 20] {
        disk.set_capacity(Some(room));
        let outcome = write(&set, &numbered(20_000, 100));
        assert!(matches!(outcome, Err(StoreError::Full)), "{room}: {outcome:?}");
        assert!(disk.names().is_empty(), "{room}");
    }
    disk.set_capacity(None);
    write(&set, &numbered(20_000, 100)).expect("room again");
}

#[test]
fn a_failed_writer_stays_failed() {
    let disk = MemoryDisk::new(1);
    let set = segments(&disk);
    for (capacity, is_full) in [(Some(1000), true), (None, false)] {
        disk.set_capacity(capacity);
        let mut writer = set.writer(QUEUE).expect("a writer");
        if !is_full {
            disk.set_hook(|operation| match operation.kind {
                overtake_store::OperationKind::Write => {
                    overtake_store::Fault::Error(std::io::ErrorKind::Other)
                }
                _ => overtake_store::Fault::None,
            });
        }
        let first = (1..).find_map(|seq| writer.push(&pair(seq, b"").0, &[0; 60_000]).err());
        let again = [writer.push(&pair(999, b"").0, b"").err(), writer.finish().err()];
        if is_full {
            assert!(matches!(first, Some(StoreError::Full)));
            assert!(again.iter().all(|error| matches!(error, Some(StoreError::Full))));
        } else {
            assert!(matches!(first, Some(StoreError::Io { op: "write to", .. })), "{first:?}");
            assert!(again.iter().all(|error| matches!(error, Some(StoreError::Poisoned { .. }))));
        }
    }
}
