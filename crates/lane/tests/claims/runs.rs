//! Messages that wait in runs: what a run may be, and how sparse ones are rewritten.

use std::sync::Arc;

use overtake_lane::{
    Address, ApplyTo, Backlog, Broker, BrowseOrder, Command, Consume, ConsumerId, DeadLetterTo, Definition,
    Effect, Fact, Given, LaneChoice, LeaseTerm, Options, Order, Ordinals, Overflow, Pattern, Place, Policy,
    PolicyKind, Priority, Publish, Pull, QueueId, RUN_LEN_MAX, Refusal, Reply, Rewritten, RunId, RunRecord,
    Scheme, Seq, Settings, SpillBounds, SpillPlan, Status, Step, Time, VhostId, Which,
};
use proptest::prelude::*;

use crate::watch::browse;
use crate::watch::shelf::Shelf;

const NOW: Time = Time(1_000_000);
const Q: QueueId = QueueId(0);

/// A broker, what it spilled, and every fact so far.
struct Stage {
    broker: Broker,
    shelf: Arc<Shelf>,
    facts: Vec<Fact>,
}

impl Stage {
    fn new(settings: Settings) -> Self {
        Self::with(Options::default(), settings)
    }

    fn with(options: Options, settings: Settings) -> Self {
        let shelf = Arc::new(Shelf::default());
        let broker = Broker::with_backlog(options, shelf.clone());
        let mut stage = Self { broker, shelf, facts: Vec::new() };
        stage.ask(Command::declare("q".into(), Box::new(settings)));
        stage
    }

    fn ask(&mut self, command: Command) -> Vec<Effect> {
        let mut step = Step::default();
        self.broker.apply(NOW, command, &mut step).expect("nothing speaks against it");
        self.facts.append(&mut step.facts);
        step.effects
    }

    fn publish(&mut self, priorities: &[i64]) {
        for priority in priorities {
            self.ask(Command::Publish(plain(*priority)));
        }
    }

    fn remove(&mut self, seqs: &[u64]) {
        let which = Which::Seqs(seqs.iter().copied().map(Seq).collect());
        self.ask(Command::Remove { queue: "q".into(), which });
    }

    /// Writes a run of at most so many messages.
    fn spill(&mut self, run: u64, most: usize) {
        self.spill_within(run, most, all_of(most).most_bytes);
    }

    fn spill_within(&mut self, run: u64, most: usize, most_bytes: u64) {
        let bounds = SpillBounds { most_bytes, ..all_of(most) };
        let SpillPlan::Run(queue, messages) = self.broker.plan_spill(RunId(run), bounds) else {
            panic!("there are some");
        };
        self.shelf.put(RunId(run), messages);
        let mut step = Step::default();
        self.broker.spilled(queue, RunId(run), &mut step);
        self.facts.append(&mut step.facts);
    }

    /// Plans to rewrite runs; answers ordinals as text, or that it cannot be done.
    fn plan(&mut self, run: u64, of: &[u64]) -> String {
        let of: Vec<RunId> = of.iter().copied().map(RunId).collect();
        let Some(pieces) = self.broker.plan_rewrite(Q, RunId(run), &of) else { return "no".to_owned() };
        let read =
            |(run, range): &(RunId, std::ops::Range<u32>)| self.shelf.read(*run, range.start, range.len());
        self.shelf.put(RunId(run), pieces.iter().flat_map(read).collect());
        let told = pieces.iter().map(|(run, range)| format!("{}:{}-{}", run.0, range.start, range.end - 1));
        told.collect::<Vec<String>>().join(" ")
    }

    fn rewritten(&mut self, run: u64) -> Step {
        let mut step = Step::default();
        self.broker.rewritten(Q, RunId(run), &mut step);
        self.facts.extend(step.facts.iter().cloned());
        step
    }

    /// A broker made of the facts that this keeps, and the effects.
    fn folded(&self, keep: impl Fn(&Fact) -> bool) -> (Broker, Step) {
        let mut broker = Broker::with_backlog(Options::default(), self.shelf.clone());
        let mut step = Step::default();
        for fact in self.facts.iter().filter(|fact| keep(fact)) {
            broker.fold(fact.clone(), &mut step).expect("it is founded");
        }
        broker.wake(NOW, &mut step);
        (broker, step)
    }
}

/// Nothing is kept in memory.
fn all_of(most: usize) -> SpillBounds {
    SpillBounds { keep: 0, keep_bytes: 0, most, most_bytes: 1_000, looks: 100_000 }
}

fn plain(priority: i64) -> Publish {
    Publish {
        to: Address::Queue("q".into()),
        priority: Given::from(priority),
        id: None,
        origin: None,
        key: None,
        key_weight: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes: 10,
        place: Place(7),
    }
}

fn fifo() -> Settings {
    Settings { order: Order::Fifo, ..Settings::default() }
}

fn seqs(broker: &Broker) -> Vec<u64> {
    browse(broker, VhostId::DEFAULT, "q", BrowseOrder::Published).iter().map(|view| view.seq.0).collect()
}

/// Run, waiting, count.
fn runs(broker: &Broker) -> Vec<(u64, u64, u32)> {
    broker.runs().map(|run| (run.run.0, run.waiting, run.count)).collect()
}

/// What is left in a run of four when its first message has expired, of which another one expires later and the third never does.
fn left_on_disk(check_entire_queue_on_cleanup: bool) -> (Vec<(u64, u64, u32)>, Vec<u64>) {
    let mut stage = Stage::new(Settings { check_entire_queue_on_cleanup, ..fifo() });
    for ttl_ms in [Some(1_000), Some(2_500), Some(60_000), None] {
        let base = Publish { ttl_ms, ..plain(4) };
        stage.ask(Command::Publish(base));
    }
    stage.spill(1, 4);
    let mut step = Step::default();
    stage.broker.wake(NOW.after(1_000), &mut step);
    (runs(&stage.broker), seqs(&stage.broker))
}

