//! Nothing less urgent passes what is more urgent: random stories, beside a model that keeps all messages in a sorted list.
//!
//! Every publish is confirmed before anything else happens, so whenever a consumer has room the most urgent message goes to it at
//! once. The model knows what is ready and how much room there is; the broker must agree on every single delivery.

use std::collections::{BTreeMap, BTreeSet};

use overtake_amqp::method::basic;

use crate::broker::Broker;
use crate::client::Client;
use crate::holes::TEN;

/// A message as the model sees it: the most urgent first, then the oldest.
type Place = (std::cmp::Reverse<u8>, u32);

/// splitmix64 (Steele, Lea, Flood): the same story for the same seed.
struct Lots(u64);

impl Lots {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut lot = self.0;
        lot = (lot ^ (lot >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        lot = (lot ^ (lot >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (lot ^ (lot >> 31)) % most
    }
}

struct Story {
    broker: Broker,
    publisher: Client,
    consumers: Vec<Client>,
    prefetch: usize,
    lots: Lots,
    published: u32,
    places: BTreeMap<String, Place>,
    ready: BTreeSet<Place>,
    /// What each consumer holds.
    held: Vec<BTreeSet<Place>>,
    out_before: BTreeSet<Place>,
}

impl Story {
    fn new(consumers: usize, prefetch: usize, seed: u64) -> Self {
        let mut broker = Broker::new();
        let mut publisher = broker.connect();
        publisher.declare("q", &[TEN]);
        publisher.confirm();
        let clients = (0..consumers).map(|_| consumer(&mut broker, prefetch)).collect();
        Self {
            broker,
            publisher,
            consumers: clients,
            prefetch,
            lots: Lots(seed),
            published: 0,
            places: BTreeMap::new(),
            ready: BTreeSet::new(),
            held: vec![BTreeSet::new(); consumers],
            out_before: BTreeSet::new(),
        }
    }

    fn step(&mut self) {
        match self.lots.below(10) {
            0..=4 => self.publish(),
            5..=7 => self.settle(true),
            8 => self.settle(false),
            _ => self.lose_a_consumer(),
        }
        self.agree();
    }

    fn publish(&mut self) {
        let priority = self.lots.below(10) as u8;
        let body = format!("m{}", self.published);
        let place = (std::cmp::Reverse(priority), self.published);
        self.published += 1;
        self.places.insert(body.clone(), place);
        self.ready.insert(place);
        self.publisher.publish("q", &format!("{body}:{priority}"));
        assert_eq!(self.publisher.hears(), format!("safe {}", self.published));
    }

    /// Acknowledges something, or puts it back.
    fn settle(&mut self, is_done: bool) {
        let who = self.lots.below(self.consumers.len() as u64) as usize;
        let held: Vec<Place> = self.held[who].iter().copied().collect();
        if held.is_empty() {
            return;
        }
        let place = held[self.lots.below(held.len() as u64) as usize];
        let body = format!("m{}", place.1);
        self.held[who].remove(&place);
        let client = &mut self.consumers[who];
        let delivery_tag = client.letter(&body).delivery_tag;
        if is_done {
            client.tell(basic::Ack { delivery_tag, multiple: false });
        } else {
            client.tell(basic::Nack { delivery_tag, multiple: false, requeue: true });
            self.ready.insert(place);
        }
    }

    /// Its connection is cut, and somebody else comes.
    fn lose_a_consumer(&mut self) {
        let who = self.lots.below(self.consumers.len() as u64) as usize;
        self.ready.extend(std::mem::take(&mut self.held[who]));
        drop(self.consumers.remove(who));
        self.consumers.insert(who, consumer(&mut self.broker, self.prefetch));
    }

    /// What has come is what had to come: the most urgent ones, as many as there was room for.
    fn agree(&mut self) {
        let mut came = Vec::new();
        for (who, client) in self.consumers.iter_mut().enumerate() {
            for word in client.hears().split(" · ").filter(|word| !word.is_empty()) {
                let body = word.trim_end_matches('!');
                let place = self.places[body];
                assert_eq!(word.ends_with('!'), !self.out_before.insert(place), "{body}: was it out before?");
                assert!(self.held[who].insert(place), "{body} came twice");
                came.push(place);
            }
            let count = self.held[who].len();
            assert!(count <= self.prefetch, "{count} are out to a consumer of prefetch {}", self.prefetch);
        }
        let due: Vec<Place> = came.iter().filter_map(|_| self.ready.pop_first()).collect();
        came.sort_unstable();
        assert_eq!(came, due, "the most urgent ones go first");
        let has_room = self.held.iter().any(|held| held.len() < self.prefetch);
        assert!(!has_room || self.ready.is_empty(), "somebody has room, and {:?} wait", self.ready);
    }
}

fn consumer(broker: &mut Broker, prefetch: usize) -> Client {
    let mut consumer = broker.connect();
    consumer.prefetch(prefetch as u16);
    consumer.consume("q");
    consumer
}

fn check(consumers: usize, prefetch: usize) {
    for seed in 0..4 {
        let mut story = Story::new(consumers, prefetch, seed);
        for _ in 0..60 {
            story.step();
        }
        assert!(story.published > 10, "something was published");
    }
}

#[test]
fn with_prefetch_1_no_lower_message_is_delivered_while_a_higher_one_waits() {
    check(1, 1);
}

#[test]
fn nor_with_several_consumers() {
    check(3, 1);
}

/// Those that are out already are all that may be less urgent than what waits.
#[test]
fn with_prefetch_n_at_most_n_are_out() {
    check(1, 5);
}

#[test]
fn at_most_n_to_each_of_several() {
    check(3, 4);
}
