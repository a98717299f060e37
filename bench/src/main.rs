//! Benchmarks: how fast each layer is, beside what this machine can do at most, measured in the same run.
//!
//! `overtake-bench [NAME…] [--long] [--json] [--only=TEXT]`. A bench is a module with `run(Plan)` that answers rows or a
//! grid, and a line in [`BENCHES`].
//! None of them is a test: a number is to be read beside its reference, not compared with a threshold.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod codec;
mod deep;
mod engine;
mod journal;
mod lane;
mod reference;
mod report;

use std::process::ExitCode;

use crate::report::Report;

/// As in the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How much to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// Ten times as much, for numbers that settle.
    long: bool,
    /// Only the lines that contain this.
    only: &'static str,
}

impl Plan {
    /// This often, or ten times as often when there is time.
    pub(crate) fn times(self, count: usize) -> usize {
        if self.long { count * 10 } else { count }
    }

    /// Whether a line is wanted.
    pub(crate) fn wants(self, what: &str) -> bool {
        what.contains(self.only)
    }
}

/// Measures one layer.
type Bench = fn(Plan) -> Report;

const BENCHES: [(&str, &str, Bench); 5] = [
    ("lane", "the pure model, one core", |plan| Report::Rows(lane::run(plan))),
    ("codec", "AMQP, messages of 128 bytes, one core", |plan| Report::Rows(codec::run(plan))),
    ("journal", "records of 256 bytes", |plan| Report::Rows(journal::run(plan))),
    ("engine", "in this process, 256-byte bodies, ten levels, every answer after its fdatasync", |plan| {
        Report::Rows(engine::run(plan))
    }),
    ("deep", "backlogs of many messages, ten levels, each store in a process of its own", |plan| {
        Report::Grid(deep::run(plan))
    }),
];

/// These take minutes and gigabytes: only by name.
const ONLY_BY_NAME: [&str; 1] = ["deep"];

fn main() -> ExitCode {
    if let [_, word, order] = &std::env::args().collect::<Vec<_>>()[..]
        && word == deep::parent::CHILD
    {
        deep::child::run(order);
    }
    let (flags, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
    let only = flags.iter().find_map(|flag| flag.strip_prefix("--only="));
    let known = |flag: &str| ["--long", "--json"].contains(&flag) || flag.starts_with("--only=");
    let unknown_flag = flags.iter().find(|flag| !known(flag));
    let unknown_name = names.iter().find(|name| BENCHES.iter().all(|(known, ..)| known != name));
    if let Some(unknown) = unknown_flag.or(unknown_name) {
        eprintln!(
            "`{unknown}` is no bench and no flag: overtake-bench [NAME…] [--long] [--json] [--only=TEXT]"
        );
        for (name, what, _) in BENCHES {
            eprintln!("  {name}: {what}");
        }
        return ExitCode::from(2);
    }
    let plan = Plan {
        long: flags.iter().any(|flag| flag == "--long"),
        only: String::leak(only.unwrap_or_default().to_owned()),
    };
    let json = flags.iter().any(|flag| flag == "--json");
    let wanted = |name: &str| match &names[..] {
        [] => !ONLY_BY_NAME.contains(&name),
        names => names.iter().any(|chosen| chosen == name),
    };
    for (name, what, bench) in BENCHES.into_iter().filter(|(name, ..)| wanted(name)) {
        let report = bench(plan);
        if json {
            println!("{}", report.json(name));
        } else {
            println!("{}", report.table(name, what));
        }
    }
    ExitCode::SUCCESS
}
