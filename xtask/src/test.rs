//! `cargo xtask test`: everything that must hold before a change lands, in the order that fails soonest.
//!
//! To add a step: a row in [`STEPS`] and a function. A step that cannot run here says why and is skipped; with
//! CI=true that is a failure.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::counts::Counts;
use crate::report::{Done, Report};
use crate::shell::{cargo, run};
use crate::{clients, cluster, deploy, fuzz, needs, seed, sim, suite, tidy};

/// What the steps of one run share.
pub(crate) struct Run {
    /// Look longer: more seeds, more cases, more fuzzing.
    pub(crate) long: bool,
    /// Where seeds start; the same commit looks at the same seeds everywhere.
    pub(crate) base_seed: u64,
    /// Tests so far.
    pub(crate) counts: Counts,
}

struct Step {
    name: &'static str,
    what: &'static str,
    body: fn(&mut Run) -> Result<Done>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", what: "the code is formatted", body: fmt },
    Step { name: "clippy", what: "every target of the workspace, no warnings", body: clippy },
    Step { name: "suite", what: "the whole test suite", body: suite::step },
    Step { name: "doctests", what: "the examples in the documentation", body: suite::doctests },
    Step {
        name: "cluster",
        what: "brokers on a cluster under faults, and what is lost without",
        body: cluster::step,
    },
    Step { name: "sim", what: "the simulator, from a seed that is the commit's", body: sim::step },
    Step { name: "fuzz", what: "each fuzz target for a moment", body: fuzz::step },
    Step { name: "clients", what: "other people's AMQP clients against a real broker", body: clients::step },
    Step {
        name: "deploy",
        what: "image, manifests, chart, unit and package, by those who read them",
        body: deploy::step,
    },
    Step { name: "doc", what: "the documentation builds, no warnings", body: doc },
    Step { name: "tidy", what: "the guards", body: tidy::step },
];

/// `cargo xtask test [--long] [--list] [STEP…]`
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let mut run = Run { long: false, base_seed: seed::of_commit(), counts: Counts::default() };
    let mut named = Vec::new();
    for arg in args {
        match arg.as_str() {
            "--long" => run.long = true,
            "--list" => return Ok(list()),
            name if STEPS.iter().any(|step| step.name == name) => named.push(name),
            other => bail!("there is no step or option `{other}`; `cargo xtask test --list` shows the steps"),
        }
    }
    let wanted = |step: &&Step| named.is_empty() || named.contains(&step.name);
    Ok(perform(STEPS.iter().filter(wanted), &mut run))
}

fn perform<'a>(steps: impl Iterator<Item = &'a Step>, run: &mut Run) -> ExitCode {
    let mut report = Report::new(std::env::var_os("CI").is_some_and(|ci| ci == "true"));
    for step in steps {
        report.step(step.name, step.what, || (step.body)(run));
    }
    print!("{}", report.close(run.counts));
    if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn list() -> ExitCode {
    for step in STEPS {
        println!("{:<10} {}", step.name, step.what);
    }
    ExitCode::SUCCESS
}

fn fmt(_: &mut Run) -> Result<Done> {
    needs::component("rustfmt", "fmt")?;
    run(&mut cargo(["fmt", "--all", "--check"]))?;
    run(&mut cargo(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))?;
    Ok(Done::Ok)
}

fn clippy(_: &mut Run) -> Result<Done> {
    needs::component("clippy", "clippy")?;
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
