//! Producers that number what they publish: nothing of one is taken twice, however long ago it came and in whatever order.

use std::collections::BTreeSet;

use overtake_lane::{
    Address, Broker, Command, Effect, Fact, Few, Given, Options, Origin, Outcome, PRODUCER_NAME_LEN_MAX,
    PRODUCERS_BYTES_MAX, Place, Publish, Refusal, Reply, Step, Time, VhostId,
};
use proptest::prelude::*;

const NOW: Time = Time(1_000);
const DAY_MS: u64 = 24 * 3_600_000;

fn numbered(origin: Option<Origin>) -> Publish {
    Publish {
        to: Address::Queue("q".into()),
        priority: Given::Missing,
        id: None,
        origin: origin.map(Box::new),
        key: None,
        key_weight: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes: 1,
        place: Place(7),
    }
}

fn of(producer: &str, sequence: u64, floor: u64) -> Publish {
    numbered(Some(Origin::new(producer, sequence, floor).expect("it is well named")))
}

/// A broker, and the facts of which another one could be made.
struct Bench {
    broker: Broker,
    step: Step,
    facts: Vec<Fact>,
}

impl Bench {
    fn new() -> Self {
        let mut bench =
            Self { broker: Broker::new(Options::default()), step: Step::default(), facts: Vec::new() };
        bench.ask(NOW, Command::declare("q".into(), Box::default())).expect("it is made");
        bench
    }

    fn ask(&mut self, now: Time, command: Command) -> Result<Reply, Refusal> {
        self.step.clear();
        let reply = self.broker.apply(now, command, &mut self.step);
        self.facts.extend(self.step.facts.iter().cloned());
        reply
    }

    /// Whether it was taken now, and not before. What is not taken needs its content no more.
    fn is_taken(&mut self, now: Time, publish: Publish) -> bool {
        let Ok(Reply::Published(copies)) = self.ask(now, Command::Publish(publish)) else {
            panic!("it is answered")
        };
        let released = self.step.effects.contains(&Effect::Released(Place(7)));
        assert_ne!(copies.is_empty(), !released, "content that nobody needs is let go");
        !copies.is_empty()
    }

    fn takes(&mut self, producer: &str, sequence: u64, floor: u64) -> bool {
        self.is_taken(NOW, of(producer, sequence, floor))
    }

    fn again(&self) -> Self {
        let mut broker = Broker::new(Options::default());
        for fact in &self.facts {
            broker.fold(fact.clone(), &mut Step::default()).expect("it follows from those before");
        }
        Self { broker, step: Step::default(), facts: self.facts.clone() }
    }

    fn keys(&self) -> Vec<String> {
        self.broker.metadata().map(|(key, _)| key.to_string()).collect()
    }
}

#[test]
fn what_was_taken_is_not_taken_again() {
    let mut bench = Bench::new();
    assert!(bench.takes("a", 5, 0));
    assert!(!bench.takes("a", 5, 0));
    assert!(bench.takes("a", 3, 0), "in any order");
    assert!(bench.takes("b", 5, 0), "each producer has its own numbers");
    let mut bench = bench.again();
    assert!(!bench.takes("a", 3, 0) && !bench.takes("b", 5, 0), "nor after a restart");
    assert!(bench.takes("a", 4, 0));
    assert!(bench.is_taken(NOW, numbered(None)) && bench.is_taken(NOW, numbered(None)));
}

#[test]
fn what_was_consumed_meanwhile_is_known_all_the_same() {
    let mut bench = Bench::new();
    assert!(bench.takes("a", 1, 0));
    let purge = Command::Purge { queue: "q".into(), status: None, expect: None };
    assert_eq!(bench.ask(NOW, purge), Ok(Reply::Count(1)));
    assert!(!bench.takes("a", 1, 0));
    assert_eq!(bench.ask(NOW, Command::PublishUntold(of("a", 1, 0))), Ok(Reply::Count(1)), "as if it were");
    let purge = Command::Purge { queue: "q".into(), status: None, expect: None };
    assert_eq!(bench.ask(NOW, purge), Ok(Reply::Count(0)));
}

