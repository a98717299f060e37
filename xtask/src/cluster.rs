//! The proof that brokers on a cluster keep what was confirmed, whatever falls. It is no part of the suite: it wants the machine for itself.

use std::process::Command;

use anyhow::Result;

use crate::needs::{self, Needs};
use crate::report::Done;
use crate::shell::{cargo, works};
use crate::suite;
use crate::test::Run;

/// Messages of the proof with `--long`.
const MESSAGES_LONG: &str = "200000";
/// The tests of `crates/cli/tests/cluster` that are the proof; the others are its checker's own.
pub(crate) const PROOF: &str = "proof::";

/// Without a network of its own no broker is cut off, which the proof says; in CI it fails.
pub(crate) const NEEDS: Needs = Needs {
    must: &[&needs::MAKE, &needs::CXX, &needs::OPENSSL, &needs::VALKEY],
    part: &[&needs::IPROUTE2, &needs::NETWORK_NAMESPACE],
};

/// Both halves of it.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    let mut command = if works("cargo", &["nextest", "--version"]) { with_nextest() } else { with_cargo() };
    if run.long {
        command.env("CLUSTER_MESSAGES", MESSAGES_LONG);
    }
    suite::count(&mut command, run)?;
    Ok(Done::Ok)
}

fn with_nextest() -> Command {
    let filter = format!("package(overtake) & binary(cluster) & test({PROOF})");
    let mut command =
        cargo(["nextest", "run", "--ignore-default-filter"].into_iter().chain(suite::packages()));
    command.args(["--success-output", "immediate", "--filterset", &filter]);
    command
}

fn with_cargo() -> Command {
    let mut command = cargo(["test"].into_iter().chain(suite::packages()));
    command.args(["--test", "cluster", PROOF, "--", "--test-threads", "1", "--nocapture"]);
    command
}
