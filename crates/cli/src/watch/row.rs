//! A line of figures.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::news::News;
use crate::gauges::{Quantile, QueueNow, figures};
use crate::out::{BAD, HEAD as BOLD, HINT, RESET};
use crate::table::{duration, number, one_line};

/// Above the lines. Times are those of this machine's time zone.
pub(crate) fn head() -> String {
    format!(
        "{BOLD}{:<8}  {:>9}  {:>6}  {:>5}  {:>5}  {:>6}  {:>6}  {:>7}  {:>6}  LANES{RESET}\n",
        "TIME", "READY", "LEASED", "IN/S", "OUT/S", "OLDEST", "P95", "DELAYED", "DEAD"
    )
}

/// The figures of a queue, and behind them what is ready in each lane that has something.
pub(crate) fn row(time: &str, queue: &QueueNow) -> String {
    let sums = &queue.sums;
    let oldest = if sums.ready == 0 { "-".to_owned() } else { duration(sums.oldest_ms) };
    let mut row = format!(
        "{time:<8}  {:>9}  {:>6}  {:>5}  {:>5}  {oldest:>6}  {:>6}  {:>7}  {:>6}",
        number(sums.ready),
        figures::count(sums.leased),
        figures::rate(sums.in_rate),
        figures::rate(sums.out_rate),
        queue.p95.map_or_else(|| "-".to_owned(), Quantile::text),
        figures::count(sums.delayed),
        figures::count(sums.dead),
    );
    for (at, lane) in queue.lanes.iter().filter(|lane| lane.sums.ready > 0).enumerate() {
        let gap = if at == 0 { "  " } else { " " };
        let _ = write!(row, "{gap}{}={}", one_line(&lane.name, usize::MAX), number(lane.sums.ready));
    }
    row.push('\n');
    row
}

/// Something that happened, between the lines.
pub(crate) fn said(time: &str, news: &News) -> String {
    let style = if news.is_bad { BAD } else { HINT };
    format!("{time:<8}  {style}-- {}{RESET}\n", one_line(&news.text, usize::MAX))
}

/// The same line for programs.
pub(crate) fn json(at: SystemTime, queue: &QueueNow) -> Value {
    let mut line = queue.json();
    line["at_ms"] = unix_ms(at).into();
    line
}

/// The time of day in this machine's time zone.
pub(crate) fn time_of_day(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// ms since 1970.
pub(crate) fn unix_ms(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::gauges::{LaneNow, Sums};

    #[test]
    fn figures_stand_under_their_headings() {
        let lane = |name: &str, ready| LaneNow {
            name: name.to_owned(),
            sums: Sums { ready, ..Sums::default() },
            ..LaneNow::default()
        };
        let sums = Sums {
            ready: 9_312,
            leased: 10,
            in_rate: Some(120.4),
            out_rate: Some(0.5),
            oldest_ms: 123_000,
            dead: 1_234_567,
            ..Sums::default()
        };
        let busy = QueueNow {
            lanes: vec![lane("critical", 12), lane("normal", 0), lane("a\nb", 9_300)],
            sums,
            p95: Some(Quantile::About(1_250)),
            ..QueueNow::default()
        };
        let paused = News { event: "paused", text: "paused".to_owned(), is_bad: true };
        let text = [
            head(),
            row("14:03:07", &busy),
            said("14:03:08", &paused),
            row("14:03:08", &QueueNow::default()),
        ];
        expect![[r#"
            TIME          READY  LEASED   IN/S  OUT/S  OLDEST     P95  DELAYED    DEAD  LANES
            14:03:07      9,312      10    120    0.5   2m03s    1.2s        0    1.2M  critical=12 a\nb=9,300
            14:03:08  -- paused
            14:03:08          0       0      -      -       -       -        0       0
        "#]]
        .assert_eq(&anstream::adapter::strip_str(&text.concat()).to_string());
    }
}
