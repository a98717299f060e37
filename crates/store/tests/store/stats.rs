//! What is said of a store's files, and of whose messages are in its segments.

use overtake_lane::{Fact, Identity, QueueId, Seq, Settings, VhostId};
use overtake_store::record::{Content, encode};
use overtake_store::{
    FORMAT_VERSION, Fault, Files, MemoryDisk, OperationKind, SegmentStats, Space, StoreError, stats,
};

use crate::common::spilled::{QUEUE, STORE_ID, pair, segments, write};
use crate::common::{SEGMENT_BYTES, append, commit, edit, open};

fn queue_stored(queue: QueueId, name: &str) -> Vec<u8> {
    queue_stored_in(VhostId::DEFAULT, queue, name)
}

fn queue_stored_in(vhost: VhostId, queue: QueueId, name: &str) -> Vec<u8> {
    let (name, settings, next_seq) = (name.into(), Box::new(Settings::default()), Seq(1));
    let mut record = Vec::new();
    encode(
        &Fact::QueueStored { queue, vhost, name, settings, identity: Identity::default(), next_seq },
        Content::None,
        &mut record,
    );
    record
}

fn queue_deleted(queue: QueueId) -> Vec<u8> {
    let mut record = Vec::new();
    encode(&Fact::QueueDeleted { queue }, Content::None, &mut record);
    record
}

/// A store with three queues it knows, of which one is gone, and segments of one of them and of another.
fn store() -> MemoryDisk {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    for (queue, name) in [(QUEUE, "jobs"), (QueueId(8), "idle"), (QueueId(9), "gone")] {
        append(&mut opened, &queue_stored(queue, name));
    }
    append(&mut opened, &queue_deleted(QueueId(9)));
    commit(&mut opened);
    let segments = segments(&disk);
    write(&segments, &[pair(1, b"one"), pair(2, b"three")]).expect("a segment");
    write(&segments, &[pair(3, b"four")]).expect("a segment");
    disk
}

#[test]
fn a_store_says_what_its_files_are_and_whose() {
    let disk = store();
    let found = stats(&disk).expect("a store");
    assert!(!found.is_locked);
    assert_eq!((found.store_id, found.life, found.format), (STORE_ID, Some(1), FORMAT_VERSION));
    assert_eq!(found.needed, Files { count: 1, bytes: SEGMENT_BYTES });
    // As long as nobody says a bound, the disk has none.
    assert_eq!(found.space, None);
    assert_eq!((found.oldest.0, found.records, found.damaged), (0, 4, 0));
    assert!(found.tail > found.oldest);

    let files = ["segment-000000000001", "segment-000000000002"];
    let lens = files.map(|name| disk.read(name).expect("its file").len() as u64);
    let jobs = SegmentStats { files: Files { count: 2, bytes: lens[0] + lens[1] }, messages: 3, bytes: 12 };
    assert_eq!((found.segments, found.unreadable_segments), (jobs, 0));
    let said: Vec<_> =
        found.queues.iter().map(|queue| (queue.queue.0, queue.name.as_deref(), queue.segments)).collect();
    assert_eq!(said, [(QUEUE.0, Some("jobs"), jobs), (8, Some("idle"), SegmentStats::default())]);
    let files = found.needed.bytes + found.ahead.bytes + found.spare.bytes + found.segments.files.bytes;
    assert_eq!(files, disk.used(), "every byte is one or the other");
}

#[test]
fn a_queue_says_in_which_virtual_host_it_is() {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    let mut say = |fact: &Fact| {
        let mut record = Vec::new();
        encode(fact, Content::None, &mut record);
        append(&mut opened, &record);
    };
    for (vhost, name) in [(VhostId(1), "eu"), (VhostId(2), "gone")] {
        say(&Fact::VhostStored { vhost, name: name.into(), settings: Box::default() });
    }
    for (vhost, queue) in [(VhostId::DEFAULT, 1), (VhostId(1), 2), (VhostId(2), 3), (VhostId(4), 4)] {
        append(&mut opened, &queue_stored_in(vhost, QueueId(queue), "jobs"));
    }
    let mut record = Vec::new();
    encode(&Fact::VhostDeleted { vhost: VhostId(2) }, Content::None, &mut record);
    append(&mut opened, &record);
    commit(&mut opened);
    let found = stats(&disk).expect("a store").queues;
    let said: Vec<_> = found.iter().map(|queue| (queue.queue.0, queue.vhost_name.as_deref())).collect();
    assert_eq!(said, [(1, Some("/")), (2, Some("eu")), (4, None)]);
}

#[test]
fn spares_and_what_was_half_made_are_not_needed() {
    let disk = store();
    let before = stats(&disk).expect("a store");
    disk.put("spare-000000000077", vec![0; 5]);
    disk.put("new-000000000078", vec![0; 6]);
    disk.put("segment-new-000000000079", vec![0; 7]);
    disk.set_capacity(Some(1 << 20));
    let found = stats(&disk).expect("a store");
    assert_eq!(found.spare, Files { count: before.spare.count + 3, bytes: before.spare.bytes + 18 });
    assert_eq!(found.space, Some(Space { free: (1 << 20) - disk.used(), total: 1 << 20 }));
}

#[test]
fn what_cannot_be_read_is_counted() {
    let disk = store();
    disk.put("segment-000000000002", vec![1; 5_000]);
    let found = stats(&disk).expect("a store");
    assert_eq!((found.segments.files.count, found.unreadable_segments), (1, 1));

    let mut opened = open(&disk);
    append(&mut opened, &queue_stored(QueueId(10), "late"));
    commit(&mut opened);
    commit_more(&mut opened);
    let found = stats(&disk).expect("a store");
    assert!(found.is_locked && found.damaged == 0);
    edit(&disk, "journal-000000000001", |bytes| {
        let at = bytes.windows(4).position(|found| found == b"idle").expect("it is there");
        bytes[at] ^= 1;
    });
    let found = stats(&disk).expect("a store");
    assert_eq!(found.damaged, 1);
    let names: Vec<_> = found.queues.iter().map(|queue| queue.name.as_deref()).collect();
    assert_eq!(names, [Some("jobs"), Some("late")]);
}

/// Another commit, which proves the one before.
fn commit_more(opened: &mut overtake_store::Opened<MemoryDisk>) {
    append(opened, &queue_stored(QUEUE, "jobs"));
    commit(opened);
}

#[test]
fn a_directory_that_is_no_store_has_nothing_to_count() {
    let disk = MemoryDisk::new(1);
    disk.put("letters.txt", vec![0; 5]);
    assert!(matches!(stats(&disk), Err(StoreError::NotAStore)));
}

#[test]
fn a_file_that_goes_while_it_is_looked_at_is_looked_for_anew() {
    let disk = store();
    let mut left = 3;
    disk.set_hook(move |operation| match operation.kind {
        OperationKind::Read if left > 0 => {
            left -= 1;
            Fault::Error(std::io::ErrorKind::NotFound)
        }
        _ => Fault::None,
    });
    assert_eq!(stats(&disk).expect("a store").records, 4);
    disk.set_hook(|operation| match operation.kind {
        OperationKind::Read => Fault::Error(std::io::ErrorKind::NotFound),
        _ => Fault::None,
    });
    assert!(matches!(stats(&disk), Err(StoreError::Io { .. })), "but not for ever");
}
