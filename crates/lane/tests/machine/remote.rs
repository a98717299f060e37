//! A queue whose messages are kept elsewhere beside one that keeps its own: whatever happens, the same consumers get the same messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use overtake_lane::{
    Address, Asker, Broker, Command, Consume, ConsumerId, Delivery, Effect, Get, Given, LaneChoice,
    LeaseTerm, Options, Outcome, Place, Priority, Publish, Pull, PutBack, QueueId, Receipt, Refusal, Reply,
    Seq, SessionId, Settings, Step, Terms, Time, UrgentCredit, VhostId, Want, WindowId,
};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::elsewhere::{Elsewhere, follow, remote};

const Q: QueueId = QueueId(0);

#[derive(Clone, Debug)]
enum Op {
    Publish {
        priority: i32,
        bytes: u32,
    },
    Consume {
        session: u64,
        consume: Box<Consume>,
    },
    Cancel(Index),
    Leave(Index),
    Took(Index, u32),
    Window {
        session: u64,
        size: u32,
    },
    Pull {
        session: u64,
        pull: Box<Pull>,
        wait_ms: u64,
    },
    Get {
        session: u64,
        no_ack: bool,
    },
    Settle(Index, Outcome),
    End(u64),
    /// So many times two ms.
    Wait(u64),
    Rule {
        single: bool,
        timeout_ms: u64,
    },
}

fn queue() -> Arc<str> {
    "q".into()
}

fn session() -> impl Strategy<Value = u64> {
    1..3_u64
}

fn consume() -> impl Strategy<Value = Op> {
    let urgent = prop::option::weighted(
        0.3,
        (0..10_i32, 1..3_u32).prop_map(|(at, extra)| UrgentCredit { at: Priority(at), extra }),
    );
    let rarely = || prop::bool::weighted(0.1);
    (session(), 1..4_u32, any::<bool>(), urgent, (0..2_i32, rarely(), prop::bool::weighted(0.3))).prop_map(
        |(session, window, shares, urgent, (priority, exclusive, no_ack))| {
            let shared = shares.then_some(WindowId { session: SessionId(session), number: 1 });
            let consume = Consume {
                window: Some(window),
                shared,
                urgent,
                priority,
                exclusive,
                no_ack,
                ..Consume::new(ConsumerId(0), queue())
            };
            Op::Consume { session, consume: Box::new(consume) }
        },
    )
}

