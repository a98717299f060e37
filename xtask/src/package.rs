//! `cargo xtask deb`: a package for Debian, of the binary and what it says about itself. What is in it, and where, is in
//! `crates/cli/Cargo.toml`; [cargo-deb](https://crates.io/crates/cargo-deb) packs it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::needs::Needs;
use crate::report::Done;
use crate::shell::{cargo, read, run, target_dir};
use crate::test::Run;
use crate::{deploy, needs};

/// The packer, which is built once.
const CARGO_DEB: &str = "3.8.0";

/// Where each shell's completions go, below the directory of what is packed.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "overtake"), ("zsh", "_overtake"), ("fish", "overtake.fish")];

/// `cargo xtask deb`
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    if let Some(arg) = args.first() {
        bail!("deb takes no argument, not even `{arg}`");
    }
    const NEEDS: Needs = Needs { must: &[&needs::DPKG, &needs::MAKE, &needs::CXX], ..Needs::NONE };
    needs::require("deb", NEEDS)?;
    println!("{}", build()?.display());
    Ok(ExitCode::SUCCESS)
}

/// cargo-deb packs, lintian reads; the rest is as for the other files that deploy a broker.
pub(crate) const NEEDS: Needs = Needs {
    must: &[&needs::DPKG, &needs::MAKE, &needs::CXX, &needs::LINTIAN, &needs::PYTHON, &needs::SYSTEMD],
    ..Needs::NONE
};

/// Packs one, and has it checked.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    let deb = build()?;
    let broker = std::path::absolute(target_dir().join("dist").join("overtake"))?;
    deploy::check(run, broker, |pytest| {
        pytest.env("OVERTAKE_DEB", deb).arg("test_package.py");
    })
}

/// Builds the binary, and packs it.
fn build() -> Result<PathBuf> {
    let packer = packer()?;
    let kafka = ["--features", "kafka"];
    run(cargo(["build", "--profile", "dist", "--locked", "--package", "overtake"]).args(kafka))?;
    let built = std::path::absolute(target_dir().join("dist"))?;
    says(&built.join("overtake"), &built.join("deb"))?;
    for old in debs()? {
        std::fs::remove_file(old)?;
    }
    // Through cargo, so that it packs with the toolchain that built.
    let mut pack = Command::new(packer);
    run(pack.args([
        "deb",
        "--no-build",
        "--profile",
        "dist",
        "--locked",
        "--dbgsym",
        "--package",
        "overtake",
    ]))?;
    debs()?.pop().context("cargo deb packed nothing")
}

/// Manual pages and completions, written by the binary itself.
fn says(overtake: &Path, dir: &Path) -> Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir)?;
    }
    run(Command::new(overtake).arg("man").arg(dir.join("man")))?;
    // Without a name and a time, as Debian wants it.
    run(Command::new("gzip").args(["-9", "-n", "-r"]).arg(dir.join("man")))?;
    for (shell, file) in COMPLETIONS {
        let script = read(Command::new(overtake).args(["completions", shell]))?;
        ensure!(!script.is_empty(), "there are no completions for {shell}");
        std::fs::write(dir.join(file), script)?;
    }
    Ok(())
}

/// cargo-deb, fetched where it is missing.
fn packer() -> Result<PathBuf> {
    let root = std::path::absolute(deploy::kept().join(format!("cargo-deb-{CARGO_DEB}")))?;
    let packer = root.join("bin/cargo-deb");
    if !packer.exists() {
        let version = format!("={CARGO_DEB}");
        let mut install =
            cargo(["install", "cargo-deb", "--quiet", "--locked", "--version", &version, "--root"]);
        run(install.arg(root))?;
    }
    Ok(packer)
}

/// What lies where packages are put.
fn debs() -> Result<Vec<PathBuf>> {
    let Ok(entries) = std::fs::read_dir(target_dir().join("debian")) else { return Ok(Vec::new()) };
    let mut debs = Vec::new();
    for entry in entries {
        let path = std::path::absolute(entry?.path())?;
        if path.extension().is_some_and(|end| end == "deb") {
            debs.push(path);
        }
    }
    debs.sort();
    Ok(debs)
}
