//! The test suite: by cargo-nextest where it is installed, else by `cargo test`; doctests always by `cargo test`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::needs::Needs;
use crate::report::Done;
use crate::shell::{self, cargo, run_hearing, target_dir, works};
use crate::test::Run;
use crate::{cluster, needs};

/// Cases per property with `--long`; proptest's own default is 256.
const LONG_CASES: &str = "4096";

/// Tests at a time under `cargo test`, as under nextest: most of them wait for a broker, a server or a disk.
const AT_ONCE: &str = "6";

/// The feature `kafka` is built from C; servers are what single tests talk to.
pub(crate) const NEEDS: Needs = Needs {
    must: &[&needs::MAKE, &needs::CXX, &needs::OPENSSL],
    part: &[
        &needs::RABBITMQ,
        &needs::MOSQUITTO,
        &needs::REDIS,
        &needs::VALKEY,
        &needs::POSTGRESQL,
        &needs::MARIADB,
        &needs::PROMETHEUS,
        &needs::FILESYSTEMS,
        &needs::MOUNT_NAMESPACE,
    ],
};

/// Every test of every crate, but the proof on a cluster, which is a step of its own. A test that wants a server that is not
/// installed says that it is skipped; in CI it fails.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    let everything = ["--workspace", "--all-features"];
    let has_nextest = works("cargo", &["nextest", "--version"]);
    let profile = if shell::is_ci() { "ci" } else { "default" };
    let mut command = if has_nextest {
        cargo(["nextest", "run", "--no-fail-fast", "--profile", profile].into_iter().chain(everything))
    } else {
        cargo(
            ["test", "--no-fail-fast", "--lib", "--bins", "--tests", "--examples"]
                .into_iter()
                .chain(everything)
                .chain(["--", "--test-threads", AT_ONCE, "--skip", cluster::PROOF]),
        )
    };
    let times = target_dir().join("nextest").join(profile).join("junit.xml");
    // What an earlier run has left says nothing of this one.
    let _ = std::fs::remove_file(&times);
    let end = count(&mut command, run);
    run.slowest.read_junit(&times);
    end?;
    ensure!(run.counts.passed > 0, "no test ran, or the runner's closing line has changed");
    Ok(Done::Ok)
}

/// Every example in the documentation.
pub(crate) fn doctests(run: &mut Run) -> Result<Done> {
    count(&mut cargo(["test", "--doc", "--no-fail-fast", "--workspace", "--all-features"]), run)?;
    Ok(Done::Ok)
}

/// Builds programs of the workspace as the suite has built them, so that after it there is nothing to do; returns their directory. Name a
/// test or an example beside them: tests bring features with them, and without those cargo would build everything once more. Name
/// each program too: cargo writes down the files that a program is made of only for those that are named.
pub(crate) fn build(programs: &[&str]) -> Result<PathBuf> {
    let all = ["build", "--quiet", "--workspace", "--all-features"];
    shell::run(&mut cargo(all.into_iter().chain(programs.iter().copied())))?;
    Ok(std::path::absolute(target_dir().join("debug"))?)
}

/// Runs tests, and counts them.
pub(crate) fn count(command: &mut Command, run: &mut Run) -> Result<()> {
    if run.long {
        command.env("PROPTEST_CASES", LONG_CASES);
        // Tests whose crowds are larger then.
        command.env("OVERTAKE_LONG", "1");
    }
    run_hearing(command, |line| run.counts.hear(line))
}
