//! The life of a journal without damage: what is written comes back, files come and go, limits hold.

use overtake_store::{
    Disk, Journal, Lsn, MemoryDisk, Opened, Options, RealDisk, Sight, StoreError, Writer, check,
};

use crate::common;
use crate::common::{SEGMENT_BYTES, TempDir, append, commit, journal, open, options, refusal, shown, texts};

#[test]
fn a_confirmed_record_survives_a_power_cut() {
    let disk = MemoryDisk::new(1);
    let mut first = open(&disk);
    append(&mut first, b"kept");
    commit(&mut first);
    append(&mut first, b"never committed");
    disk.power_cut();
    let mut second = open(&disk);
    assert_eq!(texts(&shown(&mut second)), "kept");
    assert_eq!((second.life, second.report.previous_life, second.report.records), (2, Some(1), 1));
}

#[test]
fn a_killed_process_loses_only_what_it_had_not_written() {
    let disk = MemoryDisk::new(1);
    let mut first = open(&disk);
    append(&mut first, b"a");
    commit(&mut first);
    append(&mut first, b"b");
    disk.kill();
    assert_eq!(texts(&shown(&mut open(&disk))), "a");
}

#[test]
fn two_cannot_open_one_store() {
    let disk = MemoryDisk::new(1);
    let opened = open(&disk);
    assert!(matches!(refusal(&disk, &options()), StoreError::Locked));
    drop(opened);
    open(&disk);
}

#[test]
fn two_cannot_open_one_directory() {
    let dir = TempDir::new("lock");
    let opened = open(&dir.disk());
    assert!(matches!(Journal::open(dir.disk(), &options()), Err(StoreError::Locked)));
    assert!(check(&dir.disk()).expect("a check works beside").is_locked);
    drop(opened);
    open(&dir.disk());
    assert!(!check(&dir.disk()).expect("a check").is_locked);
}

#[test]
fn a_real_directory_keeps_records_over_files_and_lives() {
    let dir = TempDir::new("lives");
    let mut written = Vec::new();
    for life in 1..=4u8 {
        let mut opened = open(&dir.disk());
        assert_eq!(shown(&mut opened), written);
        for n in 0..30 {
            written.push(append(&mut opened, &vec![life; 700 * n]));
            commit(&mut opened);
        }
    }
    let report = check(&RealDisk::existing(&dir.0).expect("the directory")).expect("a store");
    assert!(report.is_clean() && report.files > 10 && report.records == 120, "{report:?}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let dir = TempDir::new("denied");
    std::fs::create_dir_all(&dir.0).expect("a directory");
    let file = dir.0.join("file");
    std::fs::write(&file, b"").expect("a file");
    let error = RealDisk::create(file.join("data")).expect_err("a file is no directory").to_string();
    assert!(error.starts_with("cannot make the directory") && error.contains("file/data"), "{error}");
}

#[test]
fn a_directory_without_a_journal_is_no_store() {
    assert!(matches!(check(&MemoryDisk::new(1)), Err(StoreError::NotAStore)));
}

#[test]
fn a_check_changes_nothing() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    for _ in 0..40 {
        append(&mut opened, &[7; 3000]);
        commit(&mut opened);
    }
    disk.kill();
    let before = disk.counts();
    let report = check(&disk).expect("a store");
    let after = disk.counts();
    assert_eq!((after.writes, after.syncs, after.names), (before.writes, before.syncs, before.names));
    assert_eq!((report.records, report.bytes, report.files), (40, 120_000, 3));
    assert_eq!((report.store_id, report.life, report.is_locked), (Some(42), Some(1), false));
    assert!(report.is_clean());
}

#[test]
fn another_store_is_not_opened() {
    let disk = MemoryDisk::new(1);
    drop(open(&disk));
    let error = refusal(&disk, &Options { expected_id: Some(7), ..options() });
    assert!(matches!(error, StoreError::OtherStore { found: 42, wanted: 7, .. }));
    assert_eq!(open(&disk).store_id, 42, "the id that is there, whatever id a new store would get");
}

