//! The list of queues: its columns, and a queue as a row.

use ratatui::style::Style;

use super::grid::{ALWAYS, Cell, Column, Grid, NEVER};
use super::theme::Theme;
use crate::gauges::{LaneNow, Quantile, QueueNow, Sign, Sums, figures};
use crate::table::{Side, duration};

/// The heading of the state.
const STATE: &str = "STATE";
/// Longest name that is shown whole where there is room, characters.
const NAME_MOST: usize = 48;

/// The columns where the longest name has so many characters: the state as words where they fit, else as a sign.
pub(crate) fn grid(name: usize, width: u16) -> Grid {
    let grid = Grid::new(&columns(name, NEVER, 50), width);
    if grid.has(STATE) { grid } else { Grid::new(&columns(name, ALWAYS, NEVER), width) }
}

fn columns(name: usize, sign: u8, state: u8) -> Vec<Column> {
    let column = |title, side, least, most, need| Column { title, side, least, most, need };
    let right = |title, width, need| column(title, Side::Right, width, width, need);
    let name = u16::try_from(name.min(NAME_MOST)).unwrap_or(u16::MAX).max(10);
    vec![
        column("", Side::Left, 1, 1, sign),
        column("QUEUE", Side::Left, 10, name, ALWAYS),
        right("READY", 6, ALWAYS),
        right("OLDEST", 6, 90),
        right("URGENT", 6, 15),
        column("WAITING", Side::Left, 7, 24, 70),
        right("IN/S", 5, 60),
        right("OUT/S", 5, 80),
        right("LEASED", 6, 40),
        right("P95", 6, 20),
        right("DEAD", 5, 30),
        right("DELAYED", 7, 10),
        column(STATE, Side::Left, 11, 32, state),
    ]
}

/// A queue under them.
pub(crate) fn cells(queue: &QueueNow, theme: Theme) -> Vec<Cell> {
    let sums = &queue.sums;
    let state = queue.signs.first().map_or(Style::new(), |sign| sign_style(*sign, theme));
    let mark = queue.signs.first().map_or_else(String::new, |sign| sign_mark(*sign).to_string());
    vec![
        Cell::Text(mark, state),
        Cell::plain(queue.name.clone()),
        Cell::plain(figures::count(sums.ready)),
        oldest(sums, queue.is(Sign::Behind), theme),
        Cell::plain(urgent(queue)),
        Cell::Bar { amounts: queue.ready_by_heat(), full: sums.ready },
        rate(sums.in_rate, theme),
        rate(sums.out_rate, theme),
        quiet(sums.leased, theme),
        Cell::plain(queue.p95.map_or_else(|| "-".to_owned(), Quantile::text)),
        dead(sums.dead, queue.new_dead, theme),
        quiet(sums.delayed, theme),
        Cell::Text(queue.words(), state),
    ]
}

/// The columns of lanes.
pub(crate) fn lane_columns(name: usize) -> Vec<Column> {
    let column = |title, side, least, most, need| Column { title, side, least, most, need };
    let right = |title, width, need| column(title, Side::Right, width, width, need);
    let name = u16::try_from(name.min(NAME_MOST)).unwrap_or(u16::MAX).max(8);
    vec![
        column("LANE", Side::Left, 8, name, ALWAYS),
        right("READY", 6, ALWAYS),
        right("OLDEST", 6, 90),
        column("WAITING", Side::Left, 7, 24, 70),
        right("IN/S", 5, 60),
        right("OUT/S", 5, 80),
        right("LEASED", 7, 75),
        right("P50", 6, 20),
        right("P95", 6, 50),
        right("DEAD", 5, 40),
        right("DELAYED", 7, 10),
    ]
}

/// A lane under them, its bar beside that of the lane in which most is ready.
pub(crate) fn lane_cells(lane: &LaneNow, most: u64, theme: Theme) -> Vec<Cell> {
    let sums = &lane.sums;
    let mut amounts = [0; crate::gauges::HEATS];
    amounts[lane.heat.step()] = sums.ready;
    let leased = match lane.cap {
        0 => quiet(sums.leased, theme),
        cap if sums.leased >= cap => {
            Cell::Text(format!("{}/{cap}", figures::count(sums.leased)), theme.warn())
        }
        cap => Cell::plain(format!("{}/{cap}", figures::count(sums.leased))),
    };
    let wait = |wait: Option<Quantile>| Cell::plain(wait.map_or_else(|| "-".to_owned(), Quantile::text));
    vec![
        Cell::Text(lane.name.clone(), theme.heat(lane.heat)),
        Cell::plain(figures::count(sums.ready)),
        oldest(sums, false, theme),
        Cell::Bar { amounts, full: most },
        rate(sums.in_rate, theme),
        rate(sums.out_rate, theme),
        leased,
        wait(lane.p50),
        wait(lane.p95),
        dead(sums.dead, 0, theme),
        quiet(sums.delayed, theme),
    ]
}

/// The age of the oldest.
pub(crate) fn age(sums: &Sums) -> String {
    if sums.ready == 0 { "-".to_owned() } else { duration(sums.oldest_ms) }
}

/// The age of the oldest of its most urgent lane that has something ready.
pub(crate) fn urgent(queue: &QueueNow) -> String {
    if queue.sums.ready == 0 { "-".to_owned() } else { duration(queue.urgent_age_ms()) }
}

fn oldest(sums: &Sums, is_behind: bool, theme: Theme) -> Cell {
    Cell::Text(age(sums), if is_behind { theme.bad() } else { Style::new() })
}

fn rate(rate: Option<f64>, theme: Theme) -> Cell {
    let style = if rate.is_some_and(|rate| rate > 0.0) { Style::new() } else { theme.dim() };
    Cell::Text(figures::rate(rate), style)
}

/// A count that is nothing to look at where it is 0.
fn quiet(count: u64, theme: Theme) -> Cell {
    Cell::Text(figures::count(count), if count == 0 { theme.dim() } else { Style::new() })
}

fn dead(count: u64, new: u64, theme: Theme) -> Cell {
    let style = match (count, new) {
        (_, 1..) => theme.bad(),
        (0, _) => theme.dim(),
        _ => theme.warn(),
    };
    Cell::Text(figures::count(count), style)
}

fn sign_style(sign: Sign, theme: Theme) -> Style {
    match sign {
        Sign::Full | Sign::NoConsumer | Sign::Behind | Sign::Dying => theme.bad(),
        Sign::Paused => theme.warn(),
    }
}

/// One character, for where there is no room for the word.
fn sign_mark(sign: Sign) -> char {
    match sign {
        Sign::Full => 'F',
        Sign::NoConsumer => 'N',
        Sign::Behind => 'B',
        Sign::Dying => 'D',
        Sign::Paused => 'P',
    }
}
