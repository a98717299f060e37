//! Thousands of queues: each of their series is there, scraped and pushed.

use std::collections::BTreeSet;

use overtake_engine::{DeclareQueue, Engine};
use overtake_lane::Settings;
use overtake_telemetry::otlp::{POINTS_MAX, Push};
use overtake_telemetry::{Value, text};

use crate::world::{Collector, broker, exporter, message, resource, series};

const QUEUES: usize = 3_000;
/// Each has so many with a message.
const LANES: usize = 3;
/// Families of each queue, and of each lane.
const OF_QUEUE: usize = 8;
const OF_LANE: usize = 23;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_folded_and_nothing_left_out() {
    let (engine, registry) = broker();
    for at in 0..QUEUES {
        let declare = DeclareQueue { settings: Settings::default(), ..DeclareQueue::default() };
        engine.declare(&format!("q{at}"), declare).await.expect("declared");
    }
    for at in 0..QUEUES {
        let all = (0..LANES as i64).map(|lane| message(&format!("q{at}"), lane));
        engine.publish(all.collect()).await.expect("published");
    }

    let families = registry.collect().await;
    let points = families.iter().map(|family| family.points.len()).sum::<usize>();
    let of_broker = points - QUEUES * (OF_QUEUE + LANES * OF_LANE);
    assert!((20..60).contains(&of_broker), "{of_broker} series are of the broker as a whole");

    let text = text::render(&families);
    let scraped: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').expect("").0)
        .collect();
    let samples = |value: &Value| match value {
        Value::Histogram(histogram) => histogram.buckets.len() + 3,
        _ => 1,
    };
    let expect = families.iter().flat_map(|family| &family.points).map(|point| samples(&point.value));
    assert_eq!(scraped.len(), expect.sum::<usize>());
    for at in [0, 1_999, QUEUES - 1] {
        let last = format!("queue_wait_time_count{{vhost=\"/\",queue=\"q{at}\",priority=\"0\"}}");
        assert!(scraped.contains(last.as_str()), "{last}");
    }

    let (collector, address) = Collector::start().await;
    Push::join(&registry, exporter(&address, ""), resource(), "1").once().await;
    let pushed: Vec<String> = collector.metrics().iter().flat_map(series).collect();
    // Those of the push itself came since.
    let of_push = 3;
    assert_eq!(pushed.len(), points + of_push);
    assert_eq!(pushed.iter().collect::<BTreeSet<_>>().len(), points + of_push, "each is there once");
    let sent = collector.sent.lock().unwrap();
    assert!(sent.len() >= points / POINTS_MAX);
    for request in sent.iter() {
        let metrics = &request.request().resource_metrics[0].scope_metrics[0].metrics;
        let points = metrics.iter().map(|metric| series(metric).len()).sum::<usize>();
        assert!(
            points <= POINTS_MAX && request.body.len() < 4 << 20,
            "{points} series in {} bytes",
            request.body.len()
        );
    }
}