#[test]
fn a_newer_format_is_named_with_both_versions() {
    let disk = MemoryDisk::new(1);
    drop(open(&disk));
    common::edit(&disk, &journal(1), |bytes| {
        for copy in [0, 2048] {
            bytes[copy + 8] = 3;
            let crc = crc32c::crc32c(&bytes[copy..copy + 60]);
            bytes[copy + 60..copy + 64].copy_from_slice(&crc.to_le_bytes());
        }
    });
    let error = refusal(&disk, &options());
    assert!(matches!(error, StoreError::Newer { found: 3, known: 1, .. }));
    assert!(error.to_string().contains("format 3"), "{error}");
}

#[test]
fn a_record_too_long_for_a_file_is_refused_and_the_longest_is_not() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    let max = opened.writer.record_len_max();
    let too_long = vec![0; max + 1];
    let refused = opened.writer.append(&[&too_long]);
    assert!(matches!(refused, Err(StoreError::RecordTooLong { len, max: m }) if len == max + 1 && m == max));
    let written = append(&mut opened, &too_long[1..]);
    commit(&mut opened);
    disk.power_cut();
    assert_eq!(shown(&mut open(&disk)), [written]);
}

#[test]
fn absurd_file_lengths_are_refused() {
    for segment_bytes in [0, 4096, SEGMENT_BYTES + 1, 2 << 30, u64::MAX] {
        let refused = refusal(&MemoryDisk::new(1), &Options { segment_bytes, ..options() });
        assert!(matches!(refused, StoreError::BadSegmentBytes { .. }), "{segment_bytes}");
    }
}

#[test]
fn no_room_promised_is_ever_missing() {
    for len in [0, 1, 100, 3000, 20_000] {
        let disk = MemoryDisk::new(1);
        let mut opened = open(&disk);
        for _ in 0..2 {
            opened.writer.file_ready(opened.committer.prepare_file().expect("a file"));
        }
        disk.set_capacity(Some(disk.used()));
        let promised = opened.writer.room(len) / Writer::cost(len);
        for n in 0..promised {
            opened
                .writer
                .append(&[&vec![1; len]])
                .unwrap_or_else(|error| panic!("{n} of {promised}: {error}"));
            commit(&mut opened);
        }
        assert!(promised > 2, "{len}");
    }
}

/// Steps until a file of 8 MiB stands ready, with a batch of so many bytes before each. The first knows nothing of batches.
fn steps_to_a_file(batch: usize) -> usize {
    let options = Options { segment_bytes: 8 << 20, ..options() };
    let Opened { mut writer, committer, .. } =
        Journal::open(MemoryDisk::new(1), &options).expect("the journal opens");
    let (mut log, mut pool) = committer.split();
    writer.append(&[&vec![1; 2 << 20]]).expect("the file in use has room");
    log.commit(&writer.take_batch().expect("a record")).expect("the disk is well");
    for step in 1.. {
        if batch > 0 {
            writer.append(&[&vec![1; batch]]).expect("the file in use has room");
            log.commit(&writer.take_batch().expect("a record")).expect("the disk is well");
        }
        if pool.prepare_some().expect("there is room").is_some() {
            return step;
        }
    }
    unreachable!("it returns")
}

#[test]
fn a_file_is_made_in_short_steps_and_before_the_one_in_use_is_full() {
    assert_eq!(steps_to_a_file(0), 16, "half a MiB each");
    assert_eq!(steps_to_a_file(1_000), 16, "small batches change nothing");
    assert_eq!(steps_to_a_file(900 << 10), 6, "twice as many bytes as the batch");
}

#[test]
fn a_failure_of_one_half_ends_the_other() {
    let disk = MemoryDisk::new(1);
    let Opened { mut writer, committer, .. } = open(&disk);
    let (mut log, mut pool) = committer.split();
    disk.fail_next_sync();
    let why = pool.prepare_some().err().expect("the zeros are not synced").to_string();
    writer.append(&[b"record"]).expect("the file in use has room");
    let refused = log.commit(&writer.take_batch().expect("a record"));
    assert!(matches!(refused, Err(StoreError::Poisoned { why: told }) if told == why));
    assert!(matches!(pool.retire(1), Err(StoreError::Poisoned { .. })));
}

