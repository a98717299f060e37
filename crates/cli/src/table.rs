//! Tables for people: columns side by side, nothing that a line-based tool would stumble over.

use std::fmt::Write;

use crate::out::{HEAD, RESET};

/// How a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows under headings.
pub(crate) struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty one.
    pub(crate) fn new(columns: &[(&'static str, Side)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// One more row. Control characters in it are made visible: a message must not steer the terminal.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| one_line(cell, usize::MAX)).collect());
    }

    /// As text, a line per row; the last column is not padded.
    pub(crate) fn text(&self) -> String {
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain([self.columns[at].0.len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut out = String::new();
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let _ = writeln!(out, "{HEAD}{}{RESET}", self.line(&headings, &widths));
        for row in &self.rows {
            let _ = writeln!(out, "{}", self.line(row, &widths));
        }
        out
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let last = widths.len().saturating_sub(1);
        let mut line = String::new();
        for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let gap = if at == last { "" } else { "  " };
            let _ = match self.columns[at].1 {
                Side::Right => write!(line, "{cell:>width$}{gap}"),
                Side::Left if at == last => write!(line, "{cell}"),
                Side::Left => write!(line, "{cell:<width$}{gap}"),
            };
        }
        line.trim_end().to_owned()
    }
}

/// Text as one line of at most so many characters, control characters made visible.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == most {
            out.push('…');
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// A duration for people.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1_000),
        3_600_000..86_400_000 => format!("{}h{:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
        _ => format!("{}d{:02}h", ms / 86_400_000, ms % 86_400_000 / 3_600_000),
    }
}

/// A number with commas.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 message`, `2 messages`.
pub(crate) fn count(many: u64, one: &str) -> String {
    if many == 1 { format!("1 {one}") } else { format!("{} {one}s", number(many)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_side_by_side() {
        let mut table = Table::new(&[("NAME", Side::Left), ("READY", Side::Right), ("BODY", Side::Left)]);
        table.row(vec!["a".into(), "1,000,000".into(), "x".into()]);
        table.row(vec!["longer".into(), "2".into(), "\u{1b}[31mred\n".into()]);
        let text = anstream::adapter::strip_str(&table.text()).to_string();
        assert_eq!(
            text,
            "NAME        READY  BODY\na       1,000,000  x\nlonger          2  \\u{1b}[31mred\\n\n"
        );
    }

    #[test]
    fn numbers_and_durations_read_easily() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [5, 1_250, 61_000, 3_660_000, 90_000_000].map(duration),
            ["5ms", "1.2s", "1m01s", "1h01m", "1d01h"]
        );
        assert_eq!([count(1, "queue"), count(2, "queue")], ["1 queue", "2 queues"]);
        assert_eq!(one_line("äöü…", 2), "äö…");
    }
}
