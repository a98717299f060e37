//! `overtake store snapshot`

use std::io::{self, Read};
use std::path::Path;

use bytes::{Buf, Bytes};
use overtake_engine::{SHARDS_MAX, shard_dir};
use overtake_store::{Disk, MANIFEST_NAME, Manifest, Moment, RealDisk, SnapshotError, StoreError, copy};
use tokio::sync::mpsc;

use super::store::{cannot, of_shards};
use super::store_target::{Filling, Target};
use super::{Ended, Session};
use crate::client::Client;
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Pieces of the stream that may wait to be written.
const PIECES_MAX: usize = 8;
/// A manifest is no longer, bytes.
const MANIFEST_LEN_MAX: u64 = 128 << 20;

/// Of a broker that runs.
pub(super) async fn run(dir: &Path, session: &Session) -> Ended {
    let target = Target::make(dir)?;
    let (pieces, arriving) = mpsc::channel(PIECES_MAX);
    let taking = tokio::task::spawn_blocking(move || {
        target.fill(true, |filling| unpack(Arriving { pieces: arriving, rest: Bytes::new() }, filling))
    });
    let fed = feed(&session.client, pieces).await;
    let taken = taking.await.map_err(|error| Failure::new(Exit::Error, error.to_string()))?;
    // When the stream was cut, that says more than what is missing.
    let copied = taken.or_else(|failure| fed.and(Err(failure)))?;
    copied.tell("the snapshot", session.out)
}

async fn feed(client: &Client, pieces: mpsc::Sender<Bytes>) -> Result<(), Failure> {
    let mut answer = client.download("/v1/store/snapshot").await?;
    while let Some(piece) = answer.next().await? {
        if pieces.send(piece).await.is_err() {
            // It could not be written, and whoever wrote says why.
            return Ok(());
        }
    }
    Ok(())
}

/// Of a store that nobody has open.
pub(super) fn run_offline(dir: &Path, data_dir: &Path, out: Out) -> Ended {
    let failed = |error: &StoreError| {
        let failure = cannot("take a snapshot of", data_dir, error);
        match error {
            StoreError::Locked => {
                failure.hint("leave --data-dir out, and the broker that has it open is asked")
            }
            StoreError::Corrupt { .. } => {
                failure.hint(format!("see all of it with `overtake store check {}`", data_dir.display()))
            }
            _ => failure,
        }
    };
    let stores = of_shards(data_dir, |data_dir| {
        let store = RealDisk::existing(data_dir).map_err(|error| failed(&error))?;
        let look = |source| StoreError::Io { op: "lock", file: data_dir.display().to_string(), source };
        let guard = store.lock().map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => failed(&StoreError::Locked),
            _ => failed(&look(source)),
        })?;
        let files = Moment::at_rest(&store).and_then(|moment| moment.files(&store));
        Ok((files.map_err(|error| failed(&error))?, store, guard))
    })?;
    let copied = Target::make(dir)?.fill(true, |filling| {
        for (shard, (_, (files, store, _guard))) in stores.into_iter().enumerate().rev() {
            let manifest = copy(files, &store, filling.shard(shard)?)?;
            filling.finish(manifest)?;
        }
        Ok(())
    })?;
    copied.tell("the snapshot", out)
}

/// Takes the files of a stream, shard by shard, each with what it says of itself at its end; the first shard comes last.
fn unpack(stream: impl Read, to: &mut Filling) -> Result<(), SnapshotError> {
    let mut tar = tar::Archive::new(stream);
    let mut last = None;
    for entry in tar.entries().map_err(SnapshotError::Read)? {
        let mut entry = entry.map_err(SnapshotError::Read)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        // Nothing comes after the manifest of the first shard, and nothing but files at all.
        let of_shard =
            shard_and_name(&path).filter(|_| last.is_none() && entry.header().entry_type().is_file());
        let Some((shard, name)) = of_shard else { return Err(SnapshotError::BadName { name: path }) };
        let intake = to.shard(shard)?;
        if name == MANIFEST_NAME {
            let mut json = Vec::new();
            entry.take(MANIFEST_LEN_MAX).read_to_end(&mut json).map_err(SnapshotError::Read)?;
            let manifest = Manifest::parse(&json)?;
            if shard == 0 {
                last = Some(manifest);
            } else {
                to.finish(manifest)?;
            }
        } else {
            intake.take(name, &mut entry)?;
        }
    }
    let last = last.ok_or(SnapshotError::Unfinished)?;
    // So that the connection ends well: if it does not, nothing is left.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(SnapshotError::Read)?;
    to.finish(last)
}

/// The shard of a file by its path, and its name there.
fn shard_and_name(path: &str) -> Option<(usize, &str)> {
    match path.split_once('/') {
        None => Some((0, path)),
        Some((dir, name)) => {
            let shard = (1..SHARDS_MAX).find(|shard| shard_dir(Path::new(""), *shard) == Path::new(dir))?;
            Some((shard, name))
        }
    }
}

/// A stream whose pieces come from elsewhere.
struct Arriving {
    pieces: mpsc::Receiver<Bytes>,
    rest: Bytes,
}

impl Read for Arriving {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.rest = piece,
                None => return Ok(0),
            }
        }
        let read = buf.len().min(self.rest.len());
        self.rest.copy_to_slice(&mut buf[..read]);
        Ok(read)
    }
}
