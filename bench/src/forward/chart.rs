//! The chart: how late each message arrived, by when it was published. Both halves have the same axes.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use super::{Seen, Times};
use crate::chart::{self, Axes, HEIGHT, MARGIN, WIDTH};

const ALERT: &str = "#c1121f";
const TELEMETRY: &str = "#5b8db8";

/// Writes the chart beside what else is built, and answers where.
pub(super) fn write(by_priority: &[Seen], as_they_came: &[Seen], times: Times) -> io::Result<PathBuf> {
    let title = "How late messages arrive over a link of 100 kB/s that is down for a while";
    let svg = chart::svg(title, |out| {
        for (nth, (what, seen)) in
            [("by priority", by_priority), ("as they came", as_they_came)].iter().enumerate()
        {
            half(out, MARGIN[0] + nth as f64 * (WIDTH + MARGIN[0]), what, seen, times);
        }
        chart::legend(out, 130.0, &[(ALERT, "alerts, 1 %"), (TELEMETRY, "telemetry")]);
    });
    chart::write("forward.svg", &svg)
}

fn half(out: &mut String, left: f64, what: &str, seen: &[Seen], times: Times) {
    // From a millisecond to a hundred seconds.
    let axes = Axes { left, end: times.end, decades: [-3, 2], ticks: 6 };
    let (top, bottom) = (MARGIN[1], MARGIN[1] + HEIGHT);
    let (from, to) = (axes.x(times.down[0]), axes.x(times.down[1]));
    let _ = writeln!(
        out,
        "<rect x=\"{from}\" y=\"{top}\" width=\"{}\" height=\"{HEIGHT}\" fill=\"#eee\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666\">link down</text>",
        to - from,
        (from + to) / 2.0,
        bottom - 8.0,
    );
    axes.draw(out, what);
    for (is_alert, color, size) in [(false, TELEMETRY, 2.4), (true, ALERT, 7.0)] {
        let points = seen.iter().filter(|one| one.is_alert == is_alert).map(|one| (one.at, one.took));
        axes.dots(out, color, size, points);
    }
}
