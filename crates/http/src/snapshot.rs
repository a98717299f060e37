//! A snapshot of the store, as a tar that is written while it is read.
//!
//! A thread of its own reads the files and waits for the client: no more than a few chunks are in memory. The manifest comes last,
//! so a stream that was cut is known by its absence, even to somebody who unpacks it by hand.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http_body_util::channel::{Channel, Sender};
use overtake_engine::{MANIFEST_NAME, NoSnapshot, Snapshot};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App};
use crate::login::At;
use crate::problem::Problem;
use crate::schema::TarSchema;

/// Bytes handed to the connection at once.
const CHUNK: usize = 256 << 10;
/// Chunks that may wait for the client.
const CHUNKS_MAX: usize = 4;
/// A client that takes no chunk for so long is given up: files are kept for him.
const STALL: Duration = Duration::from_secs(60);

/// The paths of the store.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(snapshot))
}

/// Refuses what a page of another site makes a browser ask for, also by a link: a snapshot keeps files for as long as it is read. The
/// listener refuses all else that such a page sends.
///
/// # Errors
/// 403.
fn refuse_links_of_others(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "origin-foreign",
            "the request comes from a web page of another origin",
            "call the broker from a program; web pages of others are not answered",
        )),
    }
}

/// A copy of the store as it is now, while everything goes on.
///
/// What a power cut now would leave: everything confirmed before the request, and nothing asked after the answer began. A tar of
/// the store's files; its last entry, `snapshot.json`, names each with its length and CRC-32C. Without that entry it is not whole.
/// Of several shards it is one of each: those but the first come before, each within `shard-1/`, `shard-2/`, … with a `snapshot.json` of its own.
/// One at a time; the broker gives no journal file and no segment back meanwhile, and gives the snapshot up when its disk gets
/// short of room, or when nothing of it is read for a minute. Then the connection is closed in the middle.
#[utoipa::path(
    get, path = "/v1/store/snapshot", tag = "admin",
    responses((status = 200, description = "The files, then `snapshot.json`", body = TarSchema, content_type = "application/x-tar"))
)]
async fn snapshot(At(desk): At, State(app): State<Arc<App>>, headers: HeaderMap) -> Answer {
    refuse_links_of_others(&headers)?;
    let taken = tokio::task::spawn_blocking(move || desk.snapshot()).await;
    let snapshot =
        taken.unwrap_or_else(|error| Ok(Err(NoSnapshot::Unavailable(error.to_string().into()))))??;
    let (sender, body) = Channel::<Bytes, io::Error>::new(CHUNKS_MAX);
    let mut to = Chunks {
        sender,
        chunk: BytesMut::with_capacity(CHUNK),
        runtime: Handle::current(),
        shutdown: app.options.shutdown.clone(),
    };
    // It ends by itself: with the snapshot, the client, or the server.
    drop(tokio::task::spawn_blocking(move || match write(snapshot, &mut to) {
        Ok(()) => {}
        Err(error) => to.sender.abort(error),
    }));
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let name = HeaderValue::from_static("attachment; filename=\"overtake-snapshot.tar\"");
    headers.insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}

fn write(mut snapshot: Snapshot, to: &mut Chunks) -> io::Result<()> {
    let mut tar = tar::Builder::new(&mut *to);
    while let Some((name, len)) = snapshot.next_file()? {
        tar.append_data(&mut head(len), name, &mut snapshot)?;
    }
    let manifest = snapshot.manifest()?;
    tar.append_data(&mut head(manifest.len() as u64), MANIFEST_NAME, &manifest[..])?;
    tar.into_inner()?.send()
}

fn head(len: u64) -> tar::Header {
    let mut head = tar::Header::new_gnu();
    head.set_size(len);
    head.set_mode(0o600);
    head.set_entry_type(tar::EntryType::Regular);
    // The date of a file, which people and tar compare with other dates: what the wall clock shows.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    head.set_mtime(now.map_or(0, |now| now.as_secs()));
    head
}

/// What is written, on its way to the client, who is waited for.
struct Chunks {
    sender: Sender<Bytes, io::Error>,
    chunk: BytesMut,
    runtime: Handle,
    shutdown: CancellationToken,
}

impl Chunks {
    fn send(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = self.chunk.split().freeze();
        let (sender, shutdown) = (&mut self.sender, &self.shutdown);
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => Err(io::Error::other("the server is stopping")),
                sent = tokio::time::timeout(STALL, sender.send_data(chunk)) => match sent {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(_)) => Err(io::Error::other("the client is gone")),
                    Err(_) => Err(io::Error::other("the client reads no more")),
                },
            }
        })
    }
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        if self.chunk.len() == CHUNK {
            self.send()?;
            self.chunk.reserve(CHUNK);
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        // Chunks go when they are full, and at the end.
        Ok(())
    }
}

impl From<NoSnapshot> for Problem {
    fn from(no: NoSnapshot) -> Self {
        match no {
            NoSnapshot::Running => Self::new(
                StatusCode::CONFLICT,
                "snapshot-running",
                "another snapshot is being copied",
                "wait until it is finished; one is copied at a time",
            ),
            NoSnapshot::Unsupported => Self::new(
                StatusCode::NOT_IMPLEMENTED,
                "snapshot-unsupported",
                "this broker takes no snapshots",
                "its messages are kept elsewhere: make a backup there",
            ),
            NoSnapshot::Unavailable(why) => Self::from(overtake_engine::Failure::Unavailable(why)),
            NoSnapshot::Unreadable(why) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "snapshot-unreadable",
                "the files of the store cannot be listed",
                "look at the disk, and at the store with `overtake store check`",
            )
            .detail(why.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_no_says_what_to_do() {
        let why = || Arc::from("why");
        let nos = [
            NoSnapshot::Running,
            NoSnapshot::Unsupported,
            NoSnapshot::Unavailable(why()),
            NoSnapshot::Unreadable(why()),
        ];
        assert!(nos.into_iter().map(Problem::from).all(|problem| problem.0.is_helpful()));
    }
}
