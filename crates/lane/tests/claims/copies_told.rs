//! What a publish would put where, told beforehand: the same as it then stores, and refused for the same reasons.

use std::sync::Arc;

use overtake_lane::{
    Address, Asker, Binding, Broker, Command, Copy, Destination, ExchangeKind, ExchangeSettings, Fact, Given,
    HeaderValue, Headers, LastValue, Message, Options, Place, Publish, QueueId, Refusal, RouteCopy, Scheme,
    Settings, State, Step, Time, Urgency,
};
use proptest::prelude::*;
use proptest::sample::select;

const NOW: Time = Time(1_793_500_000_000);
const QUEUES: [&str; 3] = ["q", "r", "s"];

fn ms() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0_u64), 3 => 1..1_000_u64]
}

fn settings() -> impl Strategy<Value = Settings> {
    let schemes = vec![Scheme::TenLevel, Scheme::Signed, Scheme::Named, Scheme::Route, Scheme::Max(3)];
    let default = prop::option::weighted(0.2, Just(Given::Number(2)));
    let last_value =
        prop_oneof![8 => Just(None), 1 => Just(Some(LastValue::Key)), 1 => Just(Some(LastValue::One))];
    let sizes = prop_oneof![6 => Just(0_u64), 1 => 1..40_u64];
    (select(schemes), default, ms(), ms(), prop::bool::weighted(0.2), last_value, sizes.clone(), sizes)
        .prop_map(
            |(
                scheme,
                default_priority,
                ttl_ms,
                max_ttl_ms,
                expire_at_once,
                last_value,
                max_message_bytes,
                max_bytes,
            )| {
                let default_priority = default_priority.filter(|given| scheme.map(given).is_ok());
                let base = Settings { scheme, default_priority, ttl_ms, max_ttl_ms, ..Settings::default() };
                Settings { expire_at_once, last_value, max_message_bytes, max_bytes, ..base }
            },
        )
}

fn options() -> impl Strategy<Value = Options> {
    (prop_oneof![4 => Just(0_u64), 1 => 1..40_u64], ms(), prop_oneof![3 => Just(0_usize), 1 => 1..3_usize])
        .prop_map(|(max_message_bytes, default_ttl_ms, copies_max)| Options {
            max_message_bytes,
            default_ttl_ms,
            copies_max,
            ..Options::default()
        })
}

fn given() -> impl Strategy<Value = Given> {
    prop_oneof![
        2 => Just(Given::Missing),
        5 => (0..10_i64).prop_map(Given::Number),
        1 => (-200..200_i64).prop_map(Given::Number),
        2 => select(vec!["high", "low", "critical", "7"]).prop_map(|name| Given::Name(name.to_owned())),
    ]
}

fn address() -> impl Strategy<Value = Address> {
    let queues = vec!["q", "r", "s", "nowhere"];
    let names = select(vec!["", "amq.direct", "amq.fanout", "late", "inner", "nowhere"]);
    let delay = prop::option::of((0..500_i64).prop_map(HeaderValue::Int));
    let key = select(queues.clone()).prop_map(Arc::<str>::from);
    let exchange = (names, key.clone(), prop::collection::vec(key, 0..2), delay, any::<bool>()).prop_map(
        |(name, routing_key, more_keys, delay, mandatory)| Address::Exchange {
            name: name.into(),
            routing_key,
            more_keys,
            marks: Arc::new(Headers::from_iter(delay.map(|delay| ("x-delay".to_owned(), delay)))),
            mandatory,
        },
    );
    let urgency = prop_oneof![Just(Urgency::Own), prop::option::of(0..10_u8).prop_map(Urgency::Level)];
    let ttl = prop::option::of(1..500_u64);
    let copies = (prop::sample::subsequence(queues.clone(), 0..4), prop::collection::vec((urgency, ttl), 4));
    let copies = (copies, any::<bool>()).prop_map(|((queues, stamps), mandatory)| {
        let stamped = queues.into_iter().zip(stamps);
        let copies =
            stamped.map(|(queue, (urgency, ttl_ms))| RouteCopy { queue: queue.into(), urgency, ttl_ms });
        Address::Copies { copies: copies.collect(), mandatory }
    });
    prop_oneof![1 => select(queues).prop_map(|name| Address::Queue(name.into())), 3 => exchange, 2 => copies]
}

fn publish() -> impl Strategy<Value = Publish> {
    let text = |odd: &'static str| {
        prop_oneof![4 => Just(None), 4 => Just(Some("a")), 1 => Just(Some(odd))]
            .prop_map(|text| text.map(Box::<str>::from))
    };
    let times = (prop::option::of(ms()), prop::option::weighted(0.2, 1..500_u64), ms());
    (address(), given(), text("seq-1"), text("\n"), times, 0..60_u32).prop_map(
        |(to, priority, id, key, (ttl_ms, base_ttl_ms, delay_ms), bytes)| Publish {
            key_weight: key.as_ref().map(|_| 1 + bytes),
            to,
            priority,
            id,
            origin: None,
            key,
            ttl_ms,
            base_ttl_ms,
            delay_ms,
            bytes,
            place: Place(7),
        },
    )
}

