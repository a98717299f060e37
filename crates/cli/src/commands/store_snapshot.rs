//! `overtake store snapshot`

use std::io::{self, Read};
use std::path::Path;

use bytes::{Buf, Bytes};
use overtake_store::{
    Disk, Intake, MANIFEST_NAME, Manifest, Moment, RealDisk, SnapshotError, StoreError, copy,
};
use tokio::sync::mpsc;

use super::store::cannot;
use super::store_target::Target;
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
        target.fill(true, |intake| unpack(Arriving { pieces: arriving, rest: Bytes::new() }, intake))
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
    let store = RealDisk::existing(data_dir).map_err(|error| failed(&error))?;
    let look = |source| StoreError::Io { op: "lock", file: data_dir.display().to_string(), source };
    let _guard = store.lock().map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => failed(&StoreError::Locked),
        _ => failed(&look(source)),
    })?;
    let files = Moment::at_rest(&store).and_then(|moment| moment.files(&store));
    let files = files.map_err(|error| failed(&error))?;
    let copied = Target::make(dir)?.fill(true, |intake| copy(files, &store, intake))?;
    copied.tell("the snapshot", out)
}

/// Takes the files of a stream; what it says of them at its end.
fn unpack(stream: impl Read, to: &mut Intake<RealDisk>) -> Result<Manifest, SnapshotError> {
    let mut tar = tar::Archive::new(stream);
    let mut manifest = None;
    for entry in tar.entries().map_err(SnapshotError::Read)? {
        let mut entry = entry.map_err(SnapshotError::Read)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        // Nothing comes after the manifest, and nothing but files at all.
        if manifest.is_some() || !entry.header().entry_type().is_file() {
            return Err(SnapshotError::BadName { name });
        }
        if name == MANIFEST_NAME {
            let mut json = Vec::new();
            entry.take(MANIFEST_LEN_MAX).read_to_end(&mut json).map_err(SnapshotError::Read)?;
            manifest = Some(Manifest::parse(&json)?);
        } else {
            to.take(&name, &mut entry)?;
        }
    }
    let manifest = manifest.ok_or(SnapshotError::Unfinished)?;
    // So that the connection ends well.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(SnapshotError::Read)?;
    Ok(manifest)
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
