//! The installed packages of this machine, through a broker that is killed half-way.
//!
//! ```text
//! cargo run --example dpkg
//! ```
//!
//! The same story is a test (`tests/cli/dpkg.rs`). Everything in it is done with the binary `overtake`, as a script would.

#![allow(clippy::print_stdout, reason = "it tells a story")]

#[path = "../tests/cli/support/mod.rs"]
mod support;

use std::process::{Command, ExitCode};

use support::dpkg;

fn main() -> ExitCode {
    let status = match std::fs::read_to_string(dpkg::STATUS) {
        Ok(status) => status,
        Err(error) => {
            println!("nothing to do: {}: {error}", dpkg::STATUS);
            return ExitCode::SUCCESS;
        }
    };
    build();
    let dir = tempfile::tempdir().expect("a directory for the store");
    dpkg::tell(&dir.path().join("data"), &dpkg::packages(&status), &mut |line| println!("{line}"));
    ExitCode::SUCCESS
}

/// `cargo run --example` builds the example and not the binary it runs.
fn build() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "overtake", "--bin", "overtake"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    assert!(command.status().is_ok_and(|status| status.success()), "the binary is built");
}