#[test]
fn a_run_is_looked_through_again_and_again_or_once() {
    assert_eq!(left_on_disk(true), (vec![(1, 2, 4)], vec![2, 3, 4]), "what expires soon was brought in");
    assert_eq!(left_on_disk(false), (vec![(1, 1, 4)], vec![2, 3, 4]), "all that expires was brought in");
}

/// What is in quarantine waits again once it can be read; whatever happened to the rest, and whether the run was said again meanwhile.
/// Messages live so long; their run is over at 2,000 ms. How many facts say what became of them, and how many messages expired and are there.
fn expired(settings: Settings, ttls_ms: &[Option<u64>]) -> (usize, u64, usize) {
    let mut stage = Stage::new(settings);
    for ttl_ms in ttls_ms {
        stage.ask(Command::Publish(Publish { ttl_ms: *ttl_ms, ..plain(4) }));
    }
    stage.spill(1, ttls_ms.len());
    let before = stage.facts.len();
    let mut step = Step::default();
    stage.broker.tick(NOW.after(2_000), &mut step);
    stage.facts.append(&mut step.facts);
    let lanes = |broker: &Broker| broker.view(NOW, VhostId::DEFAULT, "q").expect("it is there").lanes;
    let expired = lanes(&stage.broker).iter().map(|lane| lane.expired).sum();
    let (again, _) = stage.folded(|_| true);
    assert_eq!(seqs(&again), seqs(&stage.broker));
    (stage.facts.len() - before, expired, seqs(&stage.broker).len())
}

#[test]
fn a_run_of_which_all_is_over_is_dropped_as_a_whole() {
    let drops = || Settings { dead_letter: DeadLetterTo::Drop, ..fifo() };
    let all = [Some(1_000), Some(1_500), Some(2_000)];
    assert_eq!(expired(drops(), &all), (1, 3, 0), "one fact says it of all");
    assert_eq!(expired(drops(), &[all[0], all[1], Some(2_001)]), (2, 2, 1), "one is not over");
    assert_eq!(expired(drops(), &[all[0], None, all[2]]), (2, 2, 1), "one never is");
    let keeps = Settings { dead_letter: DeadLetterTo::Keep, dead_letter_expired: true, ..fifo() };
    assert_eq!(expired(keeps, &all), (3, 0, 3), "they are dead letters");
}

/// What is leased to a consumer that is pushed to leaves no fact.
#[test]
fn what_is_held_of_a_run_stays_when_the_rest_of_it_expires_or_is_evicted() {
    for ttl_ms in [Some(1_000), None] {
        let drops = Settings { dead_letter: DeadLetterTo::Drop, ..fifo() };
        let mut stage = Stage::new(drops.clone());
        stage.publish(&[4]);
        for _ in 1..500 {
            stage.ask(Command::Publish(Publish { ttl_ms, ..plain(4) }));
        }
        stage.spill_within(1, usize::MAX, u64::MAX);
        let consume = Consume { window: Some(1), ..Consume::new(ConsumerId(1), "q".into()) };
        stage.ask(Command::Consume(consume));
        assert!(!runs(&stage.broker).is_empty(), "a part of the run waits");
        if ttl_ms.is_none() {
            stage.ask(Command::declare("q".into(), Box::new(Settings { max_length: 1, ..drops })));
            stage.publish(&[4, 4]);
            assert!(runs(&stage.broker).is_empty(), "all but one are evicted");
        }
        let mut step = Step::default();
        stage.broker.tick(NOW.after(2_000), &mut step);
        stage.facts.append(&mut step.facts);
        let (again, _) = stage.folded(|_| true);
        assert!(seqs(&stage.broker).contains(&1), "it is held");
        assert!(seqs(&again).contains(&1), "{:?} of {:?}", seqs(&again), stage.facts);
    }
}

#[test]
fn what_is_in_quarantine_waits_for_a_recovery_that_can_read_it() {
    for removed in [&[][..], &[1], &[4, 5], &[1, 2, 3, 4, 5, 6, 7, 8]] {
        let mut stage = Stage::new(fifo());
        stage.publish(&[4; 8]);
        stage.spill(1, 8);
        stage.shelf.damage(RunId(1), [2, 3]);
        let mut step = Step::default();
        stage.broker.lose(Q, RunId(1), 2..4, &mut step);
        assert!(matches!(step.effects[..], [Effect::Forgotten { messages: 2, .. }]) && step.facts.is_empty());
        stage.remove(removed);
        let is_lost = |seq: &u64| [3, 4].contains(seq);
        let whole: Vec<u64> = (1..=8).filter(|seq| is_lost(seq) || !removed.contains(seq)).collect();
        let left: Vec<u64> = whole.iter().copied().filter(|seq| !is_lost(seq)).collect();
        assert_eq!(seqs(&stage.broker), left, "{removed:?}");
        assert_eq!(stage.broker.quarantined(Q, RunId(1)), 2);
        let restated = stage.broker.run_fact(Q, RunId(1)).expect("something of it is in quarantine");
        for is_readable in [true, false] {
            let again = if is_readable { Vec::new() } else { vec![2, 3] };
            stage.shelf.damage(RunId(1), again);
            let expected = if is_readable { &whole } else { &left };
            // The journal no longer has them.
            let (mut folded, mut step) = stage.folded(|fact| !matches!(fact, Fact::Stored { .. }));
            assert_eq!(&seqs(&folded), expected, "{removed:?}, by the facts");
            folded.fold(restated.clone(), &mut step).expect("it is founded");
            assert_eq!(&seqs(&folded), expected, "{removed:?}, and said again");
        }
        stage.ask(Command::Purge { queue: "q".into(), status: None, expect: None });
        assert!(stage.broker.quarantined(Q, RunId(1)) == 0 && stage.broker.run_fact(Q, RunId(1)).is_none());
        stage.shelf.damage(RunId(1), []);
        assert!(seqs(&stage.folded(|_| true).0).is_empty(), "{removed:?}: a purge holds for it");
    }
}

