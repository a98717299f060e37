//! What a bench found, as a table for people or a line of JSON for programs.

mod grid;

use std::fmt::Write;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::amqp::Outcome;
pub(crate) use grid::{Cell, Grid, Line};

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
    /// What part it is of the reference before it, where that is the same work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) of_reference: Option<f64>,
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
            of_reference: None,
        }
    }

    pub(crate) fn of_rate(what: impl Into<String>, unit: &'static str, per_second: f64) -> Self {
        Self { per_second, each_ns: 1e9 / per_second, ..Self::new(what, unit, 1, Duration::from_secs(1)) }
    }

    pub(crate) fn beside(self, ratio: f64) -> Self {
        Self { of_reference: Some(ratio), ..self }
    }

    pub(crate) fn reference(self) -> Self {
        Self { is_reference: true, ..self }
    }
}

/// How long it kept one core busy: what others do on the machine does not count. Where the system does not tell
/// (it is read from `/proc/thread-self/schedstat`, proc(5)), how long it took.
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let on_cpu = || -> Option<Duration> {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        stat.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    let (start, busy) = (Instant::now(), on_cpu());
    work();
    let took = start.elapsed();
    busy.zip(on_cpu()).map_or(took, |(before, after)| after.saturating_sub(before).min(took))
}

/// What a bench answers.
pub(crate) enum Report {
    /// A line for each thing that was done.
    Rows(Vec<Row>),
    /// A line for each measure, over several columns.
    Grid(Grid),
    /// Several of those, with the conditions they were measured under.
    Sections(Outcome),
}

/// A grid of several.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) grid: Grid,
}

impl Report {
    pub(crate) fn json(&self, bench: &str) -> String {
        match self {
            Self::Rows(rows) => serde_json::json!({ "bench": bench, "rows": rows }).to_string(),
            Self::Grid(grid) => grid.json(bench),
            Self::Sections(outcome) => {
                let grids: Vec<_> = outcome.sections.iter().map(|section| &section.grid).collect();
                let conditions: serde_json::Map<_, _> = outcome
                    .conditions
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone().into()))
                    .collect();
                let rows: Vec<_> = grids.iter().flat_map(|grid| grid.rows()).collect();
                let notes: Vec<_> = grids.iter().flat_map(|grid| &grid.notes).collect();
                serde_json::json!({ "bench": bench, "conditions": conditions, "rows": rows, "notes": notes })
                    .to_string()
            }
        }
    }

    pub(crate) fn table(&self, bench: &str, what: &str) -> String {
        match self {
            Self::Rows(rows) => table(bench, what, rows),
            Self::Grid(grid) => grid.table(bench, what),
            Self::Sections(outcome) => {
                let mut text = String::new();
                for Section { title, grid } in &outcome.sections {
                    text += &grid.table(bench, title);
                    text.push('\n');
                }
                for (name, value) in &outcome.conditions {
                    writeln!(text, "{name}: {value}").expect("a string takes all");
                }
                text
            }
        }
    }

    /// Whether what was measured did not do its work.
    pub(crate) fn failed(&self) -> bool {
        matches!(self, Self::Sections(Outcome { failed: true, .. }))
    }
}

fn table(bench: &str, what: &str, rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
    let mut text = format!("{bench}: {what}\n");
    for row in rows {
        let mark = if row.is_reference { '·' } else { ' ' };
        let (what, rate, each, unit) = (&row.what, row.per_second / 1e6, row.each_ns, row.unit);
        let part = row.of_reference.map_or_else(String::new, |part| format!("  {:.0} % of ·", part * 100.0));
        writeln!(text, "{mark} {what:<width$}  {rate:>9.3} M {unit}/s  {each:>8.1} ns{part}")
            .expect("a string takes all");
    }
    text.push_str("· a reference, in the same run\n");
    text
}
