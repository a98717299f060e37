//! Messages leave memory, and memory stays within its bound.

use std::collections::BTreeSet;
use std::sync::Arc;

use overtake_engine::core::{Answer, Core, Opened, Out, Request, Spiller};
use overtake_engine::{
    Browse, Change, Content, Filter, LeaseRequest, NewMessage, Options, Refused, Select, Target,
};
use overtake_lane::{BrowseOrder, Command, ConsumerId, HeaderValue, Outcome, Time};
use overtake_store::{Committer, MemoryDisk, StoreError};

const NOW: Time = Time(1_000);
const MEMORY: u64 = 1 << 20;

/// An engine whose disk and spill threads take turns with it.
struct Engine {
    core: Core<()>,
    committer: Committer<MemoryDisk>,
    spiller: Spiller<MemoryDisk>,
    pulls: u64,
}

impl Engine {
    fn open(disk: &MemoryDisk) -> Self {
        Self::open_with(disk, MEMORY, 1 << 20)
    }

    fn open_with(disk: &MemoryDisk, memory_bytes: u64, segment_bytes: u64) -> Self {
        let options = Options { segment_bytes, memory_bytes, seed: 7, ..Options::default() };
        let Opened { core, committer, spiller, .. } =
            Core::open(disk.clone(), &options, NOW).expect("it opens");
        Self { core, committer, spiller, pulls: 0 }
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Refused> {
        self.core.handle(NOW, request, ());
        loop {
            while self.core.is_scanning() {
                self.scan();
            }
            let answer = self.answer();
            self.keep_house();
            if let Some(answer) = answer {
                return answer;
            }
            assert!(self.core.is_scanning(), "every request is answered");
        }
    }

    fn scan(&mut self) {
        if let Some(change) = self.core.scan_on(NOW, 7) {
            self.core.change_on(NOW, change);
        }
    }

    fn answer(&mut self) -> Option<Result<Answer, Refused>> {
        self.core.take_outs().into_iter().find_map(|out| match out {
            Out::Answer { result, .. } => Some(result),
            _ => None,
        })
    }

    fn keep_house(&mut self) {
        while self.core.is_clearing() {
            self.core.clear_on(7);
        }
        self.core.keep_house();
        let mut jobs = self.core.take_jobs();
        if let Some(batch) = self.core.take_batch() {
            jobs.extend(self.core.take_late_jobs());
            self.committer.commit(&batch).expect("it is written");
            self.committer.retire().expect("files are given back");
        }
        for job in jobs {
            let done = self.spiller.perform(job).expect("it is done");
            self.core.done(done);
        }
        while self.core.wants_file() {
            match self.committer.prepare_file() {
                Ok(file) => self.core.file_ready(file),
                Err(StoreError::Full) => return self.core.disk_full(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn publish(&mut self, priorities: impl Iterator<Item = i64>) {
        self.publish_bodies(100, priorities);
    }

    /// Messages with bodies of so many bytes.
    fn publish_bodies(&mut self, bytes: usize, priorities: impl Iterator<Item = i64>) {
        let mut nth = 0;
        let message = |priority: i64| {
            nth += 1;
            let headers = [("third".to_owned(), HeaderValue::Int(nth % 3))].into();
            NewMessage {
                to: Target::Queue("q".into()),
                priority: priority.into(),
                content: Content::new(None, &headers, vec![b'x'; bytes].into()),
                ..NewMessage::default()
            }
        };
        let messages = priorities.map(message).collect();
        self.ask(Request::Publish { messages, settlements: Vec::new() }).expect("it is taken");
    }

    fn lease_and_ack(&mut self, max: u32) -> Vec<(i64, u64)> {
        self.pulls += 1;
        let lease = LeaseRequest::new("q".into(), max);
        let Ok(Answer::Leased(messages)) =
            self.ask(Request::Lease { consumer: ConsumerId(self.pulls), lease })
        else {
            panic!("it leases")
        };
        let receipts = messages.iter().map(|message| message.receipt).collect();
        self.ask(Request::Do(Command::Settle { receipts, outcome: Outcome::Ack })).expect("settled");
        messages.iter().map(|message| (i64::from(message.message.level.0), message.receipt.seq.0)).collect()
    }
}

fn declared(disk: &MemoryDisk) -> Engine {
    let mut engine = Engine::open(disk);
    let declare = Command::declare(Arc::from("q"), Box::default());
    engine.ask(Request::Do(declare)).expect("declared");
    engine
}

#[test]
fn memory_stays_within_its_bound_however_many_levels_there_are() {
    for levels in [1, 10] {
        let disk = MemoryDisk::new(1);
        let mut engine = declared(&disk);
        for _ in 0..2_000 {
            engine.publish((0..50).map(|nth| nth % levels));
            let bytes = engine.core.memory_bytes();
            assert!(bytes < 2 * MEMORY, "{levels} levels: {bytes} bytes with {:?}", engine.core.memory());
        }
        assert_eq!(engine.core.messages(), 100_000);
        let mut before = (i64::MAX, 0);
        let mut leased = 0;
        while engine.core.messages() > 0 {
            for (level, seq) in engine.lease_and_ack(1_000) {
                assert!((-level, seq) > (-before.0, before.1), "{level} {seq} after {before:?}");
                before = (level, seq);
                leased += 1;
            }
        }
        assert_eq!((leased, engine.core.memory().segments), (100_000, 0));
    }
}

#[test]
fn large_messages_in_many_lanes_stay_within_the_bound() {
    const MEMORY: u64 = 8 << 20;
    let disk = MemoryDisk::new(1);
    let mut engine = Engine::open_with(&disk, MEMORY, 8 << 20);
    engine.ask(Request::Do(Command::declare("q".into(), Box::default()))).expect("declared");
    for nth in 0..640 {
        engine.publish_bodies(64 << 10, std::iter::once(nth % 10));
        let bytes = engine.core.memory_bytes();
        assert!(bytes < MEMORY + MEMORY / 4, "{nth}: {bytes} bytes with {:?}", engine.core.memory());
    }
    for level in (0..10).rev() {
        let leased = engine.lease_and_ack(64);
        assert!(leased.len() == 64 && leased.iter().all(|(of, _)| *of == level), "{leased:?}");
    }
}

/// The least that a segment of this memory frees is less than what it may have.
const SEGMENT_MAX: u64 = MEMORY / 16 * 2;

#[test]
fn files_are_not_much_longer_than_what_waits_in_them() {
    let disk = MemoryDisk::new(1);
    let mut engine = declared(&disk);
    for _ in 0..600 {
        engine.publish((0..60).map(|nth| nth % 3));
    }
    let check = |engine: &Engine| {
        let (bytes, live, lanes) = engine.core.segment_bytes();
        let on_disk: u64 = disk
            .names()
            .iter()
            .filter(|name| name.starts_with("segment-"))
            .map(|name| disk.read(name).expect("it is listed").len() as u64)
            .sum();
        assert!(bytes <= live + live / 2 + lanes as u64 * SEGMENT_MAX, "{bytes} for {live} in {lanes} lanes");
        assert_eq!(on_disk, bytes, "no file is left that nobody needs");
    };
    check(&engine);
    let (full, ..) = engine.core.segment_bytes();
    for third in ["0", "1"] {
        let headers = [("third".to_owned(), third.to_owned())].into();
        let select = Select::Matching(Filter { headers, ..Filter::default() });
        let remove = Request::Change { queue: "q".into(), select, change: Change::Remove, only_start: false };
        engine.ask(remove).expect("removed");
        for _ in 0..2_000 {
            engine.keep_house();
        }
        check(&engine);
    }
    let (sparse, ..) = engine.core.segment_bytes();
    assert!(sparse < full / 2, "{sparse} of {full}");
    assert_eq!(engine.core.messages(), 12_000);

    let Engine { core, committer, spiller, .. } = engine;
    drop((core, committer, spiller));
    disk.power_cut();
    let mut engine = Engine::open(&disk);
    assert_eq!(engine.core.messages(), 12_000);
    let mut leased = 0;
    while engine.core.messages() > 0 {
        leased += engine.lease_and_ack(500).len();
    }
    engine.keep_house();
    assert_eq!((leased, engine.core.memory().segments), (12_000, 0));
}

#[test]
fn a_change_waits_while_memory_is_full_and_a_segment_is_written() {
    let mut engine = declared(&MemoryDisk::new(1));
    for _ in 0..200 {
        engine.publish((0..50).map(|nth| nth % 10));
    }
    let select = Select::Matching(Filter::default());
    let change = Change::Reprioritise(5.into());
    engine.core.handle(NOW, Request::Change { queue: "q".into(), select, change, only_start: false }, ());
    let mut waits = 0;
    let answer = loop {
        // Until then no segment is written, and no file is prepared.
        while engine.core.is_scanning() && !engine.core.wants_file() {
            engine.scan();
            engine.core.keep_house();
        }
        if let Some(answer) = engine.answer() {
            break answer;
        }
        if !engine.core.is_scanning() {
            let bytes = engine.core.memory_bytes();
            assert!(bytes < MEMORY + MEMORY / 16 + (64 << 10), "{bytes} bytes");
            waits += 1;
        }
        engine.keep_house();
    };
    assert!(waits > 0);
    assert!(matches!(answer, Ok(Answer::Count(10_000))), "{answer:?}");
}

/// Its blocks are read by jobs, so nobody waits for the disk who asks for something else.
#[test]
fn a_look_reads_nothing_from_the_disk_itself_and_shows_all() {
    let disk = MemoryDisk::new(1);
    let mut engine = declared(&disk);
    for _ in 0..200 {
        engine.publish((0..50).map(|nth| nth % 10));
    }
    assert!(engine.core.memory().segments > 3, "{:?}", engine.core.memory());
    let third = Filter { headers: vec![("third".into(), "0".into())], ..Filter::default() };
    let mut jobs = 0;
    for order in [BrowseOrder::Dispatch, BrowseOrder::Published, BrowseOrder::Newest] {
        for (filter, expect) in [(Filter::default(), 10_000), (third.clone(), 200 * 16)] {
            let browse = Browse { filter, order, limit: 50, with_total: true, ..Browse::default() };
            let (mut next, mut seen) = (None, BTreeSet::new());
            loop {
                let browse = Browse { cursor: next.take(), with_total: seen.is_empty(), ..browse.clone() };
                engine.core.handle(NOW, Request::Browse { queue: "q".into(), browse }, ());
                let answer = loop {
                    let reads = disk.counts().reads;
                    while engine.core.is_scanning() {
                        engine.core.scan_on(NOW, 2_048);
                    }
                    assert_eq!(disk.counts().reads, reads, "{order:?}");
                    if let Some(answer) = engine.answer() {
                        break answer;
                    }
                    engine.keep_house();
                    jobs += 1;
                };
                let Ok(Answer::Page(page)) = answer else { panic!("a page, not {answer:?}") };
                if seen.is_empty() {
                    assert_eq!(page.total, Some(expect), "{order:?}");
                }
                seen.extend(page.messages.iter().map(|shown| shown.message.seq));
                assert!(page.messages.iter().all(|shown| shown.content.body.len() == 100));
                next = page.next;
                if next.is_none() {
                    break;
                }
            }
            assert_eq!(seen.len() as u64, expect, "{order:?}");
        }
    }
    assert!(jobs > 4, "{jobs} jobs read blocks");
}

/// Messages that match are brought into memory from the blocks that were read to find them.
#[test]
fn to_change_what_was_found_nothing_is_read_from_the_disk() {
    let disk = MemoryDisk::new(1);
    // Enough that a block of each lane stays there while segments are written.
    let mut engine = Engine::open_with(&disk, 4 * MEMORY, 1 << 20);
    engine.ask(Request::Do(Command::declare("q".into(), Box::default()))).expect("declared");
    for _ in 0..200 {
        engine.publish((0..150).map(|nth| nth % 10));
    }
    assert!(engine.core.memory().segments > 3, "{:?}", engine.core.memory());
    let third = Filter { headers: vec![("third".into(), "0".into())], ..Filter::default() };
    for (filter, expect) in [(third, 200 * 50), (Filter::default(), 30_000)] {
        let (select, change) = (Select::Matching(filter), Change::Reprioritise(5.into()));
        engine.core.handle(NOW, Request::Change { queue: "q".into(), select, change, only_start: false }, ());
        let answer = loop {
            while engine.core.is_scanning() && !engine.core.wants_file() {
                let Some(change) = engine.core.scan_on(NOW, 7) else { continue };
                let reads = disk.counts().reads;
                engine.core.change_on(NOW, change);
                assert_eq!(disk.counts().reads, reads);
            }
            if let Some(answer) = engine.answer() {
                break answer;
            }
            engine.keep_house();
        };
        assert!(matches!(answer, Ok(Answer::Count(count)) if count == expect), "{answer:?}");
    }
}

/// A block holds a few of them, and the lanes run out of theirs together.
#[test]
fn a_look_at_all_reads_each_block_once_and_waits_for_many_at_a_time() {
    const LANES: u64 = 10;
    let disk = MemoryDisk::new(1);
    let mut engine = Engine::open_with(&disk, 8 * MEMORY, 1 << 20);
    engine.ask(Request::Do(Command::declare("q".into(), Box::default()))).expect("declared");
    for _ in 0..600 {
        engine.publish_bodies(1 << 10, (0..50).map(|nth| nth % LANES as i64));
    }
    let blocks = blocks(&disk);
    assert!(blocks > 10 * LANES, "{blocks}");
    let first = Filter { headers: vec![("third".into(), "no".into())], ..Filter::default() };
    for order in [BrowseOrder::Published, BrowseOrder::Newest, BrowseOrder::Dispatch] {
        for filter in [Filter { key: Some("no".into()), ..Filter::default() }, first.clone()] {
            let (browse, reads) =
                (Browse { filter, order, limit: 1, ..Browse::default() }, disk.counts().reads);
            engine.core.handle(NOW, Request::Browse { queue: "q".into(), browse }, ());
            let mut waits = 0;
            let answer = loop {
                while engine.core.is_scanning() {
                    engine.core.scan_on(NOW, 2_048);
                }
                if let Some(answer) = engine.answer() {
                    break answer;
                }
                engine.keep_house();
                waits += 1;
            };
            let Ok(Answer::Page(page)) = answer else { panic!("a page, not {answer:?}") };
            assert_eq!((page.looked_at, page.messages.len()), (30_000, 0));
            let reads = disk.counts().reads - reads;
            let few = if order == BrowseOrder::Dispatch { blocks * 3 / 5 } else { blocks / 3 };
            assert!(
                waits < few && reads < blocks * 3 / 2,
                "{order:?}: {reads} reads, {waits} waits, {blocks}"
            );
        }
    }
}

/// How many blocks the segments of a disk have.
fn blocks(disk: &MemoryDisk) -> u64 {
    let segments = disk.names().into_iter().filter(|name| name.starts_with("segment-"));
    segments.map(|name| disk.read(&name).map_or(0, |bytes| bytes.len() as u64 / (32 << 10))).sum()
}
