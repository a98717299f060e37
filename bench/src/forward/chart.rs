//! The chart: how late each message arrived, by when it was published. Both halves have the same axes; delays are logarithmic.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use super::{Seen, Times};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const MARGIN: [f64; 2] = [60.0, 40.0];
/// From a millisecond to a hundred seconds.
const DECADES: [i32; 2] = [-3, 2];

/// Writes the chart beside what else is built, and answers where.
pub(super) fn write(by_priority: &[Seen], as_they_came: &[Seen], times: Times) -> io::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let path = target.join("forward.svg");
    std::fs::create_dir_all(&target)?;
    std::fs::write(&path, svg(by_priority, as_they_came, times))?;
    Ok(path)
}

fn svg(by_priority: &[Seen], as_they_came: &[Seen], times: Times) -> String {
    let (wide, high) = (2.0 * (WIDTH + MARGIN[0]) + 20.0, HEIGHT + 2.0 * MARGIN[1] + 20.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>How late messages arrive over a link of 100 kB/s that is down for a while</title>\n\
         <rect width=\"{wide}\" height=\"{high}\" fill=\"white\"/>\n"
    );
    for (nth, (what, seen)) in
        [("by priority", by_priority), ("as they came", as_they_came)].iter().enumerate()
    {
        let left = MARGIN[0] + nth as f64 * (WIDTH + MARGIN[0]);
        half(&mut out, left, what, seen, times);
    }
    let legend = MARGIN[1] + HEIGHT + 52.0;
    for (nth, (color, what)) in [(ALERT, "alerts, 1 %"), (TELEMETRY, "telemetry")].iter().enumerate() {
        let x = MARGIN[0] + 130.0 * nth as f64;
        let _ = writeln!(
            out,
            "<circle cx=\"{x}\" cy=\"{}\" r=\"4\" fill=\"{color}\"/><text x=\"{}\" y=\"{legend}\">{what}</text>",
            legend - 4.0,
            x + 10.0
        );
    }
    out + "</svg>\n"
}

const ALERT: &str = "#c1121f";
const TELEMETRY: &str = "#5b8db8";

fn half(out: &mut String, left: f64, what: &str, seen: &[Seen], times: Times) {
    let x = |at: f64| left + at / times.end * WIDTH;
    let y = |took: f64| {
        let [low, high] = DECADES.map(f64::from);
        let part = (took.max(1e-3).log10() - low) / (high - low);
        MARGIN[1] + HEIGHT * (1.0 - part.clamp(0.0, 1.0))
    };
    let (top, bottom) = (MARGIN[1], MARGIN[1] + HEIGHT);
    let (from, to) = (x(times.down[0]), x(times.down[1]));
    let _ = writeln!(
        out,
        "<rect x=\"{from}\" y=\"{top}\" width=\"{}\" height=\"{HEIGHT}\" fill=\"#eee\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666\">link down</text>\
         <text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{what}</text>",
        to - from,
        (from + to) / 2.0,
        bottom - 8.0,
        top - 12.0
    );
    for decade in DECADES[0]..=DECADES[1] {
        let at = y(10_f64.powi(decade));
        let label = if decade < 0 {
            format!("{} ms", 10_i32.pow((decade + 3) as u32))
        } else {
            format!("{} s", 10_i32.pow(decade as u32))
        };
        let _ = writeln!(
            out,
            "<line x1=\"{left}\" y1=\"{at}\" x2=\"{}\" y2=\"{at}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#333\">{label}</text>",
            left + WIDTH,
            left - 6.0,
            at + 4.0
        );
    }
    for tick in 0..=6 {
        let at = times.end * f64::from(tick) / 6.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">{at:.0} s</text>",
            x(at),
            bottom + 18.0
        );
    }
    let dots = |is_alert| seen.iter().filter(move |one| one.is_alert == is_alert);
    for (is_alert, color, size) in [(false, TELEMETRY, 1.2), (true, ALERT, 3.5)] {
        // One path of points without length, with round ends: a tenth of the bytes of as many circles.
        let _ = write!(
            out,
            "<path fill=\"none\" stroke=\"{color}\" stroke-width=\"{}\" stroke-linecap=\"round\" d=\"",
            2.0 * size
        );
        for one in dots(is_alert) {
            let _ = write!(out, "M{:.1} {:.1}h0", x(one.at), y(one.took));
        }
        let _ = writeln!(out, "\"/>");
    }
}
