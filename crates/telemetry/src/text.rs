//! Families in the text format of Prometheus, version 0.0.4
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>).

use std::fmt::Write as _;

use crate::family::{Family, Histogram, Kind, Labels, Value};

/// The content type of [`render`]'s text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything, as text.
#[must_use]
pub fn render(families: &[Family]) -> String {
    let mut text = Text::default();
    families.iter().for_each(|family| text.family(family));
    text.out
}

#[derive(Default)]
struct Text {
    out: String,
    /// The labels of the series that is being written, escaped.
    labels: String,
}

impl Text {
    fn family(&mut self, family: &Family) {
        let name = family.scraped();
        let kind = match family.kind {
            Kind::UpDownCounter | Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        // Writing into a String does not fail.
        let _ = writeln!(self.out, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
        for point in &family.points {
            self.take_labels(&point.labels);
            match &point.value {
                Value::Whole(number) => self.sample(&name, "", None, *number),
                Value::Real(number) => self.sample(&name, "", None, number),
                Value::Histogram(histogram) => self.histogram(&name, histogram),
            }
        }
    }

    fn histogram(&mut self, name: &str, histogram: &Histogram) {
        for (bound, count) in &histogram.buckets {
            self.sample(name, "_bucket", Some(bound), count);
        }
        self.sample(name, "_bucket", Some(&"+Inf"), histogram.count);
        self.sample(name, "_sum", None, histogram.sum);
        self.sample(name, "_count", None, histogram.count);
    }

    fn sample(
        &mut self,
        name: &str,
        end: &str,
        bound: Option<&dyn std::fmt::Display>,
        number: impl std::fmt::Display,
    ) {
        let Self { out, labels } = self;
        let _ = match (labels.is_empty(), bound) {
            (true, None) => writeln!(out, "{name}{end} {number}"),
            (false, None) => writeln!(out, "{name}{end}{{{labels}}} {number}"),
            (true, Some(bound)) => writeln!(out, "{name}{end}{{le=\"{bound}\"}} {number}"),
            (false, Some(bound)) => writeln!(out, "{name}{end}{{{labels},le=\"{bound}\"}} {number}"),
        };
    }

    fn take_labels(&mut self, labels: &Labels) {
        self.labels.clear();
        for (at, (name, value)) in labels.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(self.labels, "{comma}{name}=\"");
            escape(value, &mut self.labels);
            self.labels.push('"');
        }
    }
}

fn escape(value: &str, out: &mut String) {
    for char in value.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            char => out.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::labels;

    #[track_caller]
    fn check(family: Family, expect: &str) {
        assert_eq!(render(&[family]), expect);
    }

    #[test]
    fn a_series_is_a_line_with_its_labels_escaped() {
        let family = Family::new("a.b", Kind::Counter, "{x}", "How many.");
        let odd = labels([("queue", "a\"b\\c\nd"), ("lane", "9")]);
        check(
            family.clone().with(odd, Value::Whole(1)).of(2),
            "# HELP a_b_total How many.\n# TYPE a_b_total counter\na_b_total{queue=\"a\\\"b\\\\c\\nd\",lane=\"9\"} 1\na_b_total 2\n",
        );
        check(family, "# HELP a_b_total How many.\n# TYPE a_b_total counter\n");
    }

    #[test]
    fn numbers_are_written_without_zeros_and_exponents() {
        for (number, expect) in
            [(0.0, "0"), (0.001, "0.001"), (0.5, "0.5"), (86_400.0, "86400"), (5e-5, "0.00005")]
        {
            let family = Family::new("a", Kind::Gauge, "", "H.").with(labels([]), Value::Real(number));
            check(family, &format!("# HELP a H.\n# TYPE a gauge\na {expect}\n"));
        }
    }

    #[test]
    fn a_histogram_ends_with_all_their_sum_and_their_number() {
        let histogram = Histogram { buckets: vec![(0.5, 1), (1.0, 2)], count: 3, sum: 7.25 };
        let value = Value::Histogram(Box::new(histogram));
        let family = Family::new("a", Kind::Histogram, "s", "H.");
        check(
            family.clone().with(labels([("q", "x")]), value.clone()),
            "# HELP a_seconds H.\n# TYPE a_seconds histogram\na_seconds_bucket{q=\"x\",le=\"0.5\"} 1\na_seconds_bucket{q=\"x\",le=\"1\"} 2\n\
             a_seconds_bucket{q=\"x\",le=\"+Inf\"} 3\na_seconds_sum{q=\"x\"} 7.25\na_seconds_count{q=\"x\"} 3\n",
        );
        check(
            family.with(labels([]), value),
            "# HELP a_seconds H.\n# TYPE a_seconds histogram\na_seconds_bucket{le=\"0.5\"} 1\na_seconds_bucket{le=\"1\"} 2\n\
             a_seconds_bucket{le=\"+Inf\"} 3\na_seconds_sum 7.25\na_seconds_count 3\n",
        );
    }
}
