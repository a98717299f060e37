//! The pure model: one broker, one queue, a million messages waiting; a cycle is one publish, one lease and one ack, asked
//! through the public commands on one core.

use std::sync::Arc;
use std::time::Duration;

use overtake_lane::{
    Address, Asker, Broker, Command, Consume, ConsumerId, Effect, LaneChoice, LeaseTerm, Options, Origin,
    Outcome, PickerKind, Place, Publish, Pull, Receipt, RunId, Scheme, SessionId, Settings, SpillBounds,
    SpillPlan, Step, Time, WindowId,
};

use crate::Plan;
use crate::reference::{self, Dice};
use crate::report::{Row, time};

const DEPTH: usize = 1_000_000;
/// Commands after which facts and effects are taken away, as an engine does with each batch.
const BATCH: usize = 256;
const PLANS: usize = 1_000;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let cycles = plan.times(1_000_000);
    let weights = || [("9".to_owned(), 5), ("3".to_owned(), 3)].into();
    let pickers = [
        ("strict", PickerKind::Strict),
        ("aging", PickerKind::AgingMs(1_000)),
        ("weighted", PickerKind::Weighted(weights())),
    ];
    let mut rows = Vec::new();
    let mut cycle = |what: String, work: &dyn Fn() -> Duration| {
        if plan.wants(&what) {
            rows.push(Row::new(what, "cycles", cycles, work()));
        }
    };
    let strict = || Bench::new(PickerKind::Strict);
    cycle("strict, 10 lanes, consumer, window 1".to_owned(), &|| strict().consumer(10, 1, cycles));
    cycle("strict, 10 lanes, pulls of 1".to_owned(), &|| strict().pulls(10, 1, cycles));
    cycle("strict, 10 lanes, pulls of 64".to_owned(), &|| strict().pulls(10, 64, cycles));
    for (name, picker) in pickers {
        for lanes in [10, 256] {
            let what = format!("{name}, {lanes} lanes, consumer, acks by 64");
            cycle(what, &|| Bench::new(picker.clone()).consumer(lanes, 64, cycles));
        }
    }
    for connections in [1, 100, 5_000] {
        let what = format!(
            "strict, 10 lanes, {connections} connections, each with a window that its consumers share"
        );
        let cycles = cycles.min(100_000);
        if plan.wants(&what) {
            rows.push(Row::new(what, "cycles", cycles, strict().shared_windows(connections, cycles)));
        }
    }
    let what = "planning what of 10,000 queues leaves memory";
    if plan.wants(what) {
        rows.push(Row::new(what, "plans", PLANS, strict().plans(10_000)));
    }
    let what = "strict, 10 lanes, publish from empty";
    if plan.wants(what) {
        rows.push(Row::new(what, "messages", DEPTH, strict().publish_only(10)));
    }
    // A producer whose messages come in order, and one of whose messages every other one is left out: the most gaps there can be.
    for (what, stride) in [("numbered in order", 1), ("numbered with gaps", 2)] {
        let what = format!("strict, 10 lanes, publish from empty, {what}");
        if plan.wants(&what) {
            rows.push(Row::new(what, "messages", DEPTH, strict().numbered(10, stride)));
        }
    }
    if plan.wants("reference") {
        rows.push(reference::binary_heap(DEPTH, 10, cycles));
        rows.push(reference::btree(DEPTH, 10, cycles));
        rows.push(reference::memory_miss());
        rows.push(reference::memory_copy());
    }
    rows
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
        let declare = Command::declare(Arc::clone(&queue), settings);
        broker.apply(Time(1), declare, &mut step).expect("a new queue");
        Self {
            broker,
            queue,
            dice: Dice::new(),
            step,
            asked: 0,
            now: 1_793_500_000_000,
            receipts: Vec::new(),
            seen: 0,
        }
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
        self.publish_of(None, lanes);
    }

    fn publish_of(&mut self, origin: Option<Origin>, lanes: u64) {
        let publish = Publish {
            to: Address::Queue(Arc::clone(&self.queue)),
            priority: (self.dice.roll(lanes) as i64).into(),
            id: None,
            origin: origin.map(Box::new),
            key: None,
            key_weight: None,
            ttl_ms: None,
            base_ttl_ms: None,
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

    /// By a producer that says now and then below which it publishes no more.
    fn numbered(mut self, lanes: u64, stride: u64) -> Duration {
        time(|| {
            for sequence in (0..).step_by(stride as usize).take(DEPTH) {
                let floor = sequence / 100_000 * 100_000;
                self.publish_of(Origin::new("producer", sequence, floor), lanes);
            }
        })
    }

    /// One consumer that stays: each ack makes room, and the next lease comes with it.
    fn consumer(mut self, lanes: u64, window: u32, cycles: usize) -> Duration {
        self.fill(lanes);
        self.ask(Command::Consume(Consume {
            window: Some(window),
            ..Consume::new(ConsumerId(1), Arc::clone(&self.queue))
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

    /// Of each connection one consumer, whose window other queues might share.
    fn shared_windows(mut self, connections: u64, cycles: usize) -> Duration {
        for connection in 1..=connections {
            let session = SessionId(connection);
            let consume = Command::Consume(Consume {
                window: None,
                shared: Some(WindowId { session, number: 1 }),
                ..Consume::new(ConsumerId(connection), Arc::clone(&self.queue))
            });
            let window =
                Command::SetWindow { window: WindowId { session, number: 1 }, size: 1, joining: Vec::new() };
            for command in [window, consume] {
                let asker = Asker { session: Some(session), ..Asker::default() };
                self.ask(Command::By { asker, command: Box::new(command) });
            }
        }
        time(|| {
            for _ in 0..cycles {
                self.publish(10);
                self.ack();
            }
        })
    }

    /// A message waits in each of so many queues, and many in one.
    fn plans(mut self, queues: usize) -> Duration {
        for queue in 1..queues {
            self.queue = format!("q{queue}").into();
            self.ask(Command::declare(Arc::clone(&self.queue), Box::default()));
            self.publish(10);
        }
        self.queue = "q".into();
        for _ in 0..10_000 {
            self.publish(10);
        }
        let bounds =
            SpillBounds { keep: 10, keep_bytes: 10_000, most: 64, most_bytes: 1 << 20, looks: 8 << 10 };
        time(|| {
            for run in 1..=PLANS as u64 {
                let SpillPlan::Run(queue, _) = self.broker.plan_spill(RunId(run), bounds) else {
                    panic!("there is enough");
                };
                self.broker.unspilled(queue, RunId(run));
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
                    max_bytes: 0,
                    term: LeaseTerm::OfQueue,
                    lanes: LaneChoice::default(),
                    until: Time(self.now),
                }));
                self.ack();
            }
        })
    }
}
