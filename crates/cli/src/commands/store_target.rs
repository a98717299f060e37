//! A directory that a snapshot is copied to, and what is said of the copy.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use overtake_engine::shard_dir;
use overtake_store::{CheckReport, Intake, Manifest, RealDisk, SnapshotError, StoreError};
use serde_json::{Value, json};

use super::Ended;
use super::store::{self, cannot, shards_as_json, shards_as_text};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::table::count;

/// An empty directory.
pub(super) struct Target {
    dir: PathBuf,
    /// It was not there before.
    is_new: bool,
}

/// A snapshot on its way into it, shard by shard, the first shard last. Dropped before it is whole, it removes what was written.
pub(super) struct Filling {
    dir: PathBuf,
    keep_manifest: bool,
    under_way: Option<(usize, Intake<RealDisk>)>,
    done: BTreeMap<usize, Manifest>,
    is_whole: bool,
}

/// What was copied, of each shard.
pub(super) struct Copied {
    dir: PathBuf,
    shards: Vec<(PathBuf, OfShard)>,
}

/// What was copied of a shard, and what is found there.
struct OfShard {
    manifest: Manifest,
    report: CheckReport,
}

impl Filling {
    /// Where the files of a shard go. It begins with the first of them, once the one before is finished.
    pub(super) fn shard(&mut self, shard: usize) -> Result<&mut Intake<RealDisk>, SnapshotError> {
        let intake = match self.under_way.take() {
            Some((at, intake)) if at == shard => intake,
            Some((at, intake)) => {
                self.under_way = Some((at, intake));
                return Err(SnapshotError::Unfinished);
            }
            None => Intake::begin(RealDisk::create(shard_dir(&self.dir, shard))?)?,
        };
        Ok(&mut self.under_way.insert((shard, intake)).1)
    }

    /// All files of the shard that is under way have come.
    pub(super) fn finish(&mut self, manifest: Manifest) -> Result<(), SnapshotError> {
        let (shard, intake) = self.under_way.take().ok_or(SnapshotError::Unfinished)?;
        let finished = intake.finish(&manifest, self.keep_manifest);
        // What is left of it is removed with the others.
        self.done.insert(shard, manifest);
        finished
    }

    fn end(&mut self) -> Result<BTreeMap<usize, Manifest>, SnapshotError> {
        if self.under_way.is_some() || !self.done.contains_key(&0) {
            return Err(SnapshotError::Unfinished);
        }
        self.is_whole = true;
        Ok(std::mem::take(&mut self.done))
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        if self.is_whole {
            return;
        }
        let under_way = self.under_way.take().map(|(shard, _)| shard);
        // That of the first shard is not ours alone; what was written there is removed by whoever wrote it.
        for shard in self.done.keys().copied().chain(under_way).filter(|shard| *shard > 0) {
            let _ = fs::remove_dir_all(shard_dir(&self.dir, shard));
        }
    }
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
        Ok(Self { dir: dir.to_owned(), is_new })
    }

    /// Has it filled, and reads all of it again. What is not whole is removed.
    pub(super) fn fill(
        self,
        keep_manifest: bool,
        fill: impl FnOnce(&mut Filling) -> Result<(), SnapshotError>,
    ) -> Result<Copied, Failure> {
        let (under_way, done) = (None, BTreeMap::new());
        let mut filling = Filling { dir: self.dir.clone(), keep_manifest, under_way, done, is_whole: false };
        let filled = fill(&mut filling).and_then(|()| filling.end());
        drop(filling);
        match filled {
            Ok(manifests) => {
                let of_shard = |(shard, manifest)| {
                    let dir = shard_dir(&self.dir, shard);
                    let report = RealDisk::existing(&dir).and_then(|disk| overtake_store::check(&disk));
                    let report = report.map_err(|error| cannot("check", &dir, &error))?;
                    Ok((dir, OfShard { manifest, report }))
                };
                let shards = manifests.into_iter().map(of_shard).collect::<Result<_, Failure>>()?;
                Ok(Copied { dir: self.dir, shards })
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
        let is_clean = self.shards.iter().all(|(_, shard)| shard.report.is_clean());
        let manifests = || self.shards.iter().map(|(_, shard)| &shard.manifest);
        let of_all = json!({
            "dir": self.dir,
            "files": manifests().map(|manifest| manifest.files.len()).sum::<usize>(),
            "bytes": manifests().map(Manifest::bytes).sum::<u64>(),
        });
        let mut json = shards_as_json(&self.shards, OfShard::as_json, of_all);
        json["dir"] = json!(self.dir);
        let text = || shards_as_text(&self.shards, |dir, shard| shard.as_text(what, dir));
        if is_clean {
            out.done(&json, || text().trim_end().to_owned())?;
        } else {
            out.answer(&json, |_| text())?;
        }
        Ok(if is_clean { Exit::Done } else { Exit::Error })
    }
}

impl OfShard {
    fn as_json(&self) -> Value {
        json!({
            "store": self.manifest.store,
            "lsn": self.manifest.lsn,
            "files": self.manifest.files.len(),
            "bytes": self.manifest.bytes(),
            "check": store::as_json(&self.report),
        })
    }

    fn as_text(&self, what: &str, dir: &Path) -> String {
        format!(
            "{what} in {}: {} in {}, of store {} up to {}\n{}",
            dir.display(),
            count(self.manifest.bytes(), "byte"),
            count(self.manifest.files.len() as u64, "file"),
            self.manifest.store,
            crate::table::number(self.manifest.lsn),
            store::as_text(dir, &self.report),
        )
    }
}
