//! `cargo xtask test`: everything that must hold before a change lands, in the order that fails soonest.
//!
//! To add a step: a row in [`STEPS`] and a function. What all steps of a run need is checked, installed and downloaded before the
//! first of them builds anything.

use std::io::Write as _;
use std::process::{Command, ExitCode};
use std::sync::mpsc::sync_channel;

use anyhow::{Context, Result, bail, ensure};

use crate::counts::Counts;
use crate::needs::{self, Needs};
use crate::report::{Done, Report, Row};
use crate::shell::{cargo, holding_back, is_ci, read, run};
use crate::slowest::Slowest;
use crate::{clients, cluster, deploy, fresh, fuzz, package, seed, sim, suite, tidy};

/// The options of a run, and the results of a step's tests.
#[derive(Clone)]
pub(crate) struct Run {
    /// Look longer: more seeds, more cases, more fuzzing, and the steps that are left out otherwise.
    pub(crate) long: bool,
    /// Where seeds start; the same commit looks at the same seeds everywhere.
    pub(crate) base_seed: u64,
    /// Its tests.
    pub(crate) counts: Counts,
    /// The slowest of its tests.
    pub(crate) slowest: Slowest,
}

struct Step {
    name: &'static str,
    what: &'static str,
    when: When,
    schedule: Schedule,
    needs: Needs,
    /// Downloads what the step gets from package registries, all but crates of the workspace.
    download: fn() -> Result<()>,
    body: fn(&mut Run) -> Result<Done>,
    /// What it writes to the target directory.
    writes: &'static [Tree],
}

/// Whether a step runs when no step is named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// With `--long`.
    Long,
}

/// What a step runs beside. Tests wait most of the time: what only computes fills the gaps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Schedule {
    /// One after the other.
    InTurn,
    /// Beside those, with what they leave of the processors, in target directories of its own.
    Beside,
    /// After all others, with the machine for itself.
    Alone,
}

/// A part of the target directory, and about how many GiB it takes. Steps share them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tree {
    /// What tests are built as.
    Debug = 6,
    Checked = 1,
    Dist = 3,
    Fuzz = 2,
    /// What comes from package registries.
    Downloads = 4,
    /// A root directory in which all of these are built.
    Root = 15,
}

/// What clippy, the suite and the documentation build, all with the feature `kafka`.
const EVERYTHING: Needs = Needs { must: &[&needs::MAKE, &needs::CXX, &needs::OPENSSL], ..Needs::NONE };

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "the code is formatted",
        needs: Needs { must: &[&needs::RUSTFMT], ..Needs::NONE },
        body: fmt,
        writes: &[],
        ..STEP
    },
    Step { name: "tidy", what: "the guards", body: tidy::step, writes: &[], ..STEP },
    Step {
        name: "clippy",
        what: "every target of the workspace, no warnings",
        needs: Needs { must: &[&needs::CLIPPY, &needs::MAKE, &needs::CXX, &needs::OPENSSL], ..Needs::NONE },
        body: clippy,
        ..STEP
    },
    Step {
        name: "suite",
        what: "the tests of all other crates",
        needs: suite::NEEDS,
        body: suite::step,
        ..STEP
    },
    Step {
        name: "doctests",
        what: "the examples in the documentation",
        needs: EVERYTHING,
        body: suite::doctests,
        ..STEP
    },
    Step {
        name: "cluster",
        what: "brokers on a cluster under faults, and what is lost without",
        schedule: Schedule::Alone,
        needs: cluster::NEEDS,
        body: cluster::step,
        ..STEP
    },
    Step {
        name: "models",
        what: "the tests of the model, the store and the simulator",
        schedule: Schedule::Beside,
        body: suite::models,
        writes: &[Tree::Checked],
        ..STEP
    },
    Step {
        name: "sim",
        what: "the simulator, from a seed that is the commit's",
        schedule: Schedule::Beside,
        body: sim::step,
        writes: &[Tree::Checked],
        ..STEP
    },
    Step {
        name: "clients",
        what: "other people's AMQP clients against a real broker",
        needs: clients::NEEDS,
        download: clients::download,
        body: clients::step,
        writes: &[Tree::Debug, Tree::Downloads],
        ..STEP
    },
    Step {
        name: "deploy",
        what: "image, manifests, chart and unit, by the programs that read them",
        needs: deploy::NEEDS,
        download: deploy::download,
        body: deploy::step,
        writes: &[Tree::Debug, Tree::Downloads],
        ..STEP
    },
    Step { name: "doc", what: "the documentation builds, no warnings", needs: EVERYTHING, body: doc, ..STEP },
    Step {
        name: "fuzz",
        what: "each fuzz target for a moment",
        when: When::Long,
        schedule: Schedule::Beside,
        needs: fuzz::NEEDS,
        download: fuzz::download,
        body: fuzz::step,
        writes: &[Tree::Fuzz],
    },
    Step {
        name: "package",
        what: "the Debian package, by lintian",
        when: When::Long,
        needs: package::NEEDS,
        download: deploy::download,
        body: package::step,
        writes: &[Tree::Dist, Tree::Downloads],
        ..STEP
    },
    Step {
        name: "fresh",
        what: "both commands of the README in a new Debian 12",
        when: When::Long,
        schedule: Schedule::Alone,
        needs: fresh::NEEDS,
        body: fresh::step,
        writes: &[Tree::Root],
        ..STEP
    },
];

