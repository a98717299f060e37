//! Keeping house on a full disk.

use std::sync::Arc;

use overtake_engine::core::{Answer, Core, Opened, Out, Request};
use overtake_engine::{Content, Full, LeaseRequest, NewMessage, Options, Target, Watermarks};
use overtake_lane::{Asker, Command, ConsumerId, MetadataEntry, Outcome, Refusal, Settings, Time};
use overtake_store::{Committer, MemoryDisk, Space, StoreError};

const FILE: u64 = 64 << 10;
const NOW: Time = Time(1_000);

struct Engine {
    core: Core<()>,
    committer: Committer<MemoryDisk>,
    /// Leases asked for so far.
    pulls: u64,
    /// Something is asked in each turn.
    is_busy: bool,
    /// Most messages that cleaning wrote again in one turn.
    most_carried: u64,
}

fn options() -> Options {
    Options { segment_bytes: FILE, ..Options::default() }
}

impl Engine {
    fn open(disk: &MemoryDisk) -> Self {
        let Opened { core, committer, .. } = Core::open(disk.clone(), &options(), NOW).expect("it opens");
        Self { core, committer, pulls: 0, is_busy: false, most_carried: 0 }
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        self.core.handle(NOW, request, ());
        while self.core.is_clearing() {
            self.core.clear_on(7);
        }
        let before = self.core.carried_messages();
        self.core.keep_house();
        self.most_carried = self.most_carried.max(self.core.carried_messages() - before);
        while self.core.has_more_to_restate() && !self.is_busy {
            self.core.keep_house();
        }
        while let Some(batch) = self.core.take_batch() {
            self.committer.commit(&batch).expect("the disk is well");
        }
        self.committer.retire().expect("the disk is well");
        while self.core.wants_file() {
            match self.committer.prepare_file() {
                Ok(news) => self.core.file_ready(news),
                Err(StoreError::Full) => {
                    self.core.disk_full();
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        match self.core.take_outs().pop() {
            Some(Out::Answer { result, .. }) => result.map_err(|refused| refused.refusal),
            other => panic!("an answer, not {other:?}"),
        }
    }

    fn publish(&mut self) -> Result<Answer, Refusal> {
        self.publish_to("q0", 12_000)
    }

    fn publish_to(&mut self, queue: &str, len: usize) -> Result<Answer, Refusal> {
        let content = Content { body: vec![0; len].into(), ..Content::default() };
        let message = NewMessage { to: Target::Queue(queue.into()), content, ..NewMessage::default() };
        self.ask(Request::Publish { messages: vec![message], settlements: Vec::new() })
    }

    /// Leases and acknowledges all that is there.
    fn drain(&mut self) {
        let first = self.pulls;
        for pull in first.. {
            self.pulls = pull + 1;
            let (queue, consumer) = (Arc::from("q0"), ConsumerId(pull));
            let lease = LeaseRequest::new(queue, 100);
            let Ok(Answer::Leased(messages)) = self.ask(Request::Lease { consumer, lease }) else {
                panic!("it leases")
            };
            if messages.is_empty() {
                break;
            }
            let receipts = messages.iter().map(|message| message.receipt).collect();
            self.ask(Request::Do(Command::Settle { receipts, outcome: Outcome::Ack })).expect("settled");
        }
    }
}

#[test]
fn cleaning_writes_a_little_in_each_turn_and_keeps_up_with_what_is_published() {
    let mut engine = Engine::open(&MemoryDisk::new(1));
    for queue in ["q0", "kept"] {
        engine.ask(Request::Do(Command::declare(queue.into(), Box::default()))).expect("declared");
    }
    for _ in 0..300 {
        engine.publish_to("kept", 8_000).expect("there is room");
    }
    let live = engine.core.kept().1;
    let mut longest = 0;
    for _ in 0..1_000 {
        engine.publish().expect("there is room");
        engine.drain();
        longest = longest.max(engine.core.journal_bytes());
    }
    assert!(engine.core.carried_messages() > 3 * 300, "each more than once");
    assert!(engine.most_carried <= (128 + 16) / 8, "{} messages of 8 KB in one turn", engine.most_carried);
    assert!(longest < 4 * live, "a journal of {longest} bytes for {live}");
}

/// The prepared files have no room for it, and the next file may have.
#[test]
fn a_large_batch_waits_for_a_file_until_the_disk_says_no() {
    let disk = MemoryDisk::new(1);
    let mut engine = Engine::open(&disk);
    engine.ask(Request::Do(Command::declare("q0".into(), Box::default()))).expect("declared");
    let message = NewMessage { to: Target::Queue("q0".into()), ..NewMessage::default() };
    let batch = || Request::Publish { messages: vec![message.clone(); 50], settlements: Vec::new() };
    let small = Request::Publish { messages: vec![message.clone()], settlements: Vec::new() };
    let by = Asker::default();
    let publish = |core: &mut Core<()>| {
        core.handle(NOW, batch(), ());
        let Some(Out::Answer { result, .. }) = core.take_outs().pop() else { panic!("an answer") };
        result.map_err(|refused| refused.refusal)
    };
    while !engine.core.must_wait(by, &batch()) {
        publish(&mut engine.core).expect("what need not wait has room");
    }
    assert!(engine.core.wants_file() && engine.core.is_starved());
    assert!(!engine.core.must_wait(by, &small), "what fits need not wait");
    assert!(engine.core.must_wait(by, &batch()));

    engine.core.disk_full();
    assert!(!engine.core.is_starved() && !engine.core.must_wait(by, &batch()));
    assert_eq!(publish(&mut engine.core).err(), Some(Refusal::StoreFull));

    while engine.core.is_at_end() || engine.core.must_wait(by, &batch()) {
        while let Some(batch) = engine.core.take_batch() {
            engine.committer.commit(&batch).expect("the disk is well");
        }
        let file = engine.committer.prepare_file().expect("the disk has room");
        engine.core.file_ready(file);
    }
    publish(&mut engine.core).expect("there is room now");
}

/// Few messages, so that little is set aside for what becomes of them, and more queues than a rough guess has room for.
#[test]
fn a_full_disk_is_emptied_by_consuming_however_many_queues_there_are() {
    let disk = MemoryDisk::new(1);
    let mut engine = Engine::open(&disk);
    for queue in 0..20 {
        let (name, settings) = (format!("q{queue}").into(), Box::new(Settings::default()));
        engine.ask(Request::Do(Command::declare(name, settings))).expect("declared");
    }
    disk.set_capacity(Some(8 * FILE));
    while engine.publish().is_ok() {}

    engine.drain();
    engine.publish().expect("there is room again");
}

/// More of it than fits a file: until it is written again nothing that stands before it can be given back.
#[test]
fn a_full_disk_is_emptied_by_consuming_however_much_metadata_there_is() {
    let disk = MemoryDisk::new(1);
    let mut engine = Engine::open(&disk);
    engine.ask(Request::Do(Command::declare("q0".into(), Box::default()))).expect("declared");
    disk.set_capacity(Some(16 * FILE));
    for round in 0..8_u8 {
        for n in 0..12 {
            let entries = vec![MetadataEntry::set(&format!("key{n}"), &[round; 12_000])];
            engine.ask(Request::Do(Command::SetMetadata { entries })).expect("set");
        }
        let mut published = 0;
        while engine.publish().is_ok() {
            published += 1;
        }
        assert!(published > 5, "{published} messages of 12,000 bytes in round {round}");
        engine.drain();
    }
    drop(engine);
    let Opened { core, .. } = Core::<()>::open(disk, &options(), NOW).expect("it opens again");
    assert!(
        core.broker().metadata().count() == 12
            && core.broker().metadata().all(|(_, value)| value[..] == [7; 12_000])
    );
}

/// The note is small, and without it the lease would last for an hour longer over a restart.
#[test]
fn the_clock_is_noted_on_a_full_disk() {
    let disk = MemoryDisk::new(1);
    let mut engine = Engine::open(&disk);
    engine.ask(Request::Do(Command::declare("q0".into(), Box::default()))).expect("declared");
    disk.set_capacity(Some(8 * FILE));
    while engine.publish().is_ok() {}
    assert!(engine.core.is_at_end());
    engine.core.set_clock_ahead(3_600_000);
    let lease = |max| Request::Lease { consumer: ConsumerId(1), lease: LeaseRequest::new("q0".into(), max) };
    let Ok(Answer::Leased(leased)) = engine.ask(lease(1)) else { panic!("it leases") };

    drop(engine);
    let mut engine = Engine::open(&disk);
    let Ok(Answer::Leased(again)) = engine.ask(lease(1)) else { panic!("it leases") };
    assert_eq!(again[0].receipt.seq, leased[0].receipt.seq, "its lease is over");
}

/// A crash between two records would leave a lease that a wrong clock gave, and nobody would know by how much it was wrong.
#[test]
fn the_clock_is_noted_in_the_record_of_the_lease() {
    let disk = MemoryDisk::new(1);
    let mut engine = Engine::open(&disk);
    engine.ask(Request::Do(Command::declare("q0".into(), Box::default()))).expect("declared");
    engine.publish().expect("there is room");
    engine.core.set_clock_ahead(3_600_000);
    let lease = || Request::Lease { consumer: ConsumerId(1), lease: LeaseRequest::new("q0".into(), 1) };

    engine.core.handle(NOW, lease(), ());

    let batch = engine.core.take_batch().expect("the lease is recorded");
    assert_eq!(batch.records(), 1, "the lease and the clock");
    engine.committer.commit(&batch).expect("the disk is well");
    drop(engine);
    let Ok(Answer::Leased(again)) = Engine::open(&disk).ask(lease()) else { panic!("it leases") };
    assert_eq!(again.len(), 1, "its lease is over");
}

/// Nothing but numbers: no disk is that small.
#[test]
fn what_the_engine_is_told_of_the_disk_decides_whether_it_takes_messages_and_files() {
    let watermarks = Watermarks { low: Some(10 * FILE), high: Some(20 * FILE) };
    let options = Options { segment_bytes: FILE, watermarks, ..Options::default() };
    let Opened { core, committer, .. } = Core::open(MemoryDisk::new(1), &options, NOW).expect("it opens");
    let mut engine = Engine { core, committer, pulls: 0, is_busy: false, most_carried: 0 };
    let (name, settings) = ("q0".into(), Box::new(Settings::default()));
    engine.ask(Request::Do(Command::declare(name, settings))).expect("declared");
    for (free, says) in [
        (Some(21), "taken"),
        (Some(10), "taken, but no file"),
        (Some(9), "refused"),
        (None, "taken"),
        (Some(20), "taken"),
        (Some(9), "refused"),
        (Some(20), "refused"),
        (Some(21), "taken"),
    ] {
        engine.core.disk_space(free.map(|files| Space { free: files * FILE, total: 100 * FILE }));
        let is_taken = engine.publish().is_ok();
        assert_eq!(is_taken, engine.core.full().is_none(), "{free:?}: {:?}", engine.core.full());
        let said = match (is_taken, engine.core.is_short()) {
            (true, false) => "taken",
            (true, true) => "taken, but no file",
            (false, _) => "refused",
        };
        assert_eq!(said, says, "{free:?}");
    }
    // Publishing ends with the files there are; what must always go gets another one.
    engine.core.disk_space(Some(Space { free: 10 * FILE, total: 100 * FILE }));
    while engine.publish().is_ok() {}
    assert!(matches!(engine.core.full(), Some(Full::AtLow { .. })));
    let tail = engine.core.tail();
    while engine.core.tail().0 < tail.0 + 4 * FILE {
        let (queue, consumer) = (Arc::from("q0"), ConsumerId(engine.core.tail().0));
        let lease = LeaseRequest::new(queue, 1);
        let Ok(Answer::Leased(messages)) = engine.ask(Request::Lease { consumer, lease }) else {
            panic!("it leases")
        };
        let receipts = messages.iter().map(|message| message.receipt).collect();
        assert!(!engine.core.is_held(), "leases go on");
        engine.ask(Request::Do(Command::Settle { receipts, outcome: Outcome::Release })).expect("put back");
    }
}

/// What a deleted queue had in memory is released step by step, and nobody waits for that.
#[test]
fn a_deletion_is_done_at_once_and_a_store_that_ends_meanwhile_has_nothing_to_make_up_for() {
    let disk = MemoryDisk::new(1);
    let mut engine = Engine::open(&disk);
    let declare = || Request::Do(Command::declare("q0".into(), Box::default()));
    engine.ask(declare()).expect("declared");
    for _ in 0..5 {
        engine.publish().expect("there is room");
    }
    let delete = Command::DeleteQueue { name: "q0".into(), if_empty: false, if_unused: false };
    engine.core.handle(NOW, Request::Do(delete), ());
    assert!(matches!(engine.core.take_outs()[..], [Out::Answer { result: Ok(Answer::Count(5)), .. }]));
    assert!(engine.core.is_clearing());
    assert_eq!(engine.core.kept().0, 5, "all of it is still in memory");
    engine.core.clear_on(2);
    assert_eq!(engine.core.kept().0, 3);
    engine.core.handle(NOW, declare(), ());
    engine.core.take_outs();
    while let Some(batch) = engine.core.take_batch() {
        engine.committer.commit(&batch).expect("the disk is well");
    }
    drop(engine);
    disk.kill();

    let mut engine = Engine::open(&disk);
    assert!(!engine.core.is_clearing());
    assert_eq!((engine.core.messages(), engine.core.broker().queue_count()), (0, 1));
    engine.ask(declare()).expect("it is there");
    engine.publish().expect("it takes messages");
    assert_eq!(engine.core.messages(), 1);
}

/// All definitions are written again, so that the journal can begin after them: a few in each turn, however many there are.
#[test]
fn whoever_asks_while_definitions_are_written_again_is_answered_before_all_of_them_are() {
    const QUEUES: usize = 100;
    let disk = MemoryDisk::new(1);
    let mut engine = Engine::open(&disk);
    let declare = |name: &str| Request::Do(Command::declare(name.into(), Box::default()));
    for queue in 0..QUEUES {
        engine.ask(declare(&format!("q{queue}"))).expect("declared");
    }
    engine.is_busy = true;
    while !engine.core.has_more_to_restate() {
        engine.publish().expect("there is room");
        engine.drain();
    }
    let (began, mut turns, mut longest) = (engine.core.tail().0, 0, 0);
    let oldest = |engine: &Engine| engine.core.tail().0 - engine.core.journal_bytes();
    // Until what stands before them is given back.
    while oldest(&engine) + FILE <= began {
        let before = engine.core.tail();
        engine.publish().expect("it is answered");
        longest = longest.max(engine.core.tail().0 - before.0);
        turns += 1;
        let gone =
            Command::DeleteQueue { name: format!("q{turns}").into(), if_empty: true, if_unused: false };
        engine.ask(Request::Do(gone)).expect("deleted");
        engine.ask(declare(&format!("r{turns}"))).expect("declared");
    }
    assert!(turns > 10, "{turns} turns");
    assert!(longest < 24_000, "{longest} bytes in one turn, with a message of 12,000");

    drop(engine);
    disk.kill();
    let engine = Engine::open(&disk);
    let broker = engine.core.broker();
    assert_eq!(broker.queue_count(), QUEUES);
    let is_there = |name: String| broker.id_of(overtake_lane::VhostId::DEFAULT, &name).is_ok();
    for turn in 1..=turns {
        assert!(!is_there(format!("q{turn}")) && is_there(format!("r{turn}")), "turn {turn}");
    }
}
