//! Damage: found, named with its place, skipped without losing anything else; and nothing is ever invented.

use overtake_store::{Fault, Journal, MemoryDisk, OperationKind, Sight, StoreError, check};

use crate::common::{
    HEADER_LEN, Record, SEGMENT_BYTES, append, commit, edit, journal, open, options, place, refusal, shown,
    skipping, texts,
};

const PAGE_LEN: u64 = 4096;

/// A store of a few files, closed as planned, and what is in it.
fn store(seed: u64) -> (MemoryDisk, Vec<Record>) {
    let disk = MemoryDisk::new(seed);
    let mut rng = seed;
    let mut records = Vec::new();
    let mut opened = open(&disk);
    for n in 0..120u64 {
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut payload = n.to_le_bytes().to_vec();
        payload.resize(8 + (rng >> 33) as usize % 3000, (rng >> 40) as u8);
        records.push(append(&mut opened, &payload));
        if rng >> 62 == 0 {
            commit(&mut opened);
        }
        if n == 60 {
            commit(&mut opened);
            disk.kill();
            opened = open(&disk);
        }
    }
    commit(&mut opened);
    for _ in 0..3 {
        let proof = opened.writer.take_proof().expect("room");
        opened.committer.commit(&proof).expect("a commit");
    }
    disk.kill();
    (disk, records)
}

fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    let copy = MemoryDisk::new(0);
    for name in disk.names() {
        copy.put(&name, disk.read(&name).expect("a file"));
    }
    copy
}

/// The record whose frame has this byte, padding aside.
fn hit(records: &[Record], file: u64, offset: u64) -> Option<usize> {
    records.iter().position(|(lsn, payload)| {
        let (number, at) = place(*lsn);
        number == file && (at..at + 12 + payload.len() as u64).contains(&offset)
    })
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 29)
}

#[test]
fn a_flipped_byte_is_found_at_its_place_and_costs_its_record_only() {
    let (disk, records) = store(5);
    let files = disk.names().iter().filter(|name| name.starts_with("journal-")).count() as u64;
    let mut rng = 11;
    let (mut hits, mut others) = (0, 0);
    for _ in 0..600 {
        let copy = copy_of(&disk);
        let (file, offset) = (1 + splitmix(&mut rng) % files, splitmix(&mut rng) % SEGMENT_BYTES);
        copy.flip(&journal(file), offset, 1 << (splitmix(&mut rng) % 8));
        let mut expected = records.clone();
        let checked = check(&copy).expect("a store");
        if let Some(index) = hit(&records, file, offset) {
            hits += 1;
            let (lsn, _) = expected.remove(index);
            let error = refusal(&copy, &options());
            let found = matches!(&error, StoreError::Corrupt { file: name, at, .. } if (name, *at) == (&journal(file), place(lsn).1));
            assert!(found, "flipped {file}:{offset}, {error}");
            assert_eq!((&checked.damage[0].file, checked.damage[0].at), (&journal(file), place(lsn).1));
        } else {
            others += 1;
            let refused = Journal::open(copy.clone(), &options()).is_err();
            assert_eq!(refused, !checked.is_clean());
            copy.kill();
        }
        let mut opened = Journal::open(copy, &skipping()).expect("skipping");
        assert!(shown(&mut opened) == expected, "flipped {file}:{offset}");
        assert_eq!(opened.report.records, expected.len() as u64);
    }
    assert!(hits > 100 && others > 50, "{hits} {others}");
}

/// A copy of a disk on which a page of a file cannot be read.
fn unreadable(disk: &MemoryDisk, file: u64, page: u64) -> MemoryDisk {
    let (copy, name) = (copy_of(disk), journal(file));
    copy.set_hook(move |operation| {
        let range = operation.offset..operation.offset + operation.len;
        let is_hit = range.start < page + PAGE_LEN && page < range.end;
        match operation.kind {
            OperationKind::Read if operation.name == name && is_hit => Fault::Unreadable,
            _ => Fault::None,
        }
    });
    copy
}

