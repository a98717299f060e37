//! Accepting connections, as many as are allowed at once.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long accepting rests after the system refused it, for example because too many files are open.
const REST: Duration = Duration::from_millis(100);

/// Why a connection ended before its time.
pub(crate) type Ended = Box<dyn std::error::Error + Send + Sync>;

/// What is spoken on a port.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// Serves one connection until it ends, or until `stop` and what is under way then is done.
    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), Ended>> + Send + use<Self>
    where
        Self: Sized;
}

/// When a listener closes, when its connections end, and which of them are open. Clones share all three.
#[derive(Clone, Default)]
pub struct Term {
    /// Cancelled: the listener accepts no more connections.
    pub closing: CancellationToken,
    /// Cancelled: each connection finishes the requests under way, and ends.
    pub stop: CancellationToken,
    /// The tasks of the listener and of its connections.
    pub open: TaskTracker,
}

/// A loop that accepts connections until its [`Term`] closes the listener. Boxed, so that it is compiled in this crate.
pub type Accepting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Accepts until it is to close.
pub(crate) async fn accept<P: Protocol>(listener: TcpListener, protocol: P, most: u32, term: Term) {
    let Term { closing, stop, open } = term;
    let places = Arc::new(Semaphore::new(most as usize));
    while let Some(place) = closing.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
        let Ok(place) = place else { break };
        let Some(accepted) = closing.run_until_cancelled(listener.accept()).await else { break };
        match accepted {
            Ok((stream, peer)) => {
                prepare(&stream);
                let connection = protocol.serve(stream, peer, stop.clone());
                open.spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%peer, "connection ended: {error}");
                    }
                    drop(place);
                });
            }
            Err(error) => refused(&error).await,
        }
    }
}

/// Answers are written whole, so waiting for more to send with them would only delay them.
fn prepare(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("cannot set TCP_NODELAY: {error}");
    }
}

async fn refused(error: &io::Error) {
    // One client that went away is no reason to keep the others waiting.
    if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        return;
    }
    tracing::warn!("cannot accept a connection: {error}");
    tokio::time::sleep(REST).await;
}
