//! HTTP/1.1 connections.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::accept::{Ended, Protocol};

/// How HTTP is served.
pub(crate) struct Http {
    routes: axum::Router,
    http: http1::Builder,
}

impl Http {
    /// A client must send the head of each request within `header_timeout`; an idle connection is closed after it, too.
    pub(crate) fn new(routes: axum::Router, header_timeout: Duration) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(header_timeout);
        Self { routes, http }
    }
}

impl Protocol for Http {
    fn serve(
        &self,
        stream: TcpStream,
        _: SocketAddr,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), Ended>> + Send + use<> {
        let routes = TowerToHyperService::new(self.routes.clone());
        let connection = self.http.serve_connection(TokioIo::new(stream), routes);
        async move {
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                ended = connection.as_mut() => return Ok(ended?),
                () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            Ok(connection.await?)
        }
    }
}
