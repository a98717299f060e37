//! The chart: how late each order was handled, by when it was committed; with lanes and without, for each sink. Delays are logarithmic.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use super::Told;
use super::servers::To;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const MARGIN: [f64; 2] = [60.0, 40.0];
/// From a millisecond to a thousand seconds.
const DECADES: [i32; 2] = [-3, 3];
const WITH: &str = "#2a7f62";
const WITHOUT: &str = "#c1121f";

/// Writes the chart beside what else is built, and answers where.
pub(super) fn write(all: &[Told]) -> io::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let path = target.join("outbox.svg");
    std::fs::create_dir_all(&target)?;
    std::fs::write(&path, svg(all))?;
    Ok(path)
}

fn svg(all: &[Told]) -> String {
    let (wide, high) = (2.0 * (WIDTH + MARGIN[0]) + 20.0, HEIGHT + 2.0 * MARGIN[1] + 20.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>How late orders are handled while a migration floods the outbox</title>\n\
         <rect width=\"{wide}\" height=\"{high}\" fill=\"white\"/>\n"
    );
    let shown = all.iter().filter(|told| !told.case.kills);
    let end = shown.map(|told| told.migration).fold(1.0, f64::max) + 2.0;
    for (nth, (what, to)) in
        [("through Overtake", To::Broker), ("through streams of Redis", To::Redis)].iter().enumerate()
    {
        let left = MARGIN[0] + nth as f64 * (WIDTH + MARGIN[0]);
        half(&mut out, left, what, end, all.iter().filter(|told| told.case.to == *to && !told.case.kills));
    }
    let legend = MARGIN[1] + HEIGHT + 52.0;
    for (nth, (color, what)) in
        [(WITH, "orders, priority lanes on"), (WITHOUT, "orders, one lane")].iter().enumerate()
    {
        let x = MARGIN[0] + 190.0 * nth as f64;
        let _ = writeln!(
            out,
            "<circle cx=\"{x}\" cy=\"{}\" r=\"4\" fill=\"{color}\"/><text x=\"{}\" y=\"{legend}\">{what}</text>",
            legend - 4.0,
            x + 10.0
        );
    }
    out + "</svg>\n"
}

fn half<'t>(out: &mut String, left: f64, what: &str, end: f64, all: impl Iterator<Item = &'t Told>) {
    let x = |at: f64| left + (at / end).clamp(0.0, 1.0) * WIDTH;
    let y = |took: f64| {
        let [low, high] = DECADES.map(f64::from);
        let part = (took.max(1e-3).log10() - low) / (high - low);
        MARGIN[1] + HEIGHT * (1.0 - part.clamp(0.0, 1.0))
    };
    let (top, bottom) = (MARGIN[1], MARGIN[1] + HEIGHT);
    let _ = writeln!(out, "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{what}</text>", top - 12.0);
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
    for tick in 0..=4 {
        let at = end * f64::from(tick) / 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">{at:.0} s</text>",
            x(at),
            bottom + 18.0
        );
    }
    for told in all {
        let color = if told.case.lanes { WITH } else { WITHOUT };
        // One path of points without length, with round ends: a tenth of the bytes of as many circles.
        let _ = write!(
            out,
            "<path fill=\"none\" stroke=\"{color}\" stroke-width=\"3\" stroke-linecap=\"round\" d=\""
        );
        // Points that cannot be told apart are one.
        let points = told
            .orders
            .iter()
            .map(|order| (x(order.at).round() as i64, (2.0 * y(order.took)).round() as i64));
        for (x, y) in points.collect::<BTreeSet<_>>() {
            let _ = write!(out, "M{x} {}h0", y as f64 / 2.0);
        }
        let _ = writeln!(out, "\"/>");
        // When the last of the migration was handled.
        let at = x(told.migration);
        let _ = writeln!(
            out,
            "<line x1=\"{at}\" y1=\"{top}\" x2=\"{at}\" y2=\"{bottom}\" stroke=\"{color}\" stroke-dasharray=\"4 4\"/>"
        );
    }
}
