//! Accepting connections, as many as are allowed at once.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::descriptors::Descriptors;

/// How long accepting rests after the system refused it, for example because too many files are open.
const REST: Duration = Duration::from_millis(100);
/// How long the log says nothing after it said that connections are refused.
const QUIET: Duration = Duration::from_secs(10);

/// Why a connection ended before its time.
pub(crate) type Ended = Box<dyn std::error::Error + Send + Sync>;

/// What is spoken on a port.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// Connections over the limit that are accepted all the same, the newest ones. 0: those over the limit wait to be accepted.
    const RESERVE: usize;

    /// Serves one connection until it ends, or until `stop` and what is under way then is done.
    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        place: Place,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), Ended>> + Send + use<Self>
    where
        Self: Sized;
}

/// Whether a connection is within the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is.
    Own,
    /// It is one too many, and may be ended at any time.
    Reserve,
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
pub(crate) async fn accept<P: Protocol>(
    listener: TcpListener,
    protocol: P,
    most: u32,
    descriptors: Descriptors,
    term: Term,
) {
    let Term { closing, stop, open } = term;
    let places = Arc::new(Semaphore::new(most as usize));
    let mut reserve = Reserve::default();
    let mut refusals = Refusals::default();
    loop {
        let place = match P::RESERVE {
            0 => match closing.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
                Some(Ok(place)) => Some(place),
                _ => break,
            },
            _ => None,
        };
        let Some(accepted) = closing.run_until_cancelled(listener.accept()).await else { break };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                refused(&error).await;
                continue;
            }
        };
        let place = place.or_else(|| Arc::clone(&places).try_acquire_owned().ok());
        let held = place.and_then(|place| Some((place, descriptors.take()?)));
        let (kind, evicted) = match &held {
            Some(_) => (Place::Own, CancellationToken::new()),
            None => {
                descriptors.refuse();
                refusals.tell(&listener);
                if P::RESERVE == 0 {
                    continue;
                }
                (Place::Reserve, reserve.enter(P::RESERVE))
            }
        };
        prepare(&stream);
        // Boxed, since each future that holds another by value may take its size twice: an idle connection would take three times as much.
        let connection = Box::pin(protocol.serve(stream, peer, kind, stop.clone()));
        open.spawn(async move {
            if let Some(Err(error)) = evicted.run_until_cancelled(connection).await {
                tracing::debug!(%peer, "connection ended: {error}");
            }
            // Frees the place in the reserve, if it had one.
            evicted.cancel();
            drop(held);
        });
    }
}

/// The connections over the limit, the oldest first.
#[derive(Default)]
struct Reserve(VecDeque<CancellationToken>);

impl Reserve {
    /// A place for one more. Where there are as many as there may be, the oldest is ended.
    fn enter(&mut self, most: usize) -> CancellationToken {
        self.0.retain(|one| !one.is_cancelled());
        while self.0.len() >= most {
            self.0.pop_front().inspect(CancellationToken::cancel);
        }
        let token = CancellationToken::new();
        self.0.push_back(token.clone());
        token
    }
}

/// Connections that were refused since the log last said so.
#[derive(Default)]
struct Refusals {
    said_at: Option<Instant>,
    unsaid: u64,
}

impl Refusals {
    /// One more: the log says it, but not more often than every [`QUIET`].
    fn tell(&mut self, listener: &TcpListener) {
        self.unsaid += 1;
        if self.said_at.is_some_and(|at| at.elapsed() < QUIET) {
            return;
        }
        let address =
            listener.local_addr().map_or_else(|_| "a listener".to_owned(), |address| address.to_string());
        tracing::warn!(
            refused = self.unsaid,
            "{address} refuses connections: all that may be open are; close idle clients, raise max_connections, or allow the process more open files"
        );
        (self.said_at, self.unsaid) = (Some(Instant::now()), 0);
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::sync::mpsc::{Sender, channel};

    use super::*;

    /// A connection says that it is there, and stays until it is to stop.
    struct Silent(Sender<SocketAddr>);

    impl Protocol for Silent {
        const RESERVE: usize = 0;

        fn serve(
            &self,
            stream: TcpStream,
            peer: SocketAddr,
            _: Place,
            stop: CancellationToken,
        ) -> impl Future<Output = Result<(), Ended>> + Send + use<> {
            let _ = self.0.try_send(peer);
            async move {
                let mut stream = stream;
                let _ = stop.run_until_cancelled(stream.read(&mut [0])).await;
                Ok(())
            }
        }
    }

    #[tokio::test]
    async fn connections_beyond_the_descriptors_are_refused_and_one_that_ends_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (here, mut served) = channel(8);
        let (descriptors, term) = (Descriptors::new(2), Term::default());
        tokio::spawn(accept(listener, Silent(here), 100, descriptors.clone(), term.clone()));
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(TcpStream::connect(address).await.expect("it accepts"));
            served.recv().await.expect("it is served");
        }
        let mut refused = TcpStream::connect(address).await.expect("the system accepts");
        assert_eq!(refused.read(&mut [0]).await.unwrap_or_default(), 0, "it is closed");
        assert_eq!(descriptors.refused(), 1);
        drop(held.pop());
        // There is room once the task of that connection has seen its end.
        loop {
            let mut next = TcpStream::connect(address).await.expect("the system accepts");
            let mut byte = [0];
            let is_refused = tokio::select! {
                one = served.recv() => one.is_none(),
                end = next.read(&mut byte) => end.unwrap_or_default() == 0,
            };
            if !is_refused {
                break;
            }
        }
    }

    #[test]
    fn the_reserve_ends_its_oldest_and_forgets_those_that_ended() {
        let mut reserve = Reserve::default();
        let all: Vec<_> = (0..3).map(|_| reserve.enter(3)).collect();
        all[1].cancel();
        let fourth = reserve.enter(3);
        assert!(!all[0].is_cancelled(), "one had ended, so there was room");
        reserve.enter(3);
        assert!(all[0].is_cancelled() && !all[2].is_cancelled() && !fourth.is_cancelled());
    }
}