#[test]
fn what_waits_in_a_run_is_told_apart_from_what_is_in_memory() {
    let mut stage = Stage::new(fifo());
    let counts = |stage: &Stage| {
        let view = stage.broker.view(NOW, VhostId::DEFAULT, "q").expect("it is there");
        let lane = &view.lanes[0];
        (lane.ready, lane.ready_bytes, lane.spilled, lane.spilled_bytes)
    };
    stage.publish(&[0; 4]);
    assert_eq!(counts(&stage), (4, 40, 0, 0));
    stage.spill(1, 3);
    assert_eq!(counts(&stage), (4, 40, 3, 30));
    stage.remove(&[2]);
    assert_eq!(counts(&stage), (3, 30, 2, 20));
}

/// In the order of dispatch.
fn order(broker: &Broker) -> Vec<u64> {
    browse(broker, VhostId::DEFAULT, "q", BrowseOrder::Dispatch).iter().map(|view| view.seq.0).collect()
}

/// All lanes: what was published, and what is there.
fn published(broker: &Broker) -> (u64, u64) {
    let lanes = broker.view(NOW, VhostId::DEFAULT, "q").expect("it is there").lanes;
    let here = lanes.iter().map(|lane| lane.ready + lane.delayed + lane.leased + lane.dead);
    let gone =
        lanes.iter().map(|lane| lane.settled + lane.expired + lane.evicted + lane.removed + lane.moved);
    (lanes.iter().map(|lane| lane.published).sum(), here.chain(gone).sum())
}

/// The head of the journal was given back, and with it what set the policy; not yet that the queue was declared, and not that policies
/// were said again later.
#[test]
fn runs_of_lanes_that_a_recovery_does_not_know_yet_lose_nothing() {
    let fifo = Settings { scheme: Scheme::Max(255), ..fifo() };
    let mut stage = Stage::new(fifo);
    let policy = Policy {
        pattern: Pattern::new("^q$").expect("a pattern"),
        definition: Definition { max_priority: Some(9), ..Definition::default() },
        priority: 0,
        apply_to: ApplyTo::Queues,
    };
    let (kind, name) = (PolicyKind::User, "p".into());
    stage.ask(Command::SetPolicy { kind, name, policy: Box::new(policy) });
    let set = stage.facts.len();
    stage.publish(&[1, 2, 1, 2, 1, 2, 1, 2]);
    stage.spill(1, 4);
    stage.spill(2, 4);
    stage.remove(&[3, 4]);
    let said = stage.facts.len();
    stage.facts.extend(stage.broker.topology_facts());
    let restated = stage.facts.len();
    stage.facts.extend([1, 2].iter().filter_map(|run| stage.broker.run_fact(Q, RunId(*run))));
    assert!(matches!(stage.facts[set - 1], Fact::PolicyStored { .. }));

    let expected = (vec![2, 6, 8, 1, 5, 7], vec![(2, 3, 4), (1, 3, 4)]);
    let is = |broker: &Broker| (order(broker), runs(broker));
    assert_eq!(is(&stage.broker), expected);
    let facts = std::mem::take(&mut stage.facts);
    for (until, from) in [(facts.len(), set), (restated, set), (said, 0), (facts.len(), 0)] {
        stage.facts = [&facts[..1], &facts[from.max(1)..until]].concat();
        let (again, _) = stage.folded(|_| true);
        // Those of which nothing was said since are fetched.
        let runs = if (until, from) == (restated, set) { Vec::new() } else { expected.1.clone() };
        assert_eq!(is(&again), (expected.0.clone(), runs), "{from}..{until}");
        let (published, here) = published(&again);
        assert_eq!(published, here);
    }
}

/// Lets time go on until all have moved. Answers the order in which they are leased.
fn move_on(broker: &mut Broker) -> Vec<u64> {
    while broker.is_late() {
        broker.tick(NOW, &mut Step::default());
    }
    order(broker)
}

#[test]
fn what_waits_in_a_run_moves_to_other_lanes_step_by_step_also_after_a_restart() {
    let options = Options { step_max: 70, ..Options::default() };
    let mut stage = Stage::with(options, fifo());
    let priorities: Vec<i64> = (0..500).map(|number| number % 10).collect();
    stage.publish(&priorities);
    stage.spill_within(1, 500, 10_000);
    stage.ask(Command::declare("q".into(), Box::new(Settings { group_limit: 3, ..Settings::default() })));
    let (_, waiting, _) = runs(&stage.broker)[0];
    assert!((1..500).contains(&waiting), "{waiting} have not moved");
    let mut expected: Vec<u64> = (1..=500).collect();
    expected.sort_by_key(|seq| std::cmp::Reverse(priorities[*seq as usize - 1]));
    let restated = stage.broker.run_fact(Q, RunId(1)).expect("it waits");
    let Fact::RunRestated { run, .. } = &restated else { panic!("{restated:?}") };
    assert!(run.is_mixed);
    let first = run.first;
    let settings = stage.broker.topology_facts();
    let moved: Vec<Fact> = stage.broker.message_facts().collect();
    let moved =
        moved.into_iter().filter(|fact| matches!(fact, Fact::Stored { message, .. } if message.seq < first));
    assert!(matches!(stage.facts[0], Fact::QueueStored { .. }));
    // As the lanes of before are told, as they are not any more, and as all is said again.
    let said_again = settings.into_iter().chain(moved).chain([restated]).collect();
    for facts in [stage.facts.clone(), stage.facts[1..].to_vec(), said_again] {
        let mut again = Broker::with_backlog(options, stage.shelf.clone());
        let mut step = Step::default();
        for fact in facts {
            again.fold(fact, &mut step).expect("it is founded");
        }
        again.wake(NOW, &mut step);
        assert_eq!(again.runs().map(|run| run.is_mixed).collect::<Vec<_>>(), [true]);
        assert_eq!(move_on(&mut again), expected);
    }
    assert_eq!(move_on(&mut stage.broker), expected);
    assert_eq!(runs(&stage.broker), []);
}

