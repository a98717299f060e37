//! The index of ids: whatever is written, merged, removed and lost, an id is found where it is and nowhere else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use overtake_lane::QueueId;
use overtake_store::{MemoryDisk, MergeProgress};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::common::named::{FILTER_BYTES, Named, id_files, ids};

const QUEUE: QueueId = QueueId(7);

#[derive(Clone, Debug)]
enum Deed {
    /// Writes segments of messages with ids out of few, or none.
    Write(Vec<(u32, Vec<Option<u8>>)>),
    Remove(Vec<Index>),
    Merge(usize),
    MergeAll,
    Reopen {
        filter_bytes_max: usize,
    },
    /// Flips a byte of a file of ids.
    Damage(Index, Index),
    /// A file of ids is lost.
    Lose(Index),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let segment = (0..2_u32, prop::collection::vec(prop::option::weighted(0.9, 0..40_u8), 1..20));
    let deed = prop_oneof![
        8 => prop::collection::vec(segment, 1..8).prop_map(Deed::Write),
        3 => prop::collection::vec(any::<Index>(), 1..6).prop_map(Deed::Remove),
        5 => (1..4_usize).prop_map(Deed::Merge),
        2 => Just(Deed::MergeAll),
        2 => prop_oneof![Just(0), Just(100), Just(FILTER_BYTES)].prop_map(|filter_bytes_max| Deed::Reopen { filter_bytes_max }),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(file, at)| Deed::Damage(file, at)),
        1 => any::<Index>().prop_map(Deed::Lose),
    ];
    prop::collection::vec(deed, 1..40)
}

