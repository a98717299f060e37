//! The test suite: cargo-nextest where it is installed, else `cargo test`; doctests always by `cargo test`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::report::Done;
use crate::shell::{self, cargo, run_hearing, target_dir, works};
use crate::test::Run;
use crate::{cluster, needs};

/// Cases per property with `--long`; proptest's own default is 256.
const LONG_CASES: &str = "4096";

/// Every test of every crate, but the proof on a cluster, which is a step of its own.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    // A test that wants one says that it is skipped; in CI it fails.
    for why in [needs::prometheus()?, needs::peers()?, needs::valkey()?].into_iter().flatten() {
        println!("some tests are skipped: {why}");
    }
    let everything = ["--workspace", "--all-features"];
    let mut command = if works("cargo", &["nextest", "--version"]) {
        let profile = if std::env::var_os("CI").is_some() { "ci" } else { "default" };
        cargo(["nextest", "run", "--no-fail-fast", "--profile", profile].into_iter().chain(everything))
    } else {
        cargo(
            ["test", "--no-fail-fast", "--lib", "--bins", "--tests", "--examples"]
                .into_iter()
                .chain(everything)
                .chain(["--", "--skip", cluster::PROOF]),
        )
    };
    count(&mut command, run)?;
    ensure!(run.counts.passed > 0, "no test ran, or the runner's closing line has changed");
    Ok(Done::Ok)
}

/// Every example in the documentation.
pub(crate) fn doctests(run: &mut Run) -> Result<Done> {
    count(&mut cargo(["test", "--doc", "--no-fail-fast", "--workspace", "--all-features"]), run)?;
    Ok(Done::Ok)
}

/// Programs of the workspace as the suite has built them, so that after it there is nothing to do. A test belongs to what is named:
/// tests bring features with them, and without those cargo would build everything once more. The programs are named too, as cargo
/// says only of what is named which files it is made of. Returns where they are.
pub(crate) fn build(programs: &[&str]) -> Result<PathBuf> {
    let all = ["build", "--quiet", "--workspace", "--all-features"];
    shell::run(&mut cargo(all.into_iter().chain(programs.iter().copied())))?;
    Ok(std::path::absolute(target_dir().join("debug"))?)
}

/// Runs tests, and counts them.
pub(crate) fn count(command: &mut Command, run: &mut Run) -> Result<()> {
    if run.long {
        command.env("PROPTEST_CASES", LONG_CASES);
    }
    run_hearing(command, |line| run.counts.hear(line))
}