#[test]
fn below_its_floor_a_producer_publishes_nothing_and_nothing_is_kept() {
    let mut bench = Bench::new();
    for block in 0..12 {
        assert!(bench.takes("a", block * 4_096 + 7, 0));
    }
    assert_eq!(bench.keys().len(), 13);
    assert!(bench.takes("a", 50_000, 50_000));
    assert!(!bench.takes("a", 8, 0), "it came late");
    // So many go at once that a publish stays short, and the rest with the next.
    assert!(bench.takes("a", 50_001, 50_000));
    assert_eq!(bench.keys(), ["producers/0/a", "producers/0/a/000000000000000c"]);
}

#[test]
fn blocks_that_are_whole_take_no_room() {
    let mut bench = Bench::new();
    for sequence in (0..3 * 4_096).rev().filter(|sequence| *sequence != 4_100) {
        assert!(bench.takes("a", sequence, 0));
    }
    assert_eq!(bench.keys(), ["producers/0/a", "producers/0/a/0000000000000001"]);
    assert!(bench.takes("a", 4_100, 0));
    assert_eq!(bench.keys(), ["producers/0/a"]);
    assert_eq!(bench.broker.metadata_of("producers/0/a").map(|value| value.len()), Some(4 * 8));
    assert!(!bench.takes("a", 4_100, 0) && !bench.takes("a", 0, 0) && bench.takes("a", 3 * 4_096, 0));
}

#[test]
fn in_a_transaction_each_is_taken_once_or_none_is() {
    let mut bench = Bench::new();
    let publishes = vec![of("a", 1, 0), of("a", 2, 0), of("a", 1, 0)];
    let reply = bench.ask(NOW, Command::Transact { publishes, settlements: Vec::new() });
    let Ok(Reply::Published(copies)) = reply else { panic!("{reply:?}") };
    let which: Few<usize> = copies.iter().map(|copy| copy.publish).collect();
    assert_eq!(which[..], [0, 1]);

    let nowhere = Publish { to: Address::Queue("none".into()), ..of("a", 4, 0) };
    let transact = |publishes| Command::Transact { publishes, settlements: Vec::new() };
    assert_eq!(bench.ask(NOW, transact(vec![of("a", 3, 0), nowhere])), Err(Refusal::NoSuchQueue));
    assert!(bench.takes("a", 3, 0) && bench.takes("a", 4, 0));

    let receipt = overtake_lane::Receipt {
        queue: overtake_lane::QueueId(9),
        seq: overtake_lane::Seq(1),
        lease: overtake_lane::LeaseId(1),
    };
    let settlements = vec![(receipt, Outcome::Ack)];
    let stale = bench.ask(NOW, Command::Transact { publishes: vec![of("a", 5, 0)], settlements });
    assert_eq!(stale, Err(Refusal::StaleReceipt));
    assert!(bench.takes("a", 5, 0));
}

#[test]
fn what_no_queue_gets_may_have_one_the_next_time() {
    let mut bench = Bench::new();
    let lost = Publish {
        to: Address::Exchange {
            name: "amq.direct".into(),
            routing_key: "nowhere".into(),
            more_keys: Vec::new(),
            marks: std::sync::Arc::new(overtake_lane::Headers::default()),
            mandatory: false,
        },
        ..of("a", 1, 0)
    };
    assert_eq!(bench.ask(NOW, Command::PublishUntold(lost)), Ok(Reply::Count(0)));
    assert!(bench.takes("a", 1, 0));
}

#[test]
fn names_are_letters_digits_and_three_marks() {
    let long = "n".repeat(PRODUCER_NAME_LEN_MAX + 1);
    for bad in ["", "a/b", "ä", "a b", &long] {
        assert_eq!(Origin::new(bad, 1, 0), None, "{bad:?}");
    }
    let origin = Origin::new("Ab-1_2.x", 3, 9).expect("it is one");
    assert_eq!((origin.producer(), origin.sequence(), origin.floor()), ("Ab-1_2.x", 3, 3));
}

