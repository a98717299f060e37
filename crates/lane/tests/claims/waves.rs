//! Many messages whose time comes at once, and queues that have many more than their limits allow: a few a step.

use overtake_lane::{
    Address, ApplyTo, Asker, Broker, Command, Consume, ConsumerId, DeadLetterTo, Definition, Effect, Fact,
    Given, LaneChoice, LaneSettings, LeaseTerm, Options, Order, Outcome, Overflow, Pattern, PickerKind,
    Place, Policy, PolicyKind, Publish, Pull, QueueView, RateLimit, Reply, Scheme, SessionId, Settings, Step,
    Time, VhostId, Which, WindowId,
};

use crate::story::START;

/// Messages that one step may end or move.
const MOST: usize = 4;
/// Messages of a wave: more than a few steps end.
const MANY: u64 = 50;
const LATER: Time = Time(START.0 + 1_000);

struct Waves {
    broker: Broker,
    step: Step,
}

impl Waves {
    fn with(queues: &[(&str, Settings)]) -> Self {
        let broker = Broker::new(Options { step_max: MOST, ..Options::default() });
        let mut waves = Self { broker, step: Step::default() };
        for (name, settings) in queues {
            waves.apply(START, Command::declare((*name).into(), Box::new(settings.clone())));
        }
        waves
    }

    fn apply(&mut self, now: Time, command: Command) -> Reply {
        self.step.clear();
        self.broker.apply(now, command, &mut self.step).expect("it is done")
    }

    /// Many that are over at once, with these ids.
    fn publish_wave(&mut self, id: impl Fn(u64) -> Option<String>) {
        for number in 0..MANY {
            let id = id(number).map(Into::into);
            self.apply(START, Command::Publish(Publish { id, ttl_ms: Some(500), ..publish(0) }));
        }
    }

    /// The messages that the next step of time ends or moves.
    fn tick(&mut self) -> usize {
        self.step.clear();
        self.broker.tick(LATER, &mut self.step);
        let ends = |fact: &&Fact| {
            matches!(
                fact,
                Fact::Settled { .. } | Fact::Moved { .. } | Fact::Died { .. } | Fact::PutBack { .. }
            )
        };
        self.step.facts.iter().filter(ends).count()
    }

    /// Those of each step until time has done all that is due.
    fn tick_on(&mut self) -> Vec<usize> {
        let mut steps = vec![self.tick()];
        while self.broker.is_late() {
            assert_eq!(self.broker.next_deadline(), Some(LATER), "it wants to go on at once");
            steps.push(self.tick());
        }
        steps
    }

    fn view(&self, queue: &str) -> QueueView {
        self.broker.view(LATER, VhostId::DEFAULT, queue).expect("it is there")
    }

    fn ready(&self, queue: &str) -> u64 {
        self.view(queue).lanes.iter().map(|lane| lane.ready).sum()
    }

    /// Who was given something in the last step.
    fn given(&self) -> Vec<u64> {
        let given = self.step.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver(delivery) => Some(delivery.consumer.0),
            _ => None,
        });
        given.collect()
    }

    /// The priorities that a pull is given.
    fn pull(&mut self, consumer: u64, max: u32) -> Vec<i32> {
        self.apply(
            LATER,
            Command::Pull(Pull {
                consumer: ConsumerId(consumer),
                queue: "q".into(),
                max,
                max_bytes: 0,
                term: LeaseTerm::OfQueue,
                lanes: LaneChoice::default(),
                until: LATER,
            }),
        );
        let given = self.step.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver(delivery) => Some(delivery.priority.0),
            _ => None,
        });
        given.collect()
    }
}

