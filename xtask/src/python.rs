//! Environments for programs in Python: exactly the versions of some requirements, made anew when those have changed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::run;

/// The environment of these requirements, below `dir`.
pub(crate) fn environment(dir: &Path, requirements: &str) -> Result<PathBuf> {
    let environment = dir.join("python");
    let wanted = std::fs::read_to_string(requirements).with_context(|| requirements.to_owned())?;
    let stamp = environment.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(environment);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    run(pip(&environment).args(["install", "--quiet", "--quiet", "--requirement", requirements]))?;
    run(pip(&environment).arg("check"))?;
    std::fs::write(stamp, wanted)?;
    Ok(environment)
}

/// python of the environment.
pub(crate) fn python(environment: &Path) -> Command {
    Command::new(environment.join("bin").join("python"))
}

/// pip of the environment.
pub(crate) fn pip(environment: &Path) -> Command {
    let mut command = python(environment);
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}

/// pytest of the environment; leaves no bytecode in the repository, and names its slowest tests.
pub(crate) fn pytest(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("bin").join("pytest"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").args(["--durations=10", "--durations-min=1"]);
    command
}
