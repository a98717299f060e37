//! Snapshots: what is copied while a store is written to, and what becomes of a copy that is interrupted or changed.

use std::io;

use overtake_store::{
    Disk, DiskFile, Fault, Intake, Journal, MANIFEST_NAME, Manifest, MemoryDisk, Moment, Opened, RealDisk,
    SnapshotError, StoreError, check, copy, restore,
};

use crate::common::spilled::{pair, segments, write};
use crate::common::{Record, append, commit, open, options, shown};

/// A store with several journal files, of which the first are needless, and a segment; and what its records are.
fn store(disk: &MemoryDisk) -> (Opened<MemoryDisk>, Vec<Record>) {
    let mut opened = open(disk);
    let mut records: Vec<Record> = Vec::new();
    for n in 0..40 {
        records.push(append(&mut opened, &vec![n; 7_000]));
        commit(&mut opened);
    }
    opened.writer.retire(records[20].0);
    commit(&mut opened);
    opened.committer.retire().expect("retired");
    records.retain(|(lsn, _)| *lsn >= opened.writer.oldest_lsn());
    write(&segments(disk), &[pair(1, b"one"), pair(2, b"two")]).expect("written");
    (opened, records)
}

/// Copies what a moment shows of a disk into an empty one.
fn copied<D: Disk>(moment: Moment, from: &D) -> MemoryDisk {
    let to = MemoryDisk::new(2);
    let mut intake = Intake::begin(to.clone()).expect("it is empty");
    let manifest = copy(moment.files(from).expect("listed"), from, &mut intake).expect("copied");
    assert_eq!((intake.bytes(), manifest.lsn), (manifest.bytes(), moment.lsn().0));
    intake.finish(&manifest, true).expect("it is whole");
    to
}

/// Restores a snapshot into an empty disk.
fn restored(snapshot: &MemoryDisk, to: &MemoryDisk) -> Result<Manifest, SnapshotError> {
    let mut intake = Intake::begin(to.clone())?;
    let manifest = restore(snapshot, &mut intake)?;
    intake.finish(&manifest, false)?;
    Ok(manifest)
}

#[track_caller]
fn check_shows(disk: &MemoryDisk, records: &[Record]) {
    let report = check(disk).expect("a store");
    assert!(report.is_clean() && report.notes.is_empty(), "{report:#?}");
    assert_eq!((report.segments, report.idle_files), (1, 0));
    assert_eq!(shown(&mut open(disk)), records);
}

#[test]
fn what_is_committed_after_the_moment_is_not_in_the_copy() {
    let disk = MemoryDisk::new(1);
    let (mut opened, mut records) = store(&disk);
    let moment = opened.committer.moment();
    let before = records.clone();
    for n in 0..30 {
        records.push(append(&mut opened, &[n; 3_000]));
        commit(&mut opened);
        check_shows(&copied(moment, &disk), &before);
    }
    check_shows(&copied(opened.committer.moment(), &disk), &records);
}

#[test]
fn a_store_at_rest_has_the_moment_it_was_left_at() {
    let disk = MemoryDisk::new(1);
    let (opened, records) = store(&disk);
    let moment = opened.committer.moment();
    drop(opened);
    assert_eq!(Moment::at_rest(&disk).expect("a store"), moment);
    check_shows(&copied(moment, &disk), &records);
    let nothing = Moment::at_rest(&MemoryDisk::new(3));
    assert!(matches!(nothing, Err(StoreError::NotAStore)));
}

#[test]
fn a_file_that_is_exactly_full_is_copied_to_its_end() {
    let disk = MemoryDisk::new(1);
    let (mut opened, mut records) = store(&disk);
    let file = |opened: &Opened<MemoryDisk>| opened.writer.files();
    let (files, mut moments) = (file(&opened), Vec::new());
    // Past the seal, in steps that end anywhere in the file.
    while file(&opened) < files + 2 {
        records.push(append(&mut opened, &[7; 1_101]));
        commit(&mut opened);
        moments.push((opened.committer.moment(), records.clone()));
    }
    for (moment, records) in moments {
        check_shows(&copied(moment, &disk), &records);
    }
}

#[test]
fn a_restored_snapshot_is_the_store_without_its_manifest() {
    let disk = MemoryDisk::new(1);
    let (opened, records) = store(&disk);
    let snapshot = copied(opened.committer.moment(), &disk);
    let to = MemoryDisk::new(3);
    let manifest = restored(&snapshot, &to).expect("restored");
    assert_eq!(to.names().len(), manifest.files.len());
    check_shows(&to, &records);
    // The snapshot itself can be opened, too. Then it is none any more.
    check_shows(&snapshot, &records);
    let error = restored(&snapshot, &MemoryDisk::new(4));
    assert!(matches!(error, Err(SnapshotError::Differs { .. })), "{error:?}");
}

/// Why a snapshot is not restored that this was done to; nothing may be left of it.
fn refusal(change: impl FnOnce(&MemoryDisk)) -> String {
    let disk = MemoryDisk::new(1);
    let (opened, _) = store(&disk);
    let snapshot = copied(opened.committer.moment(), &disk);
    change(&snapshot);
    let to = MemoryDisk::new(3);
    let error = restored(&snapshot, &to).expect_err("refused");
    assert!(to.names().is_empty(), "{:?} is left", to.names());
    error.to_string()
}