#[test]
fn a_page_that_the_disk_cannot_read_costs_the_records_in_it_only() {
    // In one life: what follows the first commit of another is only known after that was read, or the next.
    let disk = MemoryDisk::new(9);
    let mut opened = open(&disk);
    let mut records = Vec::new();
    for n in 0..100_u8 {
        records.push(append(&mut opened, &[n; 1_500]));
        if n.is_multiple_of(3) {
            commit(&mut opened);
        }
    }
    for _ in 0..3 {
        let proof = opened.writer.take_proof().expect("room");
        opened.committer.commit(&proof).expect("a commit");
    }
    disk.kill();
    let files = disk.names().iter().filter(|name| name.starts_with("journal-")).count() as u64;
    let mut lost_somewhere = 0;
    for file in 1..=files {
        for page in (HEADER_LEN..SEGMENT_BYTES).step_by(PAGE_LEN as usize) {
            let is_whole = |(lsn, payload): &&Record| {
                let (number, at) = place(*lsn);
                number != file || at >= page + PAGE_LEN || at + 12 + payload.len() as u64 <= page
            };
            let expected: Vec<Record> = records.iter().filter(is_whole).cloned().collect();
            let has_records = expected.len() < records.len();
            lost_somewhere += usize::from(has_records);
            if has_records {
                let error = refusal(&unreadable(&disk, file, page), &options());
                assert!(
                    matches!(&error, StoreError::Corrupt { file: name, .. } if *name == journal(file)),
                    "{file}:{page}: {error}"
                );
            }
            let mut opened = Journal::open(unreadable(&disk, file, page), &skipping()).expect("skipping");
            assert!(shown(&mut opened) == expected, "{file}:{page}");
        }
    }
    assert!(lost_somewhere > 20, "{lost_somewhere} pages had records");
}

/// A write that was cut short leaves bytes that can be read: so this is no end of the log.
#[test]
fn a_last_page_that_the_disk_cannot_read_is_not_taken_for_the_end() {
    let disk = MemoryDisk::new(3);
    let mut opened = open(&disk);
    let (lsn, _) = append(&mut opened, b"the last one");
    commit(&mut opened);
    disk.kill();
    let (file, at) = place(lsn);
    let error = refusal(&unreadable(&disk, file, at / PAGE_LEN * PAGE_LEN), &options());
    assert!(matches!(&error, StoreError::Corrupt { what: Sight::Unreadable, .. }), "{error}");
}

#[test]
fn many_flipped_bytes_cost_their_records_only() {
    let (disk, records) = store(6);
    let mut rng = 12;
    for _ in 0..200 {
        let copy = copy_of(&disk);
        let mut is_lost = vec![false; records.len()];
        for _ in 0..12 {
            let index = splitmix(&mut rng) as usize % records.len();
            let (file, at) = place(records[index].0);
            let offset = at + splitmix(&mut rng) % (12 + records[index].1.len() as u64);
            copy.flip(&journal(file), offset, 1 << (splitmix(&mut rng) % 8));
            // Twice the same bit would be no harm; the odds do not matter, the outcome must fit the bytes.
            is_lost[index] = true;
        }
        let expected: Vec<_> =
            records.iter().zip(&is_lost).filter(|(_, lost)| !**lost).map(|(r, _)| r.clone()).collect();
        let mut opened = Journal::open(copy, &skipping()).expect("skipping");
        assert!(shown(&mut opened) == expected);
        assert!(!opened.report.damage.is_empty());
    }
}

#[test]
fn no_cut_zeroed_or_scribbled_store_panics_or_invents() {
    let (disk, records) = store(7);
    let mut rng = 13;
    for round in 0..400 {
        let copy = copy_of(&disk);
        let files = copy.names();
        let name = &files[splitmix(&mut rng) as usize % files.len()];
        let at = splitmix(&mut rng) as usize % SEGMENT_BYTES as usize;
        let len = (splitmix(&mut rng) as usize % 9000).min(SEGMENT_BYTES as usize - at);
        edit(&copy, name, |bytes| match round % 4 {
            0 => bytes.truncate(at),
            1 => bytes[at..at + len].fill(0),
            2 => bytes[at..at + len].iter_mut().for_each(|byte| *byte = splitmix(&mut rng) as u8),
            // Frames that were right elsewhere.
            _ => bytes.copy_within(at..at + len, (at / 2) & !7),
        });
        let checked = check(&copy).expect("a check finds, it does not fail");
        match Journal::open(copy.clone(), &options()) {
            Ok(mut opened) => {
                let kept = shown(&mut opened);
                // Where nothing after the damage is left to prove it, it is the end of the log.
                let end_is_gone = *name == opened.report.tail.file;
                assert!(checked.is_clean() && records.starts_with(&kept) && (kept == records || end_is_gone));
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Corrupt { .. }) && !checked.is_clean(), "{error}")
            }
        }
        copy.kill();
        let mut opened = Journal::open(copy.clone(), &skipping()).expect("skipping");
        let kept = shown(&mut opened);
        let mut rest = records.iter();
        assert!(
            kept.iter().all(|record| rest.any(|written| written == record)),
            "records in order, none invented"
        );
        let (last, _) = append(&mut opened, b"and on");
        commit(&mut opened);
        copy.power_cut();
        let mut again = Journal::open(copy, &skipping()).expect("skipping again");
        let on = shown(&mut again);
        assert!(on.len() == kept.len() + 1 && on[..kept.len()] == kept && on[kept.len()].0 == last);
    }
}

