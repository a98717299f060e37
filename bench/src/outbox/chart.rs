//! The chart: how late each order was handled, by when it was committed; with lanes and without, for each sink.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use super::Told;
use super::servers::To;
use crate::chart::{self, Axes, HEIGHT, MARGIN, WIDTH};

const WITH: &str = "#2a7f62";
const WITHOUT: &str = "#c1121f";

/// Writes the chart beside what else is built, and answers where.
pub(super) fn write(all: &[Told]) -> io::Result<PathBuf> {
    let shown: Vec<&Told> = all.iter().filter(|told| !told.case.kills).collect();
    let end = shown.iter().map(|told| told.migration).fold(1.0, f64::max) + 2.0;
    let svg = chart::svg("How late orders are handled while a migration floods the outbox", |out| {
        for (nth, (what, to)) in
            [("through Overtake", To::Broker), ("through streams of Redis", To::Redis)].iter().enumerate()
        {
            let left = MARGIN[0] + nth as f64 * (WIDTH + MARGIN[0]);
            // From a millisecond to a thousand seconds.
            let axes = Axes { left, end, decades: [-3, 3], ticks: 4 };
            axes.draw(out, what);
            for told in shown.iter().filter(|told| told.case.to == *to) {
                one(out, &axes, told);
            }
        }
        chart::legend(out, 190.0, &[(WITH, "orders, priority lanes on"), (WITHOUT, "orders, one lane")]);
    });
    chart::write("outbox.svg", &svg)
}

fn one(out: &mut String, axes: &Axes, told: &Told) {
    let color = if told.case.lanes { WITH } else { WITHOUT };
    axes.dots(out, color, 3.0, told.orders.iter().map(|order| (order.at, order.took)));
    // When the last of the migration was handled.
    let (at, top, bottom) = (axes.x(told.migration), MARGIN[1], MARGIN[1] + HEIGHT);
    let _ = writeln!(
        out,
        "<line x1=\"{at}\" y1=\"{top}\" x2=\"{at}\" y2=\"{bottom}\" stroke=\"{color}\" stroke-dasharray=\"4 4\"/>"
    );
}
