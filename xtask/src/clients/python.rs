//! Programs in Python: one environment for all, exactly the versions of requirements.txt, and pytest.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{HERE, Stage};
use crate::needs;
use crate::report::Done;
use crate::shell::run;

const REQUIREMENTS: &str = "tests/clients/requirements.txt";

/// The tests of one folder.
pub(super) fn tests(stage: &mut Stage, folder: &str) -> Result<Done> {
    if let Some(why) = needs::python()? {
        return Ok(Done::Skipped(why));
    }
    let mut pytest = pytest(&environment(&stage.dir)?);
    stage.run(pytest.arg(folder).current_dir(HERE))
}

/// pytest of the environment; leaves no bytecode in the repository.
pub(super) fn pytest(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("bin").join("pytest"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// The environment, made anew when requirements.txt has changed.
pub(super) fn environment(dir: &Path) -> Result<PathBuf> {
    let environment = dir.join("python");
    let wanted = std::fs::read_to_string(REQUIREMENTS).context(REQUIREMENTS)?;
    let stamp = environment.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(environment);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    run(pip(&environment).args(["install", "--quiet", "--requirement", REQUIREMENTS]))?;
    run(pip(&environment).arg("check"))?;
    std::fs::write(stamp, wanted)?;
    Ok(environment)
}

/// pip of the environment.
pub(super) fn pip(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("bin").join("python"));
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}
