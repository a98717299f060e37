//! A directory that a snapshot is copied to, and what is said of the copy.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use overtake_store::{CheckReport, Intake, Manifest, RealDisk, SnapshotError, StoreError};
use serde_json::{Value, json};

use super::Ended;
use super::store::{self, cannot};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::table::count;

/// An empty directory.
pub(super) struct Target {
    dir: PathBuf,
    disk: RealDisk,
    /// It was not there before.
    is_new: bool,
}

/// What was copied.
pub(super) struct Copied {
    dir: PathBuf,
    manifest: Manifest,
    report: CheckReport,
}

impl Target {
    /// Makes the directory, unless it is there; then it must be empty.
    pub(super) fn make(dir: &Path) -> Result<Self, Failure> {
        let failed = |source: io::Error| {
            let error = format!("cannot write to {}: {source}", dir.display());
            Failure::new(Exit::Error, error).hint("give a directory that is empty, or is not there yet")
        };
        let is_new = match fs::read_dir(dir) {
            Ok(mut entries) => {
                // A store that somebody has open is told of as such, later.
                if let Some(entry) =
                    entries.find_map(|entry| entry.ok().filter(|entry| entry.path().is_dir()))
                {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    return Err(refused(dir, &SnapshotError::NotEmpty { name }));
                }
                false
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // What is in it is nobody else's to read.
                DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
                true
            }
            Err(error) => return Err(failed(error)),
        };
        let disk = RealDisk::create(dir).map_err(|error| cannot("write to", dir, &error))?;
        Ok(Self { dir: dir.to_owned(), disk, is_new })
    }

    /// Has it filled, and reads all of it again. What is not whole is removed.
    pub(super) fn fill(
        self,
        keep_manifest: bool,
        fill: impl FnOnce(&mut Intake<RealDisk>) -> Result<Manifest, SnapshotError>,
    ) -> Result<Copied, Failure> {
        let filled = Intake::begin(self.disk.clone()).and_then(|mut intake| {
            let manifest = fill(&mut intake)?;
            intake.finish(&manifest, keep_manifest)?;
            Ok(manifest)
        });
        match filled {
            Ok(manifest) => {
                let report = overtake_store::check(&self.disk);
                let report = report.map_err(|error| cannot("check", &self.dir, &error))?;
                Ok(Copied { dir: self.dir, manifest, report })
            }
            Err(error) => {
                if self.is_new {
                    // It stays where something is left in it.
                    let _ = fs::remove_dir(&self.dir);
                }
                Err(refused(&self.dir, &error))
            }
        }
    }
}

/// What to do about a copy that failed.
fn refused(dir: &Path, error: &SnapshotError) -> Failure {
    let hint = match error {
        SnapshotError::NotEmpty { .. } => "give a directory that is empty, or is not there yet",
        SnapshotError::Store(StoreError::Locked) => "give a directory that no broker was started with",
        error if error.is_full() => {
            "nothing was left there; free disk space, or give a directory on another disk"
        }
        SnapshotError::Store(_) => "nothing is used of it; look at the disk",
        SnapshotError::Read(_) => "nothing was left there; try again",
        SnapshotError::Unfinished
        | SnapshotError::BadManifest { .. }
        | SnapshotError::Differs { .. }
        | SnapshotError::BadName { .. } => "nothing was left there; use another snapshot, or take it again",
    };
    Failure::new(Exit::Error, format!("cannot copy to {}: {error}", dir.display())).hint(hint)
}

impl Copied {
    /// Says what is there now. A copy of damage is told of, and stays.
    pub(super) fn tell(&self, what: &str, out: Out) -> Ended {
        if self.report.is_clean() {
            out.done(&self.as_json(), || self.as_text(what).trim_end().to_owned())?;
        } else {
            out.answer(&self.as_json(), |_| self.as_text(what))?;
        }
        Ok(if self.report.is_clean() { Exit::Done } else { Exit::Error })
    }

    fn as_json(&self) -> Value {
        json!({
            "dir": self.dir,
            "store": self.manifest.store,
            "lsn": self.manifest.lsn,
            "files": self.manifest.files.len(),
            "bytes": self.manifest.bytes(),
            "check": store::as_json(&self.report),
        })
    }

    fn as_text(&self, what: &str) -> String {
        format!(
            "{what} in {}: {} in {}, of store {} up to {}\n{}",
            self.dir.display(),
            count(self.manifest.bytes(), "byte"),
            count(self.manifest.files.len() as u64, "file"),
            self.manifest.store,
            crate::table::number(self.manifest.lsn),
            store::as_text(&self.dir, &self.report),
        )
    }
}