fn publish(priority: i64) -> Publish {
    Publish {
        to: Address::Queue("q".into()),
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

#[track_caller]
fn assert_bounded(steps: &[usize], all: u64) {
    assert!(steps.iter().all(|ended| *ended <= MOST), "{steps:?}");
    assert_eq!(steps.iter().sum::<usize>() as u64, all, "{steps:?}");
}

#[test]
fn a_wave_that_expires_is_dropped_a_few_a_step() {
    let mut waves =
        Waves::with(&[("q", Settings { dead_letter: DeadLetterTo::Drop, ..Settings::default() })]);
    waves.publish_wave(|_| None);
    let steps = waves.tick_on();
    assert_bounded(&steps, MANY);
    assert_eq!(waves.ready("q"), 0);
}

#[test]
fn a_wave_that_expires_moves_to_another_queue_a_few_a_step() {
    let dead_letter = DeadLetterTo::Queue("d".into());
    let settings = Settings { dead_letter, dead_letter_expired: true, ..Settings::default() };
    let mut waves = Waves::with(&[("q", settings), ("d", Settings::default())]);
    waves.publish_wave(|_| None);
    let steps = waves.tick_on();
    assert_bounded(&steps, MANY);
    assert_eq!((waves.ready("q"), waves.ready("d")), (0, MANY));
}

#[test]
fn a_wave_that_comes_due_is_ready_a_few_a_step() {
    let mut waves = Waves::with(&[("q", Settings::default())]);
    for _ in 0..MANY {
        waves.apply(START, Command::Publish(Publish { delay_ms: 500, ..publish(0) }));
    }
    let steps = waves.tick_on();
    assert_bounded(&steps, MANY);
    assert_eq!(waves.ready("q"), MANY);
}

#[test]
fn whoever_asks_while_a_wave_goes_on_pays_for_none_of_it_and_is_given_nothing_that_is_over() {
    let mut waves =
        Waves::with(&[("q", Settings { dead_letter: DeadLetterTo::Drop, ..Settings::default() })]);
    waves.publish_wave(|_| None);
    waves.apply(START, Command::Publish(publish(0)));
    waves.tick();
    assert!(waves.broker.is_late());
    let before = waves.ready("q");
    waves.apply(LATER, Command::Publish(publish(9)));
    assert_eq!(waves.ready("q"), before + 1, "nothing else happened");
    // The urgent one goes at once; the lane of the others has what is over at its head, of which a step ends a few.
    assert_eq!(waves.pull(1, 1), [9]);
    assert_eq!(waves.pull(2, 1), [] as [i32; 0]);
    assert_eq!(waves.ready("q"), before - MOST as u64);
    waves.tick_on();
    assert_eq!(waves.pull(3, 9), [0], "the one that does not expire");
    assert_eq!(waves.ready("q"), 0);
}

#[test]
fn an_id_is_free_as_soon_as_its_message_is_over() {
    let mut waves =
        Waves::with(&[("q", Settings { dead_letter: DeadLetterTo::Drop, ..Settings::default() })]);
    waves.publish_wave(|number| Some(format!("id{number}")));
    waves.tick();
    let last = MANY - 1;
    let again = Publish { id: Some(format!("id{last}").into()), ..publish(5) };
    let duplicates = |reply: Reply| match reply {
        Reply::Published(copies) => copies.iter().filter(|copy| copy.duplicate).count(),
        other => panic!("{other:?}"),
    };
    let first = waves.apply(LATER, Command::Publish(again.clone()));
    assert_eq!(duplicates(first), 0, "the other is over, and not yet gone");
    waves.tick_on();
    let second = waves.apply(LATER, Command::Publish(again));
    assert_eq!(duplicates(second), 1, "the new one is there, whatever became of the other");
    assert_eq!(waves.ready("q"), 1);
}

#[test]
fn a_queue_comes_within_the_limits_of_a_policy_a_few_messages_a_step() {
    for (dead_letter, gone) in [(DeadLetterTo::Drop, 0), (DeadLetterTo::Queue("d".into()), MANY - 10)] {
        let settings = Settings { dead_letter, dead_letter_evicted: true, ..Settings::default() };
        let mut waves = Waves::with(&[("q", settings), ("d", Settings::default())]);
        for number in 0..MANY {
            waves.apply(START, Command::Publish(publish(number as i64 % 10)));
        }
        let definition =
            Definition { max_length: Some(10), overflow: Some(Overflow::Evict), ..Definition::default() };
        let pattern = Pattern::new("^q$").expect("a pattern");
        let policy = Policy { pattern, definition, priority: 0, apply_to: ApplyTo::Queues };
        waves.apply(
            LATER,
            Command::SetPolicy { kind: PolicyKind::User, name: "p".into(), policy: Box::new(policy) },
        );
        assert!(waves.ready("q") >= MANY - MOST as u64, "{} left after one step", waves.ready("q"));
        let steps = waves.tick_on();
        assert!(steps.iter().all(|ended| *ended <= MOST), "{steps:?}");
        assert_eq!((waves.ready("q"), waves.ready("d")), (10, gone));
        assert_eq!(waves.pull(1, 10), [9, 9, 9, 9, 9, 8, 8, 8, 8, 8], "the most urgent stay");
    }
}

#[test]
fn of_two_waves_neither_waits_for_the_other() {
    let settings = Settings { dead_letter: DeadLetterTo::Drop, ..Settings::default() };
    let mut waves = Waves::with(&[("q", settings.clone()), ("r", settings)]);
    waves.publish_wave(|_| None);
    for _ in 0..MOST {
        let to = Address::Queue("r".into());
        waves.apply(Time(START.0 + 1), Command::Publish(Publish { to, ttl_ms: Some(600), ..publish(0) }));
    }
    let mut steps = 0;
    while waves.ready("r") > 0 {
        waves.tick();
        steps += 1;
    }
    assert!(waves.ready("q") > MANY / 2, "{} left after {steps} steps", waves.ready("q"));
}

#[test]
fn dead_letters_beget_dead_letters_a_few_a_step() {
    let to = |name: &str| Settings {
        max_length: 3,
        overflow: Overflow::Evict,
        dead_letter: DeadLetterTo::Queue(name.into()),
        dead_letter_evicted: true,
        dead_letter_expired: true,
        ..Settings::default()
    };
    let first = Settings { max_length: 0, ..to("r") };
    let mut waves = Waves::with(&[("q", first), ("r", to("t")), ("t", Settings::default())]);
    waves.publish_wave(|_| None);
    let steps = waves.tick_on();
    // What moves into a full queue evicts another, which moves on: each of them is one that a step may move.
    assert!(steps.iter().all(|moved| *moved <= 2 * MOST), "{steps:?}");
    assert_eq!(["q", "r", "t"].map(|queue| waves.ready(queue)), [0, 3, MANY - 3]);
}

/// Its consumer got room for a message from a queue that shares a window with it.
#[test]
fn what_is_over_when_a_shared_window_comes_to_it_dies_in_that_step() {
    let dead_letter = DeadLetterTo::Queue("d".into());
    let settings = Settings { dead_letter, dead_letter_expired: true, ..Settings::default() };
    let mut waves = Waves::with(&[("q", settings), ("r", Settings::default()), ("d", Settings::default())]);
    let session = SessionId(1);
    let window = WindowId { session, number: 1 };
    let by = |command| Command::By {
        asker: Asker { session: Some(session), vhost: VhostId::DEFAULT },
        command: Box::new(command),
    };
    waves.apply(START, by(Command::SetWindow { window, size: 1, joining: Vec::new() }));
    waves.apply(START, Command::Publish(Publish { to: Address::Queue("r".into()), ..publish(0) }));
    let consume = |number, queue: &str| {
        let consume = Consume::new(ConsumerId(number), queue.into());
        by(Command::Consume(Consume { shared: Some(window), ..consume }))
    };
    waves.apply(START, consume(1, "r"));
    let held = waves.step.effects.iter().find_map(|effect| match effect {
        Effect::Deliver(delivery) => Some(delivery.receipt),
        _ => None,
    });
    let receipt = held.expect("it holds the window");
    waves.apply(START, consume(2, "q"));
    waves.publish_wave(|_| None);
    waves.apply(LATER, by(Command::Settle { receipts: vec![receipt], outcome: Outcome::Ack }));
    assert!(waves.ready("q") > 0, "more is over than one step ends");
    assert_eq!(waves.view("q").lanes.iter().map(|lane| lane.dead).sum::<u64>(), 0, "none is left in between");
}

#[test]
fn after_a_hold_queues_go_on_a_few_a_step_and_one_that_is_used_at_once() {
    let names: Vec<String> = (0..MANY).map(|number| format!("q{number}")).collect();
    let queues: Vec<_> = names.iter().map(|name| (name.as_str(), Settings::default())).collect();
    let mut waves = Waves::with(&queues);
    let pull = |consumer: u64| {
        Command::Pull(Pull {
            consumer: ConsumerId(consumer),
            queue: format!("q{consumer}").into(),
            max: 1,
            max_bytes: 0,
            term: LeaseTerm::OfQueue,
            lanes: LaneChoice::default(),
            until: LATER.after(1_000),
        })
    };
    waves.broker.hold(true, &mut waves.step);
    for number in 0..MANY {
        waves.apply(LATER, pull(number));
        let to = Address::Queue(format!("q{number}").into());
        waves.apply(LATER, Command::Publish(Publish { to, ..publish(0) }));
        assert!(waves.given().is_empty(), "leases are held");
    }
    waves.step.clear();
    waves.broker.hold(false, &mut waves.step);
    let mut given = vec![waves.given()];
    waves.apply(LATER, Command::Publish(Publish { to: Address::Queue("q40".into()), ..publish(0) }));
    let used = waves.given();
    assert!(used.contains(&40), "{used:?}");
    while waves.broker.is_late() {
        waves.tick();
        given.push(waves.given());
    }
    assert!(given.iter().all(|given| given.len() <= MOST) && given.len() > 2, "{given:?}");
    let mut all: Vec<u64> = given.into_iter().flatten().chain(used).collect();
    all.sort_unstable();
    assert_eq!(all, (0..MANY).collect::<Vec<_>>());
}

// ---- other lanes ----

fn fifo() -> Settings {
    Settings { order: Order::Fifo, ..Settings::default() }
}

impl Waves {
    /// A queue without lanes gets one for each priority: the first messages have moved with that.
    fn of_other_lanes() -> Self {
        let mut waves = Self::with(&[("q", fifo())]);
        for number in 0..MANY {
            waves.apply(START, Command::Publish(publish(number as i64 % 10)));
        }
        waves.declare(Settings::default());
        waves
    }

    fn declare(&mut self, settings: Settings) {
        self.apply(LATER, Command::declare("q".into(), Box::new(settings)));
    }

    fn moving(&self) -> u64 {
        self.view("q").lanes.iter().map(|lane| lane.moving).sum()
    }

    /// How many move in each step, until none has to.
    fn move_on(&mut self) -> Vec<u64> {
        let mut steps = Vec::new();
        while self.broker.next_deadline().is_some_and(|when| when <= LATER) {
            let before = self.moving();
            self.tick();
            steps.push(before - self.moving());
        }
        steps
    }
}

#[test]
fn messages_move_to_other_lanes_a_few_a_step_and_new_ones_go_first() {
    let mut waves = Waves::of_other_lanes();
    let moved = MANY - waves.moving();
    assert!((1..=2 * MOST as u64).contains(&moved), "{moved} moved at once");
    assert_eq!(waves.ready("q"), MANY, "all are seen");
    waves.apply(LATER, Command::Publish(publish(9)));
    assert_eq!(waves.pull(1, 1), [9], "what is new and urgent goes first");
    let steps = waves.move_on();
    assert!(steps.iter().all(|moved| *moved <= MOST as u64) && steps.len() > 5, "{steps:?}");
    let lanes: Vec<String> = waves.view("q").lanes.iter().map(|lane| lane.lane.to_string()).collect();
    assert_eq!(lanes.join(" "), "9 8 7 6 5 4 3 2 1 0", "the lane of before is gone");
    assert_eq!(waves.pull(2, 7), [9, 9, 9, 9, 9, 8, 8]);
}

#[test]
fn what_waits_to_move_is_found_removed_and_expires_and_is_not_leased() {
    let mut waves = Waves::with(&[("q", fifo())]);
    waves.publish_wave(|number| Some(format!("id-{number}")));
    waves.apply(START, Command::declare("q".into(), Box::default()));
    let last = Which::Id(format!("id-{}", MANY - 1).into());
    waves.apply(START, Command::Remove { queue: "q".into(), which: last });
    assert_eq!(waves.ready("q"), MANY - 1);
    assert_eq!(waves.pull(1, 1), [0; 0], "all are over, or have not moved");
    let dropped = waves.tick_on();
    assert!(dropped.iter().all(|ended| *ended <= MOST), "{dropped:?}");
    assert_eq!((waves.ready("q"), waves.moving()), (0, 0));
}

#[test]
fn leases_move_first_and_no_cap_is_passed_meanwhile() {
    let mut waves = Waves::with(&[("q", fifo())]);
    for _ in 0..MANY {
        waves.apply(START, Command::Publish(publish(3)));
    }
    let most = 3 * MOST;
    assert_eq!(waves.pull(1, most as u32).len(), most);
    let capped = LaneSettings { max_active: most as u32 + 2 };
    let lanes = [("3".to_owned(), capped)].into();
    waves.declare(Settings { lanes, ..Settings::default() });
    assert_eq!(waves.pull(2, 10), [0; 0], "it is not known yet how many of the lane are out");
    waves.move_on();
    assert_eq!(waves.pull(3, 10).len(), 2);
}

#[test]
fn lanes_that_change_twice_lose_nothing() {
    let mut waves = Waves::of_other_lanes();
    waves.declare(fifo());
    waves.declare(Settings { scheme: Scheme::TenLevel, ..Settings::default() });
    waves.tick();
    waves.declare(fifo());
    assert_eq!(waves.ready("q"), MANY);
    waves.move_on();
    let expected: Vec<i32> = (0..MANY as i32).map(|number| number % 10).collect();
    assert_eq!(waves.pull(1, MANY as u32), expected, "as they were published");
}

#[test]
fn keys_take_turns_when_all_have_moved() {
    let mut waves = Waves::with(&[("q", fifo())]);
    for number in 0..MANY {
        let key = Some(if number < MANY - 2 { "a" } else { "b" }.into());
        waves.apply(START, Command::Publish(Publish { key, ..publish(3) }));
    }
    waves.pull(1, 1);
    waves.declare(Settings { group_limit: 2, ..fifo() });
    assert!(waves.moving() > 0);
    waves.move_on();
    assert_eq!(waves.pull(2, 10).len(), 3, "one more of a key of which one is out, and two of the other");
}

impl Waves {
    /// A queue that may have so many of a key out, with a message of each of many keys and two more of the first.
    fn of_keys(settings: Settings) -> Self {
        let mut waves = Self::with(&[("q", settings)]);
        for key in (0..MANY).chain([0, 0]) {
            waves.apply(START, Command::Publish(of_key(key)));
        }
        waves
    }

    /// How many steps it takes until nothing is left to do at once.
    fn rest(&mut self) -> usize {
        let mut steps = 0;
        while self.broker.next_deadline().is_some_and(|when| when <= LATER) {
            self.tick();
            steps += 1;
        }
        steps
    }
}

fn of_key(key: u64) -> Publish {
    Publish { key: Some(format!("key-{key}").into()), ..publish(3) }
}

#[test]
fn another_limit_of_keys_holds_at_once_and_messages_move_a_few_a_step() {
    let with = |group_limit| Settings { group_limit, ..fifo() };
    let mut waves = Waves::of_keys(with(1));
    assert_eq!(waves.pull(1, 1).len(), 1, "one of the first key");
    waves.declare(with(2));
    assert!(waves.moving() > MANY / 2, "{} are to move", waves.moving());
    let steps = waves.move_on();
    assert!(steps.iter().all(|moved| *moved <= MOST as u64), "{steps:?}");
    let all = MANY as usize;
    assert_eq!(waves.pull(2, 2 * all as u32).len(), all, "a second of the first key, and one of each other");
    waves.declare(with(1));
    waves.move_on();
    assert_eq!(waves.pull(3, 9), [0; 0], "the last of the first key waits until both are settled");
}

#[test]
fn another_rate_of_keys_gives_no_tokens_anew_whether_they_were_taken_over_or_not() {
    let with = |per_ms| {
        let rate = RateLimit { messages: 1, per_ms };
        Settings { key_rate_limit: Some(rate), ..fifo() }
    };
    let mut waves = Waves::of_keys(with(1_000_000));
    assert_eq!(waves.pull(1, MANY as u32).len(), MANY as usize, "one of each key");
    waves.declare(with(2_000_000));
    assert!(waves.broker.is_late(), "most of the keys are to be taken over");
    waves.apply(LATER, Command::Publish(of_key(MANY - 1)));
    assert_eq!(waves.pull(2, 9), [0; 0]);
    assert!(waves.rest() > 5);
    waves.apply(LATER, Command::Publish(of_key(MANY - 2)));
    assert_eq!(waves.pull(3, 9), [0; 0]);
}

#[test]
fn keys_that_no_longer_count_are_forgotten_a_few_a_step() {
    let mut waves = Waves::of_keys(Settings { group_limit: 1, ..fifo() });
    waves.declare(fifo());
    assert!(waves.broker.is_late());
    assert_eq!(waves.pull(1, 3).len(), 3, "they hold nobody back meanwhile");
    assert!(waves.rest() > MANY as usize / MOST);
    assert!(!waves.broker.is_late());
}

#[test]
fn a_lane_keeps_its_turn_where_keys_count_for_the_first_time() {
    let weights = [("9".to_owned(), 2), ("6".to_owned(), 1)];
    let weighted =
        || Settings { picker: PickerKind::Weighted(weights.clone().into()), ..Settings::default() };
    let mut waves = Waves::with(&[("q", weighted())]);
    for priority in [9, 9, 9, 9, 6, 6] {
        waves.apply(START, Command::Publish(publish(priority)));
    }
    assert_eq!(waves.pull(1, 1), [9]);
    waves.declare(Settings { group_limit: 100, ..weighted() });
    waves.move_on();
    assert_eq!(waves.pull(2, 10), [9, 6, 9, 9, 6]);
}
