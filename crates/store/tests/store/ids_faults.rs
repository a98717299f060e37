//! The index of ids while things go wrong, at each operation in turn, and while files of it are damaged: it never misleads, and is
//! made anew.

use std::io;

use overtake_lane::QueueId;
use overtake_store::{Fault, MemoryDisk, MergeProgress, Sight, StoreError, check};

use crate::common::named::{FILTER_BYTES, Named, id_files, ids};
use crate::common::spilled::name;
use crate::common::{commit, open};

const QUEUE: QueueId = QueueId(7);

/// Twenty segments beside a journal, half of them merged.
fn begun(seed: u64) -> Named<MemoryDisk> {
    let disk = MemoryDisk::new(seed);
    commit(&mut open(&disk));
    disk.kill();
    let mut named = Named::open(&disk, FILTER_BYTES);
    for n in 0..20 {
        named.write(QUEUE, &ids(n * 30, 30)).expect("a segment");
        if n == 9 {
            named.merge_all();
        }
    }
    named.remove(4);
    named
}

/// Merges; the operation of number `at` fails so. Says whether it was reached.
fn run(seed: u64, at: u64, fault: Fault, power_cut: bool) -> bool {
    let mut named = begun(seed);
    let start = named.disk.counts().operations();
    named.disk.set_hook(move |operation| if operation.index == start + at { fault } else { Fault::None });
    let outcome = loop {
        match named.index.merge_some() {
            Ok(MergeProgress::More) => {}
            outcome => break outcome,
        }
    };
    let reached = named.disk.counts().operations() > start + at;
    named.disk.clear_hook();
    match (outcome, fault) {
        (Ok(_), _) => assert!(!reached),
        (Err(StoreError::Full), Fault::Error(io::ErrorKind::StorageFull)) => {
            assert!(named.disk.names().iter().all(|name| !name.contains("new")), "nothing half-made");
            named.check();
            named.merge_all();
            named.check();
        }
        (Err(StoreError::Io { .. }), _) => {}
        (Err(error), _) => panic!("{error}"),
    }
    if power_cut {
        named.disk.power_cut();
    } else {
        named.disk.kill();
    }
    // Half-made files go with or without a journal being opened.
    if at.is_multiple_of(2) {
        drop(open(&named.disk));
    }
    named.reopen(FILTER_BYTES);
    assert!(named.disk.names().iter().all(|name| !name.contains("new")), "{:?}", named.disk.names());
    named.check();
    named.merge_all();
    named.check();
    let report = check(&named.disk).expect("a store");
    assert!(report.is_clean() && report.notes.is_empty(), "{report:?}");
    reached
}

#[test]
fn whatever_fails_while_merging_every_id_is_found() {
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
            while (0..2).all(|seed| run(seed, at, fault, power_cut)) {
                at += 1;
            }
            assert!(at > 20, "{fault:?} struck {at} operations");
        }
    }
}

#[test]
fn a_full_disk_stops_merging_and_nothing_else() {
    let named = begun(1);
    let used = named.disk.used();
    for more in [0, 100, 5000] {
        named.disk.set_capacity(Some(used + more));
        let full = (0..9).find_map(|_| named.index.merge_some().err());
        assert!(matches!(full, Some(StoreError::Full)), "{more}: {full:?}");
        assert_eq!(named.disk.used(), used);
        named.check();
    }
    named.disk.set_capacity(None);
    named.merge_all();
    named.check();
}

/// A store with one file of ids that covers all.
fn merged() -> (Named<MemoryDisk>, String) {
    let mut named = begun(1);
    for n in 20..40 {
        named.write(QUEUE, &ids(n * 30, 30)).expect("a segment");
    }
    named.merge_all();
    let names = id_files(&named.disk);
    assert_eq!(named.index.counts(), (1, 0));
    (named, names[0].clone())
}

#[test]
fn a_damaged_file_is_found_and_made_anew_and_never_misleads() {
    let (mut named, name) = merged();
    let bytes = named.disk.read(&name).expect("its file");
    let header = [0, 20, 63, 100, 2050, 4095];
    let pages = (4096..bytes.len()).step_by(1409);
    for at in header.into_iter().chain(pages).chain((bytes.len() - 80..bytes.len()).step_by(7)) {
        named.disk.put(&name, bytes.clone());
        named.reopen(0);
        assert!(id_files(&named.disk).contains(&name));
        named.disk.flip(&name, at as u64, 0x40);
        // In an open file, then in one that is opened.
        named.check();
        let report = check(&named.disk).expect("a store");
        assert!(report.is_clean(), "it costs nothing");
        let harmless = at < 4096;
        assert_eq!(report.notes.is_empty(), harmless, "{at}: {report:?}");
        named.reopen(0);
        named.check();
        named.merge_all();
        named.check();
        assert!(check(&named.disk).expect("a store").notes.is_empty());
        let again = id_files(&named.disk);
        assert_eq!(again == [name.clone()], harmless, "{at}: {again:?}");
        for other in again {
            overtake_store::Disk::remove(&named.disk, &other).expect("it is there");
        }
    }
}

#[test]
fn a_file_that_was_cut_or_is_of_another_number_is_made_anew() {
    let (mut named, name) = merged();
    let bytes = named.disk.read(&name).expect("its file");
    let other = "ids-000000000099";
    for (put, len) in
        [(&*name, 0), (&name, 4095), (&name, 5000), (&name, bytes.len() - 1), (other, bytes.len())]
    {
        id_files(&named.disk)
            .iter()
            .for_each(|name| overtake_store::Disk::remove(&named.disk, name).expect("it is there"));
        named.disk.put(put, bytes[..len].to_vec());
        assert_eq!(check(&named.disk).expect("a store").notes.len(), 1);
        named.reopen(FILTER_BYTES);
        named.check();
        named.merge_all();
        named.check();
        assert!(check(&named.disk).expect("a store").notes.is_empty());
    }
}

#[test]
fn a_file_of_another_store_or_a_newer_format_is_refused() {
    let (named, name) = merged();
    let bytes = named.disk.read(&name).expect("its file");
    for (at, what) in [(8, Sight::HeaderNewer), (16, Sight::HeaderOtherStore)] {
        let mut changed = bytes.clone();
        for copy in [0, 2048] {
            changed[copy + at] = 9;
            let crc = crc32c::crc32c(&changed[copy..copy + 60]);
            changed[copy + 60..copy + 64].copy_from_slice(&crc.to_le_bytes());
        }
        named.disk.put(&name, changed);
        let refused = overtake_store::IdIndex::open(named.segments.clone(), 0).err();
        assert!(
            matches!(refused, Some(StoreError::Newer { .. } | StoreError::OtherStore { .. })),
            "{refused:?}"
        );
        assert_eq!(check(&named.disk).expect("a store").notes[0].what, what);
    }
}

#[test]
fn a_damaged_table_of_ids_is_made_anew_from_the_messages() {
    let mut named = Named::open(&MemoryDisk::new(1), 0);
    for n in 0..20 {
        named.write(QUEUE, &ids(n * 30, 30)).expect("a segment");
    }
    let len = named.disk.read(&name(5)).expect("its file").len();
    // The table is before the index of 40 bytes and the footer of 72.
    named.disk.flip(&name(5), len as u64 - 40 - 72 - 10, 1);
    for _ in 0..20 {
        named.index.merge_some().expect("what the table said is read from the messages");
    }
    named.check();
    named.remove(5);
    named.check();
}