#[test]
fn a_full_disk_leaves_nothing_half_made_and_still_takes_what_was_promised() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    disk.set_capacity(Some(disk.used() + SEGMENT_BYTES / 2));
    for _ in 0..2 {
        assert!(matches!(opened.committer.prepare_file(), Err(StoreError::Full)));
        assert_eq!(disk.names(), [journal(1)]);
    }
    append(&mut opened, b"ack");
    commit(&mut opened);
    while opened.writer.append(&[&[0; 1000]]).is_ok() {}
    assert!(matches!(opened.writer.append(&[&[0; 1000]]), Err(StoreError::Full)));
    disk.set_capacity(None);
    opened.writer.file_ready(opened.committer.prepare_file().expect("room again"));
    opened.writer.append(&[&[0; 1000]]).expect("room again");
    commit(&mut opened);
}

#[test]
fn a_full_disk_does_not_keep_a_store_from_opening() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    opened.writer.file_ready(opened.committer.prepare_file().expect("a file"));
    append(&mut opened, b"kept");
    commit(&mut opened);
    disk.power_cut();
    disk.set_capacity(Some(disk.used()));
    let mut opened = open(&disk);
    assert_eq!(texts(&shown(&mut opened)), "kept");
    opened
        .writer
        .file_ready(opened.committer.prepare_file().expect("the file that stood ready is a spare now"));
}

#[test]
fn a_new_store_on_a_full_disk_is_refused_and_leaves_nothing() {
    let disk = MemoryDisk::new(1);
    disk.set_capacity(Some(1000));
    assert!(matches!(refusal(&disk, &options()), StoreError::Full));
    assert!(disk.names().is_empty());
}

#[test]
fn a_failed_sync_poisons_for_ever_and_what_is_shown_after_it_stays() {
    let disk = MemoryDisk::new(3);
    let mut opened = open(&disk);
    append(&mut opened, b"unsure");
    disk.fail_next_sync();
    let batch = opened.writer.take_batch().expect("a record");
    assert!(matches!(opened.committer.commit(&batch), Err(StoreError::Io { op: "sync", .. })));
    assert!(matches!(opened.committer.commit(&batch), Err(StoreError::Poisoned { .. })));
    assert!(matches!(opened.committer.prepare_file(), Err(StoreError::Poisoned { .. })));
    assert!(opened.committer.poison().expect("a reason").contains("input/output error"));
    // The process is restarted, the machine is not: the system calls the pages clean. What is shown must be written again.
    disk.kill();
    let mut second = open(&disk);
    assert_eq!(texts(&shown(&mut second)), "unsure");
    append(&mut second, b"sure");
    commit(&mut second);
    disk.power_cut();
    assert_eq!(texts(&shown(&mut open(&disk))), "unsure sure");
}

#[test]
fn retired_files_are_used_again_and_the_rest_removed() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    for _ in 0..100 {
        append(&mut opened, &[9; 3000]);
    }
    commit(&mut opened);
    let before = disk.names().len();
    assert!(opened.writer.retire(opened.writer.tail()));
    assert_eq!(
        opened.committer.retire().expect("nothing yet"),
        0,
        "not before it is durable that they are not needed"
    );
    commit(&mut opened);
    assert_eq!(opened.committer.retire().expect("retired"), before - 1);
    assert_eq!((opened.committer.spares(), disk.names().len()), (1, 2));
    let (created, used) = (disk.counts().bytes_written, disk.used());
    opened.writer.file_ready(opened.committer.prepare_file().expect("a spare"));
    assert_eq!((opened.committer.spares(), disk.used()), (0, used));
    assert_eq!(disk.counts().bytes_written - created, 4096, "only the header is written");
    let kept = append(&mut opened, b"kept");
    commit(&mut opened);
    disk.power_cut();
    let mut again = open(&disk);
    assert_eq!(shown(&mut again).last(), Some(&kept));
}

