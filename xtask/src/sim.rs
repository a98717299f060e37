//! `cargo xtask sim`: the simulator, in release; the same as a step of the test run.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::report::Done;
use crate::seed;
use crate::shell::{cargo, run_hearing};
use crate::test::Run;

const SEEDS: &str = "2000";
const SEEDS_LONG: &str = "50000";

/// `cargo xtask sim …`: the arguments are the simulator's own.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    if let Some(why) = absent() {
        bail!("{why}");
    }
    simulate(args.iter().map(String::as_str))?;
    Ok(ExitCode::SUCCESS)
}

/// As many seeds as the run has time for.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    if let Some(why) = absent() {
        return Ok(Done::Skipped(why));
    }
    let start = run.base_seed.to_string();
    simulate(["--seeds", if run.long { SEEDS_LONG } else { SEEDS }, "--start", &start])?;
    Ok(Done::Ok)
}

fn simulate<'a>(args: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let mut last = None;
    let mut command = cargo(["run", "--release", "--package", "overtake-sim", "--bin", "overtake-sim", "--"]);
    let end = run_hearing(command.args(args), |line| last = seed::named_in(line).or(last));
    end.with_context(|| match last {
        Some(seed) => format!("seed {seed} failed; replay it: cargo xtask sim --seed {seed}"),
        None => "the simulator failed without naming a seed".to_owned(),
    })
}

fn absent() -> Option<String> {
    let binary = ["crates/sim/src/main.rs", "crates/sim/src/bin/overtake-sim.rs"];
    let missing = !binary.iter().any(|path| Path::new(path).exists());
    missing
        .then(|| format!("the simulator has no binary yet: neither {} nor {} exists", binary[0], binary[1]))
}
