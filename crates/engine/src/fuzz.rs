//! Recovery from anything, for fuzz targets: whatever is on the disk, opening it answers, and what opens can be used.
//!
//! The first byte of an input says what the rest is: 0, changes to the files of a small valid store, six bytes each: file,
//! offset in 24 bits, what to do, a byte to do it with; else, records behind those of that store, each after its length in
//! 16 bits.

use std::sync::LazyLock;

use overtake_lane::{
    Asker, BrowseOrder, Command, ConsumerId, DeadLetterTo, Outcome, Settings, Status, Time, VhostId,
};
use overtake_store::{Journal, MemoryDisk, OnDamage};

use crate::api::{Browse, Content, LeaseRequest, NewMessage, Target};
use crate::core::{Answer, Core, Opened, Out, Request};
use crate::options::Options;

/// Messages that a step of a scan looks at.
const LOOKS: usize = 5;
const START: Time = Time(1_793_500_000_000);

type File = (String, Vec<u8>);

static STORE: LazyLock<Vec<File>> = LazyLock::new(store);

/// Opens what the bytes make, with both ways to treat damage, and uses it.
///
/// # Panics
/// When the engine does: that is the finding.
pub fn recovery(bytes: &[u8]) {
    let disk = match bytes.split_first() {
        Some((0, changes)) => changed(changes),
        Some((_, records)) => with_records(records),
        None => disk_of(&STORE),
    };
    for on_damage in [OnDamage::Refuse, OnDamage::Skip] {
        let copy = MemoryDisk::new(1);
        for name in disk.names() {
            copy.put(&name, disk.read(&name).expect("a file that is listed"));
        }
        open_and_use(&copy, on_damage);
    }
}

fn options(on_damage: OnDamage) -> Options {
    Options { segment_bytes: 64 << 10, seed: 7, on_damage, ..Options::default() }
}

fn open_and_use(disk: &MemoryDisk, on_damage: OnDamage) {
    let Ok(Opened { mut core, mut committer, recovered, .. }) =
        Core::open(disk.clone(), &options(on_damage), START)
    else {
        return;
    };
    let queues = core.broker().all_views(START);
    let queues = queues.map(|queue| (Asker::in_vhost(queue.vhost), queue.name)).collect::<Vec<_>>();
    assert_eq!(queues.len(), recovered.queues, "every queue that was recovered is seen");
    let mut seen = 0;
    for (asker, queue) in &queues {
        for order in [BrowseOrder::Dispatch, BrowseOrder::Published, BrowseOrder::Newest] {
            let browse = Browse { order, limit: usize::MAX, ..Browse::default() };
            core.handle_by(START, *asker, Request::Browse { queue: queue.clone(), browse }, ());
        }
    }
    while core.is_scanning() {
        if let Some(change) = core.scan_on(START, LOOKS) {
            core.change_on(START, change);
        }
    }
    let outs = core.take_outs();
    if core.failure().is_some() {
        // A segment cannot be read, which is said and stops it.
        return;
    }
    for out in outs {
        if let Out::Answer { result: Ok(Answer::Page(page)), .. } = out {
            seen += page.messages.len() as u64;
        }
    }
    assert_eq!(seen, 3 * recovered.messages, "every message that was recovered is seen in every order");
    for (at, (asker, queue)) in queues.iter().enumerate() {
        let lease = LeaseRequest::new(queue.clone(), 3);
        core.handle_by(START, *asker, Request::Lease { consumer: ConsumerId(at as u64), lease }, ());
        for out in core.take_outs() {
            if let Out::Answer { result: Ok(Answer::Leased(messages)), .. } = out {
                let receipts = messages.iter().map(|message| message.receipt).collect();
                let nack = Command::Settle { receipts, outcome: Outcome::Nack { delay_ms: None } };
                core.handle_by(START, *asker, Request::Do(nack), ());
            }
        }
        let publish = Request::Publish { messages: vec![message(queue, "after")], settlements: Vec::new() };
        core.handle_by(START, *asker, publish, ());
    }
    core.tick(START.after(3_600_000));
    for (asker, queue) in queues {
        let purge = Command::Purge { queue, status: Some(Status::Dead), expect: None };
        core.handle_by(START, asker, Request::Do(purge), ());
    }
    core.clear_on(LOOKS);
    core.keep_house();
    if let Some(batch) = core.take_batch() {
        committer.commit(&batch).expect("a disk in memory takes what was prepared");
    }
    drop((core, committer));
    // What was recovered once and gone on with is not damaged: it opens again.
    let again = Core::<()>::open(disk.clone(), &options(on_damage), START.after(3_600_000));
    assert!(again.is_ok(), "it opens again: {:?}", again.err());
}

fn disk_of(files: &[File]) -> MemoryDisk {
    let disk = MemoryDisk::new(1);
    for (name, bytes) in files {
        disk.put(name, bytes.clone());
    }
    disk
}

