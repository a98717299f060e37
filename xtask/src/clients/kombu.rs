//! Kombu's own integration suite, from its source release: the transport that Celery and many others speak AMQP with.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::skips;
use super::{Stage, python};
use crate::report::Done;
use crate::shell::run;

const RELEASE: &str = "tests/clients/kombu/sdist.txt";

/// All of `t/integration` but what skips.txt names. No test is run again when it fails, as Kombu's own runs do.
pub(super) fn tests(stage: &mut Stage) -> Result<Done> {
    let environment = python::environment(&stage.dir)?;
    let source = download(&stage.dir, &environment)?;
    let (host, port) = stage.address()?;
    let mut pytest = python::pytest(&environment);
    pytest.env("RABBITMQ_HOST", host).env("RABBITMQ_5672_TCP", port).current_dir(source);
    pytest.args(["-q", "-rs", "--tb=short", "--timeout=120", "-p", "no:cacheprovider", "-W", "ignore"]);
    for skip in skips::of(stage.program)? {
        pytest.arg(if skip.what.contains("::") { "--deselect" } else { "--ignore" }).arg(&skip.what);
    }
    stage.run(pytest.arg("t/integration"))
}

/// The unpacked release, fetched once and checked against its hash.
pub(super) fn download(dir: &Path, environment: &Path) -> Result<PathBuf> {
    let release = std::fs::read_to_string(RELEASE).context(RELEASE)?;
    let version = release.split_once("kombu==").and_then(|(_, rest)| rest.split_whitespace().next());
    let name = format!("kombu-{}", version.with_context(|| format!("{RELEASE} names no version"))?);
    let source = dir.join(&name);
    if source.is_dir() {
        return Ok(source);
    }
    let mut download = python::pip(environment);
    download.args(["download", "--quiet", "--no-deps", "--no-binary", "kombu", "--require-hashes"]);
    run(download.args(["--requirement", RELEASE, "--dest"]).arg(dir))?;
    let unpacked = dir.join(format!("{name}.unpacking"));
    let mut unpack = Command::new(environment.join("bin").join("python"));
    run(unpack.args(["-m", "tarfile", "-e"]).arg(dir.join(format!("{name}.tar.gz"))).arg(&unpacked))?;
    // In one step, so that half an unpacking is never taken for the release.
    std::fs::rename(unpacked.join(&name), &source)?;
    std::fs::remove_dir(unpacked)?;
    Ok(source)
}
