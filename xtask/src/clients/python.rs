//! Programs in Python: one environment for all, and pytest.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{HERE, Stage};
pub(super) use crate::python::{pip, pytest};
use crate::report::Done;
use crate::{needs, python};

/// The tests of one folder.
pub(super) fn tests(stage: &mut Stage, folder: &str) -> Result<Done> {
    if let Some(why) = needs::python()? {
        return Ok(Done::Skipped(why));
    }
    let mut pytest = pytest(&environment(&stage.dir)?);
    stage.run(pytest.arg(folder).current_dir(HERE))
}

/// The environment of everything here.
pub(super) fn environment(dir: &Path) -> Result<PathBuf> {
    python::environment(dir, "tests/clients/requirements.txt")
}
