//! Columns side by side in the width there is: what does not fit is left out, the least needed first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::theme::{SHADES, Theme};
use crate::gauges::{HEATS, bar};
use crate::table::{Side, one_line};

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) side: Side,
    /// Least and most cells. What is left over goes to the columns in turn, the first one first.
    pub(crate) least: u16,
    pub(crate) most: u16,
    /// Those with the least are left out first; those with `ALWAYS` never are, those with `NEVER` always.
    pub(crate) need: u8,
}

/// A column that is never left out.
pub(crate) const ALWAYS: u8 = u8::MAX;

/// A column that is left out.
pub(crate) const NEVER: u8 = 0;

/// What stands in a row under a column.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Text(String, Style),
    /// Amounts by how urgent they are, of so many that fill it.
    Bar {
        amounts: [u64; HEATS],
        full: u64,
    },
}

impl Cell {
    /// As everything else.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::Text(text.into(), Style::new())
    }
}

/// Columns with their places.
pub(crate) struct Grid {
    columns: Vec<Column>,
    /// By column: its first cell, and how many it has; `None` where it is left out.
    places: Vec<Option<(u16, u16)>>,
}

impl Grid {
    /// These columns in so many cells.
    pub(crate) fn new(columns: &[Column], width: u16) -> Self {
        let mut is_in: Vec<bool> = columns.iter().map(|column| column.need > NEVER).collect();
        let least = |is_in: &[bool]| -> u16 {
            let widths = columns.iter().zip(is_in).filter(|(_, is_in)| **is_in);
            widths.map(|(column, _)| column.least + 1).sum::<u16>().saturating_sub(1)
        };
        while least(&is_in) > width {
            let left = (0..columns.len()).filter(|at| is_in[*at] && columns[*at].need < ALWAYS);
            let Some(at) = left.min_by_key(|at| columns[*at].need) else { break };
            is_in[at] = false;
        }
        let mut spare = width.saturating_sub(least(&is_in));
        let (mut places, mut from) = (Vec::with_capacity(columns.len()), 0);
        for (column, is_in) in columns.iter().zip(&is_in) {
            places.push(is_in.then(|| {
                let more = spare.min(column.most - column.least);
                spare -= more;
                let place = (from, column.least + more);
                from += place.1 + 1;
                place
            }));
        }
        Self { columns: columns.to_vec(), places }
    }

    /// Whether a column of this title has a place.
    pub(crate) fn has(&self, title: &str) -> bool {
        self.columns.iter().zip(&self.places).any(|(column, place)| column.title == title && place.is_some())
    }

    /// The headings.
    pub(crate) fn head(&self, buffer: &mut Buffer, line: Rect, theme: Theme) {
        let cells = self.columns.iter().map(|column| Cell::Text(column.title.to_owned(), theme.head()));
        self.row(buffer, line, &cells.collect::<Vec<_>>(), theme);
    }

    /// A row: a cell for each column, also for those that are left out.
    pub(crate) fn row(&self, buffer: &mut Buffer, line: Rect, cells: &[Cell], theme: Theme) {
        for ((column, place), cell) in self.columns.iter().zip(&self.places).zip(cells) {
            let Some((from, width)) = *place else { continue };
            let place = Rect { x: line.x + from, width, ..line }.intersection(line);
            match cell {
                Cell::Text(text, style) => write(buffer, place, text, column.side, *style),
                Cell::Bar { amounts, full } => draw_bar(buffer, place, *amounts, *full, theme),
            }
        }
    }
}

/// Text in a place, cut where it is too long.
pub(crate) fn write(buffer: &mut Buffer, place: Rect, text: &str, side: Side, style: Style) {
    if place.is_empty() {
        return;
    }
    let width = usize::from(place.width);
    let text = if text.chars().count() > width { one_line(text, width - 1) } else { one_line(text, width) };
    let x = match side {
        Side::Left => place.x,
        Side::Right => place.right().saturating_sub(text.chars().count().min(width) as u16),
    };
    buffer.set_stringn(x, place.y, text, usize::from(place.right() - x), style);
}

fn draw_bar(buffer: &mut Buffer, place: Rect, amounts: [u64; HEATS], full: u64, theme: Theme) {
    if place.is_empty() {
        return;
    }
    let all: u128 = amounts.iter().map(|amount| u128::from(*amount)).sum();
    let share = all * u128::from(place.width) / u128::from(full.max(1));
    // What is there is seen.
    let cells = share.clamp(u128::from(all > 0), u128::from(place.width)) as usize;
    let mut x = place.x;
    for (heat, cells) in bar(amounts, cells).into_iter().enumerate() {
        let text: String = std::iter::repeat_n(SHADES[heat], cells).collect();
        x = buffer.set_stringn(x, place.y, text, cells, theme.step(heat)).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(title: &'static str, least: u16, most: u16, need: u8) -> Column {
        Column { title, side: Side::Left, least, most, need }
    }

    fn check(width: u16, expect: &str) {
        let columns = [
            column("NAME", 6, 9, ALWAYS),
            column("READY", 5, 5, 3),
            column("P95", 5, 5, 1),
            column("IN", 4, 8, 2),
        ];
        let grid = Grid::new(&columns, width);
        let line = Rect::new(0, 0, width, 1);
        let mut buffer = Buffer::empty(line);
        grid.head(&mut buffer, line, Theme { has_colours: false });
        let text: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(text, expect);
    }

    #[test]
    fn what_is_needed_least_is_left_out_first() {
        check(23, "NAME   READY P95   IN  ");
        check(22, "NAME      READY IN    ");
        check(17, "NAME   READY IN  ");
        check(16, "NAME      READY ");
        check(6, "NAME  ");
        check(3, "NA…");
        check(32, "NAME      READY P95   IN        ");
    }

    #[test]
    fn text_that_is_too_long_is_cut_and_steers_nothing() {
        let place = Rect::new(0, 0, 6, 1);
        let mut buffer = Buffer::empty(place);
        write(&mut buffer, place, "\u{1b}[2J", Side::Left, Style::new());
        let text: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(text, "\\u{1b}");
        write(&mut buffer, place, "   漢字漢字漢字", Side::Left, Style::new());
        assert_eq!(buffer.content.len(), 6);
    }
}
