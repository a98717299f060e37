//! The pure model: one broker, one queue, a million messages waiting; a cycle is one publish, one lease and one ack, asked
//! through the public commands on one core.

use std::sync::Arc;
use std::time::Duration;

use overtake_lane::{
    Address, Broker, Command, Consume, ConsumerId, Effect, Options, Outcome, PickerKind, Place, Publish, Pull, Receipt,
    Scheme, Settings, Step, Time,
};

use crate::Plan;
use crate::reference::{self, Dice};
use crate::report::{Row, time};

const DEPTH: usize = 1_000_000;
/// Commands after which facts and effects are taken away, as an engine does with each batch.
const BATCH: usize = 256;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let cycles = plan.times(1_000_000);
    let consumer = |bench: Bench, lanes, window| bench.consumer(lanes, window, cycles);
    let strict = || Bench::new(PickerKind::Strict);
    let aging = || Bench::new(PickerKind::AgingMs(1_000));
    let weighted = || Bench::new(PickerKind::Weighted([("9".to_owned(), 5), ("3".to_owned(), 3)].into()));
    let row = |what: &str, took: Duration| Row::new(what, "cycles", cycles, took);
    vec![
        row("strict, 10 lanes, consumer, window 1", consumer(strict(), 10, 1)),
        row("strict, 10 lanes, consumer, acks by 64", consumer(strict(), 10, 64)),
        row("strict, 10 lanes, pulls of 1", strict().pulls(10, 1, cycles)),
        row("strict, 10 lanes, pulls of 64", strict().pulls(10, 64, cycles)),
        row("strict, 256 lanes, consumer, acks by 64", consumer(strict(), 256, 64)),
        row("aging, 10 lanes, consumer, acks by 64", consumer(aging(), 10, 64)),
        row("aging, 256 lanes, consumer, acks by 64", consumer(aging(), 256, 64)),
        row("weighted, 10 lanes, consumer, acks by 64", consumer(weighted(), 10, 64)),
        row("weighted, 256 lanes, consumer, acks by 64", consumer(weighted(), 256, 64)),
        Row::new("strict, 10 lanes, publish only, from empty", "messages", DEPTH, strict().publish_only(10)),
        reference::binary_heap(DEPTH, 10, cycles),
        reference::btree(DEPTH, 10, cycles),
        reference::memory_miss(),
        reference::memory_copy(),
    ]
}

struct Bench {
    broker: Broker,
    queue: Arc<str>,
    dice: Dice,
    step: Step,
    asked: usize,
    now: u64,
    /// Leases that are out.
    receipts: Vec<Receipt>,
    seen: usize,
}

impl Bench {
    fn new(picker: PickerKind) -> Self {
        let mut broker = Broker::new(Options { life: 1, ..Options::default() });
        let settings = Box::new(Settings { scheme: Scheme::Max(255), picker, ..Settings::default() });
        settings.validate().expect("sound settings");
        let queue: Arc<str> = "q".into();
        let mut step = Step::default();
        let declare = Command::DeclareQueue { name: Arc::clone(&queue), settings };
        broker.apply(Time(1), declare, &mut step).expect("a new queue");
        Self { broker, queue, dice: Dice::new(), step, asked: 0, now: 1_793_500_000_000, receipts: Vec::new(), seen: 0 }
    }

    fn ask(&mut self, command: Command) {
        self.broker.apply(Time(self.now), command, &mut self.step).expect("nothing speaks against it");
        self.asked += 1;
        for effect in &self.step.effects[self.seen..] {
            if let Effect::Deliver(delivery) = effect {
                self.receipts.push(delivery.receipt);
            }
        }
        self.seen = self.step.effects.len();
        if self.asked.is_multiple_of(BATCH) {
            self.step.clear();
            self.seen = 0;
            self.now += 1;
        }
    }

    fn publish(&mut self, lanes: u64) {
        let publish = Publish {
            to: Address::Queue(Arc::clone(&self.queue)),
            priority: (self.dice.roll(lanes) as i64).into(),
            id: None,
            key: None,
            ttl_ms: 0,
            delay_ms: 0,
            bytes: 256,
            place: Place(0),
        };
        self.ask(Command::Publish(publish));
    }

    fn ack(&mut self) {
        let receipts = self.receipts.clone();
        self.receipts.clear();
        self.ask(Command::Settle { receipts, outcome: Outcome::Ack });
    }

    fn fill(&mut self, lanes: u64) {
        for _ in 0..DEPTH {
            self.publish(lanes);
        }
    }

    fn publish_only(mut self, lanes: u64) -> Duration {
        time(|| self.fill(lanes))
    }

    /// One consumer that stays: each ack makes room, and the next lease comes with it.
    fn consumer(mut self, lanes: u64, window: u32, cycles: usize) -> Duration {
        self.fill(lanes);
        self.ask(Command::Consume(Consume {
            consumer: ConsumerId(1),
            queue: Arc::clone(&self.queue),
            window: Some(window),
            urgent: None,
            priority: 0,
        }));
        time(|| {
            for _ in 0..cycles / window as usize {
                for _ in 0..window {
                    self.publish(lanes);
                }
                self.ack();
            }
        })
    }

    /// Pulls: each is a request of its own.
    fn pulls(mut self, lanes: u64, max: u32, cycles: usize) -> Duration {
        self.fill(lanes);
        time(|| {
            for pull in 0..cycles / max as usize {
                for _ in 0..max {
                    self.publish(lanes);
                }
                self.ask(Command::Pull(Pull {
                    consumer: ConsumerId(pull as u64),
                    queue: Arc::clone(&self.queue),
                    max,
                    visibility_ms: None,
                    until: Time(self.now),
                }));
                self.ack();
            }
        })
    }
}

