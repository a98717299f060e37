//! Axes of a chart: seconds along, delays up, which are logarithmic.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

/// How wide the field is.
pub(crate) const WIDTH: f64 = 420.0;
/// How high.
pub(crate) const HEIGHT: f64 = 260.0;
/// Around it, at its sides and above and below.
pub(crate) const MARGIN: [f64; 2] = [60.0, 40.0];

/// One field and its axes.
pub(crate) struct Axes {
    /// Where it begins.
    pub(crate) left: f64,
    /// Seconds at its end.
    pub(crate) end: f64,
    /// Powers of ten, of seconds, at its foot and its head.
    pub(crate) decades: [i32; 2],
    /// Times that are named along it, besides 0.
    pub(crate) ticks: u32,
}

impl Axes {
    /// Where a second is.
    pub(crate) fn x(&self, at: f64) -> f64 {
        self.left + (at / self.end).clamp(0.0, 1.0) * WIDTH
    }

    /// Where a delay is, seconds.
    pub(crate) fn y(&self, took: f64) -> f64 {
        let [low, high] = self.decades.map(f64::from);
        let part = (took.max(1e-3).log10() - low) / (high - low);
        MARGIN[1] + HEIGHT * (1.0 - part.clamp(0.0, 1.0))
    }

    /// Draws them, with what is shown above.
    pub(crate) fn draw(&self, out: &mut String, what: &str) {
        let (left, top, bottom) = (self.left, MARGIN[1], MARGIN[1] + HEIGHT);
        let _ = writeln!(out, "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{what}</text>", top - 12.0);
        for decade in self.decades[0]..=self.decades[1] {
            let at = self.y(10_f64.powi(decade));
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
        for tick in 0..=self.ticks {
            let at = self.end * f64::from(tick) / f64::from(self.ticks);
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">{at:.0} s</text>",
                self.x(at),
                bottom + 18.0
            );
        }
    }

    /// Draws points of seconds and delays, those that cannot be told apart once: one path of points without length, with round ends, is a tenth of the bytes of as many circles.
    pub(crate) fn dots(
        &self,
        out: &mut String,
        color: &str,
        size: f64,
        points: impl Iterator<Item = (f64, f64)>,
    ) {
        let places =
            points.map(|(at, took)| ((2.0 * self.x(at)).round() as i64, (2.0 * self.y(took)).round() as i64));
        let _ = write!(
            out,
            "<path fill=\"none\" stroke=\"{color}\" stroke-width=\"{size}\" stroke-linecap=\"round\" d=\""
        );
        for (x, y) in places.collect::<BTreeSet<_>>() {
            let _ = write!(out, "M{} {}h0", x as f64 / 2.0, y as f64 / 2.0);
        }
        let _ = writeln!(out, "\"/>");
    }
}

/// A drawing of two fields, with what it shows as its title; `inside` draws them.
pub(crate) fn svg(title: &str, inside: impl FnOnce(&mut String)) -> String {
    let (wide, high) = (2.0 * (WIDTH + MARGIN[0]) + 20.0, HEIGHT + 2.0 * MARGIN[1] + 20.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n\
         <rect width=\"{wide}\" height=\"{high}\" fill=\"white\"/>\n"
    );
    inside(&mut out);
    out + "</svg>\n"
}

/// What the colours mean, so far apart.
pub(crate) fn legend(out: &mut String, apart: f64, colors: &[(&str, &str)]) {
    let below = MARGIN[1] + HEIGHT + 52.0;
    for (nth, (color, what)) in colors.iter().enumerate() {
        let x = MARGIN[0] + apart * nth as f64;
        let _ = writeln!(
            out,
            "<circle cx=\"{x}\" cy=\"{}\" r=\"4\" fill=\"{color}\"/><text x=\"{}\" y=\"{below}\">{what}</text>",
            below - 4.0,
            x + 10.0
        );
    }
}

/// Writes a drawing beside what else is built, and answers where.
pub(crate) fn write(name: &str, svg: &str) -> io::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let path = target.join(name);
    std::fs::create_dir_all(&target)?;
    std::fs::write(&path, svg)?;
    Ok(path)
}