/// The default values of a step.
const STEP: Step = Step {
    name: "",
    what: "",
    when: When::Always,
    schedule: Schedule::InTurn,
    needs: Needs::NONE,
    download: || Ok(()),
    body: |_| Ok(Done::Ok),
    writes: &[Tree::Debug],
};

/// `cargo xtask test [--long] [--skip-missing] [--list] [STEP…]`
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let (mut long, mut skip_missing, mut named) = (false, false, Vec::new());
    for arg in args {
        match arg.as_str() {
            "--long" => long = true,
            "--skip-missing" => skip_missing = true,
            "--list" => return Ok(list()),
            name if STEPS.iter().any(|step| step.name == name) => named.push(name),
            other => bail!(
                "there is no step or option `{other}`; the steps: {}; the options: --long --skip-missing --list",
                names(STEPS.iter())
            ),
        }
    }
    let is_wanted = |step: &&Step| match step.when {
        _ if !named.is_empty() => named.contains(&step.name),
        When::Always => true,
        When::Long => long,
    };
    let steps: Vec<_> = STEPS.iter().filter(is_wanted).collect();
    let report = Report::new(is_ci());
    report.begin("prepare", "what the steps need, before anything is built");
    let prepared = Row::trying("prepare", || prepare(&steps, skip_missing))?;
    let run =
        Run { long, base_seed: seed::of_commit(), counts: Counts::default(), slowest: Slowest::default() };
    Ok(perform(&steps, &run, report, prepared))
}

/// Everything the steps need, before anything is built: room, programs and permissions, downloads.
fn prepare(steps: &[&Step], skip_missing: bool) -> Result<()> {
    let mut trees: Vec<Tree> = Vec::new();
    for tree in steps.iter().flat_map(|step| step.writes) {
        if !trees.contains(tree) {
            trees.push(*tree);
        }
    }
    needs::room(trees.into_iter().map(|tree| tree as u64).sum())?;
    let needs: Vec<_> = steps.iter().map(|step| (step.name, step.needs)).collect();
    match needs::gather(&needs) {
        Some(missing) if skip_missing => println!("{missing}"),
        Some(missing) => {
            let ready = needs::ready(&needs);
            let or = if ready.is_empty() {
                ready
            } else {
                format!("only what needs none of it: cargo xtask test {ready}\n")
            };
            bail!("{missing}\n{or}all but what needs it: add --skip-missing");
        }
        None => {}
    }
    run(&mut cargo(["fetch", "--quiet", "--locked"]))
        .context("cargo could not download the crates that Cargo.lock names; is there a network?")?;
    // Two steps may need the same.
    let mut downloads: Vec<&Step> = Vec::new();
    for step in steps.iter().filter(|step| step.needs.lacking().is_none()) {
        if !downloads.iter().any(|one| std::ptr::fn_addr_eq(one.download, step.download)) {
            downloads.push(step);
        }
    }
    // Side by side, as each waits for another registry.
    std::thread::scope(|scope| {
        let begin = |step: &Step| {
            let (name, download) = (step.name, step.download);
            let what =
                move || format!("could not download what the step `{name}` needs; is there a network?");
            scope.spawn(move || holding_back(|| download().with_context(what)))
        };
        let begun: Vec<_> = downloads.into_iter().map(begin).collect();
        let failed = begun.into_iter().filter_map(|download| {
            let (done, printed) = download.join().expect("a download does not panic");
            print!("{printed}");
            done.err().map(|error| format!("{error:#}"))
        });
        let failed: Vec<_> = failed.collect();
        ensure!(failed.is_empty(), "{}", failed.join("\n"));
        Ok(())
    })
}

