//! Policies over many queues: a few queues a step, and at once the queue that is used.

use overtake_lane::{
    Address, ApplyTo, Asker, Broker, Command, Consume, ConsumerId, Effect, Fact, Given, Options, Outcome,
    Pattern, Place, Policy, PolicyKind, Publish, Receipt, Reply, SessionId, Settings, Step, Time, VhostId,
};

use crate::story::START;

/// Queues that one step may look at.
const MOST: usize = 16;
const QUEUES: u32 = 1_000;

struct Many {
    broker: Broker,
    step: Step,
}

fn name(number: u32) -> String {
    format!("q{number:04}")
}

fn publish(queue: &str, priority: i64) -> Publish {
    Publish {
        to: Address::Queue(queue.into()),
        priority: Given::Number(priority),
        id: None,
        origin: None,
        key: None,
        key_weight: None,
        ttl_ms: None,
        base_ttl_ms: None,
        delay_ms: 0,
        bytes: 1,
        place: Place(0),
    }
}

impl Many {
    fn new(queues: u32, settings: &Settings) -> Self {
        let broker = Broker::new(Options { step_max: MOST, ..Options::default() });
        let mut many = Self { broker, step: Step::default() };
        for number in 0..queues {
            many.apply(Command::declare(name(number).into(), Box::new(settings.clone())));
        }
        many
    }

    fn apply(&mut self, command: Command) -> Reply {
        self.step.clear();
        self.broker.apply(START, command, &mut self.step).expect("it is done")
    }

    /// Sets the policy `name` for what matches.
    fn set(&mut self, name: &str, pattern: &str, definition: &str) {
        let policy = Box::new(Policy {
            pattern: Pattern::new(pattern).expect("a pattern"),
            definition: serde_json::from_str(definition).expect("a definition"),
            priority: 0,
            apply_to: ApplyTo::Queues,
        });
        self.apply(Command::SetPolicy { kind: PolicyKind::User, name: name.into(), policy });
    }

    fn remove(&mut self, name: &str) {
        self.apply(Command::RemovePolicy { kind: PolicyKind::User, name: name.into() });
    }

    fn tick(&mut self) {
        self.step.clear();
        self.broker.tick(START, &mut self.step);
    }

    fn publish(&mut self, queue: &str, priority: i64) {
        self.apply(Command::Publish(publish(queue, priority)));
    }

    fn consume(&mut self, number: u64, queue: &str) {
        self.apply(Command::Consume(Consume {
            window: Some(1),
            ..Consume::new(ConsumerId(number), queue.into())
        }));
    }

    fn given(&self) -> Vec<(i32, Receipt)> {
        let given = self.step.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver(delivery) => Some((delivery.priority.0, delivery.receipt)),
            _ => None,
        });
        given.collect()
    }

    fn max_length(&self, queue: &str) -> u64 {
        self.broker.settings(VhostId::DEFAULT, queue).expect("it is there").max_length
    }

    fn ready(&self, queue: &str) -> u64 {
        let view = self.broker.view(START, VhostId::DEFAULT, queue).expect("it is there");
        view.lanes.iter().map(|lane| lane.ready).sum()
    }

    /// The queues for which this length holds.
    fn of_length(&self, length: u64) -> usize {
        (0..QUEUES).filter(|number| self.max_length(&name(*number)) == length).count()
    }

    /// The most queues that came to be of this length in one step, until nothing is left to be done.
    fn tick_on(&mut self, length: u64) -> usize {
        let (mut most, mut steps) = (0, 0);
        while self.broker.is_late() {
            assert_eq!(self.broker.next_deadline(), Some(START), "it wants to go on at once");
            let before = self.of_length(length);
            self.tick();
            most = most.max(self.of_length(length) - before);
            steps += 1;
            assert!(steps <= 4 * QUEUES, "it comes to an end");
        }
        most
    }
}

const TWO: &str = r#"{"max-length":2}"#;
const THREE: &str = r#"{"max-length":3}"#;

#[test]
fn a_policy_is_set_changed_and_removed_for_a_few_queues_a_step() {
    let mut many = Many::new(QUEUES, &Settings::default());
    many.set("p", "", TWO);
    assert!(many.broker.is_late() && many.of_length(2) <= MOST);
    assert!(many.tick_on(2) <= MOST);
    assert_eq!(many.of_length(2), 1_000);
    many.set("p", "", THREE);
    assert!(many.of_length(3) <= MOST && many.tick_on(3) <= MOST);
    assert_eq!(many.of_length(3), 1_000);
    many.remove("p");
    assert!(many.of_length(0) <= MOST && many.tick_on(0) <= MOST);
    assert_eq!(many.of_length(0), 1_000);
}

