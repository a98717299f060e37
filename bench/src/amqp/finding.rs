//! What was measured, and the tables it makes.

use super::peer::Peer;
use crate::report::{Cell, Grid, Line, Section};
use crate::spread::Spread;

/// Something that is measured.
#[derive(Debug)]
pub(super) struct Measure {
    /// With the goal, where there is one.
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
}

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    More,
    Less,
    Neither,
}

impl Measure {
    pub(super) const fn new(what: &'static str, unit: &'static str, better: Better) -> Self {
        Self { what, unit, better }
    }

    /// In ms.
    pub(super) const fn wait(what: &'static str) -> Self {
        Self::new(what, "ms", Better::Less)
    }

    pub(super) fn is(&'static self, value: f64) -> Finding {
        self.at("", value)
    }

    /// In a column.
    pub(super) fn at(&'static self, at: impl Into<String>, value: f64) -> Finding {
        Finding { measure: self, at: at.into(), value }
    }
}

/// How long something took.
pub(super) struct Waits {
    pub(super) p50: Measure,
    pub(super) p99: Measure,
    pub(super) longest: Measure,
}

macro_rules! waits {
    ($what:literal) => {
        $crate::amqp::finding::Waits {
            p50: $crate::amqp::finding::Measure::wait(concat!($what, ", p50")),
            p99: $crate::amqp::finding::Measure::wait(concat!($what, ", p99")),
            longest: $crate::amqp::finding::Measure::wait(concat!($what, ", longest")),
        }
    };
}
pub(super) use waits;

impl Waits {
    pub(super) fn found(&'static self, spread: &mut Spread) -> Vec<Finding> {
        let parts = [(&self.p50, 0.5), (&self.p99, 0.99), (&self.longest, 1.0)];
        let found = parts.map(|(measure, part)| Some(measure.is(spread.percentile_ms(part)?)));
        found.into_iter().flatten().collect()
    }
}

/// What was measured of one broker.
pub(super) struct Finding {
    measure: &'static Measure,
    at: String,
    value: f64,
}

/// A table for each set of columns, a line for each measure of each broker.
pub(super) fn tables(title: &str, found: &[(Peer, Vec<Finding>)]) -> Vec<Section> {
    let mut grids: Vec<Grid> = Vec::new();
    for measure in measures(found) {
        let columns = columns(measure, found);
        let lines = lines(measure, &columns, found);
        match grids.iter_mut().find(|grid| grid.columns == columns) {
            Some(grid) => grid.lines.extend(lines),
            None => grids.push(Grid { columns, lines, ..Grid::default() }),
        }
    }
    let section = |grid| Section { title: title.to_owned(), grid };
    grids.into_iter().map(section).collect()
}

fn measures(found: &[(Peer, Vec<Finding>)]) -> Vec<&'static Measure> {
    let mut measures: Vec<&'static Measure> = Vec::new();
    for finding in found.iter().flat_map(|(_, findings)| findings) {
        if measures.iter().all(|measure| measure.what != finding.measure.what) {
            measures.push(finding.measure);
        }
    }
    measures
}

fn of<'a>(measure: &'static Measure, findings: &'a [Finding]) -> impl Iterator<Item = &'a Finding> {
    findings.iter().filter(|finding| finding.measure.what == measure.what)
}

fn columns(measure: &'static Measure, found: &[(Peer, Vec<Finding>)]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for finding in found.iter().flat_map(|(_, findings)| of(measure, findings)) {
        if !columns.contains(&finding.at) {
            columns.push(finding.at.clone());
        }
    }
    columns
}

fn lines(measure: &'static Measure, columns: &[String], found: &[(Peer, Vec<Finding>)]) -> Vec<Line> {
    let are_there_ours = found.iter().any(|(peer, _)| *peer == Peer::Overtake);
    let is_ours = |peer: Peer| peer == Peer::Overtake || (peer == Peer::Given && !are_there_ours);
    // Of brokers that are measured in turn, the last of ours before; else the first.
    let ours_of = |at: usize| {
        let before = found[..at].iter().rev().find(|(peer, _)| is_ours(*peer));
        before.or_else(|| found.iter().find(|(peer, _)| is_ours(*peer))).map(|(_, findings)| findings)
    };
    let line = |(at, (peer, findings)): (usize, &(Peer, Vec<Finding>))| {
        let (is_reference, ours) = (!is_ours(*peer), ours_of(at));
        let cell = |column: &String| {
            let value = value(measure, findings, column)?;
            let ours = ours.and_then(|ours| self::value(measure, ours, column)).filter(|_| is_reference);
            Some(Cell {
                value,
                times_better: ours.and_then(|ours| times_better(measure.better, ours, value)),
            })
        };
        let cells: Vec<_> = columns.iter().map(cell).collect();
        let is_there = cells.iter().any(Option::is_some);
        let (what, unit, who) = (measure.what, measure.unit, peer.name());
        is_there.then_some(Line { what, unit, who, is_reference, cells })
    };
    found.iter().enumerate().filter_map(line).collect()
}

fn value(measure: &'static Measure, findings: &[Finding], column: &str) -> Option<f64> {
    of(measure, findings).find(|finding| finding.at == column).map(|finding| finding.value)
}

/// How many times better the first value is than the second; `None` where that says nothing.
fn times_better(better: Better, ours: f64, theirs: f64) -> Option<f64> {
    let times = match better {
        Better::More => ours / theirs,
        Better::Less => theirs / ours,
        Better::Neither => return None,
    };
    times.is_finite().then_some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    static RATE: Measure = Measure::new("publish", "messages/s", Better::More);
    static WAIT: Measure = Measure::new("wait", "ms", Better::Less);

    #[test]
    fn measures_with_the_same_columns_share_a_table_and_others_are_compared_with_ours() {
        let found = [
            (Peer::Overtake, vec![RATE.is(300.0), WAIT.at("1", 2.0)]),
            (Peer::RabbitMq, vec![RATE.is(100.0), WAIT.at("1", 8.0), WAIT.at("2", 9.0)]),
        ];
        let seen: Vec<String> = tables("all", &found)
            .iter()
            .flat_map(|section| &section.grid.lines)
            .map(|line| {
                let cells: Vec<_> =
                    line.cells.iter().map(|cell| cell.map(|cell| (cell.value, cell.times_better))).collect();
                format!("{} {} {cells:?}", line.what, line.who)
            })
            .collect();
        assert_eq!(
            seen,
            [
                "publish overtake [Some((300.0, None))]",
                "publish rabbitmq [Some((100.0, Some(3.0)))]",
                "wait overtake [Some((2.0, None)), None]",
                "wait rabbitmq [Some((8.0, Some(4.0))), Some((9.0, None))]",
            ]
        );
    }

    #[test]
    fn a_broker_that_is_measured_in_turn_with_ours_is_compared_with_the_turn_before() {
        let rate = |peer, rate| (peer, vec![RATE.is(rate)]);
        let found = [
            rate(Peer::Overtake, 300.0),
            rate(Peer::Given, 100.0),
            rate(Peer::Overtake, 200.0),
            rate(Peer::Given, 100.0),
        ];
        let times: Vec<_> = tables("all", &found)[0]
            .grid
            .lines
            .iter()
            .map(|line| line.cells[0].and_then(|cell| cell.times_better))
            .collect();
        assert_eq!(times, [None, Some(3.0), None, Some(2.0)]);
    }
}
