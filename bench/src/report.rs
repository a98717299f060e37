//! What a bench found, as a table for people or a line of JSON for programs.

use std::fmt::Write;
use std::time::{Duration, Instant};

use serde::Serialize;

/// One line: something that was done so often in so long.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// What was done.
    pub(crate) what: String,
    /// What is counted.
    pub(crate) unit: &'static str,
    /// How many in a second.
    pub(crate) per_second: f64,
    /// How long one took, ns.
    pub(crate) each_ns: f64,
    /// A limit of this machine, to read the others beside, and no work of ours.
    pub(crate) is_reference: bool,
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, unit: &'static str, count: usize, took: Duration) -> Self {
        let seconds = took.as_secs_f64();
        Self {
            what: what.into(),
            unit,
            per_second: count as f64 / seconds,
            each_ns: seconds * 1e9 / count as f64,
            is_reference: false,
        }
    }

    pub(crate) fn reference(self) -> Self {
        Self { is_reference: true, ..self }
    }
}

/// How long it took.
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

pub(crate) fn json(bench: &str, rows: &[Row]) -> String {
    serde_json::json!({ "bench": bench, "rows": rows }).to_string()
}

pub(crate) fn table(bench: &str, what: &str, rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
    let mut text = format!("{bench}: {what}\n");
    for row in rows {
        let mark = if row.is_reference { '·' } else { ' ' };
        let (what, rate, each, unit) = (&row.what, row.per_second / 1e6, row.each_ns, row.unit);
        writeln!(text, "{mark} {what:<width$}  {rate:>9.2} M {unit}/s  {each:>8.1} ns").expect("a string takes all");
    }
    text.push_str("· what this machine does at most, in the same run\n");
    text
}