#[test]
fn a_policy_for_one_queue_looks_at_few_a_step_too() {
    let mut many = Many::new(QUEUES, &Settings::default());
    many.set("p", "^q0999$", TWO);
    let mut ticks = 0;
    while many.broker.is_late() {
        many.tick();
        ticks += 1;
    }
    assert!(ticks >= QUEUES as usize / MOST - 1, "{ticks}");
    assert_eq!((many.of_length(2), many.max_length("q0999")), (1, 2));
}

#[test]
fn a_queue_that_is_used_before_its_turn_is_ruled_at_once() {
    let mut many = Many::new(QUEUES, &Settings::default());
    for priority in 0..5 {
        many.publish("q0990", priority);
    }
    many.set("p", "", TWO);
    assert_eq!((many.max_length("q0980"), many.max_length("q0990")), (0, 0), "it is not their turn");
    many.publish("q0980", 1);
    assert_eq!(many.max_length("q0980"), 2);
    many.consume(1, "q0990");
    assert_eq!(many.given().iter().map(|(priority, _)| *priority).collect::<Vec<_>>(), [4]);
    assert_eq!((many.max_length("q0990"), many.ready("q0990")), (2, 1));
    many.apply(Command::Purge { queue: "q0970".into(), status: None, expect: None });
    assert_eq!(many.max_length("q0970"), 2);
    many.apply(Command::declare("new".into(), Box::default()));
    assert_eq!(many.max_length("new"), 2);
    assert!(many.broker.is_late() && many.of_length(2) < 100);
}

