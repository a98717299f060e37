//! A frame: what is shown as cells of a screen, whatever its size. Only what is seen is drawn.
//!
//! ```text
//!  overtake 0.1.0 · http://127.0.0.1:15672            every 1.0s · by trouble
//!  ready · disk 40GiB free · memory 120MiB
//!  3 queues · ready 12,345 · …
//!
//!  the list of queues, or one queue with its lanes and who holds what
//!
//!  keys
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::grid::write;
use super::state::State;
use super::theme::{SHADES, Theme};
use super::{help, lists, opened};
use crate::gauges::ask::Health;
use crate::gauges::{QueueNow, Sums, figures};
use crate::table::{Side, count, duration, number};

/// Lines above the body.
const HEADER: u16 = 3;
/// From this height on a line between header and body is left empty.
const ROOMY: u16 = 12;

/// Rows of a list that fit into a screen of this height.
pub(crate) fn rows(height: u16) -> usize {
    usize::from(body(Rect::new(0, 0, 1, height)).height.saturating_sub(1))
}

/// Draws all of it.
pub(crate) fn draw(state: &State, now: u64, theme: Theme, buffer: &mut Buffer) {
    let area = buffer.area;
    if state.shows_help {
        help::draw(buffer, theme);
        return;
    }
    draw_header(state, now, theme, buffer);
    let body = body(area);
    match state.opened_queue() {
        Some(queue) => opened::draw(queue, state, theme, buffer, body),
        None => draw_list(state, theme, buffer, body),
    }
    draw_footer(state, theme, buffer);
}

/// Between header and footer.
fn body(area: Rect) -> Rect {
    let top = if area.height >= ROOMY { HEADER + 1 } else { HEADER };
    Rect { y: area.y + top.min(area.height), height: area.height.saturating_sub(top + 1), ..area }
}

/// The line at this height; empty where there is none.
pub(crate) fn line(area: Rect, at: u16) -> Rect {
    Rect { y: area.y.saturating_add(at), height: 1, ..area }.intersection(area)
}

/// Pieces of text, each in its style, with dots between them.
pub(crate) fn pieces(buffer: &mut Buffer, line: Rect, pieces: &[(String, Style)], theme: Theme) {
    let mut place = line;
    for (at, (text, style)) in pieces.iter().enumerate() {
        if at > 0 {
            write(buffer, place, " · ", Side::Left, theme.dim());
            place = after(place, 3);
        }
        write(buffer, place, text, Side::Left, *style);
        place = after(place, text.chars().count());
    }
}

fn after(place: Rect, cells: usize) -> Rect {
    let cells = place.width.min(u16::try_from(cells).unwrap_or(u16::MAX));
    Rect { x: place.x + cells, width: place.width - cells, ..place }
}

fn draw_header(state: &State, now: u64, theme: Theme, buffer: &mut Buffer) {
    let area = buffer.area;
    let first = line(area, 0);
    let mut left = vec![(format!("overtake {}", state.health.version), theme.head()), plain(&state.url)];
    if state.vhost != "/" {
        left.push(plain(&format!("vhost {}", state.vhost)));
    }
    let used: usize = left.iter().map(|(text, _)| text.chars().count() + 3).sum();
    pieces(buffer, first, &left, theme);
    let fits = |text: &String| used + text.chars().count() <= usize::from(first.width);
    if let Some(right) = pace(state).into_iter().find(fits) {
        let style = if state.is_paused { theme.warn() } else { theme.dim() };
        write(buffer, first, &right, Side::Right, style);
    }
    pieces(buffer, line(area, 1), &health(&state.health, state.lost.as_ref(), now, theme), theme);
    let totals = match state.opened_queue() {
        Some(queue) => about(queue, theme),
        None => totals(state),
    };
    let third = line(area, 2);
    pieces(buffer, third, &totals, theme);
    let used: usize = totals.iter().map(|(text, _)| text.chars().count() + 3).sum();
    let place = place_in_list(state);
    if state.opened.is_none() && used + place.chars().count() <= usize::from(third.width) {
        write(buffer, third, &place, Side::Right, theme.dim());
    }
}

/// Which queues of the list are seen, where not all are.
fn place_in_list(state: &State) -> String {
    let (all, seen) = (state.list().len(), state.window().0.len());
    if seen == all { String::new() } else { format!("{}–{}", state.offset() + 1, state.offset() + seen) }
}

/// How often the broker is asked, and in which order its queues stand: the longest way to say it first.
fn pace(state: &State) -> Vec<String> {
    let pause = state.pause();
    let pace = if state.is_paused { "PAUSED".to_owned() } else { format!("every {}", duration(pause)) };
    let slow = if pause > state.interval { ", the broker is slow" } else { "" };
    let order = if state.opened.is_some() { String::new() } else { format!(" · by {}", state.sort.word()) };
    vec![format!("{pace}{slow}{order}"), format!("{pace}{order}"), pace]
}

