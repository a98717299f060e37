//! A log whose head was given back: messages stand in it before it says what their queues are.

use overtake_lane::{
    Broker, Effect, Fact, Identity, LastValue, LeaseId, Message, Options, Original, Place, Priority, QueueId,
    Seq, Settings, State, Status, Step, Time, Unfounded,
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
    let view = broker.view(Time(2), "q").expect("it is described");
    assert_eq!((view.next_seq, view.lanes[0].ready, view.lanes[0].leased), (Seq(9), 2, 1));
    assert_eq!(broker.message("q", "seq-2").expect("it is there").0.status, Status::Leased);
}

#[test]
fn they_stand_there_as_its_settings_say() {
    let last = Settings { last_value: Some(LastValue::One), ..Settings::default() };
    let facts = vec![stored(0, 1, State::Ready), stored(0, 2, State::Ready), described(0, last)];
    let (broker, step) = broker(facts);
    assert_eq!(broker.view(Time(2), "q").expect("it is described").lanes[0].ready, 1);
    assert_eq!(step.effects, [Effect::Released(Place(1))]);
}

#[test]
fn a_queue_that_is_never_described_gets_a_name_if_it_holds_a_message() {
    let (broker, step) = broker(vec![
        stored(4, 1, State::Ready),
        stored(5, 1, State::Ready),
        Fact::QueueDeleted { queue: QueueId(5) },
    ]);
    let names: Vec<_> = broker.views(Time(2), None).map(|view| view.name.to_string()).collect();
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