/// What cannot be done with a message may bring it into memory all the same, out of a lane in which nobody gets it.
#[test]
fn a_refused_request_that_brings_a_message_out_of_a_former_lane_has_it_leased() {
    let replay = Command::Replay { queue: "q".into(), which: Which::Id("seq-2".into()), promote: None };
    let mut stage = Stage::new(fifo());
    stage.publish(&[5, 5]);
    stage.spill(1, 2);
    stage.broker.let_fetch(false);
    stage.ask(Command::declare("q".into(), Box::default()));
    let consumed = stage.ask(Command::Consume(Consume::new(ConsumerId(1), "q".into())));
    assert!(!consumed.iter().any(|effect| matches!(effect, Effect::Deliver(_))), "{consumed:?}");
    let mut step = Step::default();
    assert_eq!(stage.broker.apply(NOW, replay, &mut step), Err(Refusal::NotDead));
    let given = step.effects.iter().filter(|effect| matches!(effect, Effect::Deliver(_)));
    assert_eq!(given.count(), 1, "{:?}", step.effects);
}

/// Nobody knows which is the least urgent before all have moved: the queue is over its limits until then.
#[test]
fn a_queue_evicts_the_least_urgent_of_messages_that_are_still_to_move_to_other_lanes() {
    let full = Settings { max_length: 5, overflow: Overflow::Evict, ..Settings::default() };
    let mut stage = Stage::new(Settings { order: Order::Fifo, ..full.clone() });
    stage.publish(&[7, 9, 8, 0, 9]);
    stage.spill(1, 2);
    stage.spill(2, 3);
    stage.broker.let_fetch(false);
    stage.ask(Command::declare("q".into(), Box::new(full)));
    stage.publish(&[3, 9]);
    assert_eq!(seqs(&stage.broker).len(), 7);
    stage.broker.let_fetch(true);
    stage.broker.tick(NOW, &mut Step::default());
    assert_eq!(move_on(&mut stage.broker), [2, 5, 7, 3, 1]);
}

/// What goes next, one after the other, each leased until the end.
fn leased(broker: &mut Broker) -> Vec<u64> {
    let next = |_| {
        let pull = Pull {
            consumer: ConsumerId(9),
            queue: "q".into(),
            max: 1,
            max_bytes: 0,
            term: LeaseTerm::OfQueue,
            lanes: LaneChoice::default(),
            until: NOW,
        };
        let mut step = Step::default();
        broker.apply(NOW, Command::Pull(pull), &mut step).expect("it is there");
        step.effects.iter().find_map(|effect| match effect {
            Effect::Deliver(delivery) => Some(delivery.receipt.seq.0),
            _ => None,
        })
    };
    (0..100).map_while(next).collect()
}

#[test]
fn keys_take_turns_wherever_their_messages_wait() {
    let fair = Settings { fair_keys: true, key_weights: [("l".to_owned(), 2)].into(), ..Settings::default() };
    let keys = "kkkkkklkkklkkllkkkmm";
    let publish = |key: char| Publish { key: Some(key.to_string().into()), ..plain(5) };
    let expected = [1, 7, 19, 11, 2, 14, 20, 15, 3, 4, 5, 6, 8, 9, 10, 12, 13, 16, 17, 18];
    for (first, then) in [(0, 0), (20, 0), (4, 7), (9, 11)] {
        let mut stage = Stage::new(fair.clone());
        keys.chars().for_each(|key| drop(stage.ask(Command::Publish(publish(key)))));
        for (run, most) in [(1, first), (2, then)].into_iter().filter(|(_, most)| *most > 0) {
            stage.spill(run, most);
        }
        let (mut again, _) = stage.folded(|_| true);
        let view = |broker: &Broker| broker.view(NOW, VhostId::DEFAULT, "q").expect("it is there");
        assert_eq!(view(&again).lanes[0].spilled, (first + then) as u64, "it stays where it is");
        for broker in [&mut stage.broker, &mut again] {
            let largest = |broker: &Broker| {
                let keys = view(broker).keys.into_iter();
                keys.map(|key| (key.key.to_string(), key.weight, key.ready, key.leased)).collect::<Vec<_>>()
            };
            let told = [("k".to_owned(), 1, 14, 0), ("l".to_owned(), 2, 4, 0), ("m".to_owned(), 1, 2, 0)];
            assert_eq!(largest(broker), told);
            assert_eq!(leased(broker), expected, "{first} and {then} in runs");
            let told = told.map(|(key, weight, ready, leased)| (key, weight, leased, ready));
            assert_eq!(largest(broker), told);
        }
    }
}

#[test]
fn what_is_lost_of_a_key_leaves_the_turn_to_its_next_message() {
    let fair = Settings { fair_keys: true, ..Settings::default() };
    let mut stage = Stage::new(fair);
    for key in "kkkkll".chars() {
        stage.ask(Command::Publish(Publish { key: Some(key.to_string().into()), ..plain(5) }));
    }
    stage.spill(1, 6);
    // The first two are found to be lost when the first one is to go, the last one is said to be.
    stage.shelf.damage(RunId(1), [0, 1, 5]);
    stage.broker.lose(Q, RunId(1), 5..6, &mut Step::default());
    let view = stage.broker.view(NOW, VhostId::DEFAULT, "q").expect("it is there");
    assert_eq!(view.keys.iter().map(|key| key.ready).collect::<Vec<_>>(), [4, 1]);
    assert_eq!(leased(&mut stage.broker), [3, 5, 4]);
}

