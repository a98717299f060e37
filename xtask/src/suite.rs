//! The tests of the workspace: by cargo-nextest where it is installed, else by `cargo test`; doctests always by `cargo test`.
//!
//! Two steps share them. The tests of the model, the store and the simulator compute, and take a tenth of the time when they are optimised:
//! `models` builds them with the profile `checked`. All other tests mostly wait, and building is what costs: `suite` builds them with `dev`.

use std::net::{Ipv4Addr, TcpListener};
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

/// The packages of the step `models`.
const MODELS: [&str; 3] = ["overtake-lane", "overtake-sim", "overtake-store"];

/// The profile of the step `models`: optimised, with debug assertions and overflow checks.
const CHECKED: &str = "checked";

/// Every test of every crate, except those of `models` and the proof on a cluster, which is a step of its own. A test that needs a server that is
/// not installed says that it is skipped; in CI it fails.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    let profile = if shell::is_ci() { "ci" } else { "default" };
    let _taken = take_default_ports();
    test(run, profile, packages().into_iter())
}

/// Listens where a broker listens unless it is told otherwise. Tests run side by side, and beside whatever runs on this machine: one that
/// starts a broker on such a port fails always, not now and then. A port that somebody else has is as good.
fn take_default_ports() -> Vec<TcpListener> {
    [5672, 15672].into_iter().filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()).collect()
}

/// The tests of the model, the store and the simulator.
pub(crate) fn models(run: &mut Run) -> Result<Done> {
    test(run, "models", models_packages().into_iter().chain(["--profile", CHECKED]))
}

/// Runs all tests of the packages that `cargo test` is told by `args`, with a profile of nextest.
fn test<'a>(run: &mut Run, profile: &str, args: impl Iterator<Item = &'a str> + Clone) -> Result<Done> {
    let mut command = if works("cargo", &["nextest", "--version"]) {
        // To nextest, `--profile` is its own.
        let args = args.map(|arg| if arg == "--profile" { "--cargo-profile" } else { arg });
        cargo(["nextest", "run", "--no-fail-fast", "--profile", profile].into_iter().chain(args))
    } else {
        // Tests start some of them by name. With `--examples`, `cargo test` builds them as tests instead.
        shell::run(&mut cargo(["build", "--examples"].into_iter().chain(args.clone())))?;
        cargo(["test", "--no-fail-fast", "--lib", "--bins", "--tests"].into_iter().chain(args).chain([
            "--",
            "--test-threads",
            AT_ONCE,
            "--skip",
            cluster::PROOF,
        ]))
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
    count(&mut cargo(["test", "--doc", "--no-fail-fast"].into_iter().chain(packages())), run)?;
    Ok(Done::Ok)
}

/// The packages of the suite, as arguments of cargo. Whatever is to find built what the suite has built must name the same: the packages decide
/// which features their dependencies are built with.
pub(crate) fn packages() -> Vec<&'static str> {
    ["--workspace", "--all-features"]
        .into_iter()
        .chain(MODELS.iter().flat_map(|name| ["--exclude", name]))
        .collect()
}

/// The packages of the step `models`, as arguments of cargo.
fn models_packages() -> Vec<&'static str> {
    ["--all-features"].into_iter().chain(MODELS.iter().flat_map(|name| ["--package", name])).collect()
}

/// Builds programs of the workspace as the suite has built them, so that after it there is nothing to do; returns their directory. Name a
/// test or an example beside them: tests bring features with them, and without those cargo would build everything once more. Name
/// each program too: cargo writes down the files that a program is made of only for those that are named.
pub(crate) fn build(programs: &[&str]) -> Result<PathBuf> {
    shell::run(&mut cargo(
        ["build", "--quiet"].into_iter().chain(packages()).chain(programs.iter().copied()),
    ))?;
    Ok(std::path::absolute(target_dir().join("debug"))?)
}

/// Builds the simulator as `models` has built it, and returns its path.
pub(crate) fn build_simulator() -> Result<PathBuf> {
    let what = ["--profile", CHECKED, "--bin", "overtake-sim", "--test", "planted"];
    shell::run(&mut cargo(["build"].into_iter().chain(models_packages()).chain(what)))?;
    Ok(std::path::absolute(target_dir().join(CHECKED).join("overtake-sim"))?)
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
