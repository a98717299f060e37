//! What it costs to be watched: everything that can be counted of a broker collected, written as text and as protobuf.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use overtake_engine::{Engine, LeaseRequest, LocalEngine, NewMessage, QUEUES_AT_ONCE, Target};
use overtake_lane::Settings;
use overtake_telemetry::otlp::{Resource, requests};
use overtake_telemetry::{Broker, Registry, text};

use crate::Plan;
use crate::report::{Row, time};

/// Each queue has so many lanes with something in them.
const LANES: i64 = 3;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory for the store");
    let all = [(1, 2_000), (3_000, 5)].map(|(queues, times)| {
        runtime.block_on(scrape(&dir.path().join(queues.to_string()), queues, plan.times(times)))
    });
    all.into_iter().flatten().collect()
}

async fn scrape(dir: &Path, queues: usize, times: usize) -> [Row; 4] {
    let engine = Arc::new(LocalEngine::open(dir).expect("a new store"));
    fill(&engine, queues).await;
    let registry = Registry::default();
    registry.add(Arc::new(Broker::new(Arc::clone(&engine) as Arc<dyn Engine>, "1.0.0")));

    let mut families = registry.collect().await;
    let mut longest = Duration::ZERO;
    let start = Instant::now();
    for _ in 0..times {
        families = registry.collect().await;
    }
    let collected = start.elapsed();
    for _ in 0..times {
        let start = Instant::now();
        engine.queues(None, QUEUES_AT_ONCE).await.expect("a page");
        longest = longest.max(start.elapsed());
    }
    let series = families.iter().map(|family| family.points.len()).sum::<usize>();
    let mut bytes = 0;
    let rendered = time(|| {
        for _ in 0..times {
            bytes = text::render(&families).len();
        }
    });
    let (resource, version, now) = (Resource::default(), Arc::from("1.0.0"), SystemTime::now());
    let (mut pushed, mut parts) = (0, 0);
    let encoded = time(|| {
        for _ in 0..times {
            let all = requests(&families, &resource, &version, now, now);
            (pushed, parts) = all.fold((0, 0), |(bytes, parts), part| (bytes + part.len(), parts + 1));
        }
    });
    engine.close();
    let of = |what: String, took| Row::new(format!("{queues} queues: {what}"), "scrapes", times, took);
    [
        of(format!("collect {series} series"), collected),
        of(format!("write text, {} kB", bytes / 1_000), rendered),
        of(format!("write protobuf, {} kB in {parts} requests", pushed / 1_000), encoded),
        Row::new(
            format!("{queues} queues: a page of {}, the slowest", queues.min(QUEUES_AT_ONCE)),
            "pages",
            1,
            longest,
        ),
    ]
}

/// Queues with a message in each lane, and one that was leased, so that there is a wait to tell.
pub(crate) async fn fill(engine: &LocalEngine, queues: usize) {
    for queue in 0..queues {
        let name = format!("queue-{queue:04}");
        engine.declare_queue(&name, Settings::default()).await.expect("a new queue");
        let to = || Target::Queue(name.as_str().into());
        let message =
            |priority: i64| NewMessage { to: to(), priority: priority.into(), ..NewMessage::default() };
        engine.publish((0..LANES).map(message).collect()).await.expect("there is room");
        engine.lease(LeaseRequest::new(name.as_str().into(), 1)).await.expect("a lease");
    }
}