/// Runs the steps, each where it belongs. `run` is what each begins with.
fn perform(steps: &[&Step], run: &Run, mut report: Report, prepared: Row) -> ExitCode {
    let at = |schedule| steps.iter().copied().filter(move |step: &&Step| step.schedule == schedule);
    report.end(prepared);
    let mut total = run.clone();
    std::thread::scope(|scope| {
        let (done, arrived) = sync_channel(steps.len());
        scope.spawn(move || {
            if at(Schedule::InTurn).next().is_some() {
                give_way();
            }
            for step in at(Schedule::Beside) {
                let ended = holding_back(|| Ended::of(step, run));
                done.send((step, ended)).expect("the report is waited for");
            }
        });
        for step in at(Schedule::InTurn) {
            report.begin(step.name, step.what);
            Ended::of(step, run).enter(&mut report, &mut total);
            for (step, (ended, printed)) in arrived.try_iter() {
                report.begin(step.name, step.what);
                print!("{printed}");
                ended.enter(&mut report, &mut total);
            }
        }
        for (step, (ended, printed)) in arrived {
            report.begin(step.name, step.what);
            print!("{printed}");
            ended.enter(&mut report, &mut total);
        }
    });
    for step in at(Schedule::Alone) {
        report.begin(step.name, step.what);
        Ended::of(step, run).enter(&mut report, &mut total);
    }
    print!("{}{}", total.slowest, report.close(total.counts));
    if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A step that has ended.
struct Ended {
    row: Row,
    run: Run,
}

impl Ended {
    /// Runs a step, unless this machine lacks what it needs.
    fn of(step: &Step, run: &Run) -> Self {
        let mut run = run.clone();
        let row = Row::of(step.name, || match step.needs.lacking() {
            Some(lacking) => Ok(Done::Skipped(format!("this machine has no {lacking}"))),
            None => (step.body)(&mut run),
        });
        Self { row: row.without(needs::missing_of(step.needs.part)), run }
    }

    fn enter(self, report: &mut Report, total: &mut Run) {
        report.end(self.row);
        total.counts.add(self.run.counts);
        total.slowest.add(self.run.slowest);
    }
}

/// Lets every program that this thread starts from now on give way to others.
fn give_way() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    if let Some(number) = thread.file_name() {
        // Where it does not work, the steps share the processors evenly.
        let _ = read(Command::new("renice").args(["-n", "10", "-p"]).arg(number));
    }
}

fn names<'a>(steps: impl Iterator<Item = &'a Step>) -> String {
    steps.map(|step| step.name).collect::<Vec<_>>().join(" ")
}

fn list() -> ExitCode {
    let mut out = std::io::stdout().lock();
    for step in STEPS {
        let when = if step.when == When::Long { " (with --long, or by name)" } else { "" };
        // Whoever reads no further has seen what it wants.
        let _ = writeln!(out, "{:<10} {}{when}", step.name, step.what);
    }
    ExitCode::SUCCESS
}

fn fmt(_: &mut Run) -> Result<Done> {
    run(&mut cargo(["fmt", "--all", "--check"]))?;
    run(&mut cargo(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
    Ok(Done::Ok)
}

fn clippy(_: &mut Run) -> Result<Done> {
    run(&mut cargo(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))?;
    // Its features are other people's to choose.
    let package = ["clippy", "--package", "overtake-client", "--no-default-features"];
    run(&mut cargo(package.into_iter().chain(["--", "-D", "warnings"])))?;
    Ok(Done::Ok)
}

fn doc(_: &mut Run) -> Result<Done> {
    // With clippy's features, so that what it has checked is not checked again.
    let mut command = cargo(["doc", "--no-deps", "--workspace", "--all-features"]);
    run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Done::Ok)
}
