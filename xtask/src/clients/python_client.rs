//! Our own library for Python: its style, its types, the wheel that people install, and its tests, with that wheel.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::broker::{Broker, Ports};
use super::{Stage, python};
use crate::needs::{self, Needs};
use crate::report::Done;
use crate::shell::{cargo, read, run, target_dir};
use crate::suite;

const HERE: &str = "clients/python";

/// Everything that must hold of it.
pub(super) fn tests(stage: &mut Stage) -> Result<Done> {
    let Some(binary) = stage.binary.clone() else {
        return Ok(Done::Skipped("it is about our own broker".to_owned()));
    };
    let environment = python::environment(&stage.dir)?;
    let dir = stage.dir.join("python-client");
    style(&environment, &dir)?;
    let installed = wheel(&environment, &dir)?;
    let mut pytest = python::pytest(&environment);
    pytest.env("PYTHONPATH", installed).env("OVERTAKE_BINARY", binary).env("OVERTAKE_HOP", hop()?);
    stage.run(pytest.current_dir(HERE))
}

/// The program of the library for Rust that the tests across languages talk to.
fn hop() -> Result<PathBuf> {
    Ok(suite::build(&["--example", "hop"])?.join("examples").join("hop"))
}

/// What it costs over the libraries below it: a release broker, and the script with its own arguments.
pub(super) fn bench(args: &[String]) -> Result<()> {
    const NEEDS: Needs = Needs { must: &[&needs::PYTHON], ..Needs::NONE };
    needs::require("bench", NEEDS)?;
    run(&mut cargo(["build", "--profile", "dist", "--package", "overtake"]))?;
    let dir = std::path::absolute(super::kept())?;
    let environment = python::environment(&dir)?;
    let broker = Broker::start(&std::path::absolute(target_dir().join("dist").join("overtake"))?, "bench")?;
    let Ports { amqp, http } = broker.ports();
    let mut script = Command::new(environment.join("bin/python"));
    script.current_dir(HERE).env("PYTHONPATH", "src").env("PYTHONDONTWRITEBYTECODE", "1");
    let measured = run(script.arg("bench/compare.py").args([amqp, http]).args(args));
    broker.stop(measured.is_err())?;
    measured
}

/// What ruff and mypy say; their memories are kept out of the repository.
fn style(environment: &Path, dir: &Path) -> Result<()> {
    run(tool(environment, "ruff").args(["check", "--quiet", "--no-cache"]))?;
    run(tool(environment, "ruff").args(["format", "--check", "--quiet", "--no-cache"]))?;
    run(tool(environment, "mypy").arg("--strict").arg("--cache-dir").arg(dir.join("mypy")))
}

fn tool(environment: &Path, name: &str) -> Command {
    let mut command = Command::new(environment.join("bin").join(name));
    command.current_dir(HERE);
    command
}

/// The wheel, built by its own back end and unpacked where Python finds it.
fn wheel(environment: &Path, dir: &Path) -> Result<PathBuf> {
    let (built, installed) = (dir.join("wheel"), dir.join("installed"));
    for old in [&built, &installed] {
        if old.exists() {
            std::fs::remove_dir_all(old)?;
        }
    }
    let options = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"];
    run(python::pip(environment).args(options).arg(&built).arg(HERE))?;
    let wheel = std::fs::read_dir(&built)?.next().context("no wheel was built")??.path();
    let holds = read(Command::new(environment.join("bin/python")).args(["-m", "zipfile", "-l"]).arg(&wheel))?;
    ensure!(holds.contains("overtake/py.typed"), "the wheel does not say that it is typed:\n{holds}");
    run(python::pip(environment)
        .args(["install", "--quiet", "--no-deps", "--target"])
        .arg(&installed)
        .arg(&wheel))?;
    Ok(installed)
}
