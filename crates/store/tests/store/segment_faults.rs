//! A segment being written while things go wrong, at each operation in turn: afterwards it is not there, or it is whole.

use std::io;

use overtake_store::{Fault, MemoryDisk, Segment, StoreError, check};

use crate::common::spilled::{Pair, STORE_ID, name, pair, read_all, segments, write};
use crate::common::{append, commit, journal, open, shown};

/// Enough for several writes and a sync between them.
fn messages() -> Vec<Pair> {
    (1..=90).map(|n| pair(n, &vec![n as u8; 60_000])).collect()
}

/// Writes a segment beside a journal; the operation of number `at` fails so. Says whether it was reached.
fn run(seed: u64, at: u64, fault: Fault, power_cut: bool) -> bool {
    let pairs = messages();
    let disk = MemoryDisk::new(seed);
    let mut opened = open(&disk);
    let record = append(&mut opened, b"kept");
    commit(&mut opened);
    let set = segments(&disk);
    let start = disk.counts().operations();
    disk.set_hook(move |operation| if operation.index == start + at { fault } else { Fault::None });
    let outcome = write(&set, &pairs);
    let reached = disk.counts().operations() > start + at;
    disk.clear_hook();

    match (&outcome, fault) {
        (Ok(_), _) => {
            assert!(matches!(Segment::open(&disk, 1, STORE_ID), Ok(segment) if segment.info().count == 90));
        }
        (Err(StoreError::Full), Fault::Error(io::ErrorKind::StorageFull)) => {
            assert_eq!(disk.names(), [journal(1)], "a full disk leaves nothing");
            write(&set, &pairs).expect("a full disk is no reason to stop");
            set.remove(2).expect("removed");
        }
        // Once it has its name, whether it will keep it is unknown, whatever the disk says.
        (Err(StoreError::Io { op: "sync the directory of", .. }), _) => {}
        (Err(StoreError::Io { .. }), fault) => {
            assert_ne!(fault, Fault::Error(io::ErrorKind::StorageFull));
        }
        (Err(error), _) => panic!("the cause comes first, not {error}"),
    }

    if power_cut {
        disk.power_cut()
    } else {
        disk.kill()
    }
    let mut opened = open(&disk);
    assert_eq!(shown(&mut opened), [record]);
    assert!(disk.names().iter().all(|name| !name.contains("new")), "{:?}", disk.names());
    assert!(check(&disk).expect("a store").is_clean());
    if disk.names().contains(&name(1)) {
        let segment = Segment::open(&disk, 1, STORE_ID).expect("it is whole");
        assert!(read_all(&segment, 100).expect("it is whole") == pairs);
    } else {
        assert!(outcome.is_err(), "a finished segment is durable");
    }
    reached
}

#[test]
fn a_segment_is_not_there_or_whole() {
    let faults = [
        Fault::PowerCut,
        Fault::Kill,
        Fault::FailSync,
        Fault::Error(io::ErrorKind::Other),
        Fault::Error(io::ErrorKind::StorageFull),
    ];
    for fault in faults {
        for power_cut in [true, false] {
            let mut at = 0;
            while (0..3).all(|seed| run(seed, at, fault, power_cut)) {
                at += 1;
            }
            assert!(at > 20, "{fault:?} struck {at} operations");
        }
    }
}

/// A number is not given again in a later life while its half-made file may come back.
#[test]
fn a_half_made_segment_that_comes_back_is_removed_again() {
    for seed in 0..40 {
        let disk = MemoryDisk::new(seed);
        drop(open(&disk));
        disk.set_hook(|operation| match operation.kind {
            overtake_store::OperationKind::Rename => Fault::PowerCut,
            _ => Fault::None,
        });
        write(&segments(&disk), &messages()).expect_err("the power is gone");
        disk.clear_hook();
        for _ in 0..3 {
            drop(open(&disk));
            assert!(disk.names().iter().all(|name| !name.starts_with("segment-new-")));
            let set = segments(&disk);
            let info = write(&set, &messages()).expect("a segment");
            set.remove(info.number).expect("removed");
            disk.power_cut();
        }
        assert!(check(&disk).expect("a store").is_clean());
    }
}
