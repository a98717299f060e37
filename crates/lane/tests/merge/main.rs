//! Places merged by their heads give what one queue gives, message by message.

use std::collections::BTreeMap;

use overtake_lane::{
    Address, Broker, Command, ConsumerId, Effect, Get, Given, Head, Merger, Options, Outcome, PickerKind,
    Place, Publish, Receipt, Seq, Settings, Step, Time,
};

/// A place: what is ready, by level and sequence, with when it was published.
#[derive(Default)]
struct Part(BTreeMap<i32, BTreeMap<Seq, Time>>);

impl Part {
    fn head(&self, level: i32) -> Option<Head> {
        let (seq, since) = self.0.get(&level)?.first_key_value()?;
        Some(Head { level, since: *since, seq: *seq })
    }
}

/// The messages of a queue in so many places.
struct Parted {
    parts: Vec<Part>,
    merger: Merger,
}

impl Parted {
    fn new(places: usize, picker: &PickerKind) -> Self {
        let weights = match picker {
            PickerKind::Weighted(weights) => {
                weights.iter().map(|(lane, weight)| (lane.parse().expect("a level"), *weight)).collect()
            }
            _ => BTreeMap::new(),
        };
        Self { parts: (0..places).map(|_| Part::default()).collect(), merger: Merger::new(picker, weights) }
    }

    fn put(&mut self, hash: u64, head: Head) {
        let place = hash % self.parts.len() as u64;
        let part = &mut self.parts[place as usize];
        part.0.entry(head.level).or_default().insert(head.seq, head.since);
        self.merger.show(place as u32, head.level, part.head(head.level));
    }

    fn take(&mut self) -> Option<Head> {
        let (place, head) = self.merger.pick(|_| true)?;
        let part = &mut self.parts[place as usize];
        part.0.get_mut(&head.level).expect("it has a head").remove(&head.seq);
        self.merger.show(place, head.level, part.head(head.level));
        self.merger.charge(head.level);
        Some(head)
    }
}

/// One queue of a broker, and the same messages in places.
struct All {
    broker: Broker,
    parted: Vec<Parted>,
    now: Time,
    /// By which each message finds its place, by sequence.
    hashes: Vec<u64>,
    held: Vec<(Receipt, Head)>,
}

impl All {
    fn new(picker: &PickerKind) -> Self {
        let parted = [1, 2, 16, 1_000].map(|places| Parted::new(places, picker)).into();
        let mut broker = Broker::new(Options::default());
        let settings = Settings { picker: picker.clone(), ..Settings::default() };
        let declared = Command::declare("q".into(), Box::new(settings));
        broker.apply(Time(1), declared, &mut Step::default()).expect("made");
        Self { broker, parted, now: Time(1), hashes: Vec::new(), held: Vec::new() }
    }

    fn publish(&mut self, level: i32, hash: u64) {
        let publish = Publish {
            to: Address::Queue("q".into()),
            priority: Given::Number(level.into()),
            id: None,
            origin: None,
            key: None,
            key_weight: None,
            ttl_ms: None,
            base_ttl_ms: None,
            delay_ms: 0,
            bytes: 1,
            place: Place::default(),
        };
        self.broker
            .apply(self.now, Command::PublishUntold(publish), &mut Step::default())
            .expect("published");
        self.hashes.push(hash);
        let head = Head { level, since: self.now, seq: Seq(self.hashes.len() as u64) };
        self.parted.iter_mut().for_each(|parted| parted.put(hash, head));
    }

    /// Takes what goes next from all of them. False: there is nothing.
    fn take(&mut self, nth: u64) -> bool {
        let get = Get { consumer: ConsumerId(nth), queue: "q".into(), no_ack: false };
        let mut step = Step::default();
        self.broker.apply(self.now, Command::Get(get), &mut step).expect("asked");
        let delivered = step.effects.iter().find_map(|effect| match effect {
            Effect::Deliver(delivery) => Some(delivery.receipt),
            _ => None,
        });
        let mut taken = None;
        for parted in &mut self.parted {
            taken = parted.take();
            let seq = taken.map(|head| head.seq);
            assert_eq!(seq, delivered.map(|receipt| receipt.seq), "in {} places", parted.parts.len());
        }
        self.held.extend(delivered.zip(taken));
        taken.is_some()
    }

    /// Ends a lease: half of them well.
    fn settle(&mut self, draw: u64) {
        if self.held.is_empty() {
            return;
        }
        let (receipt, head) = self.held.swap_remove((draw / 2) as usize % self.held.len());
        let outcome = if draw & 1 == 0 { Outcome::Ack } else { Outcome::Release };
        let settle = Command::Settle { receipts: vec![receipt], outcome };
        self.broker.apply(self.now, settle, &mut Step::default()).expect("settled");
        if outcome == Outcome::Release {
            let hash = self.hashes[head.seq.0 as usize - 1];
            self.parted.iter_mut().for_each(|parted| parted.put(hash, head));
        }
    }
}

/// Numbers that look like chance (Vigna's splitmix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn check(messages: usize, picker: &PickerKind) {
    let mut all = All::new(picker);
    let (mut draws, mut nth) = (Draws(7), 0);
    loop {
        let draw = draws.next();
        all.now = all.now.after(draw >> 8 & 1);
        nth += 1;
        match draw % 8 {
            0..=3 if all.hashes.len() < messages => all.publish(((draw >> 16) % 10) as i32, draw >> 20),
            0..=5 => {
                if !all.take(nth) && all.hashes.len() == messages && all.held.is_empty() {
                    return;
                }
            }
            _ => all.settle(draw >> 16),
        }
    }
}

#[test]
fn a_million_messages_in_any_number_of_places_go_in_the_order_of_one_queue() {
    check(1_000_000, &PickerKind::Strict);
}

#[test]
fn places_merge_by_heads_under_every_picker() {
    let weights = [("9", 5), ("5", 3), ("1", 2)].map(|(lane, weight)| (lane.to_owned(), weight));
    for picker in [PickerKind::AgingMs(7), PickerKind::Weighted(weights.into())] {
        check(100_000, &picker);
    }
}

#[test]
fn what_a_place_shows_is_taken_back_as_a_whole() {
    let mut merger = Merger::new(&PickerKind::Strict, BTreeMap::new());
    let head = |level, seq| Head { level, since: Time(0), seq: Seq(seq) };
    merger.show_all(1, &[head(9, 5), head(1, 2)]);
    merger.show_all(2, &[head(9, 4), head(3, 1)]);
    assert_eq!(merger.pick(|_| true), Some((2, head(9, 4))));
    assert_eq!(merger.runner_up(2, |_| true), Some(head(9, 5)));
    assert_eq!(merger.runner_up(1, |level| level < 9), Some(head(3, 1)));
    assert_eq!(merger.pick(|level| level < 9), Some((2, head(3, 1))));
    merger.show_all(2, &[]);
    assert_eq!(merger.pick(|_| true), Some((1, head(9, 5))));
    merger.show_all(1, &[head(1, 2)]);
    assert_eq!(merger.pick(|level| level > 1), None);
    assert_eq!(merger.of(1).collect::<Vec<_>>(), [head(1, 2)]);
}