/// It takes no room of its queue, and a run does not know which of its messages those are.
#[test]
fn what_is_over_at_once_stays_in_memory_also_after_a_clock_that_was_set_back() {
    let stage = {
        let mut stage = Stage::new(fifo());
        let mut step = Step::default();
        let at_once = Publish { ttl_ms: Some(0), ..plain(5) };
        stage.broker.apply(Time(2 * NOW.0), Command::Publish(at_once), &mut step).expect("there is room");
        let stored = step.facts.iter().find(|fact| matches!(fact, Fact::Stored { .. })).cloned();
        stage.facts.push(stored.expect("it came before it was over"));
        stage
    };
    let (mut broker, _) = stage.folded(|_| true);
    assert_eq!((broker.now(), seqs(&broker)), (NOW, vec![1]));
    assert_eq!(broker.plan_spill(RunId(1), all_of(1)), SpillPlan::Nothing);
}

#[test]
fn what_leaves_memory_is_looked_for_a_few_messages_a_step() {
    let mut stage = Stage::new(Settings::default());
    for priority in [3, 5] {
        for _ in 0..40 {
            // Over within 10 ms, so it stays.
            stage.ask(Command::Publish(Publish { ttl_ms: Some(5), ..plain(priority) }));
        }
    }
    let bounds = SpillBounds { looks: 9, ..all_of(4) };
    let mut search = || {
        let plans = std::iter::from_fn(|| Some(stage.broker.plan_spill(RunId(1), bounds)));
        let mut plans = plans.take(100);
        let steps = plans.by_ref().take_while(|plan| *plan == SpillPlan::Unfinished).count();
        (steps, stage.broker.plan_spill(RunId(1), SpillBounds { looks: 1_000, ..bounds }))
    };
    let (steps, plan) = search();
    assert!((8..=20).contains(&steps), "{steps} steps for 80 messages, which it may look at twice");
    assert_eq!(plan, SpillPlan::Nothing);
    stage.publish(&[5, 5, 5]);
    let steps = (0..100).find_map(|step| match stage.broker.plan_spill(RunId(2), bounds) {
        SpillPlan::Run(_, messages) => Some((step, messages.len())),
        _ => None,
    });
    let (steps, found) = steps.expect("it comes to them");
    assert!(steps >= 8 && found == 3, "{steps} steps, {found} messages");
}

#[test]
fn what_came_back_is_spilled_where_there_is_much_of_it_and_its_runs_overlap() {
    let mut stage = Stage::new(Settings::default());
    stage.publish(&[5; 4]);
    stage.spill(1, 4);
    stage.publish(&[3, 5, 3, 5, 3, 5, 3, 5]);
    stage.spill(2, 4);
    // The odd ones come among the others.
    let which = Which::Seqs([5, 7, 9, 11].map(Seq).to_vec());
    stage.ask(Command::Reprioritise { queue: "q".into(), which, priority: Given::Number(5) });
    stage.spill(3, 4);
    stage.spill(4, 4);
    assert_eq!(runs(&stage.broker).iter().map(|(_, waiting, _)| waiting).sum::<u64>(), 12, "all are out");
    let apart: Vec<bool> = stage.broker.runs().map(|run| run.is_before_next).collect();
    assert!(apart.contains(&false), "{apart:?}");
    assert_eq!(order(&stage.broker), (1..=12).collect::<Vec<u64>>());
    let (again, _) = stage.folded(|_| true);
    assert_eq!((order(&again), runs(&again)), (order(&stage.broker), runs(&stage.broker)));
    let taken = |effects: Vec<Effect>| {
        let deliveries = effects.into_iter().filter_map(|effect| match effect {
            Effect::Deliver(delivery) => Some(delivery.receipt.seq.0),
            _ => None,
        });
        deliveries.collect::<Vec<u64>>()
    };
    let pull = Command::Pull(Pull {
        consumer: ConsumerId(1),
        queue: "q".into(),
        max: 12,
        max_bytes: 0,
        term: LeaseTerm::OfQueue,
        lanes: LaneChoice::default(),
        until: NOW,
    });
    assert_eq!(taken(stage.ask(pull)), (1..=12).collect::<Vec<u64>>());
}

#[test]
fn what_still_waits_in_sparse_runs_is_rewritten_into_one() {
    let mut stage = Stage::new(fifo());
    stage.publish(&[0; 9]);
    for run in 1..4 {
        stage.spill(run, 3);
    }
    stage.remove(&[1, 2, 5]);
    assert_eq!(stage.plan(4, &[2, 1]), "1:2-2 2:0-0 2:2-2");
    assert_eq!(runs(&stage.broker), [(1, 1, 3), (2, 2, 3), (3, 3, 3)], "until then they wait where they did");
    stage.remove(&[4]);
    let step = stage.rewritten(4);
    let forgotten = |run, messages| Effect::Forgotten { run: RunId(run), messages };
    assert_eq!(step.effects, [forgotten(1, 1), forgotten(2, 1)]);
    assert_eq!(runs(&stage.broker), [(4, 2, 3), (3, 3, 3)]);
    assert_eq!(stage.broker.run_waiting(Q, RunId(4)), 2);
    let Some(Fact::RunsRewritten { run, of, .. }) = step.facts.first() else { panic!("{:?}", step.facts) };
    assert_eq!((run.next, &run.holes, run.bytes), (0, &Ordinals::from_iter([1]), 20));
    assert_eq!((run.last, of.len()), (Seq(6), 2));
    assert_eq!(seqs(&stage.broker), [3, 6, 7, 8, 9]);
    let (again, _) = stage.folded(|_| true);
    assert_eq!((seqs(&again), runs(&again)), (seqs(&stage.broker), runs(&stage.broker)));
    assert_eq!((published(&stage.broker), published(&again)), ((9, 9), (5, 5)));
}

