//! Messages leave memory, and memory stays within its bound.

use std::sync::Arc;

use overtake_engine::core::{Answer, Core, Opened, Out, Request, Spiller};
use overtake_engine::{Content, LeaseRequest, NewMessage, Options, Refused, Target};
use overtake_lane::{Command, ConsumerId, Outcome, Settings, Time};
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
        let options = Options { segment_bytes: 1 << 20, memory_bytes: MEMORY, seed: 7, ..Options::default() };
        let Opened { core, committer, spiller, .. } =
            Core::open(disk.clone(), &options, NOW).expect("it opens");
        Self { core, committer, spiller, pulls: 0 }
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Refused> {
        self.core.handle(NOW, request, ());
        let answer = self.core.take_outs().into_iter().find_map(|out| match out {
            Out::Answer { result, .. } => Some(result),
            _ => None,
        });
        self.keep_house();
        answer.expect("every request is answered")
    }

    fn keep_house(&mut self) {
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
        let message = |priority: i64| NewMessage {
            to: Target::Queue("q".into()),
            priority: priority.into(),
            content: Content { body: vec![b'x'; 100].into(), ..Content::default() },
            ..NewMessage::default()
        };
        let messages = priorities.map(message).collect();
        self.ask(Request::Publish { messages, settlements: Vec::new() }).expect("it is taken");
    }

    fn lease_and_ack(&mut self, max: u32) -> Vec<(i64, u64)> {
        self.pulls += 1;
        let lease = LeaseRequest { queue: "q".into(), max, wait_ms: 0, visibility_ms: None };
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
    let declare = Command::DeclareQueue { name: Arc::from("q"), settings: Box::new(Settings::default()) };
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
