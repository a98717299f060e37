//! A deep backlog: what a message costs, and what the process takes, as the queue grows from 10 k messages to 100 M.
//!
//! Ten levels, mixed. Each case is filled by one process, which is killed with signal 9, and opened, used and drained by
//! another one: memory is that of one run, and what is opened is what a crash leaves. What comes out is compared with
//! what went in, message by message. Beside it, in the same run, stores that others made do the same work through the
//! least a queue needs ([`queue::MinimalQueue`]).

mod case;
pub(crate) mod child;
#[cfg(feature = "references")]
mod fjall;
mod forecast;
mod measure;
mod overtake;
pub(crate) mod parent;
mod queue;
#[cfg(feature = "references")]
mod sqlite;
mod traffic;
mod work;

use crate::report::{Cell, Grid, Line};
use crate::{Plan, proc};
use case::{Case, Store};
use forecast::Forecast;
use measure::{Findings, Measure};

const M: usize = 1_000_000;
/// Depths of every series, least first: what the deeper ones take is foretold from these.
const FIRST_DEPTHS: [usize; 2] = [10_000, M];

/// One store and one length of body, over its depths.
struct Series {
    store: Store,
    body_bytes: usize,
    depths: Vec<usize>,
    found: Vec<(Case, Findings)>,
}

pub(crate) fn run(plan: Plan) -> Grid {
    let mut grid = Grid::default();
    if proc::is_in_memory(&std::env::temp_dir()) {
        grid.notes.push(
            "nothing was measured: the temporary directory is in memory; set TMPDIR to one on a disk".into(),
        );
        return grid;
    }
    if cfg!(not(feature = "references")) {
        grid.notes.push("no references: they are built with `--features references`".into());
    }
    let mut all = series(plan);
    for series in &mut all {
        series.measure(plan, &mut grid.notes);
    }
    fill_in(&mut grid, &all);
    grid
}

/// Our depths and those of the references: what takes long is left to `--long`.
fn series(plan: Plan) -> Vec<Series> {
    let deeper = |store: Store, body_bytes| -> &[usize] {
        match (store.is_reference(), body_bytes) {
            (false, 100) if plan.long => &[10 * M, 100 * M],
            (false, 100) => &[10 * M],
            _ if plan.long => &[10 * M],
            _ => &[],
        }
    };
    let bodies: &[usize] = if plan.long { &[100, 1_024] } else { &[100] };
    let one = |body_bytes: usize, store: Store| {
        let depths = [&FIRST_DEPTHS, deeper(store, body_bytes)].concat();
        Series { store, body_bytes, depths, found: Vec::new() }
    };
    bodies.iter().flat_map(|body| Store::ALL.iter().map(|store| one(*body, *store))).collect()
}

impl Series {
    fn measure(&mut self, plan: Plan, notes: &mut Vec<String>) {
        let mut forecast = Forecast::default();
        for depth in self.depths.clone() {
            let Self { store, body_bytes, .. } = *self;
            let case = Case { store, depth, body_bytes, steady: plan.times(200_000) };
            let is_wanted = plan.wants(&case.label());
            // Of the first depths the forecast needs its figures, wanted or not, if a deeper one is.
            let is_needed = !forecast.is_ready() && self.wants_deeper(plan, case);
            if !is_wanted && !is_needed {
                continue;
            }
            if let Some(why) = forecast.refuses(depth, proc::memory_available()) {
                notes.push(format!("{} was not run: {why}", case.label()));
                continue;
            }
            eprintln!("deep: {}", case.label());
            let findings = parent::measure(case);
            forecast.saw(depth, peak(&findings));
            if is_wanted {
                self.found.push((case, findings));
            }
        }
    }

    fn wants_deeper(&self, plan: Plan, case: Case) -> bool {
        let mut deeper =
            self.depths.iter().filter(|depth| **depth > case.depth && !FIRST_DEPTHS.contains(depth));
        deeper.any(|depth| plan.wants(&Case { depth: *depth, ..case }.label()))
    }

    fn value(&self, label: &str, measure: Measure) -> Option<f64> {
        let (_, findings) = self.found.iter().find(|(case, _)| case.depth_label() == label)?;
        match measure {
            Measure::SteadyRatio => self.beside_the_least(findings, Measure::Steady),
            Measure::SteadyBusyRatio => self.beside_the_least(findings, Measure::SteadyBusy),
            measure => value(findings, measure),
        }
    }

    fn beside_the_least(&self, findings: &Findings, measure: Measure) -> Option<f64> {
        let (least, first) = self.found.first()?;
        let is_measured = least.depth == FIRST_DEPTHS[0];
        value(findings, measure)
            .zip(value(first, measure))
            .filter(|_| is_measured)
            .map(|(here, there)| here / there)
    }
}

fn value(findings: &Findings, measure: Measure) -> Option<f64> {
    findings.iter().find(|(found, _)| *found == measure).map(|(_, value)| *value)
}

/// The most memory either life took, bytes.
fn peak(findings: &Findings) -> u64 {
    let mib = [Measure::Peak, Measure::OpenPeak].into_iter().filter_map(|measure| value(findings, measure));
    (mib.fold(0.0, f64::max) * (1 << 20) as f64) as u64
}

/// A column for each depth that was measured, a line for each measure of each store.
fn fill_in(grid: &mut Grid, all: &[Series]) {
    for (case, _) in all.iter().flat_map(|series| &series.found) {
        if !grid.columns.contains(&case.depth_label()) {
            grid.columns.push(case.depth_label());
        }
    }
    for measure in Measure::ALL {
        let (what, unit, _) = measure.describe();
        for store in Store::ALL {
            let of_store = |store: Store, label: &str| {
                all.iter()
                    .filter(|series| series.store == store)
                    .find_map(|series| series.value(label, measure))
            };
            let cell = |label: &String| {
                let value = of_store(*store, label)?;
                let ours = of_store(Store::Overtake, label).filter(|_| store.is_reference());
                Some(Cell { value, times_better: ours.and_then(|ours| measure.times_better(ours, value)) })
            };
            let cells: Vec<_> = grid.columns.iter().map(cell).collect();
            if cells.iter().any(Option::is_some) {
                grid.lines.push(Line {
                    what,
                    unit,
                    who: store.name(),
                    is_reference: store.is_reference(),
                    cells,
                });
            }
        }
    }
}