#[test]
fn only_runs_that_follow_each_other_in_a_lane_are_rewritten_and_once_at_a_time() {
    let mut stage = Stage::new(Settings::default());
    stage.publish(&[5, 5, 5, 5, 5, 5, 9, 9]);
    for run in 1..4 {
        stage.spill(run, 2);
    }
    stage.spill(4, 2);
    let lanes: Vec<(u16, u64)> = stage.broker.runs().map(|run| (run.lane, run.run.0)).collect();
    assert_eq!(lanes, [(1, 4), (0, 1), (0, 2), (0, 3)], "the most urgent lane first");
    for of in [&[][..], &[1, 3], &[3, 4], &[1, 1], &[8], &[2, 8]] {
        assert_eq!(stage.plan(10, of), "no", "{of:?}");
    }
    assert_eq!(stage.plan(10, &[1, 2]), "1:0-1 2:0-1");
    assert_eq!(stage.plan(11, &[2, 3]), "no");
    assert_eq!(stage.plan(11, &[3]), "3:0-1");
    stage.broker.unspilled(Q, RunId(10));
    stage.broker.unspilled(Q, RunId(11));
    assert_eq!(stage.plan(12, &[3, 2, 1]), "1:0-1 2:0-1 3:0-1");
    assert!(stage.broker.plan_rewrite(QueueId(9), RunId(13), &[RunId(4)]).is_none());
}

#[test]
fn a_run_that_is_written_between_two_others_keeps_them_apart() {
    let mut stage = Stage::new(fifo());
    stage.publish(&[0; 6]);
    stage.spill(1, 2);
    let SpillPlan::Run(_, messages) = stage.broker.plan_spill(RunId(2), all_of(2)) else {
        panic!("there are some");
    };
    stage.shelf.put(RunId(2), messages);
    stage.spill(3, 2);
    assert_eq!(stage.plan(4, &[1, 3]), "no");
    stage.broker.unspilled(Q, RunId(2));
    assert_eq!(stage.plan(4, &[1, 3]), "1:0-1 3:0-1");
}

#[test]
fn a_new_run_for_which_nothing_is_left_is_forgotten() {
    let forgotten = [Effect::Forgotten { run: RunId(2), messages: 0 }];
    let end = |command: Command| {
        let mut stage = Stage::new(fifo());
        stage.publish(&[0; 2]);
        stage.spill(1, 2);
        stage.plan(2, &[1]);
        stage.ask(command);
        let step = stage.rewritten(2);
        assert_eq!(step.facts, []);
        step.effects
    };
    assert_eq!(end(Command::Purge { queue: "q".into(), status: None, expect: None }), forgotten);
    assert_eq!(end(Command::DeleteQueue { name: "q".into(), if_empty: false, if_unused: false }), forgotten);
}

/// Whoever opens the segment compares the two.
#[test]
fn the_first_sequence_of_a_rewritten_run_is_that_of_its_segment() {
    let mut stage = Stage::new(fifo());
    stage.publish(&[0; 4]);
    stage.spill(1, 4);
    stage.remove(&[2, 1]);
    stage.plan(2, &[1]);
    let step = stage.rewritten(2);
    let Some(Fact::RunsRewritten { run, .. }) = step.facts.first() else { panic!("{:?}", step.facts) };
    assert_eq!((run.first, run.last, run.count), (Seq(3), Seq(4), 2));
}

/// A consumer that stays fetches a few more than it is lent, and neither leaves a fact.
#[test]
fn what_was_fetched_without_a_fact_is_not_lost_with_its_old_run() {
    for planned_before in [true, false] {
        let mut stage = Stage::new(fifo());
        stage.publish(&[0; 6]);
        stage.spill(1, 3);
        stage.spill(2, 3);
        let consume = Consume { window: Some(1), ..Consume::new(ConsumerId(1), "q".into()) };
        if planned_before {
            assert_eq!(stage.plan(3, &[1, 2]), "1:0-2 2:0-2");
            stage.ask(Command::Consume(consume));
        } else {
            stage.ask(Command::Consume(consume));
            assert_eq!(stage.plan(3, &[2]), "2:0-2");
        }
        assert_eq!(runs(&stage.broker), [(2, 3, 3)], "all of the first is in memory");
        stage.rewritten(3);
        let waiting = if planned_before { (3, 3, 6) } else { (3, 3, 3) };
        assert_eq!(runs(&stage.broker), [waiting]);
        let (again, _) = stage.folded(|_| true);
        assert_eq!(seqs(&again), [1, 2, 3, 4, 5, 6]);
        // A run that nobody rewrote says itself what was taken of it, by the facts to come.
        let untouched = (!planned_before).then_some((1, 3, 3));
        assert_eq!(runs(&again), untouched.into_iter().chain([waiting]).collect::<Vec<_>>());
        assert_eq!(published(&again), (6, 6));
    }
}

/// The records of the old runs are given back, or say segments that are not there any more.
#[test]
fn of_old_runs_that_are_unknown_only_the_new_one_is_taken() {
    let mut stage = Stage::new(fifo());
    stage.publish(&[0; 4]);
    stage.spill(1, 2);
    stage.spill(2, 2);
    stage.plan(3, &[1, 2]);
    stage.rewritten(3);
    let (again, step) = stage.folded(|fact| !matches!(fact, Fact::RunStored { .. }));
    assert_eq!(step.effects, vec![Effect::Released(Place(7)); 4], "what was in memory leaves it");
    assert_eq!((runs(&again), published(&again)), (vec![(3, 4, 4)], (4, 4)));
    let (again, step) =
        stage.folded(|fact| matches!(fact, Fact::QueueStored { .. } | Fact::RunsRewritten { .. }));
    assert_eq!(step.effects, []);
    assert_eq!((runs(&again), published(&again)), (vec![(3, 4, 4)], (4, 4)));
    let (again, _) = stage.folded(|fact| !matches!(fact, Fact::RunStored { run, .. } if run.run == RunId(2)));
    assert_eq!((runs(&again), published(&again)), (vec![(3, 4, 4)], (4, 4)));
}

