//! What is left of messages that are gone all at once, and how it is cleared.

use overtake_lane::{
    Address, Broker, Command, Consume, ConsumerId, Effect, Fact, Given, Options, Outcome, Place, Publish,
    Receipt, Settings, Step, Time, VhostId,
};

/// A broker with a queue `q`, in which messages stand in every way.
struct Stage {
    broker: Broker,
    facts: Vec<Fact>,
}

const DELETE: fn() -> Command =
    || Command::DeleteQueue { name: "q".into(), if_empty: false, if_unused: false };

impl Stage {
    fn new(settings: Settings) -> Self {
        let mut stage = Self { broker: Broker::new(Options::default()), facts: Vec::new() };
        stage.ask(Command::declare("q".into(), Box::new(settings)));
        stage
    }

    fn ask(&mut self, command: Command) -> Step {
        let mut step = Step::default();
        self.broker.apply(Time(1), command, &mut step).expect("it is taken");
        self.facts.extend(step.facts.iter().cloned());
        step
    }

    /// Messages whose places are these.
    fn publish(&mut self, places: std::ops::Range<u64>) {
        for place in places {
            self.ask(Command::Publish(Publish {
                to: Address::Queue("q".into()),
                priority: Given::Number(place as i64 % 3),
                id: Some(format!("m{place}").into()),
                origin: None,
                key: (place % 2 == 0).then(|| format!("k{}", place % 5).into()),
                ttl_ms: (place % 7 == 0).then_some(1_000),
                base_ttl_ms: None,
                delay_ms: if place % 11 == 0 { 500 } else { 0 },
                bytes: 10,
                place: Place(place),
            }));
        }
    }

    /// A consumer takes some: it rejects the first, puts back the next, and holds the rest.
    fn consume(&mut self, window: u32) {
        let consume = Consume { window: Some(window), ..Consume::new(ConsumerId(1), "q".into()) };
        let step = self.ask(Command::Consume(consume));
        let receipts: Vec<Receipt> = (step.effects.iter())
            .filter_map(|effect| match effect {
                Effect::Deliver(delivery) => Some(delivery.receipt),
                _ => None,
            })
            .collect();
        for (receipt, outcome) in receipts.into_iter().zip([
            Outcome::Reject,
            Outcome::Nack { delay_ms: None },
            Outcome::Nack { delay_ms: None },
        ]) {
            self.ask(Command::Settle { receipts: vec![receipt], outcome });
        }
    }

    /// Clears so many at once, and answers the places that were released each time.
    fn clear(&mut self, most: usize) -> Vec<Vec<u64>> {
        let mut all = Vec::new();
        while self.broker.has_remains() {
            let mut step = Step::default();
            self.broker.clear_remains(most, &mut step);
            assert!(step.facts.is_empty(), "nothing that is to be durable");
            all.push(released(&step));
            assert!(all.len() < 10_000, "it comes to an end");
        }
        all
    }
}

fn released(step: &Step) -> Vec<u64> {
    let places = step.effects.iter().filter_map(|effect| match effect {
        Effect::Released(place) => Some(place.0),
        _ => None,
    });
    places.collect()
}

#[test]
fn a_deleted_queue_is_gone_at_once_and_its_contents_are_released_a_few_at_a_time() {
    let keyed = Settings { fair_keys: true, group_limit: 2, ..Settings::default() };
    for settings in [Settings::default(), keyed] {
        for most in [1, 7, 1_000, usize::MAX] {
            let mut stage = Stage::new(settings.clone());
            stage.publish(0..1_500);
            stage.consume(20);
            let step = stage.ask(DELETE());
            assert!(matches!(step.facts[..], [Fact::QueueDeleted { .. }]), "{:?}", step.facts);
            assert!(released(&step).is_empty(), "none in the step of the command");
            assert_eq!(stage.broker.remains().count(), 1_500);
            let given = stage.clear(most);
            assert!(given.iter().all(|places| places.len() <= most), "at most {most}");
            let mut given: Vec<u64> = given.into_iter().flatten().collect();
            given.sort_unstable();
            assert!(given.into_iter().eq(0..1_500), "each once");
        }
    }
}

#[test]
fn what_is_left_of_a_deleted_queue_has_nothing_to_do_with_the_next_of_its_name() {
    let mut stage = Stage::new(Settings::default());
    stage.publish(0..100);
    stage.ask(DELETE());
    stage.ask(Command::declare("q".into(), Box::default()));
    stage.publish(100..120);
    let view = |broker: &Broker| {
        let view = broker.view(Time(1), VhostId::DEFAULT, "q").expect("it is there");
        view.lanes.iter().map(|lane| lane.ready + lane.delayed).sum::<u64>()
    };
    assert_eq!(view(&stage.broker), 20);
    stage.ask(DELETE());
    let given: Vec<u64> = stage.clear(30).into_iter().flatten().collect();
    assert_eq!(given.len(), 120);
    assert!(given[..100].iter().all(|place| *place < 100), "the first queue is cleared first");
}

#[test]
fn an_empty_queue_leaves_nothing() {
    let mut stage = Stage::new(Settings::default());
    stage.ask(DELETE());
    assert!(!stage.broker.has_remains());
}

#[test]
fn a_recovery_leaves_nothing_to_be_cleared() {
    let mut stage = Stage::new(Settings::default());
    stage.publish(0..50);
    stage.ask(DELETE());
    let (mut again, mut step) = (Broker::new(Options::default()), Step::default());
    for fact in stage.facts {
        again.fold(fact, &mut step).expect("every fact is founded");
    }
    assert_eq!(released(&step).len(), 50);
    assert!(!again.has_remains());
}