/// Three queues; each bound to `amq.direct` by its name, to `amq.fanout`, and to an exchange that delays, `s` by another way as well.
fn broker(options: Options, settings: &[Settings]) -> Broker {
    let (mut broker, mut step) = (Broker::new(options), Step::default());
    let mut ask = |command| broker.apply(NOW, command, &mut step).map(drop).expect("it is taken");
    let late = ExchangeSettings { delayed: true, ..ExchangeSettings::new(ExchangeKind::Direct) };
    let inner = ExchangeSettings { internal: true, ..ExchangeSettings::new(ExchangeKind::Fanout) };
    ask(Command::DeclareExchange { name: "late".into(), settings: Box::new(late) });
    ask(Command::DeclareExchange { name: "inner".into(), settings: Box::new(inner) });
    for (name, settings) in QUEUES.into_iter().zip(settings) {
        ask(Command::declare(name.into(), Box::new(settings.clone())));
        for exchange in ["amq.direct", "amq.fanout", "late"] {
            let to = Destination::Queue(name.into());
            ask(Command::Bind(Box::new(Binding::new(exchange, to, name))));
        }
    }
    let late = Destination::Exchange("late".into());
    ask(Command::Bind(Box::new(Binding::new("amq.direct", late, "q"))));
    let both = Destination::Queue("s".into());
    ask(Command::Bind(Box::new(Binding::new("late", both, "q"))));
    broker
}

/// What was stored and not evicted at once, said as it is told beforehand.
fn stored(step: &Step) -> Vec<Copy> {
    let stored = step.facts.iter().filter_map(|fact| match fact {
        Fact::Stored { queue, message } if message.state != State::Dead => Some(as_copy(*queue, message)),
        _ => None,
    });
    stored.collect()
}

fn as_copy(queue: QueueId, message: &Message) -> Copy {
    let Message { priority, original, expires, state, .. } = *message;
    let delay_ms = if let State::Delayed { due } = state { due.since(NOW) } else { 0 };
    Copy { queue, priority, original, ttl_ms: expires.some().map(|expires| expires.since(NOW)), delay_ms }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_copies_that_are_told_are_those_that_are_stored(
        options in options(),
        settings in prop::collection::vec(settings(), QUEUES.len()),
        publish in publish(),
    ) {
        let mut broker = broker(options, &settings);
        let told = broker.copies(Asker::default(), &publish).map(|copies| copies.to_vec());
        let mut step = Step::default();
        let done = broker.apply(NOW, Command::Publish(publish), &mut step);
        prop_assert_eq!(told, done.map(|_| stored(&step)));
    }
}

fn plain(to: &str) -> Publish {
    Publish {
        to: Address::Queue(to.into()),
        priority: Given::Missing,
        id: Some("a".into()),
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

#[test]
fn what_is_in_a_queue_changes_nothing_of_what_is_told() {
    let full = Settings { max_length: 1, overflow: overtake_lane::Overflow::Reject, ..Settings::default() };
    let mut broker = broker(Options::default(), &[full, Settings::default(), Settings::default()]);
    let before = broker.copies(Asker::default(), &plain("q"));
    assert!(before.is_ok());
    broker.apply(NOW, Command::Publish(plain("q")), &mut Step::default()).expect("it has room");
    assert_eq!(broker.copies(Asker::default(), &plain("q")), before);
    let other = Publish { id: None, ..plain("q") };
    assert!(broker.copies(Asker::default(), &other).is_ok());
    assert_eq!(broker.apply(NOW, Command::Publish(other), &mut Step::default()), Err(Refusal::QueueFull));
}

#[test]
fn names_mean_what_they_mean_where_it_is_asked() {
    let mut broker = broker(Options::default(), &QUEUES.map(|_| Settings::default()));
    let made = Command::DeclareVhost { name: "v".into(), settings: Box::default() };
    broker.apply(NOW, made, &mut Step::default()).expect("it is made");
    let there = Asker::in_vhost(broker.vhost("v").expect("it is there").vhost);
    let declare = Command::declare("t".into(), Box::default());
    broker.apply_by(NOW, there, declare, &mut Step::default()).expect("it is made");
    let id = broker.id_of(there.vhost, "t").expect("it is there");
    let told = broker.copies(there, &plain("t")).expect("it is taken");
    assert_eq!(told.iter().map(|copy| copy.queue).collect::<Vec<_>>(), [id]);
    assert_eq!(broker.copies(Asker::default(), &plain("t")), Err(Refusal::NoSuchQueue));
}
