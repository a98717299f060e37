//! What is pushed to a connection and not taken by it is bounded in bytes, whatever the windows of its consumers.

use overtake_lane::{
    Address, Broker, Command, Consume, ConsumerId, Effect, FeedId, Given, Options, Place, Publish,
    PushLimits, Step, Time, pushed_bytes,
};

const SLOW: FeedId = FeedId(1);
const OTHER: FeedId = FeedId(2);
const SIZE: u32 = 1_000;
/// Room for four messages, of which one may begin in what is left.
const LIMITS: PushLimits = PushLimits { feed: 4 * (SIZE as u64 + 128), all: 8 * (SIZE as u64 + 128) };

struct World {
    broker: Broker,
    consumers: u64,
    places: u64,
}

impl World {
    fn new(queues: &[&str]) -> Self {
        let options = Options { life: 1, pushes: LIMITS, ..Options::default() };
        let mut world = Self { broker: Broker::new(options), consumers: 0, places: 0 };
        for queue in queues {
            world.ask(Command::declare((*queue).into(), Box::default()));
        }
        world
    }

    /// Does it; answers the priorities of the messages that were delivered, with the consumers that got them.
    fn ask(&mut self, command: Command) -> Vec<(ConsumerId, i32)> {
        let mut step = Step::default();
        self.broker.apply(Time(1), command, &mut step).expect("it is done");
        let delivered = step.effects.iter().filter_map(|effect| match effect {
            Effect::Deliver(delivery) => Some((delivery.consumer, delivery.priority.0)),
            _ => None,
        });
        delivered.collect()
    }

    fn publish(&mut self, queue: &str, priority: i32) -> usize {
        self.places += 1;
        let publish = Publish {
            to: Address::Queue(queue.into()),
            priority: Given::Number(priority.into()),
            id: None,
            origin: None,
            key: None,
            key_weight: None,
            ttl_ms: None,
            base_ttl_ms: None,
            delay_ms: 0,
            bytes: SIZE,
            place: Place(self.places),
        };
        self.ask(Command::Publish(publish)).len()
    }

    fn consume(&mut self, queue: &str, feed: FeedId, no_ack: bool) -> (ConsumerId, usize) {
        self.consumers += 1;
        let consumer = ConsumerId(self.consumers);
        let consume = Consume { feed: Some(feed), no_ack, ..Consume::new(consumer, queue.into()) };
        (consumer, self.ask(Command::Consume(consume)).len())
    }

    fn taken(&mut self, feed: FeedId, messages: u64) -> Vec<i32> {
        let delivered = self.ask(Command::Taken { feed, bytes: messages * pushed_bytes(SIZE.into()) });
        delivered.into_iter().map(|(_, priority)| priority).collect()
    }
}

#[test]
fn a_connection_that_takes_nothing_gets_no_more_than_its_bytes() {
    for no_ack in [false, true] {
        let mut world = World::new(&["q"]);
        for _ in 0..20 {
            world.publish("q", 1);
        }
        assert_eq!(world.consume("q", SLOW, no_ack).1, 4, "no_ack: {no_ack}");
        assert_eq!(world.publish("q", 1), 0);
        assert_eq!(world.taken(SLOW, 1), [1]);
        assert_eq!(world.taken(SLOW, 4), [1; 4]);
        assert_eq!(world.broker.pushed().bytes, LIMITS.feed);
    }
}

#[test]
fn an_urgent_message_goes_ahead_of_those_that_wait_for_the_connection() {
    let mut world = World::new(&["q"]);
    for _ in 0..20 {
        world.publish("q", 1);
    }
    world.consume("q", SLOW, false);
    assert_eq!(world.publish("q", 9), 0);
    assert_eq!(world.taken(SLOW, 2), [9, 1]);
}

#[test]
fn consumers_of_one_connection_share_its_bytes_over_all_queues_and_take_turns() {
    let mut world = World::new(&["a", "b"]);
    world.consume("a", SLOW, false);
    world.consume("b", SLOW, false);
    for _ in 0..3 {
        world.publish("a", 1);
        world.publish("b", 2);
    }
    assert_eq!(world.broker.pushed().bytes, LIMITS.feed);
    let mut came = world.taken(SLOW, 4);
    came.sort_unstable();
    assert_eq!(came, [1, 2]);
}

#[test]
fn the_other_consumers_of_a_queue_go_on() {
    let mut world = World::new(&["q"]);
    world.consume("q", SLOW, false);
    let (other, _) = world.consume("q", OTHER, false);
    for _ in 0..8 {
        world.publish("q", 1);
    }
    for _ in 0..3 {
        world.taken(OTHER, 4);
        let came: Vec<_> = (0..4).map(|_| world.publish("q", 1)).collect();
        assert_eq!(came, [1; 4]);
    }
    assert_eq!(world.broker.feed_of(other), Some(OTHER));
}

#[test]
fn those_who_read_go_on_when_the_others_hold_all_there_is() {
    let mut world = World::new(&["q", "urgent"]);
    for _ in 0..20 {
        world.publish("q", 1);
    }
    world.consume("q", SLOW, false);
    world.consume("q", OTHER, false);
    assert_eq!(world.broker.pushed().bytes, LIMITS.all);
    let reader = FeedId(3);
    world.consume("urgent", reader, false);
    for _ in 0..10 {
        assert_eq!(world.publish("urgent", 9), 1);
        world.taken(reader, 1);
    }
    assert!(world.broker.pushed().bytes <= LIMITS.all + LIMITS.feed / 4);
    assert!(world.broker.pushed().waits > 0);
}

#[test]
fn a_connection_that_is_gone_gives_back_its_bytes_and_others_get_them() {
    let mut world = World::new(&["q"]);
    for _ in 0..40 {
        world.publish("q", 1);
    }
    let (slow, _) = world.consume("q", SLOW, false);
    world.consume("q", OTHER, false);
    let third = FeedId(3);
    let (_, came) = world.consume("q", third, false);
    assert_eq!(came, 1, "a quarter of its window while there is too much of all");
    world.ask(Command::Cancel { consumer: slow });
    let came = world.ask(Command::EndFeed { feed: SLOW });
    assert_eq!(came.len(), 3);
    assert_eq!(world.broker.pushed().bytes, LIMITS.all);
}

#[test]
fn a_message_larger_than_the_window_goes_through() {
    let mut world = World::new(&["q"]);
    world.broker =
        Broker::new(Options { life: 1, pushes: PushLimits { feed: 10, all: 20 }, ..Options::default() });
    world.ask(Command::declare("q".into(), Box::default()));
    world.consume("q", SLOW, false);
    assert_eq!((world.publish("q", 1), world.publish("q", 1)), (1, 0));
    assert_eq!(world.taken(SLOW, 1), [1]);
}

#[test]
fn many_consumers_that_wait_are_resumed_a_few_at_a_time() {
    let mut world = World::new(&["q"]);
    for _ in 0..2_000 {
        world.consume("q", SLOW, false);
    }
    for _ in 0..5_000 {
        world.publish("q", 1);
    }
    let mut came = 4;
    while came < 5_000 {
        let next = world.taken(SLOW, 2).len();
        assert!((1..=2).contains(&next), "{next} after {came}");
        came += next;
    }
}
