//! Programs in Python: one environment for all, and pytest.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{HERE, Stage};
use crate::python;
pub(super) use crate::python::{pip, pytest};
use crate::report::Done;

/// The tests of one folder.
pub(super) fn tests(stage: &mut Stage, folder: &str) -> Result<Done> {
    let mut pytest = pytest(&environment(&stage.dir)?);
    stage.run(pytest.arg(folder).current_dir(HERE))
}

/// The environment of everything here.
pub(super) fn environment(dir: &Path) -> Result<PathBuf> {
    python::environment(dir, "tests/clients/requirements.txt")
}