/// How the broker is; where it does not answer, since when and why.
fn health(health: &Health, lost: Option<&(u64, String)>, now: u64, theme: Theme) -> Vec<(String, Style)> {
    if let Some((since, why)) = lost {
        let lost = format!("lost for {}, retrying", duration(now.saturating_sub(*since)));
        return vec![(lost, theme.bad()), (why.clone(), theme.bad())];
    }
    let state = match (&health.not_ready, &health.warning) {
        (Some(why), _) => (format!("not ready: {why}"), theme.bad()),
        (None, Some(warning)) => (warning.clone(), theme.bad()),
        (None, None) => ("ready".to_owned(), theme.good()),
    };
    let mut all = vec![state];
    if let Some(node) = health.node {
        let is_short = node.disk_free < node.disk_free_limit.saturating_mul(2);
        let style = if is_short { theme.warn() } else { Style::new() };
        if node.disk_free > 0 {
            all.push((format!("disk {} free", figures::bytes(node.disk_free)), style));
        }
        all.push(plain(&format!("memory {}", figures::bytes(node.mem_used))));
    }
    all
}

fn totals(state: &State) -> Vec<(String, Style)> {
    let (shown, known) = (state.list().len(), state.known());
    let queues = if shown == known {
        count(known as u64, "queue")
    } else {
        format!("{} of {}", number(shown as u64), count(known as u64, "queue"))
    };
    [plain(&queues)].into_iter().chain(sums(&state.sums)).collect()
}

/// Counts and rates in words; what seldom is there is left out where it is not.
pub(crate) fn sums(sums: &Sums) -> Vec<(String, Style)> {
    let mut all = vec![
        plain(&format!("ready {}", number(sums.ready))),
        plain(&format!("leased {}", number(sums.leased))),
        plain(&format!("in {}/s", figures::rate(sums.in_rate))),
        plain(&format!("out {}/s", figures::rate(sums.out_rate))),
    ];
    let more = [("delayed", sums.delayed), ("dead", sums.dead)].into_iter().filter(|(_, count)| *count > 0);
    all.extend(more.map(|(word, count)| plain(&format!("{word} {}", number(count)))));
    all
}

fn about(queue: &QueueNow, theme: Theme) -> Vec<(String, Style)> {
    let mut all = vec![(queue.name.clone(), theme.head())];
    if !queue.signs.is_empty() {
        all.push((queue.words(), theme.bad()));
    }
    all.push(plain(&count(queue.takers, "consumer")));
    all.extend(sums(&queue.sums));
    all
}

fn plain(text: &str) -> (String, Style) {
    (text.to_owned(), Style::new())
}

fn draw_list(state: &State, theme: Theme, buffer: &mut Buffer, body: Rect) {
    let names = state.list().map(|queue| queue.name.chars().count()).max().unwrap_or(0);
    let grid = lists::grid(names, body.width);
    grid.head(buffer, line(body, 0), theme);
    let (window, chosen) = state.window();
    if window.is_empty() {
        write(buffer, line(body, 1), nothing(state), Side::Left, theme.dim());
    }
    for (at, queue) in window.into_iter().enumerate() {
        let line = line(body, u16::try_from(at + 1).unwrap_or(u16::MAX));
        grid.row(buffer, line, &lists::cells(queue, theme), theme);
        if at == chosen {
            choose(buffer, line, theme);
        }
    }
}

/// Marks a row; a bar would be the opposite of what it is.
fn choose(buffer: &mut Buffer, line: Rect, theme: Theme) {
    for position in line.positions() {
        let cell = &mut buffer[position];
        if !SHADES.iter().any(|shade| cell.symbol().starts_with(*shade)) {
            cell.set_style(theme.chosen());
        }
    }
}

fn nothing(state: &State) -> &'static str {
    if state.known() == 0 { "no queues" } else { "no queue has this in its name" }
}

fn draw_footer(state: &State, theme: Theme, buffer: &mut Buffer) {
    let area = buffer.area;
    let last = line(area, area.height.saturating_sub(1));
    if state.is_typing {
        write(buffer, last, &format!("/{}█", state.filter), Side::Left, theme.head());
        return;
    }
    if !state.note.is_empty() {
        write(buffer, last, &state.note, Side::Left, theme.warn());
        return;
    }
    let keys = match (&state.opened, state.filter.is_empty()) {
        (Some(_), _) => "Esc back  ↑↓ scroll  p pause  ? help  q quit".to_owned(),
        (None, true) => "↑↓ Enter open  s sort  / find  p pause  ? help  q quit".to_owned(),
        (None, false) => format!("/{}  Esc all  Enter open  ? help  q quit", state.filter),
    };
    write(buffer, last, &keys, Side::Left, theme.dim());
    let from = usize::from(last.width.saturating_sub(LEGEND));
    if from > keys.chars().count() + 1 {
        draw_legend(buffer, after(last, from), theme);
    }
}

/// Cells of the legend.
pub(crate) const LEGEND: u16 = 17;

/// What the shades of a bar mean.
pub(crate) fn draw_legend(buffer: &mut Buffer, place: Rect, theme: Theme) {
    write(buffer, place, "urgent ", Side::Left, theme.dim());
    let mut place = after(place, 7);
    for (step, shade) in SHADES.iter().enumerate() {
        write(buffer, place, &shade.to_string(), Side::Left, theme.step(step));
        place = after(place, 1);
    }
    write(buffer, place, " bulk", Side::Left, theme.dim());
}
