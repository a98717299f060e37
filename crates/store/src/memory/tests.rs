//! What a memory disk promises, and what it takes away.

use super::*;

fn file_with(disk: &MemoryDisk, bytes: &[u8]) -> MemoryFile {
    let file = disk.create("a").expect("a file");
    file.write_at(0, bytes).expect("a write");
    file.sync_all().expect("a sync");
    disk.sync_dir().expect("a sync");
    file
}

#[test]
fn what_is_synced_survives_a_power_cut() {
    for seed in 0..50 {
        let disk = MemoryDisk::new(seed);
        file_with(&disk, b"kept");
        disk.power_cut();
        assert_eq!(disk.read("a").as_deref(), Some(&b"kept"[..]));
    }
}

#[test]
fn what_is_not_synced_lands_vanishes_or_is_torn() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = MemoryDisk::new(seed);
        file_with(&disk, b"old!").write_at(0, b"new!").expect("a write");
        disk.power_cut();
        let bytes = disk.read("a").expect("the file");
        assert_eq!(bytes[3], b'!', "a byte that does not change is not harmed");
        outcomes.insert(match &bytes[..3] {
            b"old" => "vanished",
            b"new" => "landed",
            _ => "torn",
        });
    }
    assert_eq!(outcomes.len(), 3);
}

#[test]
fn names_that_are_not_synced_may_vanish_each_on_its_own() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = MemoryDisk::new(seed);
        file_with(&disk, b"");
        disk.rename("a", "b").expect("a rename");
        disk.create("c").expect("a file");
        disk.power_cut();
        outcomes.insert(disk.names().join(""));
    }
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), ["a", "ac", "b", "bc"]);
}

#[test]
fn a_failed_sync_is_followed_by_lies() {
    let mut lost = 0;
    for seed in 0..50 {
        let disk = MemoryDisk::new(seed);
        let file = file_with(&disk, b"old");
        file.write_at(0, b"new").expect("a write");
        disk.fail_next_sync();
        assert!(file.sync_data().is_err());
        assert!(file.sync_data().is_ok(), "a lie");
        disk.kill();
        assert_eq!(disk.read("a").as_deref(), Some(&b"new"[..]), "the lie holds while the machine runs");
        disk.power_cut();
        lost += u32::from(disk.read("a").as_deref() != Some(&b"new"[..]));
    }
    assert!(lost > 10);
}

#[test]
fn a_kill_keeps_the_bytes_and_ends_the_handles_and_the_lock() {
    let disk = MemoryDisk::new(1);
    let file = file_with(&disk, b"a");
    let guard = disk.lock().expect("free");
    assert_eq!(disk.lock().err().map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    file.write_at(1, b"b").expect("a write");
    disk.kill();
    assert!(file.write_at(2, b"c").is_err());
    let second = disk.lock().expect("free again");
    drop(guard);
    assert_eq!(disk.is_locked().ok(), Some(true), "a dead guard frees nothing");
    drop(second);
    assert_eq!((disk.is_locked().ok(), disk.read("a").as_deref()), (Some(false), Some(&b"ab"[..])));
}

#[test]
fn a_full_disk_takes_what_fits_and_overwrites() {
    let disk = MemoryDisk::new(1);
    let file = file_with(&disk, b"abc");
    disk.set_capacity(Some(5));
    assert_eq!(file.write_at(3, b"defg").err().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
    assert_eq!(disk.read("a").as_deref(), Some(&b"abcde"[..]));
    file.write_at(0, b"ABCDE").expect("no room is needed");
    assert!(disk.create("b").is_err() && file.set_len(6).is_err());
    file.set_len(1).expect("less");
    disk.create("b").expect("room again");
}

#[test]
fn the_same_seed_does_the_same() {
    let run = |seed| {
        let disk = MemoryDisk::new(seed);
        let file = file_with(&disk, &[0; 5000]);
        for n in 0..20 {
            file.write_at(n * 240, &[n as u8 + 1; 300]).expect("a write");
        }
        disk.power_cut();
        disk.read("a")
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn the_hook_is_asked_before_each_operation() {
    let disk = MemoryDisk::new(1);
    let file = file_with(&disk, b"a");
    disk.set_hook(|operation| match operation.kind {
        OperationKind::Write => Fault::Error(io::ErrorKind::Other),
        OperationKind::SyncData => Fault::PowerCut,
        _ => Fault::None,
    });
    assert!(file.write_at(0, b"b").is_err());
    assert!(file.sync_data().is_err());
    disk.clear_hook();
    assert!(file.sync_data().is_err(), "the process is gone");
    assert_eq!(disk.read("a").as_deref(), Some(&b"a"[..]));
}