#[test]
fn a_queue_in_which_something_is_settled_or_dies_or_time_passes_is_ruled_before() {
    let settings =
        Settings { dead_letter: overtake_lane::DeadLetterTo::Queue("q0999".into()), ..Settings::default() };
    let mut many = Many::new(QUEUES, &Settings::default());
    many.apply(Command::declare("zz".into(), Box::new(settings)));
    many.publish("zz", 1);
    many.consume(1, "zz");
    let (_, receipt) = many.given()[0];
    many.set("p", "", r#"{"max-length":2,"delivery-limit":0}"#);
    assert_eq!((many.max_length("zz"), many.max_length("q0999")), (0, 0), "it is not their turn");
    let outcome = Outcome::Nack { delay_ms: Some(0) };
    many.apply(Command::Settle { receipts: [receipt].into_iter().collect(), outcome });
    assert_eq!((many.ready("zz"), many.ready("q0999")), (0, 1), "it was delivered as often as it may");
    assert_eq!((many.max_length("zz"), many.max_length("q0999")), (2, 2));
}

/// A message of a consumer that leaves is a failed delivery. The policy that let it die of that does not hold any more.
#[test]
fn a_queue_that_somebody_leaves_is_ruled_before() {
    let (session, consumer) = (SessionId(1), ConsumerId(1));
    for leaves in [Command::EndSession { session }, Command::Cancel { consumer }] {
        let mut many = Many::new(QUEUES, &Settings::default());
        many.set("p", "", r#"{"delivery-limit":0}"#);
        while many.broker.is_late() {
            many.tick();
        }
        many.publish("q0999", 1);
        let by_session =
            |command| Command::By { asker: Asker::connected(session), command: Box::new(command) };
        many.apply(by_session(Command::Consume(Consume::new(consumer, "q0999".into()))));
        assert_eq!(many.given().len(), 1);
        many.set("p", "", TWO);
        assert_eq!(many.max_length("q0999"), 0, "it is not its turn");
        many.apply(by_session(leaves));
        assert_eq!((many.max_length("q0999"), many.ready("q0999")), (2, 1));
    }
}

#[test]
fn what_is_seen_of_a_queue_before_its_turn_is_what_will_hold() {
    let mut many = Many::new(QUEUES, &Settings::default());
    many.set("p", "", TWO);
    let view = many.broker.view(START, VhostId::DEFAULT, "q0999").expect("it is there");
    assert_eq!((view.ruled.expect("otherwise").max_length, view.policy.as_deref()), (2, Some("p")));
    assert_eq!(many.max_length("q0999"), 0);
    assert!(!many.broker.is_ruled(view.queue));
}

#[test]
fn policies_that_change_meanwhile_all_hold_in_the_end() {
    let mut many = Many::new(QUEUES, &Settings::default());
    many.set("low", "^q0[0-4]", TWO);
    for _ in 0..3 {
        many.tick();
    }
    many.set("high", "^q0[5-9]", THREE);
    many.tick();
    many.apply(Command::DeleteQueue { name: "q0700".into(), if_empty: false, if_unused: false });
    many.apply(Command::declare("q0700".into(), Box::default()));
    many.remove("low");
    while many.broker.is_late() {
        many.tick();
    }
    assert_eq!((many.of_length(0), many.of_length(2), many.of_length(3)), (500, 0, 500));
}

/// Else whoever changes policies all the time would keep others from ever being held, and time from passing.
#[test]
fn policies_that_change_all_the_time_keep_nobody_waiting_for_ever() {
    let mut many = Many::new(QUEUES, &Settings::default());
    many.apply(Command::Publish(Publish { ttl_ms: Some(1), ..publish("q0991", 1) }));
    for round in 0..500 {
        many.set("p", "", if round % 2 == 0 { TWO } else { THREE });
        many.step.clear();
        many.broker.tick(Time(START.0 + 1_000), &mut many.step);
    }
    assert_eq!(many.ready("q0991"), 0, "its message expired");
    assert_eq!(many.of_length(0), 0, "each has had its turn");
}

#[test]
fn every_virtual_host_has_its_turn_and_one_that_is_deleted_needs_none() {
    let mut many = Many::new(100, &Settings::default());
    let mut vhosts = Vec::new();
    for vhost in ["a", "b"] {
        let made = many.apply(Command::DeclareVhost { name: vhost.into(), settings: Box::default() });
        let Reply::VhostDeclared(id) = made else { panic!("{made:?}") };
        vhosts.push(id);
    }
    let by = |vhost, command| Command::By { asker: Asker::in_vhost(vhost), command: Box::new(command) };
    let policy = || {
        let (pattern, definition) =
            (Pattern::new("").expect("a pattern"), serde_json::from_str(TWO).expect("it is"));
        Box::new(Policy { pattern, definition, priority: 0, apply_to: ApplyTo::Queues })
    };
    let set = || Command::SetPolicy { kind: PolicyKind::User, name: "p".into(), policy: policy() };
    for vhost in vhosts.clone() {
        for number in 0..100 {
            many.apply(by(vhost, Command::declare(name(number).into(), Box::default())));
        }
    }
    many.apply(set());
    for vhost in &vhosts {
        many.apply(by(*vhost, set()));
    }
    many.apply(Command::DeleteVhost { name: "a".into() });
    while many.broker.is_late() {
        many.tick();
    }
    let holds = |vhost| {
        let lengths =
            (0..100).map(|number| many.broker.settings(vhost, &name(number)).expect("there").max_length);
        lengths.filter(|length| *length == 2).count()
    };
    assert_eq!((holds(VhostId::DEFAULT), holds(vhosts[1])), (100, 100));
}

/// What was done with a queue that was not ruled yet folds to what it is when it is.
#[test]
fn a_broker_that_stops_meanwhile_is_found_with_every_queue_ruled() {
    let fifo: Settings = serde_json::from_str(r#"{"scheme":"max-255","order":"fifo"}"#).expect("settings");
    let mut many = Many::new(QUEUES, &fifo);
    let mut facts: Vec<Fact> = Vec::new();
    facts.extend(many.broker.topology_facts());
    for priority in [1, 9, 5] {
        many.publish("q0999", priority);
        facts.append(&mut many.step.facts);
    }
    many.consume(1, "q0999");
    facts.append(&mut many.step.facts);
    many.set("p", "", r#"{"max-priority":9,"max-length":2}"#);
    facts.append(&mut many.step.facts);
    // It is not its turn, but its consumer goes, so what it held is there for others.
    many.apply(Command::Cancel { consumer: ConsumerId(1) });
    facts.append(&mut many.step.facts);
    let queue = many.broker.id_of(VhostId::DEFAULT, "q0999").expect("it is there");
    assert!(many.broker.is_ruled(queue), "before anything is given");
    let another = many.broker.id_of(VhostId::DEFAULT, "q0998").expect("it is there");
    assert!(!many.broker.is_ruled(another), "the broker stops before all are");
    let mut found = Broker::new(Options { step_max: MOST, ..Options::default() });
    for fact in facts {
        found.fold(fact, &mut Step::default()).expect("it is founded");
    }
    found.wake(START, &mut Step::default());
    for number in 0..QUEUES {
        let id = found.id_of(VhostId::DEFAULT, &name(number)).expect("it is there");
        assert!(found.is_ruled(id));
    }
    let mut found = Many { broker: found, step: Step::default() };
    assert_eq!(found.of_length(2), 1_000);
    for many in [&mut many, &mut found] {
        many.consume(7, "q0999");
        let order: Vec<i32> = many.given().iter().map(|(priority, _)| *priority).collect();
        assert_eq!(order, [9]);
    }
}
