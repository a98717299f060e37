//! What the keys, the columns and the words mean.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::frame::{LEGEND, draw_legend, line};
use super::grid::write;
use super::theme::Theme;
use crate::table::Side;

/// Lines of at most 40 characters, so that they fit everywhere. Where they are too many, the empty ones are left out.
const LINES: [&str; 21] = [
    "↑ ↓ j k    choose a queue",
    "Enter      open it: lanes, who holds it",
    "Esc        back; drop the filter",
    "/          only names with this in them",
    "s          sort by trouble, ready, in…",
    "+ -        ask less often, or more often",
    "p q Ctrl-Z pause, quit, to the shell",
    "",
    "OLDEST   age of the oldest ready message",
    "URGENT   the same of its most urgent",
    "WAITING  what is ready, by urgency",
    "IN/S     published a second",
    "OUT/S    acknowledged a second",
    "P95      19 of 20 waited at most so long",
    "",
    "F full         limit reached, or dropped",
    "N no consumer  it waits, nobody takes",
    "B behind       older and older for 10s",
    "D dead +N      so many died just now",
    "P paused       lends nothing for now",
    "",
];

/// Draws it in place of everything else.
pub(crate) fn draw(buffer: &mut Buffer, theme: Theme) {
    let area = buffer.area;
    let is_tight = usize::from(area.height) <= LINES.len();
    let lines = LINES.into_iter().filter(|line| !is_tight || !line.is_empty());
    let mut at = 0;
    for text in lines.take(usize::from(area.height.saturating_sub(1))) {
        write(buffer, line(area, at), text, Side::Left, Style::new());
        at += 1;
    }
    let last = line(area, at);
    draw_legend(buffer, Rect { width: last.width.min(LEGEND), ..last }, theme);
    let from = last.width.min(LEGEND + 2);
    let rest = Rect { x: last.x + from, width: last.width - from, ..last };
    write(buffer, rest, "any key goes back", Side::Left, theme.dim());
}
