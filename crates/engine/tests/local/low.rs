//! A disk that runs low: publishes are refused before it is full, and taken again when there is more than enough room.

use std::sync::Arc;

use overtake_engine::{Engine, Full, LocalEngine, ManualClock, Options, Watermarks};
use overtake_lane::{Outcome, Refusal, Settings};
use overtake_store::MemoryDisk;

use crate::support::{TINY, clock, message, options, pull};

/// Room for so many files.
const FILES: u64 = 20;
const LOW: u64 = 4 * TINY;
const HIGH: u64 = 6 * TINY;

struct World {
    disk: MemoryDisk,
    clock: Arc<ManualClock>,
    engine: LocalEngine,
}

impl World {
    async fn open() -> Self {
        let disk = MemoryDisk::new(1);
        disk.set_capacity(Some(FILES * TINY));
        let world = Self::on(disk);
        world.engine.declare_queue("q", Settings::default()).await.expect("declared");
        world
    }

    fn on(disk: MemoryDisk) -> Self {
        let clock = clock();
        let watermarks = Watermarks { low: Some(LOW), high: Some(HIGH) };
        let engine =
            LocalEngine::open_on(disk.clone(), Options { watermarks, ..options(TINY) }, clock.clone());
        Self { disk, clock, engine: engine.expect("opens") }
    }

    fn free(&self) -> u64 {
        FILES * TINY - self.disk.used()
    }

    /// Somebody else leaves so much of the disk.
    fn leave(&self, free: u64) {
        self.disk.put("others", Vec::new());
        let others = self.free().checked_sub(free).expect("there is as much");
        self.disk.put("others", vec![0; others as usize]);
    }

    /// As it is once the engine has looked.
    async fn is_low(&self) -> bool {
        let mut full = self.engine.full();
        loop {
            // It looks as time passes; whoever asks for a queue gives it an occasion.
            self.clock.advance(1_000);
            self.engine.queue("q").await.expect("seen");
            let disk = self.engine.health().disk.expect("a bounded disk says how much room it has");
            if disk.free == self.free() {
                return matches!(*full.borrow_and_update(), Some(Full::Low(_)));
            }
        }
    }

    async fn publish(&self, body: &str) -> bool {
        match self.engine.publish(vec![message(body, 5)]).await {
            Ok(_) => true,
            Err(failure) => {
                assert_eq!(failure, Refusal::StoreFull.into());
                false
            }
        }
    }

    async fn acknowledge(&self, max: u32) -> usize {
        let leased = self.engine.lease(pull("q", max)).await.expect("leased");
        let receipts: Vec<_> = leased.iter().map(|message| message.receipt).collect();
        let many = receipts.len();
        let settled = self.engine.settle(receipts, Outcome::Ack).await.expect("settled");
        assert!(settled.iter().all(Result::is_ok));
        many
    }
}

#[tokio::test]
async fn a_disk_that_others_fill_refuses_publishes_until_it_is_above_the_high_watermark() {
    let world = World::open().await;
    for (free, is_low) in [
        (LOW, false),
        (LOW - 1, true),
        (LOW, true),
        (HIGH, true),
        (HIGH + 1, false),
        (LOW, false),
        (0, true),
        (HIGH + 1, false),
    ] {
        world.leave(free);
        assert_eq!(world.is_low().await, is_low, "{free} bytes are free");
        assert_eq!(world.publish("x").await, !is_low, "{free} bytes are free");
        assert_eq!(world.engine.health().full.is_some(), is_low);
    }
}

#[tokio::test]
async fn on_a_low_disk_everything_but_publishing_goes_on() {
    let world = World::open().await;
    for _ in 0..10 {
        assert!(world.publish("x").await);
    }
    world.leave(LOW - 1);
    assert!(world.is_low().await);
    let full = world.engine.health().full.expect("it says so").to_string();
    assert!(full.starts_with("the disk has 255.9 KiB free and was below the low watermark of 256.0 KiB"));
    assert_eq!(world.acknowledge(3).await, 3);
    assert_eq!(world.engine.declare_queue("r", Settings::default()).await.map(|it| it.made), Ok(true));
    let leased = world.engine.lease(pull("q", 1)).await.expect("leased");
    let receipts = vec![leased[0].receipt];
    let (refused, engine) = (Refusal::StoreFull.into(), &world.engine);
    let both = engine.transact(vec![message("y", 5)], vec![(leased[0].receipt, Outcome::Ack)]).await;
    assert_eq!(both.map(drop), Err(refused), "what publishes is refused with what it settles");
    assert_eq!(engine.extend(receipts.clone(), 1_000).await, Ok(vec![Ok(())]));
    assert_eq!(engine.settle(receipts, Outcome::Release).await, Ok(vec![Ok(())]));
    // A start knows it at once. The journal gives nothing back by then: its first file has messages.
    world.engine.close();
    world.leave(LOW - 1);
    let World { disk, .. } = world;
    let world = World::on(disk);
    assert!(!world.publish("x").await);
    assert_eq!(world.engine.purge("q", None).await, Ok(7));
}

#[tokio::test]
async fn the_journal_leaves_the_disk_what_the_low_watermark_says() {
    let world = World::open().await;
    let mut taken = 0;
    while world.publish(&format!("{taken:0>200}")).await {
        taken += 1;
    }
    assert!((LOW..LOW + TINY).contains(&world.free()), "{} bytes are left", world.free());
    assert!(matches!(*world.engine.full().borrow(), Some(Full::AtLow { .. })));
    // What is given back is the disk's, and the journal may take it again.
    let (free, half) = (world.free(), taken / 2);
    let mut left = taken;
    while left > half {
        left -= world.acknowledge(10).await;
    }
    for _ in 0..100 {
        world.clock.advance(1_000);
        world.engine.queue("q").await.expect("seen");
    }
    assert!(world.free() > free, "{} bytes are left", world.free());
    let mut again = 0;
    while world.publish("x").await {
        again += 1;
    }
    assert!(again > 0, "as messages are consumed, others are taken");
    assert!(world.free() >= LOW, "{} bytes are left", world.free());
}

#[tokio::test]
async fn a_low_disk_gets_back_what_is_consumed() {
    let world = World::open().await;
    let mut taken = 0;
    while world.publish(&format!("{taken:0>200}")).await {
        taken += 1;
    }
    world.leave(LOW - TINY);
    assert!(world.is_low().await);
    let mut left = taken;
    while left > 0 {
        left -= world.acknowledge(10).await;
    }
    // Not to the spares: they would be taken for messages, and nobody else could use them.
    assert!(!world.is_low().await, "{} bytes are free", world.free());
    assert!(world.publish("x").await);
}
