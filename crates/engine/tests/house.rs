//! Keeping house on a full disk.

use std::sync::Arc;

use overtake_engine::core::{Answer, Core, Opened, Out, Request};
use overtake_engine::{Content, LeaseRequest, NewMessage, Options, Target};
use overtake_lane::{Command, ConsumerId, Outcome, Refusal, Settings, Time};
use overtake_store::{Committer, MemoryDisk, StoreError};

const FILE: u64 = 64 << 10;
const NOW: Time = Time(1_000);

struct Engine {
    core: Core<()>,
    committer: Committer<MemoryDisk>,
}

impl Engine {
    fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        self.core.handle(NOW, request, ());
        self.core.keep_house();
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
        let content = Content { body: vec![0; 12_000].into(), ..Content::default() };
        let message = NewMessage { to: Target::Queue("q0".into()), content, ..NewMessage::default() };
        self.ask(Request::Publish { messages: vec![message], settlements: Vec::new() })
    }
}

/// Few messages, so that little is set aside for what becomes of them, and more queues than a rough guess has room for.
#[test]
fn a_full_disk_is_emptied_by_consuming_however_many_queues_there_are() {
    let disk = MemoryDisk::new(1);
    let options = Options { segment_bytes: FILE, ..Options::default() };
    let Opened { core, committer, .. } = Core::open(disk.clone(), &options, NOW).expect("it opens");
    let mut engine = Engine { core, committer };
    for queue in 0..20 {
        let (name, settings) = (format!("q{queue}").into(), Box::new(Settings::default()));
        engine.ask(Request::Do(Command::DeclareQueue { name, settings })).expect("declared");
    }
    disk.set_capacity(Some(8 * FILE));
    while engine.publish().is_ok() {}

    for pull in 0.. {
        let (queue, consumer) = (Arc::from("q0"), ConsumerId(pull));
        let lease = LeaseRequest { queue, max: 100, wait_ms: 0, visibility_ms: None };
        let Ok(Answer::Leased(messages)) = engine.ask(Request::Lease { consumer, lease }) else {
            panic!("it leases")
        };
        if messages.is_empty() {
            break;
        }
        let receipts = messages.iter().map(|message| message.receipt).collect();
        engine.ask(Request::Do(Command::Settle { receipts, outcome: Outcome::Ack })).expect("settled");
    }
    engine.publish().expect("there is room again");
}
