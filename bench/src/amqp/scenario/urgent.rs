//! How long an urgent message is under way while there is bulk work for ever.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{Scope, ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::amqp::finding::Better::{Less, More, Neither};
use crate::amqp::finding::{Finding, Measure};
use crate::amqp::letter::{Ledger, Order, Post, now_ns};
use crate::amqp::wire::{Taker, ready};
use crate::amqp::work::{Level, publish, take};
use crate::amqp::{LEVELS, Stage};
use crate::spread::Spread;

const QUEUE: &str = "urgent";
const PREFETCH: u16 = 100;
const EVERY: Duration = Duration::from_millis(50);
const LAST: Duration = Duration::from_secs(20);
/// A consumer that gets nothing looks so often whether all is done.
const LOOK: Duration = Duration::from_millis(50);
/// At most so many are published at once to keep the depth.
const LUMP: u64 = 1_000;

const BULK: u8 = 0;
const URGENT: u8 = 1;
const LOW: u8 = 1;

static P50: Measure = Measure::new("publish to delivery of the urgent, p50", "ms", Less);
static P99: Measure = Measure::new("publish to delivery of the urgent, p99 (goal 3)", "ms", Less);
static MOST: Measure = Measure::new("publish to delivery of the urgent, most", "ms", Less);
static COUNT: Measure = Measure::new("urgent messages", "messages", Neither);
static MEANWHILE: Measure = Measure::new("bulk messages taken meanwhile", "messages/s", More);

pub(super) fn run(stage: &Stage<'_>) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for (label, depth) in depths(stage) {
        let queue = format!("{QUEUE}-{depth}");
        let (mut urgent, rate) = Bulk::new(stage, &queue, depth).run()?;
        stage.broker.is_empty(&queue)?;
        found.push(COUNT.at(label, urgent.len() as f64));
        for (measure, part) in [(&P50, 0.5), (&P99, 0.99), (&MOST, 1.0)] {
            found.extend(urgent.percentile_ms(part).map(|ms| measure.at(label, ms)));
        }
        found.push(MEANWHILE.at(label, rate));
    }
    Ok(found)
}

/// What takes hours to fill is left out.
fn depths(stage: &Stage<'_>) -> Vec<(&'static str, u64)> {
    let plan = stage.plan;
    let most = match stage.peer.slowness() {
        10.. => 10_000,
        _ if plan.quick => 100_000,
        2.. if plan.long => 1_000_000,
        2.. => 100_000,
        _ if plan.long => 10_000_000,
        _ => 1_000_000,
    };
    let mut all = vec![
        ("10 k waiting", 10_000),
        ("100 k waiting", 100_000),
        ("1 M waiting", 1_000_000),
        ("10 M waiting", 10_000_000),
    ];
    all.retain(|(_, depth)| *depth <= most);
    all
}

struct Bulk<'a> {
    stage: &'a Stage<'a>,
    queue: &'a str,
    depth: u64,
    last: Duration,
    published: AtomicU64,
    taken: AtomicU64,
    /// Nothing more is published.
    is_over: AtomicBool,
    /// All that was published was taken, or something failed.
    is_done: AtomicBool,
}

/// What came to one consumer.
struct Came {
    bulk: Ledger,
    urgent: Ledger,
    waits: Spread,
}

impl<'a> Bulk<'a> {
    fn new(stage: &'a Stage<'a>, queue: &'a str, depth: u64) -> Self {
        let last = if stage.plan.quick { LAST / 10 } else { LAST };
        let none = || AtomicU64::new(0);
        let (is_over, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { stage, queue, depth, last, published: none(), taken: none(), is_over, is_done }
    }

    /// How long the urgent were under way, and how many bulk messages a second were taken meanwhile.
    fn run(self) -> Result<(Spread, f64)> {
        self.stage.broker.declare(self.queue)?;
        let (mut source, mut post) = (self.stage.broker.source(self.queue)?, Post::new(BULK));
        publish(&mut *source, &mut post, Level::Always(LOW), self.depth)?;
        self.published.store(self.depth, Relaxed);
        drop(source);
        std::thread::scope(|scope| {
            let consumers = [(); 2].map(|()| self.spawn(scope, |this| this.consume()));
            let keeping = self.spawn(scope, move |this| this.keep_up(post));
            let urging = self.spawn(scope, |this| this.urge());
            let (kept, urged) = (join(keeping), join(urging));
            self.is_over.store(true, Relaxed);
            let [one, other] = consumers.map(join);
            let ((bulk, urgent), (one, other)) = ((kept?, urged?), (one?, other?));
            one.bulk.join(&other.bulk)?.is_complete(bulk.published)?;
            one.urgent.join(&other.urgent)?.is_complete(urgent)?;
            let mut waits = one.waits;
            waits.join(other.waits);
            Ok((waits, bulk.rate))
        })
    }

    /// When one fails the others end as well.
    fn spawn<'s, T: Send + 's>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        work: impl FnOnce(&'s Self) -> Result<T> + Send + 's,
    ) -> ScopedJoinHandle<'s, Result<T>> {
        scope.spawn(move || {
            let done = work(self);
            if done.is_err() {
                self.is_over.store(true, Relaxed);
                self.is_done.store(true, Relaxed);
            }
            done
        })
    }

