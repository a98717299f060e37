//! Looking at the queues of a real engine, in a time that passes when it is told to.

use std::sync::Arc;
use std::time::Duration;

use overtake_engine::{Engine, LeaseRequest, LocalEngine, NewMessage, Options, SystemClock, Target};
use overtake_lane::{Settings, VhostSettings};
use overtake_overview::{Look, Overview, SAMPLE_MS, TroubleKind};
use overtake_store::MemoryDisk;

fn engine() -> Arc<LocalEngine> {
    let small = Options { segment_bytes: 1 << 16, ..Options::default() };
    let disk = MemoryDisk::new(1);
    Arc::new(LocalEngine::open_on(disk, small, Arc::new(SystemClock)).expect("a store"))
}

async fn publish(engine: &dyn Engine, queue: &str, count: usize) {
    let message = NewMessage { to: Target::Queue(queue.into()), ..NewMessage::default() };
    engine.publish(vec![message; count]).await.expect("published");
}

async fn lease(engine: &dyn Engine, queue: &str, max: u32) -> usize {
    let lease = LeaseRequest::new(queue.into(), max);
    engine.lease(lease).await.expect("leased").len()
}

fn names(look: &Look) -> Vec<(&str, &str)> {
    look.queues.iter().map(|queue| (&*queue.vhost, &*queue.view.name)).collect()
}

/// The first look that is as wanted.
async fn until(overview: &Overview, mut is_so: impl FnMut(&Look) -> bool) -> Arc<Look> {
    let mut looks = overview.watch();
    let look = looks.wait_for(|look| is_so(look)).await.expect("it looks for ever");
    Arc::clone(&look)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_virtual_hosts_are_seen_with_what_moves() {
    let engine = engine();
    let vhost = engine.declare_vhost("tenant", VhostSettings::default()).await.expect("made");
    let tenant = engine.in_vhost(vhost);
    engine.declare_queue("jobs", Settings::default()).await.expect("made");
    tenant.declare_queue("mail", Settings::default()).await.expect("made");
    let overview = Arc::new(Overview::new(Arc::clone(&engine) as Arc<dyn Engine>, Arc::new(SystemClock)));
    let running = tokio::spawn({
        let overview = Arc::clone(&overview);
        async move { overview.run().await }
    });
    let look = until(&overview, |look| look.queues.len() == 2).await;
    assert_eq!(names(&look), [("/", "jobs"), ("tenant", "mail")]);
    publish(&*engine, "jobs", 30).await;
    assert_eq!(lease(&*engine, "jobs", 10).await, 10);
    let moved = |look: &Look| look.queues[0].flow().published > 0.0 && look.queues[0].flow().delivered > 0.0;
    let look = until(&overview, moved).await;
    assert_eq!(look.queues[0].most_urgent_waiting().map(|lane| lane.ready), Some(20));
    assert_eq!(look.queues[0].troubles, [], "somebody works");
    assert!(look.queues[0].lanes[0].wait_p95_ms.is_some());
    publish(&*tenant, "mail", 3).await;
    let waits = until(&overview, |look| !look.queues[1].troubles.is_empty()).await;
    assert_eq!(waits.queues[1].troubles[0].kind, TroubleKind::NoConsumer);
    assert!(Look::rank(&waits.queues[1]) > Look::rank(&waits.queues[0]), "who stands still comes first");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn samples_are_taken_whether_somebody_watches_or_not() {
    let engine = engine();
    engine.declare_queue("jobs", Settings::default()).await.expect("made");
    publish(&*engine, "jobs", 5).await;
    // Time stands still but for the sleeps of whoever looks, so the clock of the samples is one of its own.
    let clock = Arc::new(Paused(tokio::time::Instant::now()));
    let overview = Arc::new(Overview::new(Arc::clone(&engine) as Arc<dyn Engine>, clock));
    let running = tokio::spawn({
        let overview = Arc::clone(&overview);
        async move { overview.run().await }
    });
    let view = engine.queue("jobs").await.expect("a queue");
    // The first look is a second after it begins.
    tokio::task::yield_now().await;
    tokio::time::advance(Duration::from_secs(1)).await;
    let samples = async |count: usize| {
        while overview.lanes(&view)[0].series.ready.len() < count {
            // Whoever is busy keeps the time from passing by itself.
            tokio::task::yield_now().await;
        }
        assert_eq!(overview.lanes(&view)[0].series.ready, vec![5.0; count]);
        assert_eq!(overview.totals(|_| true).series.ready, vec![5.0; count]);
    };
    samples(1).await;
    for count in 2..4 {
        tokio::time::advance(Duration::from_millis(SAMPLE_MS)).await;
        samples(count).await;
    }
    let mut looks = overview.watch();
    let seen = looks.borrow_and_update().at;
    for _ in 0..SAMPLE_MS / 1_000 {
        tokio::time::advance(Duration::from_secs(1)).await;
        while !looks.has_changed().expect("it looks for ever") {
            tokio::task::yield_now().await;
        }
        looks.borrow_and_update();
    }
    assert!(looks.borrow().at.0 >= seen.0 + SAMPLE_MS);
    samples(4).await;
    running.abort();
}

/// A clock that goes as tokio's paused time does.
struct Paused(tokio::time::Instant);

impl overtake_engine::Clock for Paused {
    fn now(&self) -> overtake_lane::Time {
        let since = u64::try_from(self.0.elapsed().as_millis()).expect("a short test");
        overtake_lane::Time(1_000_000 + since)
    }

    fn until(&self, when: overtake_lane::Time) -> Option<Duration> {
        Some(Duration::from_millis(when.0.saturating_sub(self.now().0)))
    }
}
