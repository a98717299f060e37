//! What is pushed, as another's crate reads it.

use std::time::Duration;

use hyper::StatusCode;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, number_data_point};
use overtake_engine::{Engine, LeaseRequest};
use overtake_lane::Settings;
use overtake_telemetry::otlp::Push;
use overtake_telemetry::text;

use crate::world::{Collector, Mood, broker, exporter, message, resource, shown};

const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

#[tokio::test]
async fn a_push_says_what_is_so_in_the_words_of_the_protocol() {
    let (engine, registry) = broker();
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.publish(vec![message("q", 9), message("q", 9), message("q", 1)]).await.expect("published");
    let lease = LeaseRequest::new("q".into(), 1);
    engine.lease(lease).await.expect("leased");
    let (collector, address) = Collector::start().await;
    let push = Push::join(&registry, exporter(&address, "api-key=s3cret"), resource(), "1.2.3");
    push.once().await;

    let sent = collector.sent.lock().unwrap();
    let [only] = &sent[..] else { panic!("{} requests", sent.len()) };
    assert_eq!((only.path.as_str(), &only.headers["api-key"]), ("/v1/metrics", &"s3cret".parse().unwrap()));
    assert_eq!(only.headers["content-type"], "application/x-protobuf");
    let of = &only.request().resource_metrics[0];
    assert_eq!(shown(&of.resource.as_ref().expect("a resource").attributes), "service.name=overtake");
    let scope = of.scope_metrics[0].scope.as_ref().expect("a scope");
    assert_eq!((scope.name.as_str(), scope.version.as_str()), ("overtake", "1.2.3"));
    drop(sent);

    let depth = collector.metric("queue.depth");
    assert_eq!(depth.unit, "", "a collector would put it into the name");
    let Some(Data::Sum(depth)) = depth.data else { panic!("{depth:?}") };
    assert_eq!((depth.is_monotonic, depth.aggregation_temporality), (false, CUMULATIVE));
    let points: Vec<_> = depth.data_points.iter().map(|p| (shown(&p.attributes), p.value)).collect();
    let int = |number| Some(number_data_point::Value::AsInt(number));
    let of_lane = |lane: &str| format!("vhost=/ queue=q priority={lane}");
    assert_eq!(points, [(of_lane("9"), int(1)), (of_lane("1"), int(1))]);

    let enqueued = collector.metric("queue.enqueue.total");
    let Some(Data::Sum(enqueued)) = enqueued.data else { panic!("{enqueued:?}") };
    assert_eq!((enqueued.is_monotonic, enqueued.aggregation_temporality), (true, CUMULATIVE));
    let point = &enqueued.data_points[0];
    assert!(point.start_time_unix_nano > 0 && point.start_time_unix_nano <= point.time_unix_nano);

    let wait = collector.metric("queue.wait_time");
    let Some(Data::Histogram(wait)) = wait.data else { panic!("{wait:?}") };
    assert_eq!(wait.aggregation_temporality, CUMULATIVE);
    let point = &wait.data_points[0];
    assert_eq!((point.count, point.bucket_counts.iter().sum::<u64>()), (1, 1));
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    assert!(point.explicit_bounds.is_sorted() && point.sum.is_some());

    let age = collector.metric("overtake.lane.oldest_age");
    assert_eq!(age.unit, "s");
    assert!(matches!(age.data, Some(Data::Gauge(_))));
}

#[tokio::test]
async fn a_collector_that_fails_is_counted_and_holds_up_nothing() {
    let (_engine, registry) = broker();
    let (collector, address) = Collector::start().await;
    let push = Push::join(&registry, exporter(&address, ""), resource(), "1");
    let counts = async || {
        let text = text::render(&registry.collect().await);
        let number = |series: &str| {
            let line = text.lines().find(|line| line.starts_with(series)).expect(series);
            line.rsplit_once(' ').expect("a number").1.to_owned()
        };
        [
            number("overtake_otlp_pushes_total{outcome=\"done\"}"),
            number("overtake_otlp_pushes_total{outcome=\"failed\"}"),
            number("overtake_otlp_rejected_points_total"),
        ]
    };
    assert_eq!(counts().await, ["0", "0", "0"]);
    *collector.mood.lock().unwrap() = Mood::Fails(StatusCode::SERVICE_UNAVAILABLE, "busy");
    push.once().await;
    push.once().await;
    assert_eq!(counts().await, ["0", "2", "0"]);
    *collector.mood.lock().unwrap() = Mood::Rejects(7, "too old");
    push.once().await;
    assert_eq!(counts().await, ["1", "2", "7"]);
    *collector.mood.lock().unwrap() = Mood::Takes;
    push.once().await;
    assert_eq!(counts().await, ["2", "2", "7"]);
}

#[tokio::test]
async fn what_a_collector_says_against_a_push_is_told_in_a_line() {
    let (collector, address) = Collector::start().await;
    let client = exporter(&address, "");
    *collector.mood.lock().unwrap() = Mood::Fails(StatusCode::BAD_REQUEST, "\u{8}\u{3}\u{12}\u{4}no\nway");
    let said = client.post("/v1/metrics", Vec::new()).await.expect_err("refused").to_string();
    assert_eq!(said, "it answers 400 Bad Request: no way");
    let nobody = exporter("http://127.0.0.1:1", "");
    let said = nobody.post("/v1/metrics", Vec::new()).await.expect_err("nobody is there").to_string();
    assert!(said.starts_with("it cannot be reached: ") && said.contains("refused"), "{said}");
}

#[tokio::test]
async fn everything_is_pushed_again_and_again() {
    let (_engine, registry) = broker();
    let (collector, address) = Collector::start().await;
    let push = Push::join(&registry, exporter(&address, ""), resource(), "1");
    let pushing = tokio::spawn(async move { push.run(Duration::from_millis(1)).await });
    for _ in 0..3 {
        collector.arrived.notified().await;
    }
    pushing.abort();
    let times: Vec<_> = collector
        .metrics()
        .into_iter()
        .filter_map(|metric| match metric.data {
            Some(Data::Gauge(gauge)) if metric.name == "overtake.engine.up" => {
                Some(gauge.data_points[0].time_unix_nano)
            }
            _ => None,
        })
        .collect();
    assert!(times.len() >= 3 && times.is_sorted(), "{times:?}");
}