fn pull() -> impl Strategy<Value = Op> {
    let term = prop_oneof![
        1 => Just(LeaseTerm::OfQueue),
        2 => prop_oneof![Just(0_u64), Just(40)].prop_map(LeaseTerm::Ms),
        2 => Just(LeaseTerm::Session),
    ];
    let at_least = prop_oneof![2 => Just(i32::MIN), 1 => 0..10_i32].prop_map(Priority);
    let except =
        prop::collection::vec((0..10_i32).prop_map(|level| Arc::<str>::from(level.to_string())), 0..3);
    let lanes = (at_least, except, prop::bool::weighted(0.3))
        .prop_map(|(at_least, except, one)| LaneChoice { at_least, except: except.into(), one });
    let lanes = prop_oneof![Just(LaneChoice::default()), lanes];
    let max_bytes = prop_oneof![2 => Just(0_u64), 1 => 1..12_u64];
    (session(), 1..4_u32, max_bytes, term, lanes, 0..30_u64).prop_map(
        |(session, max, max_bytes, term, lanes, twos)| {
            let (consumer, until) = (ConsumerId(0), Time(0));
            let pull = Pull { consumer, queue: queue(), max, max_bytes, term, lanes, until };
            Op::Pull { session, pull: Box::new(pull), wait_ms: 2 * twos + 1 }
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let outcome = prop_oneof![
        3 => Just(Outcome::Ack),
        1 => Just(Outcome::Nack { delay_ms: None }),
        1 => Just(Outcome::Release),
    ];
    prop_oneof![
        14 => (0..10_i32, 0..6_u32).prop_map(|(priority, bytes)| Op::Publish { priority, bytes }),
        4 => consume(),
        6 => pull(),
        2 => (session(), any::<bool>()).prop_map(|(session, no_ack)| Op::Get { session, no_ack }),
        12 => (any::<Index>(), outcome).prop_map(|(index, outcome)| Op::Settle(index, outcome)),
        2 => any::<Index>().prop_map(Op::Cancel),
        1 => any::<Index>().prop_map(Op::Leave),
        3 => (any::<Index>(), 1..3_u32).prop_map(|(index, messages)| Op::Took(index, messages)),
        1 => (session(), 0..5_u32).prop_map(|(session, size)| Op::Window { session, size }),
        1 => session().prop_map(Op::End),
        5 => (1..30_u64).prop_map(Op::Wait),
        1 => (any::<bool>(), prop_oneof![Just(0_u64), Just(50)])
            .prop_map(|(single, timeout_ms)| Op::Rule { single, timeout_ms }),
    ]
}

/// What came of a step: who was given what, how often that was leased by then, and whether for good; who is over, and how.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    given: BTreeMap<ConsumerId, Vec<(Seq, u32, Time, bool)>>,
    over: BTreeSet<(ConsumerId, &'static str)>,
}

impl Seen {
    fn of(step: &Step) -> Self {
        let mut seen = Self::default();
        for effect in &step.effects {
            match effect {
                Effect::Deliver(Delivery { consumer, receipt, count, deadline, settled, .. }) => {
                    let given = (receipt.seq, *count, *deadline, settled.is_some());
                    seen.given.entry(*consumer).or_default().push(given);
                }
                Effect::Served { consumer } => drop(seen.over.insert((*consumer, "served"))),
                Effect::Cancelled { consumer } => drop(seen.over.insert((*consumer, "cancelled"))),
                Effect::TimedOut { consumer, .. } => drop(seen.over.insert((*consumer, "timed out"))),
                _ => {}
            }
        }
        seen
    }
}

/// One broker that keeps the messages, and one that only knows the takers.
struct Pair {
    now: Time,
    settings: Settings,
    whole: Broker,
    takers: Broker,
    kept: Elsewhere,
    next: u64,
    /// Everybody who ever took.
    known: Vec<ConsumerId>,
    /// What is leased, by the receipts of the broker that keeps it.
    leased: BTreeMap<Seq, Receipt>,
}

impl Pair {
    fn new() -> Self {
        let now = Time(1_000_000);
        let settings = Settings { visibility_timeout_ms: 70, ..Settings::default() };
        let (mut whole, mut takers) = (Broker::new(Options::default()), Broker::new(Options::default()));
        let declare = Command::declare(queue(), Box::new(settings.clone()));
        whole.apply(now, declare, &mut Step::default()).expect("made");
        remote(&mut takers, now, Q, "q", &settings, None, &mut Step::default());
        let (kept, known, leased) = (Elsewhere::default(), Vec::new(), BTreeMap::new());
        Self { now, settings, whole, takers, kept, next: 0, known, leased }
    }

    /// Asks both the same; `other` is how the one without messages is asked.
    fn ask(
        &mut self,
        asker: Asker,
        command: Command,
        other: impl FnOnce(&mut Self, &mut Step) -> Result<(), Refusal>,
    ) {
        self.pass();
        let mut step = Step::default();
        let reply = self.whole.apply_by(self.now, asker, command, &mut step);
        let mut taken = Step::default();
        let done = other(self, &mut taken);
        let reply = match reply {
            Ok(Reply::Each(results)) => results.into_iter().collect(),
            reply => reply.map(drop),
        };
        assert_eq!(done, reply);
        self.compare(&step, &mut taken);
    }

    fn both(&mut self, session: u64, command: Command) {
        let asker = Asker::connected(SessionId(session));
        let same = command.clone();
        self.ask(asker, command, move |pair, step| {
            pair.takers.apply_by(pair.now, asker, same, step).map(drop)
        });
    }

    /// Time has passed, and what it brings about is done, before anything is asked.
    fn pass(&mut self) {
        let (mut step, mut taken) = (Step::default(), Step::default());
        self.whole.tick(self.now, &mut step);
        self.kept.tick(self.now);
        self.takers.tick(self.now, &mut taken);
        self.compare(&step, &mut taken);
    }

    fn compare(&mut self, step: &Step, taken: &mut Step) {
        follow(&mut self.takers, self.now, Q, &mut self.kept, taken);
        assert_eq!(Seen::of(taken), Seen::of(step));
        for effect in &step.effects {
            if let Effect::Deliver(delivery) = effect {
                self.leased.insert(delivery.receipt.seq, delivery.receipt);
            }
        }
        self.compare_leases();
    }

    /// The same is leased, and held by the same.
    fn compare_leases(&mut self) {
        let whole = &self.whole;
        let lease_of = |seq: Seq| whole.lease_of(VhostId::DEFAULT, "q", seq);
        self.leased.retain(|seq, receipt| lease_of(*seq).is_some_and(|(lease, _)| lease == receipt.lease));
        let leased = self.kept.leased(Q);
        let seqs: Vec<Seq> = leased.iter().map(|(receipt, _)| receipt.seq).collect();
        assert!(self.leased.keys().eq(&seqs), "leased are {:?} and {seqs:?}", self.leased);
        for (receipt, terms) in leased {
            let taker = lease_of(receipt.seq).and_then(|(_, taken)| taken).map(|(consumer, _)| consumer);
            let holder = taker.filter(|_| terms == Terms::Held);
            assert_eq!(self.takers.holder_of(&receipt), holder, "{receipt:?}");
        }
    }

    fn newcomer(&mut self) -> ConsumerId {
        self.next += 1;
        self.known.push(ConsumerId(self.next));
        ConsumerId(self.next)
    }

    fn one_known(&self, index: Index) -> ConsumerId {
        if self.known.is_empty() { ConsumerId(0) } else { *index.get(&self.known) }
    }

    fn act(&mut self, op: &Op) {
        match *op {
            Op::Publish { priority, bytes } => {
                let publish = Publish {
                    to: Address::Queue(queue()),
                    priority: Given::Number(priority.into()),
                    id: None,
                    origin: None,
                    key: None,
                    key_weight: None,
                    ttl_ms: None,
                    base_ttl_ms: None,
                    delay_ms: 0,
                    bytes,
                    place: Place(0),
                };
                self.ask(Asker::default(), Command::Publish(publish), |pair, _| {
                    pair.kept.publish(pair.now, priority, bytes);
                    Ok(())
                });
            }
            Op::Consume { session, ref consume } => {
                let consumer = self.newcomer();
                self.both(session, Command::Consume(Consume { consumer, ..(**consume).clone() }));
            }
            Op::Pull { session, ref pull, wait_ms } => {
                let (consumer, until) = (self.newcomer(), self.now.after(wait_ms));
                self.both(session, Command::Pull(Pull { consumer, until, ..(**pull).clone() }));
            }
            Op::Cancel(index) => self.both(1, Command::Cancel { consumer: self.one_known(index) }),
            Op::Leave(index) => self.both(1, Command::Leave { consumer: self.one_known(index) }),
            Op::Took(index, messages) => {
                self.both(1, Command::Took { consumer: self.one_known(index), messages });
            }
            Op::Window { session, size } => {
                let window = WindowId { session: SessionId(session), number: 1 };
                self.both(session, Command::SetWindow { window, size, joining: Vec::new() });
            }
            Op::End(session) => {
                self.both(session, Command::EndSession { session: SessionId(session) });
            }
            Op::Get { session, no_ack } => self.get(session, no_ack),
            Op::Settle(index, outcome) => self.settle(index, outcome),
            // Leases end at even moments and pulls give up at odd ones: what comes back when a pull gives up it gets or does not, by chance.
            Op::Wait(twos) => {
                for _ in 0..2 * twos {
                    self.now = self.now.after(1);
                    self.pass();
                }
            }
            Op::Rule { single, timeout_ms } => {
                self.settings.single_active_consumer = single;
                self.settings.consumer_timeout_ms = timeout_ms;
                let declare = Command::declare(queue(), Box::new(self.settings.clone()));
                self.ask(Asker::default(), declare, |pair, step| {
                    remote(&mut pair.takers, pair.now, Q, "q", &pair.settings, None, step);
                    Ok(())
                });
            }
        }
    }

    fn get(&mut self, session: u64, no_ack: bool) {
        let get = Get { consumer: self.newcomer(), queue: queue(), no_ack };
        let asker = Asker::connected(SessionId(session));
        let terms = if no_ack { Terms::Settled } else { Terms::Held };
        self.ask(asker, Command::Get(get.clone()), |pair, step| {
            let want = Want { max: 1, max_bytes: 0, terms, choice: LaneChoice::default() };
            let message = pair.kept.lease(pair.now, &want).pop();
            message.map_or(Ok(()), |message| pair.takers.hand_to(pair.now, asker, &get, message, step))
        });
    }

    fn settle(&mut self, index: Index, outcome: Outcome) {
        self.pass();
        let leased = self.kept.leased(Q);
        if leased.is_empty() {
            return;
        }
        let (receipt, terms) = *index.get(&leased);
        let receipts = vec![self.leased[&receipt.seq]];
        self.ask(Asker::default(), Command::Settle { receipts, outcome }, |pair, step| {
            let comes_back = match outcome {
                Outcome::Ack => None,
                Outcome::Release => Some(PutBack::Released),
                Outcome::Nack { .. } | Outcome::Reject | Outcome::Timeout => Some(PutBack::Failed),
            };
            pair.kept.end(&receipt, comes_back);
            assert_eq!(pair.takers.settled(pair.now, &receipt, step), terms == Terms::Held);
            assert!(!pair.takers.settled(pair.now, &receipt, step), "it was settled before");
            Ok(())
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn the_same_consumers_get_the_same_messages_wherever_those_are_kept(ops in prop::collection::vec(op(), 1..120)) {
        let mut pair = Pair::new();
        for op in &ops {
            pair.act(op);
        }
    }
}