#[test]
fn a_cut_file_is_damage_and_gets_its_length_back() {
    let (disk, records) = store(7);
    let last = place(records[119].0).0;
    edit(&disk, &journal(last), |bytes| bytes.truncate(bytes.len() - 5000));
    let error = refusal(&disk, &options());
    assert!(matches!(&error, StoreError::Corrupt { at: 60_536, what: Sight::FileShort, .. }), "{error}");
    let mut opened = Journal::open(disk.clone(), &skipping()).expect("skipping");
    assert!(shown(&mut opened) == records, "nothing stood there yet");
    assert_eq!(disk.read(&journal(last)).map(|bytes| bytes.len() as u64), Some(SEGMENT_BYTES));
}

#[test]
fn a_missing_file_is_damage_when_it_was_needed() {
    let (disk, records) = store(8);
    let names = disk.names();
    let (gone, rest): (Vec<_>, Vec<_>) = names.iter().partition(|name| **name == journal(2));
    assert_eq!(gone.len(), 1);
    let copy = MemoryDisk::new(0);
    rest.iter().for_each(|name| copy.put(name, disk.read(name).expect("a file")));
    let error = refusal(&copy, &options());
    assert!(
        matches!(&error, StoreError::Corrupt { file, at: 0, what: Sight::FileMissing } if *file == journal(2)),
        "{error}"
    );
    let mut opened = Journal::open(copy, &skipping()).expect("skipping");
    let expected: Vec<_> = records.into_iter().filter(|(lsn, _)| place(*lsn).0 != 2).collect();
    assert!(shown(&mut opened) == expected);
}

#[test]
fn the_oldest_needed_file_is_missed_too() {
    let (disk, _) = store(8);
    let copy = MemoryDisk::new(0);
    for name in disk.names().iter().filter(|name| **name != journal(1)) {
        copy.put(name, disk.read(name).expect("a file"));
    }
    let error = refusal(&copy, &options());
    assert!(
        matches!(&error, StoreError::Corrupt { file, what: Sight::FileMissing, .. } if *file == journal(1)),
        "{error}"
    );
}

/// The newest file says that the oldest is not needed any more, and is removed: it is the one that is missing.
#[test]
fn a_missing_file_is_named_and_not_one_that_it_gave_back() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    let records: Vec<Record> = (0..100).map(|_| append(&mut opened, &[9; 3000])).collect();
    commit(&mut opened);
    let second = records.iter().find(|(lsn, _)| place(*lsn).0 == 2).expect("there are several files").0;
    assert!(opened.writer.retire(second));
    commit(&mut opened);
    assert_eq!(opened.committer.retire().expect("retired"), 1);
    let last = place(opened.writer.tail()).0;
    opened.writer.file_ready(opened.committer.prepare_file().expect("there is room"));
    drop(opened);
    overtake_store::Disk::remove(&disk, &journal(last)).expect("it is there");
    let error = refusal(&disk, &options());
    assert!(
        matches!(&error, StoreError::Corrupt { file, what: Sight::FileMissing, .. } if *file == journal(last)),
        "{error}"
    );
}

#[test]
fn a_header_has_a_second_copy() {
    let (disk, records) = store(9);
    disk.flip(&journal(2), 20, 4);
    let report = check(&disk).expect("a store");
    assert_eq!(
        (report.notes.len(), report.notes[0].what, report.is_clean()),
        (1, Sight::HeaderCopyBad, true)
    );
    assert!(shown(&mut open(&disk)) == records);
    disk.kill();
    disk.flip(&journal(2), 2048 + 20, 4);
    assert!(matches!(refusal(&disk, &options()), StoreError::Corrupt { at: 0, what: Sight::HeaderBad, .. }));
}

