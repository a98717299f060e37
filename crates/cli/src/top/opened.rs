//! One queue: its lanes, what is leased, and who takes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::frame::line;
use super::grid::{ALWAYS, Cell, Column, Grid, write};
use super::lists::{lane_cells, lane_columns};
use super::state::State;
use super::theme::Theme;
use crate::gauges::{Holders, LaneNow, QueueNow};
use crate::table::{Side, count, duration};

/// A line of it.
enum Line<'a> {
    Empty,
    Title(String),
    Head(&'a Grid),
    Row(&'a Grid, Vec<Cell>),
}

/// How many lines there are.
pub(crate) fn lines(queue: &QueueNow, holders: &Holders) -> usize {
    let section = |rows: usize| if rows == 0 { 0 } else { rows + 3 };
    1 + queue.lanes.len().max(1) + section(holders.held.len()) + section(holders.consumers.len())
}

/// Draws those in the window.
pub(crate) fn draw(queue: &QueueNow, state: &State, theme: Theme, buffer: &mut Buffer, body: Rect) {
    let name = |lane: &LaneNow| lane.name.chars().count();
    let names = queue.lanes.iter().map(name).max().unwrap_or(0);
    let lanes = Grid::new(&lane_columns(names), body.width);
    let (held, consumers) = (Grid::new(&HELD, body.width), Grid::new(&CONSUMERS, body.width));
    let grids = [&lanes, &held, &consumers];
    let all = all(queue, &state.holders, grids, theme);
    debug_assert_eq!(all.len(), lines(queue, &state.holders), "as many lines as the window is told of");
    for (at, what) in (0..body.height).zip(all.iter().skip(state.scrolled)) {
        let line = line(body, at);
        match what {
            Line::Empty => {}
            Line::Title(text) => write(buffer, line, text, Side::Left, theme.dim()),
            Line::Head(grid) => grid.head(buffer, line, theme),
            Line::Row(grid, cells) => grid.row(buffer, line, cells, theme),
        }
    }
}

fn all<'a>(queue: &QueueNow, holders: &Holders, grids: [&'a Grid; 3], theme: Theme) -> Vec<Line<'a>> {
    let [lanes, held, consumers] = grids;
    let most = queue.lanes.iter().map(|lane| lane.sums.ready).max().unwrap_or(0);
    let mut all = vec![Line::Head(lanes)];
    all.extend(queue.lanes.iter().map(|lane| Line::Row(lanes, lane_cells(lane, most, theme))));
    if queue.lanes.is_empty() {
        all.push(Line::Title("no lanes: nothing was published yet".to_owned()));
    }
    if !holders.held.is_empty() {
        let (shown, leased) = (holders.held.len() as u64, queue.sums.leased);
        let of = if shown < leased { format!(", the {shown} published last") } else { String::new() };
        all.extend([
            Line::Empty,
            Line::Title(format!("{} leased{of}", count(leased, "message"))),
            Line::Head(held),
        ]);
        let cells = holders.held.iter().map(|held| {
            let left = match held.left_ms {
                None => "-".to_owned(),
                Some(0) => "over".to_owned(),
                Some(ms) => duration(ms),
            };
            let attempt = if held.attempt > 1 { theme.warn() } else { Style::new() };
            vec![
                Cell::plain(held.id.clone()),
                Cell::plain(held.lane.clone()),
                Cell::plain(duration(held.age_ms)),
                Cell::Text(left, if held.left_ms == Some(0) { theme.bad() } else { Style::new() }),
                Cell::Text(held.attempt.to_string(), attempt),
            ]
        });
        all.extend(cells.map(|cells| Line::Row(held, cells)));
    }
    if !holders.consumers.is_empty() {
        let title = count(holders.consumers.len() as u64, "consumer");
        all.extend([Line::Empty, Line::Title(format!("{title} over AMQP")), Line::Head(consumers)]);
        let cells = holders.consumers.iter().map(|consumer| {
            let window = if consumer.window == 0 { "any".to_owned() } else { consumer.window.to_string() };
            vec![
                Cell::plain(consumer.peer.clone()),
                Cell::plain(consumer.user.clone()),
                Cell::plain(window),
                Cell::plain(consumer.tag.clone()),
            ]
        });
        all.extend(cells.map(|cells| Line::Row(consumers, cells)));
    }
    all
}

const HELD: [Column; 5] = [
    Column { title: "MESSAGE", side: Side::Left, least: 12, most: 40, need: ALWAYS },
    Column { title: "LANE", side: Side::Left, least: 6, most: 12, need: 20 },
    Column { title: "AGE", side: Side::Right, least: 6, most: 6, need: 30 },
    Column { title: "ENDS IN", side: Side::Right, least: 7, most: 7, need: 40 },
    Column { title: "ATTEMPT", side: Side::Right, least: 7, most: 7, need: 10 },
];

const CONSUMERS: [Column; 4] = [
    Column { title: "FROM", side: Side::Left, least: 12, most: 24, need: ALWAYS },
    Column { title: "USER", side: Side::Left, least: 8, most: 20, need: 30 },
    Column { title: "WINDOW", side: Side::Right, least: 6, most: 6, need: 20 },
    Column { title: "TAG", side: Side::Left, least: 10, most: 40, need: 10 },
];