#[test]
fn one_commit_may_span_three_files_and_is_synced_once_in_each() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    for _ in 0..2 {
        opened.writer.file_ready(opened.committer.prepare_file().expect("a file"));
    }
    let written: Vec<_> = (0..6).map(|n| append(&mut opened, &[n; 25_000])).collect();
    let before = disk.counts();
    commit(&mut opened);
    let after = disk.counts();
    assert_eq!((after.writes - before.writes, after.syncs - before.syncs), (3, 3));
    disk.power_cut();
    assert_eq!(shown(&mut open(&disk)), written);
}

/// The commit that was to close a file is there, the seal is not, and there is no room for anything else.
#[test]
fn a_file_whose_seal_was_torn_off_is_closed_anew() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    let kept = append(&mut opened, &[1; 61_212]);
    commit(&mut opened);
    assert_eq!(opened.writer.room(0), 0, "filled to the brim");
    append(&mut opened, b"never confirmed");
    commit(&mut opened);
    disk.kill();
    common::edit(&disk, &journal(1), |bytes| bytes[65_520..].fill(0xaa));
    let mut second = open(&disk);
    assert_eq!(shown(&mut second), std::slice::from_ref(&kept));
    assert_eq!(second.report.tail.at, 65_464);
    let on = append(&mut second, b"and on");
    commit(&mut second);
    disk.power_cut();
    assert_eq!(shown(&mut open(&disk)), [kept, on]);
}

#[test]
fn files_of_another_length_take_over_and_lsns_go_on() {
    let disk = MemoryDisk::new(1);
    let mut written = Vec::new();
    for segment_bytes in [64 << 10, 128 << 10, 64 << 10, 1 << 20] {
        let mut opened =
            Journal::open(disk.clone(), &Options { segment_bytes, ..options() }).expect("it opens");
        assert_eq!(shown(&mut opened), written);
        for n in 0..50 {
            written.push(append(&mut opened, &[n; 4000]));
            commit(&mut opened);
        }
        disk.power_cut();
    }
    assert!(written.is_sorted_by_key(|(lsn, _)| *lsn));
}

#[test]
fn a_batch_without_records_proves_what_is_before_it() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    assert!(opened.writer.take_batch().is_none());
    let proof = opened.writer.take_proof().expect("room for it");
    assert_eq!((proof.records(), proof.is_empty()), (0, false));
    let durable = opened.committer.commit(&proof).expect("a commit");
    assert_eq!(durable, proof.end());
    assert_eq!(durable, opened.committer.durable());
}

#[test]
fn an_unused_store_says_so() {
    let opened = open(&MemoryDisk::new(1));
    let report = &opened.report;
    assert_eq!((report.files, report.records, report.previous_life, report.put_aside), (0, 0, None, 0));
    assert_eq!((report.tail.lsn, report.tail.sight), (Lsn(0), None));
    assert_eq!(opened.life, 1);
}

#[test]
fn the_end_of_a_log_is_named_for_what_stands_there() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    let (lsn, _) = append(&mut opened, b"torn");
    commit(&mut opened);
    disk.kill();
    assert_eq!(open(&disk).report.tail.sight, Some(Sight::Zeros));
    let (number, offset) = common::place(lsn);
    for (change, sight) in [(8, Sight::TornFrame), (0, Sight::StaleFrame), (4, Sight::Garbage)] {
        let copy = MemoryDisk::new(1);
        copy.put(&journal(number), disk.read(&journal(number)).expect("the file"));
        // Take away the life that proved the record, then harm the record.
        common::edit(&copy, &journal(number), |bytes| {
            bytes[offset as usize + 16..].fill(0);
            bytes[offset as usize + change] ^= 0x70;
        });
        let report = open(&copy).report;
        assert_eq!((report.tail.sight, report.tail.at), (Some(sight), offset));
    }
    assert!(disk.list().is_ok());
}