/// A consumer fetches them together, and no fact says so; then they stand in new lanes, and wait in a new run.
#[test]
fn what_was_fetched_without_a_fact_and_spilled_again_is_there_once() {
    let mut stage = Stage::new(fifo());
    stage.publish(&[0; 2]);
    stage.spill(1, 2);
    let consume = Consume { window: Some(1), ..Consume::new(ConsumerId(1), "q".into()) };
    stage.ask(Command::Consume(consume));
    stage.ask(Command::Cancel { consumer: ConsumerId(1) });
    assert_eq!(runs(&stage.broker), [], "both are in memory");
    stage.ask(Command::declare("q".into(), Box::default()));
    stage.spill(2, 2);
    assert_eq!(runs(&stage.broker), [(2, 2, 2)]);
    let (again, _) = stage.folded(|_| true);
    assert_eq!((runs(&again), seqs(&again)), (vec![(2, 2, 2)], vec![1, 2]));
    // The first definition may be given back before what stands behind it.
    let before = std::cell::Cell::new(0);
    let (again, _) = stage.folded(|_| before.replace(before.get() + 1) > 0);
    assert_eq!((runs(&again), seqs(&again)), (vec![(2, 2, 2)], vec![1, 2]));
}

/// Messages that stood in the lane of the run, and some that stand in the one where those go.
#[test]
fn what_a_fact_has_spoken_of_leaves_memory_again_while_its_run_has_more() {
    let mut stage = Stage::new(Settings::default());
    stage.publish(&[3, 5, 3, 5, 3, 3]);
    stage.spill(1, 4);
    assert_eq!(runs(&stage.broker), [(1, 4, 4)], "those of priority 3");
    let which = Which::Seqs([3, 5].map(Seq).to_vec());
    stage.ask(Command::Reprioritise { queue: "q".into(), which, priority: Given::Number(5) });
    stage.spill(2, 3);
    assert_eq!(runs(&stage.broker), [(2, 3, 3), (1, 2, 4)], "2, 4 and 5");
    let (again, _) = stage.folded(|_| true);
    assert_eq!((order(&again), runs(&again)), (order(&stage.broker), runs(&stage.broker)));
}

// ---- records that make no sense ----

fn record() -> impl Strategy<Value = RunRecord> {
    let small = || prop_oneof![6 => 0..9_u32, 1 => any::<u32>(), 1 => Just(u32::MAX)];
    let seq = || prop_oneof![6 => 0..20_u64, 1 => any::<u64>()].prop_map(Seq);
    let bytes = prop_oneof![4 => 0..100_u64, 1 => any::<u64>(), 1 => Just(1_u64 << 48)];
    let expires = prop_oneof![Just(Time::NEVER), Just(Time(0)), Just(NOW.after(5))];
    let holes = prop::collection::vec(small(), 0..4).prop_map(Ordinals::from_iter);
    let taken = (small(), holes, any::<bool>());
    (1..8_u64, any::<i8>(), (small(), bytes), expires, (seq(), seq()), taken).prop_map(
        |(run, priority, (count, bytes), expires, (first, last), (next, holes, is_mixed))| RunRecord {
            ids: count / 2,
            deaths: count / 3,
            run: RunId(run),
            priority: Priority(i32::from(priority)),
            count,
            bytes,
            expires,
            first,
            last,
            next,
            holes,
            is_mixed,
        },
    )
}

fn fact() -> impl Strategy<Value = Fact> {
    let old =
        (1..8_u64, prop_oneof![0..5_u32, Just(u32::MAX)], prop::collection::vec(0..9_u32, 0..3)).prop_map(
            |(run, next, holes)| Rewritten { run: RunId(run), next, holes: holes.into_iter().collect() },
        );
    prop_oneof![
        record().prop_map(|run| Fact::RunStored { queue: Q, run: Box::new(run) }),
        record().prop_map(|run| Fact::RunRestated { queue: Q, run: Box::new(run) }),
        Just(Fact::LanesChanged { queue: Q }),
        (record(), prop::collection::vec(old, 0..4)).prop_map(|(run, of)| Fact::RunsRewritten {
            queue: Q,
            run: Box::new(run),
            of
        }),
    ]
}

fn all(broker: &Broker) -> impl PartialEq + std::fmt::Debug + use<> {
    let facts: Vec<Fact> = broker.message_facts().collect();
    (facts, runs(broker), published(broker))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_of_runs_is_taken_whole_or_not_at_all(facts in prop::collection::vec(fact(), 1..8), asks in any::<u16>()) {
        let mut stage = Stage::new(Settings::default());
        stage.publish(&[5, 5, 5, 5, 5, 5, 5, 5, 9, 9, 9]);
        for run in 1..5 {
            stage.spill(run, 2);
        }
        stage.remove(&[3]);
        let broker = &mut stage.broker;
        for fact in facts {
            let before = all(broker);
            let messages: Vec<Fact> = broker.message_facts().collect();
            let mut step = Step::default();
            match broker.fold(fact.clone(), &mut step) {
                Ok(()) if matches!(fact, Fact::LanesChanged { .. }) => {
                    prop_assert_eq!(messages, broker.message_facts().collect::<Vec<_>>());
                }
                Ok(()) => {
                    let (Fact::RunStored { run, .. } | Fact::RunRestated { run, .. } | Fact::RunsRewritten { run, .. }) = fact else { panic!("{fact:?}") };
                    prop_assert!(run.makes_sense());
                    prop_assert_eq!(broker.run_waiting(Q, run.run), run.waiting());
                }
                Err(_) => {
                    prop_assert!(step.effects.is_empty());
                    prop_assert_eq!(before, all(broker));
                }
            }
            let (published, here) = published(broker);
            prop_assert_eq!(published, here);
        }
        ask_of_everything(broker, asks);
    }

    #[test]
    fn a_record_makes_sense_or_is_none_of_a_run(record in record()) {
        let wrong = record.first > record.last
            || record.count > RUN_LEN_MAX
            || record.next > record.count
            || record.bytes > 1 << 48
            || record.holes.iter().any(|hole| hole <= record.next || hole >= record.count)
            || record.bytes > record.waiting().saturating_mul(u64::from(u32::MAX));
        prop_assert_eq!(record.makes_sense(), !wrong);
    }
}