#[test]
fn a_snapshot_that_was_changed_is_refused() {
    let name = |disk: &MemoryDisk| disk.names()[1].clone();
    let flipped = refusal(|disk| assert!(disk.flip(&name(disk), 9_000, 1)));
    assert!(flipped.ends_with("is not as snapshot.json says: it has another checksum"), "{flipped}");
    let gone = refusal(|disk| disk.remove(&name(disk)).expect("removed"));
    assert!(gone.ends_with("is not as snapshot.json says: it is missing"), "{gone}");
    let short = refusal(|disk| disk.put(&name(disk), vec![0; 5]));
    assert!(short.ends_with("is not as snapshot.json says: it has another length"), "{short}");
    let unfinished = refusal(|disk| disk.remove(MANIFEST_NAME).expect("removed"));
    assert_eq!(unfinished, "the snapshot is not whole: snapshot.json is missing");
    let torn = refusal(|disk| assert!(disk.flip(MANIFEST_NAME, 0, 1)));
    assert!(torn.starts_with("snapshot.json makes no sense: "), "{torn}");
}

#[test]
fn a_directory_with_something_in_it_takes_no_snapshot() {
    let disk = MemoryDisk::new(1);
    disk.put("anything", Vec::new());
    let refused = Intake::begin(disk.clone()).err().expect("refused").to_string();
    assert_eq!(refused, "the directory is not empty: it has anything");
    let (_opened, _) = store(&MemoryDisk::new(1));
    let disk = MemoryDisk::new(1);
    let _opened = open(&disk);
    assert!(matches!(Intake::begin(disk), Err(SnapshotError::Store(StoreError::Locked))));
}

#[test]
fn a_name_that_is_not_of_a_store_is_not_written() {
    let disk = MemoryDisk::new(1);
    let mut intake = Intake::begin(disk.clone()).expect("it is empty");
    for name in ["../escape", "LOCK", "snapshot.json", "journal-1"] {
        let error = intake.take(name, &mut io::empty()).expect_err(name);
        assert!(matches!(error, SnapshotError::BadName { .. }), "{error}");
    }
    assert!(disk.names().is_empty());
}

/// Restores into a disk whose operation of number `at` fails so. Says whether it was reached.
fn interrupt(snapshot: &MemoryDisk, records: &[Record], seed: u64, at: u64, fault: Fault) -> bool {
    let disk = MemoryDisk::new(seed);
    disk.set_hook(move |operation| if operation.index == at { fault } else { Fault::None });
    let outcome = restored(snapshot, &disk);
    let reached = disk.counts().operations() > at;
    disk.clear_hook();
    if matches!(fault, Fault::Error(_)) && reached && disk.names().iter().any(|name| name.contains(".part")) {
        panic!("{:?} is left", disk.names());
    }
    disk.power_cut();
    let named = disk.names().iter().any(|name| name.starts_with("journal-") && !name.contains('.'));
    match Journal::open(disk.clone(), &options()) {
        Ok(mut opened) => {
            let found = shown(&mut opened);
            assert!(found == records || (!named && found.is_empty()), "a part was taken for the whole");
            assert!(found == records || outcome.is_err(), "what was restored is durable");
        }
        Err(StoreError::Corrupt { .. } | StoreError::JournalMissing { .. }) => {
            assert!(outcome.is_err(), "what was restored is whole");
        }
        Err(error) => panic!("{error}"),
    }
    reached
}

#[test]
fn what_was_interrupted_is_not_taken_for_the_whole() {
    let disk = MemoryDisk::new(1);
    let (opened, records) = store(&disk);
    let snapshot = copied(opened.committer.moment(), &disk);
    let full = Fault::Error(io::ErrorKind::StorageFull);
    for fault in [Fault::PowerCut, Fault::Kill, Fault::FailSync, full] {
        for seed in 0..8 {
            let mut at = 0;
            while interrupt(&snapshot, &records, seed, at, fault) {
                at += 1;
            }
            assert!(at > 15, "only {at} operations");
        }
    }
}

#[test]
fn a_real_directory_is_empty_again_when_a_snapshot_is_refused() {
    let disk = MemoryDisk::new(1);
    let (opened, _) = store(&disk);
    let files = opened.committer.moment().files(&disk).expect("listed");
    let dir = std::env::temp_dir().join(format!("overtake-intake-{}", std::process::id()));
    let real = RealDisk::create(&dir).expect("made");
    let mut intake = Intake::begin(real.clone()).expect("it is empty");
    let mut manifest: Manifest = copy(files, &disk, &mut intake).expect("copied");
    manifest.files[0].crc32c ^= 1;
    assert!(
        real.open_to_read(&format!("{}.part", manifest.files[0].name)).is_ok_and(|file| file.len().is_ok())
    );
    let second = Intake::begin(real.clone()).err().expect("somebody is at it");
    assert!(matches!(second, SnapshotError::Store(StoreError::Locked)), "{second}");
    assert!(matches!(intake.finish(&manifest, true), Err(SnapshotError::Differs { .. })));
    assert_eq!(real.list().expect("listed"), [""; 0]);
    std::fs::remove_dir(dir).expect("it is empty");
}