fn changed(changes: &[u8]) -> MemoryDisk {
    let mut files = STORE.clone();
    for change in changes.as_chunks::<6>().0 {
        let [file, a, b, c, what, byte] = *change;
        let count = files.len();
        let (_, bytes) = &mut files[usize::from(file) % count];
        let offset = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        match (what % 4, bytes.get_mut(offset)) {
            (0, _) => bytes.truncate(offset),
            (1, Some(there)) => *there = byte,
            (2, Some(_)) => bytes[offset..].iter_mut().take(512).for_each(|there| *there = byte),
            (_, Some(there)) => *there ^= byte | 1,
            (_, None) => {}
        }
    }
    disk_of(&files)
}

fn with_records(mut records: &[u8]) -> MemoryDisk {
    let disk = disk_of(&STORE);
    let mut opened =
        Journal::open(disk.clone(), &options(OnDamage::Refuse).journal()).expect("the valid store opens");
    opened.writer.file_ready(opened.committer.prepare_file().expect("a disk without bounds has room"));
    while let Some(([high, low], rest)) = records.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (record, rest) = rest.split_at(len);
        if opened.writer.append(&[record]).is_err() {
            break;
        }
        records = rest;
    }
    if let Some(batch) = opened.writer.take_batch() {
        opened.committer.commit(&batch).expect("a disk in memory takes what was prepared");
    }
    disk.kill();
    disk
}

fn message(queue: &str, body: &str) -> NewMessage {
    NewMessage {
        to: Target::Queue(queue.into()),
        id: Some(body.to_owned()),
        content: Content { body: body.to_owned().into(), ..Content::default() },
        ..NewMessage::default()
    }
}

/// A store with a message in every state, and in two virtual hosts.
fn store() -> Vec<File> {
    let disk = MemoryDisk::new(1);
    // All that may wait in a segment does.
    let options = Options { memory_bytes: 0, ..options(OnDamage::Refuse) };
    let Opened { mut core, mut committer, mut spiller, .. } =
        Core::open(disk.clone(), &options, START).expect("a new store");
    for _ in 0..2 {
        core.file_ready(committer.prepare_file().expect("a disk without bounds has room"));
    }
    let moves = Settings { dead_letter: DeadLetterTo::Queue("a".into()), ..Settings::default() };
    let vhost = Command::DeclareVhost { name: "v".into(), settings: Box::default() };
    core.handle(START, Request::Do(vhost), ());
    let (here, there) = (Asker::default(), Asker::in_vhost(VhostId(1)));
    for (asker, name, settings) in
        [(here, "a", Settings::default()), (here, "b", moves.clone()), (there, "b", moves)]
    {
        let ask = |core: &mut Core<()>, request| core.handle_by(START, asker, request, ());
        let declare = Command::declare(name.into(), Box::new(settings));
        ask(&mut core, Request::Do(declare));
        let mut messages: Vec<NewMessage> = (0..6).map(|n| message(name, &format!("{name}{n}"))).collect();
        messages[5].delay_ms = 60_000;
        ask(&mut core, Request::Publish { messages, settlements: Vec::new() });
        let lease = LeaseRequest::new(name.into(), 4);
        ask(&mut core, Request::Lease { consumer: ConsumerId(1), lease });
        let receipts: Vec<_> = core
            .take_outs()
            .into_iter()
            .filter_map(|out| match out {
                Out::Answer { result: Ok(Answer::Leased(messages)), .. } => Some(messages),
                _ => None,
            })
            .flatten()
            .map(|message| message.receipt)
            .collect();
        for (receipt, outcome) in receipts.into_iter().zip([Outcome::Ack, Outcome::Reject, Outcome::Release])
        {
            ask(&mut core, Request::Do(Command::Settle { receipts: vec![receipt], outcome }));
        }
        let messages = (6..12).map(|n| message(name, &format!("{name}{n}"))).collect();
        ask(&mut core, Request::Publish { messages, settlements: Vec::new() });
        let batch = core.take_batch().expect("there is something to commit");
        committer.commit(&batch).expect("a disk in memory takes it");
        core.keep_house();
        for job in core.take_jobs() {
            core.done(spiller.perform(job).expect("a disk in memory takes it"));
        }
    }
    let proof = core.take_proof().expect("there is room for a proof");
    committer.commit(&proof).expect("a disk in memory takes it");
    disk.kill();
    disk.names()
        .into_iter()
        .map(|name| (name.clone(), disk.read(&name).expect("a file that is listed")))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_store_panics() {
        overtake_corpus::check("recovery", super::recovery);
    }

    #[test]
    fn the_store_that_is_changed_is_whole() {
        super::recovery(&[]);
        for prefix in ["journal-", "segment-"] {
            assert!(super::STORE.iter().any(|(name, _)| name.starts_with(prefix)), "{prefix}");
        }
    }
}
