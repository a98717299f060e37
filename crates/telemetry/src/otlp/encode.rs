//! Families as requests of `/v1/metrics`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message;

use super::message::{
    CUMULATIVE, Data, ExportMetricsServiceRequest, Gauge, Histogram, HistogramDataPoint,
    InstrumentationScope, KeyValue, Metric, Number, NumberDataPoint, Resource as ResourceMessage,
    ResourceMetrics, ScopeMetrics, Sum,
};
use crate::family::{Family, Kind, Labels, Point, Value};

/// Most series of one request: with long names about a megabyte.
pub const POINTS_MAX: usize = 2_000;

/// Who says all this: `service.name`, `service.version`, `service.instance.id` and whatever else there is to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource(pub Vec<(String, String)>);

impl Resource {
    pub(super) fn message(&self) -> ResourceMessage {
        ResourceMessage { attributes: self.0.iter().map(|(key, value)| KeyValue::text(key, value)).collect() }
    }
}

/// What a series counts since, and as of when, ns since 1970.
#[derive(Clone, Copy)]
struct Span {
    since: u64,
    now: u64,
}

/// The families in requests of at most [`POINTS_MAX`] series each, made one after the other. Every series counts from `since` on.
pub fn requests<'a>(
    families: &'a [Family],
    resource: &'a Resource,
    version: &'a Arc<str>,
    since: SystemTime,
    now: SystemTime,
) -> impl Iterator<Item = Vec<u8>> + 'a {
    let span = Span { since: nanos(since), now: nanos(now) };
    let mut rest = families;
    // Series of the first that were told before.
    let mut told = 0;
    std::iter::from_fn(move || {
        let (mut metrics, mut room) = (Vec::new(), POINTS_MAX);
        while room > 0
            && let [first, others @ ..] = rest
        {
            let points = &first.points[told..];
            let points = &points[..points.len().min(room)];
            if !points.is_empty() {
                metrics.push(metric(first, points, span));
            }
            room -= points.len();
            told += points.len();
            if told == first.points.len() {
                (rest, told) = (others, 0);
            }
        }
        (!metrics.is_empty()).then(|| request(metrics, resource, version))
    })
}

fn request(metrics: Vec<Metric>, resource: &Resource, version: &str) -> Vec<u8> {
    let scope = InstrumentationScope { name: "overtake".to_owned(), version: version.to_owned() };
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics }];
    let resource_metrics = vec![ResourceMetrics { resource: Some(resource.message()), scope_metrics }];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
}

fn metric(family: &Family, points: &[Point], span: Span) -> Metric {
    let numbers = || points.iter().filter_map(|point| number(point, span)).collect();
    let sum = |is_monotonic| {
        Data::Sum(Sum { data_points: numbers(), aggregation_temporality: CUMULATIVE, is_monotonic })
    };
    let data = match family.kind {
        Kind::Gauge => Data::Gauge(Gauge { data_points: numbers() }),
        Kind::UpDownCounter => sum(false),
        Kind::Counter => sum(true),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: points.iter().filter_map(|point| histogram(point, span)).collect(),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    Metric {
        name: family.name.to_owned(),
        description: family.help.to_owned(),
        unit: family.unit.to_owned(),
        data: Some(data),
    }
}

fn number(point: &Point, span: Span) -> Option<NumberDataPoint> {
    let value = match point.value {
        Value::Whole(number) => Number::AsInt(i64::try_from(number).unwrap_or(i64::MAX)),
        Value::Real(number) => Number::AsDouble(number),
        Value::Histogram(_) => return None,
    };
    let Span { since, now } = span;
    Some(NumberDataPoint {
        start_time_unix_nano: since,
        time_unix_nano: now,
        attributes: attributes(&point.labels),
        value: Some(value),
    })
}

fn histogram(point: &Point, span: Span) -> Option<HistogramDataPoint> {
    let Value::Histogram(histogram) = &point.value else { return None };
    // There a bucket does not hold those before it, and there is one more, without a bound.
    let mut before = 0;
    let all = histogram.buckets.iter().map(|(_, below)| *below).chain([histogram.count]);
    let bucket_counts = all.map(|below| {
        let here = below.saturating_sub(before);
        before = below;
        here
    });
    Some(HistogramDataPoint {
        start_time_unix_nano: span.since,
        time_unix_nano: span.now,
        count: histogram.count,
        sum: Some(histogram.sum),
        bucket_counts: bucket_counts.collect(),
        explicit_bounds: histogram.buckets.iter().map(|(bound, _)| *bound).collect(),
        attributes: attributes(&point.labels),
    })
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| KeyValue::text(name, value)).collect()
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
