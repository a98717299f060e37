//! `cargo xtask sim`: the simulator, optimised and with all checks; the same as a step of the test run.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::report::Done;
use crate::shell::{run_hearing, unknown_option};
use crate::test::Run;
use crate::{seed, suite};

const SEEDS: &str = "2000";
const SEEDS_LONG: &str = "50000";

/// The simulator's options. It reads them itself, but building it takes a minute.
const OPTIONS: [&str; 6] = ["--seeds", "--start", "--steps", "--seed", "--twice", "--trace"];

/// `cargo xtask sim …`: the arguments are the simulator's own.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    if let Some(unknown) = unknown_option(args, &OPTIONS) {
        bail!("sim has no option `{unknown}`; the options: {}", OPTIONS.join(" "));
    }
    simulate(args.iter().map(String::as_str))?;
    Ok(ExitCode::SUCCESS)
}

/// As many seeds as the run has time for.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    let start = run.base_seed.to_string();
    simulate(["--seeds", if run.long { SEEDS_LONG } else { SEEDS }, "--start", &start])?;
    Ok(Done::Ok)
}

fn simulate<'a>(args: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let mut last = None;
    let mut command = Command::new(suite::build_simulator()?);
    let end = run_hearing(command.args(args), |line| last = seed::named_in(line).or(last));
    end.with_context(|| match last {
        Some(seed) => format!("seed {seed} failed; replay it: cargo xtask sim --seed {seed}"),
        None => "the simulator failed without naming a seed".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::OPTIONS;

    #[test]
    fn the_options_are_those_that_the_simulator_reads() {
        let source = include_str!("../../crates/sim/src/main.rs");
        let read: Vec<_> = source.lines().filter_map(|line| line.trim().split_once("\" => ")).collect();
        let read: Vec<_> = read.into_iter().filter_map(|(name, _)| name.strip_prefix('"')).collect();
        assert_eq!(read, OPTIONS);
    }
}
