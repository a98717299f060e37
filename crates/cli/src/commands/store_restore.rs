//! `overtake store restore`

use std::path::Path;

use overtake_store::{Disk, RealDisk, StoreError, restore};

use super::Ended;
use super::store::{cannot, of_shards};
use super::store_target::Target;
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Copies a snapshot to where a broker can be started on it.
pub(super) fn run(snapshot: &Path, dir: &Path, out: Out) -> Ended {
    let failed = |error: StoreError| {
        cannot("read", snapshot, &error).hint("give the directory that `overtake store snapshot` made")
    };
    let from = of_shards(snapshot, |snapshot| {
        let from = RealDisk::existing(snapshot).map_err(failed)?;
        let is_locked = from.is_locked();
        if is_locked.map_err(|source| {
            failed(StoreError::Io { op: "look at the lock of", file: snapshot.display().to_string(), source })
        })? {
            return Err(Failure::new(
                Exit::Error,
                format!("a broker has {} open: it changes", snapshot.display()),
            )
            .hint("take a snapshot of that broker"));
        }
        Ok(from)
    })?;
    let copied = Target::make(dir)?.fill(false, |filling| {
        for (shard, (_, from)) in from.iter().enumerate().rev() {
            let manifest = restore(from, filling.shard(shard)?)?;
            filling.finish(manifest)?;
        }
        Ok(())
    })?;
    copied.tell("the restored store", out)
}
