//! Measures of several kinds, of several stores, over several columns such as depths.

use std::fmt::Write;

use serde_json::{Value, json};

/// A line for each measure of each store.
#[derive(Default)]
pub(crate) struct Grid {
    pub(crate) columns: Vec<String>,
    /// Lines of the same measure follow each other.
    pub(crate) lines: Vec<Line>,
    /// What was not measured, and why.
    pub(crate) notes: Vec<String>,
}

/// One measure of one store.
pub(crate) struct Line {
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) who: &'static str,
    /// No work of ours, to read the others beside.
    pub(crate) is_reference: bool,
    /// One for each column; `None` where nothing was measured.
    pub(crate) cells: Vec<Option<Cell>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) value: f64,
    /// How many times better than this reference we are.
    pub(crate) times_better: Option<f64>,
}

impl Grid {
    /// A flat list: each value stands alone, with everything that says what it is.
    pub(super) fn json(&self, bench: &str) -> String {
        json!({ "bench": bench, "rows": self.rows(), "notes": self.notes }).to_string()
    }

    pub(super) fn rows(&self) -> Vec<Value> {
        self.lines.iter().flat_map(|line| self.json_line(line)).collect()
    }

    fn json_line(&self, line: &Line) -> Vec<Value> {
        let Line { what, unit, who, is_reference, .. } = line;
        let row = |(column, cell): (&String, &Option<Cell>)| {
            let cell = cell.as_ref()?;
            let mut row = json!({
                "what": what, "who": who, "at": column, "value": cell.value, "unit": unit,
                "is_reference": is_reference,
            });
            if let Some(times) = cell.times_better {
                row["times_better"] = times.into();
            }
            Some(row)
        };
        self.columns.iter().zip(&line.cells).filter_map(row).collect()
    }

    pub(super) fn table(&self, bench: &str, what: &str) -> String {
        let mut text = format!("{bench}: {what}\n");
        let who = self.lines.iter().map(|line| line.who.chars().count()).max().unwrap_or(0);
        let heads: String = self.columns.iter().map(|column| format!("  {column:>WIDTH$}")).collect();
        if self.columns.iter().any(|column| !column.is_empty()) {
            writeln!(text, "  {:<who$}{heads}", "").expect("a string takes all");
        }
        let mut measure = "";
        for line in &self.lines {
            if line.what != measure {
                measure = line.what;
                writeln!(text, "{measure}, {}", line.unit).expect("a string takes all");
            }
            let mark = if line.is_reference { '·' } else { ' ' };
            let cells: String = line.cells.iter().map(|cell| format!("  {:>WIDTH$}", shown(*cell))).collect();
            writeln!(text, "{mark} {:<who$}{cells}", line.who).expect("a string takes all");
        }
        if self.lines.iter().any(|line| line.is_reference) {
            text.push_str("· others in the same run, and how many times better we are; below 1, worse\n");
        }
        for note in &self.notes {
            writeln!(text, "! {note}").expect("a string takes all");
        }
        text
    }
}

/// Room for `1.23 M (12.3×)` and for a depth.
const WIDTH: usize = 16;

fn shown(cell: Option<Cell>) -> String {
    let Some(Cell { value, times_better }) = cell else { return "–".to_owned() };
    let times = times_better.map_or_else(String::new, |times| format!(" ({}×)", three_digits(times)));
    let (value, prefix) = match value {
        1e6.. => (value / 1e6, " M"),
        1e4.. => (value / 1e3, " k"),
        _ => (value, ""),
    };
    format!("{}{prefix}{times}", three_digits(value))
}

fn three_digits(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let line =
            |who, is_reference, cells| Line { what: "publish", unit: "messages/s", who, is_reference, cells };
        let cell = |value, times_better| Some(Cell { value, times_better });
        Grid {
            columns: vec!["10 k".to_owned(), "1 M".to_owned()],
            lines: vec![
                line("ours", false, vec![cell(1_234_567.0, None), cell(99.94, None)]),
                line("theirs", true, vec![cell(123_456.0, Some(10.0)), None]),
            ],
            notes: vec!["100 M was not run".to_owned()],
        }
    }

    #[test]
    fn people_see_three_digits_the_ratio_and_what_is_missing() {
        let seen = "\
deep: a test
                      10 k               1 M
publish, messages/s
  ours              1.23 M              99.9
· theirs     123 k (10.0×)                 –
· others in the same run, and how many times better we are; below 1, worse
! 100 M was not run
";
        assert_eq!(grid().table("deep", "a test"), seen);
    }

    #[test]
    fn programs_get_one_row_for_each_value() {
        let json: Value = serde_json::from_str(&grid().json("deep")).expect("JSON");
        let rows = json["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[2]["times_better"], 10.0);
        assert_eq!(rows[1]["at"], "1 M");
    }
}