fn act(named: &mut Named<MemoryDisk>, deed: &Deed) {
    match deed {
        Deed::Write(segments) => {
            for (queue, texts) in segments {
                let texts: Vec<Option<String>> =
                    texts.iter().map(|text| text.map(|n| format!("id{n}"))).collect();
                named.write(QueueId(*queue), &texts).expect("a segment");
            }
        }
        Deed::Remove(which) => {
            for index in which {
                let wanted: Vec<u64> = named.wanted.iter().copied().collect();
                if !wanted.is_empty() {
                    named.remove(*index.get(&wanted));
                }
            }
        }
        Deed::Merge(bites) => (0..*bites).for_each(|_| {
            named.index.merge_some().expect("no damage");
        }),
        Deed::MergeAll => {
            named.merge_all();
            let (files, loose) = named.index.counts();
            assert!(loose <= 8, "{loose} segments without a file");
            // Entries of a file: at least 9, and twice those of the next smaller one.
            let entries: usize = named.model.values().map(|places| places.len()).sum();
            assert!(9_usize << files <= 4 * entries.max(9), "{files} files of {entries} entries");
        }
        Deed::Reopen { filter_bytes_max } => named.reopen(*filter_bytes_max),
        Deed::Damage(file, at) => {
            let names = id_files(&named.disk);
            if !names.is_empty() {
                let name = file.get(&names);
                let len = named.disk.read(name).expect("it is there").len();
                named.disk.flip(name, at.index(len) as u64, 0x10);
            }
        }
        Deed::Lose(file) => {
            let names = id_files(&named.disk);
            if !names.is_empty() {
                overtake_store::Disk::remove(&named.disk, file.get(&names).as_str()).expect("it is there");
                named.reopen(FILTER_BYTES);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_id_is_found_where_it_is_and_nowhere_else(deeds in deeds()) {
        let mut named = Named::open(&MemoryDisk::new(1), FILTER_BYTES);
        for deed in &deeds {
            act(&mut named, deed);
            named.check();
        }
        named.merge_all();
        named.reopen(FILTER_BYTES);
        named.check();
    }
}

/// A hundred segments of a thousand ids each, merged.
fn many(filter_bytes_max: usize) -> Named<MemoryDisk> {
    let mut named = Named::open(&MemoryDisk::new(1), filter_bytes_max);
    for n in 0..100 {
        named.write(QUEUE, &ids(n * 1000, 1000)).expect("a segment");
        named.index.merge_some().expect("no damage");
    }
    named.merge_all();
    named
}

#[test]
fn few_files_hold_many_segments() {
    let mut named = many(FILTER_BYTES);
    let (files, loose) = named.index.counts();
    assert!(files <= 5 && loose <= 8, "{files} files, {loose} segments without one");
    named.check();
    // A bite that finds nothing to do asks nothing of the disk.
    let before = named.disk.counts();
    assert_eq!(named.index.merge_some().expect("nothing to do"), MergeProgress::Done);
    assert_eq!(named.disk.counts(), before);
    // When all is gone so are the files.
    for number in named.wanted.clone() {
        named.remove(number);
    }
    named.merge_all();
    assert!(id_files(&named.disk).is_empty());
    assert_eq!(named.index.counts(), (0, 0));
    assert!(named.index.find(QUEUE, "order-1").expect("nothing").is_empty());
}

#[test]
fn an_id_costs_a_read_and_a_new_one_none_where_there_is_room_for_filters() {
    for (filter_bytes_max, most) in [(FILTER_BYTES, 1000), (40_000, 16_000), (0, 50_000)] {
        let named = many(filter_bytes_max);
        let reads = |prefix: &str, found: usize| {
            let before = named.disk.counts().reads;
            for n in (0..100_000).step_by(10) {
                let ids = named.index.find(QUEUE, &format!("{prefix}-{n}")).expect("no damage");
                assert_eq!(ids.len(), found);
            }
            named.disk.counts().reads - before
        };
        let (absent, present) = (reads("absent", 0), reads("order", 1));
        // Of ten thousand; a segment without a file that was closed meanwhile is opened with three reads more.
        assert!(absent <= most, "{absent} reads for ids that are not there, with {filter_bytes_max} bytes");
        assert!(present <= 10_000 + most + 3000, "{present} reads for ids that are there");
    }
}

#[test]
fn memory_is_a_few_bits_for_each_id_and_filters_have_a_bound() {
    let [all, few, none] = [FILTER_BYTES, 40_000, 0].map(|most| many(most).index.memory());
    // Without filters: 8 bytes for 255 ids, and what is known of each segment.
    assert!(none <= 100_000 * 8 / 255 + 100 * 64 + 8 * 72, "{none} bytes");
    assert!(few <= none + 40_000, "{few} bytes");
    assert!(all <= none + 100_000 * 10 / 8 + 20 * 8, "{all} bytes");
}

#[test]
fn a_segment_that_nobody_wants_any_more_is_left_out_of_the_next_merge() {
    let mut named = many(FILTER_BYTES);
    let used = |named: &Named<MemoryDisk>| -> usize {
        id_files(&named.disk).iter().map(|name| named.disk.read(name).expect("it is there").len()).sum()
    };
    let before = used(&named);
    for number in 1..=80 {
        named.remove(number);
    }
    named.merge_all();
    named.check();
    assert!(used(&named) < before / 2, "{} of {before} bytes", used(&named));
    // Also where it went while nobody looked.
    for number in 81..=95 {
        named.segments.remove(number).expect("removed");
        named.wanted.remove(&number);
        named.model.values_mut().for_each(|places| places.retain(|(segment, _)| *segment != number));
    }
    named.reopen(FILTER_BYTES);
    named.merge_all();
    named.check();
    assert!(used(&named) < 5 * (4096 + 1000 * 17 + 8192), "{} bytes", used(&named));
}

#[test]
fn a_segment_that_was_removed_before_it_was_merged_is_no_reason_to_stop() {
    let mut named = Named::open(&MemoryDisk::new(1), FILTER_BYTES);
    for n in 0..20 {
        named.write(QUEUE, &ids(n * 10, 10)).expect("a segment");
    }
    named.segments.remove(3).expect("removed");
    named.merge_all();
    assert!(!named.index.covers(3) && named.index.covers(4));
    assert!(named.index.find(QUEUE, "order-25").expect("no damage").is_empty());
    assert_eq!(named.index.find(QUEUE, "order-35").expect("no damage"), [(4, 5)]);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "merging is for another thread than finding")]
fn ids_are_found_and_forgotten_while_another_thread_merges() {
    let mut named = Named::open(&MemoryDisk::new(1), FILTER_BYTES);
    let index = named.index.clone();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let merging = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                index.merge_some().expect("no damage");
            }
        });
        for n in 0..60 {
            named.write(QUEUE, &ids(n * 3000, 3000)).expect("a segment");
            if n % 3 == 2 {
                named.remove(n - 1);
            }
            named.check_some(40);
        }
        is_over.store(true, Ordering::Release);
        merging.join().expect("it merges");
    });
    named.merge_all();
    named.check();
}

/// With more entries than are merged in one bite.
#[test]
fn what_is_forgotten_while_it_is_merged_stays_forgotten() {
    let mut named = Named::open(&MemoryDisk::new(1), FILTER_BYTES);
    for n in 0..9 {
        named.write(QUEUE, &ids(n * 10_000, 10_000)).expect("a segment");
    }
    assert_eq!(named.index.merge_some().expect("no damage"), MergeProgress::More);
    assert!(id_files(&named.disk)[0].contains("new"), "the merge goes on");
    for number in [2, 9] {
        named.remove(number);
    }
    named.check_some(1000);
    named.merge_all();
    assert!(!named.index.covers(2) && named.index.covers(1));
    assert_eq!(named.index.counts(), (1, 0));
    named.check();
}
