//! Connections to a broker that can be told that nothing more will be asked on them.
//!
//! Then their sending half is closed. A broker that still waits with its answer gives up, and puts back what it was about to give; an answer that it has sent
//! still arrives. To drop the whole connection would lose such an answer, and with it what is leased in it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// Resolves when nothing more will be asked.
type Over = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// Makes connections over TCP.
#[derive(Clone)]
pub(crate) struct Connector {
    http: HttpConnector,
    over: Option<Arc<dyn Fn() -> Over + Send + Sync>>,
}

impl Connector {
    /// Makes connections as `http` does, which last as long as both ends want.
    pub(crate) fn new(http: HttpConnector) -> Self {
        Self { http, over: None }
    }

    /// The same for connections on which nothing more is asked once `over` resolves.
    pub(crate) fn until<F>(self, over: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + Sync + 'static,
    {
        Self { over: Some(Arc::new(move || Box::pin(over()))), ..self }
    }
}

impl Service<Uri> for Connector {
    type Response = Socket;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Socket, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.http.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.http.call(uri);
        let over = self.over.as_ref().map(|over| over());
        Box::pin(async move { Ok(Socket { io: connecting.await?, over }) })
    }
}

/// A connection over TCP.
pub(crate) struct Socket {
    io: TokioIo<TcpStream>,
    /// None: the sending half stays open, or is closed already.
    over: Option<Over>,
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.over.as_mut().is_some_and(|over| over.as_mut().poll(cx).is_ready()) {
            self.over = None;
            // A broker that has closed the connection already needs not be told.
            let _ = ready!(Pin::new(&mut self.io).poll_shutdown(cx));
        }
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }
}