#[test]
fn a_store_without_one_readable_header_is_left_alone() {
    let (disk, _) = store(9);
    for name in disk.names().iter().filter(|name| name.starts_with("journal-")) {
        edit(&disk, name, |bytes| bytes[..4096].fill(0));
    }
    assert!(matches!(refusal(&disk, &skipping()), StoreError::Corrupt { .. }));
    assert!(check(&disk).expect("a store").damage.len() > 2);
}

#[test]
fn leftovers_of_interrupted_work_are_put_aside() {
    let (disk, records) = store(10);
    let last = 1 + disk.names().iter().filter(|name| name.starts_with("journal-")).count() as u64;
    disk.put("new-000000000900", vec![0; 100]);
    disk.put("spare-000000000901", vec![1; SEGMENT_BYTES as usize]);
    disk.put("spare-000000000902", vec![1; 77]);
    disk.put(
        &journal(last + 5),
        disk.read(&journal(1)).map(|bytes| renumbered(bytes, last + 5)).expect("a file"),
    );
    disk.put("notes.txt", b"not ours".to_vec());
    let mut opened = open(&disk);
    assert!(shown(&mut opened) == records);
    let names = disk.names();
    assert!(!names.iter().any(|name| name.starts_with("new-") || *name == journal(last + 5)), "{names:?}");
    assert_eq!((opened.committer.spares(), names.contains(&"notes.txt".to_owned())), (1, true));
}

/// The file with another number in its header: a file prepared and never used.
fn renumbered(mut bytes: Vec<u8>, number: u64) -> Vec<u8> {
    for copy in [0, 2048] {
        bytes[copy + 24..copy + 32].copy_from_slice(&number.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[copy..copy + 60]);
        bytes[copy + 60..copy + 64].copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

/// The trap: a power cut tears the first record of a commit and leaves the second one whole. The next life writes a record
/// that ends exactly where the second one begins. Were frames not bound to their life, it would come back.
#[test]
fn a_denied_record_does_not_come_true_when_the_log_grows_up_to_it() {
    let disk = MemoryDisk::new(1);
    let mut first = open(&disk);
    let (torn_at, _) = append(&mut first, &[b'a'; 3940]);
    let (whole_at, _) = append(&mut first, b"denied");
    assert_eq!((place(torn_at), place(whole_at)), ((1, 4240), (1, 8192)));
    commit(&mut first);
    disk.kill();
    edit(&disk, &journal(1), |bytes| bytes[5000] ^= 1);
    let mut second = open(&disk);
    assert!(shown(&mut second).is_empty());
    append(&mut second, &[b'b'; 3796]);
    let batch = second.writer.take_batch().expect("a record");
    assert_eq!(batch.end(), whole_at, "it ends exactly there, and at the end of a page");
    second.committer.commit(&batch).expect("a commit");
    let bytes = disk.read(&journal(1)).expect("the file");
    assert_eq!(&bytes[8200..8206], b"denied", "its bytes still stand there");
    disk.power_cut();
    let mut third = open(&disk);
    assert_eq!(texts(&shown(&mut third)), "b".repeat(3796));
}

/// Frames in the next file after a tear in this one were never confirmed: both go.
#[test]
fn a_commit_over_two_files_torn_in_the_first_is_cut_there() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    let kept = append(&mut opened, b"kept");
    commit(&mut opened);
    let records: Vec<_> = (0..4u8).map(|n| append(&mut opened, &[n; 25_000])).collect();
    commit(&mut opened);
    disk.kill();
    let (file, at) = place(records[1].0);
    assert_eq!((file, place(records[2].0).0), (1, 2));
    disk.flip(&journal(1), at + 100, 1);
    let mut again = open(&disk);
    assert!(shown(&mut again) == [kept.clone(), records[0].clone()]);
    let on = append(&mut again, &[7; 30_000]);
    commit(&mut again);
    disk.power_cut();
    let mut third = open(&disk);
    assert!(shown(&mut third) == [kept, records[0].clone(), on]);
}
