//! Programs for Node: amqplib as its lock file says, and Node's own test runner.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Stage;
use crate::report::Done;
use crate::shell::run;

const FOLDER: &str = "tests/clients/with_amqplib";

/// The tests, in a folder where amqplib is installed.
pub(super) fn tests(stage: &mut Stage) -> Result<Done> {
    let folder = download(&stage.dir)?;
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec", "amqplib.test.js"]);
    stage.run(node.current_dir(&folder))
}

/// The folder with the tests, where amqplib is installed as its lock file says.
pub(super) fn download(dir: &Path) -> Result<PathBuf> {
    let folder = dir.join("node");
    std::fs::create_dir_all(&folder)?;
    for file in std::fs::read_dir(FOLDER)? {
        let file = file?;
        std::fs::copy(file.path(), folder.join(file.file_name()))?;
    }
    // Written last: an installation that was interrupted is made again.
    let (wanted, stamp) = (std::fs::read(folder.join("package-lock.json"))?, folder.join("installed.json"));
    if std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    install(&folder)?;
    std::fs::write(stamp, wanted)?;
    Ok(folder)
}

fn install(folder: &Path) -> Result<()> {
    run(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder))
}
