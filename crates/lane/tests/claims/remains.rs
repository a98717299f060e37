//! What is left of messages that are gone all at once, and how it is cleared.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use overtake_lane::{
    Address, Asker, Binding, Broker, BrowseOrder, Command, Consume, ConsumerId, Destination, Effect, Fact,
    Given, LaneChoice, LastValue, LeaseTerm, MessageView, Options, Order, Outcome, Place, Publish, Pull,
    RateLimit, Receipt, Seq, Settings, Status, Step, Time, VhostId, Which,
};

use crate::watch::browse;

/// A broker with a queue `q`, in which messages stand in every way.
struct Stage {
    broker: Broker,
    facts: Vec<Fact>,
    /// All leases that were given.
    receipts: Vec<Receipt>,
}

const DELETE: fn() -> Command =
    || Command::DeleteQueue { name: "q".into(), if_empty: false, if_unused: false };

impl Stage {
    fn new(settings: Settings) -> Self {
        let mut stage =
            Self { broker: Broker::new(Options::default()), facts: Vec::new(), receipts: Vec::new() };
        stage.ask(Command::declare("q".into(), Box::new(settings)));
        stage
    }

    fn ask(&mut self, command: Command) -> Step {
        let mut step = Step::default();
        self.broker.apply(Time(1), command, &mut step).expect("it is taken");
        self.facts.extend(step.facts.iter().cloned());
        self.receipts.extend(step.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver(delivery) => Some(delivery.receipt),
            _ => None,
        }));
        step
    }

    /// Messages whose places are these.
    fn publish(&mut self, places: std::ops::Range<u64>) {
        self.publish_keyed(places, false);
    }

    fn publish_keyed(&mut self, places: std::ops::Range<u64>, all: bool) {
        for place in places {
            self.ask(Command::Publish(Publish {
                to: Address::Queue("q".into()),
                priority: Given::Number(place as i64 % 3),
                id: Some(format!("m{place}").into()),
                origin: None,
                key: (all || place % 2 == 0).then(|| format!("k{}", place % 5).into()),
                key_weight: None,
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
        let first = self.receipts.len();
        self.ask(Command::Consume(consume));
        let receipts = self.receipts[first..].to_vec();
        for (receipt, outcome) in receipts.into_iter().zip([
            Outcome::Reject,
            Outcome::Nack { delay_ms: None },
            Outcome::Nack { delay_ms: None },
        ]) {
            self.ask(Command::Settle { receipts: vec![receipt], outcome });
        }
    }

    /// Somebody leases a few for a while.
    fn pull(&mut self) {
        self.ask(Command::Pull(Pull {
            consumer: ConsumerId(9),
            queue: "q".into(),
            max: 4,
            max_bytes: 0,
            term: LeaseTerm::OfQueue,
            lanes: LaneChoice::default(),
            until: Time(1),
        }));
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

#[test]
fn a_deleted_virtual_host_is_gone_at_once_and_its_queues_are_freed_a_few_at_a_time() {
    const QUEUES: u64 = 50;
    for most in [1, 100, usize::MAX] {
        let mut stage = Stage::new(Settings::default());
        stage.ask(Command::DeclareVhost { name: "v".into(), settings: Box::default() });
        let asker = Asker::in_vhost(stage.broker.vhost("v").expect("it is there").vhost);
        let by = |command| Command::By { asker, command: Box::new(command) };
        for queue in 0..QUEUES {
            let name: Arc<str> = format!("q{queue}").into();
            stage.ask(by(Command::declare(Arc::clone(&name), Box::default())));
            let to = Destination::Queue(Arc::clone(&name));
            stage.ask(by(Command::Bind(Box::new(Binding::new("amq.topic", to, "a.*")))));
            for place in [2 * queue, 2 * queue + 1] {
                stage.ask(by(Command::Publish(Publish {
                    to: Address::Queue(Arc::clone(&name)),
                    priority: Given::Number(1),
                    id: None,
                    origin: None,
                    key: None,
                    key_weight: None,
                    ttl_ms: None,
                    base_ttl_ms: None,
                    delay_ms: 0,
                    bytes: 10,
                    place: Place(place),
                })));
            }
        }
        let step = stage.ask(Command::DeleteVhost { name: "v".into() });
        assert!(matches!(step.facts[0], Fact::VhostDeleted { .. }));
        assert_eq!(step.facts.len() as u64, 1 + QUEUES, "it is said of each queue, and of no binding");
        assert!(released(&step).is_empty(), "none in the step of the command");
        assert_eq!((stage.broker.queue_count(), stage.broker.remains().count() as u64), (1, 2 * QUEUES));
        let given = stage.clear(most);
        assert!(given.iter().all(|places| places.len() <= most), "at most {most}");
        let mut given: Vec<u64> = given.into_iter().flatten().collect();
        given.sort_unstable();
        assert!(given.into_iter().eq(0..2 * QUEUES), "each once");
        assert_eq!(stage.broker.topology(VhostId::DEFAULT).expect("`/`").exchanges().count(), 6);
    }
}

// ---- purges ----

fn purge(status: Option<Status>) -> Command {
    Command::Purge { queue: "q".into(), status, expect: None }
}

/// Every message as it is seen.
fn messages(broker: &Broker) -> Vec<MessageView> {
    browse(broker, VhostId::DEFAULT, "q", BrowseOrder::Dispatch)
}

/// All that is seen of a queue, and what comes of all that may be done to it from then on.
fn future(mut stage: Stage) -> String {
    let mut told = format!("{:?}\n", stage.broker.view(Time(1), VhostId::DEFAULT, "q"));
    let ids: Vec<_> = messages(&stage.broker).into_iter().map(|view| view.id).collect();
    for id in &ids {
        let found = stage.broker.message(VhostId::DEFAULT, "q", id).expect("it is found by its id");
        writeln!(told, "{found:?}").expect("there is memory");
    }
    let leased = messages(&stage.broker).into_iter().filter(|view| view.status == Status::Leased).take(3);
    let seqs: Vec<Seq> = leased.map(|view| view.seq).collect();
    let receipts = stage.receipts.iter().filter(|receipt| seqs.contains(&receipt.seq)).copied().collect();
    let release = Command::Settle { receipts, outcome: Outcome::Release };
    let extra = Consume { window: Some(4), ..Consume::new(ConsumerId(2), "q".into()) };
    let died = Command::Replay { queue: "q".into(), which: Which::All, promote: None };
    for command in [release, Command::Consume(extra), died, Command::Cancel { consumer: ConsumerId(1) }] {
        writeln!(told, "{:?}", effects(&stage.ask(command))).expect("there is memory");
    }
    stage.publish_keyed(2_000..2_020, true);
    for ms in [400, 600, 900, 1_100, 5_000, 60_000] {
        let mut step = Step::default();
        stage.broker.tick(Time(ms), &mut step);
        writeln!(told, "{ms}: {:?}", effects(&step)).expect("there is memory");
    }
    writeln!(told, "{:?}", stage.broker.view(Time(60_000), VhostId::DEFAULT, "q")).expect("there is memory");
    for view in messages(&stage.broker) {
        writeln!(told, "{view:?}").expect("there is memory");
    }
    told
}

/// What is not the clearing of what is gone.
fn effects(step: &Step) -> Vec<&Effect> {
    step.effects.iter().filter(|effect| !matches!(effect, Effect::Released(_))).collect()
}

fn varied() -> Vec<Settings> {
    let rate = || RateLimit { messages: 2, per_ms: 700 };
    vec![
        Settings::default(),
        Settings { max_length: 130, visibility_timeout_ms: 800, ..Settings::default() },
        Settings { order: Order::Fifo, run_timeout_ms: 300, ..Settings::default() },
        Settings { fair_keys: true, key_rate_limit: Some(rate()), ..Settings::default() },
        Settings { group_limit: 3, rate_limit: Some(rate()), ..Settings::default() },
        Settings { last_value: Some(LastValue::Key), ..Settings::default() },
    ]
}

/// A queue whose messages stand in every way, some held by a consumer and some by a pull.
fn stage(settings: &Settings) -> Stage {
    let mut stage = Stage::new(settings.clone());
    let is_last_value = settings.last_value.is_some();
    for round in 0..3 {
        let places = if is_last_value { 1..6 } else { 0..40 };
        stage.publish_keyed(places.start + 40 * round..places.end + 40 * round, is_last_value);
        match round {
            0 => stage.consume(9),
            1 => stage.pull(),
            _ => {}
        }
    }
    stage
}

#[test]
fn a_purge_leaves_what_it_does_not_take_just_as_if_the_others_were_removed_one_by_one() {
    for settings in varied() {
        for status in [None, Some(Status::Ready), Some(Status::Delayed), Some(Status::Dead)] {
            let (mut purged, mut removed) = (stage(&settings), stage(&settings));
            let is_meant = |view: &MessageView| match status {
                None => matches!(view.status, Status::Ready | Status::Delayed),
                Some(status) => view.status == status,
            };
            let seqs: Vec<Seq> =
                messages(&removed.broker).iter().filter(|view| is_meant(view)).map(|view| view.seq).collect();
            let all = messages(&purged.broker).len();
            let taken = seqs.len();
            let step = purged.ask(purge(status));
            let is_one = step.facts.iter().any(|fact| matches!(fact, Fact::Purged { .. }));
            let is_easy = matches!(status, None | Some(Status::Ready))
                || (settings.group_limit == 0 && !settings.fair_keys);
            assert_eq!(is_one, is_easy && taken > 0, "{status:?} {settings:?}");
            removed.ask(Command::Remove { queue: "q".into(), which: Which::Seqs(seqs) });
            assert_eq!(messages(&purged.broker).len(), all - taken);
            let given = purged.clear(5).concat().len();
            assert_eq!(given, if is_one { taken } else { 0 }, "{status:?} {settings:?}");
            assert_eq!(future(purged), future(removed), "{status:?} {settings:?}");
        }
    }
}

#[test]
fn a_purge_is_one_fact_however_many_it_takes() {
    let mut stage = Stage::new(Settings::default());
    stage.publish(0..1_000);
    stage.consume(20);
    let step = stage.ask(purge(None));
    let [Fact::Purged { before: Seq(1_001), ref kept, .. }] = step.facts[..] else {
        panic!("{:?}", step.facts)
    };
    assert_eq!(kept.len(), messages(&stage.broker).len());
    let released: Vec<u64> = stage.clear(100).concat();
    assert_eq!(released.len() + kept.len(), 1_000);
    let (mut again, mut step) = (Broker::new(Options::default()), Step::default());
    for fact in stage.facts {
        again.fold(fact, &mut step).expect("every fact is founded");
    }
    let seqs: BTreeSet<Seq> = messages(&again).iter().map(|view| view.seq).collect();
    assert!(seqs.iter().eq(kept), "what was held is there after a restart, and nothing else");
}

/// A purge of a queue of which nobody has anything.
#[test]
fn a_purge_of_nothing_says_nothing() {
    let mut stage = Stage::new(Settings::default());
    let step = stage.ask(purge(None));
    assert!(step.facts.is_empty() && step.effects.is_empty());
}
