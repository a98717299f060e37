//! The tests of lapin's release, built from the registry in a workspace of their own, with a lock file of their own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Stage, skips};
use crate::report::Done;
use crate::shell::{cargo, read, run};

const PACKAGE: &str = "tests/clients/lapin";

/// Every file of the release's `tests/`.
pub(super) fn tests(stage: &mut Stage) -> Result<Done> {
    let package = download(&stage.dir)?;
    let mut command = cargo(["test", "--quiet", "--locked", "--no-fail-fast", "--tests", "--manifest-path"]);
    command.arg(package.join("Cargo.toml")).arg("--target-dir").arg(stage.dir.join("lapin-target"));
    command.env("AMQP_ADDR", &stage.url).env("RUST_LOG", "warn");
    command.arg("--");
    for skip in skips::of(stage.program)? {
        command.args(["--skip", &skip.what]);
    }
    stage.run(&mut command)
}

/// The package with the release's tests, once cargo has all its crates.
pub(super) fn download(dir: &Path) -> Result<PathBuf> {
    let package = dir.join("lapin");
    lay_out(&package)?;
    run(cargo(["fetch", "--quiet", "--locked", "--manifest-path"]).arg(package.join("Cargo.toml")))?;
    Ok(package)
}

/// Our manifest beside the release's tests.
fn lay_out(package: &Path) -> Result<()> {
    if package.exists() {
        std::fs::remove_dir_all(package)?;
    }
    for file in ["Cargo.toml", "Cargo.lock", "src/lib.rs"] {
        let target = package.join(file);
        std::fs::create_dir_all(target.parent().expect("a file has a directory"))?;
        std::fs::copy(Path::new(PACKAGE).join(file), target)?;
    }
    copy_all(&release(package)?.join("tests"), &package.join("tests"))
}

/// Where cargo keeps lapin's source.
fn release(package: &Path) -> Result<PathBuf> {
    let mut command = cargo(["metadata", "--locked", "--format-version", "1", "--manifest-path"]);
    let metadata = read(command.arg(package.join("Cargo.toml")))?;
    let manifest = metadata.split('"').find(|text| is_manifest(text)).context("cargo does not know lapin")?;
    Ok(Path::new(manifest).parent().expect("a file has a directory").to_owned())
}

/// `…/lapin-4.12.3/Cargo.toml`
fn is_manifest(text: &str) -> bool {
    let folder = text.strip_suffix("/Cargo.toml").and_then(|path| path.rsplit('/').next());
    folder
        .and_then(|folder| folder.strip_prefix("lapin-"))
        .is_some_and(|version| version.starts_with(char::is_numeric))
}

fn copy_all(source: &Path, target: &Path) -> Result<()> {
    std::fs::create_dir_all(target)?;
    for entry in std::fs::read_dir(source).with_context(|| format!("reading {}", source.display()))? {
        let entry = entry?;
        let target = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