#[test]
fn who_has_not_published_for_a_fortnight_is_forgotten_when_another_comes() {
    let mut bench = Bench::new();
    let at = |days: u64| Time(NOW.0 + days * DAY_MS);
    assert!(bench.is_taken(at(0), of("old", 1, 0)) && bench.is_taken(at(0), of("kept", 1, 0)));
    assert!(bench.is_taken(at(10), of("kept", 2, 0)) && bench.is_taken(at(14), of("new", 1, 0)));
    let of_kept = |key: &String| !key.starts_with("producers/0/old");
    assert!(bench.keys().iter().all(of_kept), "{:?}", bench.keys());
    assert!(!bench.is_taken(at(14), of("kept", 1, 0)) && bench.is_taken(at(14), of("old", 1, 0)));
}

#[test]
fn without_room_who_was_not_used_for_longest_is_forgotten_first() {
    let (mut bench, later) = (Bench::new(), Time(NOW.0 + DAY_MS));
    // A block each, and so a key of a hundred bytes.
    let blocks = PRODUCERS_BYTES_MAX / 160;
    let mut fill = |name: &str, now: Time, from: u64| {
        for block in from..from + blocks {
            bench.ask(now, Command::Publish(of(name, block * 4_096, 0))).expect("it is taken");
        }
        let kept = bench.broker.metadata_size().cost();
        bench.facts.clear();
        kept
    };
    assert!(fill("old", NOW, 0) < PRODUCERS_BYTES_MAX);
    assert!(fill("own", later, 0) < PRODUCERS_BYTES_MAX + 1_000);
    let is_known = |bench: &mut Bench, name, block: u64| !bench.is_taken(later, of(name, block * 4_096, 0));
    assert!(is_known(&mut bench, "own", 0) && is_known(&mut bench, "own", blocks - 1));
    assert!(!is_known(&mut bench, "old", 0), "its lowest went first");
    assert!(is_known(&mut bench, "old", blocks - 1));
}

#[test]
fn producers_go_with_their_virtual_host() {
    let mut bench = Bench::new();
    let declare = Command::DeclareVhost { name: "v".into(), settings: Box::default() };
    let Ok(Reply::VhostDeclared(vhost)) = bench.ask(NOW, declare) else { panic!("it is made") };
    assert_ne!(vhost, VhostId::DEFAULT);
    let asker = overtake_lane::Asker { vhost, ..Default::default() };
    let by = |command| Command::By { asker, command: Box::new(command) };
    bench.ask(NOW, by(Command::declare("q".into(), Box::default()))).expect("made");
    bench.ask(NOW, by(Command::Publish(of("a", 1, 0)))).expect("taken");
    assert_eq!(bench.keys().len(), 2);
    bench.ask(NOW, Command::DeleteVhost { name: "v".into() }).expect("deleted");
    assert_eq!(bench.keys().len(), 0);
    assert_eq!(bench.again().keys().len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a set of all that was ever taken.
    #[test]
    fn as_if_every_number_were_remembered(
        acts in proptest::collection::vec((0_u64..3, 0_u64..20_000, 0_u64..4, prop::bool::weighted(0.05)), 1..400),
    ) {
        let mut bench = Bench::new();
        let mut taken: BTreeSet<(u64, u64)> = BTreeSet::new();
        let mut floors = [0_u64; 3];
        for (producer, draw, near, restarts) in acts {
            // Many close together, some far apart; mostly above the floor, which rises now and then.
            let sequence = if near == 0 { draw } else { draw % 64 + 4_064 };
            let floor = if draw % 97 == 0 { sequence } else { 0 };
            let mine = &mut floors[producer as usize];
            let is_known = sequence < *mine || taken.contains(&(producer, sequence));
            prop_assert_eq!(bench.takes(["a", "b", "c"][producer as usize], sequence, floor), !is_known);
            if !is_known {
                *mine = floor.max(*mine);
                taken.insert((producer, sequence));
            }
            if restarts {
                bench = bench.again();
            }
        }
    }
}
