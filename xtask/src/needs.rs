//! What the machine must have besides Rust, git and a C compiler: fetched where we may, else named to the letter.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{run, works};

/// A part of the toolchain, such as `clippy` for `cargo clippy`.
pub(crate) fn component(name: &str, subcommand: &str) -> Result<()> {
    if works("cargo", &[subcommand, "--version"]) {
        return Ok(());
    }
    let how = format!("rustup component add {name}");
    run(Command::new("rustup").args(["component", "add", name]))
        .with_context(|| format!("{name} is missing; `{how}`"))
}

/// A C++ compiler: libFuzzer is written in it.
///
/// `Ok(Some(why))` when there is none and none may be installed.
pub(crate) fn cxx() -> Result<Option<String>> {
    if works("c++", &["--version"]) || std::env::var_os("CXX").is_some() {
        return Ok(None);
    }
    if !is_root() || !works("apt-get", &["--version"]) {
        return Ok(Some(
            "no C++ compiler; on Debian: sudo apt-get update && sudo apt-get install g++".to_owned(),
        ));
    }
    apt(&["update"])?;
    apt(&["install", "--yes", "--no-install-recommends", "g++"])?;
    if !works("c++", &["--version"]) {
        bail!("g++ is installed and c++ still does not run");
    }
    Ok(None)
}

fn is_root() -> bool {
    crate::shell::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn apt(args: &[&str]) -> Result<()> {
    run(Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive"))
}
