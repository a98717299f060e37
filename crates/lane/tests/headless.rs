//! A log whose head was given back: messages stand in it before it says what their queues are.

use overtake_lane::{
    ApplyTo, Binding, Broker, Command, Definition, Destination, Effect, ExchangeKind, ExchangeSettings, Fact,
    Identity, LastValue, LeaseId, Message, Options, Original, Pattern, Place, Policy, PolicyKind, Priority,
    QueueId, Scheme, Seq, Settings, State, Status, Step, Time, Unfounded, VhostId,
};

fn stored(queue: u32, seq: u64, state: State) -> Fact {
    let message = Message {
        seq: Seq(seq),
        priority: Priority(5),
        original: Original::Missing,
        since: Time(1),
        expires: Time::NEVER,
        bytes: 0,
        count: 0,
        place: Place(seq),
        state,
        extras: None,
    };
    Fact::Stored { queue: QueueId(queue), message }
}

fn described(queue: u32, settings: Settings) -> Fact {
    Fact::QueueStored {
        queue: QueueId(queue),
        vhost: VhostId::DEFAULT,
        name: "q".into(),
        settings: Box::new(settings),
        identity: Identity::default(),
        next_seq: Seq(1),
    }
}

fn broker(facts: Vec<Fact>) -> (Broker, Step) {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    for fact in facts {
        let _ = broker.fold(fact, &mut step);
    }
    broker.wake(Time(2), &mut step);
    (broker, step)
}

#[test]
fn messages_that_stand_before_the_description_of_their_queue_are_in_it() {
    let lease = State::Leased { lease: LeaseId(7), deadline: Time::NEVER };
    let facts = vec![stored(3, 8, State::Ready), stored(3, 2, lease), stored(3, 5, State::Ready)];
    let (broker, _) = broker(facts.into_iter().chain([described(3, Settings::default())]).collect());
    let view = broker.view(Time(2), VhostId::DEFAULT, "q").expect("it is described");
    assert_eq!((view.next_seq, view.lanes[0].ready, view.lanes[0].leased), (Seq(9), 2, 1));
    assert_eq!(broker.message(VhostId::DEFAULT, "q", "seq-2").expect("it is there").0.status, Status::Leased);
}

#[test]
fn they_stand_there_as_its_settings_say() {
    let last = Settings { last_value: Some(LastValue::One), ..Settings::default() };
    let facts = vec![stored(0, 1, State::Ready), stored(0, 2, State::Ready), described(0, last)];
    let (broker, step) = broker(facts);
    assert_eq!(broker.view(Time(2), VhostId::DEFAULT, "q").expect("it is described").lanes[0].ready, 1);
    assert_eq!(step.effects, [Effect::Released(Place(1))]);
}

#[test]
fn a_queue_that_is_never_described_gets_a_name_if_it_holds_a_message() {
    let (broker, step) = broker(vec![
        stored(4, 1, State::Ready),
        stored(5, 1, State::Ready),
        Fact::QueueDeleted { queue: QueueId(5) },
    ]);
    let names: Vec<_> = broker.all_views(Time(2)).map(|view| view.name.to_string()).collect();
    assert_eq!(names, ["recovered-4"]);
    assert!(
        matches!(&step.facts[..], [Fact::QueueStored { queue: QueueId(4), .. }]),
        "it is said for the next time"
    );
}

#[test]
fn a_sequence_that_no_queue_gives_is_damage() {
    for seq in [0, u64::MAX] {
        let mut broker = Broker::new(Options::default());
        assert_eq!(broker.fold(stored(0, seq, State::Ready), &mut Step::default()), Err(Unfounded));
    }
}

fn in_vhost(vhost: u32, fact: Fact) -> Fact {
    match fact {
        Fact::QueueStored { queue, name, settings, identity, next_seq, .. } => {
            Fact::QueueStored { queue, vhost: VhostId(vhost), name, settings, identity, next_seq }
        }
        other => panic!("{other:?} is in none"),
    }
}

fn vhost(vhost: u32, name: &str) -> Fact {
    Fact::VhostStored { vhost: VhostId(vhost), name: name.into(), settings: Box::default() }
}

fn exchange(vhost: u32) -> Fact {
    let settings = Box::new(ExchangeSettings::new(ExchangeKind::Fanout));
    Fact::ExchangeStored { vhost: VhostId(vhost), name: "x".into(), settings }
}

/// `/ q · v q`: every queue by virtual host.
fn seen(broker: &Broker) -> String {
    let vhosts = broker.vhosts().map(|view| {
        let queues = broker.views(Time(2), view.vhost, None).expect("it is there");
        let names: Vec<String> = queues.map(|view| view.name.to_string()).collect();
        format!("{} {}", view.name, names.join(" "))
    });
    vhosts.collect::<Vec<_>>().join(" · ")
}

