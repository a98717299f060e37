//! `cargo xtask semver REV`: whether the Rust client is still what programs were written against at that revision, by cargo-semver-checks.
//!
//! No step of `test`: it builds the documentation of both twice, and wants a tool that takes minutes to build. There, `crates/client/tests/api.rs` says what a
//! program may say.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::shell::{cargo, run, works};

/// What programs are written against.
const PACKAGE: &str = "overtake-client";

/// `cargo xtask semver REV`
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let [revision] = args else {
        bail!("semver takes one revision: cargo xtask semver v0.1.0");
    };
    let commit = format!("{revision}^{{commit}}");
    if revision.starts_with('-') || !works("git", &["rev-parse", "--verify", "--quiet", &commit]) {
        bail!("git knows no revision `{revision}`; cargo xtask semver v0.1.0");
    }
    if !works("cargo", &["semver-checks", "--version"]) {
        bail!("cargo-semver-checks is missing; `cargo install --locked cargo-semver-checks`");
    }
    run(&mut cargo(["semver-checks", "--package", PACKAGE, "--all-features", "--baseline-rev", revision]))?;
    Ok(ExitCode::SUCCESS)
}
