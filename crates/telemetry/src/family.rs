//! A family: one thing that is counted, of each it is counted of.

use std::sync::Arc;

/// One thing that is counted, with all its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// What OpenTelemetry calls it: words with dots.
    pub name: &'static str,
    /// How its numbers may be read.
    pub kind: Kind,
    /// In which unit they are, by UCUM: `s`, `By`; `{message}` and the like say what is counted; empty: nothing is said.
    pub unit: &'static str,
    /// What it means, in one sentence.
    pub help: &'static str,
    /// Its series.
    pub points: Vec<Point>,
}

/// How the numbers of a family may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// How many there are: may be added up.
    UpDownCounter,
    /// How it stands: adding up says nothing.
    Gauge,
    /// How many there have been: only grows, from 0 when the broker was opened.
    Counter,
    /// How many have been of which size.
    Histogram,
}

/// What a series is of: names and values, in an order that is the same for a family.
pub type Labels = Arc<[(&'static str, Arc<str>)]>;

/// Labels of these names and values.
pub fn labels<const N: usize>(pairs: [(&'static str, &str); N]) -> Labels {
    pairs.into_iter().map(|(name, value)| (name, Arc::from(value))).collect()
}

/// One series as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What it is of.
    pub labels: Labels,
    /// Its number, or numbers.
    pub value: Value,
}

/// What a series says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// Another one.
    Real(f64),
    /// A histogram.
    Histogram(Box<Histogram>),
}

/// How many were at most which size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Upper bounds, growing, and how many were at most that; each holds the ones before.
    pub buckets: Vec<(f64, u64)>,
    /// How many in all.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

impl Histogram {
    /// Of whole numbers of which so many make up one of the unit.
    #[must_use]
    pub fn scaled(buckets: &[(u64, u64)], count: u64, sum: u64, per_unit: u64) -> Self {
        let scale = |number: u64| number as f64 / per_unit as f64;
        let buckets = buckets.iter().map(|(bound, below)| (scale(*bound), *below)).collect();
        Self { buckets, count, sum: scale(sum) }
    }
}

impl Family {
    /// Without series yet.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, unit: &'static str, help: &'static str) -> Self {
        Self { name, kind, unit, help, points: Vec::new() }
    }

    /// With one more series.
    #[must_use]
    pub fn with(mut self, labels: Labels, value: Value) -> Self {
        self.points.push(Point { labels, value });
        self
    }

    /// With one series, without labels.
    #[must_use]
    pub fn of(self, number: u64) -> Self {
        self.with(labels([]), Value::Whole(number))
    }

    /// What it is called where it is scraped. A collector that receives it by OTLP and is scraped itself calls it the same: its dots
    /// become underscores, its unit and `total` follow where they are not in the name
    /// (<https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics>).
    #[must_use]
    pub fn scraped(&self) -> String {
        let unit = match self.unit {
            "s" => "seconds",
            "By" => "bytes",
            _ => "",
        };
        let mut words: Vec<&str> = self.name.split(['.', '_']).collect();
        if !unit.is_empty() && !words.contains(&unit) {
            words.push(unit);
        }
        if self.kind == Kind::Counter {
            words.retain(|word| *word != "total");
            words.push("total");
        }
        words.join("_")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraped_name_says_the_unit_and_whether_it_only_grows() {
        use Kind::{Counter, Gauge, Histogram, UpDownCounter};
        for (name, kind, unit, scraped) in [
            ("queue.depth", UpDownCounter, "", "queue_depth"),
            ("queue.enqueue.total", Counter, "", "queue_enqueue_total"),
            ("queue.wait_time", Histogram, "", "queue_wait_time"),
            ("overtake.lane.published", Counter, "{message}", "overtake_lane_published_total"),
            ("overtake.lane.oldest_age", Gauge, "s", "overtake_lane_oldest_age_seconds"),
            ("overtake.lane.bytes", UpDownCounter, "By", "overtake_lane_bytes"),
            ("overtake.journal.written", Counter, "By", "overtake_journal_written_bytes_total"),
            ("process.cpu", Counter, "s", "process_cpu_seconds_total"),
        ] {
            assert_eq!(Family::new(name, kind, unit, "").scraped(), scraped);
        }
    }

    #[test]
    fn a_histogram_is_scaled_to_its_unit() {
        let seconds = Histogram::scaled(&[(50, 1), (2_500, 3)], 4, 10_000, 1_000);
        assert_eq!(seconds, Histogram { buckets: vec![(0.05, 1), (2.5, 3)], count: 4, sum: 10.0 });
    }
}
