//! Benchmarks: how fast each layer is, beside what this machine can do at most, measured in the same run.
//!
//! `overtake-bench [NAME…] [OPTION…]`, see [`options::USAGE`]. A bench is a module with `run(Plan)` that answers rows or
//! grids, and a line in [`BENCHES`].
//! None of them is a test: a number is to be read beside its reference, not compared with a threshold. But one that finds
//! messages lost fails.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod amqp;
mod calls;
mod chart;
mod client;
mod codec;
mod deep;
mod ends;
mod engine;
mod executions;
mod forward;
mod journal;
mod lane;
mod looks;
mod many;
mod merge;
mod options;
mod outbox;
mod overwrite;
mod places;
mod proc;
mod quota;
mod reference;
mod report;
mod routes;
mod scrape;
mod servers;
mod shards;
mod spread;
mod watched;
mod waves;

use std::process::ExitCode;

use crate::options::{Json, Options};
use crate::report::Report;

/// As in the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How much to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// Ten times as much, for numbers that settle.
    long: bool,
    /// A tenth, to see that it works.
    quick: bool,
    /// Only the lines that contain this.
    only: &'static str,
    /// Only these brokers.
    peers: &'static str,
    /// A broker that somebody else started.
    url: &'static str,
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

const BENCHES: [(&str, &str, Bench); 21] = [
    ("lane", "the pure model, one core", |plan| Report::Rows(lane::run(plan))),
    ("merge", "places merged by their heads, ten levels, one core", |plan| Report::Rows(merge::run(plan))),
    ("routes", "each message against the whole table, one core", |plan| Report::Rows(routes::run(plan))),
    ("codec", "AMQP, messages of 128 bytes, one core", |plan| Report::Rows(codec::run(plan))),
    ("journal", "records of 256 bytes", |plan| Report::Rows(journal::run(plan))),
    ("engine", "in this process, 256-byte bodies, ten levels, every answer after its fdatasync", |plan| {
        Report::Rows(engine::run(plan))
    }),
    (
        "executions",
        "in this process, 64-byte bodies, five levels, every answer after its fdatasync",
        |plan| Report::Rows(executions::run(plan)),
    ),
    ("ends", "connections with many consumers end at once, in this process: how long others wait", |plan| {
        Report::Rows(ends::run(plan))
    }),
    (
        "looks",
        "at all of a deep queue of 64 lanes, in this process, 100-byte and 1 KiB bodies: how long others wait",
        |plan| Report::Rows(looks::run(plan)),
    ),
    (
        "waves",
        "what happens to many messages at once, in this process, 100-byte bodies, ten levels: how long others wait",
        |plan| Report::Rows(waves::run(plan)),
    ),
    (
        "many",
        "10,000 queues imported, changed and listed, and 3 M messages at a start, in this process: how long others wait",
        |plan| Report::Rows(many::run(plan)),
    ),
    ("scrape", "in this process, three lanes a queue, without HTTP", |plan| Report::Rows(scrape::run(plan))),
    ("watched", "in this process, three lanes a queue, time on all cores, without HTTP", |plan| {
        Report::Rows(watched::run(plan))
    }),
    ("forward", "from publish to arrival over a slow link, by priority and as they came", |plan| {
        Report::Grid(forward::run(plan))
    }),
    ("deep", "backlogs of many messages, ten levels, each store in a process of its own", |plan| {
        Report::Grid(deep::run(plan))
    }),
    ("client", "client libraries, against a broker in a process of its own", |plan| {
        Report::Rows(client::run(plan))
    }),
    (
        "servers",
        "primaries of Redis, appendfsync always, batches of 100, 256-byte bodies: four callers on one, and twelve on one and on three with a quarter of a core each where control groups can be made",
        |plan| Report::Rows(servers::run(plan)),
    ),
    (
        "calls",
        "operations on a deep queue on one primary of Redis, appendfsync everysec, 256-byte bodies, ten levels: how long a call is, and a publish to another queue meanwhile",
        |plan| Report::Grid(calls::run(plan)),
    ),
    (
        "places",
        "one queue in 1,000 places on one Redis, appendfsync everysec, published through one broker and leased through another, ten levels",
        |plan| Report::Grid(places::run(plan)),
    ),
    ("outbox", "an application's outbox in PostgreSQL, relayed while a migration floods it", |plan| {
        Report::Grid(outbox::run(plan))
    }),
    ("amqp", "brokers from outside, each a process of its own", |plan| Report::Sections(amqp::run(plan))),
];

/// These take minutes and gigabytes: only by name.
const ONLY_BY_NAME: [&str; 8] = ["forward", "deep", "client", "servers", "calls", "places", "outbox", "amqp"];

fn main() -> ExitCode {
    if let [_, word, order] = &std::env::args().collect::<Vec<_>>()[..]
        && word == deep::parent::CHILD
    {
        deep::child::run(order);
    }
    if let [_, word, words @ ..] = &std::env::args_os().collect::<Vec<_>>()[..]
        && word == amqp::peer::process::CHILD
    {
        amqp::peer::process::become_broker(words);
    }
    let is_bench = |name: &str| BENCHES.iter().any(|(known, ..)| *known == name);
    match Options::parse(std::env::args().skip(1), is_bench) {
        Ok(options) => measure(&options),
        Err(wrong) => {
            eprintln!("{wrong}\n\n{}", options::USAGE);
            for (name, what, _) in BENCHES {
                eprintln!("  {name}: {what}");
            }
            ExitCode::from(2)
        }
    }
}

fn measure(options: &Options) -> ExitCode {
    let wanted = |name: &str| match &options.names[..] {
        [] => !ONLY_BY_NAME.contains(&name),
        names => names.iter().any(|chosen| chosen == name),
    };
    let (mut lines, mut failed) = (String::new(), false);
    for (name, what, bench) in BENCHES.into_iter().filter(|(name, ..)| wanted(name)) {
        let report = bench(options.plan);
        failed |= report.failed();
        let json = report.json(name);
        match options.json {
            Json::Stdout => println!("{json}"),
            _ => println!("{}", report.table(name, what)),
        }
        lines += &format!("{json}\n");
    }
    if let Json::File(file) = &options.json
        && let Err(error) = std::fs::write(file, lines)
    {
        eprintln!("{file}: {error}");
        failed = true;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