#[test]
fn what_stands_before_the_description_of_its_virtual_host_is_in_it() {
    let facts = vec![exchange(7), in_vhost(7, described(3, Settings::default())), vhost(7, "v")];
    let (broker, step) = broker(facts);
    assert_eq!(seen(&broker), "/  · v q");
    assert!(broker.topology(VhostId(7)).expect("it is there").exchange("x").is_some());
    assert_eq!(step.facts, [], "nothing is new");
}

fn policy(vhost: u32, max_priority: u8) -> Fact {
    let definition = Definition { max_priority: Some(max_priority), ..Definition::default() };
    let policy = Box::new(Policy {
        pattern: Pattern::new("q").expect("a pattern"),
        definition,
        priority: 0,
        apply_to: ApplyTo::Queues,
    });
    Fact::PolicyStored { vhost: VhostId(vhost), kind: PolicyKind::User, name: "p".into(), policy }
}

/// The facts of a queue with a message, of its virtual host, and of its policy, in whatever order.
#[test]
fn a_policy_rules_its_virtual_host_wherever_the_log_says_so() {
    let numbered = || Settings { scheme: Scheme::Max(9), ..Settings::default() };
    let facts =
        || [policy(7, 3), in_vhost(7, described(3, numbered())), vhost(7, "v"), stored(3, 1, State::Ready)];
    for order in [[0, 1, 2, 3], [3, 0, 1, 2], [2, 1, 3, 0], [1, 0, 3, 2], [3, 1, 0, 2], [0, 3, 2, 1]] {
        let order = order.iter().map(|at| facts()[*at].clone());
        let (broker, step) = broker(order.chain([policy(0, 5)]).collect());
        let view = broker.view(Time(2), VhostId(7), "q").expect("it is there");
        assert_eq!(view.effective_settings().scheme, Scheme::Max(3));
        assert_eq!(view.lanes.iter().map(|lane| lane.ready).sum::<u64>(), 1);
        assert_eq!((step.facts, broker.policies_size().policies), (vec![], 2));
    }
}

#[test]
fn a_policy_goes_with_its_virtual_host_and_keeps_one_that_is_never_described() {
    let (there, _) = broker(vec![vhost(7, "v"), policy(7, 3), Fact::VhostDeleted { vhost: VhostId(7) }]);
    assert_eq!((seen(&there), there.policies_size().policies), ("/ ".to_owned(), 0));
    let removed = Fact::PolicyRemoved { vhost: VhostId(9), kind: PolicyKind::User, name: "p".into() };
    let (there, step) = broker(vec![policy(8, 3), removed]);
    assert_eq!(seen(&there), "/  · recovered-8 ");
    assert_eq!((step.facts, there.policies_size().policies), (vec![vhost(8, "recovered-8")], 1));
}

#[test]
fn a_virtual_host_that_is_never_described_gets_a_name_if_there_is_something_in_it() {
    let unbound = Binding::new("amq.topic", Destination::Queue("q".into()), "k");
    let facts = vec![
        exchange(7),
        in_vhost(8, described(3, Settings::default())),
        Fact::Unbound { vhost: VhostId(9), binding: Box::new(unbound) },
    ];
    let (broker, step) = broker(facts);
    assert_eq!(seen(&broker), "/  · recovered-7  · recovered-8 q");
    assert_eq!(
        step.facts,
        [vhost(7, "recovered-7"), vhost(8, "recovered-8")],
        "it is said for the next time"
    );
}

#[test]
fn a_name_that_another_virtual_host_has_is_damage() {
    let (broker, _) = broker(vec![vhost(1, "v"), vhost(2, "v"), vhost(0, "w"), vhost(1, "w"), exchange(2)]);
    assert_eq!(seen(&broker), "/  · recovered-2  · v ");
}

#[test]
fn a_queue_that_a_damaged_log_speaks_of_again_is_not_said_to_be_gone() {
    let again = stored(3, 1, State::Ready);
    let deleted = Fact::VhostDeleted { vhost: VhostId(7) };
    let facts = vec![vhost(7, "v"), in_vhost(7, described(3, Settings::default())), deleted, again];
    let (broker, step) = broker(facts);
    assert_eq!(seen(&broker), "/ recovered-3");
    assert!(matches!(&step.facts[..], [Fact::QueueStored { .. }]), "{:?}", step.facts);
}

/// Its definition and that of its virtual host are given back, its message and that both are deleted are not.
#[test]
fn a_queue_that_went_with_its_virtual_host_does_not_come_back_by_its_messages() {
    let before = [vhost(7, "v"), in_vhost(7, described(3, Settings::default())), stored(3, 1, State::Ready)];
    let mut live = Broker::new(Options::default());
    for fact in before.iter().cloned() {
        live.fold(fact, &mut Step::default()).expect("founded");
    }
    let mut step = Step::default();
    live.apply(Time(1), Command::DeleteVhost { name: "v".into() }, &mut step).expect("deleted");
    let (broker, _) = broker(before[2..].iter().cloned().chain(step.facts).collect());
    assert_eq!(seen(&broker), "/ ");
}