    fn consume(&self) -> Result<Came> {
        let mut taker = self.stage.broker.taker(self.queue, PREFETCH)?;
        taker.expect(u64::MAX);
        taker.flush()?;
        let ledger = || Ledger::new(Order::WithinLevels);
        let mut came = Came { bulk: ledger(), urgent: ledger(), waits: Spread::default() };
        while !self.is_done.load(Relaxed) {
            if ready([taker.socket()], LOOK)? == [true] {
                came.take(&mut *taker, &self.taken)?;
            }
            if self.is_over.load(Relaxed) && self.taken.load(Relaxed) == self.published.load(Relaxed) {
                self.is_done.store(true, Relaxed);
            }
        }
        taker.close()?;
        Ok(came)
    }

    /// Publishes as much as was taken.
    fn keep_up(&self, mut post: Post) -> Result<Kept> {
        let mut source = self.stage.broker.source(self.queue)?;
        let (start, mut bulk) = (Instant::now(), self.depth);
        while start.elapsed() < self.last && !self.is_over.load(Relaxed) {
            let waiting = self.published.load(Relaxed).saturating_sub(self.taken.load(Relaxed));
            if waiting + LUMP > self.depth {
                sleep(Duration::from_millis(1));
                continue;
            }
            publish(&mut *source, &mut post, Level::Always(LOW), LUMP)?;
            self.published.fetch_add(LUMP, Relaxed);
            bulk += LUMP;
        }
        let rate = self.taken.load(Relaxed) as f64 / start.elapsed().as_secs_f64();
        Ok(Kept { published: bulk, rate })
    }

    /// Publishes one urgent message every so often, whether the one before is confirmed or not. Answers how many.
    fn urge(&self) -> Result<u64> {
        let (mut source, mut post) = (self.stage.broker.source(self.queue)?, Post::new(URGENT));
        let (start, mut urgent, mut confirmed) = (Instant::now(), 0, 0);
        while (start.elapsed() < self.last || confirmed < urgent) && !self.is_over.load(Relaxed) {
            let due = start + EVERY * (urgent as u32 + 1);
            let is_due = due <= Instant::now();
            if is_due && start.elapsed() < self.last {
                self.published.fetch_add(1, Relaxed);
                source.put(LEVELS - 1, post.write(LEVELS - 1));
                source.flush()?;
                urgent += 1;
            }
            let wait = if is_due { EVERY } else { due.saturating_duration_since(Instant::now()) };
            if ready([source.socket()], wait.min(EVERY))? == [true] {
                source.hear(&mut |_| confirmed += 1)?;
            }
        }
        Ok(urgent)
    }
}

/// What the publisher of bulk did.
struct Kept {
    published: u64,
    /// Messages that were taken in a second.
    rate: f64,
}

fn join<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().expect("a thread fails without a panic")
}

impl Came {
    fn take(&mut self, taker: &mut dyn Taker, taken: &AtomicU64) -> Result<()> {
        let Self { bulk, urgent, waits } = self;
        let mut count = 0;
        take(taker, &mut |letter| {
            count += 1;
            if letter.stream == BULK {
                return bulk.enter(letter);
            }
            waits.saw(now_ns() - letter.sent_ns);
            urgent.enter(letter)
        })?;
        taken.fetch_add(count, Relaxed);
        Ok(())
    }
}