/// Asks all that looks at runs, each bit of a number one thing, and sees that what is counted stays counted.
fn ask_of_everything(broker: &mut Broker, asks: u16) {
    let lanes = Order::Fifo;
    let other = Settings { order: lanes, ..Settings::default() };
    let pull = |consumer| Pull {
        consumer: ConsumerId(consumer),
        queue: "q".into(),
        max: 9,
        max_bytes: 0,
        term: LeaseTerm::OfQueue,
        lanes: LaneChoice::default(),
        until: NOW,
    };
    let commands = [
        Command::Pull(pull(1)),
        Command::Reprioritise {
            queue: "q".into(),
            which: Which::Seqs((4..9).map(Seq).collect()),
            priority: 3.into(),
        },
        Command::declare("q".into(), Box::new(other)),
        Command::Remove { queue: "q".into(), which: Which::Seqs((1..6).map(Seq).collect()) },
        Command::Pull(pull(2)),
        Command::Remove { queue: "q".into(), which: Which::All },
        Command::Purge { queue: "q".into(), status: Some(Status::Ready), expect: None },
    ];
    let wanted = (0..).zip(commands).filter(|(at, _)| asks >> at & 1 == 1);
    broker.wake(NOW, &mut Step::default());
    for (_, command) in wanted {
        for order in [BrowseOrder::Published, BrowseOrder::Dispatch] {
            for view in browse(broker, VhostId::DEFAULT, "q", order) {
                let _ = broker.message(VhostId::DEFAULT, "q", &view.id);
            }
        }
        let row: Vec<RunId> = broker.runs().map(|run| run.run).take(2).collect();
        let begun = broker.plan_rewrite(Q, RunId(99), &row);
        let reply: Result<Reply, _> = broker.apply(NOW, command, &mut Step::default());
        drop(reply);
        if begun.is_some() {
            broker.rewritten(Q, RunId(99), &mut Step::default());
        }
        let (published, here) = published(broker);
        assert_eq!(published, here);
    }
}

/// A consumer that stays holds the first messages of a run, which no fact says, when what waits in the run is purged: few that are moved, and more.
#[test]
fn what_is_held_of_a_run_stays_when_the_rest_of_it_is_purged() {
    for (held, status) in [(3, None), (3, Some(Status::Ready)), (5_000, None), (5_000, Some(Status::Ready))] {
        let mut stage = Stage::new(fifo());
        stage.publish(&vec![0; held as usize + 500]);
        stage.spill_within(1, usize::MAX, u64::MAX);
        let consume = Consume { window: Some(held), ..Consume::new(ConsumerId(1), "q".into()) };
        stage.ask(Command::Consume(consume));
        assert!(!runs(&stage.broker).is_empty(), "a part of the run waits");
        stage.ask(Command::Purge { queue: "q".into(), status, expect: None });
        let kept: Vec<u64> = (1..=u64::from(held)).collect();
        assert_eq!(seqs(&stage.broker), kept);
        assert_eq!(seqs(&stage.folded(|_| true).0), kept, "after a restart");
        let is_one = stage.facts.iter().any(|fact| matches!(fact, Fact::Purged { .. }));
        assert_eq!(is_one, held == 3);
    }
}

/// Nothing waits: all that can be read is held.
#[test]
fn what_is_held_of_a_run_stays_when_what_is_in_quarantine_is_purged() {
    let mut stage = Stage::new(fifo());
    stage.publish(&[0; 8]);
    stage.spill(1, 8);
    stage.shelf.damage(RunId(1), [4, 5, 6, 7]);
    stage.ask(Command::Consume(Consume { window: Some(8), ..Consume::new(ConsumerId(1), "q".into()) }));
    assert_eq!((seqs(&stage.broker), stage.broker.quarantined(Q, RunId(1))), (vec![1, 2, 3, 4], 4));
    stage.ask(Command::Purge { queue: "q".into(), status: None, expect: None });
    assert_eq!((seqs(&stage.broker), stage.broker.quarantined(Q, RunId(1))), (vec![1, 2, 3, 4], 0));
    stage.shelf.damage(RunId(1), []);
    assert_eq!(seqs(&stage.folded(|_| true).0), [1, 2, 3, 4], "after a restart that can read all of it");
}

/// What is over is late: it ends in a later step.
#[test]
fn an_id_is_pending_in_a_run_though_an_older_message_of_it_is_over_and_still_there() {
    let options = Options { step_max: 1, ..Options::default() };
    let mut stage = Stage::with(options, fifo());
    let over = || Publish { ttl_ms: Some(20), ..plain(0) };
    let named = |publish| Publish { id: Some("x".into()), ..publish };
    for publish in [over(), over(), over(), over(), named(over())] {
        stage.ask(Command::Publish(publish));
    }
    stage.spill(1, 5);
    stage.broker.tick(Time(NOW.0 + 20), &mut Step::default());
    assert!(stage.broker.is_late());
    let again = |stage: &mut Stage| {
        let reply = stage.broker.apply(NOW, Command::Publish(named(plain(0))), &mut Step::default());
        let Ok(Reply::Published(copies)) = reply else { panic!("{reply:?}") };
        (copies[0].duplicate, copies[0].seq)
    };
    assert_eq!(again(&mut stage), (false, Seq(6)));
    stage.spill(2, 5);
    assert_eq!(again(&mut stage), (true, Seq(6)));
    assert!(stage.broker.is_late(), "the older one is there");
}
